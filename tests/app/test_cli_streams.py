"""Standard streams of every kind: other encodings, closed, full, unread; and nothing in them that steers a terminal."""

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from command_line import asrscope, command, here
from sample_session import write_sample

from app.cli import _output, main
from profiler.session.reader import Session
from tests.bench.campaign import sessions
from tests.waiting import PATIENCE_S

posix = pytest.mark.skipif(sys.platform == "win32", reason="shell redirections")
ODD = "a\x1b]0;title\x07\x9b2J\u202egnp.exe\udcff"
CONTROLS = [*range(9), *range(11, 32), 127, *range(128, 160), 0x202E]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("streams") / "größer-日本.asrs", frames=512)


@pytest.fixture
def odd(session, tmp_path):
    """The session under a name that would steer a terminal and is no UTF-8."""
    if sys.platform == "win32":
        pytest.skip("no such file names")
    path = tmp_path / f"{ODD}.asrs"
    shutil.copyfile(session, path)
    return path


def run_in_shell(shell: str, *words: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """What a shell gets of the verb with the redirections `shell`."""
    script = f'"$@" {shell}'
    return subprocess.run(
        ["bash", "-c", script, "bash", *command(*words)],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, **environment},
    )


def printed(encoding: str, monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> str:
    """What the command prints in this process, where standard output has an encoding."""
    taken = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(taken, encoding))
        assert main.main([str(word) for word in words]) == 0
        sys.stdout.flush()
        return taken.getvalue().decode(encoding)


@pytest.fixture(scope="module")
def full_session(tmp_path_factory):
    """A session with all that a run leaves in one."""
    path = tmp_path_factory.mktemp("streams") / "whole.asrs"
    path.write_bytes(sessions.full())
    return path


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8", "utf-16", "koi8-r"])
def test_reports_are_printed_in_any_encoding(encoding, session, monkeypatch, capsys):
    """In this process; below are reports of processes that the environment tells the encoding."""
    for words in (["show", session], ["compare", session, session], ["options"], ["presets"]):
        assert printed(encoding, monkeypatch, *words).count("\n") > 5
        assert capsys.readouterr().err == ""


