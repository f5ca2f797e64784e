"""Low rank: size, time and error of a net whose layers are factored, before and after it is trained on (note 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config import Config, Value, assign
from pipelines.labs import _scoring
from pipelines.labs._scoring import Decoded, NetResult, best_change, percent_wrong, points, word_change
from pipelines.labs.chart import Axis, Bars, Chart, Line, Mark
from pipelines.labs.declaration import InBlocks, Lab, NetName, Parameters, PublishedValue, Seconds, Words, setting
from pipelines.labs.desk import Desk, computing_on
from pipelines.labs.figures import SHARE, ci, percent, value
from pipelines.labs.sweep import milliseconds
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, Verdict, all_of, at_least, at_most
from profiler.arrays import Array

if TYPE_CHECKING:
    from pipelines.models.nets import Net

SHARES: Final = (0.2, 0.3, 0.5)
JUDGED: Final = 0.3

NOTHING: Final = 0.02
"""Practically nothing: less than two points, of word error rate as what the project allows its own savings, and of
frames that agree with the better net: two hundred words ship, too few to tell so little."""

WHOLE: Final = "whole"
RETRAINED: Final = "retrained"


class Params(Parameters, frozen=True, kw_only=True):
    net: NetName = "base"
    retrained: Annotated[str, setting("Retrained net", "The net that was factored and then trained on.")] = "low-rank"
    reference: Annotated[str, setting("Better net", "The net whose best senones the others are held against.")] = (
        "large"
    )
    speech_s: Words = 60.0
    frames: InBlocks = 48
    copies: Annotated[int, setting("Copies", "Of the speech, changed at random.", ge=0, le=100)] = 5
    seconds: Seconds = 8.0


class LowRankResult(NetResult, frozen=True, kw_only=True):
    """By net (WHOLE, "0.3" and so on, RETRAINED), with its `weights`; best senones are compared with the better net's.

    `changed`: WHOLE and RETRAINED on changed copies too. `layers`: frames that keep their best if it alone is factored.
    """

    changed: dict[str, Decoded]
    layers: list[float]

    def size(self, name: str) -> float:
        weights = self.by_variant["weights"]
        return weights[name] / weights[WHOLE]


def measure(params: Params, desk: Desk) -> LowRankResult:
    from pipelines.models import nets, shrink
    from profiler.machine.describe import usable_cores

    net = nets.load(nets.find(params.net))
    better: dict[str, Value] = {"model": "dnn", "dnn.net": params.reference}
    settings: dict[str, dict[str, Value]] = {WHOLE: {"dnn.net": params.net}}
    for share in SHARES:
        settings[f"{share:g}"] = {"dnn.net": params.net, "dnn.shrink": "low-rank", "dnn.share": share}
    settings[RETRAINED] = {"dnn.net": params.retrained}
    with desk.part(0.0, 0.5):
        found = _scoring.decoded(better, settings, params.speech_s, desk)
    del found[""]
    # Nothing is timed here.
    with desk.part(0.5, 0.8), computing_on(usable_cores() or 1):
        changed = of_changed(params, desk)
    desk.progress("one layer at a time", 0.8)
    config = assign(Config(), {"model": "dnn", "dnn.net": params.net})
    scoring = _scoring.Scoring(config, desk, frames=max(300, params.frames))
    layers = kept_by_layer(net, scoring.features[0])
    with desk.part(0.8, 1.0):
        timings = scoring.sweep(settings, "nets in turns", params.frames).run(desk, params.seconds)
    every = {WHOLE: net, RETRAINED: nets.load(nets.find(params.retrained))}
    every |= {f"{share:g}": shrink.low_rank(net, share) for share in SHARES}
    weights = {
        name: float(sum(values.size for key, values in each.tensors.items() if key.endswith(".weight")))
        for name, each in every.items()
    }
    return LowRankResult(
        timings=timings, by_variant={"weights": weights}, decoded=found, changed=changed, layers=layers
    )


def of_changed(params: Params, desk: Desk) -> dict[str, Decoded]:
    """Frames with the better net's best senone, of speech and its copies: other speeds, tracts, noise, levels."""
    from pipelines.experiments.scoring_replay import spoken
    from pipelines.models import nets, sphinx
    from pipelines.training.corpus import data
    from pipelines.training.corpus.data import Maker, Source

    maker = Maker(sphinx.load(sphinx.default_directory()).feat_params)
    names = {WHOLE: params.net, RETRAINED: params.retrained}
    made = {name: nets.load(nets.find(net)) for name, net in names.items()}
    reference = nets.load(nets.find(params.reference))
    speech = list(spoken(desk.speech(), params.speech_s))
    frames = [0] * len(speech)
    same = {name: [0] * len(speech) for name in names}
    for copy in range(params.copies + 1):
        for place, (item, sound) in enumerate(speech):
            desk.progress("changed copies of the speech", copy / (params.copies + 1))
            rng = np.random.default_rng([copy, place])
            change = data.draw(rng) if copy else data.Change()
            source = Source(file=str(item.path), span_s=(0.0, sound.duration_s))
            features = maker.frames(source, change, rng).heard.astype(np.float32)
            right = best(reference, features)
            frames[place] += len(right)
            for name, net in made.items():
                same[name][place] += int((best(net, features) == right).sum())
    silent = [0] * len(speech)
    return {
        name: Decoded(frames=frames, same_best=counts, words=silent, errors=silent) for name, counts in same.items()
    }


