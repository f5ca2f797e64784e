"""Which objects of a run belong to which component, for the readings of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pipelines.run.decode import Decoder
from pipelines.run.measurements import RunMeasurements
from pipelines.run.recogniser import Recogniser
from pipelines.search.viterbi import Viterbi
from profiler.machine import memory
from profiler.machine.memory import Parts
from profiler.machine.sampler import Reading
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder

PACKAGES: Final = ("pipelines", "profiler")

META: Final = "memory"
"""Key of a session's meta: `mappings`, resident bytes after set-up by what is mapped, and `reserved`, by component."""


class RunMemory:
    """Reads what the components of a run hold."""

    def __init__(
        self,
        recognisers: Sequence[Recogniser],
        decoder: Decoder,
        recorder: Recorder,
        journal: SessionWriter,
        measurements: RunMeasurements | None,
    ) -> None:
        """`recognisers`: all that the run has, two where it decodes two configurations in turns."""
        self._recognisers, self._decoder, self._recorder = recognisers, decoder, recorder
        self._journal, self._measurements = journal, measurements
        self.meter = memory.Meter(self.parts, PACKAGES)

    def parts(self) -> Parts:
        """The components in order of precedence: a scorer records on lanes, and replays hold the search."""
        all_of = self._recognisers
        searches = [one.search for one in all_of]
        yield "lattice", [held for one in searches if isinstance(one, Viterbi) for held in one.lattice]
        yield "graph", [one.graph for one in searches]
        yield "recorder", [self._recorder]
        yield "tokens", searches
        yield "model", [one.scorer for one in all_of]
        yield "frontend", [*(one.frontend for one in all_of), *self._decoder.features]
        yield "recorder", [self._journal, self._measurements, *(one.devices for one in all_of)]

    @contextmanager
    def recorded(self) -> Iterator[Mapping[str, Reading]]:
        """Record the memory at the begin and the end of the context; gives what a sampler reads in between.

        Nothing where the system does not tell.
        """
        try:
            self._record()
        except OSError:
            yield {}
            return
        yield {"parts of memory": self.meter.read}
        self._record()

    def _record(self) -> None:
        usage = self.meter.measure()
        self._journal.sample(self._recorder.clock(), usage.values())
        reserved = {name: held.reserved for name, held in usage.parts.items()}
        self._journal.meta(META, {"reserved": reserved, "mappings": memory.mappings()})
