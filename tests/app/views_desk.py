"""The four views in a column over one playhead, and the mouse in them: for tests that draw."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QMouseEvent, QPainter, QWheelEvent
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.charts.time_plot import TimePlot
from app.model.desk_snapshot import DeskSnapshot, desk_snapshot
from app.model.playhead import Playhead
from app.model.scope import scope_of
from app.model.time_axis import Kind, TimeAxis
from app.style.theme import rgb
from app.views.breakdown import BreakdownView
from app.views.cost import CostView
from app.views.view import View
from app.views.words import WordsView
from app.views.work import WorkView
from profiler.analysis.track import CostTrack
from profiler.session.model import Utterance, Utterances
from profiler.session.reader import Session

V = TypeVar("V", bound=View)


def figures_of(
    session: Session,
    track: CostTrack,
    end: int | None = None,
    selected: tuple[int, int] | None = None,
    pinned: tuple[int, int] | None = None,
    kind: Kind | None = None,
) -> DeskSnapshot:
    """The figures of a scope, as the desk has them with the cursor at frame `end`."""
    end = track.n_frames if end is None else end
    return desk_snapshot(session, track, scope_of(session, end, kind, selected), pinned)


def numbers(value: Any) -> Any:
    """A model as plain nested values in which NaN equals NaN."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: numbers(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, tuple | list):
        return [numbers(v) for v in value]
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items()}
    return repr(value)


@contextmanager
def opened(path: Path) -> Iterator[tuple[Session, CostTrack]]:
    """A session, and the costs of all its frames."""
    with Session.open(path) as session:
        track = CostTrack()
        track.update(session)
        yield session, track


class SpokenSession:
    """What the words view reads of a session."""

    def __init__(self, *utterances: Utterance) -> None:
        self.utterances, self.markers, self.state = Utterances(utterances), [], "closed"


FRAMES = 2048
LEFT, MIDDLE, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton, Qt.MouseButton.RightButton
KEYS = Qt.KeyboardModifier
NONE, SHIFT, CTRL = KEYS.NoModifier, KEYS.ShiftModifier, KEYS.ControlModifier


class Desk:
    """The four views in a column over one playhead."""

    def __init__(self, path: Path) -> None:
        self.axis = TimeAxis()
        self.playhead = Playhead(self.axis)
        self.cost = CostView(self.axis)
        self.work = WorkView(self.axis)
        self.words = WordsView(self.axis)
        self.breakdown = BreakdownView(self.axis)
        self.views = (self.cost, self.work, self.words, self.breakdown)
        self.window = QWidget()
        column = QVBoxLayout(self.window)
        for view in self.views:
            column.addWidget(view)
            self.playhead.changed.connect(view.update_snapshot)
            self.playhead.closed.connect(view.clear)
        self.window.resize(900, 1600)
        self.window.show()
        self.playhead.open(path)
        settle()


@contextmanager
def view_on(
    make: Callable[[TimeAxis], V], path: Path, qtbot: QtBot, size: tuple[int, int] = (900, 300)
) -> Iterator[tuple[V, Playhead]]:
    """One view of a session, and the playhead that it follows."""
    playhead = Playhead(TimeAxis())
    view = make(playhead.axis)
    qtbot.addWidget(view)
    playhead.changed.connect(view.update_snapshot)
    playhead.closed.connect(view.clear)
    view.resize(*size)
    view.show()
    playhead.open(path)
    settle()
    yield view, playhead
    playhead.close()


def settle() -> None:
    for _ in range(3):
        QApplication.processEvents()


def look(axis: TimeAxis, first: float, last: float) -> None:
    axis.set_visible(first, last)
    settle()


def select(axis: TimeAxis, first: float, last: float) -> None:
    axis.select(first, last)
    settle()


def seek(playhead: Playhead, frame: float) -> None:
    playhead.seek(frame)
    settle()


def place(plot: TimePlot, second: float) -> QPoint:
    """Position in the viewport of a second of audio, half-way up the plot."""
    (first, last), rect = plot.axis.visible, plot.box.boundingRect()
    return plot.in_widget(QPointF((second - first) / (last - first) * rect.width(), rect.height() * 0.6))


def mouse(
    plot: TimePlot,
    kind: QEvent.Type,
    at: QPoint,
    button: Qt.MouseButton = Qt.MouseButton.NoButton,
    held: Qt.MouseButton = Qt.MouseButton.NoButton,
    keys: Qt.KeyboardModifier = NONE,
) -> None:
    viewport = plot.viewport()
    spot = QPointF(at)
    event = QMouseEvent(kind, spot, QPointF(viewport.mapToGlobal(at)), button, held, keys)
    QApplication.sendEvent(viewport, event)


def drag(
    plot: TimePlot, start: float, end: float, button: Qt.MouseButton = LEFT, keys: Qt.KeyboardModifier = NONE
) -> None:
    points = [place(plot, start + (end - start) * share) for share in (0, 0.2, 0.6, 1)]
    mouse(plot, QEvent.Type.MouseButtonPress, points[0], button, button, keys)
    for point in points[1:]:
        mouse(plot, QEvent.Type.MouseMove, point, held=button, keys=keys)
    mouse(plot, QEvent.Type.MouseButtonRelease, points[-1], button, keys=keys)
    settle()


def click(plot: TimePlot, second: float, button: Qt.MouseButton = LEFT) -> None:
    at = place(plot, second)
    mouse(plot, QEvent.Type.MouseButtonPress, at, button, button)
    mouse(plot, QEvent.Type.MouseButtonRelease, at, button)
    settle()


def wheel(plot: TimePlot, second: float, notches: float, keys: Qt.KeyboardModifier = NONE) -> None:
    at, viewport = place(plot, second), plot.viewport()
    places = QPointF(at), QPointF(viewport.mapToGlobal(at)), QPoint(), QPoint(0, round(120 * notches))
    event = QWheelEvent(*places, Qt.MouseButton.NoButton, keys, Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(viewport, event)
    settle()


def pixels(widget: QWidget) -> np.ndarray:
    """Red, green, blue of a widget, uint8 [height, width, 3]."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    raw = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)
    return raw[..., 2::-1].copy()


def pixels_of(plot: TimePlot, scale: float = 1.0) -> np.ndarray:
    image = QImage(plot.size() * scale, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    with QPainter(image) as painter:
        QWidget.render(plot, painter, QPoint())
    return np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1).copy()


def amount(picture: np.ndarray, color: str, slack: int = 2) -> int:
    """Pixels of a colour."""
    near = np.abs(picture.astype(int) - np.array(rgb(color))).max(axis=2) <= slack
    return int(np.count_nonzero(near))
