"""What other settings would cost: a session's stages change as they do where both settings are tried in turns."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_again import QUICK, never, quiet

from pipelines import config as settings
from pipelines.config import Config
from pipelines.experiments import predict, rerun
from pipelines.experiments.predict import Tried
from pipelines.experiments.rerun import Stretch
from pipelines.run.playlist import Item
from profiler.analysis.categories import OVERHEAD
from profiler.analysis.comparison.statistics import undisturbed
from profiler.analysis.whatif import Line, Prediction
from profiler.machine.roofs.table import RoofTable
from tests.each import each
from tests.profiler.profiler_sessions import ROOF_TABLE

NOWHERE = Stretch((), 1.0, "1.0 s of nothing")
START = Prediction(
    1.0,
    (
        Line("score.mixture", "scoring", 40.0, 40.0, {}),
        Line("search.emit", "search", 30.0, 30.0, {}),
        Line("overhead", "overhead", 10.0, 10.0, {}),
    ),
)


@pytest.fixture(scope="module")
def stretch(short: Path, tmp_path_factory: pytest.TempPathFactory) -> Stretch:
    return rerun.audio_of([Item("x", short, None)], tmp_path_factory.mktemp("cut"))


def tried(
    stretch: Stretch, monkeypatch: pytest.MonkeyPatch, before: Config = QUICK, **changes: object
) -> tuple[Tried, Tried]:
    monkeypatch.setattr(predict, "BUDGET_S", 0.0)
    after = settings.assign(before, {k.replace("__", "."): v for k, v in changes.items()})  # type: ignore[misc]
    return predict.tried(before, after, stretch, ROOF_TABLE, quiet, never)


def test_both_settings_decode_and_every_stage_has_its_time(stretch, monkeypatch) -> None:
    before, after = tried(stretch, monkeypatch, gmm__selection__enabled=True, search__max_active=150)
    assert "score.select" in after.groups["scoring"]
    assert "score.select" not in before.groups["scoring"]
    for side in (before, after):
        assert {"frontend", "scoring", "search", OVERHEAD} <= set(side.groups)
        assert all(ns > 0 for ns in side.groups["scoring"].values())
        # One figure for all that no stage of the recogniser has, as a prediction has one line for it.
        assert set(side.groups[OVERHEAD]) == {OVERHEAD}
        assert side.groups[OVERHEAD][OVERHEAD] > 0
    assert after.tokens <= 150 < before.tokens


def test_all_the_time_of_a_decode_is_in_some_group(stretch, monkeypatch) -> None:
    monkeypatch.setattr(predict, "BUDGET_S", 0.0)
    arms: list[rerun.Arm] = []
    decode = rerun.decode

    def kept(first: tuple[rerun.Arm, ...], *rest: object) -> int:
        arms.extend(first)
        return decode(first, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(rerun, "decode", kept)
    sides = tried(stretch, monkeypatch, block=4)
    for arm, side in zip(arms, sides, strict=True):
        whole = sum(sum(of.values()) for of in side.groups.values())
        rounds = (times.sum(axis=1) for times in arm.times.stages.values())
        assert whole == pytest.approx(sum(float(undisturbed(times)) for times in rounds))


def test_the_stages_of_a_session_change_as_they_did_in_the_trial(monkeypatch) -> None:
    then = Tried(
        {"scoring": {"score.mixture": 4.0}, "search": {"search.emit": 10.0}, OVERHEAD: {OVERHEAD: 2.0}}, 1000.0
    )
    now = Tried({"scoring": {"score.mixture": 1.0}, "search": {"search.emit": 9.0}, OVERHEAD: {OVERHEAD: 3.0}}, 900.0)
    asked: list[tuple[Config, Config]] = []

    def invented(before: Config, after: Config, *_: object) -> tuple[Tried, Tried]:
        asked.append((before, after))
        return then, now

    monkeypatch.setattr(predict, "tried", invented)
    after = settings.assign(QUICK, {"block": 64})
    predictor = predict.Predictor(QUICK, after, RoofTable(), NOWHERE)
    prediction, without = predictor.changed(START)
    assert not without
    times = {line.name: line.predicted_ns for line in prediction.lines}
    assert times == {
        "score.mixture": pytest.approx(10.0),
        "search.emit": pytest.approx(27.0),
        "overhead": pytest.approx(15.0),
    }
    assert NOWHERE.note in prediction.assumptions[0]
    assert "1000 tokens lived in a frame, 900" in prediction.assumptions[1]
    # For other frames of the session it is not tried again.
    assert predictor.changed(START)[0] == prediction
    assert asked == [(QUICK, after)]


def test_what_needs_no_trial_gets_none(monkeypatch) -> None:
    monkeypatch.setattr(predict, "tried", None)

    def predict_with(**changes: object) -> tuple[Prediction, list[str]]:
        after = settings.assign(QUICK, {k.replace("__", "."): v for k, v in changes.items()})  # type: ignore[misc]
        return predict.Predictor(QUICK, after, RoofTable(), NOWHERE).changed(START)

    assert predict_with(pace=2.0) == (START, [])
    assert "already" in predict_with()[0].assumptions[-1]


@pytest.mark.slow
def test_a_net_is_tried_like_mixtures(stretch, small_net, monkeypatch) -> None:
    before, after = tried(stretch, monkeypatch, small_net, dnn__dtype="int8")
    assert before.groups["scoring"].keys() == after.groups["scoring"].keys()
    assert {"score.layer 1", "score.output"} <= set(after.groups["scoring"])


def test_senones_that_the_search_asks_for_are_tried_with_it(stretch, monkeypatch) -> None:
    before, after = tried(stretch, monkeypatch, gmm__senones="active")
    assert sum(after.groups["scoring"].values()) > 0
    assert "search.active" in after.groups["search"]
    assert "search.active" not in before.groups["search"]


@each("before", [{}, {"device": "torch-cpu"}])
@each("change", [{"device": "torch-cpu"}, {"search.device": "torch-cpu"}])
def test_work_of_a_device_has_no_model(
    before: dict[str, object], change: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, "tried", None)
    old = settings.assign(Config(), before)  # type: ignore[arg-type]
    after = settings.assign(old, {**change, "block": 32})  # type: ignore[arg-type]
    prediction, without = predict.Predictor(old, after, RoofTable(), NOWHERE).changed(START)
    assert prediction == START
    expected = {"block", *change} - set(before)
    assert [sentence.split()[5].rstrip(":") for sentence in without] == [
        option.key for option in settings.options() if option.key in expected
    ]
    assert all("processor" in sentence for sentence in without)
