"""A stage explained by doing it again: what is done, that it changes nothing, and what cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.config import presets
from pipelines.experiments import explain
from pipelines.experiments.explain import COLD, HOT, LESS, MORE, PLACED, RUN, Explanation, Way
from pipelines.experiments.rerun import Stretch
from pipelines.models.opening import open_model
from pipelines.run.playlist import Item
from pipelines.scoring import build_scorer
from profiler.analysis.breakdown import StageRow
from profiler.analysis.parts import PARTS, Parts
from profiler.errors import BadInput, Cancelled
from profiler.spans import Lane, NullLane

QUICK = presets.load("gmm-quick").config


def quiet(what: str, share: float | None) -> None:
    """Progress that nobody sees."""


@pytest.fixture(scope="module")
def stretch(bundled_speech) -> Stretch:
    path = bundled_speech / "08-kal16-short.flac"
    return Stretch((Item("short", path, None),), audio.load(path).duration_s, "the short voice")


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(explain, "ROUNDS", 2)
    monkeypatch.setattr(explain, "MOST_BLOCKS", 3)
    monkeypatch.setattr(explain, "ELSEWHERE", 1)


def test_a_stage_is_done_again_in_every_way(stretch):
    found = explain.explain(QUICK, "score.mixture", stretch, quiet, lambda: False)
    assert [way.name for way in found.ways] == [RUN, HOT, COLD, PLACED, LESS, MORE]
    assert all(0 < way.low <= way.ns <= way.high for way in found.ways)
    assert (found.rounds, found.row.name) == (2, "score.mixture")
    assert 1 <= found.blocks <= 4
    assert 0 <= found.waiting[0] <= found.waiting[1] <= found.waiting[2] < 1
    parts = found.row.parts
    assert parts is not None
    assert sum(parts.likely.values()) == pytest.approx(found.row.time_ns)
    assert found.conclusion.startswith("Replayed hot")


@pytest.mark.parametrize(
    ("changes", "stage", "sentence"),
    [
        ({}, "score.nothing", "no stage of scoring here"),
        ({}, "search.emit", "no stage of scoring here"),
        ({"gmm.senones": "active"}, "score.mixture", "cannot be scored again"),
        (
            {"gmm.selection.enabled": True, "gmm.selection.method": "last-top-n"},
            "score.mixture",
            "cannot",
        ),
    ],
)
def test_what_cannot_be_done_again_is_one_sentence(stretch, changes, stage, sentence):
    config = settings.assign(QUICK, changes)
    with pytest.raises(BadInput, match=sentence):
        explain.explain(config, stage, stretch, quiet, lambda: False)


def test_it_can_be_cancelled(stretch):
    with pytest.raises(Cancelled):
        explain.explain(QUICK, "score.exp", stretch, quiet, lambda: True)


@pytest.mark.parametrize("skip", [1, 2])
def test_scoring_again_leaves_no_trace(skip):
    config = settings.replace(QUICK, "frames.skip", skip)
    model = open_model(config)
    features = np.random.default_rng(1).standard_normal((48, 39)).astype(np.float32)
    plain, replayed = (build_scorer(config, model) for _ in range(2))
    own = Lane(0, "replay", "cpu", False)
    for scorer in (plain, replayed):
        scorer.reset()
    for at in range(0, 48, 16):
        block = features[at : at + 16]
        wanted = plain.score(block, at, NullLane()).copy()
        got = replayed.score(block, at, NullLane())
        assert replayed.replayable
        replayed.again(at, own)
        assert np.array_equal(got, wanted)
        # What is scored again is what was scored: the spare room holds the same figures.
        where = np.flatnonzero((wanted[1:] != wanted[:-1]).any(axis=1)) if skip > 1 else None
        if where is None:
            assert np.array_equal(replayed._spare[:16], wanted)


def _found(waiting: tuple[float, float, float], memory: tuple[float, float, float]) -> Explanation:
    low, likely, high = memory

    def of(share: float) -> dict[str, float]:
        return dict.fromkeys(PARTS, 0.0) | {"bandwidth": 100 * share}

    parts = Parts(of(likely) | {"not_attributed": 100 - 100 * likely}, of(low), of(high))
    row = StageRow(
        "score.x", "scoring", "decode", 100.0, 1.0, 1, 1.0, 1.0, 1.0, {}, 1.0, None, "B", "",
        parts=parts,
    )  # fmt: skip
    return Explanation(row, (Way(RUN, 1.0, 1.0, 1.0),), waiting, 5, 3)


def test_the_witnesses_agree_or_it_is_said_by_how_much_they_do_not():
    agreeing = _found((0.1, 0.2, 0.3), (0.2, 0.3, 0.4)).conclusion
    assert "takes 80% of its time (70% to 90%)" in agreeing
    assert agreeing.endswith("the two agree.")
    apart = _found((0.5, 0.6, 0.7), (0.1, 0.2, 0.3)).conclusion
    assert "20% of its time is beyond it" in apart
