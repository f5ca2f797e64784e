"""What other settings would cost: a session's stages change as those of a rehearsal of both settings do."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_again import QUICK, never, quiet

from pipelines import config as settings
from pipelines.config import Config
from pipelines.experiments import predict, rehearse, rerun
from pipelines.experiments.rehearse import Found, Rehearsed
from pipelines.experiments.rerun import Stretch
from profiler.analysis.whatif import Line, Prediction
from profiler.machine.roofs.table import RoofTable
from tests.profiler.profiler_sessions import ROOF_TABLE

pytestmark = pytest.mark.usefixtures("invented_roofs")

NOWHERE = Stretch((), 1.0, "1.0 s of nothing")
START = Prediction(
    1.0,
    (
        Line("score.mixture", "scoring", 40.0, 40.0, {}),
        Line("search.emit", "search", 30.0, 30.0, {}, 0.5),
        Line("overhead", "overhead", 10.0, 10.0, {}),
    ),
)


@pytest.fixture(scope="module")
def stretch(short: Path, tmp_path_factory: pytest.TempPathFactory) -> Stretch:
    return rerun.audio_of([str(short)], tmp_path_factory.mktemp("cut"))


def tried(
    stretch: Stretch, monkeypatch: pytest.MonkeyPatch, before: Config = QUICK, **changes: object
) -> Rehearsed:
    monkeypatch.setattr(rehearse, "BUDGET_S", 0.0)
    after = settings.assign(before, {k.replace("__", "."): v for k, v in changes.items()})  # type: ignore[misc]
    return rehearse.rehearse(before, after, stretch, ROOF_TABLE, quiet, never)


def test_a_rehearsal_scores_with_both_and_counts_both_searches(stretch, monkeypatch) -> None:
    found = tried(stretch, monkeypatch, gmm__selection__enabled=True, search__max_active=150)
    before, after = found.before, found.after
    assert "score.select" in after.scoring
    assert "score.select" not in before.scoring
    assert all(ns > 0 for ns in (*before.scoring.values(), *after.scoring.values()))
    # Of the search the laws tell by what was counted: no more than so many tokens of some 400 in a frame.
    assert after.search["search.emit"] < 0.9 * before.search["search.emit"]
    assert before.overhead["overhead"] > 0
    assert after.tokens <= 150 < before.tokens
    assert found.waiting > 0


def test_what_did_not_change_is_counted_alike(stretch, monkeypatch) -> None:
    found = tried(stretch, monkeypatch, block=16)
    again = tried(stretch, monkeypatch, block=16)
    assert found.before.tokens == again.before.tokens == again.after.tokens
    for other in (again.before, again.after):
        # A call that takes long is left and made again: how often is a matter of time.
        assert found.before.search == pytest.approx(other.search, rel=0.2)
    assert found.before.scoring.keys() == found.after.scoring.keys()


def test_smaller_blocks_call_the_search_more_often(stretch, monkeypatch) -> None:
    found = tried(stretch, monkeypatch, block=4)
    # By the invented roofs a call takes 500 ns, and the tokens are the same.
    more = found.after.search["search.emit"] - found.before.search["search.emit"]
    blocks = [sum(-(-n // size) for n in frames_of(stretch)) for size in (4, QUICK.block)]
    # Calls that take long are left and made again, so that there may be some more of either.
    assert more == pytest.approx(500.0 * (blocks[0] - blocks[1]), rel=0.3)


def frames_of(stretch: Stretch) -> list[int]:
    recogniser = rerun.build(QUICK, rerun.Recorder(), rerun.NullLane(), quiet, never)
    sounds = [rerun.audio.load(item.path).samples for item in stretch.items]
    return [len(recogniser.frontend.features(samples)) for samples in sounds]


def test_between_the_blocks_goes_what_the_search_s_laws_say(stretch, monkeypatch) -> None:
    gone_through: list[int] = []
    frames = rehearse.Traffic.frames

    def counted(traffic: rehearse.Traffic, count: int) -> float:
        gone_through.append(count)
        return frames(traffic, count)

    monkeypatch.setattr(rehearse.Traffic, "frames", counted)
    tried(stretch, monkeypatch, block=64)
    scored = min(sum(frames_of(stretch)), rehearse.SCORED_FRAMES)
    rounds = 2 * (rerun.MIN_ROUNDS + rerun.WARM_UP_ROUNDS)
    of_hot = 2 * rehearse.HOT_TIMES * QUICK.block
    assert sum(gone_through) == rounds * scored + of_hot
    assert {64, QUICK.block} <= set(gone_through)


def test_amounts_are_of_a_frame_and_of_all_stages(stretch) -> None:
    (side,) = rerun.runners([rerun.Arm("", QUICK)], ROOF_TABLE, quiet, never)
    for item in stretch.items:
        side.decode(item)
    recording = side.taken.all_from(0)
    found = rehearse.amounts(recording)
    emit = next(stage for stage in recording.stages.values() if stage.name == "search.emit")
    spans = recording.spans[recording.spans["stage"] == emit.id]
    passed = spans["work2"].sum() / spans["frames"].sum()
    slots = next(t for t in recording.costs[emit.id, 0].terms or () if t.kind == "access")
    # Epsilon arcs look up places in the same data.
    assert passed <= found["access", int(slots.bytes)] < 2 * passed


def test_stages_waiting_and_what_lies_between_follow_the_rehearsal(monkeypatch) -> None:
    then = Found({"score.mixture": 4.0}, {"search.emit": 10.0}, {"overhead": 2.0}, 1000.0)
    now = Found({"score.mixture": 1.0}, {"search.emit": 9.0}, {"overhead": 3.0}, 900.0)
    asked: list[tuple[Config, Config]] = []

    def invented(before: Config, after: Config, *_: object) -> Rehearsed:
        asked.append((before, after))
        return Rehearsed(then, now, 1.2)

    monkeypatch.setattr(predict, "rehearse", invented)
    after = settings.assign(QUICK, {"block": 64})
    predictor = predict.Predictor(QUICK, after, RoofTable(), NOWHERE)
    prediction, without = predictor.changed(START)
    assert not without
    times = {line.name: line.predicted_ns for line in prediction.lines}
    assert times == {
        "score.mixture": pytest.approx(10.0),
        "search.emit": pytest.approx(27.0 * 1.1),
        "overhead": pytest.approx(15.0),
    }
    assert NOWHERE.note in prediction.assumptions[0]
    assert "1000 tokens lived in a frame, 900" in prediction.assumptions[2]
    # For other frames of the session it is not rehearsed again.
    assert predictor.changed(START)[0] == prediction
    assert asked == [(QUICK, after)]


def test_what_needs_no_rehearsal_gets_none(monkeypatch) -> None:
    monkeypatch.setattr(predict, "rehearse", None)

    def asked(**changes: object) -> tuple[Prediction, list[str]]:
        after = settings.assign(QUICK, {k.replace("__", "."): v for k, v in changes.items()})  # type: ignore[misc]
        return predict.Predictor(QUICK, after, RoofTable(), NOWHERE).changed(START)

    assert asked(pace=2.0) == (START, [])
    prediction, without = asked(search__lattice=True, block=32)
    assert prediction == START
    assert len(without) == 1
    assert "no model of search.lattice" in without[0]
    assert "already" in asked()[0].assumptions[-1]


def test_a_net_is_rehearsed_like_mixtures(stretch, small_net, monkeypatch) -> None:
    found = tried(stretch, monkeypatch, small_net, dnn__dtype="int8")
    assert found.before.scoring.keys() == found.after.scoring.keys()
    assert {"score.layer 1", "score.output"} <= set(found.after.scoring)


@pytest.mark.parametrize(
    ("before", "change", "why"),
    [
        ({}, {"gmm.senones": "active"}, "asks the search"),
        ({}, {"gmm.senones": "active-ci", "gmm.ci_beam": 5.0}, "asks the search"),
        # A session that ran so cannot be rehearsed either.
        ({"gmm.senones": "active"}, {"block": 32}, "asks the search"),
        ({"model": "dnn"}, {"dnn.senones": "active-ahead"}, "asks the search"),
        ({"model": "dnn", "dnn.senones": "active"}, {"dnn.dtype": "int8"}, "asks the search"),
        ({}, {"device": "torch-cpu"}, "processor"),
        ({}, {"search.adaptive_beam": True}, "follows the time"),
        ({}, {"search.lattice": True}, "only by running it"),
    ],
)
def test_what_cannot_be_rehearsed_has_no_model(
    before: dict[str, object], change: dict[str, object], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, "rehearse", None)
    old = settings.assign(Config(), before)  # type: ignore[arg-type]
    after = settings.assign(old, change)  # type: ignore[arg-type]
    prediction, without = predict.Predictor(old, after, RoofTable(), NOWHERE).changed(START)
    assert prediction == START
    assert [sentence.split()[5].rstrip(":") for sentence in without] == [
        option.key for option in settings.options() if option.key in change
    ]
    assert all(why in sentence for sentence in without)
