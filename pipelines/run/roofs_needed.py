"""Measures the roofs that the cost laws of a run name, as far as this machine's are not known yet.

At the beginning that is set-up like any other; when a live change names others, they are measured between two blocks
(some 40 ms each, once per machine), outside the wall time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from pipelines.kernel_roofs import work_of
from pipelines.run.calls_again import CallsAgain
from pipelines.scoring.roofs import KERNELS
from profiler.analysis.law import needed
from profiler.costs import ACCESS, CALL, KERNEL, Cost, Term
from profiler.errors import Cancelled
from profiler.machine.roofs import calibration
from profiler.machine.roofs.cpu import Step
from profiler.machine.roofs.table import Roof, RoofTable
from profiler.session.writer import SessionWriter
from profiler.spans import Lane, NullLane, Recorder

STAGE = "setup.roofs"

RUN_APART: Final = 1.0
"""Seconds from the beginning of a run to its end, at least, that count as two moments."""


class Judged(Protocol):
    """Something recorded, with its cost laws and the roofs that these are divided by."""

    calibration: RoofTable

    @property
    def costs(self) -> Mapping[tuple[int, int], Cost]:
        """By stage and epoch."""


def judge_alike(
    recordings: Sequence[Judged],
    progress: Callable[[str, float | None], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> None:
    """Add to the roofs of all recordings those that the laws of any name; they were the same for all before.

    Configurations that never ran name roofs that no session has: they are measured unless this machine's are known.
    An empty table stays empty: without rates and bandwidths a law says nothing. Raises Cancelled.
    """
    roof_table = recordings[0].calibration
    if not roof_table:
        return
    costs = [cost for each in recordings for cost in each.costs.values()]

    def told(what: str, share: float) -> None:
        if progress is not None:
            progress(f"measuring the machine: {what}", share)

    known = calibration.measure_terms(needed(costs), work_of, told, cancelled)
    kinds = (KERNEL, CALL, ACCESS)
    names = {term.roof for cost in costs for term in cost.terms or () if term.kind in kinds}
    roof_table = roof_table.merged(_named(known, names))
    for each in recordings:
        each.calibration = roof_table


def _named(roof_table: RoofTable, names: Collection[str]) -> RoofTable:
    def of(roofs: Iterable[Roof]) -> tuple[Roof, ...]:
        return tuple(roof for roof in roofs if roof.name in names)

    return RoofTable(of(roof_table.roofs), of(roof_table.lasting))


class NeededRoofs:
    """Takes the roofs of terms, each once in a run, and puts them into its session."""

    def __init__(
        self,
        journal: SessionWriter,
        recorder: Recorder,
        lane: Lane | NullLane,
        progress: Callable[[str, float | None], None],
        cancelled: Callable[[], bool],
        again: CallsAgain | None = None,
    ) -> None:
        """`again`: what times calls on while the run goes on."""
        self._again = again
        self._roof_table = RoofTable()
        self._journal, self._recorder, self._lane = journal, recorder, lane
        self._progress, self._cancelled = progress, cancelled
        self._stage = recorder.stage(STAGE, "setup")
        self._terms: dict[tuple[str, str, float, int], tuple[Term, int]] = {}

    def take(self, costs: Iterable[Cost], frame: int = 0) -> int:
        """From now on these `costs` count: measure what they name until it is done or the run is being stopped.

        Returns when that was, 0 where nothing lacked.
        """
        every = needed(costs)
        # A live change acts at once: what is known of its roofs will do.
        end = self._lacking(every, frame, settle=not frame)
        if self._again is not None:
            self._again.need(every, self._roof_table)
        return end

    def ahead(self, costs: Iterable[Cost]) -> None:
        """Measure what these `costs` name, which may count later; what counts now stays."""
        self._lacking(needed(costs), 0, settle=True)

    def _lacking(self, every: Iterable[tuple[Term, int]], frame: int, *, settle: bool) -> int:
        """Measure those of a run's terms that it has not met; returns when that was done, 0 where there were none."""
        start = self._recorder.clock()
        terms = [
            (term, threads)
            for term, threads in every
            if (term.kind, term.roof, term.bytes, threads) not in self._terms
        ]
        if not terms:
            return 0
        self._measure(terms, settle=settle)
        end = self._recorder.clock()
        self._lane.put(self._stage, start, end, frame, 0)
        return end

    def settle(self) -> None:
        """The run is over: take what is known of few moments, or of long ago, at one more, and judge by the middle of
        all."""
        if not self._terms:
            return
        self._measure(
            list(self._terms.values()),
            beside=calibration.pace(KERNELS),
            settle=True,
            apart=RUN_APART,
            aged=calibration.AGED_SECONDS,
        )
        if self._again is not None:
            # What the run itself met stays what its calls are judged by.
            self._again.tell(anew=True)

    def _measure(
        self,
        terms: Sequence[tuple[Term, int]],
        *,
        beside: Sequence[Step] = (),
        settle: bool,
        apart: float = calibration.MOMENT_SECONDS,
        aged: float = math.inf,
    ) -> None:
        with suppress(Cancelled):
            table = calibration.measure_terms(
                terms,
                work_of,
                lambda what, share: self._progress(f"measuring the machine: {what}", share),
                self._cancelled,
                beside=beside,
                settle=settle,
                apart=apart,
                aged=aged,
            )
            self._terms |= {(t.kind, t.roof, t.bytes, n): (t, n) for t, n in terms}
            names = {term.roof for term, _ in terms} | {step.key.name for step in beside}
            self._journal.calibration(_named(table, names).rows())
            self._roof_table = table
