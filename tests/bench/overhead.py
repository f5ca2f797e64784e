"""What the instrument costs: the same decode with the recorder off and on, and one event beside its peers.

On, off and off again decode the same file one after the other, the order turning, with everything that a
recorded run has besides (session writer, sampler of the machine, partial results). The ratio of a pair is
time on / time off; off again / off says what the machine cannot tell apart. Three times are taken: the
decode lane's wall clock; the same less what the decoding thread waited for a processor that others had (so
that a shared machine can be measured on; waiting for the interpreter lock stays in); and the processor time
of the whole process, all threads. Beside the pairs stands the cost of the spans alone: every block's least
processor time of the decoding thread on over off, which leaves out whatever does not happen in every block
(the writer's and the sampler's rounds, and the disturbance by others).

Events are timed in interleaved rounds on the same machine in the same process: spans of this recorder from
Python and from a compiled kernel, `torch.profiler.record_function` and viztracer.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from math import ceil, floor, sqrt
from pathlib import Path
from statistics import median
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from pipelines import config as settings
from pipelines.config import presets
from pipelines.run import playlist
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.interleave import turns
from pipelines.run.null_writer import NullWriter
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser, build
from profiler.arrays import Array
from profiler.machine.sampler import watching
from profiler.recording import kernel_spans
from profiler.recording.lanes import Lane
from profiler.session.writer import SessionWriter
from profiler.spans import NullLane, Recorder

PRESET = "gmm"
BLOCKS = {16: 1.01, 1: 1.03}
"""Frames per block, and the most that time on / time off should be there."""
PASSES = 3
"""Passes over the files for each of `--repeat`; with ten files and three repeats 90 pairs."""
SETTLE_SECONDS = 0.1
"""Between set-up and decoding, on both sides: the writer has stored stages and costs by then."""
EVENTS = 1000
ROUNDS = 25

SIDES = ("on", "off", "again")
WALL = "wall time"
UNDISTURBED = "wall time less waiting for a processor"
PROCESSOR = "processor time of all threads"

Progress = Callable[[str, float | None], None]


@dataclass
class Pairs:
    """Ratios of paired decodes by what was timed, `on` and `again` over `off`; least ns of every block."""

    on: dict[str, list[float]] = field(default_factory=dict)
    again: dict[str, list[float]] = field(default_factory=dict)
    least: dict[tuple[str, str], Array] = field(default_factory=dict)
    spans: int = 0
    dropped: int = 0
    wall_off_ns: int = 0
    differing: int = 0

    def add(self, item: Item, sides: dict[str, Decoded]) -> None:
        """Take in one item, decoded on every side."""
        on, off = sides["on"], sides["off"]
        for name, ns in off.times.items():
            self.on.setdefault(name, []).append(on.times[name] / ns)
            self.again.setdefault(name, []).append(sides["again"].times[name] / ns)
        for side, decoded in sides.items():
            known = self.least.get((item.name, side), decoded.blocks)
            self.least[item.name, side] = np.minimum(known, decoded.blocks)
        self.spans += on.spans
        self.dropped += on.dropped
        self.wall_off_ns += off.times[WALL]
        self.differing += on.words != off.words


def ratio_row(ratios: Sequence[float]) -> dict[str, Any]:
    """Median, its 95 % interval by order statistics, and the middle half of all pairs."""
    ranked, n = sorted(ratios), len(ratios)
    half = 1.96 * sqrt(n) / 2
    low, high = max(floor(n / 2 - half), 0), min(ceil(n / 2 + half), n - 1)
    return {
        "median": median(ranked),
        "ci95_low": ranked[low],
        "ci95_high": ranked[high],
        "p25": ranked[n // 4],
        "p75": ranked[(3 * n) // 4],
        "pairs": n,
    }


@dataclass
class Decoded:
    """Words, times in ns by name, ns of each block but the first, spans recorded and dropped."""

    words: str
    times: dict[str, int]
    blocks: Array
    spans: int
    dropped: int


class Stamping(Control):
    """Notes the thread's processor time when the decode loop says how far it is: at the end of each block."""

    def __init__(self) -> None:
        self.stamps: list[int] = []
        super().__init__()

    @property
    def frame(self) -> int:
        """Nobody asks here."""
        return 0

    @frame.setter
    def frame(self, frame: int) -> None:
        self.stamps.append(time.thread_time_ns())


