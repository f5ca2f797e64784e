"""The study of a sweep: read from its report, and in the window, where a trial is chosen and used."""

import csv
import json
import math
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_study import SWEEP, four_trials, point, study, trial, write_study
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QFileDialog, QLineEdit

from app import gui
from app.charts.still import StillPlot
from app.model.study import REPORT, read, session_of, study_of, write_csv
from app.views.study_charts import columns
from app.window.main_window import MainWindow
from app.window.tasks import study as study_window
from app.window.tasks.study import StudyPage
from profiler.errors import BadInput
from tests.bench.campaign.mutate import MARKUP, NUMBERS, ODD, REALS

LEFT = Qt.MouseButton.LeftButton
TOUCHING = [point(0, 0.5, (0.4, 0.7), touches=[1]), point(1, 0.6, (0.5, 0.8), touches=[0])]


def dialog_of(window: MainWindow) -> StudyPage:
    (found,) = (one for one in window.findChildren(StudyPage) if one.isVisible())
    return found


@pytest.fixture
def folder(tmp_path, finished):
    """A study of four trials; trial 1 has its session."""
    made = write_study(tmp_path / "beams", four_trials())
    (made / "trials" / "1-1").mkdir(parents=True)
    shutil.copy(finished, made / "trials" / "1-1" / "trial.asrs")
    return made


@pytest.fixture
def opened(window, folder):
    w = window()
    assert w.open_session(folder)
    return dialog_of(w)


def place(plot: StillPlot, number: int) -> QPoint:
    """Where the mouse hits a trial."""
    plot.settle()
    return next(spot.place.center().toPoint() for spot in plot.canvas.spots if spot.name == str(number))


def test_a_study_is_opened_by_the_menu_and_when_it_is_dropped(window, folder, monkeypatch, tmp_path):
    w = window()
    begun: list[str] = []
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *words: begun.append(words[2]) or str(folder))
    w.actions_["file.study"].trigger()
    assert dialog_of(w).state.text() == "4 trials: 3 done, 1 failed · 2 on the front"
    dialog_of(w).close()
    w.actions_["file.study"].trigger()
    assert begun == [str(tmp_path / "sessions"), str(folder.parent)]  # where sweeps go, then where the last study is
    dialog_of(w).close()
    w.files.drop([folder])
    assert dialog_of(w).study.trials
    dialog_of(w).close()
    w.pages.setCurrentWidget(w.skeleton)
    gui._first_page(w, folder, demo=False)
    assert dialog_of(w).isVisible()
    assert w.pages.currentWidget() is w.desk
    (tmp_path / "nothing").mkdir()
    assert not w.open_session(tmp_path / "nothing")
    assert "holds no study of a sweep" in w.notices.banners[-1].text


def test_charts_and_table_choose_the_same_trial(qtbot, opened):
    assert opened.chosen == 0  # the fastest
    qtbot.mouseClick(opened.front.viewport(), LEFT, pos=place(opened.front, 3))
    assert opened.chosen == 3
    assert opened.details.text().startswith("Trial 3: search.beam=10 · 0.900 of the reference's time · RTF 0.090")
    assert [index.row() for index in opened.table.selectionModel().selectedRows()] == [3]
    opened.body.pages.setCurrentIndex(1)
    opened.table.sortByColumn(3, Qt.SortOrder.DescendingOrder)  # time / reference
    assert [opened.table.cells.row(at)[0] for at in range(4)] == [3, 1, 0, 2]
    assert [index.row() for index in opened.table.selectionModel().selectedRows()] == [0]
    opened.table.setFocus()
    qtbot.keyClick(opened.table, Qt.Key.Key_Down)
    assert opened.chosen == 1
    assert "0.750 (0.700 – 0.820) of the reference's time · RTF 0.080 · WER 10.0 % · 201 MB" in opened.details.text()
    opened.body.pages.setCurrentIndex(2)
    qtbot.mouseClick(opened.lines.viewport(), LEFT, pos=place(opened.lines, 0))
    assert opened.chosen == 0
    assert "not confirmed: The repeats were too few for an interval." in opened.details.text()


def test_points_lie_at_their_errors_and_ratios(opened):
    front = opened.front
    at = {number: place(front, number) for number in (0, 1, 3)}
    assert at[1].x() < at[3].x() < at[0].x()  # WER 10, 20, 40 %
    assert (at[0].x() - at[1].x()) / (at[3].x() - at[1].x()) == pytest.approx(3, abs=0.05)
    assert at[3].y() < at[1].y() < at[0].y()  # 0.9, 0.75 (confirmed), 0.5
    assert (at[0].y() - at[3].y()) / (at[0].y() - at[1].y()) == pytest.approx(0.4 / 0.25, abs=0.05)
    assert "Trial 1: search.beam=8 · 0.750 (0.700 – 0.820)" in front.accessibleDescription()


