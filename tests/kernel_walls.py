"""Every compiled kernel outside of scoring run on arrays between walls, at sizes 0, 1, odd and full.

An exercise names the kernels that it runs; `test_kernel_walls` wants every kernel named by one. As a program, for
what cannot be done in the process of the tests:

    python -m tests.kernel_walls plain       all exercises on plain arrays, for numba's own checks of indices
    python -m tests.kernel_walls plant       each planted fault in a process of its own; prints how it ended
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import multiprocessing
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from pipelines.config import Search
from pipelines.frontend import _kernels as frontend
from pipelines.models import estimation
from pipelines.search import alternatives, workspace
from pipelines.search.device import _backpointers
from pipelines.search.device.frontier import NOBODY
from pipelines.search.graph import _arcs, _context
from pipelines.search.graph.openfst import from_arcs
from pipelines.search.graph.topology import Topology
from pipelines.search.graph.wfst import Graph, Senones, from_topology
from pipelines.search.kernels import history as _history
from pipelines.search.kernels import lattice as _lattice
from pipelines.search.viterbi import Viterbi
from pipelines.search.workspace import Workspace
from pipelines.training import align
from profiler import kernel_spans
from profiler.arrays import Array
from profiler.machine.roofs import _kernels as machine
from profiler.span_layout import AT, DROPPED, LEFT, N_LENT, SLOT
from tests.fences import PATTERN, Fenced, Side

ROOT = Path(__file__).parents[1]
ROOMS = (
    "pipelines/search",
    "pipelines/frontend",
    "pipelines/models",
    "pipelines/training",
    "profiler",
)
SIZES = (0, 1, 2, 7, 33)


class Walls:
    """Puts arrays beside walls, or with `side` None leaves them as they are."""

    def __init__(self, side: Side | None) -> None:
        self._side, self._made = side, list[Fenced]()

    def __call__(self, array: Any, dtype: Any = None) -> Array:
        """A copy of `array` beside a wall."""
        copy = np.array(array, dtype, order="C")
        if self._side is None:
            return copy
        self._made.append(Fenced(copy, self._side))
        return self._made[-1].array

    def empty(self, shape: Any, dtype: Any) -> Array:
        """As `np.empty`, full of what must not be used."""
        made = self(np.zeros(shape, dtype))
        if made.size:
            made.reshape(-1).view(np.uint8)[:] = PATTERN
        return made

    def intact(self) -> bool:
        """Whether nothing was written around the arrays."""
        return all(fence.intact() for fence in self._made)


Exercise = Callable[[Walls], None]
EXERCISES: dict[str, Exercise] = {}
NAMED: dict[str, list[str]] = {}
"""Kernel → the exercises that run it."""


def runs(module: Any, *kernels: str) -> Callable[[Exercise], Exercise]:
    """Enter an exercise of these kernels of a module."""

    def enter(exercise: Exercise) -> Exercise:
        EXERCISES[exercise.__name__] = exercise
        for kernel in kernels:
            name = module if isinstance(module, str) else module.__name__
            NAMED.setdefault(f"{name}.{kernel}", []).append(exercise.__name__)
        return exercise

    return enter


def kernel_files() -> Iterator[Path]:
    """The files of the rooms that define compiled functions."""
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            if re.search(r"^ *@(numba\.)?njit", file.read_text(encoding="utf-8"), re.MULTILINE):
                yield file


def module_of(file: Path) -> str:
    """The name by which a file is imported."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def kernels() -> set[str]:
    """All compiled functions of the rooms."""
    return {
        f"{name}.{attribute}"
        for name in map(module_of, kernel_files())
        for attribute, value in vars(importlib.import_module(name)).items()
        if isinstance(value, Dispatcher) and value.py_func.__module__ == name
    }


# -- the decoder -----------------------------------------------------------------------------------


