"""Tasks of the window: their command runs in a child, in its turn, and its document is a page among the results."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest
import shiboken6
from PySide6.QtCore import QPoint
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QTabBar, QWidget
from pytestqt.qtbot import QtBot
from shown_windows import press
from test_documents import AUDIT, EXPLAIN, WHATIF

from app.cli import audit, explain, whatif
from app.model.document import Document
from app.model.processes import leaving
from app.model.processes.leaving import EXPLAINS, Leaving
from app.model.recent import Memory
from app.views.ratios import Ratios
from app.window.main_window import MainWindow
from app.window.notices import Notices
from app.window.tasks import replays
from app.window.tasks.page import JSON, VERB, TaskPage
from app.window.tasks.workbench import TaskStrip
from pipelines.labs.chart import Bars
from tests.waiting import PATIENCE_S


def prints(document: Document) -> str:
    """Code that prints a document as commands do."""
    return f"print({json.dumps(json.dumps({'document': msgspec.to_builtins(document)}))})"


SAYS = f"import sys; print('replaying', file=sys.stderr); {prints(explain.document(EXPLAIN))}"


def concluding(what: str) -> str:
    """Code that prints what is found, with an expression as its conclusion."""
    return f"import json, pathlib; print(json.dumps({{'document': {{'summary': 'Found.', 'parts': [{what}]}}}}))"


SHARES = "import sys, time; print('replaying score.exp 50%', file=sys.stderr, flush=True); time.sleep(60)"
FAILS = "import sys; print('asrscope: There is no stage.', file=sys.stderr); sys.exit(2)"
WAITS = "import time; time.sleep(60)"
SLOW = """
import pathlib, signal, sys, time
place = pathlib.Path({0!r})
signal.signal(signal.SIGTERM, lambda *_: (place / "terminated").touch())
print("ready", file=sys.stderr, flush=True)
while not (place / "terminated").exists() or not (place / "may end").exists():
    time.sleep(0.01)
(place / "ended").touch()
"""
"""It compiles: after a signal it ends only when it may."""


def page(parent: QWidget, *command: str) -> TaskPage:
    made = TaskPage("Explain score.exp", command, "Decoding …", parent, "explain")
    made.show()
    return made


def explanation(parent: QWidget, code: str) -> TaskPage:
    return page(parent, sys.executable, "-c", code)


def displayed(qtbot: QtBot, parent: QWidget, code: str) -> tuple[TaskPage, str]:
    """A page whose command has ended, and what is copied of it."""
    made = explanation(parent, code)
    assert made.command.running
    assert not made.copy.isEnabled()
    qtbot.waitUntil(lambda: not made.command.running)
    made.copy.click()
    return made, QGuiApplication.clipboard().text()


def test_what_the_command_finds_is_shown_and_can_be_copied(qtbot, parent):
    made, copied = displayed(qtbot, parent, SAYS)
    assert made.state.text().startswith("score.exp, measured on this machine, now: 3 rounds")
    assert copied.startswith(f"Explain score.exp\n{made.state.text()}\n\nA note.")
    assert "hot\t15.00\t14.00 – 16.00\t0.75\tat once again" in copied
    assert "memory bandwidth\t60%\t50% – 70%\t20%\t10% – 30%" in copied
    assert copied.endswith("A quarter of its time is waiting.")
    (chart,) = made.body.charts
    assert chart.chart.layers == (Bars("", (20.0, 15.0), (19.0, 14.0), (22.0, 16.0)),)
    qtbot.waitUntil(made.body.tables[1].isVisible)  # laid out in the next turn of the event loop
    made.close()


def test_ratios_and_bars_are_drawn_and_described(qtbot, parent):
    made, _ = displayed(qtbot, parent, prints(whatif.document(WHATIF)))
    (chart,) = made.body.charts
    assert isinstance(chart, Ratios)
    assert [(row.name, row.predicted, row.ends) for row in chart.rows][1] == ("search.emit", 1.0, (1.1, 1.3))
    assert chart.ends == pytest.approx((0.333 / 1.1, 1.3 * 1.1))
    assert any("blue bar is what was predicted" in label.text() for label in made.body.sentences)
    made.close()
    made, copied = displayed(qtbot, parent, prints(audit.document(AUDIT)))
    (chart,) = made.body.charts
    assert chart.accessibleDescription() == "Gaussians 25.0 %, Senones 100.0 %, Exponentials 150.0 %."
    chart.grab()
    assert copied.index("worse\t0\t1\tno\tno\tyes") < copied.index("as-good\t0\t0\tso\tso\tso")
    made.close()


def test_the_time_left_is_by_the_last_one_of_its_kind_and_never_starts_anew(qtbot, parent):
    made = explanation(parent, SHARES)
    strip = TaskStrip(Memory(), Notices(), QWidget(), lambda *_: True)
    qtbot.addWidget(strip)
    strip.place(made, False)
    assert made.row.parentWidget() is strip
    qtbot.waitUntil(lambda: made.state.text().startswith("replaying score.exp · "))
    assert "s so far" in made.progress.full
    assert made.bar.maximum() == 0, "nobody knows how long it takes"
    made.expected_s = 3600.0
    seen = [made.bar.value()]
    for line in ("replaying score.exp 50%", "compiling: kernel 10%", "replaying 90%"):
        made._show_progress(line)
        seen.append(made.bar.value())
        assert made.progress.full == made.state.text()
        assert made.state.text().endswith(" · about 3600 s left")
    assert seen == sorted(seen)
    assert made.bar.maximum() == 100
    number = made.command.process.processId()
    made.close()
    qtbot.waitUntil(lambda: not psutil.pid_exists(number))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ((sys.executable, "-c", FAILS), "There is no stage."),
        ((sys.executable, "-c", "print('no JSON')"), "What the command printed cannot be read."),
        (("/no/such/program",), "The command could not be started."),
    ],
)
def test_its_sentence_is_shown_when_it_fails(qtbot, parent, command, says):
    made = page(parent, *command)
    qtbot.waitUntil(lambda: not made.command.running)
    assert made.state.text() == says
    assert not made.body.tables
    assert not made.copy.isEnabled()
    made.close()


LITTERS = """
import signal, sys, tempfile, time
signal.signal(signal.SIGTERM, lambda *_: None)
print(tempfile.mkdtemp(), file=sys.stderr, flush=True)
while True:
    time.sleep(0.01)
