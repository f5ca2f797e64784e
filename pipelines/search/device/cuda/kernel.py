"""Token passing as one CUDA kernel: a thread block per utterance does all frames of a block of scores.

The rules, and the order of each sum, are those of the compiled search (`kernels.token_passing`, `epsilon`, `pruning`),
so that costs agree to the last bit. A frame: the cutoff of the tokens before; those that survive move into a new list,
with where their arcs begin in a running count of all arcs; their history; emitting arcs, an equal share for each
thread, by an atomic minimum over (cost, arc) of each state; epsilon arcs from a work list until it is empty. Of equal
costs the arc with the lower number wins, so that results do not depend on the order in which threads work. All that
uses `cuda` stands in this file: numba's simulator replaces that name file by file, and threads race for it in another.
Source: Chen, Luitjens, Xu, Wang, Povey & Khudanpur, A GPU-based WFST decoder with exact lattice generation (2018), for
the atomic minimum and the balanced arcs.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from pipelines.search.device.cuda.intrinsics import bits_of, device_function, float_of, kernel_function, now_ns, product
from profiler.arrays import F32, F64, I32, I64

THREADS = 448
"""Of a thread block; two blocks fit a processor of an H100, which has 65 536 registers (`intrinsics.REGISTERS`)."""

FREE = (1 << 63) - 1
"""Key of a state without a token; those of tokens are less."""
ARC_MASK = (1 << 32) - 1
START = ARC_MASK
"""In place of an arc: the token that an utterance begins with. Behind all arcs, a self-loop is n_arcs + state."""
SIGN = 0x7FFFFFFF
INFINITE_ORDER = 0x7F800000
"""`order` of +inf."""
LARGEST = np.float32(1e30)
"""As `kernels.layout.LARGEST`: a score that gains more is no score."""
INFINITY = np.float32(np.inf)

# Of an arc, in place of its word: it has one; the history holds it.
WORD, RECORDED = 1, 2
# Rows of the lists, int32 [utterances, N_LISTS, room + 1]. By token: state, bits of its cost, where its arcs begin, its
# history before and after pruning (SIDE says which is which). Then states touched in a frame, and states whose epsilon
# arcs wait.
STATE, COST, OFFSET, ENTRY, OTHER_ENTRY, TOUCHED, QUEUE, OTHER_QUEUE, N_LISTS = range(9)
# By state, int32 [utterances, 2, states]: the place of its token; the last round for which it was queued.
PLACE, QUEUED = range(2)
# Books of an utterance, int64: tokens, their arcs, touched states; whether pruning is due, and whether the utterance is
# to begin; history entries; frames; which ENTRY row holds; the last round; next frame of the block, and how many it
# has; why it stopped.
N, ARCS, M, PENDING, OPENING, USED, FRAME, SIDE, ROUND, NEXT, LENGTH, STATUS = range(12)
# Work since the host set it to zero: tokens expanded, arcs priced, epsilon arcs followed, states touched, entries
# written, tokens kept.
TOKENS, EMIT_ARCS, EPSILON_ARCS, TOUCHED_STATES, WRITTEN, KEPT, N_BOOKS = range(12, 19)
# Floats of an utterance, as in `kernels.layout`: taken off so far, the next frame's beam, the last frame's limit and
# least cost, and the last cutoff less the best.
OFF, ADAPTIVE, LIMIT, BEST, CUTOFF, N_FLOATS = range(6)
# Settings of a launch, float64.
BEAM, BEAM_DELTA, MAX_ACTIVE, MIN_ACTIVE, PENALTY, SCALE = range(6)
EPSILON_STATES, START_STATE, PRUNE_LAST, STAMPED, N_NUMBERS = range(6, 11)
DONE, NEED_ROOM, NEED_HISTORY, NO_TOKENS = range(4)
"""Why a thread block stopped; the host makes room, and it goes on where it was."""
PHASES = ("cutoff", "compact", "history", "emit", "epsilon")
"""Between the stamps of a frame, ns, int64 [utterances, frames, len(PHASES) + 1]."""

# Shared integers of a thread block.
_N, _ARCS, _M, _QUEUE, _OTHER, _USED, _LOW, _BEST, _INSIDE, _FOLLOWED, _STATUS, _CHOSEN, _RANK, _SHARED = range(14)
BINS, GROUP = 256, 16
"""Of the histogram over 8 bits of the costs, and bins that are summed together."""
_BINS_AND_SUMS = BINS + BINS // GROUP


def threads_of(batch: int, processors: int) -> int:
    return 2 * THREADS if batch <= processors else THREADS


@device_function
def _stamp(stamps: I64, phase: int, numbers: F64) -> None:  # pragma: no cover - compiled
    """Note the time at which a phase begins, if that is wanted; by the first thread, behind a barrier."""
    if cuda.threadIdx.x == 0 and numbers[STAMPED] != 0:
        stamps[phase] = now_ns()


@device_function
def _order(cost: np.float32) -> np.int64:  # pragma: no cover - compiled
    bits = np.int64(bits_of(cost))
    return bits ^ ((bits >> 31) & SIGN)


@device_function
def _cost(order: np.int64) -> np.float32:  # pragma: no cover - compiled
    """The cost of an `_order`."""
    return float_of(np.int32(order ^ ((order >> 31) & SIGN)))


@device_function
def _relax(
    keys: I64, lists: I32, ints: I32, state: np.int32, value: np.float32, arc: np.int64
) -> bool:  # pragma: no cover - compiled
    """Take a token over `arc` into `state`; whether none was cheaper."""
    order = _order(value)
    before = cuda.atomic.min(keys, state, (order << 32) | arc)
    if before == FREE:
        at = cuda.atomic.add(ints, _M, 1)
        if at < lists.shape[1] - 1:
            lists[TOUCHED, at] = state
    return bool(order < (before >> 32))


@device_function
def _degree(states: I32, state: np.int32) -> np.int32:  # pragma: no cover - compiled
    loop = 1 if states[state, 2] > 0 else 0
    return np.int32(states[state, 1] - states[state, 0] + loop)


@device_function
def _records(key: np.int64, keys: I64, arcs: I32, source: I32) -> np.int32:  # pragma: no cover - compiled
    """How many entries of history a token needs: for arcs with a word, or into a phone's first state."""
    count = 0
    arc = key & ARC_MASK
    while arc < arcs.shape[0]:
        label = arcs[arc, 1]
        if arcs[arc, 2] & RECORDED:
            count += 1
        if label != 0:
            break
        arc = keys[source[arc]] & ARC_MASK
    return np.int32(count)


