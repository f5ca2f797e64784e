"""Command lines: bad words and environments, places of outputs, settings at random, and files of up to three hours."""

import contextlib
import functools
import itertools
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import soundfile

import assets
from pipelines import config as tree
from pipelines.config import presets
from tests.bench.campaign import mutate
from tests.bench.campaign.attack import SESSION, SPEECH, Attack, Commands, session

NOWHERE: Final = "nowhere.wav"
"""Sound that is not there: a command whose other words are taken all the same does not begin to decode."""
RATE: Final = 16_000
LARGE_BYTES: Final = 4_000_000_000

STEERING: Final = "a\x1b]0;title\x07\x1b[2J\x9b2J\u202egnp.exe\u2028b\r\nc\t"
NUMBERS: Final = (
    *("", " ", "0", "-0", "-1", "1.5", "1e3", "1e400", "nan", "-inf", "²", "٣", "½", "0x10", "1_000", "+3", "9" * 25),
    *("9" * 5000, "1/0", "None", "true", "--", "-", "²x³", "1x", "0x0", "-1x-1", "1e3x1e3", "99999999x99999999"),
    *("9" * 5000 + "x1", "16384x16384", "800×600", "800x600x400", "nanxnan", "1x1"),
)  # fmt: skip
TEXTS: Final = (
    ".", "..", "/", "~", "*", "[", "[]]", "?", "{}", "%s%n", "a=b", "=", "a=b=c", "=1", "$(touch pwned)",
    "`touch pwned`", "; touch pwned", "|touch pwned", "/dev/stdin", "/dev/full", "/proc/self/environ",
    "file:///etc/passwd", "\\\\host\\share", STEERING, "caf\udce9\udcff", "x" * 100_000, "🙂" * 500, "**/" * 2000,
    *mutate.TEXTS,
)  # fmt: skip
KEYS: Final = (*(option.key for option in tree.options()), "", "search.", "a.b.c", "__class__", "search.__init__")
ENVIRONMENT: Final = (
    *(("NUMBA_NUM_THREADS", value) for value in ("0", "many", "-5")),
    *(("COLUMNS", value) for value in ("0", "-7", "9" * 30)),
    *(("LC_ALL", "xx_XX.none"), ("LANG", "caf\udce9"), ("TZ", ":/dev/zero"), ("HOME", "/nowhere/at/all"), ("HOME", "")),
    *(("TMPDIR", "/nowhere/at/all"), ("XDG_CACHE_HOME", "relative"), ("ASRSCOPE_SESSIONS", "/dev/null/x")),
    *(("ASRSCOPE_SESSIONS", SESSION), ("QT_QPA_PLATFORM", "nonsense"), ("PATH", ""), ("CXX", "/dev/null")),
    *(("OMP_NUM_THREADS", "-1"), ("PYTHONWARNINGS", "error"), ("NUMBA_DISABLE_JIT", "1"), ("NUMBA_ENABLE_AVX", "0")),
    *(("NUMBA_CPU_NAME", "generic"), ("NUMBA_CACHE_DIR", "/dev/null")),
)  # fmt: skip
COMPILING_PATIENCE: Final = 3.0  # for another processor or another cache, numba compiles all kernels anew
FLAGS: Final[dict[str, tuple[str, ...]]] = {
    "show": (SESSION, "--TEXT"), "compare": (SESSION, "./TEXT"), "report": (SESSION, "--TEXT"),
    "whatif": (SESSION, "--scale=TEXT=NUMBER"), "confirm": (SESSION, "sTEXT"),
    "export": (SESSION, "--png=a.png", "--view=TEXT", "--size=NUMBER"),
    "run": ("--set=KEY=TEXT", "--repeat=NUMBER", "--audio", NOWHERE), "options": ("--TEXT",),
    "run ": ("--config=TEXT", "--preset=TEXT", "--transcripts=TEXT", "--audio=TEXT"),
    "ab": ("--a=KEY=TEXT", "--b=KEY=NUMBER", "--repeat=NUMBER", "--audio", NOWHERE),
    "audit": ("--set=KEY=NUMBER", "--transcripts=TEXT", "--audio", NOWHERE), "presets": ("--json", "--debug=TEXT"),
    "calibrate": ("--threads=NUMBER", "--theme", "none"), "bench": ("xTEXT", "--repeat=NUMBER"),
    "sweep": ("--over=KEY=TEXT", "--objectives=TEXT", "--constraint=TEXT", "--out=study", "--audio", NOWHERE),
    "capacity": ("--streams=NUMBER", "--bound=NUMBER", "--seconds=NUMBER", "--out=cap", "--audio", NOWHERE),
}  # fmt: skip
"""Verb and its words, in which KEY, TEXT and NUMBER are odd ones."""


def _sound_files(folder: Path) -> None:
    (folder / SESSION).write_bytes(session())
    (folder / "t.tsv").write_text("file\ttranscript\nnowhere.wav\tyes\n")


