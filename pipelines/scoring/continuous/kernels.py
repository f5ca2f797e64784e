"""The kernels of continuous-density scoring: a matrix product and a log-sum-exp, tile by tile.

A tile is one group of 16 senones and one stream: its parameters and its log densities stay in the second-level
cache, so that the product streams every parameter from memory once per call and the log densities never go
there. The two stages therefore take turns some thousand times a call; the kernels read the clock between them
and return what the second one took. Layouts: see `packing`.
"""

import numpy as np
from numba import njit

from pipelines.scoring.continuous.listed import finish
from pipelines.scoring.gaussians.product import NEVER, NOTHING, PARTS, Bounds, bring_forward, multiply
from pipelines.scoring.simd.exponential import log_plus, sum_exp, sum_exp_down
from pipelines.scoring.simd.maxima import can_reach, insert_down, largest, max_down
from pipelines.scoring.simd.panels import add_vector, partial
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, copy_floats
from profiler.arrays import Array, ArrayError
from profiler.recording.kernel_spans import now_ns


@njit(nogil=True, cache=True)
def dense(
    x: Array, gaussians: Array, tile: Array, sums: Array, scores: Array, first: int, last: int, best: bool = False
) -> int:
    """Scores f32 [n, senones] of the groups first … last − 1; returns ns spent in log-sum-exp.

    With `best` the best component counts and not the sum. `x` f32 [n, streams, K]; workspace of the thread:
    `tile` f32 [frames ≥ n, M·16], `sums` f32 [2, frames, 16].
    """
    n, streams, expanded = x.shape
    groups, _, components, _, _ = gaussians.shape
    senones = scores.shape[1]
    row = components * VECTOR_BYTES
    if (
        gaussians.shape != (groups, streams, components, expanded, LANES)
        or components == 0
        or len(tile) < n
        or tile.shape[1] != components * LANES
        or sums.shape != (2, sums.shape[1], LANES)
        or sums.shape[1] < n
        or len(scores) != n
        or not 0 <= first <= last <= groups
        or (last > first and (last - 1) * LANES >= senones)
    ):
        raise ArrayError("dense: frames, Gaussians and scores do not fit each other")
    # With few frames all streams fit the tile, and the clock is read less often.
    together = streams if n * streams <= tile.shape[0] else 1
    products, shifts = address(sums[0], np.float32), address(sums[1], np.float32)
    lse_ns = 0
    for group in range(first, last):
        sums[0, :n] = 1.0
        sums[1, :n] = 0.0
        for stream in range(0, streams, together):
            for i in range(together):
                s = stream + i
                here = address(gaussians, np.float32) + (group * streams + s) * expanded * row
                frames, to = address(x, np.float32) + s * expanded * 4, address(tile, np.float32) + i * n * row
                # One row is bound by memory: a prefetch would only wait.
                later = here + expanded * row if n > 1 else NOTHING
                multiply(frames, streams * expanded * 4, n, here, components, expanded, to, later)
            begin = now_ns()
            for i in range(together):
                for t in range(n):
                    at, shift = address(tile, np.float32) + (i * n + t) * row, shifts + t * VECTOR_BYTES
                    if best:
                        max_down(at, components, shift)
                    else:
                        sum_exp_down(at, components, products + t * VECTOR_BYTES, shift)
            if stream + together == streams:
                width = min(LANES, senones - group * LANES)
                for t in range(n):
                    product = products + t * VECTOR_BYTES
                    log_plus(product, shifts + t * VECTOR_BYTES, product)
                    copy_floats(address(scores, np.float32) + (t * senones + group * LANES) * 4, product, width)
            lse_ns += now_ns() - begin
    return lse_ns


@njit(nogil=True, cache=True)
def some(x: Array, by_senone: Array, senones: Array, densities: Array, scores: Array) -> int:
    """Scores of `senones` int64 [k], into f32 [n, all]; returns ns spent in log-sum-exp.

    `x` f32 [n, streams, K]; `densities` f32 [frames ≥ n, streams, P·16] is workspace of the thread.
    """
    n, streams, expanded = x.shape
    n_senones, _, panels, _, _ = by_senone.shape
    row = panels * VECTOR_BYTES
    if (
        by_senone.shape != (n_senones, streams, panels, expanded, LANES)
        or panels == 0
        or len(densities) < n
        or densities.shape[1:] != (streams, panels * LANES)
        or scores.shape != (n, n_senones)
    ):
        raise ArrayError("some: frames, Gaussians and scores do not fit each other")
    for senone in senones:
        if not 0 <= senone < n_senones:
            raise ArrayError("some: a senone that there is none")
    if n == 0:
        return 0
    at_once = densities.shape[0] // n
    lse_ns = 0
    for chunk in range(0, len(senones), at_once):
        count = min(at_once, len(senones) - chunk)
        for i in range(count):
            for s in range(streams):
                which = senones[chunk + i] * streams + s
                frames, here = address(x, np.float32) + s * expanded * 4, address(by_senone, np.float32)
                to = address(densities, np.float32) + (i * streams + s) * n * row
                multiply(
                    frames, streams * expanded * 4, n, here + which * expanded * row, panels, expanded, to, NOTHING
                )
        begin = now_ns()
        for i in range(count):
            for t in range(n):
                product, shift = np.float32(1), np.float32(0)
                for s in range(streams):
                    at = address(densities, np.float32) + ((i * streams + s) * n + t) * row
                    best = largest(at, panels)
                    product *= sum_exp(at, panels, best)
                    shift += best
                scores[t, senones[chunk + i]] = np.log(product) + shift
        lse_ns += now_ns() - begin
    return lse_ns


