"""What comes from elsewhere and is no model or sound: streams of other machines, studies, questions of assistants, and
what the window remembers.
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from profiler.process import children
from profiler.remote import send
from profiler.remote.wire import MAGIC, Position, Value, frame, frames
from tests.bench.campaign import mutate
from tests.bench.campaign.attack import SESSION, SPEECH, STDIN, Attack, Commands, Kind, no_json, session

# -- another machine -----------------------------------------------------------------------------

TAIL: Final = ("tail", "/there.asrs", "--on", "gpu", "--out", "here.asrs")
SHOW: Final = ("show", "here.asrs")
START: Final = ("run", "--on", "gpu", "--preset", "gmm-quick", "--out", "here.asrs")
SSH: Final = """#!{python} -IS
import os, signal, sys, time
data = open("stream", "rb").read()
def write(content):
    try:
        os.write(1, content) if len(content) < 4096 else open(1, "wb", closefd=False).write(content)
    except OSError:
        os._exit(255)
def end(status=0, said=""):
    sys.stderr.write(said + "\\n")
    sys.stderr.flush()
    os._exit(status)
def endless(content, descriptor=1):
    while True:
        os.write(descriptor, content)
def child(own):
    if not os.fork():
        own and os.setsid()
        time.sleep(120)
        os._exit(0)
if " record " in sys.argv[-1]:
    {record}
    write(b'{{"session":"/there $(touch PWNED) `touch PWNED`.asrs","pid":1}}\\n'); end()
{tail}
write(data); end(2, "asrscope: that was all")
"""
"""The program in place of ssh: of two commands, what `record` answers and the stream."""
RECORDS: Final = (
    *("write(os.urandom(2000)); end()", "endless(b'x' * 65536)", "endless(b'\\x1b[31mE' * 9999, 2)", "time.sleep(999)"),
    *("write(b'{\"session\":\"/a\\\\u001b[31m\\\\u202e\",\"pid\":1}'); end()", "write(b'[' * 100_000); end()"),
    *("write(b'{\"session\":\"/a\",\"pid\":%d}' % 10**30); end()", "end(255, 'Permission denied (publickey).')"),
    *("end(3, 'bad \\x1b]0;pwn\\x07 \\u202e<b>x</b>' + 'y' * 5000)", "end(127)", "os.close(1); time.sleep(999)"),
)  # fmt: skip
STREAMS: Final = (
    *("write(os.urandom(100_000)); end()", "endless(os.urandom(65536))", "endless(b'Welcome to host\\n' * 4000)"),
    *("write(data[:8] + (192 << 20).to_bytes(8, 'little') + b'\\4\\0\\0\\0[]  '); time.sleep(5); end()", "end()"),
    "write(data[:8] + (192 << 20).to_bytes(8, 'little') + b'\\xfc\\xff\\xff\\x0b' + b'[' * (192 << 20)); end()",
    *("write(data[:8] + b'\\xff' * 7 + b'\\x7f\\xff\\xff\\xff\\xff'); end()", "write(data[:8] + b'\\xff' * 12); end()"),
    *("write(data[:len(data) // 2]); time.sleep(999)", "write(data[:len(data) // 2]); os.close(1); time.sleep(999)"),
    *("write(data[:len(data) // 3]); end(255)", "child(False)", "child(True)", "write(bytes(1 << 24))"),
    "os.fork() or endless(b'\\x1b[2Jx' * 999 + b'\\n', 2)",
    "signal.signal(15, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN); write(data[:999]); time.sleep(999)",
)  # fmt: skip
HOSTS: Final = (
    *("-oProxyCommand=touch PWNED", "-v", "a b", "a;touch PWNED", "$(touch PWNED)", "`touch PWNED`", "a\nb", "", "|id"),
    *("\x1b[31m", "gpu@-oX", "ssh://-oProxyCommand=x", "--", "x" * 100_000, "caf\udce9", "\u202egpu", "a\u00a0b"),
)  # fmt: skip
VALUES: Final[tuple[Value, ...]] = (
    *(None, "", "x", -1, 0, 1, 1 << 31, 1 << 62, (1 << 63) - 1, (1 << 64) - 1, -(1 << 63), 0.5, 1e308, "[" * 200),
    *("{}", "[[]]", "null", "\0", "\x1b[31m", "x" * 70_000, "9" * 5000),
)  # fmt: skip
REMOTE: Final[dict[str, Any]] = {"environment": {"PATH": "bin:/usr/bin:/bin"}, "patience": 2.0, "stop_s": 8.0}


@functools.cache
def _stream() -> tuple[tuple[list[Value], bytes], ...]:
    """The frames of a closed session."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / SESSION
        file.write_bytes(session())
        pieces: list[bytes] = []
        send.send(file, Position(), pieces.append)
    found = []
    for values, blob in frames(io.BytesIO(b"".join(pieces))):
        found.append((values, blob))
        if values == ["commit", "closed"]:
            break
    return tuple(found)