def best(net: Net, features: Array) -> Array:
    """The best senone of each frame, i64 [n], of features f32 [n, 39]."""
    from pipelines.scoring.blocks import Meter
    from pipelines.scoring.dnn import DenseNet
    from pipelines.scoring.layered import with_context

    dense = DenseNet(net, 1, len(features), "blas")
    spliced = dense.splice(with_context(features, dense.context), Meter())
    scores = np.empty((len(features), net.card.senones), np.float32)
    dense.score(spliced, scores, Meter())
    found: Array = scores.argmax(axis=1)
    return found


def kept_by_layer(net: Net, features: Array) -> list[float]:
    """Share of frames with the same best senone when one layer keeps JUDGED of its weights, layer by layer."""
    from pipelines.models import shrink

    exact = best(net, features)
    stretches = 1 + sum(layer.relu for layer in net.card.layers)
    factored = (shrink.low_rank(net, JUDGED, only=i) for i in range(stretches))
    return [float((best(some, features) == exact).mean()) for some in factored]


def judge(result: LowRankResult) -> Finding:
    whole = result.decoded[WHOLE]
    lost = word_change(result.decoded[RETRAINED], whole)
    before = word_change(result.decoded[f"{JUDGED:g}"], whole)
    gain = result.timings.ratio(WHOLE, RETRAINED)
    frames = best_change(result.changed[RETRAINED], result.changed[WHOLE])
    words: Verdict = FAILS if at_most(lost, NOTHING) == FAILS else HOLDS
    lowest, highest = result.layers[0], result.layers[-1]
    why = (
        f"The retrained net has {percent(result.size(RETRAINED))} of the weights and is {ci(gain)} times as fast. "
        f"The frames in which it agrees with a better net change by {points(frames)}, its word error rate by "
        f"{points(lost)}; not trained on, by {points(before)}. Factored alone, the lowest layer keeps "
        f"{percent(lowest)} of the best senones, the output layer {percent(highest)}."
    )
    numbers: dict[str, float | None] = {
        "retrained_size_share": result.size(RETRAINED),
        "retrained_gain": value(gain),
        "retrained_same_best_change": frames.ratio,
        "retrained_wer_change": value(lost),
        "untrained_wer_change_at_30_percent": value(before),
        "lowest_layer_same_best": lowest,
        "output_layer_same_best": highest,
    }
    for name, counts in result.decoded.items():
        key = name.replace(".", "_")
        numbers[f"{key}_wer"] = counts.wer
        numbers[f"{key}_same_best_as_better_net"] = counts.agreement
        numbers[f"{key}_weights"] = result.by_variant["weights"][name]
        numbers[f"{key}_ms_per_frame"] = 1e3 * result.timings.per_unit().time(name)
    verdict = all_of(at_least(frames, -NOTHING), at_least(gain, 1.0), words)
    return Finding(verdict, why, numbers)


def picture(result: LowRankResult) -> Chart:

    def both(name: str, nets: list[str], joined: bool = True) -> tuple[Line, Line]:
        sizes = {net: 100 * result.size(net) for net in nets}
        wrong = percent_wrong(result.decoded[net] for net in nets)
        return (
            Line(name, tuple(sizes.values()), wrong, joined=joined),
            result.timings.per_unit().across(name, sizes, milliseconds, joined),
        )

    factored = both("factored", [*(f"{share:g}" for share in SHARES), WHOLE])
    retrained = both(RETRAINED, [RETRAINED], joined=False)
    hidden = (f"hidden {i}" for i in range(1, len(result.layers) - 1))
    places = ("input", *hidden, "output")[: len(result.layers)]
    weights = Axis("weights kept", "%", low=0.0)
    by_layer = Chart(
        Axis("the one layer that is factored", categories=places),
        Axis("frames with the same best senone", "%", low=0.0, high=100.0),
        (Bars("kept", tuple(100 * v for v in result.layers)),),
        title=f"one layer at {percent(JUDGED)}",
    )
    return Chart(
        weights,
        Axis("word error rate", "%", low=0.0),
        (factored[0], retrained[0], Mark("claimed: 30 %", 100 * JUDGED, on="x")),
        beside=(Chart(weights, Axis("time per frame", "ms", low=0.0), (factored[1], retrained[1])), by_layer),
    )


LAB: Final = Lab(
    claim="Keeping 30 % of a net's size by low rank costs practically nothing, once it is trained on.",
    source="note 1 (Xue, Li & Gong 2013)",
    group="scoring",
    measured="A shipped net factored by SVD at several shares of its weights, and the shipped net that was "
    "retrained after that: word errors on real speech, agreement with the best senones of a better net (also on "
    "copies at other speeds, by other voices and in noise, as there is little speech), time of scoring, and "
    "which single layer loses most. Training is the subject of another lab.",
    bound="It holds if the retrained net is faster and loses less than two points of its agreement with a better "
    "net, frame by frame. Words can only speak against it, as there are too few. The claim says practically "
    "nothing, Xue 2013 no loss; two points are ours, the limit in words for the project's own speed-ups.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: factor and train on; it is less to read and less to compute, without any new kernel.",
        FAILS: "So: here low rank costs words or saves no time; try 8 bit or a smaller net first.",
        UNDECIDED: "So: decode more speech that is labelled (--audio, --transcripts).",
    },
    published=(PublishedValue("size that is kept", JUDGED, SHARE, "retrained_size_share"),),
)
