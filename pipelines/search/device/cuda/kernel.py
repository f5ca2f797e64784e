"""Token passing as one CUDA kernel: a thread block per utterance does all frames of a block of scores.

The rules, and the order of each sum, are those of the compiled search (`kernels.token_passing`, `epsilon`, `pruning`),
so that costs agree to the last bit. A frame: the cutoff of the tokens before; those that survive move into a new list,
with where their arcs begin in a running count of all arcs; their history; emitting arcs, an equal share for each
thread, by an atomic minimum over (cost, arc) of each state; epsilon arcs from a work list until it is empty. Of equal
costs the arc with the lower number wins, so that results do not depend on the order in which threads work. All
functions here that use `cuda` stand in this file: numba's simulator replaces that name file by file, and threads race
for it in another.
Source: Chen, Luitjens, Xu, Wang, Povey & Khudanpur, A GPU-based WFST decoder with exact lattice generation (2018), for
the atomic minimum and the balanced arcs.
"""

import numpy as np
from numba import cuda

from pipelines.search.device.cuda import layout
from pipelines.search.device.cuda.history import entries_needed, new_entry
from pipelines.search.device.cuda.intrinsics import bits_of, device_function, float_of, kernel_function, now_ns, product
from pipelines.search.device.cuda.layout import N_BOOKS, N_FLOATS, GraphArrays, UtteranceArrays
from profiler.arrays import F32, F64, I32, I64

THREADS = 448
"""Of a thread block; two blocks fit a processor of an H100, which has 65 536 registers (`intrinsics.REGISTERS`)."""

# Shared integers of a thread block.
_N, _ARCS, _M, _QUEUE, _OTHER, _USED, _LOW, _BEST, _INSIDE, _FOLLOWED, _STATUS, _CHOSEN, _RANK, _SHARED = range(14)
BINS, GROUP = 256, 16  # Of the histogram over 8 bits of the costs, and bins that are summed together
_BINS_AND_SUMS = BINS + BINS // GROUP


def threads_of(batch: int, processors: int) -> int:
    return 2 * THREADS if batch <= processors else THREADS


@device_function
def _stamp(stamps: I64, phase: int, numbers: F64) -> None:  # pragma: no cover - compiled
    """Note the time at which a phase begins, if that is wanted; by the first thread, behind a barrier."""
    if cuda.threadIdx.x == 0 and numbers[layout.STAMPED] != 0:
        stamps[phase] = now_ns()


@device_function
def _order(cost: np.float32) -> np.int64:  # pragma: no cover - compiled
    bits = np.int64(bits_of(cost))
    return bits ^ ((bits >> 31) & layout.SIGN)


@device_function
def _cost(order: np.int64) -> np.float32:  # pragma: no cover - compiled
    """The cost of an `_order`."""
    return float_of(np.int32(order ^ ((order >> 31) & layout.SIGN)))


@device_function
def _relax(
    keys: I64, lists: I32, ints: I32, state: np.int32, value: np.float32, arc: np.int64
) -> bool:  # pragma: no cover - compiled
    """Take a token over `arc` into `state`; whether none was cheaper."""
    order = _order(value)
    before = cuda.atomic.min(keys, state, (order << 32) | arc)
    if before == layout.FREE:
        at = cuda.atomic.add(ints, _M, 1)
        if at < lists.shape[1] - 1:
            lists[layout.TOUCHED, at] = state
    return bool(order < (before >> 32))


@device_function
def _degree(states: I32, state: np.int32) -> np.int32:  # pragma: no cover - compiled
    loop = 1 if states[state, 2] > 0 else 0
    return np.int32(states[state, 1] - states[state, 0] + loop)


