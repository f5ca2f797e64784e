"""Plain text: the only place where text becomes part of a widget, a menu, a tool tip or a painting.

Qt guesses: a label or a tool tip whose text looks like HTML is taken for HTML, and an image named in it is opened,
be it a device, a pipe or a file on another machine. Names come from strangers (a session's preset, a file dropped
on the window), so everything that could guess is created here with guessing off. Non-printing characters (controls,
marks that turn the direction of the rest) are written out, lines and their number are bounded.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from PySide6 import QtWidgets
from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QAction, QFontMetricsF, QKeyEvent, QPainter, QResizeEvent, QStandardItem
from PySide6.QtGui import Qt as Guessing

from profiler.plain import one_line

AT_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
AT_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter  # In the middle of the height
ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)

REACHED = Qt.FocusPolicy.TabFocus  # How a button gets the focus


def pressed(button: QtWidgets.QAbstractButton, event: QKeyEvent) -> bool:
    """Press `button` on Enter and leave Space to the window; whether the key was one of these."""
    enter = event.key() in ENTER
    if not enter and event.key() != Qt.Key.Key_Space:
        return False
    if enter and not event.isAutoRepeat():
        button.click()
    event.setAccepted(enter)
    return True


class ToolButton(QtWidgets.QToolButton):
    """A small button in a heading or a field."""

    def __init__(self, parent: QtWidgets.QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(REACHED)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed(self, event):
            super().keyPressEvent(event)


HasTip = QtWidgets.QWidget | QAction | QtWidgets.QListWidgetItem | QStandardItem

LONGEST_LINE: Final = 1000  # Maximum characters of a line: a path can have a few hundred, our sentences have fewer
MAX_LINES: Final = 40  # Maximum lines of a label or tool tip; more do not fit on a screen
_BEFORE_UNIT: Final = re.compile(  # The space between a number and its unit, and between its thousands
    r"(?<=\d) (?=\d{3}(?!\d))"  # thousands
    r"|(?<=\d) (?=(?:[%×]|[nµm]?s|min|[kKMGT]?i?B|[kMGT]?(?:FLOP|op)s?|nat|[kMG]?Hz|points?)(?![^\W\d_]))"
)


_LONG_WORD: Final = re.compile(r"\S{25,}")  # File names and keys: they may be wider than a notice
_BREAK: Final = "\N{ZERO WIDTH SPACE}"  # A line may end there; `displayable` escapes it in what is shown


@lru_cache(maxsize=2048)
def displayable(text: str) -> str:
    """Return `text` ready to be shown: printable, with a bounded number of bounded lines."""
    if "\n" not in text:
        return one_line(text, LONGEST_LINE)
    lines = text.split("\n", MAX_LINES)
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = ["…"]
    return "\n".join(one_line(line, LONGEST_LINE) for line in lines)


def literal(text: str) -> str:
    """Return `text` for a button or a menu, where an ampersand would underline the next letter."""
    return displayable(text).replace("&", "&&")


@lru_cache(maxsize=64)
def unbroken(text: str) -> str:
    """Return a text of several lines in which no line ends between a number and its unit."""
    return _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)


def breakable(text: str) -> str:
    """Return a text for several lines, in whose long words a line may end after each character."""

    def parts(word: re.Match[str]) -> str:
        return "".join(
            c if n == 0 or unicodedata.category(c).startswith("M") else _BREAK + c for n, c in enumerate(word[0])
        )

    return _LONG_WORD.sub(parts, text)


class Label(QtWidgets.QLabel):
    """A label whose text is never interpreted as HTML."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)

    def setText(self, text: str) -> None:
        super().setText(displayable(text))