@device_function
def _entry(
    state: np.int32,
    keys: I64,
    arcs: I32,
    source: I32,
    lists: I32,
    by_state: I32,
    history: I32,
    used: np.int32,
    count: np.int32,
    side: np.int32,
    frame: np.int32,
) -> np.int32:  # pragma: no cover - compiled
    """The history entry of a new token; its `count` entries are written from `used` on, the last one first."""
    at = used + count
    arc = keys[state] & ARC_MASK
    here = np.int64(state)
    while arc < arcs.shape[0]:
        label = arcs[arc, 1]
        here = np.int64(source[arc])
        if arcs[arc, 2] & RECORDED:
            at -= 1
            history[at, 0] = at - 1
            history[at, 1] = arc
            history[at, 2] = frame
        if label != 0:
            break
        arc = keys[here] & ARC_MASK
    before = np.int32(-1)
    if arc != START:
        before = lists[ENTRY + side, by_state[PLACE, here]]
    if count == 0:
        return before
    history[used, 0] = before
    return np.int32(used + count - 1)


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
            order = (keys[lists[TOUCHED, i]] >> 32) + (1 << 31)
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
    limit = np.float32(np.float64(_cost(np.int64(ints[_BEST]))) + numbers[BEAM])
    if me == 0:
        ints[_INSIDE] = 0
    cuda.syncthreads()
    count = 0
    for i in range(me, m, width):
        if _cost(keys[lists[TOUCHED, i]] >> 32) < limit:
            count += 1
    cuda.atomic.add(ints, _INSIDE, count)
    cuda.syncthreads()
    inside = ints[_INSIDE]
    many = inside > numbers[MAX_ACTIVE]
    if not many and inside > numbers[MIN_ACTIVE]:
        return limit
    if not many and m <= numbers[MIN_ACTIVE]:
        return INFINITY
    found = _select(keys, lists, ints, bins, np.int32(numbers[MAX_ACTIVE] if many else numbers[MIN_ACTIVE]))
    return found if many else max(limit, found)


