"""Breakdown: where the time of an average frame went, by category and stage, and what one stage's time consists of.

It shows the selection. Without one, it shows everything since the last change next to what was before it, so
that a toggle appears as two bars; without a change, everything shown. Zeros are explained in words.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget

from app.charts.scale import milliseconds, percent
from app.model.figures import rtf_text
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import Label, add_entry, new_menu, set_tip
from app.style.theme import CATEGORY_TITLES, font
from app.views import breakdown_model as bm
from app.views.breakdown_model import (
    BreakdownModel,
    StageLine,
    Stretch,
    breakdown_model,
    group_lines,
    stage_lines,
)
from app.views.part_bars import share_text
from app.views.roofline_model import Point, points
from app.views.stage_panel import StagePanel
from app.views.stage_texts import before_text, explanation, ratio_text, reasons, sum_text, verdicts
from app.views.stage_tree import ROW, StageTree
from app.views.stage_view import StageView
from app.views.table_twin import Table
from profiler.analysis.categories import PART_NAMES, PARTS
from profiler.analysis.lod.series import CATEGORIES
from profiler.frames import FRAME_S
from profiler.plain import clock

EXPLAINED = ("scoring", "search")
"""Groups whose stages can be done again, to explain them."""

USUAL = len(CATEGORIES) - 1
"""Rows of categories where nothing was throttled."""

LEAST_TREE = (USUAL + 2) * ROW
"""Pixels of the tree in which all categories are in sight below its heading."""

LEAST_IN_PICTURE = 100 + USUAL * ROW
"""Height of a picture that has all categories and their sum."""


class BreakdownView(StageView):
    """A tree of categories and stages, the sum, and the stage that is explained."""

    id = "breakdown"
    title = "Breakdown"
    explain = Signal(str)
    """Somebody wants to know what the time of this stage consists of."""
    confirm = Signal(str)
    """Somebody wants to know whether the verdict of this stage survives a change."""

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.tree = StageTree(axis)
        self.panel = StagePanel()
        self.sum = Label()
        self.sum.setFont(font(1.0, strong=True))
        self.sum.setWordWrap(True)
        body = QWidget()
        self._column = column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.sum)
        column.addWidget(self.tree, 1)
        column.addWidget(self.panel)
        self.set_body(body)
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.tree.customContextMenuRequested.connect(self._open_menu)
        self.tree.activated.connect(self._activated)
        axis.baseline_changed.connect(self._soon.start)
        self._model: BreakdownModel | None = None
        self._points: tuple[Point, ...] = ()

    # -- one stage -----------------------------------------------------------------------------

    def _open_menu(self, position: QPoint) -> None:
        menu = self.menu_at(position)
        if menu is not None:
            menu.popup(self.tree.viewport().mapToGlobal(position))

    def menu_at(self, position: QPoint) -> QMenu | None:
        """Return the menu of the stage under a position of the tree; None where there is none."""
        line = self.tree.stage_at(position)
        if line is None or line not in self.tree.stages:
            return None
        menu = new_menu(line.name, self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        can = line.group in EXPLAINED
        name = line.name
        for text, wanted in (
            (self.tr("Explain this stage"), self.explain),
            (self.tr("Confirm its verdict"), self.confirm),
        ):
            entry = add_entry(menu, text, partial(wanted.emit, name) if can else None)
            if not can:
                set_tip(entry, self.tr("Only stages of scoring and search can be done again."))
                menu.setToolTipsVisible(True)
        return menu

    def _activated(self, index: QModelIndex) -> None:
        """Return on a stage opens its menu; it does not start an explanation, which takes a minute."""
        self._open_menu(self.tree.visualRect(index).center())

    def _explain_here(self) -> None:
        line = self.tree.explained()
        if line is None:
            self.panel.show_line(None, "", "")
            return
        verdict = verdicts(line)[0] if line in self.tree.stages else self.tr("all stages")
        head = " · ".join(filter(None, (line.name, verdict)))
        self.panel.show_line(line, head, explanation(line, self.tree.stages))

    # -- drawing -------------------------------------------------------------------------------

    def draw(self, snapshot: Snapshot) -> None:
        """Update the categories at once, the stages when they are due."""
        model = breakdown_model(
            snapshot.session,
            snapshot.track,
            snapshot.cursor_frame,
            self.axis.selected_frames,
            self.axis.baseline_frames,
        )
        self._model = model
        if not self.ask(snapshot, Stretch(model.scope, model.first_frame, model.last_frame)):
            self._show()
        over = self._over(model)
        units = (
            self.by_unit(self.tr("ms per 10 ms frame"), self.tr("ms per step of the lab")),
            self.by_unit(self.tr("ms per frame"), self.tr("ms per step")),
        )
        self.set_note(*(f"{unit} · {over}" for unit in units), over)

    def show_stages(self) -> None:
        """Show the stages counted last."""
        found = self.count.found
        self._points = () if found is None else points(found.stages)
        if self._model is not None:
            self._show()

    def _show(self) -> None:
        model, found, span = self._model, self.count.found, self.count.span
        lines: tuple[StageLine, ...] = ()
        groups: tuple[StageLine, ...] = ()
        if found is not None and span is not None:
            frames = span[1] - span[0]
            lines, groups = stage_lines(found.stages, frames), group_lines(found, frames)
        self.tree.show_model(model, lines, groups)
        known = model is not None and model.frames > 0
        texts = (sum_text(model), before_text(model)) if known and model is not None else ()
        self.sum.setText("\n".join(filter(None, texts)))
        self.sum.setVisible(known)
        self.panel.above = self.sum.sizeHint().height() * known + LEAST_TREE
        self._explain_here()

    def clear(self) -> None:
        """Show nothing."""
        super().clear()
        self._model, self._points = None, ()
        self._show()
        self.set_note("")

    def model(self) -> BreakdownModel | None:
        """Return the updated model; None without a session."""
        self.pace.flush()
        if self._soon.isActive():
            self._redraw()
        return self._model

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The panel may take another share of the height."""
        super().resizeEvent(event)
        self.panel.updateGeometry()

    @property
    def least_in_picture(self) -> int:
        """What the categories take; stages are left out where there is no room."""
        return LEAST_IN_PICTURE

    def set_picture(self, on: bool) -> None:
        """In a picture nothing scrolls: rows are whole, and the panel is there if it leaves room for the categories."""
        needed = self.panel.needed(self.panel.width())
        room = self.tree.height() + (self.panel.height() if not self.panel.isHidden() else 0)
        self.panel.setVisible(not on or room - needed >= (USUAL + 2) * ROW)
        self._column.activate()
        self.tree.set_picture(on)

    # -- in words and figures ------------------------------------------------------------------

    def summary(self) -> str:
        """Return one sentence: the sum, the largest category, the dominating stage's verdict."""
        model = self._model  # as drawn: a drawing that is due is not brought forward for it
        if model is None or not model.frames:
            return self.tr("No frames in range yet.")
        largest = int(np.argmax(model.ms))
        text = self.by_unit(
            self.tr("A frame of 10 ms takes {0} ms (RTF {1}); {2} is the largest part ({3})."),
            self.tr("A step of the lab takes {0} ms; {2} is the largest part ({3})."),
        ).format(
            milliseconds(model.wall_ms),
            rtf_text(model.rtf),
            CATEGORY_TITLES[CATEGORIES[largest]],
            percent(model.share(float(model.ms[largest]))),
        )
        line = self.tree.explained()
        return f"{text} {explanation(line, self.tree.stages)}" if line is not None else text

    def table(self) -> Table:
        """Return categories, then stages, then the groups whose parts are known."""
        headers = [
            self.tr(text)
            for text in (
                "part",
                self.by_unit("ms per 10 ms frame", "ms per step"),
                "share",
                self.by_unit("baseline, ms per frame", "baseline, ms per step"),
                "ratio to baseline",
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
            before = ratio = None
            if model.before_ms is not None:
                before = f"{model.before_ms[index]:.4f}"
                ratio = ratio_text(float(model.ms[index]), float(model.before_ms[index]))
            share = percent(model.share(float(model.ms[index])))
            reason = reasons(model.reasons[name])[0] if name in model.reasons else ""
            figure = f"{model.ms[index]:.4f}"
            blank = [None] * (3 + len(PARTS))
            rows.append([CATEGORY_TITLES[name], figure, share, before, ratio, reason, "", *blank])
        for line in (*self.tree.stages, *self.tree.groups):
            figures = [f"{line.ms:.4f}", percent(line.share)]
            roofs: list[object] = [None] * 3
            if (point := found.get(line.name)) is not None:
                rates = (point.rate * 1e-9, point.roof * 1e-9)
                roofs = [f"{point.intensity:.3g}", *(f"{rate:.3g}" for rate in rates)]
            parts: list[object] = [share_text(part) for part in line.parts]
            parts = parts or [None] * len(PARTS)
            name = self.tr("all {0}").format(line.name) if line in self.tree.groups else line.name
            rows.append([name, *figures, None, None, line.verdict, line.evidence, *roofs, *parts])
        return headers, rows

    def _over(self, model: BreakdownModel) -> str:
        """Over which frames figures count."""
        first_s, last_s = model.first_frame * FRAME_S, model.last_frame * FRAME_S
        if model.scope == bm.SELECTION:
            return self.tr("selection {0} – {1}").format(clock(first_s, 2), clock(last_s, 2))
        if model.scope == bm.SINCE_CHANGE:
            # A change that an A/B made has no name.
            return self.tr("since {0}").format(f"“{model.change}”" if model.change else clock(first_s, 1))
        return self.tr("start to cursor")
