"""Lazy outputs: how many senones the search asks for in a frame, and what computing only those brings (note 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config import Value
from pipelines.config.options import setting
from pipelines.labs import figures
from pipelines.labs._parameters import NetName, Rounds, Vocabulary
from pipelines.labs.chart import Axis, Bars, Chart, Mark, Steps
from pipelines.labs.declaration import Lab, Measured, Parameters, Said
from pipelines.labs.figures import ratio, value
from pipelines.labs.texts import SHARE, percent, told
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, all_of, at_least, at_most
from profiler.analysis.comparison.statistics import Ratio, bootstrap_interval

if TYPE_CHECKING:
    from pipelines.config import Config
    from pipelines.labs.desk import Desk
    from pipelines.scoring import Prepared

LEAST_SAID, MOST_SAID = 0.25, 0.35
"""The note: 25–35 % of the outputs are used in a frame."""

BINS: Final = 20
BLOCKS: Final = (1, 16)
WHOLE: Final = "all outputs"
WAYS: Final[dict[str, str]] = {
    WHOLE: "all",
    "asked for": "active",
    "asked for, frames ahead": "active-ahead",
}
"""Ways of computing the last layer: the value of `dnn.senones`."""


class Given(Parameters, frozen=True, kw_only=True):
    """The net and the speech."""

    net: NetName = "base"
    vocabulary: Vocabulary = 5000
    speech_s: Annotated[
        float,
        setting(
            "Speech", "Speech that is decoded to see what is asked for.", unit="s", ge=0.1, le=600.0
        ),
    ] = 60.0
    frames: Annotated[
        int, setting("Frames", "Frames of it that a turn scores.", ge=16, le=10000)
    ] = 48
    seconds: Rounds = 12.0


class Found(Measured, frozen=True, kw_only=True):
    """Senones asked for by frame, of `outputs`, utterance by utterance; seconds by "way, blocks of N"."""

    outputs: int
    asked: list[list[int]]
    frames: int
    seconds: dict[str, list[float]]


def measure(given: Given, desk: Desk) -> Found:
    """Decode lazily and write down what is asked for, then score that again and again, in blocks of one and of 16."""
    from pipelines.config import Config, assign
    from pipelines.experiments.scoring_replay import Replay, replay, scoring_s, spoken
    from pipelines.run.recogniser import build
    from profiler.spans import NullLane, Recorder

    chosen: dict[str, Value] = {"model": "dnn", "dnn.net": given.net, "dnn.senones": "active"}
    base = assign(Config(), chosen | {"graph.vocabulary": given.vocabulary})
    recogniser = build(base, Recorder(), NullLane(), desk.progress, desk.stopping)
    recogniser.register(Recorder())
    replays = []
    for item, sound in spoken(desk.speech(), given.speech_s):
        desk.check()
        desk.progress(f"decoding {item.name}")
        features = recogniser.frontend.features(sound.samples, 0, NullLane())
        replays.append(replay(recogniser, features))
    first, beyond = replays[0], sum(recogniser.scorer.context)
    begin = max(0, (len(first.active) - given.frames) // 2)
    part = slice(begin, begin + given.frames)
    some = Replay(first.features[begin : begin + given.frames + beyond], first.active[part])
    scorer, arms = recogniser.scorer, {}
    for block in BLOCKS:
        for way, senones in WAYS.items():
            settings: dict[str, Value] = {"block": block, "dnn.senones": senones}
            config = assign(base, settings)
            prepared = scorer.make_ready(config, desk.progress, desk.stopping)

            def score(config: Config = config, prepared: Prepared | None = prepared) -> None:
                scorer.configure(config, prepared)
                scoring_s(scorer, config.block, some)

            arms[arm(way, block)] = score
    seconds = desk.turns(
        arms, seconds=given.seconds, inner=dict.fromkeys(arms, 1), what="outputs in turns"
    )
    asked = [[len(a) for a in one.active if a is not None] for one in replays]
    return Found(outputs=scorer.n_senones, asked=asked, frames=len(some.active), seconds=seconds)


def arm(way: str, block: int) -> str:
    """The name of an arm."""
    return f"{way}, blocks of {block}"


def share_asked(asked: Sequence[Sequence[int]], outputs: int) -> Ratio:
    """Mean share of the outputs that is asked for, with its interval by a bootstrap over utterances."""
    rows = np.array([(sum(one), len(one) * outputs) for one in asked], np.float64)

    def share(some: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> float:
        return float(some[:, 0].sum() / some[:, 1].sum())

    if len(rows) < 2:
        return Ratio(share(rows))
    return Ratio(share(rows), *bootstrap_interval(rows, share))


def judge(found: Found) -> Finding:
    """At most 35 % are asked for, and the best lazy way takes no longer than the best one that computes all."""
    share = share_asked(found.asked, found.outputs)
    per_way = {
        way: min((arm(way, b) for b in BLOCKS), key=lambda n: figures.seconds(found.seconds[n]))
        for way in WAYS
    }
    lazy = min(
        (name for way, name in per_way.items() if way != WHOLE),
        key=lambda n: figures.seconds(found.seconds[n]),
    )
    best = ratio(found.seconds[per_way[WHOLE]], found.seconds[lazy])
    alone = ratio(found.seconds[arm(WHOLE, 1)], found.seconds[arm("asked for", 1)])
    together = ratio(
        found.seconds[arm(WHOLE, BLOCKS[-1])], found.seconds[arm("asked for", BLOCKS[-1])]
    )
    verdict = all_of(at_most(share, MOST_SAID), at_least(best, 1.0))
    why = (
        f"The search asks for {percent(share)} of the outputs. Computing only those is {told(alone)} times as "
        f"fast frame by frame, and {told(together)} times in blocks of {BLOCKS[-1]}, where a list of rows "
        f"replaces one product; the best of all outputs takes {told(best)} times the best of the lazy ways."
    )
    fractions = np.concatenate([np.asarray(one) for one in found.asked]) / found.outputs
    numbers: dict[str, float | None] = {
        "asked_share": share.ratio,
        "asked_share_median": float(np.median(fractions)),
        "asked_share_p90": float(np.percentile(fractions, 90)),
        "frames_within_25_to_35_share": float(
            ((fractions >= LEAST_SAID) & (fractions <= MOST_SAID)).mean()
        ),
        "best_all_over_best_lazy": value(best),
        "gain_frame_by_frame": value(alone),
        f"gain_in_blocks_of_{BLOCKS[-1]}": value(together),
    }
    for name, times in found.seconds.items():
        key = name.replace(", ", "_").replace(" ", "_")
        numbers[f"{key}_ms_per_frame"] = 1e3 * figures.seconds(times) / found.frames
    return Finding(verdict, why, numbers)


def picture(found: Found) -> Chart:
    """The distribution of what is asked for, with the note's range; beside it the times."""
    fractions = np.concatenate([np.asarray(one) for one in found.asked]) / found.outputs
    counts, edges = np.histogram(fractions, bins=BINS, range=(0.0, 1.0))
    share = 100 * counts / counts.sum()
    steps = Steps("frames", tuple((100 * edges).tolist()), (*share.tolist(), 0.0))
    bars = []
    for way in WAYS:
        rows = [
            figures.between(found.seconds[arm(way, b)], lambda s: 1e3 * s / found.frames)
            for b in BLOCKS
        ]
        bars.append(Bars(way, *figures.columns(rows)))
    return Chart(
        Axis("outputs that the search asks for", "%", low=0.0, high=100.0),
        Axis("frames", "%", low=0.0),
        (steps, Mark("claimed: 25–35 %", 100 * LEAST_SAID, on="x", until=100 * MOST_SAID)),
        beside=(
            Chart(
                Axis("frames scored together", categories=tuple(str(b) for b in BLOCKS)),
                Axis("time per frame", "ms", low=0.0),
                tuple(bars),
            ),
        ),
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
    parameters=Given(),
    stored=Found,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: let the search say which outputs it needs.",
        FAILS: "So: score all outputs in batches; lazy evaluation pays frame by frame, where no batch is allowed.",
        UNDECIDED: "So: decode more speech (--audio, --set speech_s=120).",
    },
    said=(
        Said("outputs used in a frame, at most", MOST_SAID, SHARE, "asked_share"),
        Said(
            "the most that can be saved, as a speed-up (55 % of the weights, 30 % asked)",
            1.63,
            "×",
            "gain_frame_by_frame",
        ),
    ),
)
