"""The categories of a scope as one bar, with their shares below; above it, pale, what they were before.

It is at the top of the breakdown. Time of other programs is no part of the bar; the key names it.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from app.charts.legend import Legend
from app.charts.raster import blended
from app.charts.scale import percent
from app.layout import NONE, lay_out
from app.model.desk_snapshot import DeskSnapshot
from app.style.plain_text import describe, set_tip
from app.style.theme import CATEGORY_TITLES, theme
from app.views.stage_texts import reasons
from profiler.analysis.categories import CATEGORIES, NOT_OWN, THROTTLED
from profiler.plain import milliseconds

NOT_NAMED = 0.001
"""Share of the sum up to which throttled is not named: a host takes next to nothing of most machines."""

HEIGHT, BEFORE = 15, 5
"""Pixels of the bar, and of the pale one above it."""

OWN = tuple(name for name in CATEGORIES if name not in NOT_OWN)


class CategoryBar(QWidget):
    """One bar and its key; the tool tip has the figures and says why a category is zero."""

    def __init__(self) -> None:
        super().__init__()
        self._bar = _Bar()
        self.key = Legend({}, gutter=0)
        lay_out(QVBoxLayout(self), self._bar, self.key, spacing=2, margins=NONE)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def show_model(self, model: DeskSnapshot) -> None:
        """Show the categories of a scope with frames."""
        after = sum(model.after.values())
        # The pale bar of a pair is to the other as the same speech before is to the same speech now.
        scale = 1.0 if model.baseline is not None or not after else model.own_ms / after
        before = {name: scale * model.before.get(name, 0.0) for name in OWN}
        self._bar.show_parts({name: model.categories[name] for name in OWN}, before)
        titles, lines = {}, []
        for name in (*OWN, *NOT_OWN):
            title, ms = CATEGORY_TITLES[name], model.categories[name]
            if name == THROTTLED and ms < NOT_NAMED * model.own_ms:
                continue
            figure = self.tr("{0} ms").format(milliseconds(ms))
            if name in NOT_OWN:
                titles[name] = self.tr("{0}: {1} besides").format(title, figure)
                lines.append(self.tr("{0}: {1}, in no other figure").format(title, figure))
            elif name in model.reasons and not before[name]:
                why, *_, briefly = reasons(model.reasons[name])
                titles[name], line = f"{title}: {briefly}", f"{title}: {why}"
                lines.append(line)
            else:
                share = percent(model.share(ms))
                titles[name] = f"{title} {share}"
                line = f"{title}: {figure}, {share}"
                was = self.tr("; pale: {0} ms before").format(milliseconds(model.before[name])) if before[name] else ""
                lines.append(line + was)
        self.key.set_titles(titles)
        describe(self, self.tr("Categories"), "; ".join(lines))
        set_tip(self, "\n".join(lines))


class _Bar(QWidget):
    """The parts side by side."""

    def __init__(self) -> None:
        super().__init__()
        self._now: Mapping[str, float] = {}
        self._before: Mapping[str, float] = {}
        self.setFixedHeight(HEIGHT + BEFORE + 1)

    def show_parts(self, now: Mapping[str, float], before: Mapping[str, float]) -> None:
        if (now, before) != (self._now, self._before):
            self._now, self._before = now, before
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw both on one scale."""
        most = max(sum(self._now.values()), sum(self._before.values()), 1e-12)
        tokens = theme()
        with QPainter(self) as painter:
            for parts, top, height in ((self._before, 0, BEFORE), (self._now, BEFORE + 1, HEIGHT)):
                x = 0.0
                for name, ms in parts.items():
                    width = self.width() * ms / most
                    place = QRectF(x, top, max(width - 1.0, 0.5 * (width > 0)), height)
                    x += width
                    color = tokens.color(name)
                    if parts is self._before:
                        painter.fillRect(place, QColor(blended(color.name(), tokens.card, 0.55)))
                        continue
                    painter.fillRect(place, color)
                    painter.fillRect(place, tokens.hatch_brush(name))
