"""Nets on one processor core: against onnxruntime, against the roof of matrix products, in other arithmetics.

    asrscope bench dnn --json
    asrscope bench dnn --audio corpus/ --transcripts corpus/transcripts.tsv

onnxruntime gets the same net as a graph of Gemm and Relu (`tests.pipelines.onnx_files`) and the same frames of real
speech, already spliced. The roof is a square product by the same library, timed in the same turns. What 8 bits cost in
words is audited on the files given, or on the synthetic test corpus.
"""

import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from pipelines.config import Config, Value, assign, presets
from pipelines.experiments.audit import audit
from pipelines.frontend.mfcc import Mfcc
from pipelines.models import nets, sphinx
from pipelines.run.playlist import Item, build
from pipelines.scoring import MAX_FRAMES, dnn, with_context
from pipelines.scoring.blocks import Meter
from pipelines.scoring.dnn.dense import DenseNet, layer_stage
from pipelines.scoring.dnn.onnx import OnnxNet
from pipelines.scoring.strategy import never
from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.machine.roofs.cpu import GEMM_SIZE
from profiler.spans import SPAN, Recorder
from tests.bench._rounds import Kept, Progress, Side, Tree, features_of, interleave, lost, paired, result, timed
from tests.bench.corpus import WORDS, human_speech, speech_for_words
from tests.pipelines import onnx_files

NETS = ("base", "large")
BATCHES = (1, 16, 32, 64)
AT = 32  # the batch size of the statements
MAX_AUDIO_S = 6.0  # speeds are taken on the first files up to this length; more only repeats them
MIN_ROUNDS = 5
PEAK_ROUNDS = 4  # rounds with the square product for one of the others: they are short
PEER, PLAIN, SIMD, INT8 = "onnxruntime, fp32", "ours, fp32 blas", "ours, fp32 simd", "ours, int8"
FP32 = (PLAIN, SIMD)
FORMS: dict[str, dict[str, Value]] = {
    PLAIN: {"dnn.product": "blas"},
    SIMD: {"dnn.product": "simd"},
    INT8: {"dnn.dtype": "int8"},
}
SPARSE: dict[str, dict[str, Value]] = {
    "ours, csr": {"dnn.shrink": "sparse", "dnn.product": "csr"},
    "ours, blocks": {"dnn.shrink": "blocks", "dnn.product": "blocks"},
}
"""Of the first net alone: as much left of the weights as `dnn.share` says."""
DIFFERENCE, OF_PEAK = "largest difference of scores, nat", "hidden layers, share of the GEMM peak"
WANTED: dict[str, tuple[str, float]] = {
    "onnxruntime's time / ours, fp32": ("at least", 1.0),
    OF_PEAK: ("at least", 0.8),
    "fp32's time / int8's": ("at least", 2.0),
    "points of WER lost by int8": ("at most", 1.0),
}
"""Times at batch AT, of the first net; fp32 by the faster product."""


class Variant:
    """A net in one arithmetic, and its input: of each utterance f32 [frames, inputs (and 1)]. `speech`: features f32
    [frames, 39] of each utterance."""

    def __init__(self, title: str, arithmetic: Any, speech: Sequence[Array]) -> None:
        self.title, self.arithmetic, self.spliced = title, arithmetic, []
        for features in speech:
            padded, beyond = with_context(features, arithmetic.context), sum(arithmetic.context)
            firsts = range(0, len(features), MAX_FRAMES)
            parts = [arithmetic.splice(padded[at : at + MAX_FRAMES + beyond], Meter()).copy() for at in firsts]
            self.spliced.append(np.concatenate(parts))

    def scored(self, number: int, batch: int, scores: Array | None = None) -> None:
        """Score an utterance in batches, into `scores` f32 [frames, senones] if given."""
        x, meter = self.spliced[number], Meter()
        once = np.empty((batch, self.arithmetic.n_senones), np.float32)
        for at in range(0, len(x), batch):
            part = x[at : at + batch]
            into = once if scores is None else scores[at:]
            self.arithmetic.score(part, into[: len(part)], meter)

    def side(self, batch: int) -> Side:
        return Side(self.title, lambda number: timed(lambda: self.scored(number, batch))[1])

    def scores(self, number: int) -> Array:
        scores = np.empty((len(self.spliced[number]), self.arithmetic.n_senones), np.float32)
        self.scored(number, AT, scores)
        return scores


def variants_of(name: str, speech: Sequence[Array]) -> tuple[dict[str, Variant], list[Tree]]:
    """All variants of the net called `name`, and a row for each that cannot be made here."""
    plain = presets.load("dnn").config
    net = nets.load(nets.find(name))
    with tempfile.TemporaryDirectory() as folder:
        peer = OnnxNet(onnx_files.write(Path(folder), net), 1, MAX_FRAMES)
    made, missing = {PEER: Variant(PEER, peer, speech)}, []
    for title, changed in (FORMS | SPARSE if name == NETS[0] else FORMS).items():
        config = assign(plain, {"dnn.net": name, **changed})
        try:
            read = dnn.read(config.dnn, net.card.senones, net.card.dimension)
            made[title] = Variant(title, dnn.create(config.dnn, read, 1, MAX_FRAMES), speech)
        except ValueError as error:  # a sentence, or a product that is not there
            missing.append({"net": name, "what": title, "missing": str(error)})
    return made, missing


