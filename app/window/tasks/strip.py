"""The strip of tasks in the place of the status line: what works or waits, with its progress and a button to cancel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.layout import lay_out
from app.model.processes.leaving import EXPLAINS, Leaving
from app.model.recent import Memory
from app.style.plain_text import describe
from app.window.notices import WRITTEN_MS, Notices

if TYPE_CHECKING:
    from app.window.tasks.page import TaskPage

TOOK = "tasks/"  # Keys of how long the last task of a kind took, s, begin so


class TaskStrip(QFrame):
    """Shows what tasks say of themselves, side by side; without one the status line is shown.

    It is as high as that: charts do not jump when a task begins.

    Args:
        memory: keeps how long tasks took.
        notices: say that a task is done while something else than the desk is shown.
        status: the status line.
        show: brings the page of a task to the front of the desk, with True also the desk; whether the page is there.
    """

    changed = Signal()  # A task began or ended

    def __init__(
        self, memory: Memory, notices: Notices, status: QWidget, show: Callable[[TaskPage, bool], bool]
    ) -> None:
        super().__init__()
        self.setObjectName("task-strip")
        describe(self, self.tr("Tasks"))
        self._memory, self._notices, self._status, self._show = memory, notices, status, show
        self._working: set[TaskPage] = set()
        self._row = lay_out(QHBoxLayout(self), spacing=24, margins=(14, 0, 14, 0))
        self.hide()

    def place(self, page: TaskPage, at_once: bool) -> None:
        """Show the row of a page while it works, and the page when that is over, or `at_once`."""
        known = self._memory.text(f"{TOOK}{page.kind}")
        page.expected_s = float(known) if known.isdecimal() else 0.0
        self._row.addWidget(page.row, 1)
        page.changed.connect(partial(self._follow, page))
        page.over.connect(partial(self._over, page))
        self._follow(page)
        if at_once:
            self._show(page, True)

    def _follow(self, page: TaskPage) -> None:
        page.row.setVisible(page.working)
        (self._working.add if page.working else self._working.discard)(page)
        self.setFixedHeight(self._status.sizeHint().height())
        self._status.setVisible(not self._working)
        self.setVisible(bool(self._working))
        self.changed.emit()
        if (leaving := Leaving.find(EXPLAINS)) is not None:
            leaving.ended.connect(self.changed)

    def _over(self, page: TaskPage) -> None:
        """Remember how long it took, and show the page, or say that it is there."""
        if page.copy.isEnabled():
            self._memory.remember(f"{TOOK}{page.kind}", str(max(round(page.expected_s), 1)))
        if self._show(page, False):
            return
        banner = self._notices.info(self.tr("{0}: done.").format(page.windowTitle()), WRITTEN_MS)
        button = banner.add_button(self.tr("Show"), partial(self._show, page, True))
        button.clicked.connect(banner.dismiss)