def test_the_fastest_trial_within_a_limit_is_named_and_chosen(qtbot, opened):
    line = opened.fastest.limit.findChild(QLineEdit)
    line.selectAll()
    qtbot.keyClicks(line, "15")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert (
        opened.fastest.sentence.text()
        == "Fastest with word error rate ≤ 15.0 %: trial 1, 0.750 of the reference's time."
    )
    assert opened.chosen == 1
    assert opened.isVisible()  # Enter pressed no button
    opened.fastest.limit.setValue(5)
    assert opened.fastest.sentence.text() == "No trial has word error rate ≤ 5.0 %."
    opened.fastest.objective.setCurrentIndex(opened.fastest.objective.findData("memory"))
    assert opened.fastest.limit.value() == pytest.approx(204)  # all of them
    opened.fastest.limit.setValue(200.5)
    assert opened.fastest.sentence.text().endswith("trial 0, 0.500 of the reference's time.")


@pytest.mark.slow
def test_the_session_of_a_trial_is_opened(qtbot, opened, folder):
    window = opened.window()
    opened.choose(3)
    qtbot.mouseClick(opened.open_session, LEFT)
    assert opened.state.text().startswith("The session of trial 3 is not there any more")
    opened.body.pages.setCurrentIndex(1)
    opened.table.setFocus()
    qtbot.keyClick(opened.table, Qt.Key.Key_Return)  # the same
    assert opened.isVisible()
    opened.body.pages.setCurrentIndex(0)
    assert not window.open_session("x" * 5000)  # neither a file nor a folder can have this name
    qtbot.mouseDClick(opened.front.viewport(), LEFT, pos=place(opened.front, 1))
    assert window.playhead.path == folder / "trials" / "1-1" / "trial.asrs"


def test_the_settings_of_a_trial_are_used_for_the_next_run(qtbot, opened):
    window = opened.window()
    before = window.pipeline.next
    assert window.pipeline.set("block", 7)
    opened.choose(2)
    assert not opened.use.isEnabled()  # it failed
    opened.choose(1)
    qtbot.mouseClick(opened.use, LEFT)
    assert window.pipeline.next == before  # the recording has the settings of the preset
    assert window.notices.banners[-1].text == "The next run uses the settings of trial 1: search.beam=8."
    assert window.pages.currentWidget() is window.desk


def test_the_trials_are_saved_as_csv(qtbot, opened, tmp_path, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "t.csv"), "Tables (*.csv)"))
    qtbot.mouseClick(opened.save, LEFT)
    assert (tmp_path / "t.csv").read_text().startswith("trial,state,front,search.beam,rtf,")
    assert opened.state.text() == f"Written: {tmp_path / 't.csv'}"


def test_importance_of_each_setting(window, tmp_path):
    w = window()
    shares = {"rtf": {"search.beam": 1.0}, "wer": {"search.beam": 0.25}, "unknown": {"search.beam": 1.0}}
    w.open_session(write_study(tmp_path / "s", four_trials(importance=shares)))
    made = dialog_of(w)
    made.body.pages.setCurrentIndex(3)
    assert not made.why_no_importance.isVisible()
    assert made.importance.isVisible()
    (time, errors) = made.importance.chart.layers
    assert (time.values, errors.values) == ((100.0,), (25.0,))
    assert made.importance_table.cells.row(0) == ["search.beam", "100.0 %", "25.0 %"]
    assert "word error rate: search.beam matters most." in made.importance.accessibleDescription()


def test_studies_of_few_trials(window, tmp_path):
    w = window()
    for number, (tree, says) in enumerate(
        (
            (study([], []), "No trial has ended yet."),
            (study([trial(0, 0.5, 0.4)], [point(0)]), "1 trial: 1 done · 1 on the front"),
            (study([trial(0, None, None), trial(1, None, None)], []), "2 trials: 2 failed · none on the front"),
            (study([trial(0, 0.5, None, latency_s=None)], [point(0)], objectives=["rtf"]), "1 trial: 1 done"),
            (study([trial(0, 0.5, 0.4), trial(1, 0.6, 0.1)], TOUCHING), "2 trials: 2 done"),
        )
    ):
        w.open_session(write_study(tmp_path / str(number), tree))
        made = dialog_of(w)
        assert made.state.text().startswith(says)
        for page in range(4):
            made.body.pages.setCurrentIndex(page)
            made.grab()
        assert made.use.isEnabled() == any(one["state"] == "done" for one in tree["trials"])
        undecided = made.fastest.sentence.text().endswith("Its interval touches that of 1: their order is undecided.")
        assert undecided == (tree["front"] is TOUCHING)
        made.close()


