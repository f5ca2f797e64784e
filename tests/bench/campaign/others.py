"""What comes from elsewhere and is no model or sound: streams of other machines, studies, requests of assistants, and
what the window remembers.
"""

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
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from profiler.process import children
from profiler.remote import send
from profiler.remote.wire import MAGIC, Position, Value, frame, frames
from tests.bench.campaign import mutate
from tests.bench.campaign.attack import SESSION, SPEECH, STDIN, Attack, Kind, no_json, session

SSH: Final = f"""#!{sys.executable} -IS
import os, sys
if " record " in sys.argv[-1]:
    os.write(1, b'{{"session":"/there $(touch PWNED) `touch PWNED`.asrs","pid":1}}\\n')
    os._exit(0)
open(1, "wb", closefd=False).write(open("stream", "rb").read())
sys.stderr.write("asrscope: that was all\\n")
sys.stderr.flush()
os._exit(2)
"""
"""The program in place of ssh: it answers `record` and sends the stream."""
REMOTE: Final = (
    ("run", "--on", "gpu", "--preset", "gmm-quick", "--out", "here.asrs"),
    ("tail", "/there.asrs", "--on", "gpu", "--out", "here.asrs"),
    ("show", "here.asrs"),
)
VALUES: Final[tuple[Value, ...]] = (
    *(None, "", "x", 1, 1 << 31, 1 << 62, (1 << 64) - 1, -(1 << 63), 0.5, 1e308, "[" * 200, "{}", "[[]]", "null"),
    *("\0", "\x1b[31m", "x" * 70_000, "9" * 5000),
)


@functools.cache
def _stream() -> list[tuple[list[Value], bytes]]:
    pieces: list[bytes] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / SESSION
        file.write_bytes(session())
        send.send(file, Position(), pieces.append)
    found = []
    for values, blob in frames(io.BytesIO(b"".join(pieces))):
        found.append((values, blob))
        if values == ["commit", "closed"]:
            break
    return found


def _ssh(folder: Path, file: str) -> None:
    (folder / file).write_bytes(MAGIC + b"".join(itertools.starmap(frame, _stream())))
    (folder / "bin").mkdir()
    (folder / "bin/ssh").write_text(SSH, encoding="utf-8")
    (folder / "bin/ssh").chmod(0o755)


def reframed(path: Path, rng: random.Random) -> None:
    """Some frames of the stream changed, doubled, left out or moved."""
    rows = [(list(values), blob) for values, blob in _stream()]
    for _ in range(rng.randint(1, 3)):
        number = rng.randrange(len(rows))
        values, blob = rows[number]
        match rng.randrange(4):
            case 0 | 1:
                values[rng.randrange(len(values))] = rng.choice(VALUES)
            case 2 if blob:
                rows[number] = values, mutate.changed(rng, blob)
            case _:
                rows.insert(rng.randrange(len(rows)), rows[number] if rng.random() < 0.5 else rows.pop(number))
    path.write_bytes(MAGIC + b"".join(itertools.starmap(frame, rows)))


MACHINES: Final = Kind(
    files=lambda: ["stream"],
    make=_ssh,
    commands=lambda file: REMOTE,
    damages=(reframed, mutate.mutated),
    more={"environment": {"PATH": "bin:/usr/bin:/bin"}, "patience": 2.0, "stop_s": 8.0},
)


def _kept_folder(name: str) -> Path:
    """A new folder next to the sessions: they are removed together."""
    return Path(tempfile.mkdtemp(prefix=f"asrscope-{name}-", dir=os.environ["ASRSCOPE_SESSIONS"]))


SWEEP: Final = (
    *("sweep", "--preset", "gmm-quick", "--over", "block=8,16", "--trials", "1", "--repeat", "1"),
    *("--objectives", "rtf", "--audio", SPEECH, "--out", "sweep", "--json"),
)
CAPACITY: Final = (
    *("capacity", "--preset", "gmm-quick", "--audio", SPEECH, "--seconds", "3", "--streams", "1", "--cores", "1"),
    *("--bound", "60", "--out", "capacity", "--json"),
)
STUDY_S: Final = 120.0
WORKING: Final[dict[str, Any]] = {"patience": 2.0, "stop_s": 20.0}
"""A study that lacks a trial goes on with it, until it is stopped."""


