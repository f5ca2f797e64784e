"""A picture of a session as a widget: headline, the wanted views, caption. Its layout depends on its size alone.

Nothing that one clicks is on it: no buttons, form or scrub bar. It is laid out without ever being shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLayout, QVBoxLayout, QWidget

from app.model.effects import Effect
from app.pictures.texts import Figure, Headline, ToggleState
from app.pictures.writers import CaptionLine
from app.style.plain_text import Elided, Label
from app.style.theme import font, theme
from app.views import VIEWS
from app.views.view import View
from app.widgets import EffectLabel

MARGIN: Final = 12
GAP: Final = 8

RIGHT_SHARE: Final = 0.29
RIGHT_BOUNDS: Final = (340, 560)
"""Share of the width that the right column takes, within these bounds."""

TWO_COLUMNS: Final = 960
"""Below this width all views stand below each other."""

SMALLEST: Final = 0.74
"""Share of the height that a view has at least on the desk: a picture is looked at more closely."""

ONE_ROW: Final = 1280
"""Below this width the toggles stand below the title: what they do is a sentence each."""

INLINE_SCOPE_FROM: Final = 800
"""Width below which the scope of a figure stands above it, after its name, to leave room for the title."""


class Dot(QWidget):
    """Whether a toggle is on: filled, or a ring."""

    def __init__(self, on: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._on = on
        self.setFixedSize(12, 16)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw it."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme().color("accent" if self._on else "muted"), 1.6))
            painter.setBrush(theme().color("accent") if self._on else Qt.BrushStyle.NoBrush)
            painter.drawEllipse(QPointF(5.5, 8.5), 4.2, 4.2)


class ViewPicture(QWidget):
    """Headline, views and caption.

    Args:
        views: in the order of the registry.
        headline: what stands above them.
        caption: lines below them.
        width: in points; what the arrangement depends on.
    """

    def __init__(self, views: Sequence[View], headline: Headline, caption: Sequence[str], width: int) -> None:
        super().__init__()
        self.setObjectName("desk")
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 8, MARGIN, 8)
        column.setSpacing(GAP)
        column.addLayout(_headline(headline, width))
        column.addLayout(_columns(views, width), 1)
        lines = QVBoxLayout()
        lines.setSpacing(1)
        for text in caption:
            line = CaptionLine(text)
            # A layout that is resized does not make room for lines that are wrapped.
            line.setMinimumHeight(line.heightForWidth(width - 2 * MARGIN))
            lines.addWidget(line)
        column.addLayout(lines)


def _columns(views: Sequence[View], width: int) -> QLayout:
    """The views as on the desk, or one below the other where there is one column of them or little room."""
    for view in views:
        least = view.least_in_picture or view.minimumSizeHint().height()
        view.setMinimumHeight(max(least, round(VIEWS[view.id].height * SMALLEST)))
    places = {view.id: VIEWS[view.id].column for view in views}
    right = [view for view in views if places[view.id] == "right"]
    middle = [view for view in views if places[view.id] != "right"]
    if not (right and middle) or width < TWO_COLUMNS:
        return _stacked(views)
    row = QHBoxLayout()
    row.setSpacing(GAP)
    row.addLayout(_stacked(middle), 1)
    beside = QWidget()
    beside.setFixedWidth(round(min(max(width * RIGHT_SHARE, RIGHT_BOUNDS[0]), RIGHT_BOUNDS[1])))
    inner = _stacked(right)
    inner.setContentsMargins(0, 0, 0, 0)
    beside.setLayout(inner)
    row.addWidget(beside)
    return row


def _stacked(views: Sequence[View]) -> QVBoxLayout:
    column = QVBoxLayout()
    column.setSpacing(GAP)
    for view in views:
        column.addWidget(view, VIEWS[view.id].stretch)
    return column


# -- the headline ----------------------------------------------------------------------------


def _headline(headline: Headline, width: int) -> QLayout:
    narrow = width < ONE_ROW
    top = QHBoxLayout()
    top.setSpacing(22)
    top.setContentsMargins(4, 0, 4, 0)
    about = QVBoxLayout()
    about.setSpacing(1)
    title, below = Elided(headline.title), Elided()
    # The name of the file, with which it begins, is in the caption as well.
    below.set_full(headline.subtitle, headline.subtitle.partition(" · ")[2])
    title.setFont(font(1.25, strong=True))
    below.setFont(font(0.92))
    below.setObjectName("muted")
    for label in (title, below):
        about.addWidget(label)
    top.addLayout(about, 5)
    toggles = QHBoxLayout()
    toggles.setSpacing(22)
    for toggle in headline.toggles:
        toggles.addLayout(_toggle(toggle), 1)
    if not narrow:
        top.addLayout(toggles, 7)
    for figure in headline.figures:
        top.addLayout(_figure(figure, width >= INLINE_SCOPE_FROM))
    if not narrow:
        return top
    rows = QVBoxLayout()
    rows.setSpacing(6)
    rows.addLayout(top)
    toggles.setContentsMargins(4, 0, 4, 0)
    rows.addLayout(toggles)
    return rows


def _toggle(toggle: ToggleState) -> QLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(6)
    grid.setVerticalSpacing(1)
    title, text = Elided(toggle.title), Elided()
    text.set_full(toggle.text, toggle.does)
    title.setFont(font(1.0, strong=True))
    text.setFont(font(0.9))
    text.setObjectName("muted")
    grid.addWidget(Dot(toggle.on), 0, 0, Qt.AlignmentFlag.AlignVCenter)
    grid.addWidget(title, 0, 1)
    grid.addWidget(text, 1, 1)
    grid.addLayout(_effect(toggle.effect), 2, 1)
    grid.setColumnStretch(1, 1)
    return grid


def _effect(effect: Effect | None) -> QLayout:
    """A line that is there with or without an effect: the layout depends on the size alone."""
    row = QHBoxLayout()
    row.setSpacing(4)
    headline, beside = EffectLabel(), Elided()
    headline.show_kind("" if effect is None else effect.kind, effect.brief if effect else " ")
    if effect is not None and effect.remark:
        beside.set_full(*(f"· {text}" if text else "" for text in (effect.remark, *effect.shorter)))
    beside.setFont(font(0.9))
    beside.setObjectName("muted")
    row.addWidget(headline)
    row.addWidget(beside, 1)
    return row


def _figure(figure: Figure, scope_inline: bool) -> QLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(7)
    grid.setVerticalSpacing(0)
    name, value, scope = Label(figure.name), Label(figure.value), Label(figure.scope)
    value.setFont(font(1.8, strong=True))
    for label in (name, scope):
        label.setFont(font(0.85))
        label.setObjectName("muted")
    grid.addWidget(name, 0, 0)
    if scope_inline:
        grid.addWidget(value, 1, 0)
        grid.addWidget(scope, 1, 1, Qt.AlignmentFlag.AlignBottom)
    else:
        grid.addWidget(value, 1, 0, 1, 2)
        grid.addWidget(scope, 0, 1, Qt.AlignmentFlag.AlignLeft)
        grid.setColumnStretch(1, 1)
    return grid
