"""The tree of the breakdown: categories, then scoring, search and the rest with their stages, each with a bar.

A bar is as long as its row's share of the longest one of its kind. That of a stage shows its parts in their colours;
that of a category shows above it, pale, what it was before the last change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import (
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from app.charts.raster import blended
from app.charts.scale import milliseconds, percent
from app.charts.swatch import paint_swatch
from app.style.plain_text import describe, fitting, write
from app.style.theme import CATEGORY_TITLES, font, theme
from app.views.breakdown_model import BreakdownModel, PartLine, StageLine
from app.views.part_bars import paint_strip
from app.views.stage_texts import reasons, tip, verdicts
from profiler.analysis.lod.series import CATEGORIES

NAME, BAR, MS, SHARE, VERDICT = range(5)
"""Columns."""

ROW = 20
"""Height of a row in pixels."""

LEAST_BAR = 60
"""Pixels that the column of bars keeps before anything else has room."""

GROUP_CATEGORY = {name: name for name in ("frontend", "search", "transfer", "overhead")}
"""Category whose colour a stage group takes; scoring is split by attribution and has none."""

REST = "rest"
"""Group of the stages that are neither of scoring nor of search."""

PARENTS = ("scoring", "search", REST)

ENTRY = Qt.ItemDataRole.UserRole
"""Role of a row's `Entry`, at its first column."""

_Index = QModelIndex | QPersistentModelIndex


class Entry(NamedTuple):
    """What a row shows. `key` tells it from all others; `line`: the stage or group that it is about.

    `share` of the longest bar; `before`: the same of the pale bar; `color`: a category or a token.
    """

    key: str
    name: str
    color: str
    share: float
    ms: str
    percent: str = ""
    verdict: tuple[str, ...] = ()
    parts: tuple[PartLine, ...] = ()
    before: float | None = None
    reason: tuple[str, ...] = ()
    line: StageLine | None = None
    strong: bool = False


