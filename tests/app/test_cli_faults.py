"""What nobody foresaw or should have typed, and limits of the system: one sentence each, and where the details lie."""

import os
import shutil
import subprocess
import sys

import pytest
from command_line import asrscope, command, refused
from sample_session import write_sample

from app.cli import main, presets
from profiler.files import paths
from profiler.process import children, limits
from tests.waiting import PATIENCE_S

LONG = "x" * 100_000
EXPORTS = ("--csv", "--chrome-trace", "--speedscope", "--markdown", "--png")


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("faults") / "s.asrs", frames=512)


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """A verb with a fault; returns the folder of reports."""

    def run(arguments: object) -> int:
        raise ZeroDivisionError("division by\x1b[2J zero\nand more")

    monkeypatch.setattr(presets, "run", run)
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / main.FOLDER


def test_a_fault_is_one_sentence_and_its_details_are_kept(broken, capsys):
    assert main.main(["presets"]) == main.FAULT
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.isprintable()
    (report,) = broken.iterdir()
    assert str(report) in line
    assert "ZeroDivisionError" in line
    text = report.read_text()
    assert "Traceback (most recent call last)" in text
    assert "command: presets" in text
    if sys.platform != "win32":
        assert report.stat().st_mode & 0o777 == 0o600
    for _ in range(main.KEPT + 5):
        main.main(["presets"])
    assert len(list(broken.iterdir())) == main.KEPT


def test_debug_shows_the_traceback(broken, capsys):
    assert main.main(["presets", "--debug"]) == main.FAULT
    assert "Traceback" in capsys.readouterr().err
    assert not broken.exists()


def test_where_no_report_can_be_kept_it_is_said(broken, monkeypatch, capsys):
    def nowhere(**_: object) -> tuple[int, str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(main.tempfile, "mkstemp", nowhere)
    assert main.main(["presets"]) == main.FAULT
    assert "--debug" in capsys.readouterr().err


def test_an_error_of_the_system_names_its_file(monkeypatch, capsys):
    for problem, said in (
        (OSError(28, "No space left on device", "out\x07.asrs"), "out\\x07.asrs: no space left"),
        (OSError(28, "No space left on device"), f"No space left on device (the cache folder {paths.cache_dir()} has "),
        (OSError(5, "Input/output error"), "System error: input/output error."),
        (OSError("The cache folder cannot be made."), "The cache folder cannot be made."),
        (MemoryError(), "memory"),
    ):

        def run(arguments: object, problem: Exception = problem) -> int:
            raise problem

        monkeypatch.setattr(presets, "run", run)
        assert main.main(["presets"]) == main.USAGE_ERROR
        error = capsys.readouterr().err
        assert said in error
        assert "Errno" not in error


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "--repeat", "²"], "--repeat must be a whole number from 1"),
        (["run", "--repeat", "9" * 5000], "--repeat must be a whole number from 1"),
        (["run", "--repeat"], "--repeat"),
        (["calibrate", "--threads", "٣"], "--threads must be a whole number"),
        (["calibrate", "--threads", "99999"], "--threads must be 1 to"),
        (["calibrate", "--png", "ladder.jpg"], "ends in .png"),
        (["run", "--preset", LONG], "no preset called"),
        (["run", "--set", LONG], "--set must be key=value"),
        (["run", "--set", f"{LONG}=1"], "no setting called"),
        (["run", "--set", "search.beam=nan"], "search.beam must be"),
        (["run", "--set", "block=" + "9" * 5000], "block must be"),
        (["run", "--set", "gmm.selection.enabled=maybe"], "gmm.selection.enabled must be"),
        (["run", "--audio", LONG], "xxx"),
        (["run", "--preset", "gmm", "--config", "x"], "--config"),
        (["show", LONG], "xxx"),
        (["show"], "SESSION"),
        ([f"--{LONG}"], "xxx"),
        (["bench", LONG], "bench must be one of"),
        (["export", "nowhere.asrs", "--csv", "x.csv"], "nowhere.asrs"),
        (["export", "nowhere.asrs"], "--png"),
        (["ab", "--a", "nonsense=1"], "no setting called 'nonsense'"),
        (["ab", "--b", "pace=2"], "pace only says when a run waits or ends"),
        (["ab", "--session", "nowhere.asrs"], "nowhere.asrs"),
        (["ab", "--session", "a.asrs", "--preset", "gmm"], "--session brings its own settings"),
        (["ab", "--session", "a.asrs", "b.asrs", "c.asrs"], "not 3 files"),
        (["ab", "--until-decided", "0"], "--until-decided"),
        (["compare", "nowhere.asrs"], "nowhere.asrs"),
    ],
)  # fmt: skip
def test_bad_words_get_one_short_sentence(words, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = refused(*words)
    assert says in line
    assert len(line) < 1100
    assert line.isprintable()
    for vague in ("Errno", "invalid literal", "math domain", "could not convert", "codec can't"):
        assert vague not in line
    assert not list(tmp_path.rglob("*.asrs"))


@pytest.mark.parametrize(
    "words",
    [
        ["--png", "a.png", "--size", "²x³"],
        ["--png", "a.png", "--size", "9" * 5000 + "x1"],
        ["--png", "a.png", "--size", LONG],
        ["--png", "a.jpg"],
        ["--png", "-"],
        ["--png", "a.png", "--view", LONG],
        ["--png", "no/such/folder/a.png"],
        ["--csv", "a", "--chrome-trace", "a"],
        ["--csv", "-", "--speedscope", "-"],
        ["--csv", LONG],
        ["--theme", "pink"],
        *(["--scale", f"search{factor}"] for factor in ("", "=x", "=nan", "=-1", "=" + "9" * 5000)),
        ["--scale", LONG],
    ],
)
def test_bad_exports_and_factors_get_one_short_sentence(words, session):
    line = refused("whatif" if words[0] == "--scale" else "export", session, *words)
    assert len(line) < 1100
    assert line.isprintable()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("NUM_THREADS", "0", "NUMBA_NUM_THREADS must be a whole number from 1"),
        ("DISABLE_JIT", "1", "NUMBA_DISABLE_JIT is set"),
        ("DISABLE_JIT", "yes", ""),
    ],
)
def test_what_numba_reads_is_looked_at_first(name, value, says):
    done = asrscope("presets", **{f"NUMBA_{name}": value})
    assert (done.returncode, len(done.stderr.splitlines())) == ((main.USAGE_ERROR, 1) if says else (0, 0))
    assert says in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot go")