@device_function
def _prune(
    states: I32,
    arcs: I32,
    source: I32,
    numbers: F64,
    keys: I64,
    by_state: I32,
    lists: I32,
    history: I32,
    book: I64,
    floats: F64,
    stamps: I64,
    ints: I32,
    reserved: I64,
    bins: I32,
) -> None:  # pragma: no cover - compiled
    """End the pending frame: tokens under the cutoff become the new list, with their history. Sets _STATUS."""
    me, width = cuda.threadIdx.x, cuda.blockDim.x
    if ints[_BEST] >= INFINITE_ORDER:
        # Nothing lives on: the tokens before the frame are the best partial result.
        cuda.syncthreads()
        if me == 0:
            ints[_STATUS] = NO_TOKENS
            book[FRAME] -= 1
            book[PENDING] = 0
        cuda.syncthreads()
        return
    _stamp(stamps, 0, numbers)
    best = _cost(np.int64(ints[_BEST]))
    cut = _cutoff(keys, lists, ints, bins, numbers)
    cuda.syncthreads()
    _stamp(stamps, 1, numbers)
    if me == 0:
        reserved[0] = 0
        ints[_USED] = np.int32(book[USED])
    cuda.syncthreads()
    m = ints[_M]
    tokens, degrees, records = np.int64(0), np.int64(0), np.int32(0)
    for i in range(me, m, width):
        state = lists[TOUCHED, i]
        key = keys[state]
        if _cost(key >> 32) < cut:
            tokens += 1
            degrees += _degree(states, state)
            records += _records(key, keys, arcs, source)
    # Both in one addition, so that places and where their arcs begin are in the same order.
    base = cuda.atomic.add(reserved, 0, (tokens << 32) | degrees)
    used = cuda.atomic.add(ints, _USED, records)
    cuda.syncthreads()
    if ints[_USED] > history.shape[0]:
        if me == 0:
            ints[_STATUS] = NEED_HISTORY
        cuda.syncthreads()
        return
    side, frame = np.int32(book[SIDE]), np.int32(book[FRAME] - 1)
    _stamp(stamps, 2, numbers)
    place, offset = base >> 32, base & ARC_MASK
    for i in range(me, m, width):
        state = lists[TOUCHED, i]
        key = keys[state]
        cost = _cost(key >> 32)
        if cost < cut:
            count = _records(key, keys, arcs, source)
            lists[STATE, place] = state
            lists[COST, place] = bits_of(np.float32(cost - best))
            lists[OFFSET, place] = offset
            lists[ENTRY + 1 - side, place] = _entry(
                state, keys, arcs, source, lists, by_state, history, used, count, side, frame
            )
            used += count
            place += 1
            offset += _degree(states, state)
    cuda.syncthreads()
    n = np.int32(reserved[0] >> 32)
    for i in range(me, m, width):
        keys[lists[TOUCHED, i]] = FREE
    for i in range(me, n, width):
        by_state[PLACE, lists[STATE, i]] = i
    if me == 0:
        total = np.int32(reserved[0] & ARC_MASK)
        lists[OFFSET, n] = total
        beam = numbers[BEAM]
        if cut == np.float32(np.float64(best) + beam):
            floats[ADAPTIVE] = beam
        else:
            floats[ADAPTIVE] = np.float64(np.float32(cut - best)) + numbers[BEAM_DELTA]
        floats[OFF] += best
        floats[CUTOFF] = np.float32(cut - best)
        book[WRITTEN] += ints[_USED] - book[USED]
        book[USED] = ints[_USED]
        book[SIDE] = 1 - side
        book[TOUCHED_STATES] += m
        book[KEPT] += n
        book[PENDING] = 0
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
        if lists[OFFSET, middle] <= position:
            low = np.int32(middle)
        else:
            high = np.int32(middle - 1)
    return np.int32(low)


