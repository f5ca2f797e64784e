"""Damage that the generators share: changes of bytes, and files that are cut, replaced or no files at all.

A damage of a file takes its path and a source of random numbers.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path, random.Random], None]

NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)


def mutated(rng: random.Random, content: bytes, head: int = 200) -> bytes:
    """`content` with one to four changes, half of them within its first `head` bytes."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not data:
            break
        at = rng.randrange(min(head, len(data)) if rng.random() < 0.5 else len(data))
        match rng.randrange(7):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.randrange(256)
            case 2:
                number = rng.choice(NUMBERS)
                data[at : at + 4] = number.to_bytes(4, rng.choice(("little", "big")))
            case 3:
                del data[at:]
            case 4:
                del data[at : at + rng.choice((1, 2, 4, 50, 500))]
            case 5:
                data[at:at] = data[at : at + rng.choice((1, 4, 50, 2_000))] * rng.choice((1, 2, 20))
            case _:
                data[at:at] = rng.randbytes(rng.choice((1, 3, 40)))
    return bytes(data)


def mutate(path: Path, rng: random.Random) -> None:
    path.write_bytes(mutated(rng, path.read_bytes()))


def cut(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 3, 8))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def flip_header(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(min(400, len(content)))] ^= rng.randrange(1, 256)
    path.write_bytes(content)


def large_number(path: Path, rng: random.Random) -> None:
    """A count in a header that promises more than there is."""
    content = bytearray(path.read_bytes())
    at = rng.randrange(max(1, min(120, len(content) - 4)))
    content[at : at + 4] = rng.choice((2**31 - 1, 2**30, 0x7FFFFFF0, 10**6)).to_bytes(4, "little")
    path.write_bytes(content)


def one_more_one_less(path: Path, rng: random.Random) -> None:
    """Sums stay the same."""
    content = bytearray(path.read_bytes())
    size = rng.choice((4, 8))
    at = rng.randrange(len(content) // 2, len(content) - 16) // size * size
    for place, change in ((at, 1), (at + size, -1)):
        word = int.from_bytes(content[place : place + size], "little") + change
        content[place : place + size] = (word % (1 << 8 * size)).to_bytes(size, "little")
    path.write_bytes(content)


def stretch(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    at = rng.randrange(len(content) + 1)
    path.write_bytes(content[:at] + rng.randbytes(rng.choice((1, 64, 4096))) + content[at:])


def zeros(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    at = rng.randrange(len(content) // 4, len(content) // 2)
    path.write_bytes(content[:at] + bytes(len(content) - at))


def noise(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.randbytes(rng.randrange(5000)))


def another_kind(path: Path, rng: random.Random) -> None:
    heads = (b"PK\x03\x04", b"SQLite format 3\0", b"[" * 5000, b"\0" * 5000)
    path.write_bytes(rng.choice(heads) * 9 + rng.randbytes(99))


def sparse(path: Path, rng: random.Random) -> None:
    os.truncate(path, 1 << 40)


def empty(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def missing(path: Path, rng: random.Random) -> None:
    path.unlink()


def link(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to(rng.choice(("/dev/zero", "/dev/tty", "nowhere", path.name)))


def pipe(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()
    (path / "means.npy").write_bytes(b"half")


DAMAGES: tuple[Damage, ...] = (
    *(mutate, cut, flip, flip_header, large_number, one_more_one_less, stretch, zeros, noise, another_kind, sparse),
    *(empty, missing, link, pipe, folder),
)  # fmt: skip
