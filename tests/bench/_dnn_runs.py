"""Whole decodes for the bench of nets: what lazy outputs cost, how far the search goes, two frames at once.

The arms decode the same files in turns, recorded, so that times come from the spans of single stages and counts from
the search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from pipelines.audio import word_errors as wer
from pipelines.config import Config, Value, assign, presets
from pipelines.models import nets
from pipelines.models.opening import open_model
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.interleave import turns
from pipelines.run.null_writer import NullWriter
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser, build
from pipelines.scoring import build_scorer
from pipelines.scoring.dnn.dense import ACTIVE_STAGE, OUTPUT_STAGE
from pipelines.scoring.strategy import never
from profiler.arrays import Array
from profiler.clock import FRAME_S
from profiler.recording.drained_lane import DrainedLane
from profiler.spans import RING_RECORDS, WORK_COUNTS, Recorder
from tests.bench._rounds import LANE, Progress

MIXTURES, NET = "gmm", "dnn"
COPIED, HEADS = "dnn-skip", "dnn-multi-frame"
SINGLE = "dnn, block 1"
LAZY: dict[str, tuple[str, dict[str, Value]]] = {
    "active": (NET, {"dnn.senones": "active"}),
    "active-ahead": (NET, {"dnn.senones": "active-ahead"}),
    "active, block 1": (SINGLE, {"dnn.senones": "active", "block": 1}),
}
"""Lazy outputs, and the arm that computes all of them in blocks of the same size."""


class Sums(DrainedLane):
    """Adds its spans up as they leave the ring: an hour at block 1 has four million."""

    __slots__ = ("ns", "work")

    def __init__(self, lane_id: int, name: str, kind: str, decode: bool, capacity: int = RING_RECORDS) -> None:
        super().__init__(lane_id, name, kind, decode, capacity)
        self.ns: Counter[int] = Counter()
        self.work: Counter[tuple[int, int]] = Counter()

    def keep(self, spans: Array) -> None:
        """Add the ns by stage, and what each counted by its place."""
        for stage in np.unique(spans["stage"]).tolist():
            mine = spans[spans["stage"] == stage]
            self.ns[stage] += int(mine["duration_ns"].sum())
            for place in range(WORK_COUNTS):
                self.work[stage, place] += int(mine[f"work{place}"].sum(dtype="i8"))


@dataclass
class Arm:
    """A configuration; ns by stage of each round, and of the last round counts by (stage, name) and words."""

    name: str
    recogniser: Recogniser
    rounds: list[Counter[str]] = field(default_factory=list)
    work: Counter[tuple[str, str]] = field(default_factory=Counter)
    words: dict[str, str] = field(default_factory=dict)
    audio_s: float = 0.0

    def begin(self) -> None:
        self.rounds.append(Counter())
        self.work, self.audio_s = Counter(), 0.0

    def take(self, item: Item) -> None:
        """Decode one file."""
        recorder = Recorder()
        lane = recorder.lane("decode", decode=True, make=Sums)
        decoder = Decoder(self.recogniser, recorder, lane, NullWriter(), Control())
        (utterance,) = decoder.run([item]).utterances
        self.words[item.name] = utterance.hypothesis
        self.audio_s += utterance.audio_s
        lane.drain()
        for stage in recorder.stages:
            self.rounds[-1][stage.name] += lane.ns[stage.id]
            for i, name in enumerate(stage.work[:WORK_COUNTS]):
                self.work[stage.name, name] += lane.work[stage.id, i]
        self.rounds[-1][""] += utterance.wall_ns

    def errors(self, items: Sequence[Item]) -> wer.Count:
        return wer.total((i.reference, self.words[i.name]) for i in items)

    def ns(self, stage: str) -> list[int]:
        return [times[stage] for times in self.rounds]


def configurations() -> dict[str, Config]:
    """The arms that the shipped presets and nets allow."""
    net = presets.load(NET).config
    configs = {MIXTURES: presets.load(MIXTURES).config, NET: net}
    configs[SINGLE] = assign(net, {"block": 1})
    configs |= {name: assign(net, settings) for name, (_, settings) in LAZY.items()}
    for name in (one for one in (COPIED, HEADS) if one in presets.names()):
        config = presets.load(name).config
        if config.dnn.net in nets.shipped():
            configs[name] = config
    return configs


def made(progress: Progress) -> list[Arm]:
    """All arms, with front end, graph and search in common."""
    arms: list[Arm] = []
    for name, config in configurations().items():
        progress(f"making {name}", None)
        if not arms:
            arms.append(Arm(name, build(config, Recorder(), LANE, progress, never)))
            continue
        first = arms[0].recogniser
        scorer = build_scorer(config, open_model(config, progress, never))
        scorer.warm_up()
        arms.append(Arm(name, Recogniser(config, first.frontend, scorer, first.search)))
    return arms


def decoded(items: Sequence[Item], rounds: int, progress: Progress) -> dict[str, Arm]:
    """All arms after decoding `items` in turns, the first one changing; one round more is not counted."""
    arms = made(progress)
    for turn, place, number in turns(len(arms), len(items), range(-1, rounds)):
        progress("decoding, in turns", max(0, turn) / rounds)
        if place == 0:
            arms[number].begin()
        arms[number].take(items[place])
    for arm in arms:
        del arm.rounds[0]
    return {arm.name: arm for arm in arms}


def lazy_rows(arms: dict[str, Arm]) -> list[dict[str, Any]]:
    """Share of the last layer's time that computing only active outputs saves, and of what it could save."""
    every_senone = arms[NET].work[OUTPUT_STAGE, "senones"]
    active = arms["active"].work[ACTIVE_STAGE, "senones"] / every_senone
    rows = []
    for name, (dense, _) in LAZY.items():
        arm = arms[name]
        pairs = zip(arms[dense].ns(OUTPUT_STAGE), arm.ns(ACTIVE_STAGE), strict=True)
        saved = median(every / some for every, some in pairs)
        rows.append(
            {
                "what": f"outputs {name}",
                "share of the senones asked for": active,
                "share computed": arm.work[ACTIVE_STAGE, "senones"] / every_senone,
                "time of all outputs / time": saved,
                "efficiency": active * saved,
            }
        )
    return rows


def run_rows(arms: dict[str, Arm], items: Sequence[Item]) -> list[dict[str, Any]]:
    """Each arm's real-time factor, words and search."""
    rows = []
    for name, arm in arms.items():
        errors, frames = arm.errors(items), arm.audio_s / FRAME_S
        rows.append(
            {
                "what": f"whole run, {name}",
                "rtf": median(arm.ns("")) / 1e9 / arm.audio_s,
                "wer": errors.rate,
                "errors": errors.errors,
                "words": errors.reference_words,
                "tokens_per_frame": tokens(arm) / frames,
                "arcs_per_frame": arm.work["search.emit", "arcs"] / frames,
            }
        )
    return rows


def tokens(arm: Arm) -> int:
    return arm.work["search.emit", "tokens"]