def flags(rng: random.Random) -> Iterator[Attack]:
    """Every verb with odd words, in turns with each environment once."""
    decoding = ("run", "--preset", "gmm-quick", "--no-profile", "--audio", SPEECH)
    commands = (("show", SESSION), ("options",), ("run", "--help"), ("run", "--audio", NOWHERE), decoding)
    environments = iter(ENVIRONMENT)
    while True:
        for verb, words in FLAGS.items():
            odd = {"KEY": rng.choice(KEYS), "TEXT": rng.choice(TEXTS), "NUMBER": rng.choice(NUMBERS)}
            made = [re.sub("KEY|TEXT|NUMBER", lambda name, odd=odd: odd[name[0]], word) for word in words]
            # No argument can hold a NUL.
            made = [word.replace("\0", "") for word in made if rng.random() < 0.8 or not word.startswith("--")]
            yield Attack(f"flags: {verb}", _sound_files, ((verb.strip(), *made),))
        for name, value in itertools.islice(environments, 2):
            more: dict[str, Any] = {"environment": {name: value}, "patience": COMPILING_PATIENCE}
            yield Attack(f"flags: {name}={value}", _sound_files, commands, **more)


DATA: Final = ("--csv", "--chrome-trace", "--speedscope", "--markdown")
PICTURES: Final = {"--png": ".png", "--svg": ".svg", "--pdf": ".pdf"}
TARGETS: Final = (
    SESSION, f"./{SESSION}", f"sub/../{SESSION}", "hard", "link", "dangling", "circle", "link-to-pipe", "pipe", "sub",
    "sub/", "sub/new", "old", "read-only", "closed/new", "taken", "no/such/folder/a", "old/a", "", ".", "..", "/",
    "/dev/null", "/dev/full", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/version",
    "-", "x" * 300, "x" * 6000, "a\x1b[2J\x07\r\n", "caf\udce9", "\u202egnp", " ", "~", f"{SESSION}-wal",
    f"{SESSION}-shm",
)  # fmt: skip


def _targets(folder: Path) -> None:
    sound = folder / SESSION
    sound.write_bytes(session())
    (folder / "sub").mkdir()
    (folder / "closed").mkdir(mode=0o500)
    for suffix in ("", *PICTURES.values()):
        (folder / f"old{suffix}").write_bytes(b"old")
        (folder / f"read-only{suffix}").write_bytes(b"kept")
        (folder / f"read-only{suffix}").chmod(0o400)
        os.mkfifo(folder / f"pipe{suffix}")
        (folder / f"hard{suffix}").hardlink_to(sound)
        links = {"link": "old", "dangling": "nowhere", "circle": f"circle{suffix}", "link-to-pipe": f"pipe{suffix}"}
        names = {f"{name}{suffix}": target for name, target in links.items()}
        # Where drafts lay while their names could be foreseen.
        for name, target in {**names, f".taken{suffix}": "old", f"taken{suffix}.tmp": "old"}.items():
            with contextlib.suppress(OSError):
                (folder / name).symlink_to(target)


def outputs(rng: random.Random) -> Iterator[Attack]:
    """Every target by an export of data, by a picture and by a run, then several outputs of a command."""
    for number, target in enumerate(TARGETS):
        kind, suffix = list(PICTURES.items())[number % len(PICTURES)]
        named = target if target in ("-", "", ".", "..", "/") else target.rstrip("/") + suffix
        commands: Commands = (
            ("export", SESSION, f"{DATA[number % len(DATA)]}={target}"),
            ("export", SESSION, f"{kind}={named}", "--view", "cost"),
            ("run", f"--out={target}", "--audio", NOWHERE),
        )
        yield from (Attack(f"outputs: {target[:40]!a}", _targets, (command,)) for command in commands)
    while True:
        words = [f"{option}={rng.choice(TARGETS)}" for option in rng.sample(DATA, rng.randint(1, len(DATA)))]
        yield Attack("outputs: several", _targets, (("export", SESSION, *words), ("show", SESSION)))


ENDLESS: Final = ("loop", "repeat_on_change")
SHARES: Final = (0.05, 0.15, 0.4, 1.0)  # Of the options that are drawn; the others stay as the preset has them
SOUNDS: Final = ("speech", "noise", "silence", "click")


def settings(rng: random.Random) -> Iterator[Attack]:
    """Valid settings at random over speech, noise and silence of a second or two: they run, or are refused."""
    preset, assignments, sound, verb = "gmm-quick", (), "speech", "run"
    while True:
        words = tuple(word for text in assignments for word in ("--set", text))
        common = ("--preset", preset, *words, "--audio", "a.flac", "--json")
        commands: Commands = {
            "run": (("run", "--no-profile", *common),),
            "record": (("run", "--out", SESSION, *common), ("show", SESSION, "--json")),
            "audit": (("audit", *common),),
        }[verb]
        name = f"settings: {preset}, {sound}, {verb}"
        # A graph of another vocabulary is compiled first.
        yield Attack(name, functools.partial(_sound, sound), commands, patience=10.0, memory_bytes=LARGE_BYTES)
        preset, verb = rng.choice(sorted(presets.names())), rng.choice(("run", "run", "run", "record", "audit"))
        assignments, sound = drawn(rng, preset), rng.choice(SOUNDS)


