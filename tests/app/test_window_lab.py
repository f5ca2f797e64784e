"""The Lab page: cards, run and stop, a real lab; and its session on the desk, whose frames are steps."""

import re
import sys
from pathlib import Path

import lab_worker
import psutil
import pytest
from command_line import here
from lab_worker import NAME, PLANTED
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.model import lab_runs
from app.pictures.writers import settle
from app.views.labs.ranges import rows_of
from app.window.lab.page import LabPage
from pipelines import labs
from pipelines.labs import record
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.app.text_geometry import texts
from tests.app.worker_process import process_id

WORKER = Path(__file__).with_name("lab_worker.py")


@pytest.fixture
def page(qtbot, monkeypatch):
    """Pages whose labs are scripted, in the modes given."""
    made = []
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))

    def make(*modes, busy=lambda: False):
        one = LabPage(busy, (sys.executable, str(WORKER), *modes))
        qtbot.addWidget(one)
        one.resize(1100, 700)
        one.show()
        qtbot.waitUntil(lambda: not one._to_read)
        made.append(one)
        return one

    yield make
    for one in made:
        one.shutdown()


@pytest.fixture
def kept(tmp_path):
    """A session of an earlier run, in the folder of sessions."""
    path = tmp_path / "sessions" / "2026-01-31-120000-lab-call-costs.asrs"
    path.parent.mkdir()
    lab_worker.write(path)
    return path


def test_every_lab_has_a_card_under_its_group(page):
    one = page()
    assert list(one.gallery.tiles) == list(labs.every())
    for name, tile in one.gallery.tiles.items():
        reported = tile.state_text().split(" · ")
        assert reported[0] == "not tried yet"
        assert ("needs a GPU" in reported) == labs.load(name).wants_device
    assert "about 12 s" in one.gallery.tiles["exp-share"].state_text()
    assert one.gallery.tiles[NAME].accessibleName() == labs.load(NAME).claim
    one.grab()


def test_a_card_shows_the_last_run_and_its_picture_has_the_menu_of_charts(page, kept):
    one = page()
    tile = one.gallery.tiles[NAME]
    assert tile.past.path == kept
    assert tile.state_text() == f"{tile.past.record.finding.verdict} · just now"
    one.show_lab(NAME)
    settle()
    detail = one.detail

    def entries(at):
        place = detail.mapFrom(at, at.rect().center())
        event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, detail.mapToGlobal(place))
        QApplication.sendEvent(detail, event)
        menu = QApplication.activePopupWidget()
        return [] if menu is None else menu.actions()

    assert entries(detail.run) == []
    _, copy, as_table = entries(detail.card)
    copy.trigger()
    rows = rows_of(detail._past.record.chart)
    assert QGuiApplication.clipboard().text().count("\n") == 1 + len(rows)
    as_table.trigger()
    QApplication.activePopupWidget().close()
    assert detail.table.isVisible()


def test_sessions_are_named_after_their_labs_and_listed_the_newest_first(tmp_path):
    stems = ("30-120000-lab-exp", "31-120000-lab-exp", "29-120000-lab-exp", "31-120000-lab-call-costs-2")
    files = [tmp_path / "sessions" / f"2026-01-{stem}.asrs" for stem in stems]
    files[0].parent.mkdir()
    for file in files:
        file.touch()
    assert lab_runs.sessions() == {"exp": [files[1], files[0], files[2]], "call-costs": [files[3]]}


def test_the_last_run_of_a_lab_has_its_name_and_a_verdict(kept, tmp_path):
    of_none = tmp_path / "of none.asrs"
    SessionWriter(of_none, Recorder(), {}).close()
    assert lab_runs.last_of([of_none, kept], NAME).path == kept
    assert lab_runs.last_of([kept], "exp-share") is None


def test_a_lab_is_run_and_its_session_opened(qtbot, page):
    one = page()
    one.show_lab(NAME)
    assert not one.detail.open.isEnabled()
    with qtbot.waitSignal(one.runs.ended):
        one.detail.run.click()
        assert one.detail.run.text() == "Stop"
    past = one.detail._past
    assert past.record.measured == PLANTED
    assert one.gallery.tiles[NAME].past == past
    assert one.detail.run.text() == "Run"
    one.detail.as_table.click()
    assert one.detail.table.isVisible()
    assert one.detail.table.cells.rowCount() == len(rows_of(past.record.lab.picture(PLANTED)))
    with qtbot.waitSignal(one.open_session) as asked:
        one.detail.open.click()
    assert asked.args == [str(past.path)]
    assert process_id(one.runs.control) == 0
    assert past.record.finding.why in one.detail.card.accessibleDescription()