def waited_for_processor() -> int | None:
    """Ns that this thread was ready to run and did not; None where the system does not say."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None


def decode(recogniser: Recogniser, item: Item, out: Path | None) -> Decoded:
    """Decode once, recorded into `out` or with the recorder off."""
    recorder = Recorder()
    lane: Lane | NullLane
    if out is None:
        journal: SessionWriter | NullWriter = NullWriter()
        lane = NullLane()
        sampling: Any = nullcontext()
    else:
        journal = SessionWriter(out, recorder, {})
        lane = recorder.lane("decode", decode=True)
        sampling = watching(journal)
    control = Stamping()
    decoder = Decoder(recogniser, recorder, lane, journal, control)
    with sampling:
        time.sleep(SETTLE_SECONDS)
        waited, start = waited_for_processor(), time.process_time_ns()
        (done,) = decoder.run([item]).utterances
        times = {WALL: done.wall_ns, PROCESSOR: time.process_time_ns() - start}
        waited_after = waited_for_processor()
    if waited is not None and waited_after is not None:
        times[UNDISTURBED] = done.wall_ns - (waited_after - waited)
    journal.close()
    if out is not None:
        out.unlink()
    blocks = np.diff(np.array(control.stamps[1:]))
    return Decoded(done.hypothesis, times, blocks, lane.recorded, lane.dropped)


def decode_pairs(
    recogniser: Recogniser, items: Sequence[Item], passes: int, progress: Callable[[float], None]
) -> Pairs:
    """Decode each of `items` `passes` times on every side, the order turning."""
    pairs = Pairs()
    with tempfile.TemporaryDirectory() as folder:
        session = Path(folder) / "overhead.asrs"
        sides: dict[str, Decoded] = {}
        for turn, place, number in turns(len(SIDES), len(items), range(passes)):
            progress((turn + place / len(items)) / passes)
            item, side = items[place], SIDES[number]
            sides[side] = decode(recogniser, item, session if side == "on" else None)
            if len(sides) == len(SIDES):
                pairs.add(item, sides)
                sides = {}
    return pairs


def decode_rows(pairs: Pairs, limit: float) -> list[dict[str, Any]]:
    """The ratios of one block size as rows of the result."""
    rows: list[dict[str, Any]] = []
    for name in (WALL, UNDISTURBED, PROCESSOR):
        if name in pairs.on:
            what = f"decode on / off, {name}"
            rows.append({"measure": what, "limit": limit} | ratio_row(pairs.on[name]))
            what = f"decode off / off, {name}"
            rows.append({"measure": what} | ratio_row(pairs.again[name]))
    least = {
        side: sum(int(ns.sum()) for (_, whose), ns in pairs.least.items() if whose == side)
        for side in SIDES
    }
    for side, what in (("on", "on / off"), ("again", "off / off")):
        what = f"decode {what}, least processor time of each block"
        rows.append({"measure": what, "median": least[side] / least["off"]})
    return rows


@numba.njit(nogil=True)
def kernel_events(spans: Any, n: int) -> int:  # pragma: no cover - compiled
    """Record n spans with two clock readings each; ns for all."""
    begin = kernel_spans.now_ns()
    for i in range(n):
        start = kernel_spans.now_ns()
        kernel_spans.put(spans, 3, start, kernel_spans.now_ns(), i, 16, (5000, 900, 0))
    return kernel_spans.now_ns() - begin


@numba.njit(nogil=True)
def kernel_laps(spans: Any, n: int) -> int:  # pragma: no cover - compiled
    """Record n spans that follow one another, with one clock reading each; ns for all."""
    begin = start = kernel_spans.now_ns()
    for i in range(n):
        end = kernel_spans.now_ns()
        kernel_spans.put(spans, 3, start, end, i, 16, (5000, 900, 0))
        start = end
    return kernel_spans.now_ns() - begin


class Events:
    """One method per way of recording: records EVENTS events, returns ns for all and how many were kept."""

    def __init__(self) -> None:
        import torch
        import viztracer

        self._torch, self._viztracer = torch, viztracer
        self._lane = Lane(0, "bench", "cpu", False)
        self._clock = time.perf_counter_ns
        self.ways: dict[str, Callable[[], tuple[int, int]]] = {
            "asrscope, put alone": self._put,
            "asrscope, lap (one clock reading)": self._lap,
            "asrscope, two clock readings and put": self._span,
            "torch.profiler.record_function, profiler off": self._torch_off,
            "torch.profiler.record_function, profiler on": self._torch_on,
            "viztracer, log_event": self._viztracer_event,
            "viztracer, traced call": self._viztracer_call,
        }
        if kernel_spans.HAS_CLOCK:
            self.ways["asrscope, in a kernel (two clock readings)"] = self._in_kernel
            self.ways["asrscope, in a kernel (one clock reading)"] = self._laps_in_kernel

    def loop(self) -> int:
        """Ns of the loop alone, which is taken off what runs in one."""
        start = self._clock()
        for _ in range(EVENTS):
            pass
        return self._clock() - start

    def _taken(self) -> int:
        return len(self._lane.take()) // 42

    def _put(self) -> tuple[int, int]:
        put = self._lane.put
        begin = self._clock()
        for _ in range(EVENTS):
            put(3, 1_000_000_000_000, 1_000_000_010_000, 1234, 16, 5000, 900)
        return self._clock() - begin, self._taken()

    def _lap(self) -> tuple[int, int]:
        lap = self._lane.lap
        self._lane.begin(1234, 16)
        begin = self._clock()
        for _ in range(EVENTS):
            lap(3, 5000, 900)
        return self._clock() - begin, self._taken()

    def _span(self) -> tuple[int, int]:
        put, clock = self._lane.put, self._clock
        begin = clock()
        for _ in range(EVENTS):
            start = clock()
            put(3, start, clock(), 1234, 16, 5000, 900)
        return clock() - begin, self._taken()

    def _in_kernel(self) -> tuple[int, int]:
        took = kernel_events(self._lane.lend(), EVENTS)
        self._lane.settle()
        return took, self._taken()

    def _laps_in_kernel(self) -> tuple[int, int]:
        took = kernel_laps(self._lane.lend(), EVENTS)
        self._lane.settle()
        return took, self._taken()

    def _record_functions(self) -> int:
        record_function = self._torch.profiler.record_function
        begin = self._clock()
        for _ in range(EVENTS):
            with record_function("stage"):
                pass
        return self._clock() - begin

    def _torch_off(self) -> tuple[int, int]:
        return self._record_functions(), 0

    def _torch_on(self) -> tuple[int, int]:
        profiler = self._torch.profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as profile:
            took = self._record_functions()
        return took, sum(event.name == "stage" for event in profile.events())

    def _viztracer_event(self) -> tuple[int, int]:
        tracer = self._viztracer.VizTracer(verbose=0)
        tracer.start()
        begin = self._clock()
        for _ in range(EVENTS):
            with tracer.log_event("stage"):
                pass
        took = self._clock() - begin
        return took, self._kept(tracer, "stage")

    def _viztracer_call(self) -> tuple[int, int]:
        def stage() -> None:
            pass

        tracer = self._viztracer.VizTracer(verbose=0)
        tracer.start()
        begin = self._clock()
        for _ in range(EVENTS):
            stage()
        took = self._clock() - begin
        return took, self._kept(tracer, "stage")

    @staticmethod
    def _kept(tracer: Any, name: str) -> int:
        tracer.stop()
        tracer.parse()
        events = tracer.data["traceEvents"]
        return sum(e["ph"] == "X" and name in e["name"] for e in events)


def time_events(progress: Callable[[float], None]) -> dict[str, tuple[list[float], int]]:
    """Ns per event of every way, a value for each round, and events kept of the last round."""
    events = Events()
    figures: dict[str, tuple[list[float], int]] = {name: ([], 0) for name in events.ways}
    loops = [events.loop() for _ in range(ROUNDS)]
    names = list(events.ways)
    for turn, _, way in turns(len(names), 1, range(-1, ROUNDS)):
        progress(max(0, turn) / ROUNDS)
        name = names[way]
        took, kept = events.ways[name]()
        spent = took if "kernel" in name else took - median(loops)
        if turn >= 0:  # the round before loads and compiles
            figures[name] = ([*figures[name][0], spent / EVENTS], kept)
    return figures


@contextmanager
def _undisturbed(threads: int) -> Iterator[None]:
    gc.collect()
    gc.freeze()
    with threadpool_limits(threads):
        yield
    gc.unfreeze()


def run(
    paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress
) -> dict[str, Any]:
    """Decode `paths` (default: the bundled voices) in pairs at every block size, then time events."""
    items = playlist.build(paths, transcripts).items
    config = presets.load(PRESET).config
    recogniser = build(config, Recorder(), NullLane(), progress, lambda: False)
    rows: list[dict[str, Any]] = []
    agreement: dict[str, Any] = {
        "preset": PRESET,
        "files": len(items),
        "off": "NullLane and no session, as run --no-profile; no sampler",
        "on": "lane, session writer, sampler at 10 Hz, partial results at 10 Hz",
    }
    with _undisturbed(config.threads):
        for block, limit in BLOCKS.items():
            recogniser.configure(settings.replace(recogniser.config, "block", block))
            for item in items[:1]:
                decode(recogniser, item, None)  # pages and caches warm
            pairs = decode_pairs(
                recogniser,
                items,
                PASSES * repeat,
                lambda f, block=block: progress(f"decoding on and off, block {block}", f),  # type: ignore[misc]
            )
            rows += [row | {"block": block} for row in decode_rows(pairs, limit)]
            agreement[f"spans per s of wall time, block {block}"] = round(
                pairs.spans / (pairs.wall_off_ns / 1e9)
            )
            agreement[f"spans dropped, block {block}"] = pairs.dropped
            agreement[f"pairs with other words, block {block}"] = pairs.differing
    figures = time_events(lambda f: progress("timing events", f))
    for name, (values, kept) in figures.items():
        row = {"measure": f"ns per event: {name}", **ratio_row(values), "kept": kept}
        row["rounds"] = row.pop("pairs")
        rows.append(row)
    ours = figures["asrscope, two clock readings and put"][0]
    theirs = figures["torch.profiler.record_function, profiler on"][0]
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    agreement["events per round"] = EVENTS
    return {
        "peer": f"torch.profiler.record_function (torch {version('torch')}); "
        f"rows also viztracer {version('viztracer')}",
        "ratio": median(ratios),
        "ratio_min": float(np.min(ratios)),
        "ratio_max": float(np.max(ratios)),
        "ratio_meaning": "ns per record_function with its profiler on / ns per span of ours (two clock "
        "readings and put), median of interleaved rounds; the cost of recording a decode is in the rows: "
        "time with the recorder on / off, 1 = free",
        "agreement": agreement,
        "rows": rows,
    }