def nodes(tree: object) -> Iterator[tuple[dict | list, str | int]]:
    """Every place in a tree of JSON that holds a value."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield tree, key
        yield from nodes(value)


@pytest.mark.slow
def test_whatever_a_report_holds_is_shown_or_refused_in_one_sentence(window, tmp_path):
    w, rng, shown = window(), random.Random(7), 0
    odd = (None, True, {}, [], *MARKUP, *ODD, *NUMBERS, *(real for real in REALS if math.isfinite(real)))
    for _ in range(70):
        tree = four_trials(importance={"wer": {"search.beam": 1.0}})
        place, key = rng.choice(list(nodes(tree)))
        place[key] = rng.choice(odd)
        if w.open_session(write_study(tmp_path / "s", tree)):
            made = dialog_of(w)
            for page in range(4):
                made.body.pages.setCurrentIndex(page)
                made.grab()
            made.write_table(tmp_path / "t.csv")
            made.close()
            shown += 1
        else:
            assert len(w.notices.banners[-1].text) < 1000
            assert w.notices.banners[-1].text.isprintable()
            w.notices.clear()
    assert shown > 10


def test_parallel_coordinates_place_numbers_by_size_and_names_apart():
    rows = [trial(0, 0.5, 0.4), trial(1, 1.0, 0.1), trial(2, 0.75, 0.2)]
    for row, beam, name in zip(rows, (7.0, 13.0, 9.0), ("a", "b", "a"), strict=True):
        row["settings"] = {"search.beam": beam, "gmm.component": name}
    beam, name, ratio, errors = columns(study_of(study(rows, [])))
    assert beam.places == pytest.approx({0: 0.0, 1: 1.0, 2: 1 / 3})
    assert [text for _, text in beam.labels] == ["7", "9", "13"]
    assert name.places == {0: 0.25, 1: 0.75, 2: 0.25}
    assert ratio.places == pytest.approx({0: 0.0, 1: 1.0, 2: 0.5})
    assert errors.title == "word error rate (%)"
    assert errors.places == pytest.approx({0: 1.0, 1: 0.0, 2: 1 / 3})


@pytest.fixture
def sweeping(monkeypatch):
    """Sweeps are a program of the tests."""
    monkeypatch.setattr(study_window, "SWEEP", (sys.executable, "-c", SWEEP, str(Path(__file__).parent)))


@pytest.mark.usefixtures("sweeping")
def test_a_sweep_grows_is_stopped_and_goes_on(qtbot, window, tmp_path):
    folder = tmp_path / "beams"
    w = window()
    w.bench.begin("study", folder, ("--over", "search.beam=7..8"))
    made = dialog_of(w)
    qtbot.waitUntil(lambda: bool(made.study.trials))
    assert made.state.text() == "1 of 2 trials done, about 3 min left"
    assert made.bar.value() == 50
    assert not made.use.isEnabled()  # it would be closed, and the sweep with it
    made.more.click()
    qtbot.waitUntil(lambda: not made.command.running)
    assert made.state.text() == "Stopped: 1 trial: 1 done · 1 on the front"
    made.more.click()
    qtbot.waitUntil(lambda: made.command.running)
    qtbot.waitUntil(lambda: not made.command.running)
    assert made.state.text() == "2 trials: 2 done · 2 on the front"
    assert not made.more.isVisible()
    words = f"--over search.beam=7..8 --out {folder} --json"
    assert [(tmp_path / f"begun{n}").read_text() for n in (0, 1)] == [words, words]


@pytest.mark.usefixtures("sweeping")
def test_a_study_that_is_not_complete_goes_on_by_its_own_command(qtbot, window, tmp_path):
    folder = write_study(tmp_path / "beams", study([trial(0, 0.5, 0.4)], [point(0)], complete=False))
    (tmp_path / "begun0").touch()
    w = window()
    w.open_session(folder)
    made = dialog_of(w)
    assert made.more.text() == "Go on"
    assert made.more.toolTip() == "asrscope sweep --preset gmm-quick --over search.beam=7..10"
    made.more.click()
    qtbot.waitUntil(lambda: not made.command.running)
    assert (tmp_path / "begun1").read_text() == f"--preset gmm-quick --over search.beam=7..10 --out {folder} --json"
    assert made.state.text() == "2 trials: 2 done · 2 on the front"


def test_a_confirmed_ratio_stands_in_place_of_the_first_one(tmp_path):
    found = read(write_study(tmp_path / "beams", four_trials()))
    assert found == study_of(json.loads(json.dumps(four_trials())))
    ratios = {one.id: found.figure(one, "rtf") for one in found.trials}
    assert ratios == {0: 0.5, 1: 0.75, 2: None, 3: 0.9}
    assert found.ends(found.by_id[1]) == (0.7, 0.82)
    assert found.ends(found.by_id[0]) is None
    assert found.figure(found.by_id[0], "wer") == pytest.approx(40)
    assert found.figure(found.by_id[1], "memory") == pytest.approx(201)
    assert found.figure(found.by_id[1], "latency") == pytest.approx(160)
    assert found.keys == ("search.beam",)
    assert [trial.state for trial in found.trials].count("done") == 3


def test_errors_of_characters_are_titled_so():
    characters = [trial(0, 0.5, 0.4, cer=0.4), trial(1, 0.8, 0.1, cer=0.1), trial(2, None, None)]
    assert study_of(study(characters, [])).title("wer") == "character error rate"
    assert study_of(study([*characters, trial(3, 0.9, 0.2)], [])).title("wer") == "word error rate"
    assert study_of(study([trial(0, None, None)], [])).title("wer") == "word error rate"


def test_the_fastest_trial_within_a_limit_is_never_one_that_violates_a_constraint():
    made = study_of(four_trials())
    assert [made.fastest("wer", limit).id for limit in (100, 40, 39.9, 10)] == [0, 0, 1, 1]
    assert made.fastest("wer", 9.9) is None
    trials = [trial(0, 0.5, 0.4, why="wer is 0.4, over 0.3."), trial(1, 0.8, 0.1)]
    assert study_of(study(trials, [point(1)])).fastest("wer", 50).id == 1


def test_sessions_are_found_where_the_study_is_now(tmp_path):
    found = study_of(four_trials())
    assert session_of(found.by_id[1], tmp_path) == tmp_path / "trials" / "1-1" / "trial.asrs"
    hostile = study_of(study([trial(0, 1.0, 0.1, session="/a/../b.asrs"), trial(1, 1.0, 0.1, session=None)], []))
    assert [session_of(one, tmp_path) for one in hostile.trials] == [None, None]


def test_the_table_as_csv(tmp_path):
    tree = four_trials()
    settings = [{"model": "gmm", "on": True}, {"model": "=1+1", "on": False}, {}, {"model": "gmm"}]
    for row, chosen in zip(tree["trials"], settings, strict=True):
        row["settings"] = chosen
    write_csv(study_of(tree), tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == ["gmm", "'=1+1", "", "gmm"]
    assert [row["on"] for row in rows] == ["true", "false", "", ""]
    assert [row["front"] for row in rows] == ["yes", "yes", "no", "no"]
    assert [row["rtf_ratio"] for row in rows] == ["0.5", "0.8", "", "0.9"]
    assert [rows[1][f"rtf_ratio_{name}"] for name in ("confirmed", "low", "high")] == ["0.75", "0.7", "0.82"]
    assert rows[0]["why"] == "The repeats were too few for an interval."
    assert rows[2]["why"] == "The run failed on here: it crashed."


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"trials": [trial(0, 1.0, 0.1), trial(0, 1.0, 0.1)]}, "two trials have one number"),
        ({"front": [point(7)]}, "a trial of the front is missing"),
        ({"objectives": ["speed"]}, "an objective is unknown"),
        ({"command": ["--preset", "gmm", "--png=x.png"]}, "its command has other options"),
        ({"trials": [trial(0, 1e300, 0.1)], "front": []}, "Expected `float` <= 1000000000000000.0"),
        ({"trials": [trial(0, 1.0, 0.1, settings={"a": 1e300})], "front": []}, "a setting is too large"),
        ({"trials": [trial(0, 1.0, 0.1, settings={"a": [1]})], "front": []}, "got `array`"),
        ({"trials": [trial(0, 1.0, 0.1, settings={"a": "x" * 5000})], "front": []}, "length <= 4096"),
        ({"trials": [trial(0, 1.0, 0.1, settings={str(n): 1 for n in range(300)})], "front": []}, "too many settings"),
    ],
)
def test_a_report_that_does_not_fit_together_is_refused(tmp_path, change, says):
    with pytest.raises(BadInput, match=r"report\.json: the report of a sweep is damaged: ") as caught:
        read(write_study(tmp_path, four_trials(**change)))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "holds no study of a sweep"),
        *((content, "damaged") for content in (b"", b'{"study"', b"\xff", b'{"x":' + b"[" * 100_000)),
    ],
)
def test_a_folder_without_a_readable_report(tmp_path, content, says):
    if content is not None:
        (tmp_path / REPORT).write_bytes(content)
    with pytest.raises(BadInput, match=says):
        read(tmp_path)
