"""The table twin of a chart: sorted by a header, copied with headers, and its first column stays in sight."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.views.table_twin import TableModel, TableTwin

HEADERS = ["part", "ms per frame", "share", "verdict"]
ROWS = [
    ["compute", 0.025, "12 %", "compute-bound"],
    ["search", 0.12, "55 %", None],
    ["memory", 0.009, "4.2 % (3–6 %)", "bandwidth-bound"],
    ["transfer", None, "", None],
]


@pytest.fixture
def table(qtbot):
    model = TableModel()
    model.replace(HEADERS, ROWS)
    made = TableTwin(model)
    model.setParent(made)
    qtbot.addWidget(made)
    made.resize(200, 160)
    made.show()
    return made


def column(table: TableTwin, number: int) -> list[str]:
    model = table.model()
    return [str(model.index(row, number).data()) for row in range(model.rowCount())]


def header_clicked(qtbot: QtBot, table: TableTwin, number: int) -> None:
    header = table.horizontalHeader()
    table.horizontalScrollBar().setValue(header.sectionPosition(number))
    where = QPoint(header.sectionViewportPosition(number) + 5, header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=where)


def test_the_rows_selected_are_copied_with_headers(qtbot, table):
    table.setFocus()
    table.selectAll()
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    assert lines == [HEADERS, *([("" if cell is None else str(cell)) for cell in row] for row in ROWS)]
    table.clearSelection()
    table.selectRow(1)
    table.copy_selected()
    assert QGuiApplication.clipboard().text().count("\n") == 2


def test_a_click_on_a_header_sorts_by_its_numbers(qtbot, table):
    for order in ("memory compute search transfer", "search compute memory transfer"):
        header_clicked(qtbot, table, 1)
        assert column(table, 0) == order.split()
    with qtbot.waitSignal(table.model().dataChanged) as changed:
        table.model().replace(HEADERS, [["compute", 0.5, "", ""], *ROWS[1:]])
    assert [(place.row(), place.column()) for place in changed.args[:2]] == [(0, 0), (3, 3)]
    assert column(table, 0)[:2] == ["compute", "search"], "what comes live is sorted, too"
    header_clicked(qtbot, table, 1)
    assert column(table, 0) == ["compute", "search", "memory", "transfer"]
    # Shares with units and intervals are numbers.
    table.model().replace(HEADERS, ROWS)
    table.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    assert column(table, 0) == ["search", "compute", "memory", "transfer"]


def test_the_first_column_stays_in_sight(table):
    assert not table.first.isVisible()
    bar = table.horizontalScrollBar()
    bar.setValue(bar.maximum())
    assert table.first.isVisible()
    assert table.first.geometry().left() == 0
    assert [table.first.isColumnHidden(number) for number in (0, 1)] == [False, True]
    table.verticalScrollBar().setValue(table.verticalScrollBar().maximum())
    assert table.first.verticalScrollBar().value() == table.verticalScrollBar().value()
    assert table.first.rowHeight(0) == table.rowHeight(0)
    bar.setValue(0)
    assert not table.first.isVisible()


def test_sentences_share_the_room_and_are_whole(qtbot):
    model = TableModel()
    model.longest = 1000
    words = " ".join(["leisure"] * 60)  # 479 characters
    table = TableTwin(model)
    model.setParent(table)
    qtbot.addWidget(table)
    table.wrap_columns(1, -1)
    model.replace(["utterance", "A", "B"], [["one", words, "no"], ["two", "yes", words]])
    table.resize(600, 300)
    table.show()
    width = [table.columnWidth(number) for number in range(3)]
    assert abs(width[1] - width[2]) <= 1
    assert sum(width) == table.viewport().width()
    line = table.fontMetrics().lineSpacing()
    least = table.fontMetrics().horizontalAdvance(words) / width[1] * line
    assert all(table.rowHeight(row) >= least for row in (0, 1))
    assert model.text(range(2)).count(words) == 2

    table.resize(200, 300)
    assert [table.columnWidth(number) for number in (1, 2)] == [100, 100]
    table.horizontalScrollBar().setValue(table.horizontalScrollBar().maximum())
    assert [table.first.rowHeight(row) for row in (0, 1)] == [table.rowHeight(row) for row in (0, 1)]
