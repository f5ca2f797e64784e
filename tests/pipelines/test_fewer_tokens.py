"""Counts of a search with fewer tokens at most: against simulation, by hand, and against a search that has fewer."""

from __future__ import annotations

import numpy as np
import pytest
from search_graphs import settings as search_settings
from search_graphs import smooth_scores, thousand_words

from pipelines.config import Config, assign
from pipelines.experiments import fewer_tokens, predict
from pipelines.experiments.fewer_tokens import Searched, fewer, unknown
from pipelines.search.viterbi import Viterbi
from profiler.analysis.whatif import Prediction
from profiler.machine.roofs.table import RoofTable
from profiler.session.model import StageInfo
from profiler.spans import SPAN, Recorder

EMIT, EPSILON, PRUNE, RANK = range(4)
COUNTS = {
    "search.emit": ("tokens", "arcs", "passed"),
    "search.epsilon": ("arcs", "followed", "senones"),
    "search.prune": ("examined", "entered", "closed up"),
    "search.rank": ("ranked",),
}
FRAMES = 80
START = Prediction(1.0, (), ())


@pytest.mark.parametrize("most", [300.0, 900.0, 1000.0, 1100.0, 2000.0])
def test_frames_of_a_block_are_normal_about_its_mean(most: float) -> None:
    means = np.tile([900.0, 1100.0], 50)
    left, held = fewer(means, int(most))
    draws = np.random.default_rng(0).normal(0.0, 100.0, 400_000)
    for place in (0, 1):
        frames = means[place] + draws
        assert left[place] == pytest.approx(np.minimum(frames, most).mean(), abs=1.0)
        assert held[place] == pytest.approx((frames > most).mean(), abs=0.005)
    assert (left <= means).all()


def test_blocks_that_do_not_differ_are_cut_off_exactly() -> None:
    left, held = fewer(np.full(5, 1000.0), 400)
    assert left.tolist() == [400.0] * 5
    assert held.tolist() == [1.0] * 5
    left, held = fewer(np.full(5, 1000.0), 1000)
    assert left.tolist() == [1000.0] * 5
    assert held.tolist() == [0.0] * 5


def spans_of(stage: int, *rows: tuple[int, int, tuple[int, ...]]) -> np.ndarray:
    """Rows of (first frame, frames, counts)."""
    found = np.zeros(len(rows), SPAN)
    for span, (first, frames, work) in zip(found, rows, strict=True):
        span["stage"], span["first_frame"], span["frames"] = stage, first, frames
        for i, count in enumerate(work):
            span[f"work{i}"] = count
    return found


def recorded(*blocks: tuple[int, int, int]) -> Searched:
    """Blocks of (first frame, frames, tokens in each): two arcs, one epsilon and three examined a token."""
    emit = [(at, n, (n * t, 2 * n * t, n * t)) for at, n, t in blocks]
    epsilon = [(at, n, (n * t, n * t // 2, n)) for at, n, t in blocks]
    prune = [(at, n, (3 * n * t, n * t, 0)) for at, n, t in blocks]
    stages = {
        name: StageInfo(i, name, "search", work) for i, (name, work) in enumerate(COUNTS.items())
    }
    spans = {
        "search.emit": spans_of(EMIT, *emit),
        "search.epsilon": spans_of(EPSILON, *epsilon),
        "search.prune": spans_of(PRUNE, *prune),
        "search.rank": spans_of(RANK),
    }
    return Searched(stages, spans)


def test_counts_go_with_the_tokens_and_all_examined_are_ranked() -> None:
    before = recorded((0, 16, 8000), (16, 16, 8000), (32, 4, 8000))
    after = fewer_tokens._with_fewer(before, 2000)
    for name in ("search.emit", "search.epsilon", "search.prune"):
        for i in range(3):
            wanted = before.spans[name][f"work{i}"] / 4
            assert after.spans[name][f"work{i}"].tolist() == wanted.tolist(), (name, i)
    assert after.spans["search.rank"]["work0"].tolist() == [96_000, 96_000, 24_000]
    assert set(after.spans["search.rank"]["stage"]) == {RANK}


def test_below_the_most_nothing_changes() -> None:
    before = recorded((0, 16, 500), (16, 16, 500))
    after = fewer_tokens._with_fewer(before, 1000)
    for name, spans in before.spans.items():
        assert after.spans[name].tobytes() == spans.tobytes(), name


def counted(most: int) -> Searched:
    """What a search with so many tokens at most records."""
    scores = smooth_scores(6, FRAMES, thousand_words().n_senones)
    decoder, recorder = (
        Viterbi(thousand_words(), search_settings(beam=10.0, max_active=most)),
        Recorder(),
    )
    decoder.stages(recorder)
    lane = recorder.lane("decode", decode=True)
    decoder.start(0)
    for at in range(0, len(scores), 16):
        decoder.advance(scores[at : at + 16], at, lane)
    every = np.frombuffer(lane.take(), SPAN)
    stages, spans = {}, {}
    for stage in recorder.stages:
        stages[stage.name] = StageInfo(stage.id, stage.name, stage.group, stage.work)
        spans[stage.name] = every[every["stage"] == stage.id]
    return Searched(stages, spans)


def test_a_search_that_has_fewer_counts_about_as_much() -> None:
    usual = counted(100_000)
    tokens = usual.spans["search.emit"]["work0"].sum() / FRAMES
    half = int(tokens / 2)
    expected, found = fewer_tokens._with_fewer(usual, half), counted(half)
    for name, count in (
        ("search.emit", 0),
        ("search.emit", 1),
        ("search.prune", 0),
        ("search.rank", 0),
    ):
        wanted, got = (int(side.spans[name][f"work{count}"].sum()) for side in (found, expected))
        assert got == pytest.approx(wanted, rel=0.3), (name, count)


@pytest.mark.parametrize(
    ("before", "change", "ranked", "why"),
    [
        ({}, {"search.max_active": 3500}, True, None),
        ({}, {"search.max_active": 9000}, False, None),
        ({}, {"search.max_active": 9000}, True, "in a session that dropped them"),
        ({"search.adaptive_beam": True}, {"search.max_active": 3500}, True, "follows the time"),
    ],
)
def test_what_is_not_in_the_session_is_said(before, change, ranked, why) -> None:
    old = assign(Config(), before)
    held = recorded((0, 16, 8000))
    if ranked:
        held.spans["search.rank"] = spans_of(RANK, (0, 16, (1000,)))
    said = unknown(held, old, assign(old, change))
    assert (said is None) == (why is None)
    assert why is None or why in said
    assert unknown(None, old, old) == "the session counts no tokens"


def test_without_counts_there_is_no_model() -> None:
    _, without = predict.Predictor(
        Config(), assign(Config(), {"search.max_active": 3500}), RoofTable()
    ).changed(START)
    assert without == [
        "There is no model of search.max_active: the session counts no tokens. Only --check tells."
    ]
