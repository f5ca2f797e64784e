"""Breakdown: where the time of an average frame went, by category and stage, as bars, words and a roofline.

It shows the selection. Without one, it shows everything since the last change next to what was before it, so
that a toggle appears as two bars; without a change, everything shown. Zeros are explained in words.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QMenu, QScrollArea, QVBoxLayout, QWidget

from app.charts.scale import milliseconds, percent
from app.model.figures import rtf_text
from app.model.pace import single_shot
from app.model.playhead import Snapshot
from app.model.slices import Slices
from app.model.time_axis import TimeAxis
from app.style.keys import ToolButton
from app.style.plain_text import add_entry, describe, new_menu, set_tip
from app.style.theme import CATEGORY_TITLES, Tokens
from app.views import breakdown_model as bm
from app.views.bar_texts import reasons
from app.views.bars import LEAST_CATEGORIES, Bars
from app.views.breakdown_model import (
    BreakdownModel,
    StageLine,
    breakdown_model,
    group_lines,
    stage_lines,
)
from app.views.part_bars import share_text
from app.views.roofline import ALONE_HIGH, HEIGHT, WIDTHS_HIGH, Roofline
from app.views.roofline_model import Point, points
from app.views.roofline_places import height_below
from app.views.table_twin import Table
from app.views.view import View
from profiler.analysis.breakdown import breakdown_in_steps
from profiler.analysis.categories import PART_NAMES, PARTS
from profiler.analysis.lod.series import CATEGORIES
from profiler.frames import FRAME_S
from profiler.plain import clock

EXPLAINED = ("scoring", "search")
"""Groups whose stages can be done again, to explain them."""
LEAST_STAGES = 420
"""Pixels that the stages keep above the roofline; with less, it is one key away."""

HEADER = 74
"""Pixels of the card above and below its body, about."""

BETWEEN = 4
"""Pixels between the stages and the roofline."""

STAGES_EVERY_S = 0.7
"""While live, the stages are counted at most this often: counting goes through every span."""

STAGES_DUTY = 0.05
"""Share of the time that counting the stages of a growing range may take."""

SPANS_AT_ONCE = 1 << 17
"""On opening a long session, so many are summed up before the window is served again: so few that nobody notices."""


class BreakdownView(View):
    """Bars per category, rows per stage, one plain sentence."""

    id = "breakdown"
    title = "Breakdown"
    drawn_every_ms = 400
    explain = Signal(str)
    """Somebody wants to know what the time of this stage consists of."""

    def __init__(self, axis: TimeAxis, parent: QWidget | None = None) -> None:
        super().__init__(axis, parent)
        self.bars = Bars()
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setViewportMargins(0, 0, 5, 0)
        self._scroll.setWidget(self.bars)
        self._scroll.viewport().setAutoFillBackground(False)
        self.bars.setAutoFillBackground(False)
        self._body = body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(BETWEEN)
        column.addWidget(self._scroll, 1)
        self.roofline = Roofline()
        self.roofline.hide()
        self.roofline.chosen.connect(self.bars.choose)
        self.bars.chosen.connect(lambda _: self._show_roofline())
        self.bars.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.bars.customContextMenuRequested.connect(self._open_menu)
        column.addWidget(self.roofline, 1)
        column.addStretch(0)
        self.set_body(body)
        self.set_note_below()
        self._alone = ToolButton()
        self._alone.setObjectName("table-toggle")
        self._alone.setText(self.tr("Roofline"))
        self._alone.setCheckable(True)
        set_tip(self._alone, self.tr("Show the roofline in place of the stages"))
        describe(self._alone, self.tr("Show the roofline in place of the stages"))
        self._alone.toggled.connect(self.show_roofline)
        self.add_control(self._alone)
        self._around = HEADER
        self._model: BreakdownModel | None = None
        self._selected: tuple[float, float] | None = None
        self._stages: tuple[StageLine, ...] = ()
        self._groups: tuple[StageLine, ...] = ()
        self._points: tuple[Point, ...] = ()
        self._threads = 1
        self._slices: Slices[_Stages] = Slices(self, self._take_stages)
        self._counted: tuple[int, int] | None = None
        self._counted_at = 0.0
        self._took_s = 0.0
        self._pause_s = STAGES_EVERY_S
        self._soon = single_shot(self, 0, self._redraw)
        self._count_soon = single_shot(self, int(STAGES_EVERY_S * 1000), self._redraw)

    def _open_menu(self, position: QPoint) -> None:
        menu = self.menu_at(position)
        if menu is not None:
            menu.popup(self.bars.mapToGlobal(position))

    def menu_at(self, position: QPoint) -> QMenu | None:
        """Return the menu of the stage under a position of the bars; None where there is none."""
        line = self.bars.stage_at(position)
        if line is None or line not in self.bars.stages:
            return None
        menu = new_menu(line.name, self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        can = line.group in EXPLAINED
        name = line.name
        explain = (lambda: self.explain.emit(name)) if can else None
        entry = add_entry(menu, self.tr("Explain this stage"), explain)
        if not can:
            set_tip(entry, self.tr("Only stages of scoring and search can be done again."))
            menu.setToolTipsVisible(True)
        return menu

    def draw(self, snapshot: Snapshot) -> None:
        """Update the categories at once, the stages when they are due."""
        self._soon.stop()
        self._selected = self.axis.selected
        model = breakdown_model(
            snapshot.session, snapshot.track, snapshot.cursor_frame, self.axis.selected_frames
        )
        self._model = model
        begun = self._count(snapshot, model)
        # Stages under way show it all in a moment: laying it out and painting it twice costs as much again.
        if not (begun and self._slices.busy):
            self._show()
        self.set_note(self._note_text(model))

    def _show(self) -> None:
        self.bars.show_model(self._model, self._stages, self._groups)
        self._show_roofline()

    @property
    def roofline_alone(self) -> bool:
        """Whether the roofline stands in place of the stages."""
        return self._alone.isChecked()

    def show_roofline(self, alone: bool) -> None:
        """Show the roofline in place of the stages, or the stages again."""
        self._alone.setChecked(alone)
        if alone:
            self.show_table(False)
        self._scroll.setVisible(not alone)
        self.set_title(self.tr("Roofline") if alone else self.tr(self.title))
        self._show_roofline()

    def _show_roofline(self) -> None:
        line = self.bars.explained()
        self.roofline.show_points(self._points, None if line is None else line.name, self._threads)
        if self.roofline_alone:
            self.roofline.set_height(None, int(ALONE_HIGH * self.width()))
            self.roofline.show()
            return
        if self._stack.currentIndex() == 0 and self.isVisible():  # else it has not been laid out
            self._around = self.height() - self._body.height()
        ends, most = self.bars.ends(), WIDTHS_HIGH * self.width()
        room = self.height() - self._around - BETWEEN
        self.roofline.set_height(height_below(room, ends, HEIGHT, int(most)))
        beside = self.height() - HEADER - min(ends[-1], LEAST_STAGES)
        self.roofline.setVisible(bool(self._points) and beside >= HEIGHT)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The roofline makes room for the stages if there is little."""
        super().resizeEvent(event)
        self._show_roofline()

    def axis_changed(self) -> None:
        """Only the selection matters here."""
        if self.axis.selected != self._selected:
            self._soon.start()

    def clear(self) -> None:
        """Show nothing."""
        super().clear()
        self._soon.stop()
        self._count_soon.stop()
        self._slices.drop()
        self._model, self._stages, self._groups = None, (), ()
        self._points, self._counted = (), None
        self.bars.show_model(None, ())
        self.bars.choose(None)
        self._show_roofline()
        self.set_note("")

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours."""
        self.bars.apply_theme(tokens)
        self.roofline.apply_theme(tokens)

    def model(self) -> BreakdownModel | None:
        """Return the updated model; None without a session."""
        self.pace.flush()
        if self._soon.isActive():
            self._redraw()
        return self._model

    @property
    def least_in_picture(self) -> int:
        """What the roofline takes, or the categories; stages are left out where there is no room."""
        return HEADER + (HEIGHT if self.roofline_alone else LEAST_CATEGORIES)

    def set_picture(self, on: bool) -> None:
        """In a picture nothing scrolls: rows are whole, and the roofline is there if it takes none of their room."""
        bar = Qt.ScrollBarPolicy.ScrollBarAlwaysOff if on else Qt.ScrollBarPolicy.ScrollBarAsNeeded
        self._scroll.setVerticalScrollBarPolicy(bar)
        self._show_roofline()
        column = self._body.layout()
        assert column is not None
        room = self._body.height()
        beside = room - HEIGHT - column.spacing()
        if on and not (self.roofline_alone or self.bars.fits(beside)):
            self.roofline.hide()
        column.activate()
        self.bars.set_picture((room if self.roofline.isHidden() else beside) if on else None)

    def settle(self) -> None:
        """Complete the stages at once."""
        super().settle()
        self._slices.finish()
        # Those of the range shown, however short ago others were counted.
        self._counted_at = -math.inf
        if self.snapshot is not None and self.snapshot.track.stages.update(self.snapshot.session):
            self._redraw()
            self._slices.finish()

    def summary(self) -> str:
        """Return one sentence: the sum, the largest category, the dominating stage's verdict."""
        model = self._model  # as drawn: a drawing that is due is not brought forward for it
        if model is None or not model.frames:
            return self.tr("No frames in range yet.")
        largest = int(np.argmax(model.ms))
        text = self.tr("A frame takes {0} ms (RTF {1}); {2} is the largest part ({3}).").format(
            milliseconds(model.wall_ms),
            rtf_text(model.rtf),
            CATEGORY_TITLES[CATEGORIES[largest]],
            percent(model.share(float(model.ms[largest]))),
        )
        line = self.bars.explained()
        return f"{text} {self.bars.explanation(line)}" if line is not None else text

    def table(self) -> Table:
        """Return categories, then stages, then the groups whose parts are known."""
        headers = [
            self.tr(text)
            for text in (
                "part",
                "ms per frame",
                "share",
                "baseline ms",
                "verdict",
                "grade",
                "op/byte",
                "Gop/s",
                "roof Gop/s",
            )
        ]
        headers += [PART_NAMES[name] for name in PARTS]
        found = {point.name: point for point in self._points}
        model = self.model()
        rows: list[list[object]] = []
        if model is None or not model.frames:
            return headers, rows
        for index, name in enumerate(CATEGORIES):
            before = None if model.before_ms is None else f"{model.before_ms[index]:.4f}"
            share = percent(model.share(float(model.ms[index])))
            reason = reasons(model.reasons[name])[0] if name in model.reasons else ""
            figure = f"{model.ms[index]:.4f}"
            blank = [None] * (3 + len(PARTS))
            rows.append([CATEGORY_TITLES[name], figure, share, before, reason, "", *blank])
        for line in (*self._stages, *self._groups):
            figures = [f"{line.ms:.4f}", percent(line.share)]
            roofs: list[object] = [None] * 3
            if (point := found.get(line.name)) is not None:
                rates = (point.rate * 1e-9, point.roof * 1e-9)
                roofs = [f"{point.intensity:.3g}", *(f"{rate:.3g}" for rate in rates)]
            parts: list[object] = [share_text(part) for part in line.parts]
            parts = parts or [None] * len(PARTS)
            name = self.tr("all {0}").format(line.name) if line in self._groups else line.name
            rows.append([name, *figures, None, line.verdict, line.evidence, *roofs, *parts])
        return headers, rows

    def _redraw(self) -> None:
        self._soon.stop()
        if self.snapshot is not None:
            self.draw(self.snapshot)

    def _count(self, snapshot: Snapshot, model: BreakdownModel) -> bool:
        """Count the stages again if the range moved, at most every `STAGES_EVERY_S` while live: whether it began."""
        span = (model.first_frame, model.last_frame)
        if span == self._counted:
            return False
        if self._slices.busy and snapshot.moving:
            return False
        waited = time.monotonic() - self._counted_at
        moves_by_itself = (
            self._counted is not None
            and span[0] == self._counted[0]
            and (snapshot.live or span[1] != self._counted[1])
            and model.scope != bm.SELECTION
        )
        # A selection being dragged is updated as fast as counting allows, a growing tail from time to time.
        pause = self._pause_s if moves_by_itself else self._took_s
        if waited < pause:
            # A moving cursor draws again soon anyway.
            if not (snapshot.moving or self._count_soon.isActive()):
                self._count_soon.start(int((pause - waited) * 1000) + 1)
            return False
        # What is under way goes by the sums that change now.
        self._slices.drop()
        if model.frames and not snapshot.track.stages.update(snapshot.session, SPANS_AT_ONCE):
            # The stages shown stay until the sums of a session just opened are complete.
            self._count_soon.start(0)
            return False
        self._counted = span
        self._slices.start(_stages(snapshot, model))
        if not snapshot.moving:
            self._slices.finish()
        return True

    def _take_stages(self, found: _Stages) -> None:
        self._stages, self._groups, self._points, self._threads = found
        self._counted_at = time.monotonic()
        self._took_s = self._slices.took_s
        self._pause_s = max(STAGES_EVERY_S, self._took_s / STAGES_DUTY)
        self._show()

    def _note_text(self, model: BreakdownModel) -> str:
        if model.scope == bm.SELECTION:
            text = self.tr("selection {0} – {1}").format(
                clock(model.first_frame * FRAME_S, 2), clock(model.last_frame * FRAME_S, 2)
            )
        elif model.scope == bm.SINCE_CHANGE:
            # A change that an A/B made has no name.
            named = self.tr("since “{0}”").format(model.change)
            since = self.tr("since {0}").format(clock(model.first_frame * FRAME_S, 1))
            text = named if model.change else since
        else:
            text = self.tr("start to cursor")
        return text


class _Stages(NamedTuple):
    """What is shown of the stages of a range."""

    lines: tuple[StageLine, ...] = ()
    groups: tuple[StageLine, ...] = ()
    points: tuple[Point, ...] = ()
    threads: int = 1


def _stages(snapshot: Snapshot, model: BreakdownModel) -> Generator[None, None, _Stages]:
    """Count the stages of the range of `model`, a step at a time."""
    if not model.frames:
        return _Stages()
    span = (model.first_frame, model.last_frame)
    found = yield from breakdown_in_steps(snapshot.session, snapshot.track, *span)
    yield
    return _Stages(
        stage_lines(found.stages, model.frames),
        group_lines(found, model.frames),
        points(found.stages),
        bm.threads_at(snapshot.session, span[0]),
    )
