"""Breakdown: where the time of an average frame went, by category and stage, and what one stage's time consists of.

Next to it stands what the same speech took with the settings before. Zeros are explained in words.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMenu, QStackedLayout, QVBoxLayout, QWidget

from app.charts.scale import percent
from app.layout import NONE, lay_out
from app.model.desk_snapshot import DeskSnapshot
from app.model.figures import rtf_text
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import Label, add_entry, new_menu, set_tip
from app.style.theme import CATEGORY_TITLES, font
from app.views.category_bar import CategoryBar
from app.views.icicle import Icicle
from app.views.icicle_model import icicle_model
from app.views.part_bars import share_text
from app.views.roofline_model import Point, points
from app.views.stage_panel import StagePanel
from app.views.stage_texts import before_text, explanation, reasons, sum_text, verdicts
from app.views.stage_tree import ROW, StageTree
from app.views.table_twin import Table
from app.views.view import View
from profiler.analysis.categories import CATEGORIES, NOT_OWN, PART_NAMES, PARTS
from profiler.plain import milliseconds

EXPLAINED = ("scoring", "search")
"""Groups whose stages can be done again, to explain them."""

LEAST_TREE = 6 * ROW
"""Pixels of the tree in which all groups are in sight below its heading."""

LEAST_IN_PICTURE = 274
"""Height of a picture that has the categories, their sum and the groups."""


class BreakdownView(View):
    """The sum, the bar of the categories, the tree or icicle of the stages, and the stage that is explained."""

    id = "breakdown"
    title = "Breakdown"
    explain = Signal(str)
    """Somebody wants to know what the time of this stage consists of."""
    confirm = Signal(str)
    """Somebody wants to know whether the verdict of this stage survives a change."""

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.tree, self.icicle = StageTree(axis), Icicle()
        self.bar = CategoryBar()
        self.panel = StagePanel()
        self.sum = Label()
        self.sum.setFont(font(1.0, strong=True))
        self.sum.setWordWrap(True)
        self._stages = QStackedLayout()
        body = QWidget()
        parts = (self.sum, self.bar, (self._stages, 1), self.panel)
        self._column = lay_out(QVBoxLayout(body), *parts, spacing=4, margins=NONE)
        for part in (self.tree, self.icicle):  # not before the layout has a widget: the first would be a window
            self._stages.addWidget(part)
        self.set_body(body)
        tip = self.tr("The same stages side by side, as wide as their time, above the parts of each")
        icicle = self.add_page("icicle", self.tr("Icicle"), tip)
        icicle.toggled.connect(lambda shown: self._stages.setCurrentIndex(int(shown)))
        self.icicle.chosen.connect(axis.choose_stage)
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.tree.customContextMenuRequested.connect(self._open_menu)
        self.tree.activated.connect(self._activated)
        axis.stage_changed.connect(self._soon.start)
        self._model: DeskSnapshot | None = None
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
        verdict = verdicts(line)[0] if line not in self.tree.groups else self.tr("all stages")
        head = " · ".join(filter(None, (line.name, verdict)))
        self.panel.show_line(line, head, explanation(line, self.tree.stages, self.tree.of_steps))

    # -- drawing -------------------------------------------------------------------------------

    def draw(self, snapshot: Snapshot) -> None:
        """Show the figures."""
        self._model = snapshot.desk
        self._points = () if snapshot.desk.costs is None else points(snapshot.desk.costs.stages)
        self._show()
        self.set_note(self.by_unit(self.tr("ms per 10 ms frame"), self.tr("ms per step of the lab")))

    def _show(self) -> None:
        model = self._model
        self.tree.show_model(model)
        known = model is not None and model.frames > 0
        texts = (sum_text(model), before_text(model)) if known and model is not None else ()
        self.sum.setText("\n".join(filter(None, texts)))
        for part in (self.sum, self.bar):
            part.setVisible(known)
        if known and model is not None:
            self.bar.show_model(model)
        if self.page:
            explained = self.tree.explained()
            blocks = icicle_model(model, self.by_unit("whole frame", "whole step")) if model is not None else ()
            chosen = None if explained is None else explained.name
            self.icicle.show_blocks(blocks, chosen, model is not None and model.of_steps)
        above = sum(part.sizeHint().height() for part in (self.sum, self.bar)) * known
        self.panel.above = above + LEAST_TREE
        self._explain_here()

    def clear(self) -> None:
        """Show nothing."""
        super().clear()
        self._model, self._points = None, ()
        self._show()
        self.set_note("")

    def model(self) -> DeskSnapshot | None:
        """Return what is shown; None without a session."""
        return self._model

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.panel.updateGeometry()

    @property
    def least_in_picture(self) -> int:
        return LEAST_IN_PICTURE

    def set_picture(self, on: bool) -> None:
        """In a picture nothing scrolls: rows are whole, and the panel is there if it leaves room for the stages."""
        needed = self.panel.needed(self.panel.width())
        room = self._stages.geometry().height() + (self.panel.height() if not self.panel.isHidden() else 0)
        self.panel.setVisible(not on or room - needed >= LEAST_TREE)
        self._column.activate()
        self.tree.set_picture(on)

    # -- in words and figures ------------------------------------------------------------------

    def summary(self) -> str:
        """Return one sentence: the sum, the largest category, the dominating stage's verdict."""
        model = self._model
        if model is None or not model.frames:
            return self.tr("No frames in range yet.")
        largest = max((name for name in CATEGORIES if name not in NOT_OWN), key=model.categories.__getitem__)
        text = self.by_unit(
            self.tr("A frame of 10 ms takes {0} ms (RTF {1}); {2} is the largest part ({3})."),
            self.tr("A step of the lab takes {0} ms; {2} is the largest part ({3})."),
        ).format(
            milliseconds(model.own_ms),
            rtf_text(model.rtf),
            CATEGORY_TITLES[largest],
            percent(model.share(model.categories[largest])),
        )
        line = self.tree.explained()
        return f"{text} {explanation(line, self.tree.stages, self.tree.of_steps)}" if line is not None else text

    def table(self) -> Table:
        """Return categories, then stages, then the groups whose parts are known."""
        headers = [
            self.tr(text)
            for text in (
                "part",
                self.by_unit("ms per 10 ms frame", "ms per step"),
                "share",
                self.by_unit("before, ms per frame", "before, ms per step"),
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
        for name in CATEGORIES:
            before = f"{model.before[name]:.4f}" if model.before else None
            share = "" if name in NOT_OWN else percent(model.share(model.categories[name]))
            reason = reasons(model.reasons[name])[0] if name in model.reasons else ""
            figure = f"{model.categories[name]:.4f}"
            blank = [None] * (3 + len(PARTS))
            rows.append([CATEGORY_TITLES[name], figure, share, before, reason, "", *blank])
        for line in (*self.tree.stages, *self.tree.groups):
            figures = [f"{line.ms:.4f}", percent(line.share)]
            roofs: list[object] = [None] * 3
            if (point := found.get(line.name)) is not None:
                rates = (point.rate * 1e-9, point.roof * 1e-9)
                roofs = [f"{point.intensity:.3g}", *(f"{rate:.3g}" for rate in rates)]
            shares = {part.name: share_text(part) for part in line.parts}
            parts: list[object] = [shares.get(part) for part in PARTS]
            name = self.tr("all {0}").format(line.name) if line in self.tree.groups else line.name
            rows.append([name, *figures, None, line.verdict, line.evidence, *roofs, *parts])
        return headers, rows
