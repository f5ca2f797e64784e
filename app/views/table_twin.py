"""The table twin of a chart: the same numbers as rows; columns are as wide as their texts, and scrolled to.

A click on a header sorts by it; rows are copied with their headers as text with tabs, which spreadsheets take; what a
row is of, its first column, stays in sight.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

from PySide6 import QtCore, QtWidgets
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent

from app.style.plain_text import AT_LEFT, AT_RIGHT, add_entry, breakable, describe, new_menu
from profiler.plain import SHOWN_CHARACTERS, one_line

Table = tuple[Sequence[str], Sequence[Sequence[object]]]

ROW = 24  # Height of a row in pixels
MEASURED_ROWS = 60  # Rows whose texts decide the width of a column: those in view and some more
LEAST_WRAPPED = 100  # Width of a column of sentences in pixels, at least: a narrower table scrolls sideways
AIR = 6  # Horizontal padding of a column's text in pixels, in addition to that of the style

_Index = QtCore.QModelIndex | QtCore.QPersistentModelIndex

DISPLAY, ALIGNMENT = QtCore.Qt.ItemDataRole.DisplayRole, QtCore.Qt.ItemDataRole.TextAlignmentRole


class TableModel(QtCore.QAbstractTableModel):
    """Read-only rows for a table twin; numbers are right-aligned, text left-aligned."""

    texts = False  # Whether all cells are texts, also those that look like numbers

    longest = SHOWN_CHARACTERS  # Characters of a cell; of a longer text the middle is left out

    def __init__(self, parent: QtWidgets.QWidget | None = None) -> None:
        super().__init__(parent)
        self._headers: Sequence[str] = ()
        self._given: Sequence[Sequence[object]] = ()
        self._rows: Sequence[Sequence[object]] = ()
        self._column, self._order = -1, QtCore.Qt.SortOrder.AscendingOrder

    def replace(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Show other rows; scrolling and selection survive when the shape stays."""
        if list(headers) == list(self._headers) and len(rows) == len(self._rows):
            self._given = rows
            self._show_sorted()
            return
        self.beginResetModel()
        self._headers, self._given = headers, rows
        self._rows = self._sorted(rows)
        self.endResetModel()

    def sort(self, column: int, order: QtCore.Qt.SortOrder = QtCore.Qt.SortOrder.AscendingOrder) -> None:
        """Show the rows in the order of a column's numbers or texts, blanks last; column −1: as they were given."""
        self._column, self._order = column, order
        self._show_sorted()

    def _show_sorted(self) -> None:
        self._rows = self._sorted(self._given)
        if self._rows and self._headers:
            last = self.index(len(self._rows) - 1, len(self._headers) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    def _sorted(self, rows: Sequence[Sequence[object]]) -> Sequence[Sequence[object]]:
        column, down = self._column, self._order == QtCore.Qt.SortOrder.DescendingOrder
        if not 0 <= column < len(self._headers):
            return rows
        filled = [row for row in rows if row[column] not in BLANK]
        ordered = sorted(filled, key=lambda row: _rank(row[column]), reverse=down)
        return ordered + [row for row in rows if row[column] in BLANK]

    def row(self, number: int) -> Sequence[object]:
        return self._rows[number]

    def text(self, rows: Sequence[int]) -> str:
        """These rows with the headers above them, cells parted by tabs."""
        places = range(len(self._headers))
        lines = [[one_line(header) for header in self._headers]]
        lines += [[str(self.data(self.index(row, column))) for column in places] for row in rows]
        return "\n".join("\t".join(line) for line in lines) + "\n"

    def text_of(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
        self.replace(headers, rows)
        return self.text(range(self.rowCount()))

    def rowCount(self, parent: _Index = QtCore.QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = QtCore.QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._headers)

    def data(self, index: _Index, role: int = QtCore.Qt.ItemDataRole.DisplayRole) -> object:
        """Text and alignment of one cell; None is shown as blank, never as 0."""
        # Qt asks for much else, of every cell that decides the width of a column.
        if role not in (DISPLAY, ALIGNMENT) or not index.isValid():
            return None
        value = self._rows[index.row()][index.column()]
        if role == ALIGNMENT:
            return self._side(value)
        if value is None:
            return ""
        return f"{value:.6g}" if isinstance(value, float) else one_line(str(value), self.longest)

    def headerData(
        self, section: int, orientation: QtCore.Qt.Orientation, role: int = QtCore.Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != QtCore.Qt.Orientation.Horizontal or section >= len(self._headers):
            return None
        # Above its numbers or its texts.
        if role == ALIGNMENT:
            cells = (row[section] for row in self._rows[:MEASURED_ROWS])
            return self._side(next((cell for cell in cells if cell not in (None, "")), ""))
        return one_line(self._headers[section]) if role == DISPLAY else None

    def _side(self, value: object) -> QtCore.Qt.AlignmentFlag:
        """Numbers, with or without a unit or an interval (135 634, 41 %, 28 % (25–33 %)), stand at the right."""
        number = isinstance(value, (int, float)) or (isinstance(value, str) and NUMBER.fullmatch(value) is not None)
        return AT_RIGHT if number and not self.texts else AT_LEFT


NUMBER = re.compile(r"<?\d[\d.\u202f]*(e[+-]?\d+)?( %)?( \(.*\))?")
BLANK = (None, "", "–")  # Cells without a value
LEADING = re.compile(r"[-\N{MINUS SIGN}]?\d[\d\u2009\u202f]*(\.\d+)?(e[+-]?\d+)?")


def _rank(value: object) -> tuple[int, float, str]:
    """What a cell is sorted by: its number, or the number that its text begins with; texts without one come after."""
    if isinstance(value, (int, float)):
        return 0, float(value), ""
    text = str(value)
    if number := LEADING.match(text):
        plain = number[0].replace("\N{MINUS SIGN}", "-")
        return 0, float("".join(c for c in plain if not c.isspace())), text
    return 1, 0.0, text.casefold()


def _plain_rows(table: QtWidgets.QTableView) -> None:
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(ROW)
    table.setShowGrid(False)
    table.setAlternatingRowColors(True)
    table.setSelectionBehavior(QtWidgets.QTableView.SelectionBehavior.SelectRows)
    table.setEditTriggers(QtWidgets.QTableView.EditTrigger.NoEditTriggers)
    table.setTextElideMode(QtCore.Qt.TextElideMode.ElideNone)
    table.setWordWrap(False)
    table.setFrameShape(QtWidgets.QFrame.Shape.NoFrame)
    header = table.horizontalHeader()
    header.setSortIndicator(-1, QtCore.Qt.SortOrder.AscendingOrder)
    header.setSortIndicatorClearable(True)
    table.setSortingEnabled(True)


class _Breaking(QtWidgets.QStyledItemDelegate):
    """Breaks words that are wider than their column; what is copied has no breaks."""

    def displayText(self, value: object, locale: QtCore.QLocale | QtCore.QLocale.Language) -> str:
        return breakable(str(value))

    def sizeHint(self, option: QtWidgets.QStyleOptionViewItem, index: _Index) -> QtCore.QSize:
        inside = QtWidgets.QStyleOptionViewItem(option)
        inside.rect = option.rect.adjusted(AIR, 0, -AIR, 0)
        return super().sizeHint(inside, index).grownBy(QtCore.QMargins(0, AIR // 2, 0, AIR // 2))


class TableTwin(QtWidgets.QTableView):
    """A read-only table of a name whose texts are never cut: wider than its place, it scrolls sideways."""

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.cells = TableModel(self)
        self._wraps: tuple[int, ...] = ()
        self.setModel(self.cells)
        describe(self, name)
        _plain_rows(self)
        self.setHorizontalScrollMode(QtWidgets.QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QtWidgets.QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.horizontalHeader().setResizeContentsPrecision(MEASURED_ROWS)
        self.first = self._first_column()

    def _first_column(self) -> QtWidgets.QTableView:
        """A second view of the same rows, of their first column alone, that lies over the first."""
        first = QtWidgets.QTableView(self)
        first.setObjectName("first-column")
        first.setModel(self.cells)
        first.setSelectionModel(self.selectionModel())
        _plain_rows(first)
        first.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        first.setVerticalScrollMode(QtWidgets.QAbstractItemView.ScrollMode.ScrollPerPixel)
        first.setHorizontalScrollBarPolicy(QtCore.Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        first.setVerticalScrollBarPolicy(QtCore.Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        first.setContextMenuPolicy(QtCore.Qt.ContextMenuPolicy.NoContextMenu)
        self.verticalScrollBar().valueChanged.connect(lambda value: first.verticalScrollBar().setValue(value))
        self.horizontalScrollBar().valueChanged.connect(self._place_first)
        for one, other in ((self, first), (first, self)):
            one.horizontalHeader().sortIndicatorChanged.connect(
                lambda *by, other=other: other.horizontalHeader().setSortIndicator(*by)
            )
        self.cells.modelReset.connect(self._place_first)
        first.hide()
        return first

    def _place_first(self) -> None:
        first, header, edge = self.first, self.horizontalHeader().height(), self.frameWidth()
        away = self.horizontalScrollBar().value() > 0 and self.cells.columnCount() > 1
        if away:
            for column in range(self.cells.columnCount()):
                first.setColumnHidden(column, column > 0)
            first.setColumnWidth(0, self.columnWidth(0))
            for row in range(self.cells.rowCount() if self._wraps else 0):
                first.setRowHeight(row, self.rowHeight(row))
            first.horizontalHeader().setFixedHeight(header)
            first.setGeometry(edge, edge, self.columnWidth(0), self.viewport().height() + header)
            first.verticalScrollBar().setValue(self.verticalScrollBar().value())
            first.raise_()
        first.setVisible(away)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy all rows that are selected, not the one cell that the keyboard is at."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_selected()
        else:
            super().keyPressEvent(event)

    def copy_selected(self) -> None:
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        self._copy(rows or range(self.cells.rowCount()))

    def _copy(self, rows: Sequence[int]) -> None:
        QGuiApplication.clipboard().setText(self.cells.text(rows))

    def menu(self) -> QtWidgets.QMenu:
        made, header = new_menu("", self), self.horizontalHeader()
        copy = self.copy_selected if self.selectionModel().hasSelection() else None
        add_entry(made, self.tr("Copy rows selected"), copy)
        add_entry(made, self.tr("Copy table"), lambda: self._copy(range(self.cells.rowCount())))
        made.addSeparator()
        add_entry(made, self.tr("Select all"), self.selectAll)
        unsort = partial(header.setSortIndicator, -1, QtCore.Qt.SortOrder.AscendingOrder)
        add_entry(made, self.tr("As recorded"), unsort if header.sortIndicatorSection() >= 0 else None)
        return made

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = self.menu()
        menu.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(event.globalPos())

    def wrap_columns(self, *columns: int) -> None:
        """Let these columns (−1: the last) share the room that is left, their texts on as many lines as they need."""
        self._wraps = columns
        self.setWordWrap(True)
        self.setItemDelegate(_Breaking(self))
        self.verticalHeader().setSectionResizeMode(QtWidgets.QHeaderView.ResizeMode.ResizeToContents)

    def show_rows(self, table: Table) -> None:
        columns = self.cells.columnCount()
        self.cells.replace(*table)
        if columns != self.cells.columnCount():
            self.fit_columns()

    def fit_columns(self) -> None:
        """Give each column the width of its widest text; room that is left is shared out."""
        header = self.horizontalHeader()
        columns = range(header.count())
        wrapping = [column % len(columns) for column in self._wraps if columns]
        widths = {
            column: max(self.sizeHintForColumn(column), header.sectionSizeHint(column)) + AIR
            for column in columns
            if column not in wrapping
        }
        room = self.viewport().width() - sum(widths.values())
        for place, column in enumerate(wrapping):
            # Edges at whole pixels, so that all the room is taken.
            width = room * (place + 1) // len(wrapping) - room * place // len(wrapping)
            widths[column] = max(width, LEAST_WRAPPED)
        spare = 0 if wrapping else max(0, room) // max(len(columns), 1)
        for column, width in widths.items():
            header.resizeSection(column, width + spare)
        if self._wraps:
            self.resizeRowsToContents()
        else:
            self._place_first()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit_columns()


tr = partial(QtCore.QCoreApplication.translate, "ChartMenu")


def chart_menu(
    chart: QtWidgets.QWidget, table: Callable[[], Table] | None = None, toggle: QtWidgets.QAbstractButton | None = None
) -> QtWidgets.QMenu:
    """Make the menu of a chart, which is gone when it is closed; `toggle` shows the table in place of the chart."""
    menu = new_menu("", chart)
    menu.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
    add_entry(menu, tr("Copy picture"), lambda: QGuiApplication.clipboard().setPixmap(chart.grab()))
    if table is not None:
        rows = TableModel(menu)
        add_entry(menu, tr("Copy table"), lambda: QGuiApplication.clipboard().setText(rows.text_of(*table())))
    if toggle is not None and toggle.isEnabled():
        add_entry(menu, tr("Show the chart") if toggle.isChecked() else tr("Show as table"), toggle.click)
    return menu
