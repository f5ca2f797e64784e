"""Kernels of the search on arrays between walls: the decoder, graphs as they are made, faults that are planted."""

import dataclasses
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from pipelines.config import Search
from pipelines.search import alternatives, workspace
from pipelines.search.device import history as device_history
from pipelines.search.device.frontier import NOBODY
from pipelines.search.graph import _arcs
from pipelines.search.graph import expansion as _context
from pipelines.search.graph.lookahead import _compose, compose, folder, ngram
from pipelines.search.graph.openfst import from_arcs
from pipelines.search.graph.topology import Topology
from pipelines.search.graph.wfst import Graph, Senones, from_topology
from pipelines.search.kernels import history as _history
from pipelines.search.kernels import lattice as _lattice
from pipelines.search.kernels import layout
from pipelines.search.viterbi import Viterbi
from pipelines.search.workspace import Workspace
from profiler.arrays import Array
from tests.kernel_exercises import SIZES, Walls, runs
from tests.pipelines import lookahead_files


def graph(seed: int, n: int, crowded: bool = False, n_senones: int = 5) -> Graph:
    """A graph of `n` states, every one final; `crowded`: an arc between any two, and all can be alive at once."""
    rng = np.random.default_rng(seed)
    arcs: list[tuple[int | float, ...]] = []
    for state in range(n):
        goals = range(n) if crowded else rng.integers(0, n, 2).tolist()
        arcs += [(state, *rng.integers((1, 0), (n_senones + 1, 3)).tolist(), rng.random(), goal) for goal in goals]
        # States with epsilon arcs come first, and these lead upwards.
        if state < n // 2:
            arcs += [(state, 0, int(rng.integers(0, 3)), rng.random(), g) for g in (state + 1, n - 1)]
    fst = from_arcs(n, 0, np.zeros(n, np.float32), *map(np.array, zip(*arcs, strict=True)))
    loops = rng.integers(0, n_senones + 1, n).astype(np.int32), rng.random(n).astype(np.float32)
    senones = Senones(np.zeros(n_senones), rng.integers(0, 2, n_senones), np.array([False]))
    return from_topology(Topology(fst, *loops), senones, ("a", "b"), [[(0,)], [(0, 0)]])


def settings(**changes: Any) -> Search:
    values = {"beam": 1e4, "max_active": 1000, "min_active": 0, "acoustic_scale": 1.0, "insertion_penalty": 0.5}
    values |= {"adaptive_beam": False, "target_rtf": 1.0, "lattice": False, "lattice_beam": 1e4, "nbest": 9}
    return Search(**(values | changes))


def walled(graph: Graph, walls: Walls) -> Graph:
    """The same graph in arrays next to walls."""
    fields = {f.name: getattr(graph, f.name) for f in dataclasses.fields(graph)}
    return Graph(**{k: walls(v) if isinstance(v, np.ndarray) else v for k, v in fields.items()})


def decoder(graph: Graph, walls: Walls, chosen: Search) -> Viterbi:
    """A decoder all of whose arrays lie next to walls, with the least room to begin with."""
    # Room of one, so that each array is full to the last element before it grows.
    with mock.patch.multiple(workspace, FIRST_HISTORY=1, FIRST_ALTERNATIVES=1):
        made = Viterbi(graph, chosen)
        made._space = Workspace(graph, walls.empty)
        made._tracer._backpointers = walls.empty(1, np.int32)
        made.configure(chosen)
        made.start(0)
    return made


def decode(made: Viterbi, scores: Array, walls: Walls, block: int) -> None:
    """Every call of a decoder in an utterance."""
    made.start(0)
    for at in range(0, len(scores), block):
        made.advance(walls(scores[at : at + block]), at)
        made.partial()
        made.active_senones()
    made.finish()


def loud(seed: int, frames: int, n_senones: int = 5) -> Array:
    return np.random.default_rng(seed).normal(scale=4.0, size=(frames, n_senones)).astype(np.float32)


SEARCH = {
    "kernels.calls": ("named", "numbers_of", "begin", "advance", "_record", "prune", "active_senones", "entry_of"),
    "kernels.token_passing": ("price_labels", "_loop", "_price", "mark", "emit", "active_senones"),
    "kernels.epsilon": ("entry_of", "_relax", "close"),
    "kernels.sparse_set": ("find", "insert"),
    "kernels.pruning": ("select", "below", "ranked", "cutoff", "_take_off", "_write_history", "close_up", "prune"),
    "kernels.history": ("append", "collect", "trace"),
    "graph.wfst": ("fault",),
}


