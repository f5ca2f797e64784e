"""What other settings would cost, predicted from counts and laws."""

from __future__ import annotations

import pytest
from run_again import QUICK, never, quiet

from pipelines import config as settings
from pipelines.experiments import predict, rerun
from profiler.analysis import whatif
from profiler.analysis.breakdown import breakdown
from tests.profiler.profiler_sessions import ROOF_TABLE

pytestmark = pytest.mark.usefixtures("invented_roofs")


@pytest.fixture(scope="module")
def start(short, tmp_path_factory) -> whatif.Prediction:
    stretch = rerun.audio_of([str(short)], tmp_path_factory.mktemp("cut"))
    arm = rerun.Arm("a", QUICK)
    rerun.decode([arm], stretch, ROOF_TABLE, quiet, never, budget_s=0.0)
    return whatif.unchanged(breakdown(arm.recording))


def predicted(start: whatif.Prediction, **changes) -> tuple[dict[str, float], list[str]]:
    assignments = {key.replace("__", "."): value for key, value in changes.items()}
    after = settings.assign(QUICK, assignments)
    prediction, without = predict.Predictor(QUICK, after, ROOF_TABLE).changed(start)
    old = {line.name: line.time_ns for line in start.lines}
    return {
        line.name: line.predicted_ns / old[line.name] if old.get(line.name) else line.predicted_ns
        for line in prediction.lines
    }, without


def test_skipping_frames_is_predicted_from_counts(start) -> None:
    factors, without = predicted(start, frames__skip=2)
    assert not without
    for name in ("score.exp", "score.log"):
        assert factors[name] == pytest.approx(0.5, abs=0.01)
    # Parameters are read once per block, whatever is skipped.
    assert 0.5 < factors["score.mixture"] < 0.8
    assert factors["score.copy"] > 0
    assert factors["search.emit"] == factors["overhead"] == 1.0


def test_larger_blocks_reuse_parameters(start) -> None:
    larger, _ = predicted(start, block=64)
    smaller, _ = predicted(start, block=1)
    assert larger["score.mixture"] < 1.0 < smaller["score.mixture"]
    assert smaller["score.mixture"] > 1.5
    assert larger["overhead"] < 1.0 < smaller["overhead"]


def test_selection_brings_a_stage_and_shrinks_the_mixture(start) -> None:
    factors, _ = predicted(start, gmm__selection__top_n=4)
    assert factors["score.mixture"] < 0.3
    assert factors["score.exp"] < 0.1
    assert factors["score.gaussians"] == pytest.approx(1.0)
    assert factors["score.select"] > 0


def test_threads_share_scoring_alone(start) -> None:
    factors, _ = predicted(start, threads=2)
    assert factors["score.mixture"] == pytest.approx(0.5, abs=1e-3)
    assert factors["search.emit"] == 1.0


def test_what_has_no_model_is_said(start) -> None:
    factors, without = predicted(start, search__beam=9.0)
    assert set(factors.values()) == {1.0}
    assert "no model of search.beam" in without[0]
    _, without = predicted(start, graph__vocabulary=500, block=32)
    assert len(without) == 1
    factors, without = predicted(start, pace=2.0)
    assert not without
    assert set(factors.values()) == {1.0}
    prediction, _ = predict.Predictor(QUICK, QUICK, ROOF_TABLE).changed(start)
    assert "already" in prediction.assumptions[-1]


def test_what_a_net_would_cost_is_predicted_from_its_laws(small_net) -> None:
    lines = tuple(
        whatif.Line(name, "scoring", 1e6, 1e6, {}) for name in ("score.layer 1", "score.output")
    )
    start = whatif.Prediction(1.0, lines)

    def factors(**changes) -> tuple[dict[str, float], list[str]]:
        dotted = {key.replace("__", "."): value for key, value in changes.items()}
        after, without = predict.Predictor(
            small_net, settings.assign(small_net, dotted), ROOF_TABLE
        ).changed(start)
        return {line.name: line.factor for line in after.lines}, without

    larger, without = factors(block=64)
    assert not without
    assert larger["score.output"] < larger["score.layer 1"] * 1.5
    assert larger["score.output"] < 0.8
    less, without = factors(dnn__shrink="low-rank", dnn__share=0.1)
    assert not without
    assert less["score.output"] < 0.6
    halved, _ = factors(frames__skip=2)
    assert 0.4 < halved["score.output"] < 1.0
    _, without = factors(dnn__senones="active")
    assert "depends on what is said" in without[0]
