"""Planted truths: does a run's attribution name the cause that was planted?

Real runs of the tied-mixture model, each with one thing made worse:

- memory: everything is pushed out of the caches before each block is scored
- arithmetic: the mixture is computed twice, and its cost law counts both (64 frames a block)
- calls: the exponentials are taken in forty calls instead of one, and the law counts them
- scattered: with the logarithms of each frame come accesses to scattered lines, each found in the one before
- search: everything is pushed out of the caches before each block is searched
- preempted: two other processes work on the only core that the run may use

A block has one frame unless stated otherwise. The stage's verdict and its largest part must be those of the cause. The
time of other programs has no verdict of its own: there it must be the largest part, with any verdict.
`python -m tests.bench.planted_causes [--tries N] [--only CAUSE]` prints how often they were.
"""

import dataclasses
import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from multiprocessing.synchronize import Event
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from pipelines import config as settings
from pipelines.config import presets
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from pipelines.scoring.costs import calls
from pipelines.scoring.costs import tied as laws
from pipelines.scoring.layered import LayeredScorer
from pipelines.scoring.selection import none
from pipelines.scoring.selection.none import Tied
from pipelines.scoring.tied import gmm, kernels
from pipelines.search.replay import SearchReplay
from pipelines.search.viterbi import Viterbi
from profiler.analysis.breakdown import StageRow, breakdown
from profiler.costs import CHASE, Accesses, Cost, Linear
from profiler.machine.describe import last_level_caches
from profiler.machine.roofs import _kernels as machine_kernels
from profiler.machine.roofs.accesses import lines_at_random
from profiler.session.reader import Session
from tests.bench import corpus
from tests.bench._rounds import command_line, printing

CALLS = 40  # with 20, calls and the exponentials themselves are about as long
REPLAY = 0.1
CHASED, OVER = 1500, 64 << 20  # Scattered accesses of a frame, and the bytes that they lie in
SPINS, READY_S = 200_000, 60.0
OTHERS = 2
"""Programs that work on the run's core. With one, other programs have 32 to 48 % of the stage and arithmetic 44 %."""


@dataclasses.dataclass(frozen=True)
class Cause:
    """A planted cause: the stage that shows it, its verdicts and parts, and how it is planted."""

    name: str
    stage: str
    verdicts: tuple[str, ...] | None  # None: any
    parts: tuple[str, ...]
    planted: Callable[[], Any]
    block: int = 1
    files: int = 1
    """Of the human speech: one file of 3 s has too few replays of a short or slow stage, and too few turns of 4 ms."""


MOST_EVICTED = 64 << 20
"""Bytes of cache that are filled with other data, twice over: all 480 MiB of a server would take minutes."""