def _search(walls: Walls, **changes: Any) -> None:
    for n, crowded in ((1, False), (1, True), (2, True), (7, False), (13, True)):
        made = decoder(walled(graph(n, n, crowded), walls), walls, settings(**changes))
        for block in (1, 3, 9):
            decode(made, loud(block, 9), walls, block)
            made.configure(settings(insertion_penalty=float(block), **changes))


for _room, _kernels_of_room in SEARCH.items():
    entered = runs(f"pipelines.search.{_room}", *_kernels_of_room)

    @entered
    def search(walls: Walls) -> None:
        """Decoding with nothing pruned: as many tokens as there are states, as many arcs as there are."""
        _search(walls)

    @entered
    def search_pruned(walls: Walls) -> None:
        """Decoding with the histogram's cutoff, dead tokens, and lists that are closed up."""
        _search(walls, max_active=2, beam=3.0)
        _search(walls, max_active=0, beam=0.5, min_active=3)

    @entered
    def search_without_blanks(walls: Walls) -> None:
        """Decoding with frames left out, at the beginning and end of blocks too."""
        plain = dataclasses.replace(graph(3, 13, True), blank=4)
        made = decoder(walled(plain, walls), walls, settings(blank_skipping=0.5))
        for block in (1, 3, 9):
            scores = loud(block, 27) - np.float32(9.0)
            scores[[0, 1, 2, 7, 8, 9, 10, 11, 12, 25, 26], 4] = 0.0
            decode(made, scores, walls, block)

    @entered
    def search_of_what_are_no_numbers(walls: Walls) -> None:
        """Scores and beams from a damaged model."""
        rng = np.random.default_rng(5)
        for beam in (1e-30, 3.0, np.inf):
            made = decoder(walled(graph(4, 13, True), walls), walls, settings(beam=beam, max_active=3))
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
    books, own = made._space.arrays.books, made._space.arrays.lattice
    used, kept = (int(books.decoder_state[n]) for n in (layout.HISTORY, layout.ALTERNATIVES))
    ends, above = np.arange(-1, used), np.zeros(used + 1)
    lattice = alternatives.Lattice(books.history[:used], own.alternative[:kept], own.delta[:kept], ends, above, 0.0)
    ways = _lattice.Ways(*map(walls, lattice.kernel_lattice()))
    _lattice.posteriors(ways, walls(ends), walls(above), 1e4)
    scratch = walls(np.full(used, np.inf))
    _lattice.words_before(made.graph.arcs, ways, walls(ends), walls(above), 1e4, scratch)
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
            _history.collect(rows, 0, roots, others, pairs, delta, beam)
        _history.collect(rows, n, roots, others, pairs[:0], delta[:0], 0.5)
        _history.collect(rows, n // 2, roots, others, pairs[n // 2 :], delta[n // 2 :], 0.5)
        for room in SIZES:
            _history.trace(rows, n - 1, -1, walls.empty(room, np.int32))


@runs(device_history, "absorb")
def back_pointers(walls: Walls) -> None:
    """Back-pointers of a device into a history that has just the room, and into one that lacks an entry."""
    for tokens in (1, 2, 7):
        for frames in (1, 3):
            rng = np.random.default_rng(tokens)
            previous = walls(rng.integers(0, tokens, (frames, tokens)), np.int32)
            arc = walls(rng.integers(-2, 3, (frames, tokens)), np.int32)
            columns = (0, 1, -1), (1, 0, -1), (5, 6), (-1, 0)
            arcs = device_history.Arcs(*(walls(column, np.int32) for column in columns), 2)
            for room in (frames * tokens * 3, 0):
                entry = walls(np.full(tokens, -1), np.int32)
                history = walls.empty((room, 3), np.int32)
                device_history.absorb(previous, arc, arcs, 0, entry, history, 0)
            previous[:], arc[:] = tokens, 1
            entry = walls(np.full(tokens, -1), np.int32)
            found = device_history.absorb(previous, arc, arcs, 0, entry, history, 0)
            assert found == device_history.BROKEN
            assert NOBODY == -1


@runs(_arcs, "count", "reach")
def arcs(walls: Walls) -> None:
    """Arcs of no state, of one, and of some; files of them, whole and cut short."""
    for n in SIZES:
        rng = np.random.default_rng(n)
        m = 3 * n
        degrees = np.bincount(rng.integers(0, max(n, 1), m), minlength=n).tolist()
        first = walls([0, *np.cumsum(degrees)], np.int64)
        words = [word for degree in degrees for word in (0, degree, 0, *[7] * (4 * degree))]
        body = walls(np.array(words), np.int32)
        again = walls(np.zeros(n + 1), np.int64)
        assert _arcs.count(body, again) == len(body)
        for length in range(0, len(body), 5):
            assert _arcs.count(walls(body[:length]), walls(np.zeros(n + 1), np.int64)) == -1
        if n:
            target = walls(rng.integers(0, n, m), np.int32)
            _arcs.reach(first, target, 0, walls(np.zeros(n), np.bool_))


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
        given = _context.Transducer(first, ilabel, target, walls(np.ones(n), np.bool_))
        held = _context.Contexts(base, onward, said, symbol)
        keys, table = _context.find_places(given, 0, held)
        places, room = len(keys), 4 * len(keys)
        columns = (walls.empty(room, kind) for kind in (np.int32, np.int32, np.int64))
        made = _context.ExpandedArcs(walls.empty(places + 2, np.int64), *columns)
        _context.fill_arcs(walls(keys), walls(table), given, held, phones - 1, made)
        assert made.first[-1] == room


@runs(ngram, "_bit", "grow", "degrees", "finals", "_child", "fill_arcs")
def ngram_models(walls: Walls) -> None:
    """N-gram models as they are, and with bits and words that say something else."""
    for seed in range(40):
        contexts, backoff, ends = lookahead_files.random_contexts(seed, order=2 + seed % 3)
        rng = np.random.default_rng(seed)
        arrays = [array.copy() for array in lookahead_files.ngram_arrays(contexts, backoff, ends)]
        for array in arrays[:5] if seed > 4 else ():
            view = array.view(np.uint8)
            view[rng.integers(0, len(view))] ^= rng.integers(1, 256)
        *bits, context_words, future_words, back, final_weights, weights = map(walls, arrays)
        tree_bits, future_bits, final_bits = bits
        n, m = len(contexts), len(future_words)
        tree = ngram.Tree(*(walls.empty(length, np.int32) for length in (n, n, n + 1)))
        first, final = walls.empty(n + 1, np.int64), walls.empty(n, np.float32)
        outcomes = [
            ngram.grow(tree_bits, context_words, tree),
            ngram.degrees(future_bits, first, m),
            ngram.finals(final_bits, final_weights, final),
        ]
        if any(outcomes):
            continue
        of_root = walls.empty(5, np.int32)
        of_root[:] = -1
        children = slice(1, tree.first[1])
        small = (context_words[children] >= 0) & (context_words[children] < 5)
        of_root[context_words[children][small]] = np.arange(n)[children][small]
        model = ngram.Model(context_words, future_words, back, weights)
        room = (walls.empty(m + n - 1, kind) for kind in (np.int32, np.float32, np.int32))
        outcomes.append(ngram.fill_arcs(model, tree, first, of_root, *room))
        assert seed > 4 or not any(outcomes)


@runs(folder, "intervals")
def look_ahead_data(walls: Walls) -> None:
    """Interval sets of states, whole and cut short."""
    for n in (1, 2, 7):
        words = [word for state in range(n) for word in (state, 0, *range(1, 2 * state + 1), 7)]
        data, most = np.array(words, np.int32), (len(words) - 3 * n) // 2
        for length in range(len(words) + 1):
            room = walls.empty(n + 1, np.int64), walls.empty(most, np.int32), walls.empty(most, np.int32)
            outcome = folder.intervals(walls(data[:length]), 99, *room)
            assert outcome == (length if length == len(words) else -1)


@runs(
    _compose,
    *("add_up", "set_bits", "_from", "_sum", "_reaches", "ahead", "_slot", "enter_all", "_state", "_put", "_step"),
    *("expand", "to_final", "_has_epsilons", "renumber", "pack"),
)
def composition(walls: Walls) -> None:
    """Composition in arrays that grow by one, with states that lead nowhere."""
    for seed in range(12):
        n = 2 + seed % 7
        hcl = lookahead_files.random_hcl(seed, n)
        g = lookahead_files.random_g(seed, n)
        reach = _compose.Reach(*map(walls, compose._reach(lookahead_files.look_ahead(hcl))))
        reach.bits[:] = 0
        _compose.set_bits(reach)
        model, alike = compose._model(g)
        sums, words, first = walls(model.shares), walls(model.words), walls(g.first)
        _compose.add_up(sums, words, first)
        walled_graph, shares = _compose.Graph(*map(walls, model.graph)), walls(model.shares)
        model = _compose.Model(walled_graph, words, shares, sums, model.largest, walls(model.rank))
        given = _compose.Graph(*map(walls, (hcl.first, hcl.ilabel, hcl.olabel, hcl.weight, hcl.target, hcl.final)))
        counts, table = walls(np.array([0, 1, 0])), walls(np.full(2, -1), np.int32)
        states = _compose.States(*(walls(np.zeros(1), kind) for kind in compose._STATES))
        arcs = _compose.Arcs(*(walls(np.zeros(1), kind) for kind in compose._ARCS))
        states.hcl[0], states.g[0] = hcl.start, g.start
        _compose.enter_all(table, states, 1)
        while True:
            made = _compose.Made(states, table, arcs, counts)
            if (why := _compose.expand(given, reach, model, made, alike, 3)) == _compose.DONE:
                break
            if why == _compose.ARCS:
                arcs = _compose.Arcs(*(walls(np.append(column, 0), column.dtype) for column in arcs))
            elif why == _compose.STATES:
                states = _compose.States(*(walls(np.append(column, 0), column.dtype) for column in states))
            elif why == _compose.TABLE:
                table = walls(np.full(2 * len(table), -1), np.int32)
                _compose.enter_all(table, states, int(counts[1]))
        n, m = int(counts[1]), int(counts[2])
        states = _compose.States(*(walls(column[: n + (name == "first")]) for name, column in states._asdict().items()))
        arcs = _compose.Arcs(*(walls(column[:m]) for column in arcs))
        kept, number = walls(np.isfinite(states.final)), walls.empty(n, np.int32)
        into, source, stack = walls(np.zeros(n + 1), np.int64), walls.empty(m, np.int32), walls.empty(n, np.int32)
        _compose.to_final(states.first, arcs.target, kept, into, source, stack)
        _, n_kept, m_kept = _compose.renumber(kept, states.first, arcs, number)
        records = walls(np.zeros((n_kept + 1, 4)), np.int32), walls(np.zeros((m_kept, 4)), np.int32)
        _compose.pack(kept, number, states, arcs, *records, *(record.view(np.float32) for record in records))
        assert records[0][-1, 0] == m_kept


def _short(walls: Walls, spoil: Callable[[layout.Arrays], layout.Arrays]) -> None:
    made = decoder(walled(graph(13, 13, True), walls), walls, settings())
    # The walls are to catch what the check would.
    made._space.check = lambda arrays: None  # type: ignore[method-assign]
    made._space.hold(spoil(made._space.arrays))
    decode(made, loud(1, 9), walls, 3)


def a_state_too_few(walls: Walls) -> None:
    """Room for one token less than the graph has states."""
    _short(walls, lambda held: held._replace(tokens=layout.Tokens(*(walls(column[:-2]) for column in held.tokens))))


def an_arc_too_few(walls: Walls) -> None:
    """Room for fewer emitting arcs than the graph has."""

    def spoil(held: layout.Arrays) -> layout.Arrays:
        fewer = int((held.graph.arcs["ilabel"] > 0).sum()) - 1
        return held._replace(emitting=layout.Emitting(*(walls(column[:fewer]) for column in held.emitting)))

    _short(walls, spoil)


def a_senone_too_few(walls: Walls) -> None:
    """Marks of active senones that lack the last one."""
    _short(walls, lambda held: held._replace(labels=held.labels._replace(active=walls(held.labels.active[:-1]))))


PLANTED = (a_state_too_few, an_arc_too_few, a_senone_too_few)
