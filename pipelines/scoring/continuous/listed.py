"""Scoring a continuous model by chosen panels: those on the lists of codewords, or of clusters that are expanded.

The panels of a block are put together before any is computed. Each comes once, with the frames that want it, and in the
order of memory: so it comes from there once per block, and the one after the next is prefetched meanwhile. A queue is a
tuple without names, which numba would look at in every call.
"""

import numpy as np
from numba import njit

from pipelines.scoring.clustering.clusters import Backing, backing_fits
from pipelines.scoring.gaussians.int8 import bytes_fit, row_of_bytes
from pipelines.scoring.simd.exponential import log_plus, sum_exp_down
from pipelines.scoring.simd.maxima import lowest_bit, max_down
from pipelines.scoring.simd.panels import AHEAD, add_to, make_panel, panel_of_bytes
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, copy_floats
from profiler.arrays import Array, ArrayError
from profiler.process.numba_flags import njit_part
from profiler.recording.kernel_spans import now_ns

EVERY = np.uint16((1 << LANES) - 1)  # All lanes

Queue = tuple[Array, Array, Array, Array, Array]
"""Panels of a thread's groups: (groups, lanes, ends, offsets, frame_bits).

`groups` int64, ascending; `lanes` uint16 [groups]: which senones of a group get their score. `ends` int64 [groups ·
streams]: where the panels of each group and stream end; `offsets` int64 and `frame_bits` uint64 [groups · streams · M +
AHEAD]: place among the bytes of the parameters and frames (bit by frame) of each panel.
"""