@functools.cache
def _studies() -> Path:
    """A folder with a sweep and a capacity that were begun, by real runs made once."""
    folder = _kept_folder("studies")
    for words in (SWEEP, CAPACITY):
        command, null = [*children.python("-m", "app.cli.main"), *words], subprocess.DEVNULL
        process = subprocess.Popen(command, cwd=folder, env=children.environment({}), stdout=null, stderr=null)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STUDY_S)
        process.terminate()
        process.wait()
    return folder


def _study_files() -> list[str]:
    """Files of both studies but for the sessions and sounds, those of the journal thrice."""
    files = [path for path in _studies().rglob("*") if path.is_file() and path.suffix not in (".asrs", ".wav", ".flac")]
    names = [str(path.relative_to(_studies())) for path in sorted(files)]
    return [*names, *[name for name in names if name.endswith((".log", "study.json", "result.json"))] * 2]


def _empty_study(folder: Path) -> None:
    (folder / "capacity").mkdir()
    (folder / "capacity/study.json").touch()


STUDIES: Final = Kind(
    # One that needs no study: the tests try the first attack of each kind.
    lambda rng: [Attack("studies: empty", _empty_study, (CAPACITY,), **WORKING)],
    _study_files,
    lambda folder, file: shutil.copytree(_studies(), folder, symlinks=True, dirs_exist_ok=True),
    lambda file: (SWEEP if file.startswith("sweep") else CAPACITY,),
    more=WORKING,
)

ABOUT: Final = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
CALLS: Final[dict[str, dict[str, Any]]] = {
    "sessions": {},
    "report": {"session": SESSION},
    "compare": {"a": SESSION, "b": f"./{SESSION}"},
    "predict": {"session": SESSION, "factors": {"scoring": 0.5}},
    "words": {"session": SESSION, "longest": 3},
}


def _requests(folder: Path, file: str) -> None:
    """A folder of sessions that has more than sessions, and requests to the server."""
    place = folder / "sessions"
    place.mkdir()
    (place / SESSION).write_bytes(session())
    (place / "damaged.asrs").write_bytes(session()[:5000])
    (place / "dangling.asrs").symlink_to("nowhere")
    os.mkfifo(place / "pipe.asrs")
    calls = ({"name": name, "arguments": given} for name, given in CALLS.items())
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": ABOUT},
        {"method": "notifications/initialized"},
        *({"id": number, "method": "tools/call", "params": params} for number, params in enumerate(calls, 1)),
    ]
    (folder / file).write_text("".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in messages))


def request(path: Path, rng: random.Random) -> None:
    """One of the calls with other JSON, or other text."""
    lines = path.read_text().splitlines()
    at = rng.randrange(2, len(lines))
    lines[at] = mutate.node(rng, lines[at]) if rng.random() < 0.8 else mutate.reworded(rng, lines[at])
    path.write_bytes("\n".join([*lines, ""]).encode("utf-8", "surrogatepass"))


def _answered(outputs: list[bytes]) -> str | None:
    """The fault in the answers: one without a sentence."""
    for line in outputs[0].splitlines():
        if wrong := no_json(line):
            return f"{wrong}: {line[:200]!r}"
        result = json.loads(line).get("result", {})
        said = " ".join(str(part.get("text")) for part in result.get("content", ()))
        if result.get("isError") and said.startswith("Error executing tool") and ":" not in said:
            return f"no sentence: {said[:200]}"
    return None


ASSISTANTS: Final = Kind(
    files=lambda: [STDIN],
    make=_requests,
    commands=lambda file: (("mcp", "sessions"),),
    damages=(request, request, mutate.mutated),
    more={"check": _answered, "patience": 2.0},
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
    folder = _kept_folder("settings")
    (folder / SESSION).write_bytes(session())
    words = children.python("-c", CODE, str(folder / SESSION))
    environment = children.environment({"XDG_CONFIG_HOME": str(folder / "config"), "HOME": str(folder)})
    subprocess.run(words, env=environment, check=True, capture_output=True)
    return folder


def _remembered_files() -> list[str]:
    places = (path for name in ("config", ".local") for path in (_remembered() / name).rglob("*") if path.is_file())
    return sorted(str(path.relative_to(_remembered())) for path in places if path.suffix not in (".lock", ".asrs"))


SETTINGS: Final = Kind(
    files=_remembered_files,
    make=lambda folder, file: shutil.copytree(_remembered(), folder, symlinks=True, dirs_exist_ok=True),
    window=lambda file: SESSION,
    more={
        "environment": {"XDG_CONFIG_HOME": "FOLDER/config", "HOME": "FOLDER", "XDG_CONFIG_DIRS": "FOLDER/system"},
        "patience": 3.0,
    },
)
