"""A session's figures from `report`, from `--select` and from Python: those of `show` and of the window's selection."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import answer, here, python
from sample_session import write_sample
from views_desk import FRAMES

from app.api import compare, open_session
from app.model.alignment import errors_in
from app.model.bookmarks import Bookmark, sidecar, write
from profiler.analysis.track import CostTrack
from profiler.errors import BadInput
from profiler.session.errors import SessionError
from profiler.session.reader import Session


@pytest.fixture
def other(tmp_path):
    """A session of the same utterances as the sample."""
    return write_sample(tmp_path / "other.asrs", frames=FRAMES, utterance_frames=256)


def test_json_has_what_show_says_and_the_page_says_of_how_many_a_list_shows_some(sample):
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
    page = here("report", sample).stdout
    assert page.startswith("# a.asrs\n")
    assert f"## Slowest frames, 10 of {FRAMES}\n" in page
    for title in ("Result", "Stages", "Time per frame", "To record it again"):
        assert f"\n## {title}\n" in page


def test_two_sessions_are_compared(sample, other, tmp_path):
    tree = answer("report", sample, other)
    assert [row["session"] for row in tree["sessions"]] == [str(sample), str(other)]
    assert tree["comparison"] == answer("compare", sample, other)
    page = here("report", sample, other).stdout
    assert page.startswith("# Comparison\n")
    assert "\n# other.asrs\n" in page
    refused = here("report", sample, tmp_path / "none.asrs")
    assert refused.returncode == 2
    assert "none.asrs" in refused.stderr


def test_a_stretch_has_the_figures_of_its_frames(sample):
    tree = answer("show", sample, "--select", "2..5.5")
    with open_session(sample) as run:
        of = run.breakdown(200, 550)
        assert tree["wall_s"] == pytest.approx(run.frame_ms[200:550].sum() / 1e3)
        assert {row["name"]: row["time_s"] for row in tree["stages"]} == {
            row.name: pytest.approx(row.time_ns * 1e-9) for row in of.stages
        }
        errors, _ = errors_in(run.session, 200, 550, run.frames)
        names = [one.name for one in run.utterances if one.first_frame < 550 and one.end_frame > 200]
        whole = run.report()
    assert (tree["wer_errors"], tree["wer_words"]) == (errors.errors, errors.words)
    assert [row["id"] for row in tree["utterances"]] == names
    assert tree["selection"] == {"select": ["2..5.5"], "first_s": 2.0, "last_s": 5.5, "stage": None}
    assert "selection: 0:02.00 to 0:05.50 (2..5.5)" in here("show", sample, "--select", "2..5.5").stdout
    assert whole["selection"] is None


def test_an_utterance_a_bookmark_and_a_stage_are_selected_by_name(sample):
    with Session.open(sample) as session:
        write(session, [Bookmark(200, 550, "noise")])
        two = session.utterances[1]
    try:
        utterance = answer("show", sample, "--select", two.name)
        assert [row["id"] for row in utterance["utterances"]] == [two.name]
        assert utterance["wer_errors"] == two.errors
        by_note, by_time = (
            answer("show", sample, "--select", "bookmark:noise"),
            answer("show", sample, "--select", "2..5.5"),
        )
        assert by_note | {"selection": None} == by_time | {"selection": None}
        search = answer("show", sample, "--select", "search", "--select", "noise")
        assert search["stages"] == [row for row in by_time["stages"] if row["group"] == "search"]
        assert search["selection"]["stage"] == "search"
        one = answer("show", sample, "--select", "score.exp")
        assert [row["name"] for row in one["stages"]] == ["score.exp"]
        assert one["wall_s"] == answer("show", sample)["wall_s"], "of the whole run"
    finally:
        sidecar(sample).unlink()


def test_the_report_is_of_the_selection(sample):
    ran = here("report", sample, "--select", "2..5.5", "--json")
    (tree,) = json.loads(ran.stdout)["sessions"]
    assert tree["slowest_frames"]["of"] == 350
    assert all(2.0 <= row["at_s"] < 5.5 for row in tree["slowest_frames"]["rows"])
    assert next(row for row in tree["percentiles"] if row["name"] == "whole frame")["frames"] == 350
    assert tree["confusions"]["errors"] == tree["wer_errors"]
    page = here("report", sample, "--select", "2..5.5").stdout
    assert "- selection: 0:02.00 to 0:05.50 (2..5.5)" in page
    assert f"asrscope report {sample.name} --select 2..5.5\n" in page


def test_what_is_not_there_is_refused_in_the_words_of_export(sample, tmp_path):
    for what in ("nothing", "99..100"):
        picture = here("export", sample, "--png", tmp_path / "a.png", "--select", what)
        for verb in ("show", "report"):
            refused = here(verb, sample, "--select", what)
            assert (refused.returncode, refused.stderr) == (2, picture.stderr)
    refused = here("report", sample, sample, "--select", "1..2")
    assert refused.returncode == 2
    assert "--select is of one session" in refused.stderr


def test_a_selection_loads_no_qt(sample, tmp_path):
    words = ["report", str(sample), "--select", "1..2"]
    code = f"import sys; from app.cli.main import main; print(main({words!r}), 'PySide6' in sys.modules)"
    assert python(code, tmp_path).splitlines()[-1] == "0 False"


DOCS = Path(__file__).parents[2] / "docs"


def test_figures_are_those_of_the_command_line(sample):
    shown = answer("report", sample)["sessions"][0]
    with open_session(sample) as run:
        assert json.loads(json.dumps(run.report(), default=float)) == shown
        assert run.rtf == shown["rtf"]
        assert (run.word_errors.errors, run.word_errors.words) == (shown["wer_errors"], shown["wer_words"])
        assert run.frame_ms.sum() == pytest.approx(1e3 * shown["wall_s"])
        assert sum(run.category_ms.values()) == pytest.approx(run.frame_ms)
        for row in shown["stages"]:
            if row["group"] in ("scoring", "search"):
                assert run.stage_ms(row["name"]).sum() == pytest.approx(1e3 * row["time_s"], rel=1e-6)
        whole = run.statistics()
        assert whole is not None
        own = run.frame_ms - run.category_ms["other_programs"]
        assert whole.quantiles[2] == pytest.approx(np.percentile(own, 99))
        half = run.predict({"search": 0.5})
        saved = sum(row["time_s"] for row in shown["stages"] if row["group"] == "search") / 2
        assert (half.wall_ns - half.predicted_ns) * 1e-9 == pytest.approx(saved)
        with pytest.raises(BadInput, match="nonsense"):
            run.predict({"nonsense": 0.5})
    with pytest.raises(SessionError, match=r"none\.asrs"):
        open_session("none.asrs")


def test_spans_become_a_table(sample):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with open_session(sample) as run:
        table = run.spans_table()
        assert isinstance(table, pandas.DataFrame)
        assert len(table) == len(run.spans)
        emit = table[table["stage"] == "search.emit"]["duration_ns"].sum()
        assert emit * 1e-6 == pytest.approx(run.stage_ms("search.emit").sum())


def test_the_page_and_the_notebook_run(sample, other, tmp_path, monkeypatch, capsys):
    shutil.copy(sample, tmp_path / "run.asrs")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "python.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        exec(block, names)
    assert "ns per token" in capsys.readouterr().out
    notebook = json.loads((DOCS / "python.ipynb").read_text("utf-8"))
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    said = capsys.readouterr().out
    assert "score." in said
    assert "search twice as fast: RTF" in said


def test_arms_are_compared_as_by_the_verb(sample, other):
    verdict = answer("compare", sample, other)["overall"]
    with open_session(sample) as a, open_session(other) as b:
        found = compare(a, b).overall
    assert (found.verdict, found.ratio.ratio) == (verdict["verdict"], verdict["ratio"])