def test_a_current_folder_that_is_gone(tmp_path, session):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'cd "$0" && rmdir "$0" && exec "$@"'
    for words in (["show", session], ["show", "relative.asrs"]):
        line = ["sh", "-c", script, str(gone), *command(*words)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        gone.mkdir(exist_ok=True)
        assert done.returncode in (0, main.USAGE_ERROR), done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX links and pipes")
def test_run_records_over_nothing_but_a_session(capsys, tmp_path, bundled_speech, session):
    victim = tmp_path / "victim.asrs"
    victim.write_bytes(session.read_bytes())
    (tmp_path / "link.asrs").symlink_to(victim)
    (tmp_path / "dangling.asrs").symlink_to(tmp_path / "nowhere.asrs")
    (tmp_path / "text.asrs").write_text("not a session")
    os.mkfifo(tmp_path / "pipe.asrs")
    before = {p.name: p.lstat().st_ino for p in tmp_path.iterdir()}
    short = bundled_speech / "08-kal16-short.flac"
    for name in ("link.asrs", "dangling.asrs", "text.asrs", "pipe.asrs", "/dev/null", "."):
        refused("run", "--preset", "gmm-quick", "--audio", short, "--out", tmp_path / name)
    assert {p.name: p.lstat().st_ino for p in tmp_path.iterdir()} == before
    assert victim.read_bytes() == session.read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX links and pipes")
@pytest.mark.parametrize("option", EXPORTS)
def test_exports_take_the_place_of_plain_files_only(option, session, tmp_path, capsys):
    suffix = ".png" if option == "--png" else ""
    source, victim = tmp_path / f"s.asrs{suffix}", tmp_path / "victim"
    source.write_bytes(session.read_bytes())
    victim.write_text("precious")
    (tmp_path / f"hard{suffix}").hardlink_to(source)
    (tmp_path / f"link{suffix}").symlink_to(victim)
    (tmp_path / f"dangling{suffix}").symlink_to("nowhere")
    (tmp_path / f"device{suffix}").symlink_to("/dev/null")
    os.mkfifo(tmp_path / f"pipe{suffix}")
    before = {path.name: path.lstat() for path in tmp_path.iterdir()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("profiler.files.outputs.READER_SECONDS", 0.1)
        for path in sorted(tmp_path.iterdir()):
            if path != victim:
                words = ["export", str(source), option, str(path), "--view", "cost"]
                assert main.main(words) == main.USAGE_ERROR, path
                assert len(capsys.readouterr().err.splitlines()) == 1
    for name, was in before.items():
        now = (tmp_path / name).lstat()
        assert (now.st_ino, now.st_mode, now.st_size) == (was.st_ino, was.st_mode, was.st_size)
    assert victim.read_text() == "precious"
    assert source.read_bytes() == session.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX links")
@pytest.mark.parametrize("option", EXPORTS)
def test_a_draft_that_was_foreseen_is_not_written_through(option, session, tmp_path):
    """By the names of the drafts that earlier versions made."""
    victim, out = tmp_path / "victim", tmp_path / "a.png"
    victim.write_text("precious")
    for name in (f".a.png.{os.getpid()}", f"a.png.{os.getpid()}.tmp", ".a.png", "a.png.tmp"):
        (tmp_path / name).symlink_to(victim)
    assert main.main(["export", str(session), option, str(out), "--view", "cost"]) == 0
    assert victim.read_text() == "precious"
    assert out.is_file()
    assert not out.is_symlink()


def test_pictures_need_no_display_whatever_the_environment_names(session, tmp_path):
    out, nobody = tmp_path / "a.png", str(tmp_path / "socket")
    done = asrscope("export", session, "--png", out, "--view", "cost", QT_QPA_PLATFORM="xcb", DISPLAY=nobody)
    assert done.returncode == 0, done.stderr
    assert out.stat().st_size > 1000


def test_the_sentence_of_every_usage_error_names_the_help():
    assert "`asrscope run --help`" in refused("run", "--nonsense")
    assert "`asrscope run --help`" in refused("run", "--repeat", "x")
    assert "`asrscope --help`" in refused("--nonsense")
    assert "`asrscope --help`" in refused("--")


def ended(*command: str) -> subprocess.CompletedProcess[str]:
    own = children.environment()
    return subprocess.run(command, env=own, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="there is no prlimit")
@pytest.mark.parametrize(
    ("limit", "says"),
    [
        (f"--as={600 << 20}", "address space of this process is limited to 629 MB"),
        (f"--stack={64 << 10}", "stack of this process is limited to 66 kB"),
    ],
)
def test_too_little_of_it_is_one_sentence(limit, says):
    words = ("run", "--preset", "gmm-quick", "--audio", "none.wav")
    done = ended("prlimit", limit, *children.python("-m", "app.cli.main"), *words)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("asrscope: ")
    assert says in line
    assert "needs" in line


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of threads there")
def test_too_few_threads_are_counted():
    """In a child: the limit is the user's, and root has none."""
    code = (
        "import threading, os, resource, sys, profiler.process.limits, profiler.errors\n"
        "os.setuid(65534) if not os.getuid() else None\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (3, 3))\n"
        "from profiler.process import limits\n"
        "from profiler.errors import BadInput\n"
        "try:\n    limits.check()\nexcept BadInput as problem:\n    print(problem)\n"
    )
    printed = ended(sys.executable, "-P", "-c", code).stdout
    for says in ("threads can be started", f"needs {limits.threads_needed()}", "ulimit -u, now 3"):
        assert says in printed


def test_what_was_short_is_found_behind_other_errors():
    def behind(problem: Exception) -> Exception:
        other = ValueError("something else")
        other.__cause__ = problem
        return other

    for problem, says in (
        (MemoryError("Unable to allocate 3.2 GiB"), "enough memory: Unable to allocate 3.2 GiB."),
        (OSError(12, os.strerror(12)), "enough memory"),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), "libtorch_cpu"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"), "enough memory"),
        (RuntimeError("can't start new thread"), "No further thread"),
    ):
        assert says in limits.shortage(behind(problem))
    assert limits.shortage(behind(RuntimeError("shape"))) is None
    assert limits.shortage(OSError(28, "No space left on device")) is None
