"""What a session names is found again from any folder: sound, grammar, dictionary, net, model folder."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

import assets
from pipelines import config as settings
from pipelines.config import Config, presets
from pipelines.experiments import rerun
from pipelines.models.sphinx import load as load_model
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from pipelines.search.graph.recipe import recipe_of
from profiler.errors import BadInput
from profiler.session.reader import Session
from tests.each import each

FILES = ("graph.grammar", "graph.dictionary", "graph.language_model", "dnn.net")


def naming(**files: str) -> Config:
    config = presets.load("gmm-quick").config
    for key, path in files.items():
        config = settings.replace(config, key.replace("__", "."), path)
    return config


@each("name", presets.names())
def test_what_ships_is_no_file_to_look_for(name: str, tmp_path: Path) -> None:
    config = presets.load(name).config
    assert rerun.named_files(config, tmp_path / "s.asrs") == (config, [])
    assert settings.kept(config) == config


@each("name", ["cards", "digits", "robot"])
def test_a_shipped_grammar_is_known_by_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in settings.option("graph.grammar").shipped()
    config = naming(graph__grammar=name)
    assert rerun.named_files(config, tmp_path / "s.asrs") == (config, [])
    # A folder of that name stands in nobody's way.
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    found = recipe_of(config.graph, load_model(_model_folder()))
    assert found.grammar == str(assets.path("grammars", f"{name}.gram"))
    assert settings.kept(config) == config


def _model_folder() -> Path:
    from pipelines.models import sphinx

    return Path(sphinx.default_directory())


@each("key", FILES)
def test_a_session_keeps_whole_paths(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for named in ("there", "./there", "~/there"):
        kept = settings.get(settings.kept(naming(**{key: named})), key)
        assert Path(str(kept)).samefile(tmp_path / "there")
        assert Path(str(kept)).is_absolute()
    gone = naming(**{key: "gone"})
    assert settings.kept(gone) == gone


@pytest.mark.slow
def test_the_sound_and_grammar_of_a_run_are_found_from_elsewhere(
    short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    shutil.copy(short, here / "said.flac")
    (here / "own.txt").write_text("yes\nno\n")
    monkeypatch.chdir(here)
    request = Request(naming(graph__grammar="own.txt"), "gmm-quick", ("said.flac",), None, Path("s.asrs"))
    assert execute(request, Control(), lambda *_: None).problem is None
    monkeypatch.chdir(elsewhere)
    path = here / "s.asrs"
    with closing(Session.open(path)) as session:
        config, *_ = rerun.settings_of(session.configs, 1)
        assert config.graph.grammar == str(here / "own.txt")
        assert [u.path for u in session.utterances] == [str(here / "said.flac")]
        assert session.meta["audio"] == [str(here / "said.flac")]
    config, (note,) = rerun.named_files(config, path)
    assert str(here / "own.txt") in note


@pytest.mark.parametrize("where", ["beside the session", "in the current folder"])
def test_old_sessions_with_relative_paths(
    where: str, short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    spoken = rerun.items_of([_spoken_file("said.flac")], session)
    found = rerun.audio_of(spoken, tmp_path)
    assert [item.path for item in found.items] == [place / "said.flac"]


def _spoken_file(path: str) -> SimpleNamespace:
    return SimpleNamespace(name="said", path=path, part={}, reference=None)


def test_what_is_gone_is_said_and_can_be_named(tmp_path: Path) -> None:
    session, gone = tmp_path / "s.asrs", str(tmp_path / "gone.gram")
    config = naming(graph__grammar=gone)
    with pytest.raises(BadInput) as said:
        rerun.named_files(config, session)
    assert f"names {gone} as its graph.grammar" in str(said.value)
    assert "--set graph.grammar=PATH" in str(said.value)
    with pytest.raises(BadInput, match="neither beside the session nor in the current folder"):
        rerun.named_files(naming(graph__grammar="gone.gram"), session)
    now = {"graph.grammar": "now.gram", "search.beam": 9}
    found, (note,) = rerun.named_files(config, session, now)
    assert found == naming(graph__grammar="now.gram"), "and the beam stays"
    assert "now.gram" in note
    spoken = rerun.items_of([_spoken_file(str(tmp_path / "gone.wav"))], session)
    sound = rerun.audio_of(spoken, tmp_path, 1.0)
    assert str(tmp_path / "gone.wav") in sound.note
