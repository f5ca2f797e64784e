"""The kernels that compute chosen panels of continuous models, as roofs: lists, panels, what stands in for others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numba import njit

from pipelines.scoring.clustering.clusters import Backing
from pipelines.scoring.continuous import listed
from pipelines.scoring.continuous.eliminate import eliminate
from pipelines.scoring.continuous.queue import EVERY, Queue, gather_clusters, gather_lists
from pipelines.scoring.gaussians.bounds import rests
from pipelines.scoring.kernel_work import AT_ONCE, FIRST_CACHE, ONE, START, Family, Numbers
from pipelines.scoring.roofs_tasks import filled
from pipelines.scoring.simd.maxima import insert_down
from pipelines.scoring.simd.panels import AHEAD, panel_of_bytes
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, copy_floats
from profiler.arrays import Array, ArrayError
from profiler.kernel_spans import now_ns
from profiler.machine.roofs.timing import Task, Work, repeated

PANELS, BYTES, LISTS, CLUSTERS, STANDINS, SUM, INSERT, ELIMINATE = (
    "chosen panels",
    "chosen panels in bytes",
    "lists put together",
    "clusters put together",
    "clusters stand in",
    "sum of a group",
    "best kept",
    "panels given up",
)

HUNDRED = 100
FEW = 64
"""Panels within the first cache at most; codewords of lists that are put together."""


@njit(nogil=True, cache=True)
def _panels(
    x: Array,
    parameters: Array,
    chosen: tuple[Array, Array],
    tile: Array,
    turn: Array,
    some: int,
    repeats: int,
) -> None:
    """Some stretches of the `chosen` panels, as long as the tile is wide; `turn` int64 [1]: where the next begin."""
    where, whose = chosen
    n, expanded = x.shape
    row = tile.shape[1] * 4
    if len(tile) != n or len(where) != len(whose) or len(where) <= AHEAD:
        raise ArrayError("_panels: frames, panels and rows do not fit each other")
    counts = np.zeros(n, np.int64)
    panels = len(where) - AHEAD
    group = min(tile.shape[1] // LANES, panels)
    for _ in range(repeats):
        for _ in range(some):
            at = turn[0] if turn[0] + group <= panels else 0
            turn[0] = at + group
            counts[:] = 0
            listed._computed(
                address(parameters, np.float32),
                (address(x, np.float32), address(tile, np.float32)),
                (expanded, expanded * 4, row),
                (where, whose),
                at,
                at + group,
                counts,
            )


@njit(nogil=True, cache=True)
def _in_bytes(
    x: Array, parameters: Array, where: Array, out: Array, turn: Array, some: int, repeats: int
) -> None:
    n, depth = x.shape
    if out.shape[1:] != (n, LANES) or len(where) <= AHEAD:
        raise ArrayError("_in_bytes: frames, panels and rows do not fit each other")
    base = address(parameters, np.uint8)
    for _ in range(repeats):
        for _ in range(some):
            at = turn[0] % (len(where) - AHEAD)
            turn[0] = at + 1
            for t in range(n):
                panel_of_bytes(
                    address(x, np.int16) + t * depth * 2,
                    base + where[at],
                    depth // 2,
                    base + where[at + AHEAD],
                    address(out[at % len(out)], np.float32) + t * VECTOR_BYTES,
                )


@njit(nogil=True, cache=True)
def _stand_ins(tile: Array, counts: Array, backing: Backing, repeats: int) -> None:
    groups, streams, _ = backing[0].shape
    if len(tile) < streams * counts.shape[1] or len(counts) != streams:
        raise ArrayError("_stand_ins: rows and clusters do not fit each other")
    for _ in range(repeats):
        for group in range(groups):
            counts[:] = 0
            for s in range(streams):
                listed._approximate(tile, counts, group, s, backing)


@njit(nogil=True, cache=True)
def _sums(tile: Array, sums: Array, counts: Array, scores: Array, best: bool, repeats: int) -> int:
    spent = 0
    for _ in range(repeats):
        begin = now_ns()
        listed.finish(tile, sums, counts, scores, START, best, EVERY)
        spent += now_ns() - begin
    return spent


@njit(nogil=True, cache=True)
def _inserts(tile: Array, top: Array, repeats: int) -> None:
    n, width = tile.shape
    keep = len(top)
    if top.shape != (keep, LANES) or width < keep * LANES:
        raise ArrayError("_inserts: log densities and the best do not fit each other")
    for _ in range(repeats):
        for t in range(n):
            to = address(tile, np.float32) + t * width * 4
            top[:] = -1e30
            for m in range(width // LANES):
                insert_down(to + m * VECTOR_BYTES, address(top, np.float32), keep)
            copy_floats(to, address(top, np.float32), keep * LANES)


@njit(nogil=True, cache=True)
def _lists(
    components: int, start: Array, items: Array, words: Array, queue: Queue, repeats: int
) -> None:
    for _ in range(repeats):
        gather_lists(ONE, components, start, items, words, queue)


@njit(nogil=True, cache=True)
def _clusters(of_panel: Array, expanded: Array, queue: Queue, repeats: int) -> None:
    for _ in range(repeats):
        gather_clusters(ONE, of_panel, expanded, queue)


def _some(count: int, percent: int) -> Array:
    """Some of the numbers 0 … count − 1 in order, at random but always the same."""
    chosen = np.random.default_rng(0).permutation(count)[: max(1, count * percent // HUNDRED)]
    return np.sort(chosen).astype(np.int64)


def _ahead(places: Array) -> Array:
    return np.append(places, np.repeat(places[-1:], AHEAD))


def panels(size: int, numbers: Numbers) -> Work:
    """Some `percent` of the panels, each at `frames` frames: units are Gaussians at a frame."""
    frames, depth, components, percent = numbers
    each = depth * VECTOR_BYTES
    count = max(1, size // each) if size else max(1, FIRST_CACHE // each)
    if not size:
        components, percent = count, HUNDRED
    chosen = _some(count, percent)

    def make() -> Task:
        x, parameters = filled((frames, depth)), filled((count, depth, LANES))
        tile = filled((frames, components * LANES))
        where = _ahead(chosen * each)
        whose = np.full(len(where), (1 << frames) - 1, np.uint64)
        turn = np.zeros(1, np.int64)
        return lambda repeats: _panels(x, parameters, (where, whose), tile, turn, some, repeats)

    stretch = min(components, len(chosen))
    some = max(1, AT_ONCE // (stretch * each)) if size else 1
    return Work(float(some * stretch * frames * LANES), make)


def in_bytes(size: int, numbers: Numbers) -> Work:
    """The same with 8-bit Gaussians of `pairs` of dimensions."""
    frames, pairs, percent = numbers
    each = VECTOR_BYTES * (pairs + 2)
    count = max(1, (size or FIRST_CACHE) // each)
    chosen = _some(count, percent if size else HUNDRED)

    def make() -> Task:
        x, parameters = np.ones((frames, 2 * pairs), np.int16), np.ones((count, each), np.uint8)
        out = filled((FIRST_CACHE // (frames * VECTOR_BYTES), frames, LANES))
        where = _ahead(chosen * each)
        turn = np.zeros(1, np.int64)
        return lambda repeats: _in_bytes(x, parameters, where, out, turn, some, repeats)

    some = min(len(chosen), AT_ONCE // each)
    return Work(float(some * frames * LANES), make)


def _queue(groups: int, streams: int, components: int) -> Queue:
    most = groups * streams * components + AHEAD
    return (
        np.arange(groups),
        np.full(groups, EVERY),
        np.empty(groups * streams, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.uint64),
    )


def lists(size: int, numbers: Numbers) -> Work:
    """Lists of `rows` codewords put together, `percent` of a group's panels on each: units are items of the lists."""
    rows, components, percent = numbers
    groups = FEW
    length = max(1, components * percent // HUNDRED)
    rng = np.random.default_rng(0)

    def make() -> Task:
        start = (np.arange(FEW)[:, None] * groups + np.arange(groups + 1)) * length
        chosen = rng.permuted(
            np.tile(np.arange(components, dtype=np.uint8), (FEW * groups, 1)), axis=1
        )
        items = np.sort(chosen[:, :length], axis=1).ravel()
        words = rng.integers(0, FEW, (rows, 1)).astype(np.int32)
        queue = _queue(groups, 1, components)
        starts = start[None].astype(np.int32)
        return lambda repeats: _lists(components, starts, items, words, queue, repeats)

    return Work(float(rows * groups * length), make)


def clusters(size: int, numbers: Numbers) -> Work:
    """Panels of expanded clusters put together: units are panels looked at, `percent` of which are expanded."""
    components, percent = numbers
    groups, count = FEW, 512
    rng = np.random.default_rng(0)

    def make() -> Task:
        of_panel = rng.integers(0, count, (groups, 1, components)).astype(np.uint16)
        expanded = (rng.random((1, count)) * HUNDRED < percent).astype(np.uint64)
        queue = _queue(groups, 1, components)
        return lambda repeats: _clusters(of_panel, expanded, queue, repeats)

    return Work(float(groups * components), make)


def stand_ins(size: int, numbers: Numbers) -> Work:
    """What stands for panels that were not computed: units are all panels at a frame, `percent` of them computed."""
    rows, components, percent = numbers
    each = components * VECTOR_BYTES
    groups, count = max(1, (size or FIRST_CACHE // 2) // each), 512
    rng = np.random.default_rng(0)

    def make() -> Task:
        expanded = np.zeros((1, count), np.uint64)
        for t in range(rows):
            expanded |= (rng.random((1, count)) * HUNDRED < percent).astype(np.uint64) << np.uint64(
                t
            )
        backing = (
            rng.integers(0, count, (groups, 1, components)).astype(np.uint16),
            filled((groups, 1, components, LANES)),
            expanded,
            filled((rows, 1, count)),
        )
        tile, counts = filled((rows, components * LANES)), np.zeros((1, rows), np.int64)
        return lambda repeats: _stand_ins(tile, counts, backing, repeats)

    return Work(float(rows * groups * components), make)


def sums(size: int, numbers: Numbers) -> Work:
    """Log-sum-exp of a group of senones over `kept` components (best: the largest alone): units are Gaussians."""
    rows, streams, kept, best = numbers
    each = streams * kept * VECTOR_BYTES
    if not size:
        rows = max(1, min(rows, FIRST_CACHE // each))

    def make() -> Task:
        tile, scores = filled((streams * rows, kept * LANES)), filled((rows, LANES))
        counts = np.full((streams, rows), kept)
        work = filled((2, LANES))
        return lambda repeats: _sums(tile, work, counts, scores, bool(best), repeats)

    return Work(float(rows * streams * kept * LANES), make)


def inserts(size: int, numbers: Numbers) -> Work:
    """The `keep` best of the components, lane by lane: units are Gaussians."""
    rows, components, keep = numbers
    if not size:
        rows = max(1, min(rows, FIRST_CACHE // (components * VECTOR_BYTES)))

    def make() -> Task:
        tile, top = filled((rows, components * LANES)), filled((keep, LANES))
        return lambda repeats: _inserts(tile, top, repeats)

    return Work(float(rows * components * LANES), make)


def given_up(size: int, numbers: Numbers) -> Work:
    """Partial distance elimination for the `keep` best, at random: units are dimensions / those of a Gaussian."""
    depth, components, keep, follow = numbers
    dim, each = depth // 2, depth * components * VECTOR_BYTES
    groups, rows = max(1, size // each), 8
    rng = np.random.default_rng(0)
    gaussians = filled((groups, 1, components, depth, LANES))
    means = rng.normal(size=(1, 1, components, dim, LANES)).astype(np.float32)
    gaussians[..., :dim, :], gaussians[..., dim : 2 * dim, :] = -0.5, means
    gaussians[..., 2 * dim, :] = -0.5 * (means**2).sum(axis=3)
    x = np.ones((rows, 1, depth), np.float32)
    x[..., dim : 2 * dim] = rng.normal(size=(rows, 1, dim))
    x[..., :dim] = x[..., dim : 2 * dim] ** 2
    order = np.tile(np.arange(components, dtype=np.uint8), (groups, 1, 1))
    within = rests(gaussians), order, keep, bool(follow)
    tile, work = filled((rows, components * LANES)), filled((2, LANES))
    scores = filled((rows, groups * LANES))

    def once() -> int:
        spent: tuple[int, int] = eliminate(x, gaussians, within, tile, work, scores, 0, groups)
        return spent[1]

    once()
    return Work(once() / dim, lambda: repeated(once))


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        PANELS: panels,
        BYTES: in_bytes,
        LISTS: lists,
        CLUSTERS: clusters,
        STANDINS: stand_ins,
        SUM: sums,
        INSERT: inserts,
        ELIMINATE: given_up,
    }
)
"""Family of roofs → what makes its work from a size and the numbers of its name."""
