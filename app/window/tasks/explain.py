"""Explain a stage: `asrscope explain` on the session shown; how long it took hot, cold and reshaped, and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtWidgets import QWidget

from app.model.report import Printed, read_printed
from app.style.plain_text import describe
from app.views.labs.card import Panels
from app.window.tasks.page import VERB, TaskPage
from app.window.tasks.workbench import Workbench
from pipelines.labs.chart import Axis, Bars, Chart
from profiler.analysis.categories import PART_NAMES
from profiler.plain import counted

if TYPE_CHECKING:
    from app.model.desk_snapshot import StageLine

CHART: Final = 170
"""Least height of the chart in pixels."""

EXPLAIN: Final = (*VERB, "explain", "--json")


class Explanation(TaskPage):
    """What the time of one stage consists of, as soon as it has been found out."""

    def __init__(
        self,
        session: Path,
        stage: str,
        parent: QWidget,
        command: Sequence[str] = EXPLAIN,
        recorded: StageLine | None = None,
    ) -> None:
        self._recorded = recorded
        self.chart: Panels | None = None
        super().__init__(
            self.tr("Explain {0}").format(stage),
            (*command, str(session), stage),
            self.tr("Decoding some seconds of the session's audio again, the stage hot, cold and reshaped …"),
            parent,
        )

    def show_result(self, printed: bytes) -> None:
        """Show sentences and tables."""
        tree = read_printed(printed)
        whole = tree.ways[0].us_per_frame
        rounds = counted(tree.rounds, self.tr("round"), self.tr("rounds"))
        state = self.tr("Measured on this machine, now: {0} over {1}.").format(rounds, tree.audio)
        self.state.setText(" ".join([state, *tree.notes]))
        self.add_sentence(self._both_measurements(tree))
        self.chart = Panels(_chart(tree.ways))
        describe(self.chart, self.tr("How long the stage took in each variant"))
        self.chart.setMinimumHeight(CHART)
        self.add_widget(self.chart, 4)
        titles = ("done again", "µs per frame", "interquartile range", "of the run", "what that is")
        rows = [
            [
                way.name,
                f"{way.us_per_frame:.2f}",
                f"{way.low:.2f} – {way.high:.2f}",
                f"{way.us_per_frame / whole:.2f}",
                way.what,
            ]
            for way in tree.ways
        ]
        title = self.tr("How long the stage took in each variant")
        self.add_table(title, ([self.tr(text) for text in titles], rows), 3)
        if tree.parts:
            titles = ("part", "here", "interval", "in the session", "interval")
            title = self.tr("What the stage's time consists of")
            headers = [self.tr(text) for text in titles]
            self.add_table(title, (headers, self._part_rows(tree)), 4)
        self.add_sentence(tree.conclusion)

    def _both_measurements(self, tree: Printed) -> str:
        """What the stage took here, and in the session: they are two measurements."""
        graded = " · ".join(filter(None, (tree.verdict, tree.evidence)))
        here = self.tr("Here {0} µs per frame ({1})").format(f"{tree.us_per_frame:.2f}", graded)
        if self._recorded is None:
            return f"{here}. {tree.sentence}"
        line = self._recorded
        there = " · ".join(filter(None, (line.verdict, line.evidence)))
        beside = self.tr("in the session {0} µs per frame ({1})")
        return f"{here}; {beside.format(f'{1e3 * line.ms:.2f}', there)}. {tree.sentence}"

    def _part_rows(self, tree: Printed) -> list[list[object]]:
        recorded = {} if self._recorded is None else {p.name: p for p in self._recorded.parts}
        parts = tree.parts or {}
        total = sum(parts.values()) or 1.0
        rows: list[list[object]] = []
        for key, value in parts.items():
            name, there = key.removesuffix("_s"), recorded.get(key.removesuffix("_s"))
            low, high = ((ends or {}).get(key, 0.0) / total for ends in (tree.parts_low, tree.parts_high))
            row: list[object] = [PART_NAMES[name], _percent(value / total), _interval(low, high)]
            if there is not None:
                row += [_percent(there.share), _interval(there.low, there.high)]
            rows.append([*row, *[""] * (5 - len(row))])
        return rows


def _chart(variants: Sequence[Printed]) -> Chart:
    values, low, high = (tuple(getattr(one, name) for one in variants) for name in ("us_per_frame", "low", "high"))
    names = tuple(one.name for one in variants)
    return Chart(Axis("", categories=names), Axis("µs per frame", low=0.0), (Bars("", values, low, high),))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _interval(low: float, high: float) -> str:
    return f"{100 * low:.0f} – {100 * high:.0f} %"


def begin(bench: Workbench, stage: str = "") -> None:
    """Find out what the time of a stage consists of; without a name, of the one that the breakdown explains."""
    session = bench.session()
    chosen = None if session is None else bench.stage(stage)
    if session is not None and chosen is not None:
        name, recorded = chosen
        bench.place(Explanation(session, name, bench.window, recorded=recorded), False)
