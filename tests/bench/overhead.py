"""The cost of the instrument: the same decode with the recorder off and on, and one event of it and of its peers.

On, off and off again decode the same file in turns, with everything that a recorded run has besides (session writer,
sampler of the machine, partial results). The ratio of a pair is time on / time off; off again / off is the resolution
of the machine. Three times are taken: the decode lane's wall clock; the same less the time that the decoding thread
waited for a processor that others had (waiting for the interpreter lock stays in); and the processor time of the whole
process, all threads.

Events are timed in interleaved rounds in the same process: spans of this recorder from Python and from a compiled
kernel, `torch.profiler.record_function` and viztracer.
"""

import tempfile
import time
import timeit
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from math import ceil, floor, sqrt
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numba

from pipelines import config as settings
from pipelines.config import presets
from pipelines.run import playlist
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.interleave import turns
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser
from pipelines.run.session_run import RunMemory
from profiler.machine.sampler import watching
from profiler.recording import kernel_spans
from profiler.recording.lanes import Lane
from profiler.session.writer import NullWriter, SessionWriter
from profiler.spans import SPAN, NullLane, Recorder
from tests.bench._rounds import Progress, Tree, opened, result, undisturbed

PRESET = "gmm"
BLOCKS = {16: 1.01, 1: 1.03}  # frames per block, and the most that time on / time off should be there
PASSES = 3  # Passes over the files for each of `--repeat`; with ten files and three repeats 90 pairs
SETTLE_SECONDS = 0.1  # Between set-up and decoding, on both sides: the writer has stored stages and costs by then
EVENTS = 1000
ROUNDS = 25
SIDES = ("on", "off", "again")
WALL = "wall time"
UNDISTURBED = "wall time less waiting for a processor"
PROCESSOR = "processor time of all threads"