def drawn(rng: random.Random, preset: str) -> tuple[str, ...]:
    """Assignments `key=value` of some options, each valid with those before it."""
    config, made = presets.load(preset).config, []
    share = rng.choice(SHARES)
    for option in tree.options():
        if option.key in ENDLESS or rng.random() > share or (value := _value(rng, option)) is None:
            continue
        change = tree.replace(config, option.key, value)
        if tree.unavailable_reason(change, option.key):
            continue
        with contextlib.suppress(tree.ConfigError):
            config = tree.check(change)
            made.append(f"{option.key}={str(value).lower() if isinstance(value, bool) else value}")
    return tuple(made)


def _value(rng: random.Random, option: tree.Option) -> tree.Value | None:
    """A value of the option: its ends as often as all between; None where a text names nothing that ships."""
    if option.type == "bool":
        return rng.random() < 0.5
    if option.type in ("choice", "text"):
        choices = option.choices if option.type == "choice" else option.shipped()
        return rng.choice(choices) if choices else None
    assert option.minimum is not None
    assert option.maximum is not None
    least, most = 1.0 if option.key == "pace" else option.minimum, option.maximum  # real time or faster
    value = least + rng.choice((0.0, 1.0, rng.random(), rng.random() ** 4)) * (most - least)
    return round(value) if option.type == "int" else round(value, 4)


def _sound(sound: str, folder: Path) -> None:
    samples = {
        "silence": lambda: np.zeros(2 * RATE, np.float32),
        "speech": lambda: soundfile.read(SPEECH, dtype="float32")[0][: 3 * RATE],
        "noise": lambda: 0.3 * np.random.default_rng(5).standard_normal(2 * RATE),
        "click": lambda: np.where(np.arange(200) == 100, 1.0, 0.0),
    }[sound]()
    soundfile.write(folder / "a.flac", np.clip(samples, -1.0, 1.0), RATE, "PCM_16")


MINUTE: Final = 60
LENGTHS: Final = (1, 10, 300, 1_200, 3_600, 7_200, 10_800)
CHOSEN: Final = (
    *((), ("search.lattice=true",), ("search.lattice=true", "search.nbest=20", "search.lattice_beam=8")),
    *(("block=1",), ("block=256", "search.beam=15"), ("search.adaptive_beam=true",)),
    ("gmm.selection.enabled=true", "gmm.selection.method=top-n", "frames.skip=2"),
)
DEARER: Final = 4.0
"""Times what a second of a minute costs: a busy machine doubles it, what is quadratic passes it within the hour."""
FROM_S: Final = 300  # Shorter files are too quick to say what a second costs
SECONDS_PER_SECOND: Final = 1 / 100  # what a second of sound may take of the driver's limit of time


def lengths(rng: random.Random) -> Iterator[Attack]:
    """The shipped speech again and again for 1 s to 3 h, in every combination of length and settings, the shortest
    first, then at random: each second of a file costs what a second of a minute costs."""
    for length, chosen in itertools.product(LENGTHS, CHOSEN):
        yield _length(length, chosen, "--no-profile")
    while True:
        length = round(10 ** rng.uniform(0, np.log10(LENGTHS[-1])))
        yield _length(length, rng.choice(CHOSEN), *rng.choice((["--no-profile"], [])))


def _length(length: int, chosen: tuple[str, ...], *how: str) -> Attack:
    words = tuple(word for text in chosen for word in ("--set", text))
    common = ("run", "--preset", "gmm-quick", *words, "--json", *how, "--audio")
    compared = length >= FROM_S  # a file that says nothing of its cost is not compared
    return Attack(
        f"lengths: {length} s, {' '.join(chosen) or 'as shipped'}, {how or 'recorded'}",
        functools.partial(_speech, length),
        tuple((*common, f"{name}.flac") for name in (["short"] if compared else []) + ["long"]),
        patience=1.0 + length * SECONDS_PER_SECOND,
        memory_bytes=LARGE_BYTES,
        check=dearer if compared else None,
    )


def dearer(outputs: list[bytes]) -> str | None:
    """The fault where a second of the second output costs far more than one of the first."""
    short, long = (json.loads(out)["rtf"] for out in outputs)
    if long > DEARER * short:
        return f"a second costs {long / short:.1f} times as much as one of a minute (RTF {long:.4f})"
    return None


def _speech(length: int, folder: Path) -> None:
    speech = assets.path("speech")
    once = np.concatenate([soundfile.read(path, dtype="int16")[0] for path in sorted(speech.glob("*.flac"))])
    for name, seconds in (("short.flac", MINUTE), ("long.flac", length)):
        with soundfile.SoundFile(folder / name, "w", RATE, 1, "PCM_16") as file:
            for left in range(seconds * RATE, 0, -len(once)):
                file.write(once[:left])
