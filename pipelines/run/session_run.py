"""One run from start to end: session file, recorder, samplers, recogniser, decode loop.

The command line uses it in-process, the window through its worker process.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from threadpoolctl import threadpool_limits

from pipelines.config import Config
from pipelines.device import HOST
from pipelines.models.ctc.front_end import CtcFrontEnd
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.measurements import RunMeasurements
from pipelines.run.order import PlaylistOrder
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Progress, Recogniser, build
from pipelines.run.request import Request, RunResult
from pipelines.scoring import peaks
from pipelines.search.viterbi import Viterbi
from profiler import counting
from profiler.counting import CountingLane
from profiler.device.time import EVENTS
from profiler.errors import Cancelled
from profiler.files import paths
from profiler.machine import describe, energy, memory
from profiler.machine.counters import Group
from profiler.machine.memory import Parts
from profiler.machine.roofs import calibration, cpu, table
from profiler.machine.sampler import Reading, watching
from profiler.plain import one_line
from profiler.session.writer import Journal, NullWriter, SessionWriter
from profiler.spans import Lane, NullLane, Recorder


@dataclass
class Outcome:
    """How a run ended: closed (to its end), stopped (by a person) or failed (`problem` says why).

    `notes`: what was left out or read otherwise of transcripts, model, dictionary, language model or grammar.
    """

    session: Path | None
    state: str
    result: RunResult
    setup_ns: int = 0
    problem: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def problems(self) -> list[str]:
        return [*self.result.refused, *filter(None, [self.problem])]


class RunOrder(Protocol):
    """Chooses what a run decodes, in which order and with which settings."""

    @property
    def about(self) -> Mapping[str, Any]:
        """The initial entries in the session's meta."""

    def prepare(self, recogniser: Recogniser, build: Callable[[Config], Recogniser]) -> None:
        """Prepare what is needed in addition to `recogniser`; part of set-up, and may raise Cancelled."""

    def run(self, decoder: Decoder, items: Sequence[Item], journal: Journal) -> None:
        """Decode `items` until done or a stop request."""


def execute(
    request: Request,
    control: Control,
    progress: Progress,
    running: Callable[[Path | None], None] = lambda session: None,
    order: RunOrder | None = None,
) -> Outcome:
    """Run `request`; `running` is called when the session file exists and can be followed.

    `order`: another order than that of the files, such as two configurations interleaved. BadInput or OSError (one
    sentence) for what makes a run impossible; later problems end up in the outcome, and what was recorded stays.
    """
    control.config = request.config
    items, earlier = request.playlist.items, request.playlist.notes
    order = order or PlaylistOrder(request.repeat, control, progress)
    recorder = Recorder()
    group = Group() if request.config.counters and request.out is not None else None
    with control.opening:
        journal, lane = _open(request, recorder, items, order.about, group)
        control.give_up = partial(journal.close, "stopped")
    running(request.out)
    outcome = Outcome(request.out, "stopped", RunResult())
    state = "failed"
    measurements: RunMeasurements | None = None
    try:
        start = recorder.clock()
        try:
            recognisers = _prepare(request, control, progress, recorder, journal, lane, order, earlier)
        except Cancelled:
            state = "stopped"
            return outcome
        finally:
            control.give_up = None
        outcome.setup_ns = recorder.clock() - start
        recogniser = recognisers[0]
        outcome.notes = (*earlier, *recogniser.notes)
        if isinstance(lane, Lane) and isinstance(journal, SessionWriter):
            measurements = RunMeasurements(recorder, lane, request.config.replay)
        decoder = Decoder(recogniser, recorder, lane, journal, control, measurements)
        recorded: AbstractContextManager[Mapping[str, Reading]] = nullcontext({})
        if measurements is not None and isinstance(journal, SessionWriter):
            recorded = RunMemory(recognisers, decoder, recorder, journal, measurements).recorded()
        outcome.result = decoder.result
        threads = request.config.threads
        with (
            _undisturbed(threads),
            recorded as readings,
            counting.counting(lane, group, journal, threads) as report,
            watching(journal, report, readings) if request.out is not None else nullcontext(),
        ):
            progress("decoding", None)
            order.run(decoder, items, journal)
        timers = [work.timer for work in recogniser.devices.values()]
        if events := sum(timer.events for timer in timers):
            cost = round(max(timer.ns_per_event for timer in timers), 1)
            recording_ns = sum(timer.recording_ns for timer in timers)
            journal.meta(EVENTS, {"events": events, "ns_per_event": cost, "recording_ns": recording_ns})
        if measurements is not None and (held := measurements.notes(outcome.result.wall_ns)):
            outcome.notes = (*outcome.notes, *held)
            journal.meta("notes", [*_notes(earlier, recognisers), *held])
        state = outcome.state = "stopped" if control.stopping else "closed"
        if isinstance(journal, SessionWriter):
            # Measure two of the roofs again: did the machine change under the run?
            before = calibration.stored()
            after = cpu.recheck(before, request.config.threads)
            journal.calibration(after.rows(table.END))
            journal.meta("drift", table.drift(before, after))
    except Exception as problem:
        journal.meta("problem", one_line(str(problem) or repr(problem), 1000))
        raise
    finally:
        if group is not None:
            group.close()
        if measurements is not None:
            measurements.close()
        journal.close(state)
    if journal.failed:
        outcome.state, outcome.problem = "failed", str(journal.failed)
    return outcome


