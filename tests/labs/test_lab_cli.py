"""`asrscope lab`: the list, one lab, what it refuses, its session shown and exported; its processes end with it."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from app.cli import lab as verb
from app.cli.main import main
from pipelines import labs
from pipelines.labs import record
from pipelines.labs.gradient_noise import GradientNoiseResult
from profiler.process import children
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.pipelines.workers_in_threads import labelled_shard
from tests.waiting import PATIENCE_S, wait_until

NAME = "gradient-noise"
SMALL = {"frames": 64, "largest": 8, "draws": 8}
SET_SMALL = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]


@pytest.fixture(autouse=True)
def own_sessions(monkeypatch, tmp_path):
    monkeypatch.setenv("ASRSCOPE_SESSIONS", str(tmp_path / "sessions"))


def run_cli(capsys, *words):
    """Status, what stands on standard output, and on standard error."""
    status = main(list(words))
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def session(tmp_path):
    path = tmp_path / f"{NAME}.asrs"
    lab = labs.load(NAME)
    found = GradientNoiseResult(
        frames=64, sizes=[1, 4, 16], drawn=[[1.0, 1.1], [0.5, 0.55], [0.25, 0.28]], running=[[1.0, 1.1]] * 3
    )
    fact = record.stored(NAME, lab.parameters, found, lab.judge(found))
    SessionWriter(path, Recorder(), {record.KEY: fact}).close()
    return path


def test_the_list_has_every_lab_and_one_lab_its_parameters(capsys):
    status, out, _ = run_cli(capsys, "lab", "--json")
    assert status == 0
    assert {row["name"] for row in json.loads(out)["labs"]} == set(labs.names())
    assert all(row["source"].startswith(("note ", "CTC nets")) for row in json.loads(out)["labs"])
    _, text, _ = run_cli(capsys, "lab")
    assert "Caches and frameworks" in text
    assert "(Bocchieri 1993)" in text
    assert "note" not in text, "nobody has the notes"
    status, out, _ = run_cli(capsys, "lab", NAME, "--parameters", "--json")
    assert status == 0
    keys = {row["key"]: row["default"] for row in json.loads(out)["parameters"]}
    assert keys["draws"] == labs.load(NAME).parameters.draws


def test_one_lab_is_run_and_said(capsys, tmp_path):
    out_file = tmp_path / "a.asrs"
    status, out, err = run_cli(capsys, "lab", NAME, *SET_SMALL, "--json", "--out", str(out_file))
    assert status == 0, err
    (row,) = json.loads(out)["labs"]
    assert (row["name"], row["session"], row["state"]) == (NAME, str(out_file), "closed")
    assert row["verdict"]
    assert row["why"]
    assert row["said"][0]["value"] == -0.5
    _, out, _ = run_cli(capsys, "show", str(out_file))
    assert f"{NAME}: {labs.load(NAME).claim} (Dive into Deep Learning, § 12.5)" in out
    assert f"claimed -0.5, here {row['figures']['slope']:.3g}" in out
    assert "note" not in out
    _, out, _ = run_cli(capsys, "show", str(out_file), "--json")
    assert json.loads(out)["lab"]["figures"] == row["figures"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gradient-nois"], "did you mean gradient-noise?"),
        ([NAME, "--set", "frames=3"], "frames must be a whole number from 64 to 8192"),
        ([NAME, "--set", "frame=64"], "one of frames, largest, draws"),
        ([NAME, "--all"], "not allowed with"),
        (["--set", "n=3"], "for one lab"),
        (["--docs", "docs"], "--sessions FOLDER"),
        ([NAME, "--docs", "docs"], "for all labs"),
        (["matrix-orders", "--set", "largest=16384", "--out", "no/such/folder/a.asrs"], "no/such"),
    ],
)
def test_what_does_not_fit_is_one_sentence(words, message, capsys):
    status, out, err = run_cli(capsys, "lab", *words)
    assert (status, out) == (2, "")
    assert message in err.replace("\n", " ")


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_its_session_is_drawn_as_its_card(kind, session, capsys, tmp_path):
    out = tmp_path / f"a.{kind}"
    status, _, err = run_cli(capsys, "export", str(session), f"--{kind}", str(out), "--size", "900x500")
    assert status == 0, err
    again = tmp_path / f"b.{kind}"
    run_cli(capsys, "export", str(session), f"--{kind}", str(again), "--size", "900x500")
    # A PDF has the time at which it was written; what it shows is compared in the tests of pictures.
    assert kind == "pdf" or out.read_bytes() == again.read_bytes()
    if kind == "svg":
        text = out.read_text(encoding="utf-8")
        assert labs.load(NAME).claim in text
        assert "frames=2048" in text


@pytest.mark.slow
def test_a_page_is_made_of_sessions(session, capsys, tmp_path):
    folder = tmp_path / "docs"
    status, out, err = run_cli(capsys, "lab", "--sessions", str(session.parent), "--docs", str(folder))
    assert status == 0, err
    assert out.strip() == str(folder / "lab.md")
    text = (folder / "lab.md").read_text(encoding="utf-8")
    lab = labs.load(NAME)
    assert lab.claim in text
    assert "| slope over log b | -0.5 | " in text
    assert " From Dive into Deep Learning, § 12.5; `asrscope lab gradient-noise`." in text
    assert "note" not in text
    for theme in ("light", "dark"):
        assert f"lab/{NAME}-{theme}.png" in text
        assert (folder / "lab" / f"{NAME}-{theme}.png").read_bytes()[:4] == b"\x89PNG"
    status, _, err = run_cli(capsys, "lab", "--sessions", str(folder), "--docs", str(folder))
    assert status == 2
    assert "holds no session of a lab" in err


ASYNC = "asynchronous-sgd"
ENDLESS = {"batch": 4, "accumulate": 2, "batches": 16, "rounds": 100}
PATCHED = """
import sys
from pathlib import Path
from pipelines.labs import _training
folder, *words = sys.argv[1:]
_training.data = lambda desk: Path(folder)
"""
WINDOW = """
from pipelines import worker
from pipelines.labs.__main__ import LabWorker
raise SystemExit(worker.main(LabWorker))
"""
COMMAND = """
from app.cli.main import main
raise SystemExit(main(words))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled_shard(tmp_path_factory.mktemp("data"))


