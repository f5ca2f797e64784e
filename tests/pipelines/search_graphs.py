"""Small search graphs for the tests in this folder: random ones, a toy language, a real one."""

from functools import cache
from pathlib import Path

import kaldi_decoder
import kaldifst
import numpy as np
from language_models import random_model, restricted, write_arpa, write_dictionary

from pipelines.audio import loading
from pipelines.config import Config, Search
from pipelines.config import Graph as GraphConfig
from pipelines.frontend.mfcc import Mfcc
from pipelines.models import dictionary, sphinx
from pipelines.models.dictionary import Dictionary
from pipelines.models.language import ngram
from pipelines.scoring import build_scorer
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.openfst import Fst, from_arcs, to_kaldifst
from pipelines.search.graph.recipe import Recipe
from pipelines.search.graph.topology import Topology, epsilon_first
from pipelines.search.graph.wfst import Graph, Senones, from_topology
from pipelines.search.viterbi import Viterbi
from profiler.spans import SPAN, NullLane, Recorder
from tests.graph_fst import fst_of, loopless_of
from tests.pipelines.whole_runs import model

# Homophones, pronunciations that begin others, alternates, one phone only.
QUIET = -float(np.log1p(-0.3))  # no filler at a word boundary, probability of silence 0.3
TOY_WORDS = ("two", "to", "too", "a", "i", "eye", "read", "red", "four", "forward", "for", "ward")


def settings(beam=13.0, max_active=7000, acoustic_scale=0.1, insertion_penalty=0.0, **changes):
    values = {"beam": beam, "max_active": max_active, "min_active": 20, "adaptive_beam": False, "target_rtf": 0.05}
    values |= {"acoustic_scale": acoustic_scale, "insertion_penalty": insertion_penalty}
    return Search(**(values | {"lattice": False, "lattice_beam": 6.0, "nbest": 1} | changes))


@cache
def full_dictionary() -> Dictionary:
    return dictionary.default()


def toy_language(order: int = 2) -> ngram.NGram:
    """A random model of `order` over TOY_WORDS."""
    drawn = random_model(11, len(TOY_WORDS), order)
    return ngram.make(("<s>", "</s>", *TOY_WORDS), drawn.ids, drawn.log_prob, drawn.log_backoff)


def toy_recipe(folder: Path, order: int = 2, **changes) -> Recipe:
    """Files of the toy language in `folder`, and the recipe that compiles them."""
    folder.mkdir(exist_ok=True)
    write_arpa(toy_language(order), folder / "toy.arpa")
    words = restricted(full_dictionary(), TOY_WORDS)
    write_dictionary(Dictionary(words.pronunciations), folder / "toy.dict")
    files = {"dictionary": str(folder / "toy.dict"), "language_model": str(folder / "toy.arpa")}
    values = {"vocabulary": 100, "order": order, "bigrams": 1000, "trigrams": 1000} | changes
    return Recipe(model=str(sphinx.default_directory()), **files, **values)


@cache
def thousand_words() -> Graph:
    """A real graph of 1 000 words; compiled in some 4 s the first time."""
    return graphs.load_or_build(GraphConfig(vocabulary=1000, bigrams=50_000), model())


