"""What pages and cards are put together from: rows, columns, headings, remarks, what scrolls, what is made on use."""

from collections.abc import Callable
from typing import Final, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QFrame, QGridLayout, QHBoxLayout, QLayout, QScrollArea, QWidget

from app.style.plain_text import AT_RIGHT, Elided, Label
from app.style.theme import font

NONE: Final = (0, 0, 0, 0)  # Margins of a layout without any
REST: Final = (0, 1)  # The room that is left, as a part of a layout


Part = QWidget | QLayout | int | tuple[QWidget | QLayout | int, int]  # A number: pixels; the second of a pair: stretch


def lay_out(
    layout: QBoxLayout, *parts: Part, spacing: int | None = None, margins: tuple[int, int, int, int] | None = None
) -> QBoxLayout:
    """Fill a row or column."""
    if spacing is not None:
        layout.setSpacing(spacing)
    if margins is not None:
        layout.setContentsMargins(*margins)
    for part in parts:
        what, stretch = part if isinstance(part, tuple) else (part, 0)
        if isinstance(what, QWidget):
            layout.addWidget(what, stretch)
        elif isinstance(what, QLayout):
            layout.addLayout(what, stretch)
        elif stretch:
            layout.addStretch(stretch)
        else:
            layout.addSpacing(what)
    return layout


def new_grid(parent: QWidget | None, across: int, down: int) -> QGridLayout:
    """A grid without margins, with `across` pixels between its columns and `down` between its rows."""
    grid = QGridLayout(parent)
    grid.setContentsMargins(*NONE)
    grid.setHorizontalSpacing(across)
    grid.setVerticalSpacing(down)
    return grid


W = TypeVar("W", bound=QWidget)


def styled(label: W, size: float = 1.0, *, strong: bool = False, muted: bool = False) -> W:
    """The label with letters `size` times as large as the usual ones, `muted` in the colour of remarks."""
    label.setFont(font(size, strong=strong))
    if muted:
        label.setObjectName("muted")
    return label


def named(widget: W, name: str = "", **properties: bool) -> W:
    """The widget with the name and the properties that the style sheet knows it by."""
    widget.setObjectName(name)
    for key, value in properties.items():
        widget.setProperty(key, value)
    return widget


def muted(text: str = "", size: float = 1.0) -> Label:
    return styled(Label(text), size, muted=True)


def wrapped(text: str, size: float = 1.0) -> Label:
    label = muted(text, size)
    label.setWordWrap(True)
    return label


def heading(text: str) -> Label:
    """The name of a group of settings, keys, labs or presets above them."""
    label = styled(named(Label(text.upper()), "form-layer"), 0.85, strong=True)
    label.setIndent(0)
    return label


def card_header(title: str) -> tuple[QBoxLayout, Elided]:
    """The first line of a card: its title, and a note at the right."""
    name = styled(named(Label(title), "card-title"), 1.06, strong=True)
    note = named(Elided(), "card-note")
    note.setAlignment(AT_RIGHT)
    return lay_out(QHBoxLayout(), name, (note, 1)), note


class Scrolled(QScrollArea):
    """A page that scrolls up and down; Tab goes to what is on it."""

    def __init__(self, page: QWidget | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent, widgetResizable=True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        if page is not None:
            self.setWidget(page)


T = TypeVar("T")


class MadeOnUse(dict[str, T]):
    """Holds the parts made so far."""

    def __init__(self, make: Callable[[str], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> T:
        self[name] = made = self._make(name)
        return made
