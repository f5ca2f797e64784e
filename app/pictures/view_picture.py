"""A picture of a session as a widget: headline, the wanted views, caption. Its layout depends on its size alone.

Nothing that one clicks is on it: no buttons, form or scrub bar. It is laid out without ever being shown.
"""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLayout, QVBoxLayout, QWidget

from app.layout import NONE, lay_out, muted, new_grid, styled
from app.pictures.texts import Figure, Headline, ToggleState
from app.pictures.writers import CaptionLine
from app.style.plain_text import Elided, Label
from app.style.theme import theme
from app.views import VIEWS
from app.views.view import View
from app.widgets import EffectLabel

MARGIN: Final = 12
GAP: Final = 8
SIDES: Final = (4, 0, 4, 0)

RIGHT_SHARE, RIGHT_BOUNDS = 0.29, (340, 560)  # Share of the width that the right column takes, within bounds
TWO_COLUMNS: Final = 960  # Below this width all views stand below each other
SMALLEST: Final = 0.74  # Share of the height that a view has at least on the desk: a picture is looked at more closely
ONE_ROW: Final = 1280  # Below this width the toggles stand below the title: what they do is a sentence each
INLINE_SCOPE_FROM: Final = 800  # Width below which a figure's scope stands above it: the title needs the room


class Dot(QWidget):
    """Whether a toggle is on: filled, or a ring."""

    def __init__(self, on: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._on = on
        self.setFixedSize(12, 16)

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme().color("accent" if self._on else "muted"), 1.6))
            painter.setBrush(theme().color("accent") if self._on else Qt.BrushStyle.NoBrush)
            painter.drawEllipse(QPointF(5.5, 8.5), 4.2, 4.2)


class ViewPicture(QWidget):
    """Headline, views in the order of the registry, and caption, arranged for a width in points."""

    def __init__(self, views: Sequence[View], headline: Headline, caption: Sequence[str], width: int) -> None:
        super().__init__()
        self.setObjectName("desk")
        lines = [CaptionLine(text) for text in caption]
        for line in lines:
            # A layout that is resized does not make room for lines that are wrapped.
            line.setMinimumHeight(line.heightForWidth(width - 2 * MARGIN))
        below = lay_out(QVBoxLayout(), *lines, spacing=1)
        parts = (_headline(headline, width), (_columns(views, width), 1), below)
        lay_out(QVBoxLayout(self), *parts, spacing=GAP, margins=(MARGIN, 8, MARGIN, 8))


def _columns(views: Sequence[View], width: int) -> QLayout:
    """The views as on the desk, or one below the other where there is one column of them or little room."""
    for view in views:
        least = view.least_in_picture or view.minimumSizeHint().height()
        view.setMinimumHeight(max(least, round(VIEWS[view.id].height * SMALLEST)))
    right = [view for view in views if VIEWS[view.id].column == "right"]
    middle = [view for view in views if view not in right]
    if not (right and middle) or width < TWO_COLUMNS:
        return _stacked(views)
    beside = QWidget()
    beside.setFixedWidth(round(min(max(width * RIGHT_SHARE, RIGHT_BOUNDS[0]), RIGHT_BOUNDS[1])))
    beside.setLayout(lay_out(_stacked(right), margins=NONE))
    return lay_out(QHBoxLayout(), (_stacked(middle), 1), beside, spacing=GAP)


def _stacked(views: Sequence[View]) -> QVBoxLayout:
    column = QVBoxLayout()
    lay_out(column, *((view, VIEWS[view.id].stretch) for view in views), spacing=GAP)
    return column


def _headline(headline: Headline, width: int) -> QLayout:
    title, below = styled(Elided(headline.title), 1.25, strong=True), styled(Elided(), 0.92, muted=True)
    # The name of the file, with which it begins, is in the caption as well.
    below.set_full(headline.subtitle, headline.subtitle.partition(" · ")[2])
    about = lay_out(QVBoxLayout(), title, below, spacing=1)
    toggles = lay_out(QHBoxLayout(), *((_toggle(toggle), 1) for toggle in headline.toggles), spacing=22)
    figures = [_figure(figure, width >= INLINE_SCOPE_FROM) for figure in headline.figures]
    beside = [] if width < ONE_ROW else [(toggles, 7)]
    top = lay_out(QHBoxLayout(), (about, 5), *beside, *figures, spacing=22, margins=SIDES)
    if beside:
        return top
    return lay_out(QVBoxLayout(), top, lay_out(toggles, margins=SIDES), spacing=6)


def _toggle(toggle: ToggleState) -> QLayout:
    title, text = styled(Elided(toggle.title), strong=True), styled(Elided(), 0.9, muted=True)
    text.set_full(toggle.text, toggle.does)
    # The line of the effect is there with or without one: the layout depends on the size alone.
    effect, headline, beside = toggle.effect, EffectLabel(), styled(Elided(), 0.9, muted=True)
    headline.show_kind("" if effect is None else effect.kind, effect.brief if effect else " ")
    if effect is not None and effect.remark:
        beside.set_full(*(f"· {text}" if text else "" for text in (effect.remark, *effect.shorter)))
    grid = new_grid(None, 6, 1)
    grid.addWidget(Dot(toggle.on), 0, 0, Qt.AlignmentFlag.AlignVCenter)
    grid.addWidget(title, 0, 1)
    grid.addWidget(text, 1, 1)
    grid.addLayout(lay_out(QHBoxLayout(), headline, (beside, 1), spacing=4), 2, 1)
    grid.setColumnStretch(1, 1)
    return grid


def _figure(figure: Figure, scope_inline: bool) -> QLayout:
    grid = new_grid(None, 7, 0)
    grid.addWidget(muted(figure.name, 0.85), 0, 0)
    value, scope = styled(Label(figure.value), 1.8, strong=True), muted(figure.scope, 0.85)
    if scope_inline:
        grid.addWidget(value, 1, 0)
        grid.addWidget(scope, 1, 1, Qt.AlignmentFlag.AlignBottom)
    else:
        grid.addWidget(value, 1, 0, 1, 2)
        grid.addWidget(scope, 0, 1, Qt.AlignmentFlag.AlignLeft)
        grid.setColumnStretch(1, 1)
    return grid
