"""Lazy outputs: how many senones the search asks for in a frame, and what computing only those brings (note 1)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config import Config, Value, assign
from pipelines.labs.chart import Axis, Chart, Line, Mark
from pipelines.labs.declaration import Lab, NetName, Parameters, PublishedValue, Seconds, Vocabulary, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import SHARE, ci, percent, quotient, value
from pipelines.labs.sweep import Sweep, SweepResult, Timings, Work, milliseconds, once
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, all_of, at_least, at_most
from profiler.arrays import F64
from profiler.spans import NullLane, Recorder

if TYPE_CHECKING:
    from pipelines.config import Config
    from pipelines.scoring import Prepared

LEAST_SAID, MOST_SAID = 0.25, 0.35  # The note: 25–35 % of the outputs are used in a frame
BINS: Final = 20
BLOCKS: Final = (1, 16)
WHOLE: Final = "all outputs"
ASKED, AHEAD = "asked for", "asked for, frames ahead"
VARIANTS: Final[dict[str, str]] = {WHOLE: "all", ASKED: "active", AHEAD: "active-ahead"}
"""Ways of computing the last layer: the value of `dnn.senones`."""


class Params(Parameters, frozen=True, kw_only=True):
    net: NetName = "base"
    vocabulary: Vocabulary = 5000
    speech_s: Annotated[
        float, setting("Speech", "Speech that is decoded to see what is asked for.", unit="s", ge=0.1, le=600.0)
    ] = 60.0
    frames: Annotated[int, setting("Frames", "Frames of it that a turn scores.", ge=16, le=10000)] = 48
    seconds: Seconds = 12.0


class LazyOutputsResult(SweepResult, frozen=True, kw_only=True):
    """`asked`: requested senones by frame, of `outputs`, utterance by utterance; a call scores `frames`, its size is
    the frames that are scored together."""

    outputs: int
    asked: list[list[int]]
    frames: int

    @property
    def fractions(self) -> F64:
        """The share of the outputs that is requested, frame by frame [frames]."""
        return np.concatenate([np.asarray(one, np.float64) for one in self.asked]) / self.outputs

    @property
    def per_frame(self) -> Timings:
        return self.timings.per_unit(lambda block: self.frames)


def measure(params: Params, desk: Desk) -> LazyOutputsResult:
    from pipelines.experiments.scoring_replay import Replay, replay, scoring_s, spoken
    from pipelines.run.recogniser import build

    chosen: dict[str, Value] = {"model": "dnn", "dnn.net": params.net, "dnn.senones": "active"}
    base = assign(Config(), chosen | {"graph.vocabulary": params.vocabulary})
    recogniser = build(base, Recorder(), NullLane(), desk.progress, desk.stopping)
    recogniser.register(Recorder())
    replays = []
    for item, sound in spoken(desk.speech(), params.speech_s):
        desk.progress(f"decoding {item.name}", None)
        replays.append(replay(recogniser, recogniser.frontend.features(sound.samples, 0, NullLane())))
    scorer, first = recogniser.scorer, replays[0]
    begin, beyond = max(0, (len(first.active) - params.frames) // 2), sum(scorer.context)
    part = slice(begin, begin + params.frames)
    some = Replay(first.features[begin : begin + params.frames + beyond], first.active[part])

    def score(config: Config, prepared: Prepared) -> None:
        scorer.configure(config, prepared)
        scoring_s(scorer, config.block, some)

    def variants(block: int) -> dict[str, Work]:
        made: dict[str, Work] = {}
        for variant, senones in VARIANTS.items():
            config = assign(base, {"block": block, "dnn.senones": senones})
            made[variant] = partial(score, config, scorer.make_ready(config, desk.progress, desk.stopping))
        return made

    label = "{variant}, blocks of {size}"
    sweep = Sweep(variants, BLOCKS, "outputs in turns", label=label, together=True, calls=once)
    return LazyOutputsResult(
        timings=sweep.run(desk, params.seconds),
        outputs=scorer.n_senones,
        asked=[[len(a) for a in one.active if a is not None] for one in replays],
        frames=len(some.active),
    )


def judge(result: LazyOutputsResult) -> Finding:
    share = quotient([sum(one) for one in result.asked], [len(one) * result.outputs for one in result.asked])
    timings, together = result.timings, BLOCKS[-1]
    whole = timings.fastest(timings.cells([WHOLE]))
    lazy = timings.fastest(timings.cells([ASKED, AHEAD]))
    best = timings.ratio(WHOLE, lazy[0], whole[1], lazy[1])
    gains = {block: timings.ratio(WHOLE, ASKED, block) for block in BLOCKS}
    why = (
        f"The search asks for {percent(share)} of the outputs. Computing only those is {ci(gains[1])} times as "
        f"fast frame by frame, and {ci(gains[together])} times in blocks of {together}, where a list of rows "
        f"replaces one product; the best of all outputs takes {ci(best)} times the best of the lazy ways."
    )
    fractions = result.fractions
    numbers: dict[str, float | None] = {
        "asked_share": share.ratio,
        "asked_share_median": float(np.median(fractions)),
        "asked_share_p90": float(np.percentile(fractions, 90)),
        "frames_within_25_to_35_share": float(((fractions >= LEAST_SAID) & (fractions <= MOST_SAID)).mean()),
        "best_all_over_best_lazy": value(best),
        "gain_frame_by_frame": value(gains[1]),
        f"gain_in_blocks_of_{together}": value(gains[together]),
    }
    numbers |= result.per_frame.table("{variant}_blocks_of_{size}_ms_per_frame", milliseconds)
    return Finding(all_of(at_most(share, MOST_SAID), at_least(best, 1.0)), why, numbers)


def picture(result: LazyOutputsResult) -> Chart:
    counts, edges = np.histogram(result.fractions, bins=BINS, range=(0.0, 1.0))
    share = 100 * counts / counts.sum()
    steps = Line("frames", tuple((100 * edges).tolist()), (*share.tolist(), 0.0), steps=True)
    per_frame = result.per_frame
    bars = tuple(per_frame.bars(v, per_frame.cells([v]), milliseconds) for v in VARIANTS)
    together = Axis("frames scored together", categories=tuple(map(str, BLOCKS)))
    return Chart(
        Axis("outputs that the search asks for", "%", low=0.0, high=100.0),
        Axis("frames", "%", low=0.0),
        (steps, Mark("claimed: 25–35 %", 100 * LEAST_SAID, on="x", until=100 * MOST_SAID)),
        beside=(Chart(together, Axis("time per frame", "ms", low=0.0), bars),),
    )


LAB: Final = Lab(
    claim="A search uses only 25 to 35 % of a net's outputs in a frame, so the last layer is computed on demand.",
    source="note 1 (Vanhoucke, Senior & Mao 2011)",
    group="scoring",
    measured="The states that a real decode asks for, frame by frame, and the time of scoring only those "
    "compared with all, for the whole net, frame by frame and in blocks of 16. The gather counts. With 55 % of "
    "the weights in the last layer and 30 % of the outputs used, at most 39 % of the work can be saved.",
    bound="Both parts must hold: at most 35 % of the outputs are used, the claim's number, and the best lazy "
    "variant takes no longer than the best variant that computes all outputs.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: let the search say which outputs it needs.",
        FAILS: "So: score all outputs in batches; lazy evaluation pays frame by frame, where no batch is allowed.",
        UNDECIDED: "So: decode more speech (--audio, --set speech_s=120).",
    },
    published=(
        PublishedValue("outputs used in a frame, at most", MOST_SAID, SHARE, "asked_share"),
        PublishedValue(
            "the most that can be saved (55 % of the weights, 30 % asked)", 1.63, "×", "gain_frame_by_frame"
        ),
    ),
)
