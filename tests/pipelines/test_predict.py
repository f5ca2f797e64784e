"""What other settings would cost: a session's stages change as they do where both settings are tried in turns."""

import re
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from whole_runs import QUICK, never, quiet

import assets
from pipelines import config as settings
from pipelines.config import Config, presets
from pipelines.experiments import predict, rerun
from pipelines.experiments.ab import recorded
from pipelines.experiments.predict import Tried
from pipelines.experiments.rerun import Stretch
from pipelines.run.interleave import turns
from pipelines.run.playlist import Item
from pipelines.search.graph.recipe import recipe_of
from profiler.analysis.categories import OVERHEAD
from profiler.analysis.comparison.statistics import undisturbed
from profiler.analysis.whatif import PredictedStage, Prediction
from profiler.machine.roofs.table import RoofTable
from profiler.session.reader import Session
from tests.each import each
from tests.pipelines import whole_runs
from tests.pipelines.refusing import refusal
from tests.profiler.profiler_sessions import ROOF_TABLE

NOWHERE = Stretch((), 1.0, "1.0 s of nothing")
START = Prediction(
    1.0,
    (
        PredictedStage("score.mixture", "scoring", 40.0, 40.0, {}),
        PredictedStage("search.emit", "search", 30.0, 30.0, {}),
        PredictedStage("overhead", "overhead", 10.0, 10.0, {}),
    ),
)


@pytest.fixture(scope="module")
def stretch(short: Path, tmp_path_factory: pytest.TempPathFactory) -> Stretch:
    return rerun.audio_of([Item("x", short, None)], tmp_path_factory.mktemp("cut"))


def test_both_settings_decode_and_all_their_time_is_in_some_group(stretch, monkeypatch):
    arms: list[rerun.Arm] = []
    decode = rerun.decode
    monkeypatch.setattr(rerun, "decode", lambda both, *rest: arms.extend(both) or decode(both, *rest))
    monkeypatch.setattr(predict, "BUDGET_S", 0.0)
    fewer = settings.assign(QUICK, {"gmm.selection.enabled": True, "search.max_active": 150})
    before, after = predict.tried(QUICK, fewer, stretch, ROOF_TABLE, quiet, never)
    assert "score.select" in after.groups["scoring"]
    assert "score.select" not in before.groups["scoring"]
    for arm, side in zip(arms, (before, after), strict=True):
        assert {"frontend", "scoring", "search", OVERHEAD} <= set(side.groups)
        # One figure for all that no stage of the recogniser has, as a prediction has one line for it.
        assert set(side.groups[OVERHEAD]) == {OVERHEAD}
        whole = sum(sum(of.values()) for of in side.groups.values())
        rounds = (times.sum(axis=1) for times in arm.times.stages.values())
        assert whole == pytest.approx(sum(float(undisturbed(times)) for times in rounds))
    assert after.tokens <= 150 < before.tokens


def test_the_stages_of_a_session_change_as_they_did_in_the_trial(monkeypatch):
    then = Tried(
        {"scoring": {"score.mixture": 4.0}, "search": {"search.emit": 10.0}, OVERHEAD: {OVERHEAD: 2.0}}, 1000.0
    )
    now = Tried({"scoring": {"score.mixture": 1.0}, "search": {"search.emit": 9.0}, OVERHEAD: {OVERHEAD: 3.0}}, 900.0)
    asked: list[tuple[Config, Config]] = []
    monkeypatch.setattr(predict, "tried", lambda before, after, *_: asked.append((before, after)) or (then, now))
    after = settings.assign(QUICK, {"block": 64})
    predictor = predict.Predictor(QUICK, after, RoofTable(), NOWHERE)
    prediction, without = predictor.changed(START)
    assert not without
    assert [line.predicted_ns for line in prediction.lines] == pytest.approx([10.0, 27.0, 15.0])
    assert NOWHERE.note in prediction.assumptions[0]
    assert "1000 tokens lived in a frame, 900" in prediction.assumptions[1]
    # For other frames of the session it is not tried again.
    assert predictor.changed(START)[0] == prediction
    assert asked == [(QUICK, after)]


