"""One hostile input, and a kind of them: sound files that are damaged at random, and inputs that no mutator reaches."""

import functools
import itertools
import json
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import assets
from tests.app.sample_session import write_sample
from tests.bench.campaign.mutate import DAMAGES, Damage

SPEECH: Final = str(assets.path("speech", "08-kal16-short.flac"))
SESSION: Final = "s.asrs"
STDIN: Final = "stdin"  # a file of this name in the folder is the standard input of the commands
OUTPUT_BYTES: Final = 64 << 20  # of each stream that is looked at
Commands = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Attack:
    """An input to the program, in a new folder of its own. `make` writes the files; each of `commands` is then given to
    `asrscope` with the folder as the current one. The exit status must be 0 or 2 (1 where `may_fail`), without a
    traceback, within the driver's limits of time and memory. `check` gets the standard outputs of the commands, if all
    succeeded, and returns the fault in them."""

    name: str
    make: Callable[[Path], object]
    commands: Commands
    window: str = ""  # a session in the folder that the real window is to open as well, every view shown
    environment: Mapping[str, str] = field(default_factory=dict)
    """For the commands and the window; FOLDER in a value stands for the folder."""
    may_fail: bool = False
    patience: float = 1.0  # how many times the driver's limit of time the commands may take
    memory_bytes: int = 0  # their limit instead of the driver's, where it is higher
    stop_s: float | None = None
    """When they are interrupted as by Ctrl+C, and 3 s later again: they may be at work until then, not longer."""
    check: Callable[[list[bytes]], str | None] | None = None


@dataclass(frozen=True)
class Kind:
    """Attacks of one kind: `purposes`, each made on purpose, in turns with damage to one of `files`. `make` writes into
    a folder the sound input that holds the file, `commands` are those that read it, `window` is the session that a
    window opens. `more`: fields of every attack with damage. `sound`: inputs that are run before all attacks, so that
    none of these compiles kernels."""

    purposes: Callable[[random.Random], Iterable[Attack]] = lambda rng: ()
    files: Callable[[], Sequence[str]] = tuple
    make: Callable[[Path, str], object] = lambda folder, file: None
    commands: Callable[[str], Commands] = lambda file: ()
    damages: Sequence[Damage] = DAMAGES
    window: Callable[[str], str] = lambda file: ""
    more: Mapping[str, Any] = field(default_factory=dict)
    sound: Callable[[], Iterable[Attack]] = tuple

    def attacks(self, name: str, rng: random.Random) -> Iterator[Attack]:
        """Attacks without end, unless nothing is damaged: then those on purpose."""
        for attack in itertools.chain(self.purposes(rng), itertools.repeat(None)):
            if attack is not None:
                yield attack
            if files := self.files():  # only now: the first attack on purpose needs none of them
                file, seed, damage = rng.choice(files), rng.getrandbits(32), rng.choice(self.damages)
                title = f"{name}: {file} {damage.__name__} by {seed}"
                make = functools.partial(self._write, file, damage, seed)
                yield Attack(title, make, self.commands(file), self.window(file), **self.more)
            elif attack is None:
                return

    def _write(self, file: str, damage: Damage, seed: int, folder: Path) -> None:
        self.make(folder, file)
        damage(folder / file, random.Random(seed))


@functools.cache
def session() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return write_sample(Path(folder) / SESSION, frames=256).read_bytes()


def nothing(folder: Path) -> None:
    """The command alone is the attack."""


def no_json(out: bytes) -> str | None:
    """The fault in standard output as one JSON value, NaN and infinities included."""
    try:
        json.loads(out, parse_constant=no_constant)
    except ValueError as error:
        return None if len(out) == OUTPUT_BYTES else f"wrong JSON: {error}"
    return None


def no_constant(name: str) -> float:
    """For `json.loads(parse_constant=…)`: NaN and infinities are not JSON."""
    raise ValueError(f"{name} is not JSON")
