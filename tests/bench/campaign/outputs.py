"""Places that no output may be written to, or not as it stands: sources, links, devices, pipes, folders, odd names."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.bench.campaign.attack import SESSION, Attack, session

DATA: Final = ("--csv", "--chrome-trace", "--speedscope", "--markdown")
PICTURES: Final = {"--png": ".png", "--svg": ".svg", "--pdf": ".pdf"}
LONG: Final = "x" * 300

TARGETS: Final = (
    SESSION, f"./{SESSION}", f"sub/../{SESSION}", "hard", "link", "dangling", "circle", "link-to-pipe", "pipe", "sub",
    "sub/", "sub/new", "old", "read-only", "closed/new", "taken", "no/such/folder/a", "old/a", "", ".", "..", "/",
    "/dev/null", "/dev/full", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/version",
    "-", LONG, LONG * 20, "a\x1b[2J\x07\r\n", "caf\udce9", "\u202egnp", " ", "~", f"{SESSION}-wal", f"{SESSION}-shm",
)  # fmt: skip


def make(folder: Path) -> None:
    """A sound session among all that can lie at the place of an output, with every picture's suffix as well."""
    sound = folder / SESSION
    sound.write_bytes(session())
    (folder / "sub").mkdir()
    (folder / "closed").mkdir(mode=0o500)
    for suffix in ("", *PICTURES.values()):
        (folder / f"old{suffix}").write_bytes(b"old")
        (folder / f"read-only{suffix}").write_bytes(b"kept")
        (folder / f"read-only{suffix}").chmod(0o400)
        with contextlib.suppress(OSError):
            (folder / f"hard{suffix}").hardlink_to(sound)
            (folder / f"link{suffix}").symlink_to("old")
            (folder / f"dangling{suffix}").symlink_to("nowhere")
            (folder / f"circle{suffix}").symlink_to(f"circle{suffix}")
            os.mkfifo(folder / f"pipe{suffix}")
            (folder / f"link-to-pipe{suffix}").symlink_to(f"pipe{suffix}")
        # Where drafts lay while their names could be foreseen.
        for draft in (f".taken{suffix}", f"taken{suffix}.tmp", f".taken{suffix}.{os.getpid()}"):
            with contextlib.suppress(OSError):
                (folder / draft).symlink_to("old")


def attacks(random: random.Random, count: int) -> Iterator[Attack]:
    """Every target by one export of data and by one picture, then `count` commands of several outputs."""
    for number, target in enumerate(TARGETS):
        yield _attack(target, ("export", SESSION, f"{DATA[number % len(DATA)]}={target}"))
        kind = list(PICTURES)[number % len(PICTURES)]
        yield _attack(target, ("export", SESSION, f"{kind}={_named(target, kind)}", "--view", "cost"))
        yield _attack(target, ("run", f"--out={target}", "--audio", "nowhere.wav"))
    for _ in range(count):
        words = ["export", SESSION]
        for option in random.sample(DATA, random.randint(1, len(DATA))):
            words.append(f"{option}={random.choice(TARGETS)}")
        if random.random() < 0.3:
            kind = random.choice(list(PICTURES))
            words += [f"{kind}={_named(random.choice(TARGETS), kind)}", "--view", "cost"]
        yield _attack("several", tuple(words), ("show", SESSION))


def _named(target: str, kind: str) -> str:
    return target if target in ("-", "", ".", "..", "/") else target.rstrip("/") + PICTURES[kind]


def _attack(name: str, *commands: tuple[str, ...]) -> Attack:
    return Attack(f"outputs: {name[:40]!a}", make, commands)
