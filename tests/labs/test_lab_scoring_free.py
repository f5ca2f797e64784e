"""Lab `scoring-free`: free decodes find the same words as whole ones, its verdict on planted times."""

from __future__ import annotations

import pytest

from pipelines.audio import loading as audio
from pipelines.config import Config, assign
from pipelines.labs import scoring_free
from pipelines.labs.scoring_free import (
    FREE,
    JUDGED,
    LAB,
    MODELS,
    RATE,
    SCORING,
    SLOW,
    WHOLE,
    Params,
    variant,
)
from pipelines.labs.sweep import SweepResult
from pipelines.run.recogniser import build
from pipelines.scoring.strategy import never, quietly
from profiler.spans import NullLane, Recorder
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, at_size


def test_a_decode_with_scores_that_are_there_finds_the_same_words(bundled_speech):
    config = assign(Config(), {"graph.vocabulary": 60})
    recorder = Recorder()
    recogniser = build(config, recorder, NullLane(), quietly, never)
    recogniser.register(recorder)
    samples = audio.load(bundled_speech / "08-kal16-short.flac").samples
    calls = scoring_free.decodes(recogniser, samples)
    words = calls[WHOLE]()
    assert words
    assert calls[SCORING]() > 0
    assert calls[FREE]() == words


def planted(left=0.7, slow=0.1, noise=NOISE):
    """Of a second of speech: the share that is left without scoring, in the shipped recogniser and the slow one."""
    ms = {}
    for name in MODELS:
        share = slow if name == SLOW else left
        parts = {WHOLE: 10.0, FREE: 10.0 * share, SCORING: 10.0 * (1 - share)}
        ms |= {variant(name, part): t for part, t in parts.items()}
    return SweepResult(timings=at_size(RATE, ms, noise))


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"left": 0.2}],
    noisy=[{"left": 0.48, "noise": LOUD}],
    figures={
        "tied_mixtures_left_share": about(0.7),
        "tied_mixtures_left_share_predicted": pytest.approx(0.7, abs=0.01),
        "continuous_frame_by_frame_speed_up_at_most": about(10),
        "net_rtf": about(0.01),
    },
    memory=(Params(speech_s=0.1), Params(speech_s=600.0)),
)


def test_the_picture_adds_up_to_the_whole():
    chart = LAB.picture(planted())
    assert JUDGED in chart.x.categories
    for parts in zip(*(values for _, values in chart.layers[0].parts), strict=True):
        assert sum(parts) == pytest.approx(100.0)
