"""The graph that is searched as a transducer for OpenFst and for other decoders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import kaldi_decoder
import kaldifst
import numpy as np

from pipelines.search.graph.openfst import Fst, from_arcs
from pipelines.search.graph.wfst import Graph, GraphError
from pipelines.search.viterbi import Viterbi


def fst_of(graph: Graph) -> Fst:
    """The same graph with its self-loops as arcs."""
    first = graph.states["first"].astype(np.int64)
    source = np.repeat(np.arange(graph.n_states), first[1:] - first[:-1])
    loops = np.nonzero(graph.states["loop_label"][:-1] > 0)[0]
    return from_arcs(
        graph.n_states,
        graph.start,
        graph.final,
        np.concatenate([source, loops]),
        np.concatenate([graph.arcs["ilabel"], graph.states["loop_label"][loops]]),
        np.concatenate([graph.arcs["olabel"], np.zeros(len(loops), dtype=np.int32)]),
        np.concatenate([graph.arcs["weight"], graph.states["loop_weight"][loops]]),
        np.concatenate([graph.arcs["target"], loops]),
    )


def loopless_of(graph: Graph) -> Fst:
    """The same without its self-loops, for paths that do not dwell."""
    whole = fst_of(graph)
    kept = whole.target != whole.source
    return from_arcs(
        whole.n_states,
        whole.start,
        whole.final,
        whole.source[kept],
        whole.ilabel[kept],
        whole.olabel[kept],
        whole.weight[kept],
        whole.target[kept],
    )


Segments = list[tuple[int, int]]
"""Units and blanks of a path, each with its first frame; blanks at the beginning left out."""


class Best(NamedTuple):
    """Labels of the words of the best path, its cost, its segments, and whether it ends in a final state."""

    words: list[int]
    cost: float
    segments: Segments
    complete: bool


def ours(decoder: Viterbi, scores: np.ndarray, block: int = 16) -> Best:
    """Of `decoder` with these scores, given in blocks."""
    decoder.start(0)
    for at in range(0, len(scores), block):
        decoder.advance(scores[at : at + block], at)
    decoder.finish()
    graph = decoder.graph
    states, cost = decoder._living()
    total = cost + graph.final[states]
    entry = decoder._entry(int(np.argmin(total if np.isfinite(total).any() else cost)))
    history, words, segments = decoder._space.books.history, [], []
    while entry >= 0:
        entry, arc, frame = history[entry].tolist()
        label, word = (int(graph.arcs[name][arc]) for name in ("ilabel", "olabel"))
        segments += [(label - 1, frame)] if label else []
        words += [word] if word else []
    return Best(words[::-1], decoder.best_cost, _without_leading_blank(segments[::-1], graph.blank), decoder.complete)


def kaldis(fst: Any, scaled: np.ndarray, blank: int, **options: float) -> Best | None:
    """Of kaldi_decoder.FasterDecoder over a ConstFst; None where it has no path."""
    decoder = kaldi_decoder.FasterDecoder(fst, kaldi_decoder.FasterDecoderOptions(**options))
    decoder.decode(kaldi_decoder.DecodableCtc(scaled))
    found, lattice = decoder.get_best_path()
    if not found:
        return None
    _, labels, words, weight = kaldifst.get_linear_symbol_sequence(lattice)
    segments = [(label - 1, t) for t, label in enumerate(labels) if not t or labels[t - 1] != label]
    return Best(words, weight.value1 + weight.value2, _without_leading_blank(segments, blank), decoder.reached_final())


def _without_leading_blank(segments: Segments, blank: int) -> Segments:
    return segments[1:] if segments and segments[0][0] == blank else segments


def assert_equal(some: Fst, other: Fst) -> None:
    assert some.start == other.start
    for name in ("final", "first", "ilabel", "olabel", "weight", "target"):
        np.testing.assert_array_equal(getattr(some, name), getattr(other, name))


def assert_sound_or_refused(path: Path, load: Callable[[], object], head: int) -> None:
    """Of 120 damaged versions of a file, many in its first `head` bytes, each opens or is refused in one sentence."""
    data, rng, opened = path.read_bytes(), np.random.default_rng(5), 0
    for turn in range(120):
        broken = bytearray(data)
        if turn % 3 == 0:
            del broken[rng.integers(0, len(data)) :]
        for at in rng.integers(0, rng.choice([head, len(data)]), rng.integers(1, 4)):
            if at < len(broken):
                broken[at] ^= rng.integers(1, 256)
        path.write_bytes(broken)
        sentence = ""
        try:
            load()
        except GraphError as error:
            sentence = str(error)
        opened += not sentence
        assert turn % 3 or sentence, "a cut graph is no graph"
        assert "\n" not in sentence
    assert opened