@njit(nogil=True, cache=True)
def mark(senones: Array, lanes: Array) -> None:
    """Set the lanes of `senones` in `lanes` uint16 [all groups]."""
    for senone in senones:
        if not 0 <= senone < len(lanes) * LANES:
            raise ArrayError("mark: a senone that there is none")
        lanes[senone // LANES] |= np.uint16(1 << senone % LANES)


@njit_part
def room_fits(queue: Queue, all_groups: int, most: int, streams: int) -> bool:
    """Whether it has room for `most` panels of each of its groups and streams."""
    groups, _, ends, offsets, frame_bits = queue
    panels = len(groups) * streams * most + AHEAD
    if len(ends) < len(groups) * streams or len(offsets) < panels or len(frame_bits) < panels:
        return False
    return not len(groups) or (groups.min() >= 0 and groups.max() < all_groups)


@njit_part
def queue_fits(queue: Queue, n: int, streams: int, most: int, panel: int, size: int) -> bool:
    """Whether it holds frames below n and panels of `panel` bytes within `size`, at most `most` together."""
    groups, lanes, ends, offsets, frame_bits = queue
    if n > 64 or len(lanes) != len(groups) or not room_fits(queue, size, most, streams):
        return False
    none = np.uint64(0) if n == 64 else ~np.uint64(0) << np.uint64(n)
    end = 0
    for i in range(len(groups) * streams):
        if not end <= ends[i] <= end + most:
            return False
        end = ends[i]
    for i in range(end):  # noqa: SIM110 (numba)
        if not 0 <= offsets[i] <= size - panel or frame_bits[i] & none:
            return False
    return True


@njit(nogil=True, cache=True)
def gather_lists(panel: int, components: int, start: Array, items: Array, words: Array, queue: Queue) -> None:
    """Fill the queue for codewords `words` int32 [n, streams] and `start`, `items` of `shortlists`.

    The parameters are [groups, streams, components] panels of `panel` bytes.
    """
    groups, _, ends, offsets, frame_bits = queue
    n, streams = words.shape
    if n > 64 or len(start) != streams or not room_fits(queue, start.shape[2] - 1, components, streams):
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
                    offsets[count] = base + items[i] * panel
                    frame_bits[count] = 1
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
                        offsets[count] = base + m * panel
                        frame_bits[count] = wanted[m]
                        wanted[m] = 0
                        count += 1
            ends[place * streams + s] = count
    for i in range(count, count + AHEAD):
        offsets[i] = offsets[max(count - 1, 0)]


@njit(nogil=True, cache=True)
def gather_clusters(panel: int, clusters: Array, expanded: Array, queue: Queue) -> None:
    """Fill the queue with the panels, of `panel` bytes, whose cluster is expanded: `clusters` uint16 [groups, streams,
    M], `expanded` uint64 [streams, K], the frames (bit by frame) that expand each cluster."""
    groups, _, ends, offsets, frame_bits = queue
    all_groups, streams, components = clusters.shape
    if len(expanded) != streams or not room_fits(queue, all_groups, components, streams):
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
                    offsets[count] = base + m * panel
                    frame_bits[count] = frames
                    count += 1
            ends[place * streams + s] = count
    for i in range(count, count + AHEAD):
        offsets[i] = offsets[max(count - 1, 0)]


_panel_1, _panel_2, _panel_4 = make_panel(1), make_panel(2), make_panel(4)


@njit_part
def finish(
    tile: Array, sums: Array, counts: Array, scores: Array, group: int, best: bool, lanes: np.uint16 = EVERY
) -> None:
    """Scores of some `lanes` of a group of senones from its log densities, by log-sum-exp or by the `best` alone.

    Of the rows of the tile, [streams, n], `counts` int64 [streams, n] vectors are filled.
    """
    row = tile.shape[1] * 4
    streams, n = counts.shape
    senones = scores.shape[1]
    width = min(LANES, senones - group * LANES)
    product, shift = address(sums[0], np.float32), address(sums[1], np.float32)
    for t in range(n):
        sums[0] = 1.0
        sums[1] = 0.0
        for s in range(streams):
            at = address(tile, np.float32) + (s * n + t) * row
            if best:
                max_down(at, counts[s, t], shift)
            else:
                sum_exp_down(at, counts[s, t], product, shift)
        log_plus(product, shift, product)
        if lanes == EVERY:
            copy_floats(address(scores, np.float32) + (t * senones + group * LANES) * 4, product, width)
        else:
            for lane in range(width):
                if lanes >> lane & 1:
                    scores[t, group * LANES + lane] = sums[0, lane]


@njit_part
def _computed(
    parameters: int,
    places: tuple[int, int],
    sizes: tuple[int, int, int],
    chosen: tuple[Array, Array],
    at: int | np.int64,
    end: int,
    counts: Array,
) -> None:
    """Append the panels at … end − 1 of those `chosen` to the rows of the frames that want them.

    `places`: addresses of the first frame and the first row; `sizes`: numbers of a frame, bytes from a frame to the
    next and from a row to the next. `counts` int64 [n]: vectors in each row.
    """
    (frame, to), (expanded, step, row), (offsets, frame_bits) = places, sizes, chosen
    while at < end:
        panel, later = parameters + offsets[at], parameters + offsets[at + AHEAD]
        frames = frame_bits[at]
        at += 1
        while frames:
            a = lowest_bit(frames)
            frames &= frames - np.uint64(1)
            ta = to + a * row + counts[a] * VECTOR_BYTES
            counts[a] += 1
            if not frames:
                _panel_1(panel, expanded, later, (frame + a * step, ta))
                break
            b = lowest_bit(frames)
            frames &= frames - np.uint64(1)
            tb = to + b * row + counts[b] * VECTOR_BYTES
            counts[b] += 1
            rest = frames & (frames - np.uint64(1))
            if not rest:
                _panel_2(panel, expanded, later, (frame + a * step, frame + b * step, ta, tb))
                continue
            c, d = lowest_bit(frames), lowest_bit(rest)
            frames = rest & (rest - np.uint64(1))
            tc = to + c * row + counts[c] * VECTOR_BYTES
            td = to + d * row + counts[d] * VECTOR_BYTES
            counts[c] += 1
            counts[d] += 1
            four = frame + a * step, frame + b * step, frame + c * step, frame + d * step, ta, tb, tc, td
            _panel_4(panel, expanded, later, four)


@njit_part
def _approximate(tile: Array, counts: Array, group: int, s: int, backing: Backing) -> None:
    """Append what stands for the panels of one group and stream that were not computed: weight and cluster."""
    n, row = counts.shape[1], tile.shape[1] * 4
    of_panel, log_weights, expanded, densities = backing
    clusters, streams = of_panel[group, s], len(expanded)
    weights = address(log_weights, np.float32) + (group * streams + s) * row
    for m in range(len(clusters)):
        k = clusters[m]
        if k >= expanded.shape[1]:
            raise ArrayError("queued: a cluster that there is none")
        for t in range(n):
            if not (expanded[s, k] >> np.uint64(t)) & np.uint64(1):
                to = address(tile, np.float32) + (s * n + t) * row + counts[s, t] * VECTOR_BYTES
                add_to(weights + m * VECTOR_BYTES, densities[t, s, k], to)
                counts[s, t] += 1


@njit(nogil=True, cache=True)
def queued(
    x: Array, queue: Queue, panels: Array, backing: Backing, tile: Array, sums: Array, scores: Array, best: bool
) -> int:
    """Scores f32 [n, senones] of the groups of a queue; returns ns of log-sum-exp.

    `x` f32 [n ≤ 64, streams, K], `panels` f32 [groups, streams, M, K, 16]. With `best` the best component counts and
    not the sum. What is not computed gets its cluster's score, or with a backing of length 0 counts for nothing.
    Workspace of the thread: the queue, `tile` f32 [streams · frames, M·16], `sums` f32 [2, 16].
    """
    n, streams, expanded = x.shape
    groups, lanes, ends, offsets, frame_bits = queue
    row = tile.shape[1] * 4
    all_groups, _, components, depth, _ = panels.shape
    if (
        panels.shape != (all_groups, streams, components, expanded, LANES)
        or len(tile) < streams * n
        or tile.shape[1] != components * LANES
        or sums.shape != (2, LANES)
        or len(scores) != n
        or not queue_fits(queue, n, streams, components, depth * VECTOR_BYTES, panels.size * 4)
        or (len(groups) and groups.max() >= all_groups)
        or (len(groups) and groups.max() * LANES >= scores.shape[1])
    ):
        raise ArrayError("queued: frames, queue and scores do not fit each other")
    backed = len(backing[0]) > 0
    if backed and not backing_fits(backing, panels, n):
        raise ArrayError("queued: clusters and Gaussians do not fit each other")
    parameters = address(panels, np.float32)
    counts = np.zeros((streams, n), np.int64)
    lse_ns = 0
    at = np.int64(0)  # a literal is a type, for which `_computed` would be compiled once more
    for place in range(len(groups)):
        group = groups[place]
        counts[:] = 0
        for s in range(streams):
            frame = address(x, np.float32) + s * expanded * 4
            step = streams * expanded * 4
            to = address(tile, np.float32) + s * n * row
            end = ends[place * streams + s]
            sizes = expanded, step, row
            _computed(parameters, (frame, to), sizes, (offsets, frame_bits), at, end, counts[s])
            at = end
            if backed:
                _approximate(tile, counts, group, s, backing)
        begin = now_ns()
        finish(tile, sums, counts, scores, group, best, lanes[place])
        lse_ns += now_ns() - begin
    return lse_ns


@njit(nogil=True, cache=True)
def dense_of_bytes(x: Array, panels: Array, tile: Array, sums: Array, scores: Array, first: int, last: int) -> int:
    """Scores f32 [n, senones] of a continuous model; returns ns of log-sum-exp. Workspace as for `queued`."""
    n, streams, depth = x.shape
    groups, _, slots, size = panels.shape
    row = slots * LANES * 4
    if (
        not bytes_fit(x, panels)
        or slots == 0
        or len(tile) < streams * n
        or tile.shape[1] != slots * LANES
        or sums.shape != (2, LANES)
        or len(scores) != n
        or not 0 <= first <= last <= groups
        or (last > first and (last - 1) * LANES >= scores.shape[1])
    ):
        raise ArrayError("dense_of_bytes: frames, panels and scores do not fit each other")
    counts = np.full((streams, n), slots, np.int64)
    lse_ns = 0
    for group in range(first, last):
        for s in range(streams):
            base = address(panels, np.uint8) + (group * streams + s) * slots * size
            for t in range(n):
                frame = address(x, np.int16) + (t * streams + s) * depth * 2
                to = address(tile, np.float32) + (s * n + t) * row
                row_of_bytes(frame, base, slots, depth // 2, to)
        begin = now_ns()
        finish(tile, sums, counts, scores, group, False)
        lse_ns += now_ns() - begin
    return lse_ns


@njit(nogil=True, cache=True)
def queued_of_bytes(x: Array, queue: Queue, panels: Array, tile: Array, sums: Array, scores: Array) -> int:
    """As `queued`, from a queue of 8-bit panels at frames `x` int16 [n ≤ 64, streams, 2 · pairs]."""
    n, streams, depth = x.shape
    groups, lanes, ends, offsets, frame_bits = queue
    row = tile.shape[1] * 4
    slots, size = panels.shape[2], panels.shape[3]
    if (
        not bytes_fit(x, panels)
        or len(tile) < streams * n
        or tile.shape[1] != slots * LANES
        or sums.shape != (2, LANES)
        or len(scores) != n
        or not queue_fits(queue, n, streams, slots, size, panels.size)
        or (len(groups) and groups.max() * LANES >= scores.shape[1])
    ):
        raise ArrayError("queued_of_bytes: frames, queue and scores do not fit each other")
    base = address(panels, np.uint8)
    counts = np.zeros((streams, n), np.int64)
    lse_ns = 0
    at = 0
    for place in range(len(groups)):
        counts[:] = 0
        for s in range(streams):
            while at < ends[place * streams + s]:
                panel, later, frames = base + offsets[at], base + offsets[at + AHEAD], frame_bits[at]
                at += 1
                while frames:
                    t = lowest_bit(frames)
                    frames &= frames - np.uint64(1)
                    frame = address(x, np.int16) + (t * streams + s) * depth * 2
                    to = address(tile, np.float32) + (s * n + t) * row + counts[s, t] * 4 * LANES
                    counts[s, t] += 1
                    panel_of_bytes(frame, panel, depth // 2, later, to)
        begin = now_ns()
        finish(tile, sums, counts, scores, groups[place], False, lanes[place])
        lse_ns += now_ns() - begin
    return lse_ns
