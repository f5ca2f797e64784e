"""Small widgets that Qt lacks: a switch, an elided label, a readable number box."""

from collections.abc import Iterable, Mapping

from PySide6 import QtGui, QtWidgets
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal

from app.style.plain_text import ENTER, REACHED, Button, Label, describe, literal, pressed
from app.style.stylesheet import restyle
from app.style.theme import font, theme

THIN_SPACE = "\u2009"

BESIDE_OUTLINE = 4  # Pixels between a number and the outline of its box, besides those of the style


class Switch(QtWidgets.QAbstractButton):
    """A switch: its state is shown by colour, by the position of the knob and by a bar or ring on the track."""

    def __init__(self, *, small: bool = False) -> None:
        super().__init__(checkable=True)
        self._extent = QSize(28, 16) if small else QSize(36, 20)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QtWidgets.QSizePolicy.Policy.Fixed, QtWidgets.QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(REACHED)

    def sizeHint(self) -> QSize:
        return self._extent + QSize(4, 4)

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        if not pressed(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, _event: QtGui.QPaintEvent) -> None:
        """Draw track, knob and the symbol on the track."""
        tokens = theme()
        with QtGui.QPainter(self) as painter:
            painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
            area = QRectF(QPointF(2, 2), self._extent.toSizeF())
            area.moveCenter(QRectF(self.rect()).center())
            on, radius = self.isChecked(), area.height() / 2
            track = tokens.color("accent" if on else "border")
            if not self.isEnabled():
                track = tokens.color("muted" if on else "hover")
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(track)
            painter.drawRoundedRect(area, radius, radius)
            if not on:
                painter.setPen(QtGui.QPen(tokens.color("muted"), 1))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
            knob = area.right() - radius if on else area.left() + radius
            ink = tokens.color("on_accent" if on else "text")
            if not self.isEnabled():
                ink = tokens.color("card" if on else "muted")
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ink)
            painter.drawEllipse(QPointF(knob, area.center().y()), radius - 3.5, radius - 3.5)
            if on:
                sign = QRectF(area.left() + radius - 1, area.center().y() - 3, 1.6, 6)
                painter.drawRoundedRect(sign, 0.8, 0.8)
            if self.hasFocus():
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QtGui.QPen(tokens.color("accent"), 1.2))
                painter.drawRoundedRect(area.adjusted(-1.4, -1.4, 1.4, 1.4), radius + 1, radius + 1)


