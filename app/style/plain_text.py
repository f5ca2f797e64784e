"""Text as it is written: the only place where text becomes part of a widget, a menu, a tip or a painting.

Qt guesses: a label or a tool tip whose text looks like HTML is taken for HTML, and an image named in it is opened,
be it a device, a pipe or a file on another machine. Names come from strangers (a session's preset, a file dropped
on the window), so everything that could guess is made here and told not to. Characters that do not show (controls,
marks that turn the direction of the rest) are written out, lines and their number are bounded.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from PySide6.QtCore import QPoint, QRect, QRectF
from PySide6.QtGui import QAction, QPainter, Qt
from PySide6.QtWidgets import QLabel, QMenu, QPushButton, QToolTip, QWidget

from profiler.plain import one_line

LONGEST_LINE: Final = 1000
"""Characters of a line: a path may have some hundred, a sentence of ours less."""

MOST_LINES: Final = 40
"""Lines of a label or tip; more fit no screen."""


class HasTip(Protocol):
    """A widget, an action or an item of a list."""

    def setToolTip(self, tip: str, /) -> None:
        """Set it, as Qt does."""


def shown(text: str) -> str:
    """Return `text` fit to be shown: printable, line by line, neither endless nor countless ones."""
    if "\n" not in text:
        return one_line(text, LONGEST_LINE)
    lines = text.split("\n", MOST_LINES)
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = ["…"]
    return "\n".join(one_line(line, LONGEST_LINE) for line in lines)


def literal(text: str) -> str:
    """Return `text` fit for a button or a menu, where an ampersand would underline the next letter."""
    return shown(text).replace("&", "&&")


class Label(QLabel):
    """A label whose text is never taken for HTML."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)

    def setText(self, text: str) -> None:
        """Show `text` as it is written."""
        super().setText(shown(text))


class Button(QPushButton):
    """A button whose text is shown with its ampersands."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(text)

    def setText(self, text: str) -> None:
        """Show `text` as it is written."""
        super().setText(literal(text))


def new_action(text: str, parent: QWidget) -> QAction:
    """Make an action; its own tip, which Qt would make of the text, is plain too."""
    action = QAction(literal(text), parent)
    set_tip(action, text)
    return action


def add_entry(menu: QMenu, text: str, do: Callable[[], object] | None = None) -> QAction:
    """Append an entry to `menu`; without anything to do it cannot be chosen."""
    action = new_action(text, menu)
    if do is None:
        action.setEnabled(False)
    else:
        action.triggered.connect(lambda _=False: do())
    menu.addAction(action)
    return action


def new_menu(title: str, parent: QWidget) -> QMenu:
    """Make a menu."""
    return QMenu(literal(title), parent)


def as_tip(text: str) -> str:
    """Return what makes Qt show `text` in a tip as it is written.

    Tips have no format of their own: what Qt would take for HTML is given to it as HTML that shows as `text`.
    """
    text = shown(text)
    if not Qt.mightBeRichText(text):
        return text
    return f"<qt>{_escaped(text)}</qt>"


def set_tip(target: HasTip, text: str) -> None:
    """Give `target` a tool tip."""
    target.setToolTip(as_tip(text))


def set_titled_tip(target: HasTip, title: str, lines: Sequence[str], command: str) -> None:
    """Give `target` a tip of a bold title, lines below it and a last one in the type of commands."""
    middle = [_escaped(shown(line)) for line in lines]
    parts = [
        f"<b>{_escaped(shown(title))}</b>",
        *middle,
        f"<code>{_escaped(shown(command))}</code>",
    ]
    target.setToolTip("<br>".join(parts))


def show_tip(at: QPoint, text: str, widget: QWidget) -> None:
    """Show a tip at a point of the screen; an empty text hides it."""
    QToolTip.showText(at, as_tip(text), widget)


def describe(widget: QWidget, name: str | None = None, description: str | None = None) -> None:
    """Set what a screen reader says of `widget`."""
    if name is not None:
        widget.setAccessibleName(shown(name))
    if description is not None:
        widget.setAccessibleDescription(shown(description))


def set_title(window: QWidget, title: str) -> None:
    """Set the title of a window."""
    window.setWindowTitle(one_line(title))


def write(
    painter: QPainter, area: QRectF | QRect, flags: int | Qt.AlignmentFlag, text: str
) -> None:
    """Write `text` into `area` with pen and font of `painter`."""
    painter.drawText(area, flags, shown(text))


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br>")