@device_function
def _pass(
    states: I32, arcs: I32, row: F32, numbers: F64, keys: I64, lists: I32, ints: I32, limit: np.float32, relaxing: bool
) -> np.float32:  # pragma: no cover - compiled
    """This thread's share of the emitting arcs: the least cost over them; `relaxing`: take tokens over those within
    `limit`, and over self-loops."""
    n, total = ints[_N], ints[_ARCS]
    share = (total + cuda.blockDim.x - 1) // cuda.blockDim.x
    position = cuda.threadIdx.x * share
    end = min(total, position + share)
    least = INFINITY
    minus, extra = np.float32(-numbers[SCALE]), np.float32(numbers[PENALTY])
    if position >= end:
        return least
    token = _owner(lists, n, np.int32(position))
    while position < end:
        state, cost = lists[STATE, token], float_of(lists[COST, token])
        first, begin = states[state, 0], lists[OFFSET, token]
        emitting = states[state, 1] - first
        stop = min(end, lists[OFFSET, token + 1])
        while position < stop:
            nth = position - begin
            loop = nth == emitting
            arc = np.int64(first + nth)
            if loop:
                label, weight, target = states[state, 2], float_of(states[state, 3]), state
                arc = np.int64(arcs.shape[0]) + state
            else:
                target, label, weight = arcs[arc, 0], arcs[arc, 1], float_of(arcs[arc, 3])
                if arcs[arc, 2] & WORD:
                    weight = np.float32(weight + extra)
            score = product(minus, row[label - 1])
            # Not a number, or no bad score at all: no cost comes of it.
            if score >= -LARGEST:
                value = np.float32(np.float32(cost + weight) + score)
                least = min(least, value)
                if relaxing and (value < limit or (loop and value < INFINITY)):
                    _relax(keys, lists, ints, target, value, arc)
            position += 1
        token += 1
    return least


@device_function
def _emit(
    states: I32, arcs: I32, row: F32, numbers: F64, keys: I64, lists: I32, floats: F64, ints: I32
) -> None:  # pragma: no cover - compiled
    """Pass tokens over self-loops and emitting arcs; the least cost is in _BEST then, the cutoff in `floats`."""
    me = cuda.threadIdx.x
    if me == 0:
        ints[_LOW] = INFINITE_ORDER
    cuda.syncthreads()
    limit = INFINITY
    for turn in range(2):
        least = _pass(states, arcs, row, numbers, keys, lists, ints, limit, turn == 1)
        if turn == 0 and least < INFINITY:
            cuda.atomic.min(ints, _LOW, np.int32(_order(least)))
        cuda.syncthreads()
        limit = np.float32(np.float64(_cost(np.int64(ints[_LOW]))) + floats[ADAPTIVE])
    if me == 0:
        floats[LIMIT] = limit
        ints[_BEST] = ints[_LOW]
    cuda.syncthreads()