def test_the_end_of_a_lab_waits_for_no_process(qtbot, page, tmp_path):
    """The window stood still for half a second, while a process that had said all let go of its memory."""
    one = page("lingers", str(tmp_path / "may end"))
    one.show_lab(NAME)
    with qtbot.waitSignal(one.runs.ended):
        one.detail.run.click()
        qtbot.waitUntil(lambda: process_id(one.runs.control) != 0)
        number = process_id(one.runs.control)
    assert psutil.pid_exists(number)
    assert one.runs.unavailable_reason() is None
    assert one.detail.run.text() == "Run"
    (tmp_path / "may end").touch()
    qtbot.waitUntil(lambda: not psutil.pid_exists(number))


def test_a_lab_is_stopped(qtbot, page):
    one = page("slow")
    one.show_lab(NAME)
    one.detail.run.click()
    qtbot.waitUntil(lambda: one.detail.bar.value() == 500)
    assert one.gallery.tiles[NAME].state_text() == "running"
    assert "It is being measured." in {text.text for text in texts(one.detail.card)}
    assert one.detail.about.full == "running"
    assert one.runs.runs_unavailable_reason() is not None
    with qtbot.waitSignal(one.runs.ended):
        one.detail.run.click()
    assert one.runs.runs_unavailable_reason() is None
    assert one.detail.about.full == "not tried yet"
    assert one.gallery.tiles[NAME].state_text().startswith("not tried yet")


def test_a_lab_that_fails_says_why_and_none_begins_during_a_run(qtbot, page):
    one = page("fail")
    one.show_lab(NAME)
    with qtbot.waitSignal(one.runs.failed):
        one.detail.run.click()
    assert one.detail.problem.text() == "The worker 1 died: out of cards."
    assert one.detail.run.isEnabled()
    one = page(busy=lambda: True)
    one.show_lab(NAME)
    assert not one.detail.run.isEnabled()
    assert "would disturb" in one.detail.what.full
    with qtbot.waitSignal(one.runs.failed):
        one.runs.start(NAME, {})
    assert process_id(one.runs.control) == 0


def test_only_parameters_that_were_changed_go_along(page, monkeypatch):
    one = page()
    one.show_lab(NAME)
    begun = []
    monkeypatch.setattr(one.runs, "start", lambda *what: begun.append(what))
    size = one.detail.fields["largest"].editor
    for value in (1024, labs.load(NAME).parameters.largest):
        size.setValue(value)
        one.detail.run.click()
    assert begun == [(NAME, {"largest": 1024}), (NAME, {})]


def test_the_keyboard_goes_through_the_gallery_and_back(qtbot, page):
    one = page()
    with qtbot.waitActive(one):
        one.activateWindow()
    first, second = list(one.gallery.tiles.values())[:2]
    first.setFocus()
    QTest.keyClick(first, Qt.Key.Key_Right)
    assert second.hasFocus()
    QTest.keyClick(second, Qt.Key.Key_Return)
    assert one.gallery.tiles[one.detail.name] is second
    assert one.currentWidget() is one.detail
    QTest.keyClick(one.detail.run, Qt.Key.Key_Escape)
    assert one.currentWidget() is one.gallery
    assert second.hasFocus()


def test_the_window_shows_the_page_and_runs_nothing_during_a_lab(window, monkeypatch):
    made = window()
    made.actions_.trigger("page.lab")
    lab = made._lab
    assert made.pages.currentWidget() is lab
    monkeypatch.setattr(lab.runs, "_name", NAME)
    monkeypatch.setattr(lab.runs.control, "state", "running")
    assert not made.when.can_start()
    assert not made.when.can_demo()
    made.runs.start()
    made.runs.demo()
    assert made.when.is_idle()
    assert any("would disturb" in banner.text for banner in made.notices.banners)
    assert made.bench.session_reason() is not None
    monkeypatch.undo()
    made.actions_.trigger("page.welcome")
    assert made.pages.currentWidget() is made.welcome


