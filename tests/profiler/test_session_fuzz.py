"""A share of the spoiled sessions of `tests.bench.campaign.sessions`, and bombs of a few pages."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.session.errors import SessionError
from profiler.session.reader import Session
from tests.bench.campaign import _use, mutate, sessions
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.skipif("sys.platform != 'linux'")
Bases = dict[str, tuple[bytes, bytes]]


@pytest.fixture(scope="module")
def bases() -> Bases:
    return sessions.bases()


def test_sound_sessions_open(bases, tmp_path):
    for name in bases:
        sessions.write(tmp_path, f"{name}.asrs")
        assert _use.use(tmp_path / f"{name}.asrs", tmp_path, verbs=False) is None, name
        for file in tmp_path.iterdir():
            file.unlink()


def damaged(seed: int, folder: Path, name: str = "") -> Path:
    """A session with random damage of that number to its file or its -wal."""
    rng = random.Random(seed)
    folder.mkdir()
    path = folder / f"{name or rng.choice(list(sessions.bases()))}.asrs"
    sessions.write(folder, path.name)
    for _ in range(rng.choice((1, 1, 2, 4))):
        files = [file for file in (path, path.with_name(f"{path.name}-wal")) if file.exists()]
        mutate.mutated(rng.choice((path, *files)), rng)
    return path


@pytest.mark.slow
def test_spoiled_files_open_or_are_refused(tmp_path):
    first, said = random.randrange(10_000_000), []
    for seed in range(first, first + 40):
        place = tmp_path / str(seed)
        try:
            said.append(_use.use(damaged(seed, place), place, verbs=seed % 16 == 0))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert 1 < said.count(None) < 40


@pytest.mark.slow
def test_a_file_spoiled_under_a_follower(tmp_path):
    for seed in range(12):
        name, place = ("living", "dead")[seed % 2], tmp_path / str(seed)
        other = damaged(seed, tmp_path / f"other {seed}", name)
        place.mkdir()
        sessions.write(place, f"{name}.asrs")
        with Session.open(place / f"{name}.asrs") as session:
            try:
                for file in other.parent.iterdir():
                    shutil.copyfile(file, place / file.name)
                session._signature = None
                session.refresh()
            except SessionError as error:
                _use.check_sentence(str(error), place / f"{name}.asrs")
            _use.look(session, place)


REFUSED = (
    *(*sessions.MASTER, "generated statistics", "a view for a table", "a stage per span", "many lanes"),
    *("frames beyond the sound", "utterances far away", "endless audio", "negative times", "a name of 10 MB"),
)
SHOWN = ("all in the last frame", "spans of no time", "no audio", "no settings", "two arms")
RUN_BY = (
    "import sys; sys.path[:0] = [sys.argv[1]]\n"
    "from pathlib import Path\n"
    "from tests.bench.campaign import _use\n"
    "print(_use.use(Path(sys.argv[2]), Path(sys.argv[2]).parent))\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("name", sessions.PURPOSES)
def test_files_made_on_purpose(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sessions.spoiled(name, tmp_path)
    said = _use.use(tmp_path / sessions.SESSION, tmp_path, verbs=name in SHOWN)
    assert name not in REFUSED or said is not None
    assert name not in SHOWN or said is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["generated statistics", "an index over an expression", "a net whose card is a pipe"])
def test_what_would_never_end_ends(name, tmp_path):
    """In a process that can be given up: between two of its steps SQLite calls nobody, and neither does a pipe."""
    sessions.spoiled(name, tmp_path)
    checkout = Path(__file__).parents[2]
    command = [sys.executable, "-c", RUN_BY, checkout, tmp_path / sessions.SESSION]
    env = {**os.environ, "PYTHONPATH": str(checkout)}
    child = subprocess.run(
        command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False
    )
    assert child.returncode == 0, child.stderr


LONG = 489 - 12 + 4092 * 733
"""Characters of a value whose row keeps the least that it may in its leaf: the rest is in overflow pages."""


def test_a_long_value_of_many_rows(bases, tmp_path):
    """A file of 3 MB in which forty rows continue in the same chain of overflow pages: 120 MB."""
    path = tmp_path / "bomb.asrs"
    path.write_bytes(bases["larger"][0])
    connection = sqlite3.connect(path, isolation_level=None)
    keys = [f"long{i:02d}" for i in range(40)]
    connection.executemany("INSERT INTO meta VALUES(?, ?)", [(key, "0" * 500) for key in keys])
    connection.execute("BEGIN")
    for key in keys:
        connection.execute("UPDATE meta SET value=? WHERE key=?", (f'"{"x" * (LONG - 2)}"', key))
    connection.execute("COMMIT")
    (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name='meta'").fetchone()
    connection.close()
    data = bytearray(path.read_bytes())
    assert _share_overflow(data, root) == len(keys)
    # What the other rows had of their own is at the end.
    pages = (len(bases["larger"][0]) + LONG) // 4096 + 20
    data[28:32] = pages.to_bytes(4, "big")
    path.write_bytes(data[: pages * 4096])
    assert "more than fits into the file" in str(_use.use(path, tmp_path, verbs=False))


def _share_overflow(data: bytearray, root: int) -> int:
    """Let every cell of the table's leaves continue at the first one's overflow page."""
    pages = [root]
    first: bytes | None = None
    shared = 0
    for page in pages:
        begin = (page - 1) * 4096
        kind = data[begin]
        count = int.from_bytes(data[begin + 3 : begin + 5], "big")
        pointers = begin + (12 if kind == 5 else 8)
        cells = [begin + int.from_bytes(data[pointers + 2 * i : pointers + 2 * i + 2], "big") for i in range(count)]
        if kind == 5:
            pages += [int.from_bytes(data[cell : cell + 4], "big") for cell in cells]
            pages.append(int.from_bytes(data[begin + 8 : begin + 12], "big"))
            continue
        for cell in cells:
            at, payload = _varint(data, cell)
            at, _ = _varint(data, at)
            if payload < 1_000_000:
                continue
            # File format, section 1.6: what a leaf keeps of a payload that overflows.
            usable, least = 4096, (4096 - 12) * 32 // 255 - 23
            kept = least + (payload - least) % (usable - 4)
            link = at + (kept if kept <= usable - 35 else least)
            first = first or bytes(data[link : link + 4])
            data[link : link + 4] = first
            shared += 1
    return shared


def _varint(data: bytearray, at: int) -> tuple[int, int]:
    value = 0
    while True:
        value = value << 7 | data[at] & 0x7F
        at += 1
        if not data[at - 1] & 0x80:
            return at, value


def test_a_circle_of_pages_ends(bases, tmp_path):
    """An interior page whose children are all one leaf, twice over: 400² times its rows."""
    path = tmp_path / "circle.asrs"
    path.write_bytes(bases["small"][0])
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO clock VALUES(?,?)", [(i, i) for i in range(4000)])
    connection.execute("COMMIT")
    (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name='clock'").fetchone()
    connection.close()
    data = bytearray(path.read_bytes())
    begin = (root - 1) * 4096
    assert data[begin] == 5
    leaf = int.from_bytes(data[begin + 8 : begin + 12], "big")
    middle = len(data) // 4096 + 1
    data += bytes(4096)
    for page, child in ((root, middle), (middle, leaf)):
        _interior(data, page, child)
    data[28:32] = (len(data) // 4096).to_bytes(4, "big")
    path.write_bytes(data)
    assert "would not end" in str(_use.use(path, tmp_path, verbs=False))


def _interior(data: bytearray, page: int, child: int) -> None:
    """Make `page` an interior page of a table with 400 children that are all `child`."""
    begin = (page - 1) * 4096
    data[begin : begin + 4096] = bytes(4096)
    cells = 400
    start = 4096 - 7 * cells
    data[begin] = 5
    data[begin + 3 : begin + 5] = cells.to_bytes(2, "big")
    data[begin + 5 : begin + 7] = start.to_bytes(2, "big")
    data[begin + 8 : begin + 12] = child.to_bytes(4, "big")
    for i in range(cells):
        at = start + 7 * i
        data[begin + 12 + 2 * i : begin + 14 + 2 * i] = at.to_bytes(2, "big")
        key = 5000 + i
        cell = child.to_bytes(4, "big") + bytes([0x80, 0x80 | key >> 7, key & 0x7F])
        data[begin + at : begin + at + 7] = cell


def test_an_old_version_without_a_way_forward_is_not_copied(bases, tmp_path, monkeypatch):
    path = tmp_path / "old.asrs"
    data = bytearray(bases["small"][0])
    data[60:64] = bytes(4)
    path.write_bytes(data)
    # A file of any size costs no room on disk to send; a copy of it would.
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    monkeypatch.setattr("shutil.copyfile", lambda *_: pytest.fail("it was copied"))
    assert "cannot convert" in str(_use.use(path, tmp_path, verbs=False))
