"""`asrscope report`: a page to paste, and the same as JSON, of one session or of two with their comparison."""

import numpy as np
import pytest
from command_line import answer, here
from sample_session import write_sample

from profiler.analysis.track import CostTrack
from profiler.session.reader import Session


@pytest.fixture
def sample(tmp_path):
    return write_sample(tmp_path / "sample.asrs", frames=1024)


def test_json_has_what_show_says_and_where_the_time_peaks(sample):
    tree = answer("report", sample)
    assert tree["comparison"] is None
    (one,) = tree["sessions"]
    shown = answer("show", sample)
    assert {key: one[key] for key in shown} == shown
    with Session.open(sample) as session:
        track = CostTrack()
        track.update(session)
        ms = track.own_ns(0, int(track.n_frames)) * 1e-6
        words = sum(len(u.words) for u in session.utterances)
    whole = one["percentiles"][0]
    assert whole["p99_ms"] == pytest.approx(np.percentile(ms, 99))
    assert {row["name"] for row in one["percentiles"]} >= {"score.gaussians", "search.emit"}
    frames = one["slowest_frames"]
    assert frames["of"] == len(ms)
    assert [row["ms"] for row in frames["rows"]] == pytest.approx(np.sort(ms)[::-1][:10])
    assert one["slowest_words"]["of"] == words
    took = [row["ms"] for row in one["slowest_words"]["rows"]]
    assert took == sorted(took, reverse=True)


def test_the_page_says_of_how_many_a_list_shows_some(sample):
    page = here("report", sample).stdout
    assert page.startswith("# sample.asrs\n")
    assert "## Slowest frames, 10 of 1024\n" in page
    for title in ("Result", "Stages", "Time per frame", "To record it again"):
        assert f"\n## {title}\n" in page


def test_two_sessions_are_compared(sample, tmp_path):
    other = write_sample(tmp_path / "other.asrs", frames=1024)
    tree = answer("report", sample, other)
    assert [row["session"] for row in tree["sessions"]] == [str(sample), str(other)]
    assert tree["comparison"] == answer("compare", sample, other)
    page = here("report", sample, other).stdout
    assert page.startswith("# Comparison\n")
    assert "\n# other.asrs\n" in page
    refused = here("report", sample, tmp_path / "none.asrs")
    assert refused.returncode == 2
    assert "none.asrs" in refused.stderr