"""
"""It has temporary files, and does not end."""


def test_what_is_killed_leaves_no_temporary_files(qtbot, parent, monkeypatch):
    monkeypatch.setattr(leaving, "PATIENCE_MS", 50)
    made = explanation(parent, LITTERS)
    qtbot.waitUntil(lambda: Path(made.state.text().partition(" · ")[0]).is_dir())
    folder = Path(made.state.text().partition(" · ")[0])
    made.close()
    qtbot.waitUntil(lambda: not folder.exists())
    assert not folder.parent.exists()


@pytest.mark.parametrize("waits", [True, False])
def test_the_next_begins_when_the_one_before_has_ended(qtbot, parent, tmp_path, waits):
    first = explanation(parent, SLOW.format(str(tmp_path)))
    qtbot.waitUntil(lambda: first.state.text().startswith("ready"))
    first.close()
    begun = concluding(f"str(pathlib.Path({str(tmp_path / 'ended')!r}).exists())")
    second = explanation(parent, begun)
    qtbot.waitUntil((tmp_path / "terminated").exists)
    assert second.command.running
    assert second.state.text() == "Waits for the measurement before …"
    if not waits:
        second.close()
        qtbot.waitUntil(lambda: not shiboken6.isValid(second))
    (tmp_path / "may end").touch()
    qtbot.waitUntil((tmp_path / "ended").exists)
    if waits:
        qtbot.waitUntil(lambda: not second.command.running)
        assert second.body.sentences[-1].text() == "True"
        second.close()
    qtbot.waitUntil(lambda: leaving.Leaving.find("explain") is None)


@pytest.mark.parametrize("closed", [True, False])
def test_the_end_of_the_program_waits_for_a_command_to_end_in_its_own_way(tmp_path, closed):
    """Also where the dialog is still open: what lies in the folder for temporary files is the command's to remove."""
    (tmp_path / "may end").touch()
    code = (
        "import sys; from PySide6.QtCore import QTimer;"
        "from PySide6.QtWidgets import QApplication, QWidget;"
        "from app.window.tasks.page import JSON, VERB, TaskPage;"
        "app = QApplication([]); parent = QWidget();"
        "made = TaskPage('a', (sys.executable, '-c', sys.argv[1]), 'b', parent);"
        "made.show(); look = QTimer(interval=20);"
        f"go = lambda: (look.stop(), made.close() if {closed} else None, app.exit());"
        "look.timeout.connect(lambda: go() if made.state.text().startswith('ready') else None);"
        "look.start(); app.exec()"
    )
    command = [sys.executable, "-c", code, SLOW.format(str(tmp_path))]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    assert (tmp_path / "ended").exists()


def test_stages_of_scoring_and_search_have_the_entry_and_others_have_it_greyed(qtbot, window, sample):
    window = window()
    window.files.open_session(sample)
    view = window.desk.breakdown
    qtbot.waitUntil(lambda: bool(view.tree.stages))
    asked = []
    view.explain.disconnect()
    view.explain.connect(asked.append)
    seen = {}
    for y in range(view.tree.viewport().height()):
        line = view.tree.stage_at(QPoint(40, y))
        if line in view.tree.stages and line.name not in seen:
            menu = view.menu_at(QPoint(40, y))
            entry, confirms = seen[line.name] = menu.actions()
            can = line.group in ("scoring", "search")
            assert entry.isEnabled() == confirms.isEnabled() == can
            assert can or ("scoring and search" in entry.toolTip() and menu.toolTipsVisible())
            entry.trigger()
    assert asked
    assert len(asked) < len(seen), "those of other stages do nothing"
    assert view.menu_at(QPoint(10, -5)) is None
    seen[asked[-1]][1].trigger()
    (made,) = window.findChildren(TaskPage)
    assert made.windowTitle() == f"Confirm the verdict of {asked[-1]}"
    made.close()


