"""Scoring a continuous model by chosen panels: those on the lists of codewords, or of clusters that are expanded.

What a block needs is put together first, each panel once with the frames that want it, in the order of memory:
so it comes from there once per block, and the one after the next is asked for meanwhile. A queue of a thread's
groups (`groups` int64, ascending): `ends` int64 [groups · streams], where the panels of each group and stream end;
`where` int64 and `whose` uint64 [groups · streams · M + AHEAD], place among the bytes of the parameters and frames
(bit by frame) of each panel.
`lanes` uint16 [groups]: which senones of a group get their score.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pipelines.scoring.simd.exponential import log_plus, sum_exp_down
from pipelines.scoring.simd.maxima import lowest_bit, max_down
from pipelines.scoring.simd.panels import AHEAD, add_to, make_panel
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, copy_floats
from profiler.arrays import Array, ArrayError
from profiler.kernel_spans import now_ns

EVERY = np.uint16((1 << LANES) - 1)
"""All lanes."""
_panel_1, _panel_2, _panel_4 = make_panel(1), make_panel(2), make_panel(4)


@njit(nogil=True, cache=True)
def finish(
    rows: int,
    counts: Array,
    n: int,
    row: int,
    sums: Array,
    scores: Array,
    group: int,
    best: bool,
    lanes: np.uint16 = EVERY,
) -> None:
    """Scores of some `lanes` of a group of senones from its log densities, by log-sum-exp or by the `best` alone.

    `rows`: address of [streams, n] rows of `row` bytes, of which `counts` int64 [streams, n] vectors are filled.
    """
    streams, senones = counts.shape[0], scores.shape[1]
    width = min(LANES, senones - group * LANES)
    product, shift = address(sums[0], np.float32), address(sums[1], np.float32)
    for t in range(n):
        sums[0] = 1.0
        sums[1] = 0.0
        for s in range(streams):
            at = rows + (s * n + t) * row
            if best:
                max_down(at, counts[s, t], shift)
            else:
                sum_exp_down(at, counts[s, t], product, shift)
        log_plus(product, shift, product)
        if lanes == EVERY:
            copy_floats(
                address(scores, np.float32) + (t * senones + group * LANES) * 4, product, width
            )
        else:
            for lane in range(width):
                if lanes >> lane & 1:
                    scores[t, group * LANES + lane] = sums[0, lane]


@njit(nogil=True, cache=True)
def mark(senones: Array, lanes: Array) -> None:
    """Set the lanes of `senones` in `lanes` uint16 [all groups]."""
    for senone in senones:
        if not 0 <= senone < len(lanes) * LANES:
            raise ArrayError("mark: a senone that there is none")
        lanes[senone // LANES] |= np.uint16(1 << senone % LANES)


@njit(nogil=True, cache=True)
def room_fits(
    groups: Array, ends: Array, where: Array, whose: Array, all_groups: int, most: int, streams: int
) -> bool:
    """Whether a queue has room for `most` panels of each of these groups and streams."""
    panels = len(groups) * streams * most + AHEAD
    if len(ends) < len(groups) * streams or len(where) < panels or len(whose) < panels:
        return False
    for group in groups:  # noqa: SIM110 (numba)
        if not 0 <= group < all_groups:
            return False
    return True


@njit(nogil=True, cache=True)
def queue_fits(
    groups: Array,
    ends: Array,
    where: Array,
    whose: Array,
    n: int,
    streams: int,
    most: int,
    panel: int,
    size: int,
) -> bool:
    """Whether a queue holds frames below n and panels of `panel` bytes within `size`, at most `most` together."""
    if n > 64 or not room_fits(groups, ends, where, whose, size, most, streams):
        return False
    none = np.uint64(0) if n == 64 else ~np.uint64(0) << np.uint64(n)
    end = 0
    for i in range(len(groups) * streams):
        if not end <= ends[i] <= end + most:
            return False
        end = ends[i]
    for i in range(end):  # noqa: SIM110 (numba)
        if not 0 <= where[i] <= size - panel or whose[i] & none:
            return False
    return True


@njit(nogil=True, cache=True)
def gather_lists(
    panel: int,
    components: int,
    start: Array,
    items: Array,
    words: Array,
    groups: Array,
    ends: Array,
    where: Array,
    whose: Array,
) -> None:
    """Fill the queue for codewords `words` int32 [n, streams] and `start`, `items` of `shortlists`.

    The parameters are [groups, streams, components] panels of `panel` bytes.
    """
    n, streams = words.shape
    if (
        n > 64
        or len(start) != streams
        or not room_fits(groups, ends, where, whose, start.shape[2] - 1, components, streams)
    ):
        raise ArrayError("gather_lists: lists, codewords and queue do not fit each other")
    for t in range(n):
        for s in range(streams):
            if not 0 <= words[t, s] < start.shape[1]:
                raise ArrayError("gather_lists: a codeword that has no list")
    wanted = np.zeros(1 << 8, np.uint64)  # a place for any item
    count = 0
    for place in range(len(groups)):
        group = groups[place]
        for s in range(streams):
            base = (group * streams + s) * components * panel
            if n == 1:
                k = words[0, s]
                begin, end = start[s, k, group], start[s, k, group + 1]
                if not 0 <= begin <= end <= len(items) or end - begin > components:
                    raise ArrayError("gather_lists: a list beyond the items or the panels")
                for i in range(begin, end):
                    where[count] = base + items[i] * panel
                    whose[count] = 1
                    count += 1
            else:
                for t in range(n):
                    k = words[t, s]
                    bit = np.uint64(1) << np.uint64(t)
                    begin, end = start[s, k, group], start[s, k, group + 1]
                    if not 0 <= begin <= end <= len(items):
                        raise ArrayError("gather_lists: a list beyond the items")
                    for i in range(begin, end):
                        wanted[items[i]] |= bit
                for m in range(components):
                    if wanted[m]:
                        where[count] = base + m * panel
                        whose[count] = wanted[m]
                        wanted[m] = 0
                        count += 1
            ends[place * streams + s] = count
    for i in range(count, count + AHEAD):
        where[i] = where[max(count - 1, 0)]


@njit(nogil=True, cache=True)
def gather_clusters(
    panel: int,
    clusters: Array,
    expanded: Array,
    groups: Array,
    ends: Array,
    where: Array,
    whose: Array,
) -> None:
    """Fill the queue with the panels whose cluster is expanded: `clusters` uint16 [groups, streams, M],
    `expanded` uint64 [streams, K], the frames (bit by frame) that expand each cluster."""
    all_groups, streams, components = clusters.shape
    if len(expanded) != streams or not room_fits(
        groups, ends, where, whose, all_groups, components, streams
    ):
        raise ArrayError("gather_clusters: clusters and queue do not fit each other")
    count = 0
    for place in range(len(groups)):
        group = groups[place]
        for s in range(streams):
            base = (group * streams + s) * components * panel
            for m in range(components):
                k = clusters[group, s, m]
                if k >= expanded.shape[1]:
                    raise ArrayError("gather_clusters: a cluster that there is none")
                frames = expanded[s, k]
                if frames:
                    where[count] = base + m * panel
                    whose[count] = frames
                    count += 1
            ends[place * streams + s] = count
    for i in range(count, count + AHEAD):
        where[i] = where[max(count - 1, 0)]


@njit(nogil=True, cache=True)
def _approximate(
    rows: int,
    row: int,
    counts: Array,
    s: int,
    clusters: Array,
    expanded: Array,
    cluster_scores: Array,
    log_weights: int,
) -> None:
    """Append what stands for the panels of one group and stream that were not computed: weight and cluster."""
    n = counts.shape[1]
    for m in range(len(clusters)):
        k = clusters[m]
        if k >= expanded.shape[1]:
            raise ArrayError("queued: a cluster that there is none")
        for t in range(n):
            if not (expanded[s, k] >> np.uint64(t)) & np.uint64(1):
                to = rows + (s * n + t) * row + counts[s, t] * VECTOR_BYTES
                add_to(log_weights + m * VECTOR_BYTES, cluster_scores[t, s, k], to)
                counts[s, t] += 1


@njit(nogil=True, cache=True)
def queued(
    x: Array,
    groups: Array,
    lanes: Array,
    ends: Array,
    where: Array,
    whose: Array,
    panels: Array,
    clusters: Array,
    expanded_by: Array,
    cluster_scores: Array,
    log_weights: Array,
    tile: Array,
    sums: Array,
    scores: Array,
    best: bool,
) -> int:
    """Scores f32 [n, senones] of `groups` from a queue; returns ns of log-sum-exp.

    `x` f32 [n ≤ 64, streams, K]. With `best` the best component counts and not the sum. With `clusters` (else
    of length 0) what is not computed gets its cluster's score: `cluster_scores` f32 [n, streams, clusters],
    `log_weights` f32 [groups, streams, M, 16]. Workspace of the thread: the queue, `tile` f32 [streams · frames,
    M·16], `sums` f32 [2, 16].
    """
    n, streams, expanded = x.shape
    row = tile.shape[1] * 4
    all_groups, _, components, depth, _ = panels.shape
    if (
        panels.shape != (all_groups, streams, components, expanded, LANES)
        or len(tile) < streams * n
        or tile.shape[1] != components * LANES
        or sums.shape != (2, LANES)
        or len(scores) != n
        or len(lanes) != len(groups)
        or not queue_fits(
            groups,
            ends,
            where,
            whose,
            n,
            streams,
            components,
            depth * VECTOR_BYTES,
            panels.size * 4,
        )
        or (len(groups) and groups.max() >= all_groups)
        or (len(groups) and groups.max() * LANES >= scores.shape[1])
    ):
        raise ArrayError("queued: frames, queue and scores do not fit each other")
    if len(clusters) and (
        clusters.shape != (all_groups, streams, components)
        or len(expanded_by) != streams
        or cluster_scores.shape != (n, streams, expanded_by.shape[1])
        or log_weights.shape != (all_groups, streams, components, LANES)
    ):
        raise ArrayError("queued: clusters and Gaussians do not fit each other")
    parameters = address(panels, np.float32)
    counts = np.zeros((streams, n), np.int64)
    lse_ns = 0
    at = 0
    for place in range(len(groups)):
        group = groups[place]
        counts[:] = 0
        for s in range(streams):
            frame = address(x, np.float32) + s * expanded * 4
            step = streams * expanded * 4
            to = address(tile, np.float32) + s * n * row
            while at < ends[place * streams + s]:
                panel, later = parameters + where[at], parameters + where[at + AHEAD]
                frames = whose[at]
                at += 1
                while frames:
                    a = lowest_bit(frames)
                    frames &= frames - np.uint64(1)
                    ta = to + a * row + counts[s, a] * VECTOR_BYTES
                    counts[s, a] += 1
                    if not frames:
                        _panel_1(panel, expanded, later, (frame + a * step, ta))
                        break
                    b = lowest_bit(frames)
                    frames &= frames - np.uint64(1)
                    tb = to + b * row + counts[s, b] * VECTOR_BYTES
                    counts[s, b] += 1
                    rest = frames & (frames - np.uint64(1))
                    if not rest:
                        _panel_2(
                            panel, expanded, later, (frame + a * step, frame + b * step, ta, tb)
                        )
                        continue
                    c, d = lowest_bit(frames), lowest_bit(rest)
                    frames = rest & (rest - np.uint64(1))
                    tc = to + c * row + counts[s, c] * VECTOR_BYTES
                    td = to + d * row + counts[s, d] * VECTOR_BYTES
                    counts[s, c] += 1
                    counts[s, d] += 1
                    _panel_4(
                        panel,
                        expanded,
                        later,
                        (
                            frame + a * step,
                            frame + b * step,
                            frame + c * step,
                            frame + d * step,
                            ta,
                            tb,
                            tc,
                            td,
                        ),
                    )
            if len(clusters):
                weights = address(log_weights, np.float32) + (group * streams + s) * row
                here = clusters[group, s]
                _approximate(
                    address(tile, np.float32),
                    row,
                    counts,
                    s,
                    here,
                    expanded_by,
                    cluster_scores,
                    weights,
                )
        begin = now_ns()
        finish(address(tile, np.float32), counts, n, row, sums, scores, group, best, lanes[place])
        lse_ns += now_ns() - begin
    return lse_ns