@device_function
def _select(keys: I64, lists: I32, ints: I32, bins: I32, rank: np.int32) -> np.float32:  # pragma: no cover - compiled
    """The cost of the touched state with this rank (from 0), exactly: 8 bits at a time by a histogram."""
    me, width = cuda.threadIdx.x, cuda.blockDim.x
    m = ints[_M]
    chosen = np.int64(0)
    if me == 0:
        ints[_RANK] = rank
    for digit in range(4):
        shift = 24 - 8 * digit
        for b in range(me, _BINS_AND_SUMS, width):
            bins[b] = 0
        cuda.syncthreads()
        for i in range(me, m, width):
            order = (keys[lists[layout.TOUCHED, i]] >> 32) + (1 << 31)
            if order >> (shift + 8) == chosen:
                cuda.atomic.add(bins, (order >> shift) & (BINS - 1), 1)
        cuda.syncthreads()
        for group in range(me, BINS // GROUP, width):
            total = 0
            for b in range(group * GROUP, group * GROUP + GROUP):
                total += bins[b]
            bins[BINS + group] = total
        cuda.syncthreads()
        if me == 0:
            left = ints[_RANK]
            group = 0
            while left >= bins[BINS + group]:
                left -= bins[BINS + group]
                group += 1
            b = group * GROUP
            while left >= bins[b]:
                left -= bins[b]
                b += 1
            ints[_RANK] = left
            ints[_CHOSEN] = b
        cuda.syncthreads()
        chosen = (chosen << 8) | ints[_CHOSEN]
    return _cost(chosen - (1 << 31))


@device_function
def _cutoff(keys: I64, lists: I32, ints: I32, bins: I32, numbers: F64) -> np.float32:  # pragma: no cover - compiled
    """The cost from which tokens are dropped, as Kaldi's GetCutoff; +inf drops none."""
    me, width = cuda.threadIdx.x, cuda.blockDim.x
    m = ints[_M]
    limit = np.float32(np.float64(_cost(np.int64(ints[_BEST]))) + numbers[layout.BEAM])
    if me == 0:
        ints[_INSIDE] = 0
    cuda.syncthreads()
    count = 0
    for i in range(me, m, width):
        if _cost(keys[lists[layout.TOUCHED, i]] >> 32) < limit:
            count += 1
    cuda.atomic.add(ints, _INSIDE, count)
    cuda.syncthreads()
    inside = ints[_INSIDE]
    many = inside > numbers[layout.MAX_ACTIVE]
    if not many and inside > numbers[layout.MIN_ACTIVE]:
        return limit
    if not many and m <= numbers[layout.MIN_ACTIVE]:
        return layout.INFINITY
    found = _select(
        keys, lists, ints, bins, np.int32(numbers[layout.MAX_ACTIVE] if many else numbers[layout.MIN_ACTIVE])
    )
    return found if many else max(limit, found)


@device_function
def _prune(
    graph: GraphArrays,
    numbers: F64,
    own: UtteranceArrays,
    book: I64,
    floats: F64,
    stamps: I64,
    shared: tuple[I32, I64, I32],
) -> None:  # pragma: no cover - compiled
    """End the pending frame: tokens under the cutoff become the new list, with their history. Sets _STATUS."""
    states = graph.states
    keys, by_state, lists, history = own
    ints, reserved, bins = shared
    me, width = cuda.threadIdx.x, cuda.blockDim.x
    if ints[_BEST] >= layout.INFINITE_ORDER:
        # Nothing lives on: the tokens before the frame are the best partial result.
        cuda.syncthreads()
        if me == 0:
            ints[_STATUS] = layout.NO_TOKENS
            book[layout.FRAME] -= 1
            book[layout.PENDING] = 0
        cuda.syncthreads()
        return
    _stamp(stamps, 0, numbers)
    best = _cost(np.int64(ints[_BEST]))
    cut = _cutoff(keys, lists, ints, bins, numbers)
    cuda.syncthreads()
    _stamp(stamps, 1, numbers)
    if me == 0:
        reserved[0] = 0
        ints[_USED] = np.int32(book[layout.USED])
    cuda.syncthreads()
    m = ints[_M]
    tokens, degrees, records = np.int64(0), np.int64(0), np.int32(0)
    for i in range(me, m, width):
        state = lists[layout.TOUCHED, i]
        key = keys[state]
        if _cost(key >> 32) < cut:
            tokens += 1
            degrees += _degree(states, state)
            records += entries_needed(key, keys, graph)
    # Both in one addition, so that places and where their arcs begin are in the same order.
    base = cuda.atomic.add(reserved, 0, (tokens << 32) | degrees)
    used = cuda.atomic.add(ints, _USED, records)
    cuda.syncthreads()
    if ints[_USED] > history.shape[0]:
        if me == 0:
            ints[_STATUS] = layout.NEED_HISTORY
        cuda.syncthreads()
        return
    side, frame = np.int32(book[layout.SIDE]), np.int32(book[layout.FRAME] - 1)
    _stamp(stamps, 2, numbers)
    place, offset = base >> 32, base & layout.ARC_MASK
    for i in range(me, m, width):
        state = lists[layout.TOUCHED, i]
        key = keys[state]
        cost = _cost(key >> 32)
        if cost < cut:
            count = entries_needed(key, keys, graph)
            lists[layout.STATE, place] = state
            lists[layout.COST, place] = bits_of(np.float32(cost - best))
            lists[layout.OFFSET, place] = offset
            lists[layout.ENTRY + 1 - side, place] = new_entry(state, graph, own, used, count, side, frame)
            used += count
            place += 1
            offset += _degree(states, state)
    cuda.syncthreads()
    n = np.int32(reserved[0] >> 32)
    for i in range(me, m, width):
        keys[lists[layout.TOUCHED, i]] = layout.FREE
    for i in range(me, n, width):
        by_state[layout.PLACE, lists[layout.STATE, i]] = i
    if me == 0:
        total = np.int32(reserved[0] & layout.ARC_MASK)
        lists[layout.OFFSET, n] = total
        beam = numbers[layout.BEAM]
        if cut == np.float32(np.float64(best) + beam):
            floats[layout.ADAPTIVE] = beam
        else:
            floats[layout.ADAPTIVE] = np.float64(np.float32(cut - best)) + numbers[layout.BEAM_DELTA]
        floats[layout.OFF] += best
        floats[layout.CUTOFF] = np.float32(cut - best)
        book[layout.WRITTEN] += ints[_USED] - book[layout.USED]
        book[layout.USED] = ints[_USED]
        book[layout.SIDE] = 1 - side
        book[layout.TOUCHED_STATES] += m
        book[layout.KEPT] += n
        book[layout.PENDING] = 0
        ints[_N] = n
        ints[_ARCS] = total
        ints[_M] = 0
    _stamp(stamps, 3, numbers)
    cuda.syncthreads()


@device_function
def _owner(lists: I32, n: np.int32, position: np.int32) -> np.int32:  # pragma: no cover - compiled
    """The token whose arcs hold this position of all tokens' arcs."""
    low, high = np.int32(0), np.int32(n - 1)
    while low < high:
        middle = np.int32((low + high + 1) >> 1)
        if lists[layout.OFFSET, middle] <= position:
            low = np.int32(middle)
        else:
            high = np.int32(middle - 1)
    return np.int32(low)


@device_function
def _pass(
    graph: GraphArrays, row: F32, numbers: F64, own: UtteranceArrays, ints: I32, limit: np.float32, relaxing: bool
) -> np.float32:  # pragma: no cover - compiled
    """This thread's share of the emitting arcs: the least cost over them; `relaxing`: take tokens over those within
    `limit`, and over self-loops."""
    states, arcs, _ = graph
    keys, lists = own.keys, own.lists
    n, total = ints[_N], ints[_ARCS]
    share = (total + cuda.blockDim.x - 1) // cuda.blockDim.x
    position = cuda.threadIdx.x * share
    end = min(total, position + share)
    least = layout.INFINITY
    minus, extra = np.float32(-numbers[layout.SCALE]), np.float32(numbers[layout.PENALTY])
    if position >= end:
        return least
    token = _owner(lists, n, np.int32(position))
    while position < end:
        state, cost = lists[layout.STATE, token], float_of(lists[layout.COST, token])
        first, begin = states[state, 0], lists[layout.OFFSET, token]
        emitting = states[state, 1] - first
        stop = min(end, lists[layout.OFFSET, token + 1])
        while position < stop:
            nth = position - begin
            loop = nth == emitting
            arc = np.int64(first + nth)
            if loop:
                label, weight, target = states[state, 2], float_of(states[state, 3]), state
                arc = np.int64(arcs.shape[0]) + state
            else:
                target, label, weight = arcs[arc, 0], arcs[arc, 1], float_of(arcs[arc, 3])
                if arcs[arc, 2] & layout.WORD:
                    weight = np.float32(weight + extra)
            score = product(minus, row[label - 1])
            # Not a number, or no bad score at all: no cost comes of it.
            if score >= -layout.LARGEST:
                value = np.float32(np.float32(cost + weight) + score)
                least = min(least, value)
                if relaxing and (value < limit or (loop and value < layout.INFINITY)):
                    _relax(keys, lists, ints, target, value, arc)
            position += 1
        token += 1
    return least


@device_function
def _emit(
    graph: GraphArrays, row: F32, numbers: F64, own: UtteranceArrays, floats: F64, ints: I32
) -> None:  # pragma: no cover - compiled
    """Pass tokens over self-loops and emitting arcs; the least cost is in _BEST then, the cutoff in `floats`."""
    me = cuda.threadIdx.x
    if me == 0:
        ints[_LOW] = layout.INFINITE_ORDER
    cuda.syncthreads()
    limit = layout.INFINITY
    for turn in range(2):
        least = _pass(graph, row, numbers, own, ints, limit, turn == 1)
        if turn == 0 and least < layout.INFINITY:
            cuda.atomic.min(ints, _LOW, np.int32(_order(least)))
        cuda.syncthreads()
        limit = np.float32(np.float64(_cost(np.int64(ints[_LOW]))) + floats[layout.ADAPTIVE])
    if me == 0:
        floats[layout.LIMIT] = limit
        ints[_BEST] = ints[_LOW]
    cuda.syncthreads()


@device_function
def _close(
    graph: GraphArrays, numbers: F64, own: UtteranceArrays, ints: I32, limit: np.float32, last: np.int64
) -> np.int64:  # pragma: no cover - compiled
    """Epsilon closure of the touched states within `limit`, in rounds from `last` on, each over the list of states that
    the round before made cheaper; returns the last round."""
    states, arcs, _ = graph
    keys, by_state, lists, _ = own
    me, width = cuda.threadIdx.x, cuda.blockDim.x
    room, extra = lists.shape[1] - 1, np.float32(numbers[layout.PENALTY])
    n_epsilon = np.int32(numbers[layout.EPSILON_STATES])
    if me == 0:
        ints[_QUEUE] = 0
        ints[_OTHER] = 0
    m = min(ints[_M], room)
    cuda.syncthreads()
    for i in range(me, m, width):
        state = lists[layout.TOUCHED, i]
        if state < n_epsilon:
            lists[layout.QUEUE, cuda.atomic.add(ints, _QUEUE, 1)] = state
    side, followed = 0, 0
    cuda.syncthreads()
    while ints[_QUEUE + side] > 0:
        n = ints[_QUEUE + side]
        last += 1
        for i in range(me, n, width):
            state = lists[layout.QUEUE + side, i]
            here = _cost(keys[state] >> 32)
            for arc in range(states[state, 1], states[state + 1, 0]):
                weight = float_of(arcs[arc, 3])
                if arcs[arc, 2] & layout.WORD:
                    weight = np.float32(weight + extra)
                value = np.float32(here + weight)
                followed += 1
                if value <= limit and _relax(keys, lists, ints, arcs[arc, 0], value, np.int64(arc)):
                    target = arcs[arc, 0]
                    cuda.atomic.min(ints, _BEST, np.int32(_order(value)))
                    if target < n_epsilon and cuda.atomic.max(by_state[layout.QUEUED], target, np.int32(last)) < last:
                        at = cuda.atomic.add(ints, _QUEUE + 1 - side, 1)
                        if at < room:
                            lists[layout.QUEUE + 1 - side, at] = target
        cuda.syncthreads()
        if ints[_M] > room:
            break
        if me == 0:
            ints[_QUEUE + side] = 0
        side = 1 - side
        cuda.syncthreads()
    cuda.atomic.add(ints, _FOLLOWED, followed)
    return last


@kernel_function
def search(
    states: I32,
    arcs: I32,
    source: I32,
    scores: F32,
    numbers: F64,
    all_keys: I64,
    all_by_state: I32,
    all_lists: I32,
    all_history: I32,
    books: I64,
    all_floats: F64,
    all_stamps: I64,
) -> None:  # pragma: no cover - compiled
    """Frames NEXT … LENGTH of `scores` f32 [frames, utterances, senones], for utterance u = the thread block.

    `all_history` int32 [utterances, capacity, 3]. The books say where it stopped and why.
    """
    u, me = cuda.blockIdx.x, cuda.threadIdx.x
    ints = cuda.shared.array(_SHARED, np.int32)
    reserved = cuda.shared.array(1, np.int64)
    bins = cuda.shared.array(_BINS_AND_SUMS, np.int32)
    graph = GraphArrays(states, arcs, source)
    own = UtteranceArrays(all_keys[u], all_by_state[u], all_lists[u], all_history[u])
    keys, lists = own.keys, own.lists
    # Literals: an attribute of a module is none to numba.
    book = cuda.shared.array(N_BOOKS, np.int64)
    floats = cuda.shared.array(N_FLOATS, np.float64)
    for i in range(me, N_BOOKS, cuda.blockDim.x):
        book[i] = books[u, i]
    for i in range(me, N_FLOATS, cuda.blockDim.x):
        floats[i] = all_floats[u, i]
    cuda.syncthreads()
    room, length = lists.shape[1] - 1, np.int32(book[layout.LENGTH])
    frame, last = np.int32(book[layout.NEXT]), book[layout.ROUND]
    status = np.int64(layout.DONE)
    if me == 0:
        ints[_N] = np.int32(book[layout.N])
        ints[_ARCS] = np.int32(book[layout.ARCS])
        ints[_M] = np.int32(book[layout.M])
        ints[_BEST] = np.int32(_order(np.float32(floats[layout.BEST])))
        ints[_FOLLOWED] = 0
        ints[_STATUS] = layout.DONE
        if book[layout.OPENING] != 0:
            ints[_M] = 0
            ints[_BEST] = 0
            _relax(keys, lists, ints, np.int32(numbers[layout.START_STATE]), np.float32(0.0), np.int64(layout.START))
    cuda.syncthreads()
    while status == layout.DONE:
        opening = book[layout.OPENING] != 0
        stamps = all_stamps[u, min(frame, all_stamps.shape[1] - 1)]
        limit = layout.INFINITY
        if not opening:
            if book[layout.PENDING] != 0 and (frame < length or numbers[layout.PRUNE_LAST] != 0):
                _prune(graph, numbers, own, book, floats, stamps, (ints, reserved, bins))
                status = np.int64(ints[_STATUS])
            elif frame < length:
                for phase in range(4):
                    _stamp(stamps, phase, numbers)
            if frame >= length or status != layout.DONE:
                break
            _emit(graph, scores[frame, u], numbers, own, floats, ints)
            limit = np.float32(floats[layout.LIMIT])
            _stamp(stamps, 4, numbers)
        last = _close(graph, numbers, own, ints, limit, last)
        cuda.syncthreads()
        if ints[_M] > room:
            status = np.int64(layout.NEED_ROOM)
        elif me == 0:
            book[layout.PENDING] = 1
            if opening:
                book[layout.OPENING] = 0
            else:
                book[layout.FRAME] += 1
                book[layout.TOKENS] += ints[_N]
                book[layout.EMIT_ARCS] += ints[_ARCS]
                _stamp(stamps, 5, numbers)
        cuda.syncthreads()
        if not opening and status == layout.DONE:
            frame += 1
    if me == 0:
        book[layout.N] = ints[_N]
        book[layout.ARCS] = ints[_ARCS]
        book[layout.M] = ints[_M]
        book[layout.ROUND] = last
        book[layout.NEXT] = frame
        book[layout.STATUS] = status
        book[layout.EPSILON_ARCS] += ints[_FOLLOWED]
        floats[layout.BEST] = _cost(np.int64(ints[_BEST]))
    cuda.syncthreads()
    for i in range(me, N_BOOKS, cuda.blockDim.x):
        books[u, i] = book[i]
    for i in range(me, N_FLOATS, cuda.blockDim.x):
        all_floats[u, i] = floats[i]