def graph(seed: int, n: int, crowded: bool = False, n_senones: int = 5) -> Graph:
    """A graph of `n` states, every one final; `crowded`: an arc between any two, and all can be alive at once."""
    rng = np.random.default_rng(seed)
    arcs = [(0, 0, 0, 0.0, 0)][:0]
    for state in range(n):
        goals = range(n) if crowded else rng.integers(0, n, 2).tolist()
        arcs += [
            (
                state,
                int(rng.integers(1, n_senones + 1)),
                int(rng.integers(0, 3)),
                rng.random(),
                goal,
            )
            for goal in goals
        ]
        # States with epsilon arcs come first, and these lead upwards.
        if state < n // 2:
            arcs += [
                (state, 0, int(rng.integers(0, 3)), rng.random(), g) for g in (state + 1, n - 1)
            ]
    columns = [np.array(column) for column in zip(*arcs, strict=True)] or [np.empty(0, int)] * 5
    fst = from_arcs(n, 0, np.zeros(n, np.float32), *columns)
    return from_topology(
        Topology(
            fst,
            rng.integers(0, n_senones + 1, n).astype(np.int32),
            rng.random(n).astype(np.float32),
        ),
        Senones(np.zeros(n_senones), rng.integers(0, 2, n_senones), np.array([False])),
        ("a", "b"),
        [[(0,)], [(0, 0)]],
    )


def settings(**changes: Any) -> Search:
    values = {"beam": 1e4, "max_active": 1000, "min_active": 0, "acoustic_scale": 1.0}
    values |= {"insertion_penalty": 0.5, "governor": False, "wished_rtf": 1.0}
    return Search(**(values | {"lattice": False, "lattice_beam": 1e4, "nbest": 9} | changes))


def walled(graph: Graph, walls: Walls) -> Graph:
    """The same graph in arrays beside walls."""
    fields = {f.name: getattr(graph, f.name) for f in dataclasses.fields(graph)}
    return Graph(**{k: walls(v) if isinstance(v, np.ndarray) else v for k, v in fields.items()})


def decoder(graph: Graph, walls: Walls, chosen: Search) -> Viterbi:
    """A decoder all of whose arrays lie beside walls, with the least room to begin with."""
    before = workspace.FIRST_HISTORY, alternatives.FIRST_ALTERNATIVES
    # Room of one, so that each array is full to the last element before it grows.
    workspace.FIRST_HISTORY = alternatives.FIRST_ALTERNATIVES = 1
    try:
        made = Viterbi(graph, chosen)
        made._space = Workspace(graph, walls.empty)
        made._tracer._entries = walls.empty(1, np.int32)
        made.configure(chosen)
        made.start(0)
    finally:
        workspace.FIRST_HISTORY, alternatives.FIRST_ALTERNATIVES = before
    return made


def decode(made: Viterbi, scores: Array, walls: Walls, block: int) -> None:
    """All that is asked of a decoder in an utterance."""
    made.start(0)
    for at in range(0, len(scores), block):
        made.advance(walls(scores[at : at + block]), at)
        made.partial()
        made.wanted()
    made.finish()


def loud(seed: int, frames: int, n_senones: int = 5) -> Array:
    return (
        np.random.default_rng(seed).normal(scale=4.0, size=(frames, n_senones)).astype(np.float32)
    )


SEARCH = {
    "token_passing": ("_loop", "_price", "mark", "emit", "senones_asked", "advance"),
    "epsilon": ("entry_of", "close", "begin"),
    "pruning": (
        "select",
        "below",
        "cutoff",
        "_take_off",
        "_write_history",
        "_close_up",
        "prune",
        "reprice",
    ),
    "history": ("collect", "trace"),
    "graph_check": ("fault",),
}


def _search(walls: Walls, **changes: Any) -> None:
    for n, crowded in ((1, False), (1, True), (2, True), (7, False), (13, True)):
        made = decoder(walled(graph(n, n, crowded), walls), walls, settings(**changes))
        for block in (1, 3, 9):
            decode(made, loud(block, 9), walls, block)
            made.configure(settings(insertion_penalty=float(block), **changes))


for _room, _kernels_of_room in SEARCH.items():

    @runs(f"pipelines.search.kernels.{_room}", *_kernels_of_room)
    def search(walls: Walls) -> None:
        """Decoding with nothing pruned: as many tokens as there are states, as many arcs as there are."""
        _search(walls)

    @runs(f"pipelines.search.kernels.{_room}", *_kernels_of_room)
    def search_pruned(walls: Walls) -> None:
        """Decoding with the histogram's cutoff, dead tokens, and lists that are closed up."""
        _search(walls, max_active=2, beam=3.0)
        _search(walls, max_active=0, beam=0.5, min_active=3)

    @runs(f"pipelines.search.kernels.{_room}", *_kernels_of_room)
    def search_of_what_are_no_numbers(walls: Walls) -> None:
        """Scores and beams from a damaged model."""
        rng = np.random.default_rng(5)
        for beam in (1e-30, 3.0, np.inf):
            made = decoder(
                walled(graph(4, 13, True), walls), walls, settings(beam=beam, max_active=3)
            )
            for worst in (np.nan, np.inf, -np.inf, 3e38, -3e38):
                scores = loud(1, 9)
                scores[rng.random(scores.shape) < 0.3] = worst
                decode(made, scores, walls, 4)
                decode(made, np.full_like(scores, worst), walls, 4)


