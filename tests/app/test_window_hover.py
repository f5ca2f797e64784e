"""Every view is hovered and clicked over a grid of points, in every state: nothing raises, and no key is missing."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QWidget

from app.charts.legend import Readout
from app.style.theme import set_theme
from app.views import VIEWS
from app.window.main_window import MainWindow

ACROSS, DOWN = 5, 4
NOTHING, LEFT = Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton
NO_KEY = Qt.KeyboardModifier.NoModifier


def send(widget: QWidget, kind: QEvent.Type, at: QPoint, held: Qt.MouseButton = NOTHING) -> None:
    button = LEFT if kind in (QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease) else NOTHING
    spot, everywhere = QPointF(at), QPointF(widget.mapToGlobal(at))
    QApplication.sendEvent(widget, QMouseEvent(kind, spot, everywhere, button, held, NO_KEY))


def surfaces(view: QWidget) -> Iterator[QWidget]:
    """What of a view takes the mouse."""
    for child in (view, *view.findChildren(QWidget)):
        if child is not view and child.isWindow():
            continue  # a tool tip
        if child.isVisible() and child.width() > 20 and child.height() > 20:
            yield child.viewport() if isinstance(child, QAbstractScrollArea) else child


def over_and_over(window: MainWindow) -> None:
    """Hover, ask for the tip, and click, on a grid over every view and its table."""
    for view in map(window.desk.views.__getitem__, VIEWS):
        for as_table in (False, True):
            view.show_table(as_table)
            QApplication.processEvents()
            for surface in dict.fromkeys(surfaces(view)):
                boxes = window.findChildren(Readout)
                for row in range(DOWN):
                    for column in range(ACROSS):
                        x = round((surface.width() - 1) * column / (ACROSS - 1))
                        y = round((surface.height() - 1) * row / (DOWN - 1))
                        at = QPoint(x, y)
                        send(surface, QEvent.Type.MouseMove, at)
                        for box in boxes:
                            if box.isVisible():
                                box.grab()  # what is under the mouse is looked up as it is painted
                        tip = QHelpEvent(QEvent.Type.ToolTip, at, surface.mapToGlobal(at))
                        QApplication.sendEvent(surface, tip)
                        if (row + column) % 3 == 0:
                            send(surface, QEvent.Type.MouseButtonPress, at, LEFT)
                            send(surface, QEvent.Type.MouseButtonRelease, at)
                QApplication.sendEvent(surface, QEvent(QEvent.Type.Leave))
            QApplication.processEvents()
        view.show_table(False)
    assert [b.text for b in window.notices.banners if b.kind == "error"] == []


def look_around(window: MainWindow) -> None:
    """The whole range and a part of it, with a selection and without."""
    axis = window.axis
    axis.fit()
    over_and_over(window)
    end = max(axis.end, 1.0)
    axis.set_visible(0.4 * end, 0.45 * end)
    axis.select(0.41 * end, 0.44 * end)
    over_and_over(window)
    window.grab()


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_without_a_session(window, theme):
    w = window()
    set_theme(theme)
    w.show_desk()
    over_and_over(w)


@pytest.mark.slow
def test_in_a_replay_at_its_start_within_it_and_after_it_was_closed(opened):
    for frame in (1200, 610, 0):
        opened.playhead.seek(frame)
        over_and_over(opened)
    opened.playhead.seek(700)
    look_around(opened)
    opened.playhead.close()
    over_and_over(opened)


@pytest.mark.slow
def test_while_a_run_is_followed_and_held(live):
    over_and_over(live)
    live.playhead.pause()
    look_around(live)
    assert live.when.is_running()


def test_in_a_session_without_a_frame(window, recording):
    made = recording("none.asrs")
    made.close()
    w = window()
    w.open_session(made.path)
    over_and_over(w)


def test_the_box_is_of_the_word_whose_text_is_under_the_mouse(window, recording):
    """A text may reach beyond the time of its word, to where the next one is spoken already."""
    made = recording()
    made.write(1200)
    made.close()
    w = window()
    w.open_session(made.path)
    w.axis.set_visible(0.0, 10.0)
    QApplication.processEvents()
    words = w.desk.views["words"]
    placed = words.spoken.placed[0]
    plot, (_, rows) = words.plot, words.spoken.areas()
    at = QPointF(placed.left + placed.width - 1, rows.top() + 5)
    plot.mouse = at
    far = placed.token.last_s + 0.5
    lines = words.readout(words.model(), far)
    assert [line.value for line in lines if line.name == "hypothesis"] == [placed.token.text]
    plot.mouse = QPointF(at.x(), 2.0)
    lines = words.readout(words.model(), far)
    assert [line.value for line in lines if line.name == "hypothesis"] != [placed.token.text]
