"""Tasks on the desk: their rows in the strip, their turns, and their pages among the results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtWidgets import QTabBar
from pytestqt.qtbot import QtBot
from test_window_explanation import SAYS, WAITS

from app.model.processes.leaving import EXPLAINS, Leaving
from app.style.plain_text import Button
from app.window.main_window import MainWindow
from app.window.tasks import explain
from app.window.tasks.explain import Explanation
from app.window.tasks.workbench import TASKS


def explained(w: MainWindow, monkeypatch: pytest.MonkeyPatch, code: str) -> Explanation:
    """The page of an explanation that has just been asked for."""
    before = w.findChildren(Explanation)
    command = (sys.executable, "-c", code)
    monkeypatch.setattr(explain, "Explanation", partial(Explanation, command=command))
    w.desk.breakdown.explain.emit("score.gaussians")
    (made,) = (one for one in w.findChildren(Explanation) if one not in before)
    return made


def test_tasks_take_turns_and_the_desk_stays_usable(
    qtbot: QtBot, window: Callable[..., MainWindow], finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = window()
    w.open_session(finished)
    assert w.strip.isHidden()
    first = explained(w, monkeypatch, WAITS)
    second = explained(w, monkeypatch, SAYS)
    assert w.strip.isVisible()
    assert not w.status.isVisible()
    assert first.row.isVisible()
    assert second.row.isVisible()
    assert second.progress.full == "Waits for the measurement before …"
    assert not w.top.run.isEnabled(), "a run would disturb it"
    assert "being measured" in (w.actions_.unavailable_reason("run.start") or "")
    w.desk.docks.go_to("roofline")
    assert w.desk.docks.current == "roofline", "nothing lies over the desk"
    assert not w.desk.docks.is_open("results")
    first.end.click()
    qtbot.waitUntil(lambda: not second.working)
    results = w.desk.views["results"]
    assert w.desk.docks.is_in_front("results")
    assert w.desk.docks.is_in_front("cost")
    assert results.tabs.currentWidget() is second
    assert w.strip.isHidden()
    assert w.status.isVisible()
    qtbot.waitUntil(lambda: Leaving.find(EXPLAINS) is None)
    qtbot.waitUntil(w.top.run.isEnabled)
    assert w.memory.text("tasks/Explanation").isdecimal(), "the next one knows how long it takes"
    results.tabs.tabBar().tabButton(0, QTabBar.ButtonPosition.RightSide).click()
    qtbot.waitUntil(lambda: results.tabs.count() == 0)


def test_a_result_off_the_desk_is_announced(
    qtbot: QtBot, window: Callable[..., MainWindow], finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = window()
    w.open_session(finished)
    made = explained(w, monkeypatch, SAYS)
    w.show_welcome()
    qtbot.waitUntil(lambda: not made.working)
    banner = w.notices.banners[-1]
    assert banner.text == "Explain score.gaussians: done."
    assert w.pages.currentWidget() is w.welcome
    next(button for button in banner.findChildren(Button) if button.text() == "Show").click()
    assert w.pages.currentWidget() is w.desk
    assert w.desk.docks.is_in_front("results")


def test_every_task_is_in_the_menu_and_says_what_it_needs(window: Callable[..., MainWindow]) -> None:
    w = window()
    for task in TASKS:
        assert w.actions_[task.id].text() == task.text
        assert (w.actions_.unavailable_reason(task.id) is None) == (task.needs in ("machine", "audio")), task.id
