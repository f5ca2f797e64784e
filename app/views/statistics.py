"""How the time of single frames is spread: a histogram with its percentiles, and a way through the slowest frames."""

from collections.abc import Callable
from itertools import pairwise

from PySide6.QtCore import QPointF, QRectF, QSignalBlocker, Qt
from PySide6.QtGui import QPen
from PySide6.QtWidgets import QHBoxLayout

from app.charts.scale import steps
from app.charts.still import LINE, StillPlot, small_metrics
from app.layout import lay_out
from app.model.playhead import Snapshot
from app.model.statistics import QUANTILES, WHOLE, Statistics, stage_names, statistics, word_at
from app.model.time_axis import TimeAxis
from app.style.plain_text import AT_RIGHT, Elided
from app.style.theme import theme
from app.views.table_twin import Table
from app.views.view import View, header_button
from app.widgets import ChoiceBox
from profiler.clock import FRAME_S
from profiler.plain import clock, count, milliseconds

AROUND = 40.0  # Frames shown on both sides of one that is gone to


class StatisticsView(View):
    """How even the cost of frames is, and which frames are the slowest."""

    id = "statistics"
    title = "Statistics"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.stage = ChoiceBox(self.tr("Time of"), [(self.tr(WHOLE), WHOLE)])
        self.stage.currentIndexChanged.connect(lambda _: self._choose())
        tip = self.tr("Go to the slowest frame, then to the next slowest")
        self.next = header_button(self.tr("Next slowest"), tip)
        self.next.clicked.connect(lambda _=False: self.go_to_next())
        self.about = Elided()
        self.plot = Histogram()
        self.set_column(lay_out(QHBoxLayout(), (self.stage, 1), self.next), (self.plot, 1), self.about)
        axis.stage_changed.connect(self._soon.start)
        self._model: Statistics | None = None
        self._baseline: Statistics | None = None
        self._slowest: tuple[str, int] | None = None  # Whose time is shown, and the slowest frame
        self._at = -1  # Which of the slowest frames was gone to last

    def draw(self, snapshot: Snapshot) -> None:
        scope = snapshot.desk.scope
        names = stage_names(snapshot.session, snapshot.track)
        known = [self.stage.itemData(at) for at in range(self.stage.count())]
        with QSignalBlocker(self.stage):
            if list(names) != known:
                self.stage.clear()
                for name in names:
                    self.stage.addItem(self._shown_name(name), name)
            self.stage.setCurrentIndex(max(0, self.stage.findData(self.axis.stage or WHOLE)))
        name = str(self.stage.currentData())
        model = self._model = statistics(snapshot.session, snapshot.track, name, scope.first, scope.last)
        self._baseline = self._of_baseline(snapshot, name)
        before, self._slowest = self._slowest, None if model is None else (name, int(model.slowest[0]))
        if before != self._slowest:
            self._at = -1
        self.plot.of_steps = snapshot.desk.of_steps
        self.plot.show_statistics(self._model)
        self._show_slowest()
        frames = count(0 if model is None else model.frames)
        text = self.by_unit(self.tr("{0} frames"), self.tr("{0} steps")).format(frames)
        pinned = self._pinned()
        self.set_note(*((f"{text} · {pinned}", pinned) if pinned else (text,)))

    def _of_baseline(self, snapshot: Snapshot, name: str) -> Statistics | None:
        of = snapshot.desk.baseline
        return None if of is None else statistics(snapshot.session, snapshot.track, name, of.first, of.last)

    def _pinned(self) -> str:
        """Mean and highest percentile of the baseline; empty without one."""
        baseline = self._baseline
        if self._model is None or baseline is None:
            return ""
        mean, high = map(milliseconds, (baseline.mean, baseline.quantiles[-1]))
        return self.tr("baseline: mean {0}, {1} {2} ms").format(mean, list(QUANTILES)[-1], high)

    def _choose(self) -> None:
        name = str(self.stage.currentData())
        self.axis.choose_stage(None if name == WHOLE else name)

    def clear(self) -> None:
        super().clear()
        self._baseline = self._slowest = None
        self.plot.show_statistics(None)
        self.about.set_full("")

    def set_picture(self, on: bool) -> None:
        self.next.setVisible(not on)

    def go_to_next(self) -> None:
        """Go to the slowest frame, then to the next slowest; after the last, to the slowest again."""
        self.settle()
        if self._model is not None:
            self._at = (self._at + 1) % len(self._model.slowest)
            second = int(self._model.slowest[self._at]) * FRAME_S
            self.axis.point_at((second, second + FRAME_S), AROUND)
            self._show_slowest()

    def _show_slowest(self) -> None:
        model, snapshot = self._model, self.snapshot
        if model is None or snapshot is None:
            self.about.set_full("")
            return
        at = max(self._at, 0)
        frame, ms = int(model.slowest[at]), float(model.slowest_ms[at])
        text = (f"{at + 1}. " if at else "") + self.by_unit(self.tr("slowest frame"), self.tr("slowest step"))
        parts = [f"{text}: {milliseconds(ms)} ms", self._place(frame)]
        if word := word_at(snapshot.session, frame):
            parts.append(f"“{word}”")
        tokens = snapshot.track.work_rows.get("search tokens")
        if tokens is not None:
            parts.append(self.tr("{0} tokens").format(count(float(tokens[frame : frame + 1][0]))))
        self.about.set_full(" · ".join(parts))

    def _shown_name(self, name: str) -> str:
        return self.by_unit(self.tr(WHOLE), self.tr("whole step")) if name == WHOLE else name

    def _place(self, frame: int) -> str:
        return self.by_unit(self.tr("at {0}").format(clock(frame * FRAME_S, 2)), self.tr("at step {0}").format(frame))

    def summary(self) -> str:
        model = self._model
        if model is None:
            return self.tr("No frames in range yet.")
        named = zip(QUANTILES, map(milliseconds, model.quantiles), strict=True)
        quantiles = ", ".join(f"{title} {ms} ms" for title, ms in named)
        text = self.by_unit(
            self.tr("{0}: mean {1} ms per frame, {2}, highest {3} ms {4}."),
            self.tr("{0}: mean {1} ms per step, {2}, highest {3} ms {4}."),
        )
        mean, highest, place = milliseconds(model.mean), milliseconds(model.highest), int(model.slowest[0])
        text = text.format(self._shown_name(model.name), mean, quantiles, highest, self._place(place))
        pinned = self._pinned()
        return f"{text} {pinned}." if pinned else text

    def table(self) -> Table:
        headers = ["stage", "mean ms", *(f"{name} ms" for name in QUANTILES), "highest ms"]
        headers += [self.by_unit("frames", "steps"), "highest at", self.by_unit("at frame", "at step")]
        headers = [self.tr(text) for text in (*headers, "baseline, mean ms", "baseline, p99 ms")]
        snapshot = self.snapshot
        if snapshot is None:
            return headers, []
        rows: list[list[object]] = []
        scope = snapshot.desk.scope
        for name in stage_names(snapshot.session, snapshot.track):
            one = statistics(snapshot.session, snapshot.track, name, scope.first, scope.last)
            if one is not None:
                frame, before = int(one.slowest[0]), self._of_baseline(snapshot, name)
                figures = [milliseconds(ms) for ms in (one.mean, *one.quantiles, one.highest)]
                at = None if snapshot.desk.of_steps else clock(frame * FRAME_S, 2)
                was = [None] * 2 if before is None else map(milliseconds, (before.mean, before.quantiles[-1]))
                rows.append([self._shown_name(name), *figures, one.frames, at, frame, *was])
        return headers, rows


LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 2 * LINE + 6, 2 * LINE + 6  # Around the histogram, pixels


class Histogram(StillPlot):
    """Frames over their time, and lines at the percentiles; of two sides, A is filled and B is a line."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: Statistics | None = None
        self._other: Statistics | None = None
        self.of_steps = False  # Whether what is counted are the steps of a lab
        self.setMinimumHeight(120)

    def show_statistics(self, shown: Statistics | None, other: Statistics | None = None) -> None:
        """Show another distribution; with `other`, which has the same edges, that of A and that of B."""
        self._shown, self._other = shown, other
        self.rebuild()

    def build(self) -> None:
        shown, other = self._shown, self._other
        area = QRectF(self.rect()).adjusted(LEFT, TOP, -RIGHT, -BOTTOM)
        if shown is None or area.width() < 20 or area.height() < 20:
            return
        most = max(1, *(int(one.counts.max()) for one in (shown, other) if one is not None))
        least, end = float(shown.edges[0]), float(shown.edges[-1])

        def x_of(value: float) -> float:
            return area.left() + (min(value, end) - least) / (end - least) * area.width()

        def y_of(value: float) -> float:
            return area.bottom() - value / most * area.height()

        left = [(y_of(v), count(v)) for v in steps(0, most, 4) if v == int(v)]
        wanted = max(3, int(area.width() / 45))
        bottom = [(x_of(v), f"{v:.6g}") for v in steps(least, end, wanted)]
        self.canvas.frame(area, left, bottom)
        bars = [
            QRectF(QPointF(x_of(low), y_of(number)), QPointF(max(x_of(low) + 1.0, x_of(high) - 1.0), area.bottom()))
            for (low, high), number in zip(pairwise(shown.edges.tolist()), shown.counts.tolist(), strict=True)
            if number
        ]
        self.canvas.bars(bars, theme().color("accent" if other is None else "waveform"))
        if other is None:
            self._lines(shown, area, x_of, {title: f"{title} " for title in QUANTILES}, "text")
        else:
            edges, counts = other.edges.tolist(), other.counts.tolist()
            outline = [QPointF(x_of(least), area.bottom())]
            outline += [QPointF(x_of(edge), y_of(n)) for edge, n in zip(edges, [*counts, 0], strict=True)]
            self.canvas.curve(outline, QPen(theme().color("accent"), 2), steps=True)
            self._lines(shown, area, x_of, {"p50": self.tr("A p50 ")}, "text")
            self._lines(other, area, x_of, {"p50": self.tr("B p50 ")}, "accent")
        unit = self.tr("ms of a step") if self.of_steps else self.tr("ms of a frame")
        unit = unit if other is None else self.tr("ms of a frame; A filled, B as a line")
        self.canvas.text(unit, QRectF(area.left(), self.height() - LINE, area.width(), LINE))
        counted = self.tr("steps") if self.of_steps else self.tr("frames")
        self.canvas.text(counted, QRectF(0, area.top() - LINE - 2, LEFT - 4, LINE), AT_RIGHT)

    def _lines(
        self, shown: Statistics, area: QRectF, x_of: Callable[[float], float], titles: dict[str, str], token: str
    ) -> None:
        """Lines at the percentiles that have titles, with texts that give way to each other."""
        metrics = small_metrics()
        for name, value in zip(QUANTILES, shown.quantiles, strict=True):
            if name not in titles:
                continue
            x = round(x_of(value)) + 0.5
            pen = QPen(theme().color(token), 1, Qt.PenStyle.DashLine)
            self.canvas.curve([QPointF(x, area.top()), QPointF(x, area.bottom())], pen, pairs=True)
            text = f"{titles[name]}{milliseconds(value)}"
            wide = metrics.horizontalAdvance(text) + 6
            x = min(max(x, area.left() + wide / 2), self.width() - wide / 2)
            rows = (QRectF(x - wide / 2, area.top() - (n + 1) * LINE - 2, wide, LINE) for n in (0, 1))
            if (box := self.canvas.free(rows)) is not None:
                self.canvas.text(text, box, token=token)
