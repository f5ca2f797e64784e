"""Words on the command line and variables of the environment that nobody should give: numbers, sizes, names, paths."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tests.bench.campaign.attack import SESSION, SPEECH, Attack, session

NOWHERE: Final = "nowhere.wav"
"""Sound that is not there: a command whose other words are taken all the same does not begin to decode."""

LONG: Final = "x" * 100_000
STEERING: Final = "a\x1b]0;title\x07\x1b[2J\x9b2J\u202egnp.exe\u2028b\r\nc\t"
NOT_UTF_8: Final = "caf\udce9\udcff"

NUMBERS: Final = (
    "", " ", "0", "-0", "-1", "1.5", "1e3", "1e400", "-1e400", "nan", "inf", "-inf", "²", "٣", "½", "0x10", "1_000",
    "+3", "9" * 25, "9" * 5000, "1/0", "None", "true", "--", "-",
)  # fmt: skip
SIZES: Final = (
    "²x³", "x", "1x", "x1", "0x0", "-1x-1", "1e3x1e3", "99999999x99999999", "9" * 5000 + "x1", "16384x16384",
    "800X600", "800×600", "800x600x400", " 800x600 ", "800,600", "nanxnan", "1x1",
)  # fmt: skip
TEXTS: Final = (
    "", " ", ".", "..", "/", "~", "*", "**", "[", "[]]", "?", "{}", "%s%n", "a=b", "=", "==", "a=b=c", "--", "-", "=1",
    "$(touch pwned)", "`touch pwned`", "; touch pwned", "|touch pwned", "../../../../etc/passwd", "/dev/zero",
    "/dev/stdin", "/dev/full", "/proc/self/mem", "/proc/self/environ", "file:///etc/passwd", "\\\\host\\share", "NUL",
    "C:\\con", STEERING, NOT_UTF_8, LONG, "\u0300" * 3000, "🙂" * 500, "**/" * 2000,
)  # fmt: skip
KEYS: Final = (
    "block", "threads", "model", "device", "pace", "search.beam", "search.max_active", "frames.skip", "dnn.net",
    "graph.vocabulary", "graph.dictionary", "graph.language_model", "graph.grammar", "gmm.selection.enabled",
    "gmm.selection.method", "config", "a.b.c", "search", "__class__", "search.__init__",
)  # fmt: skip
ENVIRONMENT: Final = (
    {"NUMBA_NUM_THREADS": "0"}, {"NUMBA_NUM_THREADS": "many"}, {"NUMBA_NUM_THREADS": "-5"},
    {"COLUMNS": "0"}, {"COLUMNS": "1"}, {"COLUMNS": "-7"}, {"COLUMNS": "9" * 30}, {"LC_ALL": "xx_XX.none"},
    {"LC_ALL": "C"}, {"LANG": NOT_UTF_8}, {"TZ": "No/Where"}, {"TZ": ":/dev/zero"}, {"HOME": "/nowhere/at/all"},
    {"HOME": ""}, {"TMPDIR": "/nowhere/at/all"}, {"XDG_CACHE_HOME": "relative"}, {"ASRSCOPE_SESSIONS": "/dev/null/x"},
    {"ASRSCOPE_SESSIONS": "s.asrs"}, {"QT_QPA_PLATFORM": "nonsense"}, {"DISPLAY": "nonsense:99"}, {"PATH": ""},
    {"CXX": "/dev/null"}, {"OMP_NUM_THREADS": "-1"}, {"ODD": NOT_UTF_8}, {"PYTHONWARNINGS": "error"},
    {"NUMBA_DISABLE_JIT": "1"}, {"NUMBA_CPU_NAME": "generic"}, {"NUMBA_ENABLE_AVX": "0"},
    {"NUMBA_CACHE_DIR": "/dev/null"},
)  # fmt: skip
COMPILING_PATIENCE: Final = 3.0
"""For another processor or another cache, numba compiles all kernels anew."""


def make(folder: Path) -> None:
    """A sound session, and small files of the kinds that arguments name."""
    (folder / SESSION).write_bytes(session())
    (folder / "c.toml").write_text('title = "mine"\n[config]\nblock = 16\n')
    (folder / "t.tsv").write_text("file\ttranscript\nnowhere.wav\tyes\n")
    (folder / "empty").write_bytes(b"")


def attacks(random: random.Random, count: int) -> Iterator[Attack]:
    """Every class of bad word once, then `count` random command lines."""
    yield from _on_purpose()
    for number in range(count):
        environment = random.choice(ENVIRONMENT) if random.random() < 0.2 else {}
        words = _random_words(random)
        yield Attack(f"flags {number}", make, (words,), environment=dict(environment))


def _on_purpose() -> Iterator[Attack]:
    for option, verb in (("--repeat", "run"), ("--repeat", "ab"), ("--threads", "calibrate")):
        stop = ("--theme", "none") if verb == "calibrate" else ("--audio", NOWHERE)
        for value in NUMBERS:
            yield _attack(f"{verb} {option}", (verb, f"{option}={value}", *stop))
    for size in SIZES:
        words = ("export", SESSION, "--png", "a.png", "--view", "cost", f"--size={size}")
        yield _attack("size", words)
    for text in TEXTS:
        yield _attack("text", ("show", f"./{text}"), ("whatif", SESSION, f"--scale={text}"))
        yield _attack("text", ("run", f"--set={text}", "--audio", NOWHERE))
        yield _attack("text", ("run", f"--config={text}"), ("run", f"--preset={text}"))
        yield _attack("text", ("run", f"--audio={text}", "--transcripts", "none.tsv"))
        yield _attack("text", ("compare", SESSION, f"./{text}"), ("confirm", SESSION, f"s{text}"))
        yield _attack("text", ("export", SESSION, "--png", "a.png", f"--view={text}"))
        yield _attack("text", ("bench", f"x{text}"), ("presets", f"--{text}x"))
    for key in KEYS:
        for value in (*NUMBERS[:8], LONG, STEERING):
            yield _attack("setting", ("run", f"--set={key}={value}", "--audio", NOWHERE))
    decoding = ("run", "--preset", "gmm-quick", "--no-profile", "--audio", SPEECH)
    commands = (("show", SESSION), ("options",), ("run", "--help"), ("run", "--audio", NOWHERE), decoding)
    for environment in ENVIRONMENT:
        name = f"environment {next(iter(environment))}"
        yield Attack(name, make, commands, environment=dict(environment), patience=COMPILING_PATIENCE)


def _attack(name: str, *commands: tuple[str, ...]) -> Attack:
    # No argument can hold a NUL.
    words = tuple(tuple(word.replace("\0", "") for word in command) for command in commands)
    return Attack(f"flags: {name}", make, words)


def _random_words(random: random.Random) -> tuple[str, ...]:
    def text() -> str:
        chosen = random.choice(random.choice((NUMBERS, SIZES, TEXTS, KEYS)))
        if random.random() < 0.3:
            at = random.randrange(len(chosen) + 1)
            odd = chr(random.choice((9, 27, 127, 155, 233, 8238, 0xDCFF, 0x1F642)))
            chosen = chosen[:at] + odd + chosen[at:]
        return chosen

    def setting() -> str:
        return f"{random.choice(KEYS)}={text()}"

    flags: dict[str, Callable[[], tuple[str, ...]]] = {
        "show": lambda: (SESSION, random.choice(("--json", f"--{text()}"))),
        "compare": lambda: (SESSION, random.choice((SESSION, f"./{text()}"))),
        "whatif": lambda: (SESSION, f"--scale={random.choice(('search', 'scoring', text()))}={text()}"),
        "confirm": lambda: (SESSION, f"s{text()}"),
        "export": lambda: (SESSION, "--csv", "a.csv", f"--size={text()}", f"--theme={text()}"),
        "run": lambda: (f"--set={setting()}", f"--repeat={text()}", "--audio", NOWHERE),
        "ab": lambda: (f"--a={setting()}", f"--b={setting()}", "--audio", NOWHERE),
        "audit": lambda: (f"--set={setting()}", f"--transcripts={text()}", "--audio", NOWHERE),
        "options": lambda: (f"--{text()}",),
        "presets": lambda: ("--json", f"--debug={text()}"),
        "calibrate": lambda: (f"--threads={text()}", "--theme", "none"),
        "bench": lambda: (f"x{text()}", f"--repeat={text()}"),
    }  # fmt: skip
    verb = random.choice(list(flags))
    return verb, *flags[verb]()
