"""Breakdown: where the time of an average frame went, by category and stage, next to that before a change."""

from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import QPoint, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QStackedLayout, QVBoxLayout, QWidget

from app.charts.legend import Legend
from app.layout import lay_out, styled
from app.model.desk_snapshot import DeskSnapshot
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import Label, add_entry, describe, new_menu, set_tip
from app.style.theme import CATEGORY_TITLES, blended, theme
from app.views.icicle import Icicle, icicle_model
from app.views.roofline_model import points
from app.views.stage_panel import StagePanel, before_text, explanation, reasons, share_text, sum_text, verdicts
from app.views.stage_tree import ROW, StageTree
from app.views.table_twin import Table
from app.views.view import View
from profiler.analysis.categories import CATEGORIES, NOT_OWN, PART_NAMES, PARTS, THROTTLED
from profiler.plain import milliseconds, percent, rtf_text

NOT_NAMED = 0.001  # Share of the sum up to which throttled is not named: a host takes next to nothing of most machines

HEIGHT, BEFORE = 15, 5  # Pixels of the bar, and of the pale one above it

OWN = tuple(name for name in CATEGORIES if name not in NOT_OWN)


class CategoryBar(QWidget):
    """One bar, a pale one above it, and its key; the tool tip has the figures and says why a category is zero."""

    def __init__(self) -> None:
        super().__init__()
        self._now: Mapping[str, float] = {}
        self._before: Mapping[str, float] = {}
        self.key = Legend({}, gutter=0)
        lay_out(QVBoxLayout(self), self.key, margins=(0, BEFORE + 1 + HEIGHT + 2, 0, 0))
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def show_model(self, model: DeskSnapshot) -> None:
        after = sum(model.after.values())
        # The pale bar of a pair is to the other as the same speech before is to the same speech now.
        scale = 1.0 if model.baseline is not None or not after else model.own_ms / after
        before = {name: scale * model.before.get(name, 0.0) for name in OWN}
        shown = {name: model.categories[name] for name in OWN}, before
        if shown != (self._now, self._before):
            self._now, self._before = shown
            self.update()
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
                titles[name] = f"{title}: {briefly}"
                lines.append(f"{title}: {why}")
            else:
                share = percent(model.share(ms))
                titles[name] = f"{title} {share}"
                was = self.tr("; pale: {0} ms before").format(milliseconds(model.before[name])) if before[name] else ""
                lines.append(f"{title}: {figure}, {share}{was}")
        self.key.set_titles(titles)
        describe(self, self.tr("Categories"), "; ".join(lines))
        set_tip(self, "\n".join(lines))

    def paintEvent(self, event: QPaintEvent) -> None:
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
                    else:
                        painter.fillRect(place, color)
                        painter.fillRect(place, tokens.hatch_brush(name))


EXPLAINED = ("scoring", "search")  # Groups whose stages can be done again, to explain them
LEAST_TREE = 6 * ROW  # Pixels of the tree in which all groups are in sight below its heading


