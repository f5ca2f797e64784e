"""Explain this stage, from the window: the command runs beside it, can be cancelled, and says why it fails."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.window.explanation import Explanation
from app.window.main_window import MainWindow
from tests.app.sample_session import write_sample
from tests.waiting import SOON_MS

SAYS = "import sys; print('score.exp:', *sys.argv[1:]); print('replaying', file=sys.stderr)"
FAILS = "import sys; print('asrscope: There is no stage.', file=sys.stderr); sys.exit(2)"
WAITS = "import time; time.sleep(60)"


@pytest.fixture
def parent(qtbot):
    made = QWidget()
    qtbot.addWidget(made)
    return made


def explanation(parent: QWidget, code: str) -> Explanation:
    made = Explanation(Path("one.asrs"), "score.exp", parent, (sys.executable, "-c", code))
    made.show()
    return made


def test_what_the_command_finds_is_shown_and_can_be_copied(qtbot, parent):
    made = explanation(parent, SAYS)
    assert made.end.text() == "Cancel"
    assert not made.copy.isEnabled()
    qtbot.waitUntil(lambda: not made.working, timeout=SOON_MS)
    assert made.text.toPlainText().strip() == "score.exp: one.asrs score.exp"
    assert made.end.text() == "Close"
    made.copy.click()
    assert "one.asrs score.exp" in QGuiApplication.clipboard().text()
    made.close()


def test_its_sentence_is_shown_when_it_fails(qtbot, parent):
    made = explanation(parent, FAILS)
    qtbot.waitUntil(lambda: not made.working, timeout=SOON_MS)
    assert made.state.text() == "asrscope: There is no stage."
    assert not made.text.toPlainText()
    assert not made.copy.isEnabled()
    made.close()


@pytest.mark.parametrize("way", ["cancel", "escape", "close"])
def test_closing_ends_the_command(qtbot, parent, way):
    made = explanation(parent, WAITS)
    process = made._process
    assert process is not None
    assert process.waitForStarted(20_000)
    number = process.processId()
    if way == "cancel":
        made.end.click()
    elif way == "escape":
        qtbot.keyClick(made, Qt.Key.Key_Escape)
    else:
        made.close()
    assert not psutil.pid_exists(number)


def test_a_command_that_is_not_there_is_told(qtbot, parent):
    made = Explanation(Path("one.asrs"), "score.exp", parent, ("/no/such/program",))
    qtbot.waitUntil(lambda: not made.working, timeout=SOON_MS)
    assert made.state.text() == "The command could not be started."
    made.close()


@pytest.fixture
def window(qtbot, tmp_path):
    made = MainWindow((sys.executable, "-c", "pass"))
    qtbot.addWidget(made)
    made.show()
    yield made
    made.close()


def test_without_a_finished_session_the_action_says_why(window):
    assert not window.actions_.is_enabled("run.explain")
    assert "finished session" in (window.actions_.obstacle("run.explain") or "")
    before = len(window.notices.banners)
    window.explain_stage("score.exp")
    assert len(window.notices.banners) == before + 1


def test_stages_of_scoring_and_search_have_the_entry_and_others_have_it_greyed(
    qtbot, window, tmp_path
):
    write_sample(tmp_path / "s.asrs")
    window.files.open_session(tmp_path / "s.asrs")
    view = window.desk.breakdown
    qtbot.waitUntil(lambda: bool(view.bars.stages), timeout=SOON_MS)
    asked = []
    view.explain.disconnect()
    view.explain.connect(asked.append)
    found, can = {}, {line.name for line in view.bars.stages if line.group in ("scoring", "search")}
    for y in range(view.bars.height()):
        line = view.bars.stage_at(QPoint(10, y))
        if line in view.bars.stages and line.name not in found:
            menu = view.menu_at(QPoint(10, y))
            (entry,) = menu.actions()
            found[line.name] = entry.isEnabled() == (line.name in can)
            if line.name in can:
                entry.trigger()
    assert found
    assert all(found.values())
    assert asked
    assert set(asked) == can & set(found)
    assert view.menu_at(QPoint(10, -5)) is None