@device_function
def _close(
    states: I32,
    arcs: I32,
    numbers: F64,
    keys: I64,
    by_state: I32,
    lists: I32,
    ints: I32,
    limit: np.float32,
    last: np.int64,
) -> np.int64:  # pragma: no cover - compiled
    """Epsilon closure of the touched states within `limit`, in rounds from `last` on; the last round.

    Each round takes the list of states that the round before made cheaper; no state is in a list twice.
    """
    me, width = cuda.threadIdx.x, cuda.blockDim.x
    room, extra = lists.shape[1] - 1, np.float32(numbers[PENALTY])
    n_epsilon = np.int32(numbers[EPSILON_STATES])
    if me == 0:
        ints[_QUEUE] = 0
        ints[_OTHER] = 0
    m = min(ints[_M], room)
    cuda.syncthreads()
    for i in range(me, m, width):
        state = lists[TOUCHED, i]
        if state < n_epsilon:
            lists[QUEUE, cuda.atomic.add(ints, _QUEUE, 1)] = state
    side, followed = 0, 0
    cuda.syncthreads()
    while ints[_QUEUE + side] > 0:
        n = ints[_QUEUE + side]
        last += 1
        for i in range(me, n, width):
            state = lists[QUEUE + side, i]
            here = _cost(keys[state] >> 32)
            for arc in range(states[state, 1], states[state + 1, 0]):
                weight = float_of(arcs[arc, 3])
                if arcs[arc, 2] & WORD:
                    weight = np.float32(weight + extra)
                value = np.float32(here + weight)
                followed += 1
                if value <= limit and _relax(keys, lists, ints, arcs[arc, 0], value, np.int64(arc)):
                    target = arcs[arc, 0]
                    cuda.atomic.min(ints, _BEST, np.int32(_order(value)))
                    if target < n_epsilon and cuda.atomic.max(by_state[QUEUED], target, np.int32(last)) < last:
                        at = cuda.atomic.add(ints, _QUEUE + 1 - side, 1)
                        if at < room:
                            lists[QUEUE + 1 - side, at] = target
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

    `states` int32 [n + 1, 4] and `arcs` int32 [m, 4] are the graph's records, weights as bits and in place of an arc's
    word WORD and RECORDED; `source` int32 [m] is the state that an arc leaves.
    `all_history` int32 [utterances, capacity, 3]. The books say where it stopped and why.
    """
    u, me = cuda.blockIdx.x, cuda.threadIdx.x
    ints = cuda.shared.array(_SHARED, np.int32)
    reserved = cuda.shared.array(1, np.int64)
    bins = cuda.shared.array(_BINS_AND_SUMS, np.int32)
    keys, by_state, lists, history = all_keys[u], all_by_state[u], all_lists[u], all_history[u]
    book = cuda.shared.array(N_BOOKS, np.int64)
    floats = cuda.shared.array(N_FLOATS, np.float64)
    for i in range(me, N_BOOKS, cuda.blockDim.x):
        book[i] = books[u, i]
    for i in range(me, N_FLOATS, cuda.blockDim.x):
        floats[i] = all_floats[u, i]
    cuda.syncthreads()
    room, length = lists.shape[1] - 1, np.int32(book[LENGTH])
    frame, last = np.int32(book[NEXT]), book[ROUND]
    status = np.int64(DONE)
    if me == 0:
        ints[_N] = np.int32(book[N])
        ints[_ARCS] = np.int32(book[ARCS])
        ints[_M] = np.int32(book[M])
        ints[_BEST] = np.int32(_order(np.float32(floats[BEST])))
        ints[_FOLLOWED] = 0
        ints[_STATUS] = DONE
        if book[OPENING] != 0:
            ints[_M] = 0
            ints[_BEST] = 0
            _relax(keys, lists, ints, np.int32(numbers[START_STATE]), np.float32(0.0), np.int64(START))
    cuda.syncthreads()
    while status == DONE:
        opening = book[OPENING] != 0
        stamps = all_stamps[u, min(frame, all_stamps.shape[1] - 1)]
        limit = INFINITY
        if not opening:
            if book[PENDING] != 0 and (frame < length or numbers[PRUNE_LAST] != 0):
                shared = ints, reserved, bins
                _prune(states, arcs, source, numbers, keys, by_state, lists, history, book, floats, stamps, *shared)
                status = np.int64(ints[_STATUS])
            elif frame < length:
                for phase in range(4):
                    _stamp(stamps, phase, numbers)
            if frame >= length or status != DONE:
                break
            _emit(states, arcs, scores[frame, u], numbers, keys, lists, floats, ints)
            limit = np.float32(floats[LIMIT])
            _stamp(stamps, 4, numbers)
        last = _close(states, arcs, numbers, keys, by_state, lists, ints, limit, last)
        cuda.syncthreads()
        if ints[_M] > room:
            status = np.int64(NEED_ROOM)
        elif me == 0:
            book[PENDING] = 1
            if opening:
                book[OPENING] = 0
            else:
                book[FRAME] += 1
                book[TOKENS] += ints[_N]
                book[EMIT_ARCS] += ints[_ARCS]
                _stamp(stamps, 5, numbers)
        cuda.syncthreads()
        if not opening and status == DONE:
            frame += 1
    if me == 0:
        book[N] = ints[_N]
        book[ARCS] = ints[_ARCS]
        book[M] = ints[_M]
        book[ROUND] = last
        book[NEXT] = frame
        book[STATUS] = status
        book[EPSILON_ARCS] += ints[_FOLLOWED]
        floats[BEST] = _cost(np.int64(ints[_BEST]))
    cuda.syncthreads()
    for i in range(me, N_BOOKS, cuda.blockDim.x):
        books[u, i] = book[i]
    for i in range(me, N_FLOATS, cuda.blockDim.x):
        all_floats[u, i] = floats[i]


@kernel_function
def trace(
    arcs: I32,
    source: I32,
    all_keys: I64,
    all_by_state: I32,
    all_lists: I32,
    all_history: I32,
    books: I64,
    chosen: I32,
    known: I32,
    path: I32,
    counts: I32,
) -> None:  # pragma: no cover - compiled
    """The path of each utterance's token in state `chosen[u]` (-1: none), the last entry first, one thread for each.

    `path` int32 [utterances, capacity, 3]: history entry (-1: not written yet), arc, frame. It ends at entry
    `known[u]` or where the utterance begins. `counts` int32 [utterances, 2]: entries, beyond the capacity counted only,
    and whether it ended at `known`.
    """
    u = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if u >= chosen.shape[0]:
        return
    counts[u, 0] = 0
    counts[u, 1] = 0
    if chosen[u] < 0:
        return
    keys, by_state, lists, history = all_keys[u], all_by_state[u], all_lists[u], all_history[u]
    count, room = 0, path.shape[1]
    here, arc = np.int64(chosen[u]), np.int64(arcs.shape[0])
    if books[u, PENDING] != 0:
        arc = keys[here] & ARC_MASK
    while arc < arcs.shape[0]:
        here = np.int64(source[arc])
        if arcs[arc, 2] & RECORDED:
            if count < room:
                path[u, count, 0] = -1
                path[u, count, 1] = arc
                path[u, count, 2] = books[u, FRAME] - 1
            count += 1
        if arcs[arc, 1] != 0:
            break
        arc = keys[here] & ARC_MASK
    entry = np.int32(-1)
    if arc != START:
        entry = lists[ENTRY + books[u, SIDE], by_state[PLACE, here]]
    while entry >= 0 and entry != known[u]:
        if count < room:
            path[u, count, 0] = entry
            path[u, count, 1] = history[entry, 1]
            path[u, count, 2] = history[entry, 2]
        count += 1
        entry = history[entry, 0]
    counts[u, 0] = count
    counts[u, 1] = 1 if entry >= 0 else 0
