"""Streams of sessions from other machines: rows changed, moved and doubled, and damage to the bytes."""

from __future__ import annotations

import functools
import io
import random
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from profiler.remote import send
from profiler.remote.wire import MAGIC, Position, Value, frame, frames
from tests.bench.campaign._damage import mutated
from tests.bench.campaign.attack import Attack, session

COMMANDS = (("tail", "/there.asrs", "--on", "gpu", "--out", "here.asrs"), ("show", "here.asrs"))
SSH = "#!/bin/sh\ncat stream\necho 'asrscope: that was all' >&2\nexit 2\n"
"""The program in place of ssh; a link that drops would be tried again."""
VALUES: tuple[Value, ...] = (
    None, "", "x", -1, 0, 1, 1 << 31, 1 << 62, (1 << 63) - 1, (1 << 64) - 1, -(1 << 63), 0.5, 1e308, "[" * 200, "{}",
    "[[]]", "null", "\0", "\x1b[31m", "x" * 70_000, "9" * 5000,
)  # fmt: skip

Row = tuple[list[Value], bytes]


def attacks(random: random.Random, count: int) -> Iterator[Attack]:
    """`count` attacks from a seed."""
    return islice(_all(random), count)


def _all(rng: random.Random) -> Iterator[Attack]:
    for name, stream in (("nothing", b""), ("zeros", bytes(1 << 24)), ("a huge frame", MAGIC + b"\xff" * (1 << 20))):
        yield _attack(f"streams: {name}", functools.partial(bytes, stream))
    while True:
        name, seed = rng.choice((*CHANGES, "bytes")), rng.getrandbits(32)
        yield _attack(f"streams: {name} of seed {seed}", functools.partial(_changed, name, seed))


def _attack(name: str, make: functools.partial[bytes]) -> Attack:
    def write(folder: Path) -> None:
        (folder / "stream").write_bytes(make())
        (folder / "bin").mkdir()
        (folder / "bin" / "ssh").write_text(SSH, encoding="utf-8")
        (folder / "bin" / "ssh").chmod(0o755)

    return Attack(name, write, COMMANDS, environment={"PATH": "bin:/usr/bin:/bin"})


@functools.cache
def _rows() -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "s.asrs"
        file.write_bytes(session())
        pieces: list[bytes] = []
        send.send(file, Position(), pieces.append)
    stream = io.BytesIO(b"".join(pieces))
    found = []
    for values, blob in frames(stream):
        found.append((values, blob))
        if values == ["commit", "closed"]:
            break
    return tuple(found)


def _changed(name: str, seed: int) -> bytes:
    rng = random.Random(seed)
    rows = [(list(values), blob) for values, blob in _rows()]
    if name not in CHANGES:
        return mutated(rng, _joined(rows))
    for _ in range(rng.randint(1, 3)):
        CHANGES[name](rng, rows)
    return _joined(rows)


def _joined(rows: list[Row]) -> bytes:
    return MAGIC + b"".join(frame(values, blob) for values, blob in rows)


def _value(rng: random.Random, rows: list[Row]) -> None:
    """Another value in a column of a row."""
    values, _ = rng.choice(rows)
    values[rng.randrange(len(values))] = rng.choice(VALUES)


def _moved(rng: random.Random, rows: list[Row]) -> None:
    """A row doubled, left out or moved elsewhere."""
    number = rng.randrange(len(rows))
    row = rows[number] if rng.random() < 0.5 else rows.pop(number)
    if rng.random() < 0.7:
        rows.insert(rng.randrange(len(rows) + 1), row)


def _blob(rng: random.Random, rows: list[Row]) -> None:
    """Other bytes in a BLOB."""
    number = rng.choice([number for number, (_, blob) in enumerate(rows) if blob])
    values, blob = rows[number]
    rows[number] = values, mutated(rng, blob)


CHANGES = {"value": _value, "place": _moved, "blob": _blob}
"""Kind of change to the rows of a stream → what makes it."""