def _ssh(folder: Path, file: str = "stream", record: str = "pass", tail: str = "pass", seed: int | None = None) -> None:
    """The fake ssh and its stream, of which some frames are changed where there is a seed."""
    rows = [(list(values), blob) for values, blob in _stream()]
    rng = random.Random(seed)
    for _ in range(0 if seed is None else rng.randint(1, 3)):
        number = rng.randrange(len(rows))
        values, blob = rows[number]
        match rng.randrange(4):
            case 0 | 1:
                values[rng.randrange(len(values))] = rng.choice(VALUES)
            case 2 if blob:
                rows[number] = values, mutate.changed(rng, blob)
            case _:  # doubled, left out or moved
                rows.insert(rng.randrange(len(rows)), rows[number] if rng.random() < 0.5 else rows.pop(number))
    (folder / file).write_bytes(MAGIC + b"".join(frame(values, blob) for values, blob in rows))
    (folder / "bin").mkdir()
    (folder / "bin/ssh").write_text(SSH.format(python=sys.executable, record=record, tail=tail), encoding="utf-8")
    (folder / "bin/ssh").chmod(0o755)


def _machines(rng: random.Random) -> Iterator[Attack]:
    for text in RECORDS:
        yield Attack(f"remote: record, {text}", functools.partial(_ssh, record=text), (START,), **REMOTE)
    for text in STREAMS:
        yield Attack(f"remote: {text}", functools.partial(_ssh, tail=text), (START, SHOW), **REMOTE)
    for host in HOSTS:
        yield Attack(f"remote: {host[:40]!r}", _ssh, (("run", f"--on={host}", "--out", "here.asrs"),), **REMOTE)
    for _ in range(1_000_000):
        seed = rng.getrandbits(32)
        yield Attack(f"remote: frames of seed {seed}", functools.partial(_ssh, seed=seed), (TAIL, SHOW), **REMOTE)


MACHINES: Final = Kind(
    *(_machines, lambda: ["stream"], _ssh, lambda file: (TAIL, SHOW), [mutate.mutated, mutate.cut, mutate.zeros]),
    more=REMOTE,
)

# -- studies -------------------------------------------------------------------------------------

SWEEP: Final = (
    *("sweep", "--preset", "gmm-quick", "--over", "block=8,16", "--trials", "1", "--repeat", "1"),
    *("--objectives", "rtf", "--audio", SPEECH, "--out", "sweep", "--json"),
)  # fmt: skip
CAPACITY: Final = (
    *("capacity", "--preset", "gmm-quick", "--audio", SPEECH, "--seconds", "3", "--streams", "1", "--cores", "1"),
    *("--bound", "60", "--out", "capacity", "--json"),
)  # fmt: skip
STUDY_S: Final = 120.0
WORKING: Final[dict[str, Any]] = {"patience": 2.0, "stop_s": 20.0}
"""A study that lacks a trial goes on with it, until it is stopped."""