class BreakdownView(View):
    """The sum, the bar of the categories, the tree or icicle of the stages, and the stage that is explained."""

    id = "breakdown"
    title = "Breakdown"
    least_in_picture = 274  # The categories, their sum and the groups
    explain = Signal(str)  # Somebody wants to know what the time of this stage consists of
    confirm = Signal(str)  # Somebody wants to know whether the verdict of this stage survives a change

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.tree, self.icicle = StageTree(axis), Icicle()
        self.bar = CategoryBar()
        self.panel = StagePanel()
        self.sum = styled(Label(), strong=True)
        self.sum.setWordWrap(True)
        self._stages = QStackedLayout()
        self._column = self.set_column(self.sum, self.bar, (self._stages, 1), self.panel, spacing=4)
        for part in (self.tree, self.icicle):  # not before the layout has a widget: the first would be a window
            self._stages.addWidget(part)
        tip = self.tr("The same stages side by side, as wide as their time, above the parts of each")
        icicle = self.add_page("icicle", self.tr("Icicle"), tip)
        icicle.toggled.connect(lambda shown: self._stages.setCurrentIndex(int(shown)))
        self.icicle.chosen.connect(axis.choose_stage)
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.tree.customContextMenuRequested.connect(self._open_menu)
        # Return on a stage opens its menu; it does not start an explanation, which takes a minute.
        self.tree.activated.connect(lambda index: self._open_menu(self.tree.visualRect(index).center()))
        axis.stage_changed.connect(self._soon.start)
        self._model: DeskSnapshot | None = None

    def _open_menu(self, position: QPoint) -> None:
        if (menu := self.menu_at(position)) is not None:
            menu.popup(self.tree.viewport().mapToGlobal(position))

    def menu_at(self, position: QPoint) -> QMenu | None:
        line = self.tree.stage_at(position)
        if line is None or line not in self.tree.stages:
            return None
        menu = new_menu(line.name, self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        can = line.group in EXPLAINED
        entries = (self.tr("Explain this stage"), self.explain), (self.tr("Confirm its verdict"), self.confirm)
        for text, wanted in entries:
            entry = add_entry(menu, text, partial(wanted.emit, line.name) if can else None)
            if not can:
                set_tip(entry, self.tr("Only stages of scoring and search can be done again."))
                menu.setToolTipsVisible(True)
        return menu

    def draw(self, snapshot: Snapshot) -> None:
        self._show(snapshot.desk)
        self.set_note(
            self.by_unit(self.tr("ms per 10 ms frame"), self.tr("ms per step of the lab")),
            self.by_unit(self.tr("ms/frame"), self.tr("ms/step")),
        )

    def _show(self, model: DeskSnapshot | None) -> None:
        self._model = model
        tree = self.tree
        tree.show_model(model)
        line = tree.explained()
        known = model is not None and model.frames > 0
        for part in (self.sum, self.bar):
            part.setVisible(known)
        if known and model is not None:
            self.sum.setText("\n".join(filter(None, (sum_text(model), before_text(model)))))
            self.bar.show_model(model)
        if self.page:
            blocks = icicle_model(model, self.by_unit("whole frame", "whole step")) if model is not None else ()
            self.icicle.show_blocks(blocks, None if line is None else line.name, tree.of_steps)
        self.panel.above = LEAST_TREE + sum(part.sizeHint().height() for part in (self.sum, self.bar)) * known
        if line is None:
            self.panel.show_line(None, "", "")
            return
        verdict = verdicts(line)[0] if line not in tree.groups else self.tr("all stages")
        head = " · ".join(filter(None, (line.name, verdict)))
        self.panel.show_line(line, head, explanation(line, tree.stages, tree.of_steps))

    def clear(self) -> None:
        super().clear()
        self._show(None)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.panel.updateGeometry()

    def set_picture(self, on: bool) -> None:
        """In a picture nothing scrolls: rows are whole, and the panel is there if it leaves room for the stages."""
        needed = self.panel.needed(self.panel.width())
        room = self._stages.geometry().height() + (self.panel.height() if not self.panel.isHidden() else 0)
        self.panel.setVisible(not on or room - needed >= LEAST_TREE)
        self._column.activate()
        self.tree.set_picture(on)

    def summary(self) -> str:
        model = self._model
        if model is None or not model.frames:
            return self.tr("No frames in range yet.")
        largest = max(OWN, key=model.categories.__getitem__)
        text = self.by_unit(
            self.tr("A frame of 10 ms takes {0} ms (RTF {1}); {2} is the largest part ({3})."),
            self.tr("A step of the lab takes {0} ms; {2} is the largest part ({3})."),
        )
        share = percent(model.share(model.categories[largest]))
        text = text.format(milliseconds(model.own_ms), rtf_text(model.rtf), CATEGORY_TITLES[largest], share)
        line = self.tree.explained()
        return f"{text} {explanation(line, self.tree.stages, self.tree.of_steps)}" if line is not None else text

    def table(self) -> Table:
        now = self.by_unit("ms per 10 ms frame", "ms per step")
        before = self.by_unit("before, ms per frame", "before, ms per step")
        columns = "part", now, "share", before, "verdict", "grade", "op/byte", "Gop/s", "roof Gop/s"
        headers = [*map(self.tr, columns), *(PART_NAMES[name] for name in PARTS)]
        model = self._model
        rows: list[list[object]] = []
        if model is None or not model.frames:
            return headers, rows
        found = {} if model.costs is None else {point.name: point for point in points(model.costs.stages)}
        for name in CATEGORIES:
            was = f"{model.before[name]:.4f}" if model.before else None
            share = "" if name in NOT_OWN else percent(model.share(model.categories[name]))
            reason = reasons(model.reasons[name])[0] if name in model.reasons else ""
            blank = [None] * (3 + len(PARTS))
            rows.append([CATEGORY_TITLES[name], f"{model.categories[name]:.4f}", share, was, reason, "", *blank])
        for line in (*self.tree.stages, *self.tree.groups):
            point, shares = found.get(line.name), {part.name: share_text(part) for part in line.parts}
            rates = (None,) * 3 if point is None else (point.intensity, point.rate * 1e-9, point.roof * 1e-9)
            roofs = [None if rate is None else f"{rate:.3g}" for rate in rates]
            name = self.tr("all {0}").format(line.name) if line in self.tree.groups else line.name
            figures = [f"{line.ms:.4f}", percent(line.share), None, line.verdict, line.evidence]
            rows.append([name, *figures, *roofs, *map(shares.get, PARTS)])
        return headers, rows