def test_no_run_begins_while_a_closed_explanation_still_computes(qtbot, window, sample, tmp_path, monkeypatch):
    window = window()
    monkeypatch.setattr(replays, "VERB", (sys.executable, "-c", SLOW.format(str(tmp_path))))
    window.files.open_session(sample)
    assert window.when.can_start()
    window.bench.begin("replays.explain", "score.exp")
    (made,) = window.findChildren(TaskPage)
    qtbot.waitUntil(lambda: made.state.text().startswith("ready"))
    made.close()
    assert not window.top.run.isEnabled()
    window.runs.start()
    assert window.when.is_idle()
    assert window.notices.banners[-1].text.startswith("The measurement before is still ending")
    window.show_lab()
    reported = []
    window._lab.runs.failed.connect(reported.append)
    window._lab.runs.start("call-costs", {})
    assert reported == [leaving.unavailable_reason()]
    assert window.bench.session_reason() is None, "the next explanation waits by itself"
    (tmp_path / "may end").touch()
    qtbot.waitUntil(window.top.run.isEnabled)


def explained(w: MainWindow, monkeypatch: pytest.MonkeyPatch, code: str) -> TaskPage:
    """The page of an explanation that has just begun."""
    before = w.findChildren(TaskPage)
    monkeypatch.setattr(replays, "VERB", (sys.executable, "-c", code))
    w.desk.breakdown.explain.emit("score.gaussians")
    (made,) = (one for one in w.findChildren(TaskPage) if one not in before)
    return made


def test_tasks_take_turns_and_the_desk_stays_usable(qtbot, opened, monkeypatch):
    assert opened.strip.isHidden()
    first = explained(opened, monkeypatch, WAITS)
    second = explained(opened, monkeypatch, SAYS)
    assert opened.strip.isVisible()
    assert not opened.status.isVisible()
    assert first.row.isVisible()
    assert second.progress.full == "Waits for the measurement before …"
    assert not opened.top.run.isEnabled(), "a run would disturb it"
    assert "being measured" in (opened.actions_.unavailable_reason("run.start") or "")
    opened.desk.docks.go_to("roofline")
    assert opened.desk.docks.current == "roofline", "nothing lies over the desk"
    assert not opened.desk.docks.is_open("results")
    first.end.click()
    qtbot.waitUntil(lambda: not second.command.running)
    results = opened.desk.views["results"]
    assert {"results", "cost"} <= set(opened.desk.docks.in_front())
    assert results.tabs.currentWidget() is second
    assert opened.strip.isHidden()
    assert opened.status.isVisible()
    qtbot.waitUntil(lambda: Leaving.find(EXPLAINS) is None)
    qtbot.waitUntil(opened.top.run.isEnabled)
    assert opened.memory.text("tasks/explain").isdecimal(), "the next one knows how long it takes"
    results.tabs.tabBar().tabButton(0, QTabBar.ButtonPosition.RightSide).click()
    qtbot.waitUntil(lambda: results.tabs.count() == 0)


def test_a_result_off_the_desk_is_announced(qtbot, opened, monkeypatch):
    made = explained(opened, monkeypatch, SAYS)
    opened.show_welcome()
    qtbot.waitUntil(lambda: not made.command.running)
    banner = opened.notices.banners[-1]
    assert banner.text == "Explain score.gaussians: done."
    assert opened.pages.currentWidget() is opened.welcome
    press(banner, "Show")
    assert opened.pages.currentWidget() is opened.desk
    assert "results" in opened.desk.docks.in_front()


def test_every_task_is_in_the_menu_and_says_what_it_needs(window):
    w = window()
    tasks = ("explain", "confirm", "audit", "calibrate", "compare_sessions", "compare_arms", "sweep", "capacity")
    can = {name for name in tasks if w.actions_.unavailable_reason(f"run.{name}") is None}
    assert can == {"calibrate", "sweep", "capacity"}
    w.bench.begin("replays.explain", "score.exp")
    assert "finished session" in w.notices.banners[-1].text


def test_each_task_runs_its_verb_on_what_is_shown(qtbot, opened, finished, monkeypatch):
    begun = []
    monkeypatch.setattr(TaskPage, "begin", lambda page, words: begun.append((page.windowTitle(), *words[len(VERB) :])))
    tree = opened.desk.breakdown.tree
    qtbot.waitUntil(lambda: tree.explained() in tree.stages)
    stage, path = tree.explained().name, str(finished)
    for name in ("explain", "confirm", "audit", "calibrate", "compare_arms"):
        opened.actions_.trigger(f"run.{name}")
    assert begun == [
        (f"Explain {stage}", "explain", *JSON, path, stage),
        (f"Confirm the verdict of {stage}", "confirm", *JSON, path, stage),
        ("Audit of finished.asrs", "audit", *JSON, "--session", path),
        ("Roofs of this machine", "calibrate", *JSON),
    ], "arms are of an A/B alone"
