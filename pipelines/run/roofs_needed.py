"""Measures the roofs that the cost laws of a run name, as far as this machine's are not known yet.

At the beginning that is set-up like any other; when a live change names others, they are measured between two blocks
(some 40 ms each, once per machine), outside the wall time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from pipelines.kernel_roofs import work_of
from profiler.analysis.law import needed
from profiler.costs import Cost
from profiler.errors import Cancelled
from profiler.machine.roofs import calibration
from profiler.session.writer import SessionWriter
from profiler.spans import Lane, NullLane, Recorder

STAGE = "setup.roofs"


class NeededRoofs:
    """Takes the roofs of terms, each once in a run, and puts them into its session."""

    def __init__(
        self,
        journal: SessionWriter,
        recorder: Recorder,
        lane: Lane | NullLane,
        progress: Callable[[str, float | None], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self._journal, self._recorder, self._lane = journal, recorder, lane
        self._progress, self._cancelled = progress, cancelled
        self._stage = recorder.stage(STAGE, "setup")
        self._known: set[tuple[str, str, float, int]] = set()

    def take(self, costs: Iterable[Cost], frame: int = 0) -> int:
        """Measure what `costs` name until it is done or the run is being stopped.

        Returns when that was, 0 where nothing lacked.
        """
        terms = [
            (term, threads)
            for term, threads in needed(costs)
            if (term.kind, term.roof, term.bytes, threads) not in self._known
        ]
        if not terms:
            return 0
        start = self._recorder.clock()
        with suppress(Cancelled):
            table = calibration.measure_terms(
                terms,
                work_of,
                lambda what, share: self._progress(f"measuring the machine: {what}", share),
                self._cancelled,
            )
            self._known |= {(t.kind, t.roof, t.bytes, threads) for t, threads in terms}
            names = {term.roof for term, _ in terms}
            self._journal.calibration(
                row
                for row, roof in zip(table.rows(), table.roofs, strict=True)
                if roof.name in names
            )
        end = self._recorder.clock()
        self._lane.put(self._stage, start, end, frame, 0)
        return end
