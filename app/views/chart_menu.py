"""The context menu of a chart, the same for all: copy its picture or its table, and show the table in place of it.

pyqtgraph's own menus are off; a plot leaves the right button to the view, dialog or page that it stands in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QMenu, QWidget

from app.style.plain_text import add_entry, new_menu
from app.views.table_twin import Table, TableModel

tr = partial(QCoreApplication.translate, "ChartMenu")


def chart_menu(
    chart: QWidget, table: Callable[[], Table] | None = None, toggle: QAbstractButton | None = None
) -> QMenu:
    """Make the menu of a chart, which is gone when it is closed.

    Args:
        chart: what the picture is of.
        table: its table twin, where it has one.
        toggle: the button that shows the table in place of the chart, where there is one.
    """
    menu = new_menu("", chart)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    add_entry(menu, tr("Copy picture"), lambda: QGuiApplication.clipboard().setPixmap(chart.grab()))
    if table is not None:
        add_entry(menu, tr("Copy table"), lambda: QGuiApplication.clipboard().setText(_text(table())))
    if toggle is not None and toggle.isEnabled():
        add_entry(menu, tr("Show the chart") if toggle.isChecked() else tr("Show as table"), toggle.click)
    return menu


def _text(table: Table) -> str:
    model = TableModel()
    model.replace(*table)
    return model.text(range(model.rowCount()))