class Wrapped(Label):
    """A label of several lines that breaks words wider than itself; its text can be selected if it has broken none."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.setWordWrap(True)

    def text(self) -> str:
        return super().text().replace(_BREAK, "")

    def setText(self, text: str) -> None:
        broken = breakable(displayable(text))
        QtWidgets.QLabel.setText(self, broken)
        kind = Qt.TextInteractionFlag
        self.setTextInteractionFlags(kind.NoTextInteraction if _BREAK in broken else kind.TextSelectableByMouse)


class Button(QtWidgets.QPushButton):
    """A button whose text is shown with its ampersands; Tab reaches it, Enter presses it, a click does `do`."""

    def __init__(self, text: str = "", do: Callable[[], object] | None = None) -> None:
        super().__init__()
        self.setFocusPolicy(REACHED)
        self.setText(text)
        if do is not None:
            self.clicked.connect(lambda _=False: do())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed(self, event):
            super().keyPressEvent(event)

    def setText(self, text: str) -> None:
        super().setText(literal(text))


def new_action(text: str, parent: QtWidgets.QWidget) -> QAction:
    action = QAction(literal(text), parent)
    set_tip(action, text)
    return action


def add_entry(menu: QtWidgets.QMenu, text: str, do: Callable[[], object] | None = None) -> QAction:
    """Append an entry to `menu`; without a function to call it cannot be chosen."""
    action = new_action(text, menu)
    if do is None:
        action.setEnabled(False)
    else:
        action.triggered.connect(lambda _=False: do())
    menu.addAction(action)
    return action


def new_menu(title: str, parent: QtWidgets.QWidget) -> QtWidgets.QMenu:
    return QtWidgets.QMenu(literal(title), parent)


def as_tip(text: str) -> str:
    """`text` for a tool tip, which has no text format: what Qt would take for HTML is passed as HTML that shows it."""
    text = displayable(text)
    if not Guessing.mightBeRichText(text):
        return text
    return f"<qt>{_escaped(text)}</qt>"


def set_tip(target: HasTip, text: str) -> None:
    target.setToolTip(as_tip(text))


def set_titled_tip(target: HasTip, title: str, lines: Sequence[str], command: str) -> None:
    """Give `target` a tool tip with a bold title, lines below it and a last line in the style of commands."""
    middle = [_escaped(displayable(line)) for line in lines]
    parts = [f"<b>{_escaped(displayable(title))}</b>", *middle, f"<code>{_escaped(displayable(command))}</code>"]
    target.setToolTip("<br>".join(parts))


def show_tip(at: QPoint, text: str, widget: QtWidgets.QWidget) -> None:
    QtWidgets.QToolTip.showText(at, as_tip(text), widget)


def describe(widget: QtWidgets.QWidget, name: str | None = None, description: str | None = None) -> None:
    if name is not None:
        widget.setAccessibleName(displayable(name))
    if description is not None:
        widget.setAccessibleDescription(displayable(description))


def set_title(window: QtWidgets.QWidget, title: str) -> None:
    window.setWindowTitle(one_line(title))


TextQuestion = QtWidgets.QInputDialog


QUESTION_WIDTH: Final = 440


def open_dialog(dialog: QtWidgets.QDialog) -> None:
    """Show a dialog that is gone once it is closed."""
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()


def ask_text(
    parent: QtWidgets.QWidget, title: str, label: str, value: str, take: Callable[[str], object]
) -> TextQuestion:
    dialog = QtWidgets.QInputDialog(parent)
    set_title(dialog, title)
    dialog.setLabelText(literal(label))
    dialog.setTextValue(value)
    dialog.resize(QUESTION_WIDTH, dialog.sizeHint().height())
    dialog.textValueSelected.connect(take)
    open_dialog(dialog)
    return dialog


def fitting(metrics: QFontMetricsF, room: float, *texts: str) -> str:
    """The first of ``texts`` that is no wider than ``room`` pixels, or as much of the last as is."""
    whole = (text for text in texts if metrics.horizontalAdvance(text) <= room)
    return next(whole, "") or metrics.elidedText(texts[-1], Qt.TextElideMode.ElideRight, room)


def write(
    painter: QPainter, area: QRectF | QRect, flags: int | Qt.AlignmentFlag, text: str, *, broken: bool = False
) -> None:
    """Draw `text` into `area` with pen and font of `painter`; with `broken`, long words may go on in the next line."""
    painter.drawText(area, flags, breakable(displayable(text)) if broken else displayable(text))


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br>")


class Elided(Label):
    """A label that shortens its text to the available width; the tool tip has the whole text."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._full = ""
        self._shorter: tuple[str, ...] = ()
        self.setMinimumWidth(20)
        self.setSizePolicy(QtWidgets.QSizePolicy.Policy.Preferred, QtWidgets.QSizePolicy.Policy.Fixed)
        self.set_full(text)

    @property
    def full(self) -> str:
        return self._full

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
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self._full) + 4, metrics.height() + 1)

    def minimumSizeHint(self) -> QSize:
        return QSize(20, self.fontMetrics().height() + 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._shorten()

    def _shorten(self) -> None:
        room = max(self.width() - max(self.indent(), 0), 20)
        metrics = QFontMetricsF(self.font())
        self.setText(fitting(metrics, room, self._full, *self._shorter))
        set_tip(self, self._full if self.text() != self._full else "")
