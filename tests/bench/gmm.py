"""GMM scoring beside pocketsphinx, and Gaussian selection beside dense scoring, on one processor core.

    asrscope bench gmm --json
    asrscope bench gmm --audio corpus/ --transcripts corpus/transcripts.tsv

pocketsphinx scores in its keyword mode with `compallsen`: all senones of every frame, though only from the
four best densities of each codebook and stream, and beside one keyword there is next to nothing to search.
It gets the whole utterance's features first (`no_search`), so that only scoring and that search are timed.
Ours scores the same frames in blocks. Every utterance goes through all sides at once, in an order that
turns, and a side's time is the sum over the utterances of a round.

Selection on the continuous model is timed frame by frame (block 1), beside dense scoring of the same model, and
its words are audited (`pipelines.experiments.audit`): on the files given, or on the first sentences of the
synthetic test corpus (`tests.bench.corpus`) up to 1 500 words. The dense kernels are held against bare matrix
products by `tests.bench.continuous`, whose figures are repeated here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median
from typing import Any

import numpy as np
import pocketsphinx
from threadpoolctl import threadpool_limits

from pipelines.config import Config, Value, assign
from pipelines.experiments.audit import audit
from pipelines.experiments.scoring_replay import spoken
from pipelines.frontend.mfcc import Mfcc
from pipelines.models.opening import open_model
from pipelines.run import playlist
from pipelines.run.playlist import Item
from pipelines.scoring import MAX_FRAMES, Scorer, build_scorer
from pipelines.scoring.continuous import pack
from pipelines.scoring.strategy import never, quietly
from profiler.arrays import Array
from profiler.spans import NullLane, Recorder
from tests.bench import continuous as bench_continuous
from tests.bench._data import speech_for_words
from tests.bench._rounds import Side, interleave, paired

Progress = Callable[[str, float | None], None]

LANE = NullLane()
MAX_AUDIO_S = 40.0
"""Speeds are taken on the first files up to this length; more only repeats them."""

SELECTION: dict[str, Value] = {
    "gmm.selection.method": "vq",
    "gmm.component": "int8",
    "block": 1,
}
"""The selection that is held against dense scoring of the continuous model: shortlists, computed in 8 bits."""

WANTED = {
    "exact PTM over pocketsphinx": 4.0,
    "selection over dense, time": 3.0,
    "points of WER lost": 2.0,
}


@dataclass
class Utterance:
    """What both sides are given: samples for pocketsphinx, features f32 [frames, 39] for ours."""

    samples: bytes
    features: Array


def ours(name: str, config: Config, scorer: Scorer) -> Side:
    """`scorer` as `config` has it, in the blocks of `config`; no search, so all senones are wanted."""
    prepared = scorer.make_ready(config, quietly, never)

    def score(utterance: Utterance) -> float:
        features, block = utterance.features, config.block
        scorer.configure(config, prepared)
        scorer.reset()
        start = time.perf_counter()
        for first in range(0, len(features), block):
            scorer.score(features[first : first + block], first, LANE)
        return time.perf_counter() - start

    return Side(name, score)


def theirs() -> Side:
    """pocketsphinx, all senones from the four best densities."""
    decoder = pocketsphinx.Decoder(
        keyphrase="forward",
        kws_threshold=1e-20,
        lm=None,
        compallsen=True,
        pl_window=0,
        loglevel="FATAL",
    )

    def score(utterance: Utterance) -> float:
        decoder.start_utt()
        decoder.process_raw(utterance.samples, no_search=True, full_utt=True)
        start = time.perf_counter()
        decoder.end_utt()
        return time.perf_counter() - start

    return Side("pocketsphinx", score)


def utterances(items: Sequence[Item], frontend: Mfcc) -> list[Utterance]:
    """The first of `items`, up to about MAX_AUDIO_S."""
    found: list[Utterance] = []
    for _, sound in spoken(items, MAX_AUDIO_S):
        samples = np.clip(np.round(sound.samples * 32768.0), -32768, 32767).astype("<i2")
        found.append(Utterance(samples.tobytes(), frontend.features(sound.samples, 0, LANE)))
    return found


def run(
    paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress
) -> dict[str, Any]:
    """Time all sides `repeat` times over, audit the selection, and hold dense kernels against bare products."""
    for_words = speech_for_words(paths, transcripts)
    items = playlist.build(paths, transcripts).items
    ptm = assign(Config(), {"block": MAX_FRAMES})
    dense = assign(Config(), {"model": "continuous", "block": 1})
    selected = assign(dense, SELECTION)
    progress("opening the models", None)
    tied, continuous = open_model(ptm), open_model(dense)
    frontend = Mfcc(tied.feat_params)
    frontend.stages(Recorder())
    speech = utterances(items, frontend)
    frames = sum(len(utterance.features) for utterance in speech)
    with threadpool_limits(1):
        scorer = build_scorer(ptm, tied)
        scorer.warm_up()
        progress("PTM beside pocketsphinx", None)
        peer = theirs()
        blocks = {
            n: ours(f"PTM exact, block {n}", assign(ptm, {"block": n}), scorer) for n in (64, 16, 1)
        }
        top = assign(ptm, {"gmm.selection.top_n": 4, "block": 16})
        sides = [peer, *blocks.values(), ours("PTM top-4, block 16", top, scorer)]
        interleave(sides, speech, repeat)
        del scorer
        progress("continuous model, frame by frame", None)
        scorer = build_scorer(dense, continuous)
        scorer.warm_up()
        each = [
            ours("continuous dense, block 1", dense, scorer),
            ours("continuous selected, block 1", selected, scorer),
        ]
        interleave(each, speech, repeat)
        del scorer
        progress("bare products", None)
        bare = bench_continuous.measure(pack(continuous), 64, max(repeat, 9))
    found = audit(selected, for_words, progress, lambda: False)
    interval = found.wer_change_interval()
    ratios = paired(peer, blocks[64])
    saving = paired(*each)
    change = found.wer_change
    return {
        "peer": f"pocketsphinx {version('pocketsphinx')}, keyword mode, compallsen (top 4)",
        "ratio": median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "ratio_meaning": "peer time / our time: PTM, all senones, ours exact in blocks of 64, one thread; the peer's "
        "time holds its search for one keyword, some 7 % of it",
        "agreement": {
            "senone scores": "tests/pipelines/test_scoring_gmm.py holds top 4 against pocketsphinx' senone log and "
            "exact scores against double precision (1e-3 nat)",
            "frames timed": frames,
            "wanted": WANTED,
            "selection": dict(SELECTION),
            "selection over dense, time": median(saving),
            "selection over dense, time, least and most": [min(saving), max(saving)],
            "selection: Gaussians evaluated": found.shares["gaussians"],
            "selection: score error near the best, nat": found.near.mean,
            "selection: same best senone": found.agreement,
            "word error rate, dense": found.exact_count.rate,
            "word error rate, selected": found.count.rate,
            "words": found.exact_count.reference_words,
            "points of WER lost": None if change is None else 100 * change,
            "points of WER lost, 95 % interval (paired bootstrap)": None
            if interval is None
            else [100 * end for end in interval],
            "dense, block 64: product stage / bare product": bare["product_of_bare"],
            "dense, block 64: product stage, GFLOP/s": bare["product_gflops"],
            "dense, block 64: bare product, GFLOP/s": bare["bare_gflops"],
            "log-sum-exp, ns per Gaussian": bare["lse_ns_per_gaussian"],
            "log-sum-exp, share of scoring at block 64": bare["lse_share"],
            "peak memory of the continuous model over base, MB": bench_continuous.memory_mb(),
        },
        "rows": [
            {
                "what": side.name,
                "us_per_frame": median(side.seconds) / frames * 1e6,
                "of_pocketsphinx": median(paired(peer, side)),
            }
            for side in sides
        ]
        + [
            {
                "what": side.name,
                "us_per_frame": median(side.seconds) / frames * 1e6,
                "of_dense": median(paired(each[0], side)),
            }
            for side in each
        ],
    }
