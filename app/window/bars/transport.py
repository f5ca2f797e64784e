"""The session card: the scrub bar with its markers, and the controls that move the cursor."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QEvent, QPointF, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QSlider, QVBoxLayout, QWidget

from app.layout import REST, card_header, lay_out, muted, named
from app.model.playhead import SPEEDS, Playhead
from app.model.scope import MAX_MARKS
from app.style.icons import ButtonIcon
from app.style.plain_text import Button, describe, set_tip, show_tip
from app.style.theme import theme
from app.widgets import ChoiceBox
from app.window.actions.actions import ActionButton, Registry
from profiler.clock import FRAME_S
from profiler.plain import clock, counted, one_line

if TYPE_CHECKING:
    from app.model.desk_snapshot import DeskSnapshot
    from app.model.playhead import Snapshot

MARGIN = 9  # Pixels at each end of the scrub bar, so that the knob is never cut off
NEAR = 6  # Distance in pixels within which the mouse is on a marker
SECOND = round(1 / FRAME_S)


class Mark(NamedTuple):
    """A tick on the scrub bar."""

    frame: int
    text: str


AT_SIDE, GAP = 14, 6  # Pixels at the sides of the card, and between the buttons


class ScrubBar(QSlider):
    """Cursor over the session in frames; a click jumps, a drag scrubs, ticks are markers."""

    sought = Signal(int)

    def __init__(self) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.marks: tuple[Mark, ...] = ()
        self.starts: tuple[int, ...] = ()
        self.setFixedHeight(30)
        self.setRange(0, 0)
        self.setSingleStep(SECOND)
        self.setPageStep(10 * SECOND)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        describe(self, self.tr("Position in the session, in frames"))
        self.valueChanged.connect(self.sought)

    def show_position(self, frame: int, last: int) -> None:
        with QSignalBlocker(self):
            self.setMaximum(last)
            self.setValue(frame)
        self.update()

    def show_marks(self, marks: tuple[Mark, ...], starts: tuple[int, ...]) -> None:
        if (marks, starts) != (self.marks, self.starts):
            self.marks, self.starts = marks, starts
            self.update()

    def x_of(self, frame: float) -> float:
        room = self.width() - 2 * MARGIN
        return MARGIN + room * (frame / self.maximum() if self.maximum() > 0 else 0.0)

    def frame_at(self, x: float) -> int:
        room = max(1, self.width() - 2 * MARGIN)
        return round(min(max((x - MARGIN) / room, 0.0), 1.0) * self.maximum())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.setSliderDown(True)
            self.setValue(self.frame_at(event.position().x()))
            event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.setValue(self.frame_at(event.position().x()))

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        self.setSliderDown(False)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            x = event.pos().x()
            near = [m for m in self.marks if abs(self.x_of(m.frame) - x) <= NEAR]
            text = "\n".join(f"{clock(m.frame * FRAME_S, 1)}  {m.text}" for m in near)
            show_tip(event.globalPos(), text, self)
            return True
        return bool(super().event(event))

    def sizeHint(self) -> QSize:
        return QSize(200, 30)

    def paintEvent(self, _event: QPaintEvent) -> None:
        tokens = theme()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            middle = self.height() / 2
            track = QRectF(MARGIN, middle - 3, self.width() - 2 * MARGIN, 6)
            painter.setPen(QPen(tokens.color("border"), 1))
            painter.setBrush(tokens.color("field"))
            painter.drawRoundedRect(track, 3, 3)
            if self.maximum() > 0:
                here = self.x_of(self.value())
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(tokens.color("accent"))
                painter.drawRoundedRect(QRectF(MARGIN, middle - 3, here - MARGIN, 6), 3, 3)
                painter.setPen(QPen(tokens.color("muted"), 1))
                for start in self.starts:
                    x = self.x_of(start)
                    painter.drawLine(QPointF(x, middle + 5), QPointF(x, middle + 8))
                painter.setPen(QPen(tokens.color("marker"), 1.6))
                for mark in self.marks:
                    x = self.x_of(mark.frame)
                    painter.drawLine(QPointF(x, middle - 10), QPointF(x, middle + 10))
                painter.setPen(QPen(tokens.color("card"), 2))
                painter.setBrush(tokens.color("accent"))
                painter.drawEllipse(QPointF(here, middle), 7, 7)
                if self.hasFocus():
                    painter.setBrush(Qt.BrushStyle.NoBrush)
                    painter.setPen(QPen(tokens.color("text"), 1))
                    painter.drawEllipse(QPointF(here, middle), 8.4, 8.4)


class Transport(QFrame):
    """The card at the bottom of the middle column."""

    def __init__(self, playhead: Playhead, actions: Registry, parent: QWidget) -> None:
        super().__init__(parent)
        named(self, "transport", card=True)
        self._playhead = playhead

        header, self.note = card_header(self.tr("Playback"))

        self.bar = ScrubBar()
        self.bar.sought.connect(playhead.seek)

        self.live = Button(self.tr("Back to live"), self._go_live)
        self.live.setCheckable(True)
        self.live.ensurePolished()
        self.live.setMinimumWidth(self.live.sizeHint().width())  # with either word
        self.previous, self.toggle, self.next = (
            ActionButton(actions[f"view.{name}"]) for name in ("previous", "pause", "next")
        )
        for button in (self.previous, self.toggle, self.next):
            button.setFixedSize(QSize(34, 28))
            button.setIconSize(QSize(13, 13))
        ButtonIcon(self.previous, "previous")
        ButtonIcon(self.next, "next")
        self._toggle_icon = ButtonIcon(self.toggle, "pause")
        self.speed = ChoiceBox(self.tr("Replay speed"), ((f"×{s:g}", s) for s in SPEEDS))
        set_tip(self.speed, self.tr("Replay speed, relative to audio time"))
        self.speed.setCurrentIndex(SPEEDS.index(1.0))
        self.speed.setFixedWidth(66)
        self.speed.activated.connect(lambda at: playhead.set_speed(self.speed.itemData(at)))
        self.compare = ActionButton(actions["run.compare"], self.tr("A ⇄ B"))
        self.follow = ActionButton(actions["view.window"], self.tr("Auto-scroll"))
        self.sound = ActionButton(actions["view.sound"], self.tr("Sound"))
        self.mark = ActionButton(actions["run.mark"], self.tr("Mark"))
        self.export = ActionButton(actions["file.export"], self.tr("Export…"))
        self.clock = muted()
        tip = "Time in frames of 10 ms. The last 10 to 25 ms of an utterance make no frame, so its audio is longer."
        set_tip(self.clock, self.tr(tip))
        self.clock.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._row = lay_out(
            QHBoxLayout(),
            *(self.live, self.previous, self.toggle, self.next, self.speed, 4, self.clock, REST),
            *(self.sound, self.compare, self.follow, self.mark, self.export),
            spacing=GAP,
        )
        margins = (AT_SIDE, 9, AT_SIDE, 10)
        lay_out(QVBoxLayout(self), header, self.bar, self._row, spacing=4, margins=margins)

        playhead.mode_changed.connect(self.refresh)
        playhead.axis.following_changed.connect(self._show_live)
        self._told: DeskSnapshot | None = None
        playhead.changed.connect(self.show_snapshot)
        playhead.closed.connect(self._closed)
        self.refresh()

    def change_speed(self, step: int) -> None:
        at = min(max(SPEEDS.index(self._playhead.speed) + step, 0), len(SPEEDS) - 1)
        self._playhead.set_speed(SPEEDS[at])
        self.speed.setCurrentIndex(at)

    def _go_live(self) -> None:
        self._playhead.go_live()
        self.refresh()

    def refresh(self) -> None:
        playhead = self._playhead
        self._fit()
        self._show_live()
        self.bar.setEnabled(playhead.session is not None)
        moving = playhead.following or playhead.playing
        self._toggle_icon.show_shape("pause" if moving else "play")
        if playhead.session is None:
            self.note.set_full(self.tr("none open"))
            self.clock.setText("")
            self.bar.show_position(0, 0)
            self.bar.show_marks((), ())

    def _show_live(self) -> None:
        live = self._playhead.following and self._playhead.axis.following
        self.live.setText(self.tr("Live") if live else self.tr("Back to live"))
        self.live.setChecked(live)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Show the row's widgets; where not all of them fit, without those that have a key and an entry in a menu."""
        items = (self._row.itemAt(at) for at in range(self._row.count()))
        widgets = [widget for item in items if item is not None and (widget := item.widget())]
        only_live = (self.live, self.compare, self.mark)
        shown = [w for w in widgets if self._playhead.live or w not in only_live]
        spaces = self.contentsMargins().left() + self.contentsMargins().right() + 2 * AT_SIDE + GAP
        for least in (self.mark, self.sound, self.speed, self.follow, self.clock):
            if spaces + sum(_width(widget) + GAP for widget in shown) <= self.width():
                break
            shown = [widget for widget in shown if widget is not least]
        for widget in widgets:
            widget.setVisible(widget in shown)

    def _closed(self) -> None:
        self._told = None
        self.refresh()

    def show_snapshot(self, snapshot: Snapshot) -> None:
        if snapshot.moving and snapshot.desk is self._told:
            return
        self._told = snapshot.desk
        frames = int(snapshot.track.n_frames)
        self.bar.show_position(snapshot.cursor_frame, frames)
        session = snapshot.session
        marks = tuple(Mark(m.frame, one_line(m.text)) for m in session.markers[-MAX_MARKS:])
        self.bar.show_marks(marks, tuple(u.first_frame for u in session.utterances))
        where = clock(snapshot.cursor_frame * FRAME_S, 1)
        if not snapshot.following:
            where = f"{where} / {clock(frames * FRAME_S, 1)}"
        paused = snapshot.live and not snapshot.moving
        self.clock.setText(self.tr("Paused {0}").format(where) if paused else where)
        self._fit()
        note = self._note(snapshot, len(session.markers))
        # Where there is little room, the date goes first.
        self.note.set_full(note, note.partition(" · ")[2])

    def _note(self, snapshot: Snapshot, marks: int) -> str:
        from profiler.analysis.recorded import audio_seconds, counts_steps

        session = snapshot.session
        parts = []
        created = session.meta.get("created_wall")
        if isinstance(created, (int, float)):
            parts.append(datetime.fromtimestamp(created).strftime("%Y-%m-%d %H:%M"))
        lab = session.meta.get("lab")
        name = session.meta.get("preset") or (lab.get("name") if isinstance(lab, dict) else None)
        if name:
            parts.append(one_line(str(name)))
        frames = int(snapshot.track.n_frames)
        if counts_steps(session):
            parts.append(counted(frames, self.tr("step"), self.tr("steps")))
        else:
            # The clock counts frames, which leave a rest of 10 to 25 ms of each utterance.
            seconds = f"{audio_seconds(session.utterances, 0, frames):.1f}"
            count = counted(frames, self.tr("frame"), self.tr("frames"))
            parts.append(self.tr("{0} s of audio in {1}").format(seconds, count))
        parts.append(counted(marks, self.tr("marker"), self.tr("markers")))
        if session.state not in ("closed", "recording"):
            parts.append(session.state)
        return " · ".join(parts)


def _width(widget: QWidget) -> int:
    widget.ensurePolished()
    fixed = widget.minimumWidth() == widget.maximumWidth()
    return widget.minimumWidth() if fixed else widget.sizeHint().width()
