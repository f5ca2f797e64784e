"""GMM scoring with pocketsphinx as the peer, and Gaussian selection against dense scoring, on one processor core.

    asrscope bench gmm --json
    asrscope bench gmm --audio corpus/ --transcripts corpus/transcripts.tsv

pocketsphinx scores in its keyword mode with `compallsen`: all senones of every frame, though only from the four best
densities of each codebook and stream; with one keyword there is next to nothing to search. It gets the whole
utterance's features first (`no_search`), so that only scoring and that search are timed.

Selection on the continuous model is timed frame by frame (block 1) against dense scoring of the same model, and its
words are audited (`pipelines.experiments.audit`): on the files given, or on the first sentences of the synthetic test
corpus (`tests.bench.corpus`) up to 1 500 words.
"""

from collections.abc import Sequence
from importlib.metadata import version
from statistics import median
from typing import Any, NamedTuple

import pocketsphinx
from threadpoolctl import threadpool_limits

from pipelines.config import Config, Value, assign
from pipelines.experiments.audit import audit
from pipelines.experiments.scoring_replay import spoken
from pipelines.frontend.mfcc import Mfcc
from pipelines.models.opening import open_model
from pipelines.run import playlist
from pipelines.scoring import MAX_FRAMES, Scorer, build_scorer
from pipelines.scoring.strategy import never, quietly
from profiler.arrays import Array
from profiler.spans import Recorder
from tests.bench._rounds import LANE, Progress, Side, interleave, lost, paired, pcm, result, timed
from tests.bench.corpus import speech_for_words

MAX_AUDIO_S = 40.0  # speeds are taken on the first files up to this length; more only repeats them
SELECTION: dict[str, Value] = {"gmm.selection.method": "vq", "gmm.component": "int8", "block": 1}
"""The selection that is held against dense scoring of the continuous model: shortlists, computed in 8 bits."""
WANTED = {"exact PTM over pocketsphinx": 4.0, "selection over dense, time": 3.0, "points of WER lost": 2.0}


class Utterance(NamedTuple):
    """The input of both sides: samples for pocketsphinx, features f32 [frames, 39] for ours."""

    samples: bytes
    features: Array


def ours(name: str, config: Config, scorer: Scorer) -> Side:
    """`scorer` as `config` has it, in the blocks of `config`; no search, so all senones are wanted."""
    prepared = scorer.make_ready(config, quietly, never)

    def score(utterance: Utterance) -> float:
        features, block = utterance.features, config.block
        scorer.configure(config, prepared)
        scorer.reset()
        firsts = range(0, len(features), block)
        return timed(lambda: [scorer.score(features[at : at + block], at, LANE) for at in firsts])[1]

    return Side(name, score)


def theirs() -> Side:
    decoder = pocketsphinx.Decoder(
        keyphrase="forward", kws_threshold=1e-20, lm=None, compallsen=True, pl_window=0, loglevel="FATAL"
    )

    def score(utterance: Utterance) -> float:
        decoder.start_utt()
        decoder.process_raw(utterance.samples, no_search=True, full_utt=True)
        return timed(decoder.end_utt)[1]

    return Side("pocketsphinx", score)


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
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
    speech = [
        Utterance(pcm(sound).tobytes(), frontend.features(sound.samples, 0, LANE))
        for _, sound in spoken(items, MAX_AUDIO_S)
    ]
    frames = sum(len(utterance.features) for utterance in speech)

    def rows(sides: Sequence[Side], against: Side, key: str) -> list[dict[str, Any]]:
        return [
            {"what": side.name, "us_per_frame": median(side.seconds) / frames * 1e6, key: median(paired(against, side))}
            for side in sides
        ]

    with threadpool_limits(1):
        scorer = build_scorer(ptm, tied)
        scorer.warm_up()
        progress("PTM and pocketsphinx", None)
        peer = theirs()
        blocks = {n: ours(f"PTM exact, block {n}", assign(ptm, {"block": n}), scorer) for n in (64, 16, 1)}
        top = assign(ptm, {"gmm.selection.top_n": 4, "block": 16})
        sides = [peer, *blocks.values(), ours("PTM top-4, block 16", top, scorer)]
        interleave(sides, speech, repeat)
        del scorer
        progress("continuous model, frame by frame", None)
        scorer = build_scorer(dense, continuous)
        scorer.warm_up()
        both = {"dense": dense, "selected": selected}
        each = [ours(f"continuous {name}, block 1", config, scorer) for name, config in both.items()]
        interleave(each, speech, repeat)
        del scorer
    audited = audit(selected, for_words, progress, lambda: False)
    saving = paired(*each)
    agreement = {
        "senone scores": "tests/pipelines/test_scoring_gmm.py holds top 4 against pocketsphinx' senone log and "
        "exact scores against double precision (1e-3 nat)",
        "frames timed": frames,
        "wanted": WANTED,
        "selection": dict(SELECTION),
        "selection over dense, time": median(saving),
        "selection over dense, time, least and most": [min(saving), max(saving)],
        "selection: Gaussians evaluated": audited.shares["gaussians"],
        "selection: score error near the best, nat": audited.near.mean,
        "selection: same best senone": audited.agreement,
        "word error rate, dense": audited.exact_count.rate,
        "word error rate, selected": audited.count.rate,
        "words": audited.exact_count.reference_words,
        **lost(audited, "points of WER lost"),
    }
    return result(
        f"pocketsphinx {version('pocketsphinx')}, keyword mode, compallsen (top 4)",
        paired(peer, blocks[64]),
        "peer time / our time: PTM, all senones, ours exact in blocks of 64, one thread; the peer's time holds its "
        "search for one keyword, some 7 % of it",
        agreement,
        rows(sides, peer, "of_pocketsphinx") + rows(each, each[0], "of_dense"),
    )
