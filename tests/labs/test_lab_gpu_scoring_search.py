"""Lab `gpu-scoring-search`: its verdict on planted times with a device, and what it says without one."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.config import Config, assign
from pipelines.labs import gpu_scoring_search
from pipelines.labs.gpu_scoring_search import LAB, STAND_IN, THREADS, Params
from pipelines.labs.sweep import SweepResult
from pipelines.run.recogniser import build
from pipelines.scoring.strategy import never, quietly
from profiler.spans import NullLane, Recorder
from tests.labs.contract import Contract, NoDevice, about
from tests.labs.planted import LOUD, NOISE, at_size


def planted(scoring=10.0, search=0.8, device="cuda", noise=NOISE):
    """How many times as fast each part is on the device."""
    ms = {
        "scoring, processor": 10.0,
        "scoring, device": 10.0 / scoring,
        f"scoring, {THREADS} threads": 5.5,
        "search, processor": 4.0,
        "search, device": 4.0 / search,
    }
    return SweepResult(
        timings=at_size(10, ms, noise),
        counts={"senones": 5126, "asked": 1800.0},
        texts={"reason": "" if device else "torch was built without CUDA"},
        device=device,
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"scoring": 1.2}, {"search": 8.0}],
    noisy=[{"scoring": 2.05, "noise": LOUD}],
    impossible=[{"device": ""}],
    figures={"scoring_gain": about(10.0), "search_gain": about(0.8)},
    memory=(Params(frames=1), Params(frames=10_000)),
)


def test_without_a_device_it_says_so_and_gives_the_processors_half():
    found = LAB.judge(planted(device="", search=0.1))
    assert "torch was built without CUDA" in found.why
    assert found.figures["scoring_gain"] is None
    assert found.figures["scoring_threads_gain"] == pytest.approx(10 / 5.5, rel=0.02)
    assert found.figures["search_stand_in_gain"] == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize("device", ["cuda", ""])
def test_the_picture_has_both_parts_and_places(device):
    chart = LAB.picture(planted(device=device))
    assert chart.x.categories == ("scoring", "search")
    assert [bars.name for bars in chart.layers] == [
        "processor",
        device or "device code on the processor",
    ]


def test_a_small_run_takes_the_processors_half(bundled_speech):
    desk = NoDevice(audio=[str(bundled_speech / "08-kal16-short.flac")])
    found = LAB.measure(Params(vocabulary=60, frames=12, block=8, seconds=0.0), desk)
    assert found.device == ""
    assert found.texts["reason"]
    assert found.timings.cells() == [(variant, 12) for variant in found.timings.variants]
    assert set(found.timings.variants) == set(planted().timings.variants)
    assert 0 < found.counts["asked"] <= found.counts["senones"]
    assert LAB.judge(found).verdict == "cannot be tried here"
    assert LAB.picture(found).beside


def test_both_ways_of_searching_find_the_words_that_the_scores_say():
    """Scores that make one senone the best at random, frame by frame: the same words on both sides."""
    words = []
    for settings in ({}, {"search.device": STAND_IN}):
        config = assign(Config(), {"graph.vocabulary": 60, "block": 8, **settings})
        recorder = Recorder()
        recogniser = build(config, recorder, NullLane(), quietly, never)
        recogniser.register(recorder)
        draw = np.random.default_rng(3)
        scores = draw.normal(0, 4, (40, recogniser.scorer.n_senones)).astype(np.float32)
        words.append(gpu_scoring_search.searching(recogniser, scores)())
    assert words[0] == words[1]
    assert words[0]
