"""The worker of runs on another machine: commands there, messages here; the machine is a folder of this one."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import assets
from pipelines import config as settings
from pipelines.config import presets
from pipelines.on_host import OnHost, words
from profiler.remote.link import Host
from profiler.session.reader import Session
from tests.waiting import wait_for_frames, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="named pipes of POSIX")


def start(out: Path, *assignments: str, preset: str = "gmm-quick", **more: object) -> dict[str, Any]:
    changes = dict(settings.parse_assignment(text) for text in assignments)
    config = settings.assign(presets.load(preset).config, changes)
    return {"do": "start", "config": settings.to_dict(config), "preset": preset, "audio": [], "out": str(out), **more}


def test_the_arguments_are_the_preset_and_what_differs(tmp_path: Path) -> None:
    command = start(tmp_path / "a.asrs", "block=8", "loop=false", audio=["/data/a b.wav"], transcripts="/data/t.tsv")
    config = settings.from_dict(command["config"], where="here")
    assert words(config, command) == [
        "--preset=gmm-quick",
        "--set=block=8",
        "--audio=/data/a b.wav",
        "--transcripts=/data/t.tsv",
    ]
    command = start(tmp_path / "a.asrs", "loop=true")
    assert "--set=loop=true" in words(settings.from_dict(command["config"], where="here"), command)


class Answers(io.StringIO):
    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.getvalue().splitlines()]
        return [event for event in lines if event["event"] == kind]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "asrscope"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m app.cli.main "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("ASRSCOPE_SESSIONS", str(tmp_path / "there"))
    monkeypatch.setenv("PYTHONPATH", str(Path(assets.__file__).parents[1]))
    return Host("gpu", ("env", f"PATH={tmp_path / 'bin'}:/usr/bin:/bin", "sh", "-c"))


def test_a_run_there_answers_like_one_here(host: Host, tmp_path: Path) -> None:
    answers, out = Answers(), tmp_path / "here.asrs"
    worker = OnHost(host, answers)
    worker._obey(start(out, "pace=1", "replay=0"))
    try:
        wait_until(lambda: bool(answers.events("running") or answers.events("error")))
        assert answers.events("running") == [{"event": "running", "session": str(out)}]
        wait_for_frames(out)
        for command in (
            {"do": "set", "key": "frames.skip", "value": 2},
            {"do": "mark", "text": "here"},
            {"do": "compare", "with": {"frames.skip": 1}},
            {"do": "compare", "with": None},
        ):
            worker._obey(command)
        with pytest.raises(settings.ConfigError, match="cannot change while a run goes on"):
            worker._obey({"do": "set", "key": "model", "value": "dnn"})
        with Session.open(out) as session:
            wait_until(lambda: session.refresh() and {"option", "user"} <= {marker.kind for marker in session.markers})
        worker._obey({"do": "stop"})
    finally:
        worker.end()
    assert answers.events("finished") == [{"event": "finished", "session": str(out), "state": "stopped"}]
    assert answers.events("error") == []
    assert {event["stage"] for event in answers.events("progress")} >= {"reaching gpu", "decoding"}


def test_what_is_wrong_there_is_an_error(host: Host, tmp_path: Path) -> None:
    answers, out = Answers(), tmp_path / "here.asrs"
    worker = OnHost(host, answers)
    worker._obey(start(out, audio=["/no/such.wav"]))
    worker.end()
    (error,) = answers.events("error")
    assert error["message"].startswith("gpu: /no/such.wav")
    assert answers.events("finished") == []
    assert not out.exists()