class StageTree(QTreeView):
    """Categories and stages as rows that the mouse and the keyboard choose.

    Signals:
        chosen: name of the stage or group that somebody chose, None for none.
    """

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.stages: tuple[StageLine, ...] = ()
        self.groups: tuple[StageLine, ...] = ()
        self.choice: str | None = None
        self._hatched = False
        self._keys: list[str] = []
        self._items: dict[str, list[QStandardItem]] = {}
        self._model = QStandardItemModel(self)
        self._model.setHorizontalHeaderLabels(
            [self.tr("part"), "", self.tr("ms"), self.tr("share"), self.tr("verdict")]
        )
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for column in (MS, SHARE):
            self._model.setHeaderData(
                column, Qt.Orientation.Horizontal, right, Qt.ItemDataRole.TextAlignmentRole
            )
        self.setModel(self._model)
        self.setItemDelegate(_Delegate(self))
        self.setUniformRowHeights(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setIndentation(10)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAllColumnsShowFocus(True)
        header = self.header()
        header.setSectionsMovable(False)
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(10)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        describe(self, self.tr("Categories and stages"))
        self.selectionModel().currentRowChanged.connect(self._moved)
        self._filling = False

    # -- what is shown -------------------------------------------------------------------------

    def show_model(
        self,
        model: BreakdownModel | None,
        stages: tuple[StageLine, ...],
        groups: tuple[StageLine, ...] = (),
    ) -> None:
        """Show these figures; None shows nothing."""
        self.stages, self.groups = stages, groups
        entries = [] if model is None or not model.frames else self._entries(model)
        keys = [f"{parent}/{entry.key}" for parent, entry in entries]
        self._filling = True
        if keys != self._keys:
            self._rebuild(entries)
            self._keys = keys
        else:
            for _, entry in entries:
                _fill(self._items[entry.key], entry)
        self._filling = False
        self.viewport().update()

    def _entries(self, model: BreakdownModel) -> list[tuple[str, Entry]]:
        """Rows with the key of the row above them, which is empty at the top."""
        most = max(float(np.nanmax(model.ms)), 1e-12)
        if model.before_ms is not None:
            most = max(most, float(np.nanmax(model.before_ms)))
        found = []
        for index, name in enumerate(CATEGORIES):
            value = float(model.ms[index])
            before = None if model.before_ms is None else float(model.before_ms[index])
            zero = name in model.reasons and not before
            entry = Entry(
                f"category {name}",
                CATEGORY_TITLES[name],
                name,
                value / most,
                "" if zero else milliseconds(value),
                "" if zero else percent(model.share(value)),
                before=None if before is None else before / most,
                reason=reasons(model.reasons[name]) if zero else (),
            )
            found.append(("", entry))
        longest = max((line.ms for line in (*self.stages, *self.groups)), default=1.0) or 1.0
        known = {line.name: line for line in self.groups}
        for parent in PARENTS:
            mine = [line for line in self.stages if _parent_of(line) == parent]
            if not mine:
                continue
            group = known.get(parent)
            ms = sum(line.ms for line in mine) if group is None else group.ms
            title = self.tr("other stages") if parent == REST else parent
            shares = [line.share for line in mine]
            share = sum(s for s in shares if s is not None) if None not in shares else None
            if group is not None:
                share = group.share
            whole = Entry(
                parent,
                title,
                _color_of(parent),
                ms / longest,
                milliseconds(ms),
                percent(share),
                parts=() if group is None else group.parts,
                line=group,
                strong=True,
            )
            found.append(("", whole))
            found += [(parent, _stage_entry(line, longest)) for line in mine]
        return found

    def _rebuild(self, entries: Sequence[tuple[str, Entry]]) -> None:
        closed = [
            key
            for key, items in self._items.items()
            if items[0].hasChildren() and not self.isExpanded(items[0].index())
        ]
        place = self.verticalScrollBar().value()
        self._model.removeRows(0, self._model.rowCount())
        self._items = {}
        for parent, entry in entries:
            items = [QStandardItem() for _ in range(5)]
            _fill(items, entry)
            above = self._items[parent][0] if parent else self._model.invisibleRootItem()
            above.appendRow(items)
            self._items[entry.key] = items
        for parent in PARENTS:
            if parent in self._items:
                self.setExpanded(self._items[parent][0].index(), parent not in closed)
        self.verticalScrollBar().setValue(place)
        self._point_at_choice()

    def _point_at_choice(self) -> None:
        items = self._items.get(_key_of(self.choice))
        index = QModelIndex() if items is None else items[0].index()
        if self.currentIndex().siblingAtColumn(0) != index:
            self._filling, before = True, self._filling
            self.setCurrentIndex(index)
            self._filling = before

    # -- what is chosen ------------------------------------------------------------------------

    @property
    def rows(self) -> tuple[StageLine, ...]:
        """Groups, then stages."""
        return (*self.groups, *self.stages)

    def choose(self, name: str | None) -> None:
        """Explain this stage or group; None: the most expensive stage."""
        if name != self.choice:
            self.choice = name
            self._point_at_choice()
            self.chosen.emit(name)

    def explained(self) -> StageLine | None:
        """The stage or group that is explained: the one chosen, or the most expensive stage."""
        for line in self.rows:
            if line.name == self.choice:
                return line
        return self.stages[0] if self.stages else None

    def _moved(self, now: QModelIndex, _before: QModelIndex) -> None:
        if self._filling:
            return
        entry = now.siblingAtColumn(0).data(ENTRY) if now.isValid() else None
        line = entry.line if isinstance(entry, Entry) else None
        if line is not None and line.name != self.choice:
            self.choice = line.name
            self.chosen.emit(line.name)

    def stage_at(self, position: QPoint) -> StageLine | None:
        """The stage or group under a position of the viewport, or None."""
        entry = self.indexAt(position).siblingAtColumn(0).data(ENTRY)
        return entry.line if isinstance(entry, Entry) else None

    # -- looks ---------------------------------------------------------------------------------

    @property
    def hatched(self) -> bool:
        """Whether bars have hatches, as in a picture."""
        return self._hatched

    def set_picture(self, on: bool) -> None:
        """Hatch the bars, and show only rows that are whole."""
        self._hatched = on
        policy = (
            Qt.ScrollBarPolicy.ScrollBarAlwaysOff if on else Qt.ScrollBarPolicy.ScrollBarAsNeeded
        )
        self.setVerticalScrollBarPolicy(policy)
        self.setMaximumHeight(16_777_215)
        if on:
            room = self.height() - self.header().height()
            self.setMaximumHeight(self.header().height() + room // ROW * ROW)
        self.viewport().update()

    def resizeEvent(self, event: object) -> None:
        """Share the width out: names and figures as wide as they need, bars and verdicts the rest."""
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._share_width()

    def _share_width(self) -> None:
        metrics = QFontMetricsF(font())
        name = metrics.horizontalAdvance("score.gaussians") + 38
        ms, share = (metrics.horizontalAdvance(text) + 10 for text in ("00.000", "00.0 %"))
        short, long = (
            metrics.horizontalAdvance(text) + 12
            for text in ("instructions", "instruction-bound · B")
        )
        room = self.viewport().width() - name - ms
        # Bars first, then the verdict's first word, then shares, then all of the verdict.
        verdict = short if room >= LEAST_BAR + short else 0.0
        shares = room >= LEAST_BAR + short + share
        room -= share if shares else 0
        verdict = max(verdict, min(long, room - 2 * LEAST_BAR)) if verdict else 0.0
        self.setColumnHidden(SHARE, not shares)
        self.setColumnHidden(VERDICT, not verdict)
        widths = {NAME: name, BAR: max(room - verdict, 0), MS: ms, SHARE: share, VERDICT: verdict}
        for column, width in widths.items():
            if not self.isColumnHidden(column):
                self.header().resizeSection(column, int(width))


def _entry(index: _Index) -> Entry | None:
    """What the row of an index shows."""
    found = index.sibling(index.row(), NAME).data(ENTRY)
    return found if isinstance(found, Entry) else None


def _parent_of(line: StageLine) -> str:
    return line.group if line.group in PARENTS else REST


def _color_of(group: str) -> str:
    return GROUP_CATEGORY.get(group, "accent" if group == "scoring" else "muted")


def _key_of(name: str | None) -> str:
    return name if name in PARENTS else f"stage {name}"


def _stage_entry(line: StageLine, longest: float) -> Entry:
    return Entry(
        _key_of(line.name),
        line.name,
        _color_of(line.group),
        line.ms / longest,
        milliseconds(line.ms),
        percent(line.share),
        verdicts(line),
        line.parts,
        line=line,
    )


def _fill(items: Sequence[QStandardItem], entry: Entry) -> None:
    items[NAME].setData(entry, ENTRY)
    texts = (entry.name, "", entry.ms, entry.percent, entry.verdict[0] if entry.verdict else "")
    for item, text in zip(items, texts, strict=True):
        if item.text() != text:
            item.setText(text)


class _Delegate(QStyledItemDelegate):
    """Paints the cells; Qt paints selection and focus."""

    def __init__(self, tree: StageTree) -> None:
        super().__init__(tree)
        self._tree = tree

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        """All rows are equally high."""
        return QSize(40, ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """Draw one cell."""
        entry = _entry(index)
        if entry is None:
            return
        tokens = theme()
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(option.rect, tokens.color("hover"))
        place = QRect(option.rect)
        painter.setFont(font(1.0, strong=entry.strong))
        if index.column() == NAME:
            self._paint_name(painter, place, entry)
        elif index.column() == BAR:
            self._paint_bar(painter, place, entry)
        elif index.column() == VERDICT:
            self._paint_text(painter, place.adjusted(8, 0, 0, 0), "muted", *entry.verdict)
        elif not entry.reason:
            text = entry.ms if index.column() == MS else entry.percent
            painter.setPen(tokens.color("text" if index.column() == MS else "muted"))
            flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            write(painter, QRectF(place.adjusted(0, 0, -4, 0)), flags, text)
        painter.restore()

    def _paint_name(self, painter: QPainter, place: QRect, entry: Entry) -> None:
        left = place.left() + 2
        square = QRectF(left, place.center().y() - 4, 9, 9)
        if entry.key.startswith("category"):
            paint_swatch(painter, square, entry.color)
        else:
            stroke = QRectF(left + 1, place.top() + 4, 2, place.height() - 8)
            painter.fillRect(stroke, theme().color(entry.color))
        text = place.adjusted(16 if entry.key.startswith("category") else 9, 0, 0, 0)
        # The colour shows the group; where there is little room the text is the stage's own name.
        short = entry.name.partition(".")[2] or entry.name
        self._paint_text(painter, text, "text", entry.name, short)

    @staticmethod
    def _paint_text(painter: QPainter, place: QRect, ink: str, *texts: str) -> None:
        if texts:
            painter.setPen(theme().color(ink))
            text = fitting(QFontMetricsF(painter.font()), place.width() - 2, *texts)
            flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
            write(painter, QRectF(place), flags, text)

    def _paint_bar(self, painter: QPainter, place: QRect, entry: Entry) -> None:
        tokens = theme()
        if entry.reason:
            wide = place.adjusted(0, 0, self._tree.viewport().width() - place.right(), 0)
            painter.setClipping(False)
            self._paint_text(painter, wide, "muted", *entry.reason)
            return
        whole = QRectF(place).adjusted(0, 6, -6, -6)
        bar = QRectF(whole)
        bar.setWidth(max(2.0, whole.width() * entry.share))
        color = tokens.color(entry.color)
        if entry.before is not None:
            above = QRectF(bar.left(), bar.top() - 2, max(2.0, whole.width() * entry.before), 5)
            painter.fillRect(above, QColor(blended(color.name(), tokens.card, 0.55)))
            bar.setTop(bar.top() + 4)
            bar.setBottom(bar.bottom() + 2)
        if not entry.parts:
            painter.fillRect(bar, color)
            if self._tree.hatched and entry.key.startswith("category"):
                painter.fillRect(bar, tokens.hatch_brush(entry.color))
            return
        paint_strip(painter, bar, entry.parts)

    def helpEvent(
        self, event: object, view: QAbstractItemView, option: QStyleOptionViewItem, index: _Index
    ) -> bool:
        """Tool tip of a stage: its sentence, and its parts with their intervals."""
        from app.style.plain_text import show_tip

        entry = _entry(index)
        line = None if entry is None else entry.line
        text = "" if line is None else tip(line, self._tree.stages)
        show_tip(event.globalPos(), text, view)  # type: ignore[attr-defined]
        return True
