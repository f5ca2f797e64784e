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
"""

import dataclasses
import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import pairwise
from multiprocessing.synchronize import Event
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
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
from tests.bench._rounds import command_line, in_turns, printing

CALLS = 40  # with 20, calls and the exponentials themselves are about as long
REPLAY = 0.1
CHASED, OVER = 1500, 64 << 20  # Scattered accesses of a frame, and the bytes that they lie in
SPINS, READY_S = 200_000, 60.0
OTHERS = 2
"""Programs that work on the run's core. With one, other programs have 32 to 48 % of the stage and arithmetic 44 %."""


class Cause(NamedTuple):
    """A planted cause: the stage that shows it, its verdicts (None: any) and parts, and how it is planted."""

    name: str
    stage: str
    verdicts: tuple[str, ...] | None
    parts: tuple[str, ...]
    planted: Callable[[], Any]
    block: int = 1
    files: int = 9
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
    replaying = False

    def evicting(self: Viterbi, *arguments: Any) -> None:
        if not replaying:
            np.add(filler, 1.0, out=filler)
        advance(self, *arguments)

    def hot(self: SearchReplay, *arguments: Any) -> dict[str, int]:
        nonlocal replaying
        replaying = True
        try:
            return again(self, *arguments)
        finally:
            replaying = False

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


@contextmanager
def _changed(name: str, function: Callable[..., None], stage: str, law: Callable[[Cost], Cost]) -> Iterator[None]:
    """The scorer calls `function` instead of the kernel `name`, and the cost law of `stage` is another one."""
    costs, used = Tied.costs, {kernel: getattr(kernels, kernel) for kernel in ("exponentiate", "mix")}

    def counted(self: Tied, frames: int) -> dict[str, Cost]:
        laws = costs(self, frames)
        return laws | {stage: law(laws[stage])}

    with (
        mock.patch.object(none, "kernels", SimpleNamespace(**used | {name: function})),
        mock.patch.object(Tied, "costs", counted),
    ):
        yield


def _computed_twice() -> Any:
    def twice(*arguments: Any) -> None:
        kernels.mix(*arguments)
        kernels.mix(*arguments)

    def doubled(law: Cost) -> Cost:
        operations = {name: n.times(2.0) for name, n in law.operations.items()}
        least, most = law.bytes_min.times(2.0), law.bytes_max.times(2.0)
        return dataclasses.replace(law, operations=operations, bytes_min=least, bytes_max=most, calls=calls(2))

    return _changed("mix", twice, "score.mixture", doubled)


def _called_often() -> Any:
    @cache
    def pieces(first: int, last: int) -> list[tuple[int, int]]:
        return list(pairwise(np.linspace(first, last, CALLS + 1).astype(int).tolist()))

    def often(g: Any, shift: Any, first: int, last: int) -> None:
        for begin, end in pieces(first, last):
            kernels.exponentiate(g, shift, begin, end)

    return _changed("exponentiate", often, "score.exp", lambda law: dataclasses.replace(law, calls=calls(CALLS)))


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
    Cause("memory", "score.mixture", *MEMORY, _evicted),
    Cause("arithmetic", "score.mixture", *ARITHMETIC, _computed_twice, block=64),
    Cause("calls", "score.exp", ("call-bound",), ("calls",), _called_often),
    Cause("scattered", "score.log", ("latency-bound",), ("latency",), _scattered),
    Cause("search", "search.prune", *MEMORY, _search_evicted, files=3),
    Cause("preempted", "score.mixture", None, ("other_programs",), _preempted, block=16),
)


def once(cause: Cause, audio: Sequence[str]) -> StageRow:
    config = settings.assign(presets.load("gmm").config, {"block": cause.block, "replay": REPLAY})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"{cause.name}.asrs"
        with cause.planted():
            execute(Request(config, "gmm", tuple(audio[: cause.files]), None, out), Control(), lambda *_: None)
        with closing(Session.open(out)) as session:
            return next(row for row in breakdown(session).stages if row.name == cause.stage)


def measure(tries: int, only: Sequence[str] = ()) -> dict[str, Any]:
    """Plant each cause `tries` times, or those of `only`, in turns."""
    audio = [str(item.path) for item in corpus.human_speech()]
    causes = {cause.name: cause for cause in CAUSES if not only or cause.name in only}
    rows: dict[str, list[StageRow]] = {name: [] for name in causes}
    for _, name in in_turns(tries, causes):
        rows[name].append(once(causes[name], audio))
    judged = {name: _judged(causes[name], of) for name, of in rows.items()}
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


if __name__ == "__main__":
    parser = command_line("planted_causes", __doc__)
    parser.add_argument("--tries", type=int, default=10)
    parser.add_argument("--only", action="append", choices=[cause.name for cause in CAUSES])
    sys.exit(printing(parser, lambda args: measure(args.tries, args.only or ())))