def _filler() -> np.ndarray:
    size, _ = last_level_caches() or (32 << 20, 1)
    return np.zeros(2 * min(size, MOST_EVICTED) // 8)


def _evicted() -> Any:
    filler, score = _filler(), LayeredScorer.score

    def evicting(self: LayeredScorer, *arguments: Any) -> Any:
        np.add(filler, 1.0, out=filler)
        return score(self, *arguments)

    return mock.patch.object(LayeredScorer, "score", evicting)


@contextmanager
def _search_evicted() -> Iterator[None]:
    """Before the search of a block, and not before its replay."""
    filler, advance, again = _filler(), Viterbi.advance, SearchReplay.again
    replayed = [False]

    def evicting(self: Viterbi, *arguments: Any) -> None:
        if not replayed[0]:
            np.add(filler, 1.0, out=filler)
        advance(self, *arguments)

    def hot(self: SearchReplay, *arguments: Any) -> dict[str, int]:
        replayed[0] = True
        try:
            return again(self, *arguments)
        finally:
            replayed[0] = False

    with mock.patch.object(Viterbi, "advance", evicting), mock.patch.object(SearchReplay, "again", hot):
        yield


@contextmanager
def _scattered() -> Iterator[None]:
    """The same lines where the same frame is scored again, others for the next one."""
    places, order = lines_at_random(OVER)
    places[order] = np.roll(order, -1)
    state = np.zeros(1, np.uint32)
    names = {name: getattr(kernels, name) for name in dir(kernels)}
    law = laws.logarithms

    def logarithms(products: Any, shift: Any, *arguments: Any) -> None:
        seed = int(abs(float(shift[0, 0])) * 1e4)
        state[0] = order[seed * 7919 % len(order)]
        machine_kernels.chase(places, state, CHASED * len(products))
        kernels.logarithms(products, shift, *arguments)

    def counted(*arguments: Any) -> Cost:
        accesses = (Accesses(Linear(per_frame=float(CHASED)), float(OVER), CHASE),)
        return dataclasses.replace(law(*arguments), accesses=accesses)

    with (
        mock.patch.object(gmm, "kernels", SimpleNamespace(**names | {"logarithms": logarithms})),
        mock.patch.object(laws, "logarithms", counted),
    ):
        yield


def _called(name: str, function: Callable[..., None]) -> Any:
    """The scorer calls `function` instead of the kernel `name`."""
    names = {kernel: getattr(kernels, kernel) for kernel in ("exponentiate", "mix")}
    return mock.patch.object(none, "kernels", SimpleNamespace(**names | {name: function}))


@contextmanager
def _computed_twice() -> Iterator[None]:
    costs = Tied.costs

    def twice(*arguments: Any) -> None:
        kernels.mix(*arguments)
        kernels.mix(*arguments)

    def doubled(self: Tied, frames: int) -> dict[str, Cost]:
        laws = costs(self, frames)
        law = laws["score.mixture"]
        return laws | {
            "score.mixture": dataclasses.replace(
                law,
                operations={name: n.times(2.0) for name, n in law.operations.items()},
                bytes_min=law.bytes_min.times(2.0),
                bytes_max=law.bytes_max.times(2.0),
                calls=calls(2),
            )
        }

    with _called("mix", twice), mock.patch.object(Tied, "costs", doubled):
        yield


@contextmanager
def _called_often() -> Iterator[None]:
    costs = Tied.costs
    pieces: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def often(g: Any, shift: Any, first: int, last: int) -> None:
        if (first, last) not in pieces:
            ends = np.linspace(first, last, CALLS + 1).astype(int).tolist()
            pieces[first, last] = list(pairwise(ends))
        for begin, end in pieces[first, last]:
            kernels.exponentiate(g, shift, begin, end)

    def counted(self: Tied, frames: int) -> dict[str, Cost]:
        laws = costs(self, frames)
        law = laws["score.exp"]
        return laws | {"score.exp": dataclasses.replace(law, calls=calls(CALLS))}

    with _called("exponentiate", often), mock.patch.object(Tied, "costs", counted):
        yield


def _busy(ready: Event, core: int) -> None:
    """Compute on the core until the process that started this one is gone: if killed, it cannot end it."""
    os.sched_setaffinity(0, {core})
    ready.set()
    parent = multiprocessing.parent_process()
    while parent is not None and parent.is_alive():
        sum(range(SPINS))


def _freed(kept: int, cores: set[int], ended: threading.Event) -> None:
    """Let every thread but `kept` use all `cores`, as they start: no wait for the interpreter's lock is planted."""
    while not ended.wait(0.01):
        for name in os.listdir("/proc/self/task"):
            if int(name) != kept:
                with suppress(OSError):
                    os.sched_setaffinity(int(name), cores)


@contextmanager
def _preempted() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    core, ended, spawn = min(before), threading.Event(), multiprocessing.get_context("spawn")
    ready = [spawn.Event() for _ in range(OTHERS)]
    others = [spawn.Process(target=_busy, args=(one, core), daemon=True) for one in ready]
    freeing = threading.Thread(target=_freed, args=(threading.get_native_id(), before, ended), daemon=True)
    for other, event in zip(others, ready, strict=True):
        other.start()
        event.wait(READY_S)
    os.sched_setaffinity(0, {core})
    freeing.start()
    try:
        yield
    finally:
        ended.set()
        freeing.join()
        os.sched_setaffinity(0, before)
        for other in others:
            other.kill()
            other.join()


MEMORY = ("bandwidth-bound", "latency-bound"), ("bandwidth", "latency")
ARITHMETIC = ("compute-bound", "instruction-bound"), ("arithmetic", "instructions")
CAUSES = (
    Cause("memory", "score.mixture", *MEMORY, _evicted, files=9),
    Cause("arithmetic", "score.mixture", *ARITHMETIC, _computed_twice, block=64, files=9),
    Cause("calls", "score.exp", ("call-bound",), ("calls",), _called_often, files=9),
    Cause("scattered", "score.log", ("latency-bound",), ("latency",), _scattered, files=9),
    Cause("search", "search.prune", *MEMORY, _search_evicted, files=3),
    Cause("preempted", "score.mixture", None, ("other_programs",), _preempted, block=16, files=9),
)


def once(cause: Cause, audio: Sequence[str], folder: Path) -> StageRow:
    """Run once with the cause planted; the row of its stage."""
    config = presets.load("gmm").config
    config = settings.assign(config, {"block": cause.block, "replay": REPLAY})
    out = folder / f"{cause.name}.asrs"
    request = Request(config, "gmm", tuple(audio[: cause.files]), None, out, replace=True)
    with cause.planted():
        execute(request, Control(), lambda what, share: None)
    with closing(Session.open(out)) as session:
        rows = breakdown(session).stages
    return next(row for row in rows if row.name == cause.stage)


def measure(tries: int, only: Sequence[str] = ()) -> dict[str, Any]:
    """Plant each cause `tries` times, or those of `only`, in turns: a busy minute does not hit one cause alone."""
    audio = [str(item.path) for item in corpus.human_speech()]
    causes = [cause for cause in CAUSES if not only or cause.name in only]
    rows: dict[str, list[StageRow]] = {cause.name: [] for cause in causes}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(tries):
            for cause in causes:
                rows[cause.name].append(once(cause, audio, Path(folder)))
                print(f"try {i + 1} of {tries}: {cause.name}", file=sys.stderr)
    judged = {cause.name: _judged(cause, rows[cause.name]) for cause in causes}
    return {"schema": 1, "bench": "planted_causes", "causes": judged}


def _judged(cause: Cause, rows: Sequence[StageRow]) -> dict[str, Any]:
    """How often the rows name the cause; `share`: its median part of the time."""
    right = 0
    for row in rows:
        # The time of other programs has no verdict.
        parts = {name: n for name, n in row.parts.likely.items() if name != "other_programs" or name in cause.parts}
        named = cause.verdicts is None or row.verdict in cause.verdicts
        right += named and max(parts, key=parts.__getitem__) in cause.parts
    share = float(np.median([sum(map(row.parts.share, cause.parts)) for row in rows]))
    verdicts = sorted({str(row.verdict) for row in rows})
    return {"stage": cause.stage, "right": right, "tries": len(rows), "verdicts": verdicts, "share": round(share, 3)}


def main() -> int:
    """Print how often each cause was named."""
    parser = command_line("planted_causes", __doc__)
    parser.add_argument("--tries", type=int, default=10)
    parser.add_argument("--only", action="append", choices=[cause.name for cause in CAUSES])
    return printing(parser, lambda args: measure(args.tries, args.only or ()))


if __name__ == "__main__":
    sys.exit(main())
