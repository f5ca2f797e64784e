"""Planted truths: does a run's attribution name the cause that was put there?

Real runs of the tied-mixture model, each with one thing made worse:

- memory: everything is pushed out of the caches before each block is scored
- arithmetic: the mixture is computed twice, and its cost law says so (64 frames a block; all others one)
- calls: the exponentials are taken in twenty calls instead of one, and the law says so
- preempted: another process works on the only core that the run may use

The stage's verdict and its largest part must be those of the cause. `python -m tests.bench.planted_causes [--tries N]`
prints how often they were; nothing that is measured is a stand-in.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from pipelines import config as settings
from pipelines.config import presets
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from pipelines.scoring.kernel_work import more_calls
from pipelines.scoring.layered import LayeredScorer
from pipelines.scoring.selection import none
from pipelines.scoring.selection.none import Tied
from pipelines.scoring.tied import kernels
from profiler.analysis.breakdown import StageRow, breakdown
from profiler.costs import Cost
from profiler.machine.describe import last_level_caches
from profiler.session.reader import Session
from tests.bench import _data
from tests.bench._load import SPINS, is_wanted

CALLS = 20
REPLAY = 0.1


@dataclasses.dataclass(frozen=True)
class Cause:
    """A thing made worse: which stage shows it, what must be said of it, and how it is planted."""

    name: str
    stage: str
    verdicts: tuple[str, ...]
    parts: tuple[str, ...]
    planted: Callable[[], Any]
    block: int = 1
    files: int = 1
    """Of the human speech: replays of one file of 3 s are too few to be sure of what a short or slow stage waits for,
    and what comes in turns of 4 ms needs enough of them."""


MOST_EVICTED = 64 << 20
"""Bytes of cache that are filled with other data, twice over. Of a server's cache of 480 MiB a machine that shares it
has a part, and to fill that before each block would take minutes."""


@contextmanager
def _evicted() -> Iterator[None]:
    size, _ = last_level_caches() or (32 << 20, 1)
    filler = np.zeros(2 * min(size, MOST_EVICTED) // 8)
    score = LayeredScorer.score

    def evicting(self: LayeredScorer, *arguments: Any) -> Any:
        np.add(filler, 1.0, out=filler)
        return score(self, *arguments)

    with mock.patch.object(LayeredScorer, "score", evicting):
        yield


def _called(name: str, function: Callable[..., None]) -> Any:
    """The scorer calls `function` for a kernel; the roofs, which a run may measure meanwhile, stay what they are."""
    found = {kernel: getattr(kernels, kernel) for kernel in ("exponentiate", "mix")}
    return mock.patch.object(none, "kernels", SimpleNamespace(**found | {name: function}))


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
                terms=tuple(
                    dataclasses.replace(term, count=term.count.times(2.0))
                    for term in law.terms or ()
                ),
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
        terms = *(law.terms or ()), more_calls(CALLS - 1)
        return laws | {"score.exp": dataclasses.replace(law, terms=terms)}

    with _called("exponentiate", often), mock.patch.object(Tied, "costs", counted):
        yield


def _busy(core: int, ready: Any) -> None:
    os.sched_setaffinity(0, {core})
    ready.set()
    while is_wanted():
        for _ in range(SPINS):
            pass


def _freed(kept: int, cores: set[int], ended: threading.Event) -> None:
    """Let every thread but `kept` use all `cores`, as they start: waiting for one that holds the interpreter's lock is
    not what is planted."""
    while not ended.wait(0.01):
        for name in os.listdir("/proc/self/task"):
            if int(name) != kept:
                with suppress(OSError):
                    os.sched_setaffinity(int(name), cores)


@contextmanager
def _preempted() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    core = min(before)
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    other = spawn.Process(target=_busy, args=(core, ready), daemon=True)
    other.start()
    ready.wait()
    os.sched_setaffinity(0, {core})
    ended = threading.Event()
    freeing = threading.Thread(
        target=_freed, args=(threading.get_native_id(), before, ended), daemon=True
    )
    freeing.start()
    try:
        yield
    finally:
        ended.set()
        freeing.join()
        os.sched_setaffinity(0, before)
        other.kill()
        other.join()


CAUSES = (
    Cause(
        "memory",
        "score.mixture",
        ("bandwidth-bound", "latency-bound"),
        ("bandwidth", "latency"),
        _evicted,
        files=9,
    ),
    Cause(
        "arithmetic",
        "score.mixture",
        ("compute-bound", "instruction-bound"),
        ("arithmetic", "instructions"),
        _computed_twice,
        block=64,
    ),
    Cause("calls", "score.exp", ("call-bound",), ("calls",), _called_often, files=9),
    Cause(
        "preempted",
        "score.mixture",
        ("compute-bound", "mixed"),
        ("other_programs",),
        _preempted,
        16,
        files=9,
    ),
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


def measure(tries: int) -> dict[str, Any]:
    """Plant each cause so many times."""
    audio = [str(item.path) for item in _data.human_speech()]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for cause in CAUSES:
            rows = [once(cause, audio, Path(folder)) for _ in range(tries)]
            right, shares = 0, []
            for row in rows:
                assert row.parts is not None
                largest = max(row.parts.likely, key=lambda name: row.parts.likely[name])  # type: ignore[union-attr]
                right += row.verdict in cause.verdicts and largest in cause.parts
                shares.append(sum(row.parts.share(name) for name in cause.parts))
            found[cause.name] = {
                "stage": cause.stage,
                "right": right,
                "tries": tries,
                "verdicts": sorted({str(row.verdict) for row in rows}),
                "share": round(float(np.median(shares)), 3),
            }
            print(f"{cause.name}: {found[cause.name]}", file=sys.stderr)
    return {"schema": 1, "bench": "planted_causes", "causes": found}


def main() -> None:
    """Print how often each cause was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=10)
    print(json.dumps(measure(parser.parse_args().tries), indent=2))


if __name__ == "__main__":
    main()
