"""What recorded sessions ran is found again: settings of either arm, audio with its transcripts, bundled voices."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipelines import config as settings
from pipelines.config import Config
from pipelines.experiments.recorded import recorded
from profiler.errors import BadInput
from profiler.session.reader import Session
from tests.pipelines import whole_runs


def spoken(path: Path | str, **more: Any) -> SimpleNamespace:
    plain = {"name": Path(path).stem, "part": {}, "reference": "yes of course", "done": True, "end_frame": 100}
    return SimpleNamespace(path=str(path), **plain | more)


def session(path: Path, config: Config, *utterances: SimpleNamespace, **meta: Any) -> Any:
    epochs = [SimpleNamespace(epoch=0, first_frame=0, tree=settings.to_dict(config))]
    return SimpleNamespace(path=path, configs=epochs, utterances=list(utterances), meta=meta)


def test_a_run_is_found_again(quick: Config, short: Path, bundled_speech: Path, tmp_path: Path) -> None:
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


def test_two_sessions_are_arm_a_and_arm_b_on_audio_that_is_here(quick: Config, short: Path, tmp_path: Path) -> None:
    other = settings.replace(quick, "search.beam", 9)
    gone, here = spoken(tmp_path / "gone.wav"), spoken(short)
    a, b = session(tmp_path / "a.asrs", quick, gone), session(tmp_path / "b.asrs", other, here, here)
    found = recorded([a, b], {})
    assert found.configs == (quick, other)
    assert [item.path for item in found.items] == [short], "each once, of the session whose audio is here"


def test_a_bundled_voice_of_another_copy_of_the_program_is_the_one_here(
    quick: Config, short: Path, tmp_path: Path
) -> None:
    for path in (f"C:\\asrscope\\assets\\speech\\{short.name}", f"/other/assets/speech/{short.name}"):
        (item,) = recorded([session(tmp_path / "a.asrs", quick, spoken(path, name="v"))], {}).items
        assert item.path == short
    with pytest.raises(BadInput, match="is not here"):
        recorded([session(tmp_path / "a.asrs", quick, spoken(f"/other/{short.name}"))], {})


def refusal(*sessions: Any) -> str:
    with pytest.raises(BadInput) as refused:
        recorded(sessions, {})
    return str(refused.value)


def test_what_cannot_be_run_again_is_one_sentence(quick: Config, short: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.asrs"
    gone = [spoken(tmp_path / f"{name}.wav") for name in ("one", "two", "two")]
    assert refusal(session(path, quick, *gone)) == (
        f"The audio of {path} is not here ({tmp_path / 'one.wav'} and 1 more), so it cannot be decoded again."
    )
    assert "no utterance that was decoded to its end" in refusal(session(path, quick, spoken(short, done=False)))
    file = settings.replace(quick, "graph.grammar", str(tmp_path / "gone.gram"))
    assert "--set graph.grammar=PATH" in refusal(session(path, file, spoken(short)))


def test_an_ab_session_has_the_settings_of_its_arms(quick: Config, short: Path, tmp_path: Path) -> None:
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
    assert "is an A/B session" in refusal(session(tmp_path / "a.asrs", quick, spoken(short)), ab)
