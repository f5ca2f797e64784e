"""Where each view stands in the layouts that come with the program. No Qt.

A view that a layout names and the registry lacks is skipped. One that it lacks becomes the last tab at the right, so
that it is found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.model.recent import Memory, layout_key
from app.style.plain_text import TextQuestion, ask_text
from profiler.plain import one_line

if TYPE_CHECKING:
    from app.window.desk import Desk


EXPLORE: Final = "explore"
PRESENT: Final = "present"


class DockRow(NamedTuple):
    """Views on top of each other, the first in front; those `closed` come back here; `share` of the column's height."""

    share: int
    views: tuple[str, ...]
    closed: tuple[str, ...] = ()


Column = tuple[DockRow, ...]

LAYOUTS: Final[dict[str, tuple[Column, ...]]] = {
    EXPLORE: (
        (
            DockRow(37, ("cost", "work", "memory", "system"), ("transfers", "latency")),
            DockRow(33, ("timeline",)),
            DockRow(30, ("words", "utterances", "session")),
        ),
        (DockRow(100, ("breakdown", "faster", "statistics", "roofline"), ("results",)),),
    ),
    PRESENT: (
        (
            DockRow(60, ("cost",), ("work", "memory", "transfers", "system", "latency", "timeline")),
            DockRow(40, ("words",), ("utterances", "session")),
        ),
        (DockRow(100, ("breakdown",), ("faster", "statistics", "roofline", "results")),),
    ),
}

NAMES: Final = tuple(LAYOUTS)
WIDTHS: Final = {EXPLORE: (64, 36), PRESENT: (62, 38)}  # Shares of the width that the columns take
WITH_FORM: Final = (EXPLORE,)  # The layouts that show the form, and every view


def columns(name: str, known: Iterable[str], low: bool = False) -> tuple[Column, ...]:
    """The columns of a layout, of those views that are `known`; `low`: with no more than two rows."""
    known = list(known)
    layout = LAYOUTS[name]
    named = {view for column in layout for row in column for view in (*row.views, *row.closed)}
    new = tuple(view for view in known if view not in named)
    share, views, closed = layout[-1][-1]
    last = DockRow(share, views + new, closed) if name in WITH_FORM else DockRow(share, views, closed + new)
    found = []
    for column in (*layout[:-1], (*layout[-1][:-1], last)):
        parts = [[tuple(view for view in part if view in known) for part in (row.views, row.closed)] for row in column]
        rows = [DockRow(row.share, *part) for row, part in zip(column, parts, strict=True) if part[0]]
        if rows:
            found.append(_fewer(rows) if low else tuple(rows))
    return tuple(found)


def _fewer(rows: list[DockRow]) -> Column:
    """At most two rows: those above the last become one, its first tabs what was in front."""
    *upper, last = rows
    if len(upper) < 2:
        return tuple(rows)
    views = (*(row.views[0] for row in upper), *(view for row in upper for view in row.views[1:]))
    return DockRow(upper[0].share, views, tuple(view for row in upper for view in row.closed)), last


LONGEST_NAME: Final = 40

NOW, NAME, WIDTH = "layout/now", "layout/name", "layout/form"  # Keys: the desk, its first layout, the form


class LayoutChoice(QObject):
    """Takes on layouts, saves and deletes the user's own."""

    changed = Signal()  # Another layout was taken on, or there are others now
    refused = Signal(str)  # A layout could not be saved or taken on: why

    def __init__(self, memory: Memory, parent: QWidget) -> None:
        super().__init__(parent)
        self._memory, self._window = memory, parent
        self._desk: Desk | None = None
        self.name = EXPLORE

    def restore(self, desk: Desk) -> None:
        """Make the new desk look as the last one did; what cannot be read leaves the default."""
        self._desk = desk
        state, width = self._memory.state(NOW), self._memory.state(WIDTH)
        name = self._memory.text(NAME, EXPLORE, known=(*NAMES, *self.own()))
        if state is not None and desk.restore_layout(state, name if name in NAMES else ""):
            self.name = name
        if width is not None:
            desk.columns.restore_width(width)

    def remember(self) -> None:
        if self._desk is None:
            return
        self._memory.remember_state(NOW, self._desk.save_layout())
        self._memory.remember(NAME, self.name)
        if (width := self._desk.columns.save_width()) is None:
            self._memory.remember(WIDTH, None)
        else:
            self._memory.remember_state(WIDTH, width)

    def own(self) -> list[str]:
        return self._memory.layouts()

    def take(self, name: str) -> None:
        if self._desk is None:
            return
        if name in NAMES:
            self._desk.arrange(name)
        else:
            state = self._memory.state(layout_key(name))
            if state is None or not self._desk.restore_layout(state):
                self.refused.emit(self.tr("The layout “{0}” cannot be read.").format(name))
                return
        self.name = name
        self.changed.emit()

    def reset(self) -> None:
        self.take(self.name)

    def ask(self) -> TextQuestion:
        title, label = self.tr("Save the layout"), self.tr("Name of the layout")
        return ask_text(self._window, title, label, "" if self.name in NAMES else self.name, self.save)

    def save(self, name: str) -> None:
        """Save what the desk looks like as a layout of the user's own, in place of one of that name."""
        name = one_line(name.strip())[:LONGEST_NAME]
        if name.lower() in NAMES:
            text = self.tr("The layout “{0}” comes with the program; choose another name.")
            self.refused.emit(text.format(name))
        elif name and self._desk is not None:
            self._memory.remember_state(layout_key(name), self._desk.save_layout())
            self.name = name
            self.changed.emit()

    def delete(self, name: str) -> None:
        """Forget a layout of the user's own; the desk stays as it is."""
        self._memory.remember(layout_key(name), None)
        if self.name == name:
            self.name = EXPLORE
        self.changed.emit()