@runs(_lattice, "_decide", "record_frame", "_add", "posteriors", "words_before")
def search_with_alternatives(walls: Walls) -> None:
    """A lattice of everything, in room that grows by need."""
    _search(walls, lattice=True)
    _search(walls, lattice=True, lattice_beam=1.0, max_active=3)
    made = decoder(walled(graph(3, 7, True), walls), walls, settings(lattice=True))
    decode(made, loud(2, 7), walls, 3)
    space = made._space
    used, kept = int(space.registers[3]), int(space.registers[8])
    _, alternative, delta = space.lattice[:3]
    ends, above = np.arange(-1, used), np.zeros(used + 1)
    lattice = alternatives.Lattice(
        space.history[:used], alternative[:kept], delta[:kept], ends, above, 0.0
    )
    history, first = walls(lattice.history), walls(lattice.first())
    other, lost = walls(lattice.alternative[:, 1]), walls(lattice.delta)
    _lattice.posteriors(history, used, first, other, lost, walls(ends), walls(above), 1e4)
    scratch = walls(np.full(used, np.inf))
    arcs = made.graph.arcs
    _lattice.words_before(
        arcs, history, first, other, lost, walls(ends), walls(above), 1e4, scratch
    )
    assert np.isinf(scratch).all()


@runs(_history, "collect", "trace")
def histories(walls: Walls) -> None:
    """Histories of a chain and of nothing; every entry an alternative of the one before."""
    for n in SIZES:
        rows = walls([(i - 1, -1, i) for i in range(n)], np.int32).reshape(n, 3)
        pairs = walls([(i, i - 2) for i in range(1, n)], np.int32).reshape(-1, 2)
        delta = walls(np.ones(len(pairs)), np.float32)
        roots, others = walls(np.arange(n - 1, -2, -1), np.int32), walls(np.zeros(0), np.int32)
        for beam in (0.5, np.inf):
            _history.collect(rows, n, roots, len(roots), others, 0, pairs, delta, len(delta), beam)
        for room in SIZES:
            _history.trace(rows, n - 1, -1, walls.empty(room, np.int32))


@runs(_backpointers, "_append", "absorb")
def back_pointers(walls: Walls) -> None:
    """Back-pointers of a device into a history that has just the room, and into one that lacks an entry."""
    for tokens in (1, 2, 7):
        for frames in (1, 3):
            rng = np.random.default_rng(tokens)
            previous = walls(rng.integers(0, tokens, (frames, tokens)), np.int32)
            arc = walls(rng.integers(-2, 3, (frames, tokens)), np.int32)
            arcs = [walls(column, np.int32) for column in ((0, 1, -1), (1, 0, -1), (5, 6), (-1, 0))]
            for room in (frames * tokens * 3, 0):
                entry = walls(np.full(tokens, -1), np.int32)
                history = walls.empty((room, 3), np.int32)
                _backpointers.absorb(previous, arc, *arcs, 2, 0, entry, history, 0)
            previous[:], arc[:] = tokens, 1
            entry = walls(np.full(tokens, -1), np.int32)
            found = _backpointers.absorb(previous, arc, *arcs, 2, 0, entry, history, 0)
            assert found == _backpointers.BROKEN
            assert NOBODY == -1


# -- graphs as they are made -----------------------------------------------------------------------


@runs(_arcs, "sort_by_source", "count", "unpack", "pack", "reach")
def arcs(walls: Walls) -> None:
    """Arcs of no state, of one, and of some; files of them, whole and cut short."""
    for n in SIZES:
        rng = np.random.default_rng(n)
        m = 3 * n
        first, order = walls(np.zeros(n + 1), np.int64), walls.empty(m, np.int64)
        _arcs.sort_by_source(walls(rng.integers(0, max(n, 1), m)), first, order)
        assert first[-1] == m
        columns = [walls(rng.integers(0, max(n, 1), m), np.int32) for _ in range(4)]
        final, body = walls(np.zeros(n), np.int32), walls.empty(3 * n + 4 * m, np.int32)
        _arcs.pack(first, final, *columns, body)
        again = walls(np.zeros(n + 1), np.int64)
        assert _arcs.count(body, again) == len(body)
        _arcs.unpack(body, again, final, *(walls.empty(m, np.int32) for _ in range(4)))
        for length in range(0, len(body), 5):
            assert _arcs.count(walls(body[:length]), walls(np.zeros(n + 1), np.int64)) == -1
        if n:
            _arcs.reach(first, columns[3], 0, walls(np.zeros(n), np.bool_))