@functools.cache
def _studies() -> Path:
    """A folder with a sweep and a capacity that were begun, by real runs made once."""
    folder = Path(tempfile.mkdtemp(prefix="asrscope-studies-", dir=os.environ["ASRSCOPE_SESSIONS"]))
    for words in (SWEEP, CAPACITY):
        process = subprocess.Popen(
            [*children.python("-m", "app.cli.main"), *words],
            cwd=folder,
            env=children.environment({}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(STUDY_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
    return folder


def _study_files() -> list[str]:
    """Files of both studies but for the sessions and sounds, those of the journal thrice."""
    files = [path for path in _studies().rglob("*") if path.is_file() and path.suffix not in (".asrs", ".wav", ".flac")]
    names = [str(path.relative_to(_studies())) for path in sorted(files)]
    return [*names, *[name for name in names if name.endswith((".log", "study.json", "result.json"))] * 2]


def _study(folder: Path, file: str = "") -> None:
    shutil.copytree(_studies(), folder, symlinks=True, dirs_exist_ok=True)


def _study_commands(file: str) -> Commands:
    return (SWEEP if file.startswith("sweep") else CAPACITY,)


def _written_over(path: Path, damage: mutate.Damage) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}")
    damage(path, random.Random(1))


def _studies_on_purpose(rng: random.Random) -> Iterator[Attack]:
    # First what needs no study: the tests try the first attack of each kind.
    empty = functools.partial(_written_over, damage=mutate.empty)
    yield Attack("studies: empty", lambda folder: empty(folder / "capacity/study.json"), (CAPACITY,), **WORKING)
    for words in (CAPACITY, SWEEP):
        out = words[words.index("--out") + 1]
        for damage in (mutate.pipe, mutate.link):

            def make(folder: Path, out: str = out, damage: mutate.Damage = damage) -> None:
                _written_over(folder / out / "study.json", damage)

            yield Attack(f"studies: {out} {damage.__name__}", make, (words,), **WORKING)


STUDIES: Final = Kind(_studies_on_purpose, _study_files, _study, _study_commands, more=WORKING)

# -- assistants ----------------------------------------------------------------------------------

NAMES: Final = (
    *(SESSION, f"../{SESSION}", "link.asrs", "pipe.asrs", "folder.asrs", "damaged.asrs", "dangling.asrs", "", "."),
    *("/etc/passwd", "/dev/zero", f"./{SESSION}", f"{SESSION}\0", "\0", "x" * 5000 + ".asrs", "a/" * 3000 + "x.asrs"),
    *("\x1b[31m.asrs", f"{SESSION}/", "/proc/self/fd/0", "x" * 1_000_000, "<b>x</b>", 5, None, {"a": 1}, ["x"], True),
)  # fmt: skip
IMPOSSIBLE: Final = {float("inf"), float("-inf"), -1, -1e300}
FACTORS: Final = (*IMPOSSIBLE, float("nan"), 0, 0.5, 1e308, "x", None, 10**400)
RAW: Final = (
    *("{", "", "[]", "null", "123", '"x"', '{"jsonrpc":"2.0"}', '{"jsonrpc":"1.0","id":1,"method":"x"}', "[" * 100_000),
    *('{"a":' * 50_000, '{"jsonrpc":"2.0","id":{},"method":"tools/list"}', "\ud800", "x" * (8 << 20)),
    '{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}',
)  # fmt: skip
GROUPS: Final = ("scoring", "search", "\x1b[31m<b>")
MCP: Final = (("mcp", "sessions"),)


def _sessions(folder: Path) -> None:
    """A folder of sessions that has more than sessions."""
    place = folder / "sessions"
    place.mkdir()
    for path in (place / SESSION, folder / SESSION):
        path.write_bytes(session())
    (place / "damaged.asrs").write_bytes(session()[:5000])
    (place / "folder.asrs").mkdir()
    (place / "dangling.asrs").symlink_to("nowhere")
    (place / "link.asrs").symlink_to(folder / SESSION)
    os.mkfifo(place / "pipe.asrs")


def _asked(calls: list[tuple[str, Any]], raw: list[str], folder: Path) -> None:
    """Requests to the server, and messages that are none between them."""
    _sessions(folder)
    about = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    for number, (name, given) in enumerate(calls, 1):
        params = {"name": name, "arguments": given}
        messages.append({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    lines = [json.dumps(message) for message in messages]
    lines[2:2] = raw
    (folder / STDIN).write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")


def _answered(calls: list[tuple[str, Any]], outputs: list[bytes]) -> str | None:
    """The fault in the answers: one without a sentence."""
    answers: dict[object, Any] = {}
    for line in outputs[0].splitlines():
        if wrong := no_json(line):
            return f"{wrong}: {line[:200]!r}"
        answer = json.loads(line)
        answers[answer.get("id")] = answer
    for number, (name, given) in enumerate(calls, 1):
        result = answers.get(number, {}).get("result", {})
        said = " ".join(str(part.get("text")) for part in result.get("content", ()))
        if result.get("isError") and (said.startswith(f"Error executing tool {name}") and ":" not in said):
            return f"no sentence for {name} {given!s:.80}: {said[:200]}"
        if name == "sessions" and result.get("isError"):
            return f"no list of sessions: {said[:200]}"
        if name == "predict" and result and not result.get("isError") and set(given["factors"].values()) & IMPOSSIBLE:
            return f"a prediction for {given}: {said[:200]}"
    return None


def _questions(rng: random.Random) -> Iterator[Attack]:
    tools: tuple[Callable[[], tuple[str, Any]], ...] = (
        lambda: ("sessions", {}),
        lambda: ("report", {"session": rng.choice(NAMES)}),
        lambda: ("compare", {"a": rng.choice(NAMES), "b": rng.choice(NAMES)}),
        lambda: ("predict", {"session": SESSION, "factors": {rng.choice(GROUPS): rng.choice(FACTORS)}}),
        lambda: ("words", {"session": SESSION, "longest": rng.choice((-1, 0, 10**30, 1e300, "x", None))}),
        lambda: (rng.choice(("report", "nosuch")), rng.choice(({}, {"session": SESSION, "extra": 1}, [], None))),
    )
    for number in range(1_000_000):
        calls = [rng.choice(tools)() for _ in range(8)] if number else [("report", {"session": SESSION})]
        raw = [rng.choice(RAW)] if rng.random() < 0.3 else []
        check = None if raw else functools.partial(_answered, calls)
        named = ", ".join(f"{name} {given!s:.30}" for name, given in calls)
        yield Attack(f"mcp: {named}", functools.partial(_asked, calls, raw), MCP, check=check, patience=2.0)


ASSISTANTS: Final = Kind(_questions)

# -- what the window remembers -------------------------------------------------------------------

PICKLE: Final = (
    "[General]\nschema=1\n{}=@Variant(\\0\\0\\0\\x7f\\0\\0\\0\\x18PySide::PyObjectWrapper\\0\\0\\0\\0\\x31\\x80\\x4\\x95&\\0\\0\\0"
    "\\0\\0\\0\\0\\x8c\\x5posix\\x94\\x8c\\x6system\\x94\\x93\\x94\\x8c\\xbtouch PWNED\\x94\\x85\\x94R\\x94.)\n"
)
"""A value that PySide6 unpickles: it would run a command."""

REMEMBERED: Final = (
    *("recent", "audio", "preset", "geometry", "layout/now", "layout/name", "study", "export/folder", "layouts/mine"),
)
CODE: Final = """
import sys
from pathlib import Path
from tests.bench.campaign.desk import desk
with desk(own=True) as window:
    window.open_session(Path(sys.argv[1]))
"""


@functools.cache
def _remembered() -> Path:
    """A folder of settings that a window has left."""
    folder = Path(tempfile.mkdtemp(prefix="asrscope-settings-", dir=os.environ["ASRSCOPE_SESSIONS"]))
    (folder / SESSION).write_bytes(session())
    words = children.python("-c", CODE, str(folder / SESSION))
    environment = children.environment({"XDG_CONFIG_HOME": str(folder / "config"), "HOME": str(folder)})
    subprocess.run(words, env=environment, check=True, capture_output=True)
    return folder


def _remembered_files() -> list[str]:
    places = (path for name in ("config", ".local") for path in (_remembered() / name).rglob("*") if path.is_file())
    return sorted(str(path.relative_to(_remembered())) for path in places if path.suffix not in (".lock", ".asrs"))


def _copied(folder: Path, file: str = "") -> None:
    shutil.copytree(_remembered(), folder, symlinks=True, dirs_exist_ok=True)


def _planted(content: str, elsewhere: bool, folder: Path) -> None:
    """The user's settings, in every form that there is, or the system's."""
    _copied(folder)
    own = [file for file in _remembered_files() if file.startswith("config/")]
    for file in (*own, "config/asrscope/asrscope.conf"):
        place = folder / ("system" if elsewhere else "config") / Path(file).relative_to("config")
        (folder / file).unlink(missing_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")


DESK: Final[dict[str, Any]] = {
    "environment": {"XDG_CONFIG_HOME": "FOLDER/config", "HOME": "FOLDER", "XDG_CONFIG_DIRS": "FOLDER/system"},
    "patience": 3.0,
}


def _settings_on_purpose(rng: random.Random) -> Iterator[Attack]:
    yield Attack("remembered: garbage", functools.partial(_planted, "[\0garbage", False), (), SESSION, **DESK)
    for key, elsewhere in itertools.product(REMEMBERED, (False, True)):
        content = PICKLE.format(key.replace("/", "\\"))
        make = functools.partial(_planted, content, elsewhere)
        yield Attack(f"remembered: {key} is a pickle, {elsewhere}", make, (), SESSION, **DESK)


SETTINGS: Final = Kind(_settings_on_purpose, _remembered_files, _copied, window=lambda file: SESSION, more=DESK)
