"""Small widgets that Qt lacks: a switch, an elided label, readable number boxes."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QValidator,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QSizePolicy,
    QSpinBox,
    QStyle,
    QStyleOptionButton,
    QWidget,
)

from app.style.keys import ENTER, REACHED, pressed
from app.style.plain_text import LONGEST_LINE, Label, describe, fitting, literal, set_tip
from app.style.theme import font, theme
from profiler.plain import one_line

THIN_SPACE = "\u2009"

BESIDE_OUTLINE = 4
"""Pixels between a number and the outline of its box, besides those of the style."""


class Switch(QAbstractButton):
    """A switch: its state is shown by colour, by the position of the knob and by a bar or ring on the track."""

    def __init__(self, parent: QWidget | None = None, *, small: bool = False) -> None:
        super().__init__(parent)
        self._extent = QSize(28, 16) if small else QSize(36, 20)
        self.setCheckable(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(REACHED)

    def sizeHint(self) -> QSize:
        """Fixed size: the track and room for the focus ring."""
        return self._extent + QSize(4, 4)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter switches it, Space does not."""
        if not pressed(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw track, knob and the symbol on the track."""
        tokens = theme()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
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
                painter.setPen(QPen(tokens.color("muted"), 1))
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
                painter.setPen(QPen(tokens.color("accent"), 1.2))
                painter.drawRoundedRect(area.adjusted(-1.4, -1.4, 1.4, 1.4), radius + 1, radius + 1)


class Elided(Label):
    """A label that shortens its text to the available width; the tool tip has the whole text."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self._full = ""
        self._shorter: tuple[str, ...] = ()
        self.setMinimumWidth(20)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.set_full(text)

    @property
    def full(self) -> str:
        """The whole text."""
        return self._full

    @property
    def cut(self) -> bool:
        """Whether a text is cut within: there is room neither for the whole nor for what may stand for it."""
        return self.text() not in (self._full, *self._shorter)

    def set_full(self, text: str, *shorter: str) -> None:
        """Show ``text``; where it does not fit, the first of ``shorter`` that does, or as much of the last as does."""
        text = one_line(text, LONGEST_LINE)
        if (text, shorter) == (self._full, self._shorter):
            return
        if text != self._full:
            self._full = text
            describe(self, text)
            self.updateGeometry()
        self._shorter = shorter
        self._shorten()

    def sizeHint(self) -> QSize:
        """Room for the whole text."""
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self._full) + 4, metrics.height() + 1)

    def minimumSizeHint(self) -> QSize:
        """A few letters."""
        return QSize(20, self.fontMetrics().height() + 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten again."""
        super().resizeEvent(event)
        self._shorten()

    def _shorten(self) -> None:
        room = max(self.width() - max(self.indent(), 0), 20)
        metrics = QFontMetricsF(self.font())
        self.setText(fitting(metrics, room, self._full, *self._shorter))
        set_tip(self, self._full if self.text() != self._full else "")


class EffectLabel(Label):
    """What a change did, in a few words; the style sheet knows its kinds (`app.model.effects`)."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self.setObjectName("effect")
        self.setFont(font(0.9, strong=True))

    def show_kind(self, kind: str, text: str) -> None:
        """Show ``text`` as it befits the kind."""
        kind = kind.replace(" ", "-")
        if self.property("kind") != kind:
            self.setProperty("kind", kind)
            self.style().unpolish(self)
            self.style().polish(self)
        self.setText(text)


class WheelGuard(QObject):
    """Prevents the wheel from changing a field that the user only scrolls past."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Pass the wheel to the scroll area unless the field has the focus."""
        passing = isinstance(watched, QWidget) and not watched.hasFocus()
        if passing and event.type() == QEvent.Type.Wheel:
            event.ignore()
            return True
        return super().eventFilter(watched, event)


class NumberKeys(QObject):
    """Leaves Space to the window, where it pauses; letters are the field's, whether it can use them or not.

    Escape is first the field's, which shows its value again, and then whoever's is around it.
    """

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Do not let the field claim such a key, nor take it when it was no command."""
        kinds = (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
        if event.type() in kinds and isinstance(event, QKeyEvent):
            if event.text() == " ":
                event.ignore()
                return True
            if event.key() == Qt.Key.Key_Escape and isinstance(watched, WholeBox | RealBox):
                if event.type() == QEvent.Type.KeyPress:
                    watched.show_again()
                event.setAccepted(event.type() == QEvent.Type.ShortcutOverride)
                return True
        return super().eventFilter(watched, event)


def _number(box: QAbstractSpinBox) -> None:
    box.setKeyboardTracking(False)
    box.setAlignment(Qt.AlignmentFlag.AlignRight)
    # A box without buttons has the padding of the style sheet on its left alone.
    box.lineEdit().setTextMargins(0, 0, BESIDE_OUTLINE, 0)
    box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    box.installEventFilter(WheelGuard(box))
    box.installEventFilter(NumberKeys(box))


class Words:
    """Values of a number box that are said in words, and its unit, which these have not."""

    def __init__(self) -> None:
        self._of: Mapping[float, str] = {}
        self._values: Mapping[str, float] = {}
        self._unit = ""

    def take(self, words: Mapping[float, str], unit: str) -> None:
        """Use these words and this unit."""
        self._of = words
        self._values = {word: value for value, word in words.items()}
        self._unit = unit

    def word(self, value: float) -> str | None:
        """The word for a value, or None."""
        return self._of.get(value)

    def value(self, text: str) -> float | None:
        """The value that a text names, or None."""
        return self._values.get(text)

    def suffix(self, value: float) -> str:
        """The unit after a value: none after a word, in the singular after 1."""
        if value in self._of:
            return ""
        return self._unit.removesuffix("s") if value == 1 else self._unit


class WholeBox(QSpinBox):
    """Whole numbers with thin spaces between thousands; a change is emitted only when entered.

    ``refused``: a number out of range was entered, and the old one stays.
    """

    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = Words()
        self.setStepType(QSpinBox.StepType.AdaptiveDecimalStepType)
        _number(self)

    def set_unit(self, suffix: str, words: Mapping[float, str] | None = None) -> None:
        """Show a unit after the number, in the singular after 1, and some numbers as words."""
        self._words.take(words or {}, suffix)
        self.valueChanged.connect(self._inflect)
        self._inflect(self.value())

    def _inflect(self, value: int) -> None:
        self.setSuffix(self._words.suffix(value))

    def setValue(self, value: int) -> None:
        """Set the number, and its unit with it."""
        super().setValue(value)
        self._inflect(value)

    def show_again(self) -> None:
        """Drop what was typed and not entered."""
        self.setValue(self.value())

    def textFromValue(self, value: int) -> str:
        """Return 7000 as 7 000."""
        word = self._words.word(value)
        return word if word is not None else f"{value:,}".replace(",", THIN_SPACE)

    def valueFromText(self, text: str) -> int:
        """Read a word, or a number with or without spaces."""
        if (said := self._words.value(text)) is not None:
            return int(said)
        digits = "".join(c for c in text.removesuffix(self.suffix()) if c.isdigit() or c == "-")
        try:
            return int(digits)
        except ValueError:
            return self.value()

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        """Allow words, and spaces between digits."""
        if self._words.value(text) is not None:
            return QValidator.State.Acceptable, text, position
        plain = "".join(c for c in text if not c.isspace())
        suffix = "".join(c for c in self.suffix() if not c.isspace())
        plain = plain.removesuffix(suffix)
        state, _, _ = super().validate(plain, position)
        if state == QValidator.State.Invalid and _number_in(plain) is not None:
            state = QValidator.State.Intermediate  # out of range: `fixup` says so
        return state, text, position

    def fixup(self, text: str) -> str:
        """Refuse what was entered, and show the old number again."""
        return _refuse(self, text, self.textFromValue(self.value()))


class RealBox(QDoubleSpinBox):
    """Real numbers with a decimal point and no trailing zeros; a change is emitted only when entered.

    ``refused``: a number out of range was entered, and the old one stays.
    """

    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = Words()
        self.steps: tuple[float, ...] = ()
        self.setDecimals(3)
        self.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        _number(self)

    def set_unit(self, suffix: str, words: Mapping[float, str] | None = None) -> None:
        """Show a unit after the number, and some numbers as words."""
        self._words.take(words or {}, suffix)
        self.valueChanged.connect(self._inflect)
        self._inflect(self.value())

    def _inflect(self, value: float) -> None:
        self.setSuffix(self._words.suffix(value))

    def setValue(self, value: float) -> None:
        """Set the number, and its unit with it."""
        super().setValue(value)
        self._inflect(value)

    def show_again(self) -> None:
        """Drop what was typed and not entered."""
        self.setValue(self.value())

    def stepBy(self, steps: int) -> None:
        """Go to the next larger or smaller of `steps`, where there are any."""
        if not self.steps:
            super().stepBy(steps)
            return
        beyond = [s for s in self.steps if (s > self.value() if steps > 0 else s < self.value())]
        if beyond:
            self.setValue(min(beyond) if steps > 0 else max(beyond))

    def textFromValue(self, value: float) -> str:
        """Return the shortest text for the number, or its word."""
        word = self._words.word(value)
        return word if word is not None else f"{value:.6g}"

    def valueFromText(self, text: str) -> float:
        """Read a word or a number."""
        said = self._words.value(text)
        return super().valueFromText(text) if said is None else said

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        """Allow words."""
        if self._words.value(text) is not None:
            return QValidator.State.Acceptable, text, position
        state, _, _ = super().validate(text, position)
        plain = text.strip().removesuffix(self.suffix().strip())
        if state == QValidator.State.Invalid and _number_in(plain) is not None:
            state = QValidator.State.Intermediate  # out of range: `fixup` says so
        return state, text, position

    def fixup(self, text: str) -> str:
        """Refuse what was entered, and show the old number again."""
        return _refuse(self, text, self.textFromValue(self.value()))


def _number_in(text: str) -> float | None:
    """The number that a text is, or None."""
    plain = "".join(c for c in text if not c.isspace())
    if not plain.isascii() or not set(plain) <= set("0123456789.-"):
        return None
    try:
        return float(plain)
    except ValueError:
        return None


def _refuse(box: WholeBox | RealBox, text: str, stays: str) -> str:
    """Say that a text names no number in range; returns the text of the number that `stays`."""
    plain = text.strip().removesuffix(box.suffix().strip()).strip()
    if _number_in(plain) is not None:
        box.refused.emit(plain)
    return box.prefix() + stays + box.suffix()


def draw_arrow(widget: QWidget) -> None:
    """Draw the small arrow of a drop-down list at the right of a widget that is being painted."""
    with QPainter(widget) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme().color("muted"), 1.4))
        x, y = widget.width() - 12.0, widget.height() / 2.0
        painter.drawPolyline(
            [QPointF(x - 3.2, y - 1.6), QPointF(x, y + 1.8), QPointF(x + 3.2, y - 1.6)]
        )


class CheckBox(QCheckBox):
    """A box with a tick; without one, its outline is as plain as the text beside it."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(literal(text), parent)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw box and text, and the tick over them: a style sheet could only load it from a file."""
        super().paintEvent(event)
        if not self.isChecked():
            return
        option = QStyleOptionButton()
        self.initStyleOption(option)
        part = QStyle.SubElement.SE_CheckBoxIndicator
        box = QRectF(self.style().subElementRect(part, option, self))
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme().color("on_accent"), 1.8))
            x, y = box.center().x(), box.center().y()
            painter.drawPolyline(
                [QPointF(x - 3.4, y + 0.2), QPointF(x - 0.9, y + 2.8), QPointF(x + 3.6, y - 2.8)]
            )


class ChoiceBox(QComboBox):
    """A drop-down list that does not change when scrolled past."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(REACHED)
        self.installEventFilter(WheelGuard(self))
        self.setMinimumContentsLength(4)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)

    def event(self, event: QEvent) -> bool:
        """A letter looks for an entry of the list that begins with it, and is no command meanwhile."""
        typed = event.text() if isinstance(event, QKeyEvent) else ""
        if event.type() == QEvent.Type.ShortcutOverride and typed.isalpha():
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter opens the list; Space is the window's."""
        if event.key() in ENTER:
            self.showPopup()
        elif event.key() == Qt.Key.Key_Space:
            event.ignore()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the box and, if there is a choice, a small arrow."""
        super().paintEvent(event)
        if self.count() < 2:
            return
        draw_arrow(self)
