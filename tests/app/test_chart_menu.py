"""The context menu of charts: one for all views, by mouse and by key, and the same in dialogs."""

import sys

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from views_desk import RIGHT, click, settle, view_on

from app.charts.still import StillPlot
from app.charts.time_plot import TimePlot
from app.model.document import RatioRow
from app.model.processes.leaving import EXPLAINS, Leaving
from app.views import VIEWS
from app.views.cost import CostView
from app.views.ratios import Ratios
from app.views.roofline import RooflineView
from app.views.view import TableView
from app.window.tasks.page import TaskPage


def menu_of(at: QWidget, reason: QContextMenuEvent.Reason = QContextMenuEvent.Reason.Mouse) -> QMenu | None:
    """The menu that a right click in the middle of a widget opens."""
    middle = at.rect().center()
    QApplication.sendEvent(at, QContextMenuEvent(reason, middle, at.mapToGlobal(middle)))
    menu = QApplication.activePopupWidget()
    assert menu is None or isinstance(menu, QMenu)
    return menu


def choose(menu: QMenu, text: str) -> None:
    (entry,) = (entry for entry in menu.actions() if entry.text() == text)
    entry.trigger()
    menu.close()
    settle()


def texts(menu: QMenu | None) -> list[str]:
    found = [entry.text() for entry in menu.actions() if entry.text()]
    menu.close()
    return found


def test_every_chart_has_the_menu_of_its_view(window, sample):
    w = window()
    w.open_session(sample)
    exported: list[str] = []
    w.desk.exported.disconnect()
    w.desk.exported.connect(exported.append)
    for view_id in VIEWS:
        w.desk.docks.go_to(view_id)
        settle()
        view = w.desk.views[view_id]
        for plot in view.findChildren(QWidget):
            if isinstance(plot, TimePlot | StillPlot) and plot.isVisible():
                menu = menu_of(plot.viewport())
                assert menu is not None, view_id
                entries = [entry.text() for entry in menu.actions()]
                assert entries[:3] == ["Copy picture", "Copy table", "Show as table"]
                choose(menu, "Export this view…")
        if isinstance(view, TableView):
            assert "Copy table" in texts(menu_of(view.rows.viewport())), "rows have a menu of their own"
    assert {"cost", "timeline", "words", "work", "roofline", "statistics"} <= set(exported)


def test_picture_and_table_go_to_the_clipboard_and_the_table_is_shown(sample, qtbot):
    with view_on(RooflineView, sample, qtbot, (600, 400)) as (view, _):
        viewport = view.plot.viewport()
        assert texts(menu_of(viewport)) == ["Copy picture", "Copy table", "Show as table"]
        choose(menu_of(viewport), "Copy picture")
        assert QGuiApplication.clipboard().pixmap().size() == view.size()
        choose(menu_of(viewport, QContextMenuEvent.Reason.Keyboard), "Copy table")
        headers, rows = view.table()
        first, *lines = QGuiApplication.clipboard().text().splitlines()
        assert first.split("\t") == list(headers)
        assert [line.split("\t")[0] for line in lines] == [row[0] for row in rows]
        choose(menu_of(viewport), "Show as table")
        assert not view.plot.isVisible()
        choose(view.menu(), "Show the chart")
        assert view.plot.isVisible()


def test_a_chart_over_time_zooms_to_the_selection_and_back(sample, qtbot):
    with view_on(CostView, sample, qtbot) as (view, playhead):
        axis, viewport = playhead.axis, view.plot.viewport()
        whole = axis.visible
        choose(menu_of(viewport), "Zoom to the selection")
        assert axis.visible == whole, "nothing is selected"
        axis.select(5.0, 8.0)
        click(view.plot, 6.0, RIGHT)
        assert axis.selected == (5.0, 8.0), "the right button selects nothing"
        choose(menu_of(viewport), "Zoom to the selection")
        assert axis.visible == pytest.approx((5.0, 8.0))
        choose(menu_of(viewport), "Show everything")
        assert axis.visible == whole
        playhead.close()
        choose(view.menu(), "Copy table")
        assert QGuiApplication.clipboard().text().startswith("from s\tto s\t")


def test_charts_of_tasks_have_their_picture(qtbot, parent):
    dialog = TaskPage("Title", (sys.executable, "-c", "import time; time.sleep(60)"), "Begins", parent)
    plot = Ratios([RatioRow("whole run", 0.5, (0.4, 0.6), "B faster")])
    dialog.body.add_widget(plot)
    dialog.show()
    settle()
    choose(menu_of(plot.viewport()), "Copy picture")
    assert QGuiApplication.clipboard().pixmap().size() == plot.size()
    at = dialog.mapToGlobal(QPoint(2, 2))
    QApplication.sendEvent(dialog, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, QPoint(2, 2), at))
    assert QApplication.activePopupWidget() is None, "beside the charts there is none"
    dialog.close()
    qtbot.waitUntil(lambda: Leaving.find(EXPLAINS) is None)
