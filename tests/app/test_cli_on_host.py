"""`asrscope run --on`, `record` and `tail`: a run on another machine is a run here in everything but times."""

import getpass
import json
import os
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from command_line import answer, asrscope, decoding, here, refused

import assets
from app.model.report import Tree
from profiler.process.children import ROOT
from profiler.remote import link
from profiler.remote.send import control_of, log_of
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.waiting import PATIENCE_S, wait_for_frames, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="named pipes of POSIX")

QUICK = ("--preset", "gmm-quick", "--set", "replay=0")
PACED = (*QUICK, "--set", "pace=1")
VARIABLES = ("ASRSCOPE_CACHE", "NUMBA_CACHE_DIR")


def script(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def there(tmp_path):
    """The home folder of the other machine, where asrscope is installed."""
    program = shlex.join([sys.executable, "-P", "-m", "app.cli.main"])
    own = shlex.join([f"PYTHONPATH={ROOT}", f"ASRSCOPE_SESSIONS={tmp_path / 'there'}"])
    kept = shlex.join(f"{name}={os.environ[name]}" for name in VARIABLES)
    script(tmp_path / "there" / "bin" / "asrscope", f'exec env {own} {kept} {program} "$@"')
    return tmp_path / "there"


@pytest.fixture
def host(there, tmp_path, monkeypatch):
    """An ssh that runs the command here, in that folder; the file of its arguments."""
    script(
        tmp_path / "bin" / "ssh",
        f'echo "$@" >> {tmp_path}/words',
        'while [ "$1" != -- ]; do shift; done',
        'shift 2',
        f"cd {shlex.quote(str(there))}",
        f'PATH={shlex.quote(str(there / "bin"))}:/usr/bin:/bin',
        f"[ -e {tmp_path}/drops ] && case $* in *tail*)",
        f"  sed -i 1d {tmp_path}/drops; [ -s {tmp_path}/drops ] || rm {tmp_path}/drops",
        '  exec timeout -s KILL 0.9 sh -c "$*";; esac',
        'exec sh -c "$*"',
    )  # fmt: skip
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path / "words"


@pytest.fixture
def sshd(there, tmp_path, monkeypatch):
    """A real server on a port of its own, and an ssh that knows it as "gpu"."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    client = shutil.which("ssh")
    if program is None or client is None:
        pytest.skip("no sshd here")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path / "sshd"
    folder.mkdir(mode=0o700)
    as_here = " ".join(f"{name}={value}" for name, value in os.environ.items() if name.startswith("OPENBLAS_"))
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        "StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nPermitRootLogin yes\n"
        f"SetEnv PATH={there}/bin:/usr/bin:/bin {as_here}\n"
    )
    (folder / "config").write_text(
        f"Host gpu\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n  IdentityFile {folder}/user\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known\n"
    )
    script(tmp_path / "bin" / "ssh", f'exec {client} -F {folder}/config "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with (folder / "said").open("wb") as said:
        server = subprocess.Popen([program, "-D", "-e", "-f", folder / "sshd_config"], stderr=said)
    try:
        wait_until(lambda: server.poll() is not None or b"listening" in (folder / "said").read_bytes())
        if server.poll() is not None:
            pytest.skip(f"sshd does not start: {(folder / 'said').read_text().strip()}")
        yield server
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """What a session here and its original have in common: all but who writes it."""
    with closing(sqlite3.connect(path)) as db:
        tables = "stage", "lane", "cost", "config", "utterance", "peaks", "marker", "counter", "calibration", "clock"
        found = {table: sorted(db.execute(f"SELECT * FROM {table}"), key=repr) for table in tables}
        found["meta"] = sorted(db.execute("SELECT * FROM meta WHERE key <> 'writer'"))
    with Session.open(path) as session:
        found["spans"] = [(session.spans.tobytes(),)]
        found["samples"] = [
            (name, *(values.tobytes() for values in session.samples(name))) for name in session.sample_names
        ]
    return found


def original(there: Path) -> Path:
    (path,) = there.glob("*.asrs")
    return path


def assert_same_as_here(out: Path, report: Tree, tmp_path: Path, *words: str) -> None:
    """The run that `report` is of equals one here in words, word errors, settings and counts."""
    home = answer("run", *QUICK, *words, "--out", tmp_path / "home.asrs")
    assert report["wer_errors"] == home["wer_errors"] > 0
    for tree in (home, report):
        # How often a search is interrupted, and partial words are looked up, depends on the time that they take.
        tree["stages"] = [stage for stage in tree["stages"] if stage["name"] != "search.backtrace"]
        for stage in tree["stages"]:
            stage["work"].pop("frames", None)
    for key in ("audio_s", "wer", "wer_words", "config", "machine"):
        assert report[key] == home[key], key
    for of, keys in {
        "utterances": ("id", "audio_s", "hypothesis", "reference", "wer", "complete", "notes"),
        "stages": ("name", "group", "lane", "flops", "work"),
    }.items():
        ours, theirs = ([[row[key] for key in keys] for row in tree[of]] for tree in (home, report))
        assert theirs == ours
    assert report["session"] == str(out)


@pytest.mark.slow
def test_a_run_there_is_a_run_here(host, there, tmp_path):
    out = tmp_path / "gpu.asrs"
    done = here("run", "--on", "gpu", *QUICK, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert "decoding" in done.stderr
    assert rows(out) == rows(original(there))
    assert_same_as_here(out, json.loads(done.stdout), tmp_path)
    assert not control_of(original(there)).exists()
    record, tail = host.read_text().splitlines()
    assert "-- gpu asrscope record --preset=gmm-quick --set=replay=0 --repeat=1" in record
    assert f"-- gpu asrscope tail {original(there)} --from" in tail


def test_a_run_over_ssh_is_a_run_here(sshd, there, tmp_path):
    out = tmp_path / "gpu.asrs"
    done = here("run", "--on", "gpu", *QUICK, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert rows(out) == rows(original(there))
    assert_same_as_here(out, json.loads(done.stdout), tmp_path)


@pytest.mark.slow
def test_ctrl_c_stops_the_run_there(host, there, tmp_path):
    out = tmp_path / "gpu.asrs"
    with decoding("run", "--on", "gpu", *PACED, "--out", out) as process:
        wait_for_frames(out)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGINT, stderr
    assert "Traceback" not in stderr
    with Session.open(out) as session:
        assert session.state == "stopped"
        assert len(session.spans)
    assert rows(out) == rows(original(there))


@pytest.mark.slow
def test_a_run_goes_on_without_its_link(host, there, tmp_path):
    out = tmp_path / "gpu.asrs"
    (tmp_path / "drops").write_text("\n" * 3)
    done = here("run", "--on", "gpu", *PACED, "--audio", *speech("08-kal16-short"), "--out", out)
    assert done.returncode == 0, done.stderr
    assert "the link to gpu dropped; trying again" in done.stderr
    assert host.read_text().count("asrscope tail") > 1  # how many depends on how fast the run is
    assert rows(out) == rows(original(there))


def speech(*names: str) -> list[str]:
    return [str(assets.path("speech", f"{name}.flac")) for name in names]


@pytest.mark.slow
def test_toggles_act_there_and_what_is_refused_is_said(host, there, tmp_path):
    out = tmp_path / "gpu.asrs"
    gpu, steering, messages = link.ssh("gpu"), link.Steering(), list[dict[str, object]]()
    started = link.record(gpu, list(PACED))
    following = link.Following(gpu, started.session, out, steering=steering, message=messages.append)
    thread = threading.Thread(target=following.run)
    thread.start()
    try:
        wait_until(out.exists)
        wait_for_frames(out)
        steering.send({"do": "set", "key": "frames.skip", "value": 2})
        steering.send({"do": "set", "key": "model", "value": "dnn"})
        steering.send({"do": "start", "config": {}})  # no command that steers
        steering.send({"do": "quit"})
        wait_until(lambda: any(message["event"] == "refused" for message in messages))
        with Session.open(out) as session:
            wait_until(lambda: session.refresh() and any(m.key == "frames.skip" for m in session.markers))
    finally:
        steering.stop()
        thread.join(PATIENCE_S)
    assert not [message for message in messages if message["event"] == "error"]
    with Session.open(out) as session:
        assert session.state == "stopped"
        assert [config.tree["frames"]["skip"] for config in session.configs] == [1, 2]
    assert rows(out) == rows(Path(started.session))


@pytest.mark.slow
def test_a_recorded_session_is_fetched_later(host, there, tmp_path):
    recorded = there / "mine.asrs"
    done = here("record", *QUICK, "--audio", *speech("08-kal16-short"), "--out", recorded, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["session"] == str(recorded)
    wait_until(lambda: not control_of(recorded).exists())
    assert '"state": "closed"' in log_of(recorded).read_text()
    out = tmp_path / "fetched.asrs"
    for _ in range(2):  # the second time all is there
        done = here("tail", recorded, "--on", "gpu", "--out", out, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["utterances"][0]["hypothesis"] == "yes of course"
        assert rows(out) == rows(recorded)


@pytest.mark.slow
def test_a_signal_ends_a_recording_process_in_order(tmp_path):
    recorded = tmp_path / "mine.asrs"
    pid = answer("record", *PACED, "--out", recorded)["pid"]
    wait_for_frames(recorded)
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not control_of(recorded).exists())
    with Session.open(recorded) as session:
        assert session.state == "stopped"


@pytest.mark.slow
def test_a_killed_run_is_a_crashed_session_here(host, there, tmp_path):
    out = tmp_path / "gpu.asrs"
    with decoding("run", "--on", "gpu", *PACED, "--out", out) as process:
        wait_for_frames(out)
        with Session.open(original(there)) as session:
            os.kill(session.meta["writer"]["pid"], signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    with Session.open(out) as session:
        assert session.state == "crashed"
        assert len(session.spans)


def test_what_is_wrong_there_is_said_here(host, there, tmp_path):
    run = ("run", "--on", "gpu", "--preset", "gmm-quick")
    assert "gpu: no-such.wav" in last(*run, "--audio", "no-such.wav")
    assert "gpu: There is no preset called 'x'" in last("run", "--on", "gpu", "--preset", "x")
    (there / "bin" / "asrscope").unlink()
    assert "gpu has no asrscope on the PATH of commands over ssh" in last(*run)
    script(tmp_path / "bin" / "ssh", "echo 'ssh: connect to host gpu port 22: No route to host' >&2; exit 255")
    assert "gpu cannot be reached: ssh: connect to host gpu port 22: No route to host." in last(*run)
    assert not list(tmp_path.glob("sessions/*"))


def last(*words: str) -> str:
    done = here(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_another_version_there_is_said_before_anything_runs(host, there, tmp_path):
    program = there / "bin" / "asrscope"
    program.write_text(program.read_text().replace('"$@"', '$(echo "$@" | sed s/protocol=1/protocol=9/)'))
    assert "gpu: asrscope" in last("run", "--on", "gpu", *QUICK)
    assert "install the same asrscope on both machines" in last("run", "--on", "gpu", *QUICK)
    assert not list(there.glob("*.asrs"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "--on=-oProxyCommand=x"), "--on takes a name that ssh knows"),
        (("run", "--on", "gpu", "--no-profile"), "work on this machine only"),
        (("run", "--on", "gpu", "--audio", "-"), "read on this machine"),
        (("run", "--on", "gpu", "--out", "/no/such/folder/x.asrs"), "the folder /no/such/folder does not exist"),
        (("tail", "x.asrs", "--on", "gpu"), "needs --out FILE.asrs"),
        (("tail", "x.asrs", "--out", "y.asrs"), "go with --on HOST"),
        (("tail", "x.asrs", "--from", "x"), "--from takes a position"),
        (("record", "--audio", "-"), "name a file"),
    ],
)
def test_bad_words_are_refused(words, sentence):
    assert sentence in refused(*words)


def test_tail_of_no_session_and_a_recording_over_one_are_refused(tmp_path):
    assert "there is no such file" in asrscope("tail", tmp_path / "no-such.asrs").stderr
    existing = tmp_path / "mine.asrs"
    SessionWriter(existing, Recorder(), {}).close()
    assert "a session of this name exists" in refused(
        "record", *QUICK, "--audio", *speech("08-kal16-short"), "--out", existing
    )