@runs(_context, "_slot", "find_places", "fill_arcs")
def contexts(walls: Walls) -> None:
    """Phones into contexts: few places, and more than the table has at first."""
    for n, phones in ((1, 1), (2, 3), (7, 5), (400, 40)):
        rng = np.random.default_rng(n)
        labels, span, m = phones + 3, phones + 1, 3 * n
        first = walls(np.arange(n + 1) * 3, np.int64)
        ilabel, target = (walls(rng.integers(0, to, m), np.int32) for to in (labels, n))
        base = walls([-1, *range(phones), -1, -1], np.int32)
        onward = walls(rng.integers(0, span, (labels, span)), np.int32)
        said, symbol = (walls(np.zeros(shape), np.int32) for shape in ((span, phones), labels))
        keys, table = _context.find_places(first, ilabel, target, 0, base, onward, span)
        is_final = walls(np.ones(n), np.bool_)
        places, room = len(keys), 4 * len(keys)
        made = (
            walls.empty(places + 2, np.int64),
            walls.empty(room, np.int32),
            walls.empty(room, np.int32),
        )
        _context.fill_arcs(
            walls(keys), walls(table), first, ilabel, target, is_final, base, onward, said,
            phones - 1, symbol, *made, walls.empty(room, np.int64),
        )  # fmt: skip
        assert made[0][-1] == room


# -- features, models, alignment -------------------------------------------------------------------


@runs(frontend, "remove_noise", "cepstra", "normalise")
def features(walls: Walls) -> None:
    """No frame, one and some; filters of one bin and of the whole spectrum."""
    for frames in SIZES:
        for bins, filters, n in ((1, 1, 1), (9, 4, 3), (257, 25, 13)):
            rng = np.random.default_rng(bins)
            starts = walls(np.linspace(0, bins - 1, filters), np.int64)
            offsets = walls([0, *np.cumsum(bins - starts)], np.int64)
            spectrum = walls(rng.normal(size=(frames, bins)), np.complex128)
            out, sums = walls.empty((frames, n), np.float32), walls(np.zeros(n + 1))
            transform = walls(rng.normal(size=(n, filters)))
            weights, state = walls(np.ones(offsets[-1])), walls(np.zeros((4, filters)))
            for denoise in (False, True):
                filters = starts, offsets, weights
                frontend.cepstra(spectrum, filters, transform, denoise, state, False, out, sums)
            frontend.normalise(
                out,
                walls(np.zeros(n), np.float32),
                0,
                frames,
                walls.empty((frames, 3 * n), np.float32),
            )


@runs(estimation, "_draw", "_scatter", "_total_variance", "_maximise", "_fit")
def mixtures(walls: Walls) -> None:
    """One Gaussian and some, with no real frame and with some; the last senones of a model."""
    for books, streams, densities, dim, senones, components in (
        (1, 1, 1, 1, 1, 1),
        (3, 2, 5, 3, 7, 4),
    ):
        rng = np.random.default_rng(books)
        shape = books, streams, densities, dim
        means = walls(rng.normal(size=shape), np.float32)
        weights = np.cumsum(rng.random((streams, densities, senones)), axis=1)
        width = streams * dim
        for frames in (0, 1, 5):
            first = walls(np.linspace(0, frames, senones + 1), np.int64)
            new = [walls.empty(s, np.float32) for s in ((senones, 1, components, width),) * 2]
            new.append(walls.empty((1, components, senones), np.float32))
            old = estimation.Densities(
                means, walls(np.ones(shape), np.float32), walls(weights, np.float32),
                walls(rng.integers(0, books, senones), np.int32),
            )  # fmt: skip
            real = estimation.Frames(
                walls(rng.normal(size=(frames, width)), np.float32),
                walls(np.arange(frames), np.int32), walls(np.ones(frames), np.float32), first,
            )  # fmt: skip
            estimation.fit(
                old, real, estimation.Mixtures(*new), 0, senones, samples=11, prior=1.0, steps=2,
                rng=np.random.default_rng(1),
            )  # fmt: skip
            assert np.isfinite(new[0]).all()


