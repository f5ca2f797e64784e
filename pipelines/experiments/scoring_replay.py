"""Scoring without front end and search, on the senones that the scorer's own decode requested."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.audio import loading as audio
from pipelines.audio.loading import Audio
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser
from pipelines.scoring import Scorer, with_context
from profiler.arrays import Array
from profiler.spans import NullLane

_LANE = NullLane()


@dataclass(frozen=True)
class Replay:
    """A scorer's input for an utterance: features with context, and per frame the active senones i64 (None: all)."""

    features: Array
    active: Sequence[Array | None]


def spoken(items: Iterable[Item], max_s: float) -> Iterator[tuple[Item, Audio]]:
    """Yield the first of `items` with their sound, up to about `max_s` seconds."""
    left = max_s
    first = True
    for item in items:
        sound = audio.load(item.path, item.part)
        if not first and sound.duration_s > left:
            continue
        left -= sound.duration_s
        first = False
        yield item, sound


def replay(recogniser: Recogniser, features: Array) -> Replay:
    """Record which senones the search requests, given this scorer's scores of `features` f32 [frames, dim]."""
    scorer, search = recogniser.scorer, recogniser.search
    padded = with_context(features, scorer.context)
    if not scorer.lazy:
        return Replay(padded, [None] * len(features))
    scorer.reset()
    search.start(0)
    active: list[Array | None] = []
    for at, part in _blocks(scorer, recogniser.config.block, padded):
        state = scorer.prepare(part, at, _LANE)
        for t in range(len(part) - sum(scorer.context)):
            needed = np.array(search.active_senones())
            active.append(needed)
            search.advance(scorer.frame(state, t, needed)[None], at + t)
    return Replay(padded, active)


def scoring_s(scorer: Scorer, block: int, speech: Replay, scores: Array | None = None) -> float:
    """Seconds of scoring alone in blocks of `block` frames, with filling in `scores` f32 [frames, senones]."""
    scorer.reset()
    start = time.perf_counter()
    for at, part in _blocks(scorer, block, speech.features):
        if not scorer.lazy:
            found = scorer.score(part, at, _LANE)
            if scores is not None:
                scores[at : at + len(found)] = found
            continue
        state = scorer.prepare(part, at, _LANE)
        for t in range(len(part) - sum(scorer.context)):
            active = speech.active[at + t]
            row = scorer.frame(state, t, active)
            if scores is not None:
                scores[at + t, active] = row[active]
    return time.perf_counter() - start


def _blocks(scorer: Scorer, block: int, padded: Array) -> Iterator[tuple[int, Array]]:
    beyond = sum(scorer.context)
    for at in range(0, len(padded) - beyond, block):
        yield at, padded[at : at + block + beyond]
