"""Runs attacks: each command in a process forked from a warm one, watched from outside.

What counts as a finding: an exit status other than 0 or 2, a traceback, a sentence longer than a person reads,
control characters on a stream, more than 20 s or 1.5 GB, a file made or changed outside the attack's own folders,
and a canary (a module planted in the current folder) that was imported.
"""

import contextlib
import faulthandler
import functools
import importlib
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, NamedTuple

import psutil

from app.cli.main import main, verbs
from profiler.process import children
from tests.bench.campaign.attack import OUTPUT_BYTES, SPEECH, STDIN, Attack, no_json, nothing

COMPILED: Final = ("model=ptm", "model=continuous", "model=dnn", "search.lattice=true")
"""The kernels of these runs are compiled before the first attack."""
SECONDS: Final = 20.0
MEMORY_BYTES: Final = 1_500_000_000
LONGEST_LINE: Final = 1_000  # characters of one line of standard error: a sentence, with a path or two in it
PLANTED: Final = ("json", "pipelines", "profiler", "numba", "sitecustomize", "queue", "random")
"""Modules that lie in every attack's current folder; importing one writes PWNED."""
FRESH: Final = ("PYTHON", "LANG", "LC_", "NUMBA_", "HOME", "PATH", "LD_", "OMP_", "QT_", "TZ")
"""Variables that act when a process starts: such an attack gets a process of its own, not a fork."""
CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]")
TRACEBACK: Final = b"Traceback (most recent call last)"
FAULT: Final = b"fault of the program"


class Limits(NamedTuple):
    """What a command may take, whether it may end with status 1, and when it is interrupted."""

    seconds: float = SECONDS
    bytes: int = MEMORY_BYTES
    may_fail: bool = False
    stop_s: float | None = None


USUAL: Final = Limits()


class Ended(NamedTuple):
    status: int | None  # Exit status, negative for a signal, None when it ran out of time or memory
    seconds: float
    bytes: int  # Resident at most, beyond what this process had when it forked
    out: bytes
    err: bytes


@dataclass
class Tally:
    attacks: int = 0
    commands: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    largest_bytes: int = 0
    findings: list[str] = field(default_factory=list)


class Driver:
    """Runs attacks below `place`, with a cache and a folder of sessions there. Call `warm` first: what it imports,
    every forked process finds ready; `fill` makes what a first run keeps."""

    def __init__(self, place: Path, seconds: float = SECONDS, cache: Path | None = None) -> None:
        self._place, self._seconds = place, seconds
        for name, folder in (("ASRSCOPE_CACHE", cache or place / "cache"), ("ASRSCOPE_SESSIONS", place / "sessions")):
            folder.mkdir(parents=True, exist_ok=True)
            os.environ[name] = str(folder)
        os.environ["QT_QPA_PLATFORM"] = "offscreen"

    def fill(self, sound: Iterable[Attack] = ()) -> None:
        """Have the cache hold the graph of the smallest preset and the kernels: compiling them is no attack's doing."""
        words = ("run", "--preset", "gmm-quick", "--no-profile", "--audio", SPEECH, "--set")
        shipped = (Attack(setting, nothing, ((*words, setting),)) for setting in COMPILED)
        for attack in (*shipped, *sound):
            with tempfile.TemporaryDirectory(dir=self._place) as folder:
                attack.make(Path(folder))
                ended = forked(functools.partial(_main, attack.commands[0], {}), Path(folder), Limits(600.0))
            if ended.status:
                raise RuntimeError(f"no run without an attack: {ended.err.decode()}")

    def run(self, attacks: Iterable[Attack], keep: Path | None = None) -> Tally:
        tally = Tally()
        for attack in attacks:
            tally.attacks += 1
            with tempfile.TemporaryDirectory(dir=self._place, prefix="attack-") as made:
                base = Path(made)
                findings = self._one(attack, base, tally)
                if keep is not None and findings:
                    keep.mkdir(parents=True, exist_ok=True)
                    with contextlib.suppress(OSError, shutil.Error):
                        shutil.copytree(base, keep / base.name, symlinks=True)
            tally.findings += [f"{attack.name} · {finding}" for finding in findings]
        return tally

    def _one(self, attack: Attack, base: Path, tally: Tally) -> list[str]:
        here, outside = base / "here", base / "outside"
        here.mkdir()
        outside.mkdir()
        (outside / "canary.txt").write_text("sing")
        attack.make(here)
        for file in (here / f"{name}.py" for name in PLANTED):
            if not file.exists() and not file.is_symlink():
                file.write_text(f"open({str(here / 'PWNED')!r}, 'w').write(__name__)\n")
        before, findings, outputs = footprint(outside), [], []
        largest = max(MEMORY_BYTES, attack.memory_bytes)
        limits = Limits(self._seconds * attack.patience, largest, attack.may_fail, attack.stop_s)
        environment = {name: value.replace("FOLDER", str(here)) for name, value in attack.environment.items()}
        run = _started if any(name.startswith(FRESH) for name in environment) else _main
        for words in (*attack.commands, *([("window", attack.window)] if attack.window else [])):
            work = _look if words[0] == "window" else run
            ended = forked(functools.partial(work, words, environment), here, limits)
            tally.commands += 1
            tally.refused += ended.status == 2
            tally.slowest_s = max(tally.slowest_s, ended.seconds)
            tally.largest_bytes = max(tally.largest_bytes, ended.bytes)
            found = faults(ended, limits)
            if ended.status == 0:
                outputs.append(ended.out)
                found += filter(None, [no_json(ended.out) if "--json" in words else None])
            findings += [f"{' '.join(words)[:600]!r} · {fault}" for fault in found]
        checked = attack.check and len(outputs) == len(attack.commands) and attack.check(outputs)
        ran, changed = (here / "PWNED").exists(), footprint(outside) != before
        wrong = (checked, ran and "code of the attack ran", changed and "files outside its folder changed")
        return [*findings, *filter(None, wrong)]


