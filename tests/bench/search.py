"""The search alone, side by side with Kaldi's FasterDecoder on the same graph and the same scores.

Our compiled graph is handed to `kaldi_decoder.FasterDecoder` as a ConstFst; both get the same matrix of scaled log
likelihoods of the preset `gmm`, the same beam, `max_active` and `min_active`, and no word insertion penalty, which
Kaldi's has not. What counts is the processor time of the one thread, from the first frame to the words; our scaling of
the scores and our word times included, Kaldi's scaling (done beforehand) not.
"""

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from statistics import median
from typing import Any

import kaldi_decoder
import kaldifst
import msgspec
import numpy as np

from pipelines.audio import loading as audio
from pipelines.config import presets
from pipelines.frontend.mfcc import Mfcc
from pipelines.models import sphinx
from pipelines.run import playlist
from pipelines.scoring import build_scorer
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.openfst import to_kaldifst
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.clock import FRAME_S
from tests.bench._rounds import Answering, Progress, found_words, interleave, paired, result, scored, spread, timed
from tests.graph_fst import fst_of

PAIRS = ((13.0, 7000), (10.0, 7000), (13.0, 2000))
"""Beam and max_active, the headline first: what `reference` decoders are usually run at."""
EXTRA_VOCABULARY = 20_000  # Compared as well; building its graph, where it is not in the cache, takes half a minute
SAME_COST = 0.02  # nat by which best paths may differ: Kaldi lets costs grow over the utterance, in float32


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    """Compare on `paths` (default: the bundled voices), `repeat` rounds per setting."""
    config = presets.load("gmm").config
    model = sphinx.load(sphinx.default_directory())
    frontend, scorer = Mfcc(model.feat_params), build_scorer(config, model)
    scores = {
        item.name: scored(scorer, frontend.features(audio.load(item.path).samples), config.block)
        for item in playlist.build(paths, transcripts).items
    }
    scale = config.search.acoustic_scale
    scaled = {name: matrix * np.float32(scale) for name, matrix in scores.items()}
    audio_s = sum(map(len, scores.values())) * FRAME_S
    rows, ratios = [], []
    for vocabulary in (config.graph.vocabulary, EXTRA_VOCABULARY):
        wanted = msgspec.structs.replace(config.graph, vocabulary=vocabulary)
        graph = graphs.load_or_build(wanted, model, progress=progress)
        peer = kaldifst.StdConstFst(to_kaldifst(fst_of(graph)))
        for beam, max_active in PAIRS:
            settings = msgspec.structs.replace(config.search, beam=beam, max_active=max_active, insertion_penalty=0.0)
            decoder = Viterbi(graph, settings)
            decoder.warm_up()
            mine = Answering("ours", lambda name, d=decoder: timed(lambda: _ours(d, scores[name]), time.thread_time))
            options = {name: getattr(settings, name) for name in ("beam", "max_active", "min_active")}
            find = partial(kaldis, peer, options=options)
            theirs = Answering("Kaldi's", lambda name, f=find: timed(lambda: f(scaled[name]), time.thread_time))
            title = f"{vocabulary} words, beam {beam:g}, at most {max_active}"
            interleave([mine, theirs], list(scores), repeat, lambda share, t=title: progress(t, share))
            ratios.append(paired(theirs, mine))
            pairs = [(mine.answers[name], theirs.answers[name]) for name in scores]
            excess = [a - b for (_, a), (_, b) in pairs]
            same = sum(words == [graph.words[label - 1] for label in labels] for (words, _), (labels, _) in pairs)
            rows.append(
                {
                    "vocabulary": vocabulary, "beam": beam, "max_active": max_active, **spread(ratios[-1]),
                    "rtf": median(mine.seconds) / audio_s, "peer_rtf": median(theirs.seconds) / audio_s,
                    "utterances": len(pairs), "same_words": same,
                    "cost_difference": max(map(abs, excess)), "cost_excess": max(excess),
                }
            )  # fmt: skip
    agreement = {
        "same": "graph, scores, beam, max_active, min_active; one thread; no insertion penalty",
        "acoustic_scale": scale,
        "utterances": len(scores),
        "same_words": all(row["same_words"] == row["utterances"] for row in rows),
        "largest_cost_difference": max(row["cost_difference"] for row in rows),
        "no_dearer_path": all(row["cost_excess"] <= SAME_COST for row in rows),
    }
    beam, max_active = PAIRS[0]
    meaning = f"peer time / our time at beam {beam:g}, at most {max_active} tokens, median of paired rounds"
    peer_name = f"kaldi-decoder {version('kaldi-decoder')} FasterDecoder"
    return result(peer_name, ratios[0], meaning, agreement, rows)


def _ours(decoder: Viterbi, scores: Array) -> tuple[list[str], float]:
    return found_words(decoder, scores), decoder.best_cost


def kaldis(fst: Any, scaled: Array, options: Mapping[str, float]) -> tuple[list[int], float]:
    """Labels of the words and cost of the best path that Kaldi's decoder finds."""
    decoder = kaldi_decoder.FasterDecoder(fst, kaldi_decoder.FasterDecoderOptions(**options))
    decoder.decode(kaldi_decoder.DecodableCtc(scaled))
    reached, lattice = decoder.get_best_path()
    _, _, words, weight = kaldifst.get_linear_symbol_sequence(lattice)
    return words, weight.value1 + weight.value2 if reached else math.inf