def random_graph(seed: int, all_final: bool, n_senones: int = 7) -> Graph:
    """A random graph with words and self-loops; epsilon arcs lead to higher states only."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 14))
    arcs = []
    for state in range(n):
        for _ in range(int(rng.integers(1, 5))):
            arcs.append((state, int(rng.integers(1, n_senones + 1)), int(rng.integers(0, n))))
        if state + 1 < n and rng.random() < 0.4:
            arcs.append((state, 0, int(rng.integers(state + 1, n))))
    source, ilabel, target = (np.array(c) for c in zip(*arcs, strict=True))
    olabel = np.where(rng.random(len(arcs)) < 0.5, rng.integers(1, 6, len(arcs)), 0)
    weight = rng.exponential(1.0, len(arcs))
    final = np.where(rng.random(n) < 0.5, rng.exponential(1.0, n), np.inf).astype(np.float32)
    if all_final:
        final[:] = 0.0
    fst = from_arcs(n, 0, final, source, ilabel, olabel, weight, target)
    loop_label = np.where(rng.random(n) < 0.7, rng.integers(1, n_senones + 1, n), 0)
    loop_weight = np.where(loop_label > 0, rng.exponential(1.0, n), 0.0)
    topology = Topology(fst, loop_label.astype(np.int32), loop_weight.astype(np.float32))
    return packed(epsilon_first(topology), n_senones, "abcde")


def packed(made: Topology | Fst, n_senones: int, words: str, state: int = 1) -> Graph:
    """The graph of a transducer, or of one with self-loops; all senones are of this `state` of one phone."""
    if isinstance(made, Fst):
        made = Topology(made, np.zeros(made.n_states, np.int32), np.zeros(made.n_states, np.float32))
    senones = Senones(np.zeros(n_senones), np.full(n_senones, state), np.array([True]))
    return from_topology(made, senones, tuple(words))


def equal_orders() -> Graph:
    """One state, and two words over its only senone that cost the same: either may be said first."""
    two = np.array([0, 0])
    return packed(from_arcs(1, 0, np.zeros(1, np.float32), two, two + 1, np.array([1, 2]), two + 0.5, two), 1, "ab")


def circle(weight: float = 0.5, word: int = 0) -> Graph:
    """Two states, an arc, and epsilon arcs to and fro; one costs `weight` and says `word`."""
    columns = [(0, 1, 1), (0, 0, 1), (0, word, 0), (0.0, weight, 0.0), (1, 0, 1)]
    return packed(from_arcs(2, 0, np.zeros(2, np.float32), *map(np.array, columns)), 1, "a")


def min_cost(graph: Graph, scores, words=None, scale=0.1, complete=True) -> float:
    """Least cost of a path through all frames (`complete`: to a final state), in float64; inf if there is none.

    With `words`, of those that say just these: all states at once, each with how many words have been said.
    """
    fst = fst_of(graph)
    emitting, source = fst.ilabel > 0, fst.source
    order = [graph.words.index(word) + 1 for word in words] if words is not None else []
    said = len(order)

    def over(best, arcs, extra):
        after = np.full_like(best, np.inf)
        for k in range(said + 1):
            cost = best[source[arcs], k] + fst.weight[arcs] + extra
            silent = fst.olabel[arcs] == 0 if words is not None else np.full(len(cost), True)
            np.minimum.at(after[:, k], fst.target[arcs][silent], cost[silent])
            if k < said:
                right = fst.olabel[arcs] == order[k]
                np.minimum.at(after[:, k + 1], fst.target[arcs][right], cost[right])
        return after

    def closed(best):
        while True:
            better = np.minimum(best, over(best, ~emitting, 0.0))
            if np.array_equal(better, best):
                return best
            best = better

    best = np.full((graph.n_states, said + 1), np.inf)
    best[graph.start, 0] = 0.0
    best = closed(best)
    for row in scores.astype(np.float64):
        best = closed(over(best, emitting, -scale * row[fst.ilabel[emitting] - 1]))
    return float((best[:, -1] + (graph.final if complete else 0.0)).min())


def smooth_scores(seed: int, n_frames: int, n_senones: int, spread: float = 12.0) -> np.ndarray:
    """Random log likelihoods that change slowly, f32 [n_frames, n_senones]."""
    rng = np.random.default_rng(seed)
    knots = rng.normal(scale=spread, size=(n_frames // 8 + 2, n_senones))
    at, part = np.divmod(np.arange(n_frames) / 8, 1.0)
    rows = at.astype(int)
    return (knots[rows] * (1 - part[:, None]) + knots[rows + 1] * part[:, None]).astype(np.float32)


def scores_of(path: Path) -> np.ndarray:
    """Scores of a sound file by the exact model, f32 [frames, senones]."""
    features = Mfcc(model().feat_params).features(loading.load(path).samples)
    scorer = build_scorer(Config(), model())
    blocks = range(0, len(features), 16)
    return np.concatenate([scorer.score(features[at : at + 16], at, NullLane()).copy() for at in blocks])


def decode(decoder, scores, first_frame=0, block=16):
    """The words of an utterance, given in blocks."""
    decoder.start(first_frame)
    for at in range(0, len(scores), block):
        decoder.advance(scores[at : at + block], first_frame + at)
    return decoder.finish()


def recorded(decoder, scores):
    """The spans of an utterance in one block, by the names of their stages."""
    recorder = Recorder()
    decoder.stages(recorder)
    lane = recorder.lane("decode", decode=True)
    decoder.start(0)
    decoder.advance(scores, 0, lane)
    spans = np.frombuffer(lane.take(), SPAN)
    return {stage.name: spans[spans["stage"] == stage.id] for stage in recorder.stages}


def spoken(words):
    return [word for word, _, _ in words]


def kaldi_graph(graph: Graph):
    return kaldifst.StdConstFst(to_kaldifst(fst_of(graph)))


def kaldi_decode(fst, graph, scores, beam, max_active, scale=0.1, min_active=20):
    """(words, cost, final state reached) of kaldi_decoder.FasterDecoder; None when it has no path."""
    options = kaldi_decoder.FasterDecoderOptions(beam=beam, max_active=max_active, min_active=min_active)
    decoder = kaldi_decoder.FasterDecoder(fst, options)
    decoder.decode(kaldi_decoder.DecodableCtc(scores * np.float32(scale)))
    found, lattice = decoder.get_best_path()
    if not found:
        return None
    _, _, words, weight = kaldifst.get_linear_symbol_sequence(lattice)
    return ([graph.words[w - 1] for w in words], weight.value1 + weight.value2, decoder.reached_final())


def assert_same_as_kaldis(graph, path, pdfs, scores, beam):
    """Kaldi's decoder has the same words, which are returned, at the same cost in a file that reads transition-ids."""
    decoder = Viterbi(graph, settings(beam=beam, acoustic_scale=1.0))
    words = spoken(decode(decoder, scores))
    fst = kaldifst.StdConstFst(kaldifst.StdVectorFst.read(str(path)))
    expected, cost, final = kaldi_decode(fst, graph, np.ascontiguousarray(scores[:, pdfs[1:]]), beam, 7000, scale=1.0)
    assert (words, decoder.complete, final) == (expected, True, True)
    assert abs(decoder.best_cost - cost) < 1e-3
    return words


