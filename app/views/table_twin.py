"""The table twin of a chart: the same numbers as rows; columns are as wide as their texts, and scrolled to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QTableView, QWidget

from profiler.plain import one_line

Table = tuple[Sequence[str], Sequence[Sequence[object]]]

ROW = 24
"""Height of a row in pixels."""

MEASURED_ROWS = 60
"""Rows whose texts decide the width of a column: those in view and some more."""

AIR = 6
"""Pixels beside the text of a column, besides those of the style."""

_Index = QModelIndex | QPersistentModelIndex

DISPLAY, ALIGNMENT = Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.TextAlignmentRole
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


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

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Text and alignment of one cell; None is shown as blank, never as 0."""
        # Qt asks for much else, of every cell that decides the width of a column.
        if role not in (DISPLAY, ALIGNMENT) or not index.isValid():
            return None
        value = self._rows[index.row()][index.column()]
        if role == DISPLAY:
            if value is None:
                return ""
            return f"{value:.6g}" if isinstance(value, float) else one_line(str(value))
        return RIGHT if isinstance(value, (int, float)) or _numeric(value) else LEFT

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> object:
        """Return the column's name."""
        across = orientation == Qt.Orientation.Horizontal
        if across and role == DISPLAY and section < len(self._headers):
            return one_line(self._headers[section])
        if across and role == ALIGNMENT and section < len(self._headers):
            # Above its numbers or its texts.
            cells = (row[section] for row in self._rows[:MEASURED_ROWS])
            first = next((cell for cell in cells if cell not in (None, "")), "")
            return RIGHT if isinstance(first, (int, float)) or _numeric(first) else LEFT
        return None


NUMBER = re.compile(r"\d[\d.\u202f]*(e[+-]?\d+)?( %)?( \(.*\))?")


def _numeric(value: object) -> bool:
    """Whether a cell reads as a number, with or without a unit or an interval: 135 634, 41 %, 28 % (25–33 %)."""
    return isinstance(value, str) and NUMBER.fullmatch(value) is not None


class TableTwin(QTableView):
    """A read-only table whose texts are never cut: wider than its place, it scrolls sideways."""

    def __init__(self, model: TableModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModel(model)
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.setWordWrap(False)
        self.verticalHeader().setDefaultSectionSize(ROW)
        self.horizontalHeader().setResizeContentsPrecision(MEASURED_ROWS)
        self.setFrameShape(QFrame.Shape.NoFrame)

    def fit_columns(self) -> None:
        """Give each column the width of its widest text; room that is left is shared out."""
        header = self.horizontalHeader()
        columns = header.count()
        widths = [
            max(self.sizeHintForColumn(column), header.sectionSizeHint(column)) + AIR
            for column in range(columns)
        ]
        spare = max(0, self.viewport().width() - sum(widths))
        for column, width in enumerate(widths):
            header.resizeSection(column, width + spare // columns)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the room out again."""
        super().resizeEvent(event)
        self.fit_columns()