def process(*words: str, **more: bool) -> subprocess.Popen[str]:
    return subprocess.Popen(
        children.python(*words),
        env=children.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **more,
    )


def started(folder: Path, code: str, *words: str) -> subprocess.Popen[str]:
    """The lab as a process of its own, as a terminal starts it: in a group of processes that Ctrl+C would reach."""
    return process("-c", PATCHED + code, str(folder), *words, start_new_session=True)


def training(lab: subprocess.Popen[str]) -> list[psutil.Process]:
    """Torchrun, the server and two workers, once they are there and train; all that the lab has started by then."""
    found: list[psutil.Process] = []

    def there() -> bool:
        assert lab.poll() is None
        found[:] = psutil.Process(lab.pid).children(recursive=True)
        # A worker that has loaded torch holds more than a Python that has only begun.
        return sum(p.is_running() and p.memory_info().rss > 100 << 20 for p in found) >= 4

    wait_until(there)
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize("ending", ["the window closes", "killed", "Ctrl+C"])
def test_no_worker_outlives_a_lab(folder, tmp_path, ending):
    out = tmp_path / "a.asrs"
    if ending == "Ctrl+C":
        words = [word for k, v in ENDLESS.items() for word in ("--set", f"{k}={v}")]
        lab = started(folder, COMMAND, "lab", ASYNC, *words, "--out", str(out), "--json")
    else:
        lab = started(folder, WINDOW)
        start = {"do": "start", "preset": ASYNC, "config": ENDLESS, "out": str(out)}
        lab.stdin.write(json.dumps(start) + "\n")
        lab.stdin.flush()
    family: list[psutil.Process] = []
    try:
        family += training(lab)
        if ending == "Ctrl+C":
            os.killpg(lab.pid, signal.SIGINT)
        elif ending == "killed":
            lab.kill()
        said, _ = lab.communicate(timeout=PATIENCE_S)
        wait_until(lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in family))
    finally:
        for process in (*family, lab):
            with suppress(psutil.Error):
                process.kill()
        lab.communicate()
    if ending == "Ctrl+C":
        assert lab.returncode == 130
        assert json.loads(said)["labs"][0]["state"] == "stopped"
    elif ending == "the window closes":
        assert lab.returncode == 0
        assert json.loads(said.splitlines()[-1])["state"] == "stopped"


def test_the_window_starts_a_lab_and_hears_of_it(tmp_path):
    out = tmp_path / "a.asrs"
    child = process("-m", "pipelines.labs")

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
    row, *ended = verb.in_a_process([NAME, *SET_SMALL, "--out", str(tmp_path / "a.asrs")], said.append, lambda: False)
    assert ended == [0, ""]
    assert (row["name"], row["state"]) == (NAME, "closed")
    assert "hearing frames through two nets" in said


def test_a_lab_apart_says_why_it_cannot_be_and_is_stopped():
    row, status, why = verb.in_a_process(["nothing"], lambda line: None, lambda: False)
    assert (row, status) == (None, 2)
    assert why.startswith("There is no lab called 'nothing'")
    assert verb.in_a_process([NAME], lambda line: None, lambda: True)[1] != 0


def test_all_go_on_where_one_fails(monkeypatch, capsys, tmp_path):
    ran = []

    def apart(words, progress, stopping):
        ran.append(words)
        if words[0] == "call-costs":
            return None, -11, "it was ended by signal SIGSEGV."
        return {"name": words[0], "verdict": "holds here", "why": "So."}, 0, ""

    monkeypatch.setattr(verb, "in_a_process", apart)
    folder = tmp_path / "sessions"
    assert main(["lab", "--all", "--json", "--sessions", str(folder)]) == 2
    out, err = capsys.readouterr()
    rows = json.loads(out)["labs"]
    assert [row["name"] for row in rows] == list(labs.every())
    (failed,) = [row for row in rows if row["verdict"] is None]
    assert failed["why"] == "it was ended by signal SIGSEGV."
    assert "call-costs: it was ended" in err
    assert ran[0][-2:] == ["--out", str(folder / f"{ran[0][0]}.asrs")]
