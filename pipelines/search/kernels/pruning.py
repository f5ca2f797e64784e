"""Between two frames, compiled: the cutoff, the tokens' history, and the lists of what they can do next.

The cutoff is Kaldi's (FasterDecoder::GetCutoff). A token over it keeps its place with cost +inf, so that nothing moves
and a path that comes back finds its arcs still listed; once a quarter of the places is dead, all lists are closed up.
"""

import numpy as np

from pipelines.search.kernels import layout
from pipelines.search.kernels.history import append
from pipelines.search.kernels.intrinsics import prefetch
from pipelines.search.kernels.layout import Arrays, Index, Numbers, Scratch
from profiler.arrays import F32, I64
from profiler.process.numba_flags import njit_inner, njit_reducing
from profiler.recording.kernel_spans import now_ns

DEAD_SHARE = 4  # One in DEAD_SHARE places may be dead before the lists are compacted


@njit_inner
def select(values: F32, n: int | np.int64, k: int) -> np.float32:  # pragma: no cover - compiled
    """The k-th smallest (from 0) of values[:n], which are reordered; Hoare's quickselect."""
    low, high = 0, n - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return np.float32(values[k])


@njit_inner
def below(values: F32, n: int, limit: np.float32) -> np.int32:  # pragma: no cover - compiled
    """How many of values[:n] are less than `limit`."""
    count = np.int32(0)
    for i in range(n):
        count += np.int32(values[i] < limit)
    return count


@njit_inner
def ranked(
    costs: F32, m: int, inside: Index, best: np.float32, numbers: Numbers, scratch: Scratch
) -> np.float32:  # pragma: no cover - compiled
    """The cost from which tokens are dropped if more than max_active or at most min_active are in the beam: that of the
    token with that rank, +inf if there are fewer."""
    values, bins, counts = scratch.values, scratch.backpointers, scratch.bins
    beam, max_active, min_active = numbers.beam, numbers.max_active, numbers.min_active
    limit = np.float32(best + beam)
    if inside > max_active:
        # Bins over the beam (the last: all beyond), then a selection within the one with the rank.
        scale, last = np.float32(layout.BINS / beam), np.float32(layout.BINS)
        for i in range(m):
            place = (costs[i] - best) * scale
            # In this order: what is not below the last bin is in it, whatever it is.
            bins[i] = np.int32(min(last, place))
        counts[:] = 0
        for i in range(m):
            counts[bins[i]] += 1
        rank = max_active
        chosen = 0
        while rank >= counts[chosen]:
            rank -= counts[chosen]
            chosen += 1
        n = np.int64(0)  # a literal is a type, for which `select` would be compiled once more
        for i in range(m):
            values[n] = costs[i]
            n += bins[i] == chosen
        return select(values, n, rank)
    n = np.int64(0)
    for i in range(m):
        values[n] = costs[i]
        n += costs[i] < layout.INFINITY
    if n <= min_active:
        return layout.INFINITY
    return max(limit, select(values, n, min_active))


@njit_inner
def cutoff(
    costs: F32, m: int, best: np.float32, numbers: Numbers, scratch: Scratch, work: I64
) -> np.float32:  # pragma: no cover - compiled
    """Cost from which tokens are dropped, as Kaldi's GetCutoff; +inf drops none. Ranking is counted in `work`."""
    limit = np.float32(best + numbers.beam)
    inside = below(costs, m, limit)
    if numbers.min_active < inside <= numbers.max_active:
        return limit
    began = now_ns()
    found = np.float32(ranked(costs, m, inside, best, numbers, scratch))
    work[layout.RANKED] += m
    work[layout.RANKING_NS] += now_ns() - began
    return found


@njit_reducing
def _take_off(
    n: int, new_cost: F32, cost: F32, cut: np.float32, best: np.float32
) -> np.int32:  # pragma: no cover - compiled
    """cost = new_cost - best where it is under the cutoff, +inf elsewhere; how many are."""
    alive = np.int32(0)
    for i in range(n):
        keep = new_cost[i] < cut
        cost[i] = new_cost[i] - best if keep else layout.INFINITY
        alive += np.int32(keep)
    return alive


@njit_inner
def _write_history(arrays: Arrays, cut: np.float32) -> None:  # pragma: no cover - compiled
    """Give each token under the cutoff that came over an arc its place in the history."""
    tokens, books = arrays.tokens, arrays.books
    hist, new_cost, new_hist, come = tokens.hist, tokens.new_cost, tokens.new_hist, tokens.come
    source, record = arrays.emitting.source, arrays.emitting.record
    places, backpointers = arrays.scratch.places, arrays.scratch.backpointers
    history, m, used = books.history, books.decoder_state[layout.M], books.decoder_state[layout.HISTORY]
    frame = np.int32(books.decoder_state[layout.FRAME] - 1 - books.decoder_state[layout.SKIPPED])
    count = 0
    for i in range(m):
        places[count] = i
        count += (come[i] != layout.BY_LOOP) & (new_cost[i] < cut)
    for j in range(count):
        i = places[j]
        e = come[i]
        entry = new_hist[i]
        if e >= 0:
            entry = hist[source[e]]
            arc = record[e]
            written = append(history, used, entry, arc, frame)
            entry = written if arc >= 0 else entry
            used += arc >= 0
        backpointers[j] = entry
    # Only now: another token's way may have begun where this one stands.
    for j in range(count):
        hist[places[j]] = backpointers[j]
    books.decoder_state[layout.HISTORY] = used


