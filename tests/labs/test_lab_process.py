"""Labs in processes of their own: as the window starts them, and as `asrscope lab --all` does."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing

import pytest

from app.cli import _apart
from app.cli.main import main
from pipelines import labs
from pipelines.labs import record
from profiler.process import children
from profiler.session.reader import Session

NAME = "gradient-noise"
SMALL = {"frames": 64, "largest": 8, "draws": 8}


def test_the_window_starts_a_lab_and_hears_of_it(tmp_path):
    """One process: a command that is none, a lab that is none, a lab, and the end."""
    out = tmp_path / "a.asrs"
    child = subprocess.Popen(
        children.python("-m", "pipelines.labs"),
        env=children.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def send(command):
        child.stdin.write(json.dumps(command) + "\n")
        child.stdin.flush()
        events = []
        while not events or events[-1]["event"] not in ("finished", "error"):
            events.append(json.loads(child.stdout.readline()))
        return events

    start = {"do": "start", "preset": NAME, "config": SMALL, "out": str(out)}
    assert send(start | {"config": []})[-1]["message"].startswith("Not a command")
    assert "no lab called 'nothing'" in send(start | {"preset": "nothing"})[-1]["message"]
    events = send(start)
    assert events[-1] == {"event": "finished", "session": str(out), "state": "closed"}
    assert {"running", "progress"} <= {event["event"] for event in events}
    child.stdin.write('{"do": "quit"}\n')
    child.stdin.close()
    assert child.wait() == 0
    child.stdout.close()
    with closing(Session.open(out)) as session:
        found = record.read(session.meta)
    assert found.parameters == type(found.parameters)(**SMALL)
    assert found.finding is not None


@pytest.mark.slow
def test_a_lab_apart_gives_its_row(tmp_path):
    said = []
    words = [NAME, *(word for k, v in SMALL.items() for word in ("--set", f"{k}={v}"))]
    ended = _apart.run([*words, "--out", str(tmp_path / "a.asrs")], said.append, lambda: False)
    assert (ended.status, ended.said) == (0, "")
    assert ended.row["name"] == NAME
    assert ended.row["state"] == "closed"
    assert "hearing frames through two nets" in said


def test_a_lab_apart_that_cannot_be_says_why():
    ended = _apart.run(["nothing"], lambda line: None, lambda: False)
    assert (ended.row, ended.status) == (None, 2)
    assert ended.said.startswith("There is no lab called 'nothing'")


def test_a_lab_apart_is_stopped():
    ended = _apart.run([NAME], lambda line: None, lambda: True)
    assert ended.status != 0


def test_all_go_on_where_one_fails(monkeypatch, capsys, tmp_path):
    ran = []

    def apart(words, progress, stopping):
        ran.append(words)
        if words[0] == "call-costs":
            return _apart.Ended(None, -11, "it was ended by signal SIGSEGV.")
        return _apart.Ended({"name": words[0], "verdict": "holds here", "why": "So."}, 0)

    monkeypatch.setattr(_apart, "run", apart)
    folder = tmp_path / "sessions"
    assert main(["lab", "--all", "--json", "--sessions", str(folder)]) == 2
    out, err = capsys.readouterr()
    rows = json.loads(out)["labs"]
    assert [row["name"] for row in rows] == list(labs.every())
    (failed,) = [row for row in rows if row["verdict"] is None]
    assert failed["why"] == "it was ended by signal SIGSEGV."
    assert "call-costs: it was ended" in err
    assert ran[0][-2:] == ["--out", str(folder / f"{ran[0][0]}.asrs")]