MAX_KEPT = 128  # The most components a model may have, and so the most that can be kept


@njit(nogil=True, cache=True)
def eliminate(
    x: Array, gaussians: Array, within: Bounds, tile: Array, sums: Array, scores: Array, first: int, last: int
) -> tuple[int, int]:
    """Scores by the N best components of each senone, exactly; returns (ns of log-sum-exp, dimensions computed).

    Partial distance elimination: a Gaussian's log density can only be less than its sum so far plus the most that the
    other dimensions can add, which is known beforehand (where the frame equals the mean). When that reaches the worst
    of the N best in none of the 16 senones of a panel, the rest of the panel is not read from memory. The better the
    first panels, the sooner the others are eliminated: those that won in the last frame may come first.

    With bounds of length 0 nothing is given up. Workspace of the thread: `tile` f32 [streams · frames, M·16] and `sums`
    f32 [2, 16].
    """
    n, streams, expanded = x.shape
    components, dim = gaussians.shape[2], expanded // 2
    row = components * VECTOR_BYTES
    groups = len(gaussians)
    rest, order, keep, follow = within
    stop = len(rest) > 0
    if (
        gaussians.shape != (groups, streams, components, 2 * dim + 1, LANES)
        or x.shape[2] != 2 * dim + 1
        or (stop and rest.shape != (groups, streams, components, PARTS, LANES))
        or order.shape != (groups, streams, components)
        or not 1 <= keep <= min(components, MAX_KEPT)
        or len(tile) < streams * n
        or tile.shape[1] != components * LANES
        or sums.shape != (2, LANES)
        or len(scores) != n
        or not 0 <= first <= last <= groups
        or (last > first and (last - 1) * LANES >= scores.shape[1])
    ):
        raise ArrayError("eliminate: frames, Gaussians and scores do not fit each other")
    entered = np.empty(components, np.uint8)
    top = np.empty((keep + 1, LANES), np.float32)  # and a vector of zeros
    counts = np.full((streams, n), keep, np.int64)
    sum_at = address(sums, np.float32)  # free until log-sum-exp
    top_at = address(top, np.float32)
    zero = top_at + keep * VECTOR_BYTES
    worst = top_at + (keep - 1) * VECTOR_BYTES
    top[keep] = 0.0
    lse_ns = 0
    computed = 0
    for group in range(first, last):
        for s in range(streams):
            which = (group * streams + s) * components
            base = address(gaussians, np.float32) + which * expanded * VECTOR_BYTES
            parts = address(rest, np.float32) + which * PARTS * VECTOR_BYTES
            if not stop:
                at = address(tile, np.float32) + s * n * row
                step = streams * expanded * 4
                source = address(x, np.float32) + s * expanded * 4
                following = base + components * expanded * VECTOR_BYTES if n > 1 else NOTHING
                multiply(source, step, n, base, components, expanded, at, following)
            for t in range(n):
                frame = address(x, np.float32) + (t * streams + s) * expanded * 4
                to = address(tile, np.float32) + (s * n + t) * row
                top[:keep] = NEVER
                if not stop:
                    for m in range(components):
                        insert_down(to + m * VECTOR_BYTES, top_at, keep)
                    copy_floats(to, top_at, keep * LANES)
                    continue
                winners = np.int64(0)  # a literal is a type, for which `bring_forward` would be compiled once more
                for i in range(components):
                    m = order[group, s, i]
                    panel = base + m * expanded * VECTOR_BYTES
                    bound = parts + m * PARTS * VECTOR_BYTES
                    if not can_reach(panel + 2 * dim * VECTOR_BYTES, bound, worst):
                        continue
                    sums[0] = 0.0
                    alive = True
                    for part in range(PARTS):
                        begin, end = part * dim // PARTS, (part + 1) * dim // PARTS
                        partial(frame, panel, dim, begin, end, sum_at)
                        computed += end - begin
                        if part == 0:
                            add_vector(sum_at, panel + 2 * dim * VECTOR_BYTES)
                        if part + 1 < PARTS:
                            alive = can_reach(sum_at, bound + (part + 1) * VECTOR_BYTES, worst)
                            if not alive:
                                break
                    if alive and can_reach(sum_at, zero, worst):
                        insert_down(sum_at, top_at, keep)
                        entered[winners] = i
                        winners += 1
                copy_floats(to, top_at, keep * LANES)
                if follow:
                    bring_forward(order[group, s], entered, winners)
        begin_ns = now_ns()
        finish(tile, sums, counts, scores, group, keep == 1)
        lse_ns += now_ns() - begin_ns
    return lse_ns, computed * LANES