def shortest(fst):
    """(cost, input labels) of the best path of a transducer of OpenFst, (inf, []) where there is none."""
    path = kaldifst.StdVectorFst(kaldifst.shortest_path(kaldifst.StdVectorFst(fst)))
    if path.num_states == 0:
        return np.inf, []
    _, labels, _, weight = kaldifst.get_linear_symbol_sequence(path)
    return weight.value, labels


def cost_of(fst: Fst, labels):
    """Cost of the best path that reads `labels`."""
    other = to_kaldifst(fst)
    kaldifst.arcsort(other, "ilabel")
    return shortest(kaldifst.compose(kaldifst.make_linear_acceptor(labels), other))[0]


def best_path(graph, words, labels=None):
    """(cost, input labels) of the best path of `graph` that says `words` (and reads `labels`)."""
    index = {w: i + 1 for i, w in enumerate(graph.words)}
    fst = to_kaldifst(loopless_of(graph))
    kaldifst.arcsort(fst, "olabel")
    fst = kaldifst.compose(fst, kaldifst.make_linear_acceptor([index[w] for w in words]))
    if labels is not None:
        kaldifst.arcsort(fst, "ilabel")
        fst = kaldifst.compose(kaldifst.make_linear_acceptor(labels), fst)
    return shortest(fst)


def backed_off(lm, words):
    """-ln P of a sentence where each step may also take the back-off path, as in the graph.

    Backing off also forgets words that a longer history would have used later.
    """
    index = lm.index()
    ids = [index[w] for w in (*words, "</s>")]

    def row(gram):
        return int(lm.find(np.array([gram], "i4"))[0])

    @cache
    def cheapest(history, at):
        if at == len(ids):
            return 0.0
        gram, choices = (*history, ids[at]), []
        if (own := row(gram)) >= 0:
            kept = gram[-(lm.order - 1) :] if lm.order > 1 else ()
            choices.append(cheapest(kept, at + 1) - lm.log_prob[len(history)][own])
        if history:
            listed = row(history)
            weight = lm.log_backoff[len(history) - 1][listed] if listed >= 0 else 0.0
            choices.append(cheapest(history[1:], at) - weight)
        return min(choices)

    return cheapest((index["<s>"],) if lm.order > 1 else (), 0)