def ratio_row(ratios: Sequence[float]) -> Tree:
    """Median, its 95 % interval by order statistics, and the middle half of all pairs."""
    ranked, n = sorted(ratios), len(ratios)
    half = 1.96 * sqrt(n) / 2
    low, high = max(floor(n / 2 - half), 0), min(ceil(n / 2 + half), n - 1)
    places = {"ci95_low": low, "ci95_high": high, "p25": n // 4, "p75": (3 * n) // 4}
    return {"median": median(ranked), **{name: ranked[at] for name, at in places.items()}, "pairs": n}


class Decoded(NamedTuple):
    words: str
    times: dict[str, int]
    spans: int
    dropped: int


def waited_for_processor() -> int | None:
    """Ns that this thread was ready to run and did not; None where it is unknown."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None


def decode(recogniser: Recogniser, item: Item, out: Path | None) -> Decoded:
    """Decode once, recorded into `out` or with the recorder off."""
    recorder = Recorder()
    lane: Lane | NullLane = NullLane() if out is None else recorder.lane("decode", decode=True)
    journal: SessionWriter | NullWriter = NullWriter() if out is None else SessionWriter(out, recorder, {})
    decoder = Decoder(recogniser, recorder, lane, journal, Control())
    with ExitStack() as sampling:
        if isinstance(journal, SessionWriter):
            memory = RunMemory([recogniser], decoder, recorder, journal, None)
            sampling.enter_context(watching(journal, more=sampling.enter_context(memory.recorded())))
        time.sleep(SETTLE_SECONDS)
        waited, start = waited_for_processor(), time.process_time_ns()
        (utterance,) = decoder.run([item]).utterances
        times = {WALL: utterance.wall_ns, PROCESSOR: time.process_time_ns() - start}
        waited_after = waited_for_processor()
    if waited is not None and waited_after is not None:
        times[UNDISTURBED] = utterance.wall_ns - (waited_after - waited)
    journal.close()
    if out is not None:
        out.unlink()
    return Decoded(utterance.hypothesis, times, lane.recorded, lane.dropped)


def decode_pairs(
    recogniser: Recogniser, items: Sequence[Item], passes: int, progress: Callable[[float], None]
) -> list[dict[str, Decoded]]:
    """Decode each of `items` `passes` times on every side, the order turning."""
    pairs: list[dict[str, Decoded]] = [{} for _ in range(passes * len(items))]
    with tempfile.TemporaryDirectory() as folder:
        for turn, place, number in turns(len(SIDES), len(items), range(passes)):
            progress((turn + place / len(items)) / passes)
            out = Path(folder) / "s.asrs" if SIDES[number] == "on" else None
            pairs[turn * len(items) + place][SIDES[number]] = decode(recogniser, items[place], out)
    return pairs


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
    """The variants of recording: each records EVENTS events and returns ns for all and how many were kept."""

    def __init__(self) -> None:
        self._lane = Lane(0, "bench", "cpu", False)
        span = "start = clock(); put(3, start, clock(), 1234, 16, 5000, 900)"
        put = "put(3, 1_000_000_000_000, 1_000_000_010_000, 1234, 16, 5000, 900)"
        self.variants: dict[str, Callable[[], tuple[int, int]]] = {
            "asrscope, put alone": partial(self._spans, put),
            "asrscope, lap (one clock reading)": partial(self._spans, "lap(3, 5000, 900)"),
            "asrscope, two clock readings and put": partial(self._spans, span),
            "torch.profiler.record_function, profiler off": lambda: (self._record_functions(), 0),
            "torch.profiler.record_function, profiler on": self._profiled,
            "viztracer, log_event": partial(self._traced, "with log('stage'): pass"),
            "viztracer, traced call": partial(self._traced, "stage()"),
        }
        if kernel_spans.HAS_CLOCK:
            self.variants |= {
                "asrscope, in a kernel (two clock readings)": partial(self._in_kernel, kernel_events),
                "asrscope, in a kernel (one clock reading)": partial(self._in_kernel, kernel_laps),
            }

    def timed(self, statement: str = "pass", setup: str = "pass", **names: Any) -> int:
        """Ns of EVENTS times `statement`; by itself those of the loop, which is subtracted from what runs in it."""
        return int(timeit.Timer(statement, setup, time.perf_counter_ns, names).timeit(EVENTS))

    def _kept(self) -> int:
        return len(self._lane.take()) // SPAN.itemsize

    def _spans(self, statement: str) -> tuple[int, int]:
        self._lane.begin(1234, 16)
        names = "put, lap, clock = lane.put, lane.lap, now"
        return self.timed(statement, names, lane=self._lane, now=time.perf_counter_ns), self._kept()

    def _in_kernel(self, record: Callable[[Any, int], int]) -> tuple[int, int]:
        ns = record(self._lane.lend(), EVENTS)
        self._lane.settle()
        return ns, self._kept()

    def _record_functions(self) -> int:
        from torch.profiler import record_function

        return self.timed("with record('stage'): pass", "record = function", function=record_function)

    def _profiled(self) -> tuple[int, int]:
        from torch import profiler

        with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as profile:
            ns = self._record_functions()
        return ns, sum(event.name == "stage" for event in profile.events())

    def _traced(self, statement: str) -> tuple[int, int]:
        import viztracer

        tracer = viztracer.VizTracer(verbose=0)
        tracer.start()
        ns = self.timed(statement, "log = tracer.log_event\ndef stage(): pass", tracer=tracer)
        tracer.stop()
        tracer.parse()
        return ns, sum(e["ph"] == "X" and "stage" in e["name"] for e in tracer.data["traceEvents"])


def time_events(progress: Callable[[float], None]) -> dict[str, tuple[list[float], int]]:
    """Ns per event of every variant, a value for each round, and events kept of the last round."""
    events = Events()
    figures: dict[str, tuple[list[float], int]] = {name: ([], 0) for name in events.variants}
    loop, names = median(events.timed() for _ in range(ROUNDS)), list(events.variants)
    for turn, _, number in turns(len(names), 1, range(-1, ROUNDS)):
        progress(max(0, turn) / ROUNDS)
        took, kept = events.variants[name := names[number]]()
        if turn >= 0:  # the round before loads and compiles
            spent = took if "kernel" in name else took - loop
            figures[name] = ([*figures[name][0], spent / EVENTS], kept)
    return figures


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> Tree:
    """Decode `paths` (default: the bundled voices) in pairs at every block size, then time events."""
    items = playlist.build(paths, transcripts).items
    config = presets.load(PRESET).config
    recogniser = opened(config, progress)
    rows: list[Tree] = []
    agreement: Tree = {
        "preset": PRESET,
        "files": len(items),
        "off": "NullLane and no session, as run --no-profile; no sampler",
        "on": "lane, session writer, sampler at 10 Hz, partial results at 10 Hz",
    }
    with undisturbed(config.threads):
        for block, limit in BLOCKS.items():
            recogniser.configure(settings.replace(recogniser.config, "block", block))
            decode(recogniser, items[0], None)  # pages and caches warm
            note = partial(progress, f"decoding on and off, block {block}")
            pairs = decode_pairs(recogniser, items, PASSES * repeat, note)
            for name in (each for each in (WALL, UNDISTURBED, PROCESSOR) if each in pairs[0]["off"].times):
                every = [{side: one.times[name] for side, one in pair.items()} for pair in pairs]
                on, again = ([times[side] / times["off"] for times in every] for side in ("on", "again"))
                row = {"measure": f"decode on / off, {name}", "limit": limit, **ratio_row(on), "block": block}
                rows += [row, {"measure": f"decode off / off, {name}", **ratio_row(again), "block": block}]
            wall_s = sum(pair["off"].times[WALL] for pair in pairs) / 1e9
            agreement |= {
                f"spans per s of wall time, block {block}": round(sum(pair["on"].spans for pair in pairs) / wall_s),
                f"spans dropped, block {block}": sum(pair["on"].dropped for pair in pairs),
                f"pairs with other words, block {block}": sum(p["on"].words != p["off"].words for p in pairs),
            }
    figures = time_events(partial(progress, "timing events"))
    for name, (values, kept) in figures.items():
        row = {"measure": f"ns per event: {name}", **ratio_row(values), "kept": kept}
        rows.append(row | {"rounds": row.pop("pairs")})
    ours = figures["asrscope, two clock readings and put"][0]
    theirs = figures["torch.profiler.record_function, profiler on"][0]
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    agreement["events per round"] = EVENTS
    return result(
        f"torch.profiler.record_function (torch {version('torch')}); rows also viztracer {version('viztracer')}",
        ratios,
        "ns per record_function with its profiler on / ns per span of ours (two clock readings and put), median of "
        "interleaved rounds; the cost of recording a decode is in the rows: time with the recorder on / off, 1 = free",
        agreement,
        rows,
    )