def test_what_needs_no_trial_gets_none(monkeypatch):
    monkeypatch.setattr(predict, "tried", None)
    paced = settings.assign(QUICK, {"pace": 2.0})
    assert predict.Predictor(QUICK, paced, RoofTable(), NOWHERE).changed(START) == (START, [])
    same, _ = predict.Predictor(QUICK, QUICK, RoofTable(), NOWHERE).changed(START)
    assert "already" in same.assumptions[-1]


@each("before", [{}, {"device": "torch-cpu"}])
@each("change", [{"device": "torch-cpu"}, {"search.device": "torch-cpu"}])
def test_work_of_a_device_has_no_model(before, change, monkeypatch):
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


@each("arms", [1, 2, 3, 5])
def test_each_item_is_taken_by_all_arms_before_the_next_and_each_begins_as_often(arms):
    order = list(turns(arms, 3, range(-arms, arms)))
    assert len(order) == arms * 3 * 2 * arms
    for at in range(0, len(order), arms):
        some = order[at : at + arms]
        assert {(turn.round, turn.place) for turn in some} == {(at // arms // 3 - arms, at // arms % 3)}
        assert {turn.arm for turn in some} == set(range(arms))
    began = Counter((turn.place, turn.arm) for turn in order[::arms])
    assert began == {(place, arm): 2 for place in range(3) for arm in range(arms)}


def spoken(path: Path | str, **more: Any) -> SimpleNamespace:
    plain = {"name": Path(path).stem, "part": {}, "reference": "yes of course", "done": True, "end_frame": 100}
    return SimpleNamespace(path=str(path), **plain | more)


def session(path: Path, config: Config, *utterances: SimpleNamespace, **meta: Any) -> Any:
    epochs = [SimpleNamespace(epoch=0, first_frame=0, tree=settings.to_dict(config))]
    return SimpleNamespace(path=path, configs=epochs, utterances=list(utterances), meta=meta)


def test_a_run_is_found_again(quick, short, bundled_speech, tmp_path):
    said = tmp_path / "said.flac"
    shutil.copy(short, said)
    (tmp_path / "t.tsv").write_text("file\ttranscript\nsaid.flac\tyes of course\n")
    config = settings.replace(settings.replace(quick, "pace", 100), "search.beam", 9)
    whole_runs.run(config, [said], tmp_path / "a.asrs", transcripts=tmp_path / "t.tsv", repeat=2)
    with closing(Session.open(tmp_path / "a.asrs")) as a:
        found = recorded([a], {})
    assert found.configs == (settings.replace(config, "pace", 0),) * 2
    (item,) = found.items
    assert (item.path, item.reference) == (said, "yes of course")


def test_two_sessions_are_arm_a_and_arm_b_on_audio_that_is_here(quick, short, tmp_path):
    other = settings.replace(quick, "search.beam", 9)
    gone, here = spoken(tmp_path / "gone.wav"), spoken(short)
    a, b = session(tmp_path / "a.asrs", quick, gone), session(tmp_path / "b.asrs", other, here, here)
    found = recorded([a, b], {})
    assert found.configs == (quick, other)
    assert [item.path for item in found.items] == [short], "each once, of the session whose audio is here"


def test_a_bundled_voice_of_another_copy_of_the_program_is_the_one_here(quick, short, tmp_path):
    for path in (f"C:\\asrscope\\assets\\speech\\{short.name}", f"/other/assets/speech/{short.name}"):
        (item,) = recorded([session(tmp_path / "a.asrs", quick, spoken(path, name="v"))], {}).items
        assert item.path == short
    refusal("is not here", recorded, [session(tmp_path / "a.asrs", quick, spoken(f"/other/{short.name}"))], {})


def test_what_cannot_be_run_again_is_one_sentence(quick, short, tmp_path):
    path = tmp_path / "a.asrs"
    gone = [spoken(tmp_path / f"{name}.wav") for name in ("one", "two", "two")]
    file = settings.replace(quick, "graph.grammar", str(tmp_path / "gone.gram"))
    for recording, says in (
        (
            session(path, quick, *gone),
            re.escape(f"The audio of {path} is not here ({tmp_path / 'one.wav'} and 1 more)"),
        ),
        (session(path, quick, spoken(short, done=False)), "no utterance that was decoded to its end"),
        (session(path, file, spoken(short)), "--set graph.grammar=PATH"),
    ):
        refusal(says, recorded, [recording], {})


def test_an_ab_session_has_the_settings_of_its_arms(quick, short, tmp_path):
    other = settings.replace(quick, "search.beam", 9)
    arms = [{"name": name, "epoch": epoch, "set": {}} for epoch, name in enumerate("AB")]
    ab = session(
        tmp_path / "ab.asrs",
        quick,
        *(spoken(short, epochs=(epoch,), first_frame=50) for epoch in (0, 1)),
        ab={"arms": arms, "measured_from": 50},
    )
    ab.configs.append(SimpleNamespace(epoch=1, first_frame=50, tree=settings.to_dict(other)))
    assert recorded([ab], {}).configs == (quick, other)
    refusal("is an A/B session", recorded, [session(tmp_path / "a.asrs", quick, spoken(short)), ab], {})


FILES = ("graph.grammar", "graph.dictionary", "graph.language_model", "dnn.net")


def naming(**files: str) -> Config:
    config = presets.load("gmm-quick").config
    for key, path in files.items():
        config = settings.replace(config, key.replace("__", "."), path)
    return config


@each("name", presets.names())
def test_what_ships_is_no_file_to_look_for(name, tmp_path):
    config = presets.load(name).config
    assert rerun.named_files(config, tmp_path / "s.asrs") == (config, [])
    assert settings.kept(config) == config


def test_a_shipped_grammar_is_known_by_name(model, tmp_path, monkeypatch):
    for name in ("cards", "digits", "robot"):
        assert name in settings.option("graph.grammar").shipped()
    config = naming(graph__grammar="cards")
    assert rerun.named_files(config, tmp_path / "s.asrs") == (config, [])
    # A folder of that name stands in nobody's way.
    (tmp_path / "cards").mkdir()
    monkeypatch.chdir(tmp_path)
    assert recipe_of(config.graph, model).grammar == str(assets.path("grammars", "cards.gram"))
    assert settings.kept(config) == config


@each("key", FILES)
def test_a_session_keeps_whole_paths(key, tmp_path, monkeypatch):
    (tmp_path / "there").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for named in ("there", "./there", "~/there"):
        kept = Path(str(settings.get(settings.kept(naming(**{key: named})), key)))
        assert kept.samefile(tmp_path / "there")
        assert kept.is_absolute()
    gone = naming(**{key: "gone"})
    assert settings.kept(gone) == gone


@pytest.mark.parametrize("where", ["beside the session", "in the current folder"])
def test_old_sessions_with_relative_paths(where, short, tmp_path, monkeypatch):
    sessions, current = tmp_path / "sessions", tmp_path / "current"
    sessions.mkdir()
    current.mkdir()
    place = sessions if where == "beside the session" else current
    (place / "own.gram").write_text("")
    shutil.copy(short, place / "said.flac")
    monkeypatch.chdir(current)
    old, session = naming(graph__grammar="own.gram"), sessions / "s.asrs"
    config, (note,) = rerun.named_files(old, session)
    assert config.graph.grammar == str(place / "own.gram")
    assert str(place / "own.gram") in note
    found = rerun.audio_of(rerun.items_of([spoken("said.flac")], session), tmp_path)
    assert [item.path for item in found.items] == [place / "said.flac"]


def test_what_is_gone_is_said_and_can_be_named(tmp_path):
    session, gone = tmp_path / "s.asrs", str(tmp_path / "gone.gram")
    config = naming(graph__grammar=gone)
    refusal(re.escape(f"names {gone} as its graph.grammar"), rerun.named_files, config, session)
    moved = naming(graph__grammar="gone.gram")
    refusal("neither beside the session nor in the current folder", rerun.named_files, moved, session)
    now = {"graph.grammar": "now.gram", "search.beam": 9}
    found, (note,) = rerun.named_files(config, session, now)
    assert found == naming(graph__grammar="now.gram"), "and the beam stays"
    assert "now.gram" in note
    sound = rerun.audio_of(rerun.items_of([spoken(tmp_path / "gone.wav")], session), tmp_path, 1.0)
    assert str(tmp_path / "gone.wav") in sound.note