def _notes(earlier: Sequence[str], recognisers: Sequence[Recogniser]) -> list[str]:
    return list(dict.fromkeys((*earlier, *(note for one in recognisers for note in one.notes))))


def _open(
    request: Request, recorder: Recorder, items: Sequence[Item], about: Mapping[str, Any], group: Group | None
) -> tuple[Journal, Lane | NullLane]:
    if request.out is None:
        return NullWriter(), NullLane()
    meta = {
        "preset": request.preset,
        "audio": list(dict.fromkeys(paths.kept(str(item.path)) for item in items)),
        "argv": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "machine": describe.describe(),
        "versions": describe.versions(),
        **about,
    }
    make = Lane
    if group is not None:
        meta["recorder"] = counting.about(group)
        make = CountingLane
    journal = SessionWriter(request.out, recorder, meta, replace=request.replace)
    return journal, recorder.lane("decode", decode=True, make=make)


def _prepare(
    request: Request,
    control: Control,
    progress: Progress,
    recorder: Recorder,
    journal: Journal,
    lane: Lane | NullLane,
    order: RunOrder,
    earlier: Sequence[str],
) -> list[Recogniser]:
    """Everything slow that comes before the first frame: the recogniser, and others that `order` needs.

    `earlier`: notes from before. Raises Cancelled.
    """
    recognisers: list[Recogniser] = []

    def made(config: Config) -> Recogniser:
        recogniser = build(config, recorder, lane, progress, lambda: control.stopping)
        recognisers.append(recogniser)
        scorer, frontend = recogniser.scorer, recogniser.frontend
        journal.meta("acoustic_models", list(dict.fromkeys(one.origin for one in recognisers)))
        journal.meta("notes", _notes(earlier, recognisers))
        if recogniser.devices:
            journal.meta("devices", {name: work.device.identity for name, work in recogniser.devices.items()})
        if isinstance(frontend, CtcFrontEnd) and isinstance(journal, SessionWriter):
            journal.meta("operators", [asdict(row) for row in frontend.profile.operators])
        about: dict[str, object] = {}
        if len({(one.scorer.n_senones, one.context) for one in recognisers}) == 1:
            about = {"senones": scorer.n_senones, "frames_per_output": scorer.subsampling}
            if (context := recogniser.context) is not None:
                about["context"] = list(context)
        # Where arms differ in it, neither stands for the session.
        journal.meta("scoring", about)
        return recogniser

    order.prepare(made(request.config), made)
    if isinstance(journal, SessionWriter):
        # Last: nothing that this run has begun disturbs it any more.
        stage, start = recorder.stage("setup.roofs", "setup"), recorder.clock()
        measured = calibration.load_or_measure(
            request.config.threads,
            lambda what, fraction: progress(f"measuring the machine: {what}", fraction),
            lambda: control.stopping,
            kernels=peaks.of(request.config),
            device=not {request.config.device, request.config.search.device} <= {"cpu", HOST},
        )
        journal.calibration(measured.rows())
        lane.put(stage, start, recorder.clock())
        start, idle = recorder.clock(), energy.idle()
        journal.meta(energy.IDLE, idle)
        if "watts" in idle:
            lane.put(recorder.stage("setup.idle", "setup"), start, recorder.clock())
    return recognisers


@contextmanager
def _undisturbed(threads: int) -> Iterator[None]:
    """Limit BLAS to `threads`, and exclude loaded objects from garbage collection."""
    gc.collect()
    gc.freeze()
    try:
        with threadpool_limits(threads):
            yield
    finally:
        gc.unfreeze()


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
        """Record the memory at the begin and the end of the context; gives what a sampler reads in between."""
        pulse: dict[str, Reading] = {} if self._measurements is None else {"pulse": self._measurements.pulse.beat}
        try:
            self._record()
        except OSError:  # the system does not tell
            yield pulse
            return
        yield {"parts of memory": self.meter.read, **pulse}
        self._record()

    def _record(self) -> None:
        usage = self.meter.measure()
        self._journal.sample(self._recorder.clock(), usage.values())
        reserved = {name: held.reserved for name, held in usage.parts.items()}
        self._journal.meta(META, {"reserved": reserved, "mappings": memory.mappings()})