class EffectLabel(Label):
    """What a change did, in a few words; the style sheet knows its kinds (`app.model.effects`)."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("effect")
        self.setFont(font(0.9, strong=True))

    def show_kind(self, kind: str, text: str) -> None:
        """Show ``text`` as it befits the kind."""
        kind = kind.replace(" ", "-")
        if self.property("kind") != kind:
            self.setProperty("kind", kind)
            restyle(self)
        self.setText(text)


class NumberBox(QtWidgets.QDoubleSpinBox):
    """A number with its unit, emitted when entered; some values are words. `whole`: thin spaces between thousands."""

    refused = Signal(str)  # A number out of range was entered, and the old one stays

    def __init__(self, *, whole: bool = False) -> None:
        super().__init__()
        self._whole = whole
        self._unit = ""
        self._words: Mapping[float, str] = {}
        self.steps: tuple[float, ...] = ()  # Values that the arrow keys go to; none: tenths of the value
        self.setDecimals(0 if whole else 3)
        self.setStepType(QtWidgets.QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        self.setKeyboardTracking(False)
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        # A box without buttons has the padding of the style sheet on its left alone.
        self.lineEdit().setTextMargins(0, 0, BESIDE_OUTLINE, 0)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.valueChanged.connect(self._inflect)

    def set_unit(self, suffix: str, words: Mapping[float, str] | None = None) -> None:
        """Show a unit after the number, in the singular after 1, and some numbers as words, which have none."""
        self._unit, self._words = suffix, words or {}
        self._inflect(self.value())

    def _inflect(self, value: float) -> None:
        unit = self._unit.removesuffix("s") if value == 1 else self._unit
        self.setSuffix("" if value in self._words else unit)

    def setValue(self, value: float) -> None:
        super().setValue(value)
        self._inflect(self.value())

    def stepBy(self, steps: int) -> None:
        """Go to the next larger or smaller of `steps`, where there are any."""
        if not self.steps:
            super().stepBy(steps)
            return
        beyond = [s for s in self.steps if (s > self.value() if steps > 0 else s < self.value())]
        if beyond:
            self.setValue(min(beyond) if steps > 0 else max(beyond))

    def textFromValue(self, value: float) -> str:
        """Return the word for a number, or the shortest text: 7000 as 7 000."""
        if (word := self._words.get(value)) is not None:
            return word
        return f"{value:,.0f}".replace(",", THIN_SPACE) if self._whole else f"{value:.6g}"

    def _read(self, text: str) -> float | None:
        """The number that a text says as a word or in digits, with or without spaces and unit; None if it says none."""
        named = next((value for value, word in self._words.items() if word == text), None)
        return named if named is not None else _number_in(self._bare(text))

    def _bare(self, text: str) -> str:
        plain, unit = ("".join(part.split()) for part in (text, self.suffix()))
        return plain.removesuffix(unit)

    def valueFromText(self, text: str) -> float:
        found = self._read(text)
        return self.value() if found is None else found

    def validate(self, text: str, position: int) -> tuple[QtGui.QValidator.State, str, int]:
        """Allow words, and spaces between digits."""
        if text in self._words.values():
            return QtGui.QValidator.State.Acceptable, text, position
        state, _, _ = super().validate(self._bare(text), position)
        if state == QtGui.QValidator.State.Invalid and self._read(text) is not None:
            state = QtGui.QValidator.State.Intermediate  # out of range: `fixup` says so
        return state, text, position

    def fixup(self, text: str) -> str:
        if self._read(text) is not None:
            self.refused.emit(self._bare(text))
        return self.textFromValue(self.value()) + self.suffix()

    def event(self, event: QEvent) -> bool:
        """Leave Space to the window; Escape and undo show the value again while one is typed, else are the window's."""
        kinds = (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
        if isinstance(event, QtGui.QKeyEvent) and event.type() in kinds:
            if event.text() == " ":
                event.ignore()
                return True
            if event.key() == Qt.Key.Key_Escape:
                if event.type() == QEvent.Type.KeyPress:
                    self.setValue(self.value())
                event.setAccepted(event.type() == QEvent.Type.ShortcutOverride)
                return True
            undo = event.matches(QtGui.QKeySequence.StandardKey.Undo)
            if undo or event.matches(QtGui.QKeySequence.StandardKey.Redo):
                typed = self.text() != self.textFromValue(self.value()) + self.suffix()
                if undo and typed and event.type() == QEvent.Type.KeyPress:
                    self.setValue(self.value())
                event.setAccepted(typed)
                return True
        return super().event(event)

    def wheelEvent(self, event: QtGui.QWheelEvent) -> None:
        """Change nothing that is only scrolled past."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


def _number_in(text: str) -> float | None:
    """The number that a text without spaces is, or None."""
    if not text.isascii() or not set(text) <= set("0123456789.-"):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def draw_arrow(widget: QtWidgets.QWidget) -> None:
    """Draw the small arrow of a drop-down list at the right of a widget that is being painted."""
    with QtGui.QPainter(widget) as painter:
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        painter.setPen(QtGui.QPen(theme().color("muted"), 1.4))
        x, y = widget.width() - 12.0, widget.height() / 2.0
        painter.drawPolyline([QPointF(x - 3.2, y - 1.6), QPointF(x, y + 1.8), QPointF(x + 3.2, y - 1.6)])


class DropButton(Button):
    """A button with the arrow of a list, whose text loses its middle where it is wider than the button."""

    def __init__(self, room: int) -> None:
        """`room`: pixels for border, padding and arrow."""
        super().__init__()
        self.setProperty("drop", True)
        self._room, self._parts, self.full = room, ("", "", ""), ""

    def show_text(self, text: str, before: str = "", after: str = "") -> None:
        """Show a text between two others, which are always whole."""
        self._parts, self.full = (before, text, after), f"{before}{text}{after}"
        self._shorten()

    def _shorten(self) -> None:
        before, text, after = self._parts
        metrics = QtGui.QFontMetricsF(self.font())
        room = max(self.width() - self._room - metrics.horizontalAdvance(before + after), 20)
        self.setText(before + metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, room) + after)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        self._shorten()

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        super().paintEvent(event)
        draw_arrow(self)


class CheckBox(QtWidgets.QCheckBox):
    """A check box whose outline has the colour of its text."""

    def __init__(self, text: str) -> None:
        super().__init__(literal(text))

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        """Draw box and text, and the tick over them: a style sheet could only load it from a file."""
        super().paintEvent(event)
        if not self.isChecked():
            return
        option = QtWidgets.QStyleOptionButton()
        self.initStyleOption(option)
        part = QtWidgets.QStyle.SubElement.SE_CheckBoxIndicator
        box = QRectF(self.style().subElementRect(part, option, self))
        with QtGui.QPainter(self) as painter:
            painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
            painter.setPen(QtGui.QPen(theme().color("on_accent"), 1.8))
            x, y = box.center().x(), box.center().y()
            painter.drawPolyline([QPointF(x - 3.4, y + 0.2), QPointF(x - 0.9, y + 2.8), QPointF(x + 3.6, y - 2.8)])


class ChoiceBox(QtWidgets.QComboBox):
    """A drop-down list that does not change when scrolled past: texts, each with the value that it stands for."""

    def __init__(self, name: str, entries: Iterable[tuple[str, object]]) -> None:
        super().__init__()
        describe(self, name)
        for text, value in entries:
            self.addItem(text, value)
        self.setFocusPolicy(REACHED)
        self.setMinimumContentsLength(4)
        self.setSizeAdjustPolicy(QtWidgets.QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)

    def event(self, event: QEvent) -> bool:
        """A letter looks for an entry of the list that begins with it, and is no command meanwhile."""
        typed = event.text() if isinstance(event, QtGui.QKeyEvent) else ""
        if event.type() == QEvent.Type.ShortcutOverride and typed.isalpha():
            event.accept()
            return True
        return super().event(event)

    def wheelEvent(self, event: QtGui.QWheelEvent) -> None:
        """Change nothing that is only scrolled past."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        """Enter opens the list; Space is the window's."""
        if event.key() in ENTER:
            self.showPopup()
        elif event.key() == Qt.Key.Key_Space:
            event.ignore()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        """Draw the box and, if there is a choice, a small arrow."""
        super().paintEvent(event)
        if self.count() < 2:
            return
        draw_arrow(self)
