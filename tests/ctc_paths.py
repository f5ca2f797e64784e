"""What a search over the graph of a CTC net found, frame by frame, and the same of Kaldi's decoder."""

from __future__ import annotations

from typing import Any, NamedTuple

import kaldi_decoder
import kaldifst
import numpy as np

from pipelines.search.viterbi import Viterbi

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