def hidden_of_peak(plain: Variant, numbers: Sequence[int], rounds: int) -> list[float]:
    """Of each round: operations per second of the hidden layers at batch AT, by those of a square product."""
    net: DenseNet = plain.arithmetic
    layers = [layer_stage(i + 1) for i in range(len(net.card.layers))]
    laws = net.costs(AT)
    per_frame = sum(laws[layer].operations["gemm"].per_work[0] for layer in layers)
    recorder, meter = Recorder(), Meter()
    lane = recorder.lane("decode", decode=True)
    meter.register(recorder, dict(net.stages))
    ids = [recorder.stage_id(layer) for layer in layers]
    scores = np.empty((AT, net.n_senones), np.float32)

    def hidden(number: int) -> float:
        x = plain.spliced[number]
        for at in range(0, len(x), AT):
            part = x[at : at + AT]
            meter.begin(at, len(part), lane)
            net.score(part, scores[: len(part)], meter)
        spans = np.frombuffer(lane.take(), SPAN)
        mine = spans[np.isin(spans["stage"], ids)]
        return float(mine["duration_ns"].sum()) / 1e9 / (per_frame * len(x))

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((GEMM_SIZE, GEMM_SIZE), np.float32) for _ in range(2))
    c = np.empty_like(a)

    def square(_: int) -> float:
        return timed(lambda: np.matmul(a, b, out=c))[1] / (2.0 * GEMM_SIZE**3)

    sides = [Side("square product", square), Side("hidden layers", hidden)]
    interleave(sides, numbers, rounds)
    return paired(*sides)


def words_lost(config: Config, items: Sequence[Item], progress: Progress) -> Tree:
    """Word errors of `config` and of exact scoring of `items`, from the cache if they are there."""
    kept = Kept("dnn", items, "experiments/audit.py")
    if (row := kept.get(config)) is not None:
        return dict(row)
    audited = audit(config, items, progress, never)
    row = {
        "words": audited.exact_count.reference_words,
        "wer, fp32": audited.exact_count.rate,
        "wer": audited.count.rate,
        **lost(audited, "points lost"),
        "same best senone": audited.agreement,
    }
    return kept.put(config, row)


def measure(
    name: str, speech: Sequence[Array], rounds: int, progress: Progress
) -> tuple[list[Tree], dict[str, Side], Tree]:
    """Every variant of the net called `name`, in turns: rows, the sides at batch AT, and what is said of the net.
    `speech`: features f32 [frames, 39] of utterances."""
    progress(f"making the variants of {name}", None)
    variants, rows = variants_of(name, speech)
    numbers, frames = range(len(speech)), sum(map(len, speech))
    timed_at: dict[int, dict[str, Side]] = {}
    for batch in BATCHES:
        progress(f"{name}, batches of {batch}", None)
        sides = timed_at[batch] = {title: one.side(batch) for title, one in variants.items()}
        interleave(list(sides.values()), numbers, rounds)
        for side in sides.values():
            faster = median(paired(sides[PLAIN], side))
            row = {"net": name, "batch": batch, "what": side.name, "us_per_frame": median(side.seconds) / frames * 1e6}
            row |= {"onnxruntime's time / its": median(paired(sides[PEER], side)), "fp32 blas's time / its": faster}
            left = {"efficiency": presets.load("dnn").config.dnn.share * faster} if side.name in SPARSE else {}
            rows.append(row | left)
    progress(f"{name}, and the square product", None)
    fp32 = {title: variants[title] for title in FP32 if title in variants}
    apart = [np.abs(variants[PEER].scores(i) - one.scores(i)).max() for i in numbers for one in fp32.values()]
    shares = {title: median(hidden_of_peak(one, numbers, PEAK_ROUNDS * rounds)) for title, one in fp32.items()}
    return rows, timed_at[AT], {DIFFERENCE: float(max(apart)), OF_PEAK: shares}


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> Tree:
    items = build(paths, transcripts).items if paths else human_speech()
    for_words = speech_for_words(paths, transcripts)
    if absent := set(NETS) - set(nets.shipped()):
        raise BadInput(f"The bench compares the nets {', '.join(NETS)}; {', '.join(absent)} is not there.")
    frontend = Mfcc(sphinx.load(sphinx.default_directory()).feat_params)
    frontend.stages(Recorder())
    speech = features_of(frontend, items, MAX_AUDIO_S)
    with threadpool_limits(1):
        speeds = {name: measure(name, speech, max(repeat, MIN_ROUNDS), progress) for name in NETS}
    words = words_lost(assign(presets.load("dnn").config, FORMS[INT8]), for_words, progress)
    _, sides, about = speeds[NETS[0]]
    best = max(about[OF_PEAK], key=lambda title: median(paired(sides[PEER], sides[title])))
    ratios = paired(sides[PEER], sides[best])
    figures = (
        median(ratios),
        about[OF_PEAK][best],
        median(paired(sides[best], sides[INT8])),
        words["points lost"] if words["words"] >= WORDS else None,  # too few words to say
    )
    wanted = {}
    for (name, (limited, limit)), value in zip(WANTED.items(), figures, strict=True):
        holds = None if value is None else value >= limit if limited == "at least" else value <= limit
        wanted[name] = {"wanted": f"{limited} {limit}", "found": value, "holds": holds}
    agreement = {what: {name: of[what] for name, (_, _, of) in speeds.items()} for what in (DIFFERENCE, OF_PEAK)}
    agreement |= {"frames timed": sum(map(len, speech)), "wanted": wanted}
    rows = [row for of, _, _ in speeds.values() for row in of]
    return result(
        f"onnxruntime {version('onnxruntime')}, one thread",
        ratios,
        f"peer time / our time: {NETS[0]}, {best} (the faster product), batches of {AT}, frames already spliced, "
        "median of paired rounds",
        agreement,
        [*rows, {"what": "words, int8 beside fp32", **words}],
    )
