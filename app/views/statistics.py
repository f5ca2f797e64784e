"""How the time of single frames is spread: a histogram with its percentiles, and a way through the slowest frames."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.charts.scale import count
from app.model.playhead import Snapshot
from app.model.statistics import QUANTILES, WHOLE, Statistics, stage_names, statistics, word_at
from app.model.time_axis import TimeAxis
from app.style.keys import ToolButton
from app.style.plain_text import describe, set_tip
from app.views.histogram import Histogram
from app.views.table_twin import Table
from app.views.view import View
from app.widgets import ChoiceBox, Elided
from profiler.clock import FRAME_S
from profiler.plain import clock, milliseconds

AROUND = 40.0
"""Frames shown on both sides of one that is gone to."""


class StatisticsView(View):
    """How even the cost of frames is, and which frames are the slowest."""

    id = "statistics"
    title = "Statistics"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.stage = ChoiceBox(self.tr("Time of"), [(self.tr(WHOLE), WHOLE)])
        self.stage.currentIndexChanged.connect(lambda _: self._choose())
        self.next = ToolButton()
        self.next.setObjectName("table-toggle")
        self.next.setText(self.tr("Next slowest"))
        set_tip(self.next, self.tr("Go to the slowest frame, then to the next slowest"))
        describe(self.next, self.tr("Next slowest frame"))
        self.next.clicked.connect(lambda _=False: self.go_to_next())
        self.about = Elided()
        self.plot = Histogram()
        body = QWidget()
        column, row = QVBoxLayout(body), QHBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.stage, 1)
        row.addWidget(self.next)
        column.addLayout(row)
        column.addWidget(self.plot, 1)
        column.addWidget(self.about)
        self.set_body(body)
        axis.stage_changed.connect(self._soon.start)
        self._model: Statistics | None = None
        self._baseline: Statistics | None = None
        self._at = -1

    # -- drawing ---------------------------------------------------------------------------------

    def draw(self, snapshot: Snapshot) -> None:
        """Count the frames of the scope."""
        self._soon.stop()
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
        before = self._model
        self._model = statistics(snapshot.session, snapshot.track, name, scope.first, scope.last)
        self._baseline = self._of_baseline(snapshot, name)
        if not _same_slowest(before, self._model):
            self._at = -1
        self.plot.of_steps = snapshot.desk.of_steps
        self.plot.show_statistics(self._model)
        self._show_slowest()
        frames = count(0 if self._model is None else self._model.frames)
        text = self.by_unit(self.tr("{0} frames"), self.tr("{0} steps")).format(frames)
        pinned = self._pinned()
        self.set_note(*((f"{text} · {pinned}", pinned) if pinned else (text,)))

    def _of_baseline(self, snapshot: Snapshot, name: str) -> Statistics | None:
        """The same of the pinned range; None without one."""
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
        """Show nothing."""
        super().clear()
        self._model, self._baseline, self._at = None, None, -1
        self.plot.show_statistics(None)
        self.about.set_full("")
        self.set_note("")

    def model(self) -> Statistics | None:
        """Return the updated model; None without a frame."""
        if self._soon.isActive():
            self._redraw()
        return self._model

    def set_picture(self, on: bool) -> None:
        self.next.setVisible(not on)

    # -- the slowest frames ----------------------------------------------------------------------

    def go_to_next(self) -> None:
        """Go to the slowest frame, then to the next slowest; after the last, to the slowest again."""
        model = self.model()
        if model is None:
            return
        self._at = (self._at + 1) % len(model.slowest)
        second = int(model.slowest[self._at]) * FRAME_S
        self.axis.point_at((second, second + FRAME_S), AROUND)
        self._show_slowest()

    def _show_slowest(self) -> None:
        """Say which frame it is, with its word."""
        model, snapshot = self._model, self.snapshot
        if model is None or snapshot is None:
            self.about.set_full("")
            return
        at = max(self._at, 0)
        frame, ms = int(model.slowest[at]), float(model.slowest_ms[at])
        text = self.by_unit(self.tr("slowest frame"), self.tr("slowest step"))
        if at:
            text = self.by_unit(self.tr("{0}. slowest frame"), self.tr("{0}. slowest step")).format(at + 1)
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

    # -- in words and figures --------------------------------------------------------------------

    def summary(self) -> str:
        """Return one sentence: mean, percentiles and the slowest frame."""
        model = self._model
        if model is None:
            return self.tr("No frames in range yet.")
        quantiles = ", ".join(
            f"{title} {milliseconds(value)} ms" for title, value in zip(QUANTILES, model.quantiles, strict=True)
        )
        text = self.by_unit(
            self.tr("{0}: mean {1} ms per frame, {2}, highest {3} ms {4}."),
            self.tr("{0}: mean {1} ms per step, {2}, highest {3} ms {4}."),
        ).format(
            self._shown_name(model.name),
            milliseconds(model.mean),
            quantiles,
            milliseconds(model.highest),
            self._place(int(model.slowest[0])),
        )
        pinned = self._pinned()
        return f"{text} {pinned}." if pinned else text

    def table(self) -> Table:
        """Return one row for whole frames and one per stage."""
        headers = ["stage", "mean ms", *(f"{name} ms" for name in QUANTILES)]
        headers += ["highest ms", self.by_unit("frames", "steps"), "highest at", self.by_unit("at frame", "at step")]
        headers += ["baseline, mean ms", "baseline, p99 ms"]
        headers = [self.tr(text) for text in headers]
        snapshot = self.snapshot
        rows: list[list[object]] = []
        for name in () if snapshot is None else stage_names(snapshot.session, snapshot.track):
            assert snapshot is not None
            scope = snapshot.desk.scope
            one = statistics(snapshot.session, snapshot.track, name, scope.first, scope.last)
            if one is not None:
                frame = int(one.slowest[0])
                figures = (one.mean, *one.quantiles, one.highest)
                at = None if snapshot.desk.of_steps else clock(frame * FRAME_S, 2)
                baseline = self._of_baseline(snapshot, name)
                before = (None, None) if baseline is None else (baseline.mean, baseline.quantiles[-1])
                shown = [None if value is None else milliseconds(value) for value in before]
                rows.append([self._shown_name(name), *map(milliseconds, figures), one.frames, at, frame, *shown])
        return headers, rows


def _same_slowest(one: Statistics | None, other: Statistics | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.name == other.name and one.slowest[:1].tolist() == other.slowest[:1].tolist()