def warm() -> None:
    """Import in this process what the commands will, but start no thread: forks inherit none; and no core files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for module in ("pipelines.run.session_run", "pipelines.run.recogniser", "pipelines.worker"):
        importlib.import_module(module)
    importlib.import_module(f"{__package__}.desk")  # brings Qt and the views
    verbs()


def footprint(folder: Path) -> list[tuple[str, int, int, bytes]]:
    """Names, inodes, sizes and contents below `folder`."""
    found = []
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found.append((str(path), path.lstat().st_ino, path.lstat().st_size, content))
    return found


def faults(ended: Ended, limits: Limits = USUAL) -> list[str]:
    status, both, said = ended.status, ended.err + ended.out, ended.err.decode("utf-8", "replace")
    last = (said.strip().splitlines()[-1:] or [""])[0][:300]
    allowed = {None, 0, 2, *([1] if limits.may_fail else []), *([130, -signal.SIGINT] if limits.stop_s else [])}
    took = status is not None  # by itself
    how = f"signal {-status}" if status is not None and status < 0 else f"status {status}"
    checks = (
        (not took, f"killed after {ended.seconds:.0f} s with {ended.bytes / 1e6:.0f} MB"),
        (status not in allowed, f"{how}: {last}"),
        (TRACEBACK in both or FAULT in ended.err, f"traceback: {last}"),
        (took and ended.seconds > limits.seconds, f"took {ended.seconds:.0f} s"),
        (took and ended.bytes > limits.bytes, f"took {ended.bytes / 1e6:.0f} MB"),
        (any(len(line) > LONGEST_LINE for line in said.splitlines()), "a sentence of over 1,000 characters"),
        (CONTROL.search(ended.err) or CONTROL.search(ended.out), "control characters on a stream"),
        (status == 2 and not said.strip(), "refused without a sentence"),
    )
    return [fault for holds, fault in checks if holds]


def _main(words: Sequence[str], environment: Mapping[str, str]) -> int:
    os.environ.update(environment)
    return main(list(words))


def _started(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """In a process of its own, whose start the environment changes."""
    command = [*children.python("-m", "app.cli.main"), *words]
    os.execve(command[0], command, children.environment(environment))


def _look(words: Sequence[str], environment: Mapping[str, str]) -> int:
    from tests.bench.campaign.desk import look_at

    os.environ.update(environment)
    look_at(Path(words[1]).absolute(), own="XDG_CONFIG_HOME" in environment)
    return 0


def forked(work: Callable[[], int], here: Path, limits: Limits = USUAL) -> Ended:
    """Run `work` in a fork of this process, with `here` as its current folder."""
    streams = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]  # noqa: SIM115, read after the end
    start, shared = time.monotonic(), psutil.Process().memory_info().rss
    child = os.fork()
    if not child:
        status = 70
        try:
            os.setsid()
            os.chdir(here)
            if (here / STDIN).exists():  # an end only when the command had time to answer
                feeder = subprocess.Popen(("sh", "-c", f"cat {STDIN}; sleep 5"), stdout=subprocess.PIPE)
                os.dup2(feeder.stdout.fileno() if feeder.stdout else 0, 0)
            else:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, (name, stream) in enumerate(zip(("stdout", "stderr"), streams, strict=True), 1):
                os.dup2(stream.fileno(), number)
                setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
            faulthandler.enable(sys.stderr)
            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, signal.default_int_handler)
            try:
                status = work() or 0
            except SystemExit as stop:
                status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            except BaseException:  # whatever it is, a child must not go on as its parent
                traceback.print_exc()
                status = 1
            for written in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    written.flush()
        finally:
            os._exit(status & 0xFF)
    return _watch(child, streams, start, limits, shared)


def _watch(child: int, streams: Sequence[IO[bytes]], start: float, limits: Limits, shared: int) -> Ended:
    """Wait for the child, end it and all of its own when it passes a limit."""
    largest, status, usage = 0, None, None
    stops = [limits.stop_s, limits.stop_s + 3.0] if limits.stop_s else []
    try:
        with open(os.pidfd_open(child), "rb", buffering=0) as ended:
            while not (ready := select.select([ended], [], [], 0.1)[0]):
                largest, passed = max(largest, resident(child) - shared), time.monotonic() - start
                if stops and passed > stops[0]:
                    stops.pop(0)
                    os.kill(child, signal.SIGINT)
                if passed > limits.seconds or largest > limits.bytes:
                    break
            if ready:
                _, raw, usage = os.wait4(child, 0)
                status = os.waitstatus_to_exitcode(raw)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        if usage is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            _, _, usage = os.wait4(child, 0)
    contents = []
    for stream in streams:
        with stream:
            stream.seek(0)
            contents.append(stream.read(OUTPUT_BYTES))
    largest = max(largest, usage.ru_maxrss * 1024 - shared)
    return Ended(status, time.monotonic() - start, largest, *contents)


def resident(process: int) -> int:
    """Bytes that the largest of the process and its descendants holds."""
    largest = 0
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(process)
        for one in (top, *top.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                largest = max(largest, one.memory_info().rss)
    return largest
