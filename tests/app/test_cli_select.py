"""`show` and `report` with --select: the figures of a stretch are those of the window's selection, words included."""

import json

import pytest
from command_line import answer, here, python

from app.api import open_session
from app.model.alignment import errors_in
from app.model.bookmarks import Bookmark, sidecar, write
from profiler.session.reader import Session


def tree_of(*words: object) -> dict[str, object]:
    return answer("show", *words)


def test_a_stretch_has_the_figures_of_its_frames(sample):
    tree = tree_of(sample, "--select", "2..5.5")
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
        utterance = tree_of(sample, "--select", two.name)
        assert [row["id"] for row in utterance["utterances"]] == [two.name]
        assert utterance["wer_errors"] == two.errors
        by_note, by_time = tree_of(sample, "--select", "bookmark:noise"), tree_of(sample, "--select", "2..5.5")
        assert by_note | {"selection": None} == by_time | {"selection": None}
        search = tree_of(sample, "--select", "search", "--select", "noise")
        assert search["stages"] == [row for row in by_time["stages"] if row["group"] == "search"]
        assert search["selection"]["stage"] == "search"
        one = tree_of(sample, "--select", "score.exp")
        assert [row["name"] for row in one["stages"]] == ["score.exp"]
        assert one["wall_s"] == tree_of(sample)["wall_s"], "of the whole run"
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
    verbs = [[verb, str(sample), "--select", "1..2"] for verb in ("show", "report")]
    code = f"import sys; from app.cli.main import main; print(*map(main, {verbs!r}), 'PySide6' in sys.modules)"
    assert python(code, tmp_path).splitlines()[-1] == "0 0 False"
