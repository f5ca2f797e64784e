"""The search alone, side by side with Kaldi's FasterDecoder on the same graph and the same scores.

Our compiled graph is handed to `kaldi_decoder.FasterDecoder` as a ConstFst; both get the same matrix of
scaled log likelihoods of the preset `gmm`, the same beam, `max_active` and `min_active`, and no word
insertion penalty, which Kaldi's has not. Each utterance is decoded by one and at once by the other, the
order swapped every time, on one thread; what counts is the processor time of that thread, so that other
programs disturb less. From the first frame to the words is measured on both sides; our scaling of the scores
and our word times included, Kaldi's scaling (done beforehand) not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median
from typing import Any

import kaldi_decoder
import kaldifst
import msgspec
import numpy as np

from pipelines.audio import loading as audio
from pipelines.config import Search, presets
from pipelines.frontend.mfcc import Mfcc
from pipelines.models import sphinx
from pipelines.run import playlist
from pipelines.run.interleave import turns
from pipelines.scoring import build_scorer
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.openfst import to_kaldifst
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.spans import NullLane, Recorder
from tests.graph_fst import fst_of

Progress = Callable[[str, float | None], None]
Outcome = tuple[float, list[str], float]
"""One decode: seconds, words and cost."""

PAIRS = ((13.0, 7000), (10.0, 7000), (13.0, 2000))
"""Beam and max_active, the headline first: what `reference` decoders are usually run at."""
EXTRA_VOCABULARY = 20_000
"""Compared as well; building its graph, where it is not in the cache, takes half a minute."""
SAME_COST = 0.02
"""Nat by which best paths may differ: Kaldi lets costs grow over the utterance, in float32."""


@dataclass
class Pair:
    """Both decoders on one utterance: seconds, words and cost of each (ours first)."""

    frames: int
    seconds: tuple[float, float]
    words: tuple[list[str], list[str]]
    costs: tuple[float, float]


def run(
    paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress
) -> dict[str, Any]:
    """Compare on `paths` (default: the bundled voices), `repeat` rounds per setting."""
    config = presets.load("gmm").config
    model = sphinx.load(sphinx.default_directory())
    items = playlist.build(paths, transcripts).items
    utterances = {item.name: _scores(config, model, item.path) for item in items}
    scale = config.search.acoustic_scale
    scaled = {name: scores * np.float32(scale) for name, scores in utterances.items()}
    rows = []
    for vocabulary in (config.graph.vocabulary, EXTRA_VOCABULARY):
        wanted = msgspec.structs.replace(config.graph, vocabulary=vocabulary)
        graph = graphs.load_or_build(wanted, model, progress=progress)
        peer = kaldifst.StdConstFst(to_kaldifst(fst_of(graph)))
        for beam, max_active in PAIRS:
            settings = msgspec.structs.replace(
                config.search, beam=beam, max_active=max_active, insertion_penalty=0.0
            )
            decoder = Viterbi(graph, settings)
            decoder.warm_up()
            title = f"{vocabulary} words, beam {beam:g}, at most {max_active}"
            decodes = {}
            for turn, place, side in turns(2, len(items), range(repeat)):
                progress(f"{title}: round {turn + 1} of {repeat}", turn / repeat)
                name = items[place].name
                decodes[turn, name, side] = (
                    _theirs(peer, graph, settings, scaled[name])
                    if side
                    else _ours(decoder, utterances[name])
                )
            rounds = [
                [
                    _pair(len(scores), decodes[turn, name, 0], decodes[turn, name, 1])
                    for name, scores in utterances.items()
                ]
                for turn in range(repeat)
            ]
            rows.append(_row(vocabulary, settings, rounds))
    head = rows[0]
    return {
        "peer": f"kaldi-decoder {version('kaldi-decoder')} FasterDecoder",
        "ratio": head["ratio"],
        "ratio_min": head["ratio_min"],
        "ratio_max": head["ratio_max"],
        "ratio_meaning": f"peer time / our time at beam {PAIRS[0][0]:g}, at most {PAIRS[0][1]} tokens, "
        "median of paired rounds",
        "agreement": {
            "same": "graph, scores, beam, max_active, min_active; one thread; no insertion penalty",
            "acoustic_scale": scale,
            "utterances": len(utterances),
            "same_words": all(row["same_words"] == row["utterances"] for row in rows),
            "largest_cost_difference": max(row["cost_difference"] for row in rows),
            "no_dearer_path": all(row["cost_excess"] <= SAME_COST for row in rows),
        },
        "rows": rows,
    }


def _scores(config: Any, model: Any, path: Any) -> Array:
    """Log likelihoods of every senone, f32 [frames, n_senones], by the exact scorer."""
    recorder = Recorder()
    front_end, scorer = Mfcc(model.feat_params), build_scorer(config, model)
    front_end.stages(recorder)
    scorer.stages(recorder)
    features = front_end.features(audio.load(path).samples, 0, NullLane())
    scorer.reset()
    return np.concatenate(
        [
            scorer.score(features[at : at + config.block], at, NullLane()).copy()
            for at in range(0, len(features), config.block)
        ]
    )


def _pair(frames: int, ours: Outcome, theirs: Outcome) -> Pair:
    return Pair(frames, *zip(ours, theirs, strict=True))  # type: ignore[arg-type]


def _ours(decoder: Viterbi, scores: Array) -> Outcome:
    start = time.thread_time()
    decoder.start(0)
    decoder.advance(scores, 0)
    words = decoder.finish()
    return time.thread_time() - start, [word for word, _, _ in words], decoder.best_cost


def _theirs(fst: Any, graph: Graph, settings: Search, scaled: Array) -> Outcome:
    options = kaldi_decoder.FasterDecoderOptions(
        beam=settings.beam, max_active=settings.max_active, min_active=settings.min_active
    )
    start = time.thread_time()
    decoder = kaldi_decoder.FasterDecoder(fst, options)
    decoder.decode(kaldi_decoder.DecodableCtc(scaled))
    found, lattice = decoder.get_best_path()
    _, _, words, weight = kaldifst.get_linear_symbol_sequence(lattice)
    seconds = time.thread_time() - start
    cost = weight.value1 + weight.value2 if found else math.inf
    return seconds, [graph.words[word - 1] for word in words], cost


def _row(vocabulary: int, settings: Search, rounds: list[list[Pair]]) -> dict[str, Any]:
    seconds = np.array([[pair.seconds for pair in pairs] for pairs in rounds]).sum(axis=1)
    ratios = (seconds[:, 1] / seconds[:, 0]).tolist()
    last = rounds[-1]
    audio_s = sum(pair.frames for pair in last) / 100
    excess = [ours - theirs for ours, theirs in (pair.costs for pair in last)]
    return {
        "vocabulary": vocabulary,
        "beam": settings.beam,
        "max_active": settings.max_active,
        "ratio": median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "rtf": median(seconds[:, 0].tolist()) / audio_s,
        "peer_rtf": median(seconds[:, 1].tolist()) / audio_s,
        "utterances": len(last),
        "same_words": sum(pair.words[0] == pair.words[1] for pair in last),
        "cost_difference": max(abs(value) for value in excess),
        "cost_excess": max(excess),
    }
