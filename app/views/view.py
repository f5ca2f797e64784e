"""The base of every view: a card with a header and a body, a table twin and a text summary.

A subclass builds its drawing widget in ``__init__`` and passes it to ``set_body``; then it overrides
``draw`` (and what it needs of ``axis_changed``, ``apply_theme``, ``model``, ``summary``, ``table``).
The base holds the last snapshot, shows the table on request, and updates the accessible description.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, QTimer
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QStackedLayout,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.style.keys import ToolButton
from app.style.plain_text import Label, describe, set_tip
from app.style.theme import Tokens, font, theme_changed
from app.widgets import Elided
from profiler.plain import one_line

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from app.model.time_axis import TimeAxis

Table = tuple[Sequence[str], Sequence[Sequence[object]]]

TABLE_REFRESH_S = 0.5
"""While live, the table and the spoken summary are updated this often: people read them."""

_Index = QModelIndex | QPersistentModelIndex


class TableModel(QAbstractTableModel):
    """Read-only rows for a table twin; numbers are right-aligned, text left-aligned."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._headers: Sequence[str] = ()
        self._rows: Sequence[Sequence[object]] = ()

    def replace(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Show other rows; scrolling and selection survive when the shape stays."""
        same = list(headers) == list(self._headers) and len(rows) == len(self._rows)
        if same:
            self._rows = rows
            if rows and headers:
                last = self.index(len(rows) - 1, len(headers) - 1)
                self.dataChanged.emit(self.index(0, 0), last)
            return
        self.beginResetModel()
        self._headers, self._rows = headers, rows
        self.endResetModel()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        """Rows at the top level; cells have no children."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        """Columns at the top level; cells have no children."""
        return 0 if parent.isValid() else len(self._headers)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text and alignment of one cell; None is shown as blank, never as 0."""
        if not index.isValid():
            return None
        value = self._rows[index.row()][index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            if value is None:
                return ""
            return f"{value:.6g}" if isinstance(value, float) else one_line(str(value))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            number = isinstance(value, (int, float))
            side = Qt.AlignmentFlag.AlignRight if number else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        return None

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        """Return the column's name."""
        across = orientation == Qt.Orientation.Horizontal
        if across and role == Qt.ItemDataRole.DisplayRole and section < len(self._headers):
            return one_line(self._headers[section])
        return None


class View(QFrame):
    """A card. Subclasses set ``id`` and ``title`` and override the methods in the second half."""

    id: ClassVar[str] = ""
    title: ClassVar[str] = ""

    def __init__(self, axis: TimeAxis, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"view-{self.id}")
        self.setProperty("card", True)
        self.axis = axis
        self.snapshot: Snapshot | None = None
        self._table_renewed = 0.0

        self._title = Label(self.tr(self.title))
        self._title.setObjectName("card-title")
        self._title.setFont(font(1.06, strong=True))
        self._note = Elided()
        self._note.setObjectName("card-note")
        self._note.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._toggle = ToolButton()
        self._toggle.setObjectName("table-toggle")
        self._toggle.setText(self.tr("Table"))
        self._toggle.setCheckable(True)
        set_tip(self._toggle, self.tr("Show the same numbers as a table"))
        describe(self._toggle, self.tr("Show {0} as a table").format(self.tr(self.title)))
        self._toggle.toggled.connect(self.show_table)
        self.header = QHBoxLayout()
        self.header.setSpacing(8)
        self.header.addWidget(self._title)
        self.header.addWidget(self._note, 1)
        self.header.addWidget(self._toggle)

        self._table_model = TableModel(self)
        self._table: QTableView | None = None
        self._stack = QStackedLayout()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 9, 14, 10)
        layout.setSpacing(6)
        layout.addLayout(self.header)
        layout.addLayout(self._stack, 1)

        self._late = QTimer(self)
        self._late.setSingleShot(True)
        self._late.timeout.connect(self._renew_texts)
        axis.visible_changed.connect(self._axis_moved)
        axis.selection_changed.connect(self._axis_moved)
        theme_changed.connect(self._theme_moved)

    # -- for the window and for exports ----------------------------------------------------

    def set_body(self, widget: QWidget) -> None:
        """Put the drawing widget into the card (once, from the constructor of the subclass)."""
        self._stack.insertWidget(0, widget)
        self._stack.setCurrentIndex(0)

    def set_note(self, text: str) -> None:
        """Set the small text at the right of the header: units, extent, what is averaged."""
        if text != self._note.full:
            self._note.set_full(text)

    @property
    def note(self) -> str:
        """Text at the right of the header."""
        return self._note.full

    @property
    def header_controls(self) -> list[QWidget]:
        """Widgets that are hidden in an exported picture."""
        return [self._toggle]

    def update_snapshot(self, snapshot: Snapshot) -> None:
        """Show ``snapshot``: draws, then updates table and summary (twice a second while live)."""
        self.snapshot = snapshot
        self.draw(snapshot)
        waited = time.monotonic() - self._table_renewed
        if waited >= TABLE_REFRESH_S or not (snapshot.live or self._late.isActive()):
            self._renew_texts()
        elif not self._late.isActive():
            self._late.start(int((TABLE_REFRESH_S - waited) * 1000) + 1)

    def clear(self) -> None:
        """Forget the snapshot (the session was closed)."""
        self.snapshot = None
        self._late.stop()
        describe(self, description="")
        self._table_model.replace((), ())

    def show_table(self, shown: bool) -> None:
        """Show the table instead of the chart, or the chart again."""
        if shown and self._table is None:
            self._table = self._make_table()
            self._stack.addWidget(self._table)
        self._toggle.setChecked(shown)
        if shown and self._table is not None:
            self._renew_texts()
            self._stack.setCurrentWidget(self._table)
        else:
            self._stack.setCurrentIndex(0)

    # -- for subclasses --------------------------------------------------------------------

    def draw(self, snapshot: Snapshot) -> None:
        """Draw frames [0, snapshot.cursor_frame) within ``snapshot.axis.visible``."""

    def axis_changed(self) -> None:
        """Range or selection changed: redraw what is shown (override to do less)."""
        if self.snapshot is not None:
            self.draw(self.snapshot)

    def apply_theme(self, tokens: Tokens) -> None:
        """Adopt other colours. The card itself follows the style sheet."""

    def model(self) -> object:
        """Return the frozen dataclass of arrays that was drawn last."""
        raise NotImplementedError

    def settle(self) -> None:
        """Finish incremental drawing: a picture is about to be taken."""

    def summary(self) -> str:
        """Return one sentence that says what the chart shows; must be cheap."""
        return ""

    def table(self) -> Table:
        """Return (headers, rows): the numbers of the chart."""
        return (), ()

    # -- inner -----------------------------------------------------------------------------

    def _axis_moved(self, *_: object) -> None:
        self.axis_changed()
        if self.snapshot is not None and not self._late.isActive():
            self._late.start(int(TABLE_REFRESH_S * 200))

    def _theme_moved(self, tokens: Tokens) -> None:
        self.apply_theme(tokens)
        if self.snapshot is not None:
            self.draw(self.snapshot)

    def _renew_texts(self) -> None:
        if self.snapshot is None:
            return
        self._late.stop()
        self._table_renewed = time.monotonic()
        describe(self, self.tr(self.title))
        describe(self, description=self.summary())
        if self._toggle.isChecked():
            self._table_model.replace(*self.table())

    def _make_table(self) -> QTableView:
        table = QTableView()
        table.setModel(self._table_model)
        describe(table, self.tr("{0}, as a table").format(self.tr(self.title)))
        table.verticalHeader().hide()
        table.setShowGrid(False)
        table.setAlternatingRowColors(True)
        table.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        table.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
        table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        table.verticalHeader().setDefaultSectionSize(24)
        table.setFrameShape(QFrame.Shape.NoFrame)
        return table