def test_json_in_another_encoding_and_strict_locales_without_utf_8(session):
    done = run_in_shell("", "show", session, "--json", PYTHONIOENCODING="cp1252")
    assert json.loads(done.stdout.decode("cp1252"))["session"] == str(session)
    done = run_in_shell("", "show", session, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    done = run_in_shell("", "show", session, LC_ALL="xx_XX.nonsense")
    assert done.returncode == 0, done.stderr


@posix
def test_closed_streams(session):
    for shell, status, out in (("2>&-", 0, 100), ("<&- >&- 2>&-", 0, 0)):
        done = run_in_shell(shell, "show", session)
        assert done.returncode == status, shell
        assert len(done.stdout) >= out
        assert done.stderr == b""
    assert run_in_shell("2>&-", "show", "nowhere.asrs").returncode == main.USAGE_ERROR


@posix
def test_a_run_with_closed_streams_writes_its_session(bundled_speech, tmp_path):
    """No file of the run may get the number of a stream, to which libraries print."""
    short, out = bundled_speech / "08-kal16-short.flac", tmp_path / "s.asrs"
    done = run_in_shell("<&- >&- 2>&-", "run", "--preset", "gmm-quick", "--audio", short, "--out", out)
    assert done.returncode == 0
    with Session.open(out) as session:
        assert session.state == "closed"
        assert session.utterances[0].hypothesis == "yes of course"


@posix
@pytest.mark.parametrize("words", [["show"], ["export", "--chrome-trace", "-"]])
def test_nobody_reads_on(words, session):
    done = run_in_shell("| head -c 1; exit ${PIPESTATUS[0]}", words[0], session, *words[1:])
    assert done.returncode in (0, _output.BROKEN_PIPE)  # 0: all went into the pipe
    assert done.stderr == b""


@posix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("words", [["show"], ["export", "--csv", "-"]])
def test_a_full_disk_under_standard_output(words, session):
    done = run_in_shell("> /dev/full", words[0], session, *words[1:])
    assert done.returncode == main.USAGE_ERROR
    (line,) = done.stderr.decode().splitlines()
    assert "no space left on device" in line


@pytest.mark.parametrize(
    "words",
    [
        lambda odd: ["show", odd],
        lambda odd: ["whatif", odd, "--scale", f"{ODD}=0.5"],
        lambda odd: ["show", odd.with_name(ODD)],
        lambda odd: ["export", odd, "--csv", odd.with_name(f"{ODD}.csv")],
        lambda odd: ["confirm", odd, ODD],
        lambda odd: ["run", "--preset", ODD],
        lambda odd: ["run", "--set", ODD],
        lambda odd: ["run", "--config", odd],
        lambda odd: ["bench", ODD],
        lambda odd: ["run", f"--{ODD}"],
        lambda odd: ["show", odd, "--json"],
    ],
)
def test_nothing_printed_steers_a_terminal(words, odd, capfd):
    """In this process; what libraries print goes past Python's streams."""
    done = here(*words(odd))
    assert done.returncode in (0, main.USAGE_ERROR), done.stderr
    past = capfd.readouterr()
    for text in (done.stdout, done.stderr, past.out, past.err):
        assert not any(chr(code) in text for code in CONTROLS)
    assert len(done.stderr.splitlines()) == (1 if done.returncode else 0)


def test_stages_and_settings_of_strangers_do_not_steer_it(full_session, tmp_path, capsys):
    strange, odd = tmp_path / "strange.asrs", ODD.removesuffix("\udcff")
    shutil.copyfile(full_session, strange)
    with closing(sqlite3.connect(strange, isolation_level=None)) as connection:
        connection.execute("UPDATE stage SET name = name || ?", (odd,))
        connection.execute("UPDATE config SET tree = json_set(tree, '$.dnn.net', ?)", (odd,))
    for words in (
        ["show", strange],
        ["compare", strange, strange],
        ["compare", full_session, strange],
        ["whatif", strange, "--scale", "search=0.5"],
    ):
        assert main.main([str(word) for word in words]) == 0
        said = "".join(capsys.readouterr())
        assert "\\u202egnp.exe" in said
        assert not any(chr(code) in said for code in CONTROLS), words


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such file names")
def test_sound_whose_name_is_no_utf_8_is_run(bundled_speech, tmp_path):
    sound, out = tmp_path / f"{ODD}.flac", tmp_path / f"{ODD}.asrs"
    shutil.copyfile(bundled_speech / "08-kal16-short.flac", sound)
    done = run_in_shell("", "run", "--preset", "gmm-quick", "--audio", sound, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    tree = json.loads(done.stdout)
    assert tree["session"] == str(out)
    assert tree["utterances"][0]["hypothesis"] == "yes of course"
    assert "yes of course" in run_in_shell("", "show", out).stdout.decode()


def test_names_begin_no_line_and_progress_holds_nothing_that_steers(capsys):
    assert _output.page(["a\nasrscope: all is well", "b"]).split("\n") == ["a\\nasrscope: all is well", "b"]
    progress = _output.Progress()
    progress(f"reading {ODD}\r", 0.5)
    progress("x" * 10_000)
    first, second = capsys.readouterr().err.splitlines()
    assert first.isprintable()
    assert len(second) < 300


def test_on_a_terminal_progress_moves_in_one_line(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    with _output.printable_output(), _output.Progress() as progress:
        progress("measuring\r\x1b[2J", 0.5)
    assert terminal.getvalue().startswith("\rmeasuring\\r\\x1b[2J  50%\r")
    assert "\n" not in terminal.getvalue()


def test_exports_to_standard_output_hold_nothing_else(session, tmp_path):
    picture = tmp_path / "a.csv"
    done = run_in_shell("", "export", session, "--chrome-trace", "-", "--csv", picture)
    assert json.loads(done.stdout)["traceEvents"]
    assert done.stderr.decode().strip() == str(picture)


@pytest.mark.slow
def test_the_help_of_the_verbs_without_docstrings():
    complete = asrscope("--help").stdout
    done = asrscope("--help", PYTHONOPTIMIZE="2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == complete
    assert asrscope("show", "--help", PYTHONOPTIMIZE="2").stdout == asrscope("show", "--help").stdout