@runs(align, "_viterbi")
def alignment(walls: Walls) -> None:
    """One unit and a chain of some; no frame, too few, and enough."""
    for units in (1, 2, 7):
        states = 3 * units
        before = np.arange(units - 1)
        first = [0, *np.minimum(np.arange(units), units - 1)]
        begins, ends = np.arange(units) == 0, np.arange(units) == units - 1
        for frames in SIZES:
            path = walls.empty(frames, np.int32)
            align._viterbi(
                walls(loud(frames, frames, states)), walls(np.arange(states), np.int32),
                *(walls(np.full(states, -0.7), np.float32) for _ in range(2)),
                walls(before, np.int32), walls(first, np.int32), walls(begins), walls(ends), path,
            )  # fmt: skip
            assert frames < states or (np.diff(path) >= 0).all()


# -- the profiler ----------------------------------------------------------------------------------

OVER_TWO = ("fma_vector", "exp_loop", "log_loop", "exp_vector", "log_vector")


@runs(machine, *OVER_TWO, "fma_scalar", "read", "write", "triad", "nothing")
def probes(walls: Walls) -> None:
    """What measures the machine's roofs."""
    for n in SIZES:
        values, out = (walls(np.ones(n), np.float32) for _ in range(2))
        for name in OVER_TWO:
            getattr(machine, name)(values, out, 2)
        machine.read(values, 2)
        machine.triad(out, values, walls(np.ones(n), np.float32), 2)
        machine.write(out, 2)
        whole = machine.SCALAR_CHAINS * n
        order = walls(np.arange(whole)[::-1], np.uint32)
        machine.fma_scalar(walls(np.ones(whole), np.float32), order, 2)
    machine.nothing(1)


@runs(kernel_spans, "put", "now_ns")
def spans(walls: Walls) -> None:
    """Rings of no slot, of one and of some: from each place, with no room, with some and with all."""
    for slots in (0, 1, 2, 7):
        for at in range(max(slots, 1)):
            for left in range(max(slots, 1)):
                ring, state = walls.empty(slots, SLOT), walls(np.zeros(N_LENT), np.int64)
                state[AT], state[LEFT] = at, left
                for _ in range(slots + 1):
                    kernel_spans.put((ring, state), 3, 1, 2, 3, 4, 5, 6, 7)
                assert (state[LEFT], state[DROPPED]) == (0, slots + 1 - left)
                assert state[AT] == ((at + left) % slots if slots else 0)


# -- faults that are planted -----------------------------------------------------------------------


def _short(walls: Walls, spoil: Callable[[Workspace], None]) -> None:
    made = decoder(walled(graph(13, 13, True), walls), walls, settings())
    spoil(made._space)
    # The walls are to catch what the check would.
    made._space.check = lambda: None  # type: ignore[method-assign]
    decode(made, loud(1, 9), walls, 3)


def a_state_too_few(walls: Walls) -> None:
    """Room for one token less than the graph has states."""

    def spoil(space: Workspace) -> None:
        space.tokens = tuple(walls(column[:-2]) for column in space.tokens)
        space.new_cost = space.tokens[3]

    _short(walls, spoil)


def an_arc_too_few(walls: Walls) -> None:
    """Room for fewer emitting arcs than the graph has."""

    def spoil(space: Workspace) -> None:
        least = int((space.graph.arcs["ilabel"] > 0).sum()) - 1
        space.emitting = tuple(walls(column[:least]) for column in space.emitting)

    _short(walls, spoil)


def a_senone_too_few(walls: Walls) -> None:
    """A row of scores that lacks the last senone."""
    _short(walls, lambda space: setattr(space, "row", walls(space.row[:-1])))


PLANTED = (a_state_too_few, an_arc_too_few, a_senone_too_few)


def main(what: str) -> None:
    """See the file's beginning."""
    if what == "plain":
        for exercise in EXERCISES.values():
            exercise(Walls(None))
        return
    fork = multiprocessing.get_context("fork")
    search(Walls(None))  # compiled before, so that each child has to load nothing
    ends = {}
    for fault in PLANTED:
        child = fork.Process(target=fault, args=(Walls("behind"),))
        child.start()
        child.join()
        ends[fault.__name__] = child.exitcode
    sys.stdout.write(json.dumps(ends) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