@pytest.mark.slow
def test_a_lab_shows_its_picture_and_verdict_and_leaves_no_process(qtbot, window):
    made = window()
    made.show_lab()
    lab = made._lab
    qtbot.waitUntil(lambda: not lab._to_read)
    lab.show_lab("access-orders")
    empty = lab.detail.card.grab().toImage()
    for key, value in {"largest_mib": 1, "seconds": 0.0}.items():
        lab.detail.fields[key].editor.setValue(value)
    with qtbot.waitSignal(lab.runs.ended):
        lab.detail.run.click()
        process = psutil.Process(process_id(lab.runs.control))
    qtbot.waitUntil(lambda: not process.is_running())
    tile = lab.gallery.tiles["access-orders"]
    past = tile.past
    assert past.record.finding.verdict in tile.state_text()
    assert past.record.parameters.largest_mib == 1
    assert past.record.finding.why in lab.detail.card.accessibleDescription()
    assert lab.detail.card.grab().toImage() != empty
    with Session.open(past.path) as session:
        assert session.state == "closed"


STEPS = 120
STEP_NS = 20_000_000


@pytest.fixture
def lab_session(tmp_path):
    """A lab of 120 steps of 20 ms."""
    lab = labs.load(NAME)
    fact = record.stored(NAME, lab.parameters, PLANTED, lab.judge(PLANTED))
    recorder, path = Recorder(), tmp_path / "lab.asrs"
    writer = SessionWriter(path, recorder, {record.KEY: fact})
    stage, step = recorder.stage("training", "scoring"), recorder.stage("lab", "decode")
    lane = recorder.lane("lab", decode=True)
    for number in range(STEPS):
        start = number * STEP_NS
        lane.put(stage, start, start + STEP_NS, number, 1)
        lane.put(step, start, start + STEP_NS, number, 1)
    writer.close()
    return path


def test_steps_of_a_lab_are_no_audio_and_its_preset_is_that_of_the_next_run(opened, finished, lab_session):
    assert not opened.top.preset.text().startswith("next: ")
    assert opened.top.rtf.value != "–"
    assert opened.desk.transport.note.full.count("s of audio") == 1
    opened.open_session(lab_session)
    QApplication.processEvents()
    assert opened.top.rtf.value == "–"
    note = opened.desk.transport.note.full
    assert f"{NAME} · {STEPS} steps" in note
    assert "audio" not in note
    for view in ("cost", "breakdown"):
        assert opened.desk.views[view].note.startswith("ms per step of the lab")
    assert not opened.desk.views["cost"].model().realtime_shown
    assert opened.top.preset.text().startswith("next: ")
    assert opened.top.device.full == ""
    assert not opened.recorded_settings.offered
    opened.open_session(finished)
    assert not opened.top.preset.text().startswith("next: ")
    assert opened.top.device.full != ""


def test_figures_of_steps_are_not_called_those_of_frames(window, lab_session):
    w = window()
    w.open_session(lab_session)
    for view_id in ("cost", "work", "breakdown", "statistics", "faster"):
        w.desk.docks.go_to(view_id)
        QApplication.processEvents()
        view = w.desk.views[view_id]
        view.settle()
        shown = [view.note, view.summary(), *view.table()[0]]
        assert not [text for text in shown if re.search(r"frames?\b", text)], view_id
        assert view_id in ("work", "faster") or any("step" in text for text in shown), view_id
    statistics = w.desk.views["statistics"]
    assert statistics.note.startswith(f"{STEPS} steps")
    assert statistics.summary().startswith("whole step: mean 20.0 ms per step, ")
    assert "slowest step: 20.0 ms · at step " in statistics.about.full
    assert {"steps", "ms of a step"} <= {text.text for text in texts(statistics.plot)}
    second = w.axis.visible[1] / 2
    cost = w.desk.views["cost"]
    assert [line.name for line in cost.readout(cost.model(), second)][-1] == "sum, ms per step"
    assert "cost per step is 20.0 ms on average; most of it is " in cost.summary()
    assert [row[0] for row in statistics.table()[1]] == ["whole step", "training"]


def test_the_report_is_of_steps(lab_session):
    shown = here("show", lab_session).stdout
    assert f"{STEPS} steps in {STEPS * STEP_NS / 1e9:.2f} s: 20 ms per step (set-up" in shown
    assert "RTF" not in shown
    page = here("report", lab_session).stdout
    assert "## Time per step" in page
    assert f"## Slowest steps, 10 of {STEPS}" in page
    assert "| whole frame |" not in page
