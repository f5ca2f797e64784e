"""The tree of the breakdown: groups with their stages, each with a bar that shows the parts of its time."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from PySide6 import QtWidgets
from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPoint, QRectF, QSignalBlocker, QSize, Qt
from PySide6.QtGui import QContextMenuEvent, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QRegion, QResizeEvent

from app.model.desk_snapshot import DeskSnapshot, StageLine
from app.model.time_axis import TimeAxis
from app.style.plain_text import AT_LEFT, AT_RIGHT, describe, fitting, show_tip, write
from app.style.theme import font, theme
from app.views.stage_panel import group_color, name_of, paint_strip, tip, verdicts
from profiler.plain import milliseconds, percent

NAME, BAR, MS, SHARE, VERDICT = range(5)  # Columns
ROW = 20  # Height of a row in pixels
BAR_STEPS = 500  # Bars that differ by less than one part in this many look alike
LEAST_BAR = 50  # Pixels that the column of bars keeps before anything else has room

_Index = QModelIndex | QPersistentModelIndex


class Entry(NamedTuple):
    """What a row shows of a stage or group. `key` tells it from all others; `share`: of the longest bar."""

    key: str
    name: str
    line: StageLine
    share: float
    verdict: tuple[str, ...] = ()
    strong: bool = False


class _Row(QtWidgets.QTreeWidgetItem):
    """A row with its entry; the texts of its cells are what screen readers have."""

    entry: Entry
    _bar: tuple[object, ...] = ()

    def show_entry(self, entry: Entry) -> bool:
        """Show another entry; Qt paints cells with other texts again. Whether the bar looks different, too."""
        self.entry = entry
        parts = tuple(round(BAR_STEPS * part.share) for part in entry.line.parts)
        before, self._bar = self._bar, (round(BAR_STEPS * entry.share), parts)
        figures = milliseconds(entry.line.ms), percent(entry.line.share)
        texts = (entry.name, "", *figures, "".join(entry.verdict[:1]))
        for column, text in enumerate(texts):
            if self.text(column) != text:
                self.setText(column, text)
        return self._bar != before


class StageTree(QtWidgets.QTreeWidget):
    """Groups and stages as rows; mouse and keyboard choose the stage or group of an axis."""

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__()
        self._axis = axis
        self.stages: tuple[StageLine, ...] = ()
        self.groups: tuple[StageLine, ...] = ()
        self.of_steps = False  # Whether a frame is a step of a lab
        self._keys: list[str] = []
        self._rows: dict[str, _Row] = {}
        self.exposed = QRegion()  # What is being painted: Qt has a delegate paint whole rows
        self.setHeaderLabels([self.tr("stage"), "", self.tr("ms"), self.tr("share"), self.tr("verdict")])
        for column in (MS, SHARE):
            self.headerItem().setTextAlignment(column, AT_RIGHT)
        self.setItemDelegate(_Delegate(self))
        self.setUniformRowHeights(True)
        self.setEditTriggers(QtWidgets.QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setIndentation(10)
        self.setFrameShape(QtWidgets.QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QtWidgets.QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAllColumnsShowFocus(True)
        self.header().setSectionsMovable(False)
        self.header().setStretchLastSection(False)
        self.header().setMinimumSectionSize(10)
        self.header().setSectionResizeMode(QtWidgets.QHeaderView.ResizeMode.Fixed)
        describe(self, self.tr("Stages"))
        self.currentItemChanged.connect(self._moved)
        axis.stage_changed.connect(self._point_at_choice)

    def show_model(self, model: DeskSnapshot | None) -> None:
        self.stages, self.groups = ((), ()) if model is None else (model.stages, model.groups)
        self.of_steps = model is not None and model.of_steps
        entries = [*self._entries(model)] if model is not None and model.frames else []
        keys = [f"{parent}/{entry.key}" for parent, entry in entries]
        with QSignalBlocker(self):
            if keys != self._keys:
                self._rebuild(entries)
                self._keys = keys
            for _, entry in entries:
                row = self._rows[entry.key]
                if row.show_entry(entry):
                    self.update(self.indexFromItem(row, BAR))

    def _entries(self, model: DeskSnapshot) -> Iterator[tuple[str, Entry]]:
        """Rows of the groups, each followed by its stages, with the key of the row above them."""
        longest = max((line.ms for line in model.groups), default=1.0) or 1.0
        for group in model.groups:
            yield "", Entry(group.name, name_of(group), group, group.ms / longest, strong=True)
            for line in (one for one in model.stages if one.group == group.name):
                # On a second lane, a stage is known by that as well.
                key = f"stage {line.name}" + (f" {line.lane}" if line.share is None else "")
                yield group.name, Entry(key, line.name, line, min(line.ms / longest, 1.0), verdicts(line))

    def _rebuild(self, entries: Sequence[tuple[str, Entry]]) -> None:
        """Make rows for other keys; what was closed stays so, and the place is kept."""
        closed = {key for key, row in self._rows.items() if row.childCount() and not row.isExpanded()}
        place = self.verticalScrollBar().value()
        self.clear()
        self._rows = {}
        for parent, entry in entries:
            row = self._rows[entry.key] = _Row(self._rows[parent] if parent else self)
            row.show_entry(entry)
        for key, row in self._rows.items():
            if row.childCount():
                row.setExpanded(key not in closed)
        self.verticalScrollBar().setValue(place)
        self._point_at_choice()

    def _point_at_choice(self) -> None:
        chosen = self._axis.stage
        row = next((row for row in self._rows.values() if row.entry.line.name == chosen), None)
        if self.currentItem() is not row:
            with QSignalBlocker(self):
                self.setCurrentItem(row)  # type: ignore[arg-type]  # None: no row

    def explained(self) -> StageLine | None:
        chosen = (line for line in (*self.groups, *self.stages) if line.name == self._axis.stage)
        return next(chosen, self.stages[0] if self.stages else None)

    def _moved(self, now: _Row | None) -> None:
        if now is not None:
            self._axis.choose_stage(now.entry.line.name)

    def stage_at(self, position: QPoint) -> StageLine | None:
        row = self.itemAt(position)
        return row.entry.line if isinstance(row, _Row) else None

    def event(self, event: QEvent) -> bool:
        """The menu key opens the menu of the chosen row; Qt would take the row in the middle."""
        if isinstance(event, QContextMenuEvent) and event.reason() == QContextMenuEvent.Reason.Keyboard:
            self.scrollTo(self.currentIndex())
            self.customContextMenuRequested.emit(self.visualRect(self.currentIndex()).center())
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        self.exposed = event.region()
        super().paintEvent(event)

    def set_picture(self, on: bool) -> None:
        policy = Qt.ScrollBarPolicy.ScrollBarAlwaysOff if on else Qt.ScrollBarPolicy.ScrollBarAsNeeded
        self.setVerticalScrollBarPolicy(policy)
        self.setMaximumHeight(16_777_215)
        if on:
            self.verticalScrollBar().setValue(0)
            room = self.height() - self.header().height()
            self.setMaximumHeight(self.header().height() + room // ROW * ROW)
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        metrics = QFontMetricsF(font())
        name = metrics.horizontalAdvance("score.gaussians") + 38
        ms, share = (metrics.horizontalAdvance(text) + 10 for text in ("00.000", "00.0 %"))
        short, long = (metrics.horizontalAdvance(text) + 12 for text in ("instructions", "instruction-bound · B"))
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


class _Delegate(QtWidgets.QStyledItemDelegate):
    """Paints the cells; Qt paints selection and focus."""

    def __init__(self, tree: StageTree) -> None:
        super().__init__(tree)
        self._tree = tree

    def sizeHint(self, option: QtWidgets.QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(40, ROW)

    def paint(self, painter: QPainter, option: QtWidgets.QStyleOptionViewItem, index: _Index) -> None:
        entry, tokens, place = self._entry(index), theme(), QRectF(option.rect)
        if not self._tree.exposed.intersects(option.rect):
            return
        color = tokens.color(group_color(entry.line.group))
        painter.save()
        if option.state & QtWidgets.QStyle.StateFlag.State_Selected:
            painter.fillRect(option.rect, tokens.color("hover"))
        painter.setFont(font(1.0, strong=entry.strong))
        if index.column() == NAME:
            painter.fillRect(QRectF(place.left() + 3, place.top() + 4, 2, place.height() - 8), color)
            # The colour shows the group; where there is little room the text is the stage's own name.
            short = entry.name.partition(".")[2] or entry.name.partition(" the ")[0]
            self._paint_text(painter, place.adjusted(9, 0, 0, 0), "text", entry.name, short)
        elif index.column() == BAR:
            bar = place.adjusted(0, 6, -6, -6)
            bar.setWidth(max(2.0, bar.width() * entry.share))
            if entry.line.parts:
                paint_strip(painter, bar, entry.line.parts)
            else:
                painter.fillRect(bar, color)
        elif index.column() == VERDICT:
            self._paint_text(painter, place.adjusted(8, 0, 0, 0), "muted", *(entry.verdict or ("",)))
        else:
            painter.setPen(tokens.color("text" if index.column() == MS else "muted"))
            write(painter, place.adjusted(0, 0, -4, 0), AT_RIGHT, index.data())
        painter.restore()

    @staticmethod
    def _paint_text(painter: QPainter, place: QRectF, ink: str, *texts: str) -> None:
        painter.setPen(theme().color(ink))
        write(painter, place, AT_LEFT, fitting(QFontMetricsF(painter.font()), place.width() - 2, *texts))

    def helpEvent(
        self,
        event: QHelpEvent,
        view: QtWidgets.QAbstractItemView,
        option: QtWidgets.QStyleOptionViewItem,
        index: _Index,
    ) -> bool:
        text = tip(self._entry(index).line, self._tree.stages, self._tree.of_steps) if index.isValid() else ""
        show_tip(event.globalPos(), text, view)
        return True

    def _entry(self, index: _Index) -> Entry:
        row = self._tree.itemFromIndex(index)
        assert isinstance(row, _Row)
        return row.entry