@njit_inner
def close_up(arrays: Arrays) -> int:  # pragma: no cover - compiled
    """Take dead tokens and their arcs out of the lists; returns how many tokens are left."""
    tokens, decoder_state = arrays.tokens, arrays.books.decoder_state
    state, cost, hist = tokens.state, tokens.cost, tokens.hist
    loop_label, loop_weight = tokens.loop_label, tokens.loop_weight
    slot, moved = arrays.places.slot, arrays.scratch.moved
    kept = 0
    for i in range(decoder_state[layout.N]):
        keep = cost[i] < layout.INFINITY
        at = state[i]
        state[kept] = at
        cost[kept] = cost[i]
        hist[kept] = hist[i]
        loop_label[kept] = loop_label[i]
        loop_weight[kept] = loop_weight[i]
        # Of a dead token this names a place that the next one takes: so it is none.
        slot[at] = kept
        moved[i] = kept if keep else -1
        kept += keep
    source, label, weight, target, record, _, _ = arrays.emitting
    to = 0
    for e in range(decoder_state[layout.EMITTING]):
        place = moved[source[e]]
        source[to] = place
        label[to] = label[e]
        weight[to] = weight[e]
        target[to] = target[e]
        record[to] = record[e]
        to += place >= 0
    decoder_state[layout.EMITTING] = to
    source, weight, target, record, _, _ = arrays.epsilons
    to = 0
    for e in range(decoder_state[layout.EPSILONS]):
        place = moved[source[e]]
        source[to] = place
        weight[to] = weight[e]
        target[to] = target[e]
        record[to] = record[e]
        to += place >= 0
    decoder_state[layout.EPSILONS] = to
    return kept


@njit_inner
def prune(arrays: Arrays, numbers: Numbers) -> int:  # pragma: no cover - compiled
    """Drop tokens over the cutoff, write history for the others, list the arcs of the new ones."""
    states, arcs = arrays.graph.states, arrays.graph.arcs
    tokens, entering = arrays.tokens, arrays.labels.entering
    state, cost, hist, new_cost = tokens.state, tokens.cost, tokens.hist, tokens.new_cost
    loop_label, loop_weight = tokens.loop_label, tokens.loop_weight
    slot, places = arrays.places.slot, arrays.scratch.places
    decoder_state, floats = arrays.books.decoder_state, arrays.books.floats
    beam = numbers.beam
    n, m = decoder_state[layout.N], decoder_state[layout.M]
    if decoder_state[layout.HISTORY] + m > len(arrays.books.history):
        return layout.NEED_HISTORY
    best = np.float32(floats[layout.BEST])
    if not best < layout.INFINITY:
        # Nothing lives on: what there was before the frame is the best partial result.
        decoder_state[layout.M] = n
        decoder_state[layout.FRAME] -= 1 + decoder_state[layout.SKIPPED]
        decoder_state[layout.PENDING] = 0
        return layout.NO_TOKENS
    cut = np.float32(cutoff(new_cost, m, best, numbers, arrays.scratch, arrays.books.work))
    floats[layout.ADAPTIVE] = beam if cut == np.float32(best + beam) else cut - best + numbers.beam_delta
    floats[layout.CUTOFF] = cut - best
    _write_history(arrays, cut)
    alive = _take_off(n, new_cost, cost, cut, best)
    kept = n
    if DEAD_SHARE * (n - alive) > n:
        arrays.books.work[layout.CLOSED_UP] += n + decoder_state[layout.EMITTING] + decoder_state[layout.EPSILONS]
        kept = close_up(arrays)
    count = 0
    for i in range(n, m):
        places[count] = i
        count += new_cost[i] < cut
    for j in range(count):
        prefetch(arcs, states[state[places[j]]].first)  # type: ignore[call-arg]
    source, label, weight, target, record, _, _ = arrays.emitting
    e_source, e_weight, e_target, e_record, _, _ = arrays.epsilons
    extra = np.float32(numbers.penalty)
    e, x = decoder_state[layout.EMITTING], decoder_state[layout.EPSILONS]
    for j in range(count):
        i = places[j]
        at = state[i]
        state[kept] = at
        cost[kept] = new_cost[i] - best
        hist[kept] = hist[i]
        slot[at] = kept
        loop_label[kept] = states[at].loop_label
        loop_weight[kept] = states[at].loop_weight
        middle = np.uint32(states[at].epsilon)
        for k in range(np.uint32(states[at].first), middle):
            word = arcs[k].olabel != 0
            senone = np.uint32(arcs[k].ilabel)
            source[e] = kept
            label[e] = senone
            weight[e] = arcs[k].weight + extra if word else arcs[k].weight
            target[e] = arcs[k].target
            record[e] = k if word or entering[senone] else -1
            e += 1
        for k in range(middle, np.uint32(states[at + 1].first)):
            word = arcs[k].olabel != 0
            e_source[x] = kept
            e_weight[x] = arcs[k].weight + extra if word else arcs[k].weight
            e_target[x] = arcs[k].target
            e_record[x] = k if word else -1
            x += 1
        kept += 1
    decoder_state[layout.EMITTING] = e
    decoder_state[layout.EPSILONS] = x
    floats[layout.OFFSET] += best
    decoder_state[layout.N] = kept
    decoder_state[layout.M] = kept
    decoder_state[layout.PENDING] = 0
    arrays.books.work[layout.EXAMINED] += m
    arrays.books.work[layout.ENTERED] += count
    return layout.DONE
