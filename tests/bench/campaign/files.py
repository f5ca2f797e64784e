"""Sound and texts of strangers: damage comes from the mutator; on purpose are days of silence and odd names."""

from __future__ import annotations

import bz2
import functools
import gzip
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import soundfile

from pipelines.config import options
from tests.bench.campaign import mutate
from tests.bench.campaign.attack import SPEECH, Attack, Kind, nothing

RATE: Final = 16_000
QUICK: Final = ("run", "--preset", "gmm-quick", "--no-profile", "--audio")
RUN: Final = (*QUICK, SPEECH)
DEVICES: Final = ("/dev/zero", "/dev/null", "/dev/full", "/dev/tty", "/proc/self/mem", "/")

# -- sound ---------------------------------------------------------------------------------------

CONTAINERS: Final = {
    "a.wav": ("WAV", "PCM_16"), "float.wav": ("WAV", "FLOAT"), "adpcm.wav": ("WAV", "IMA_ADPCM"),
    "b.flac": ("FLAC", "PCM_16"), "c.ogg": ("OGG", "VORBIS"), "d.opus": ("OGG", "OPUS"),
    "e.mp3": ("MP3", "MPEG_LAYER_III"), "f.aiff": ("AIFF", "PCM_24"), "g.rf64": ("RF64", "PCM_16"),
    "h.w64": ("W64", "PCM_16"), "i.au": ("AU", "PCM_16"), "j.caf": ("CAF", "PCM_16"), "k.sph": ("NIST", "PCM_16"),
    "l.wav": ("WAV", "GSM610"),
}  # fmt: skip
JOINED: Final = {"m.mp3": ("e.mp3", "e.mp3"), "n.ogg": ("c.ogg", "d.opus"), "o.flac": ("b.flac", "a.wav")}
"""Files that are two, one behind the other, with a tag between."""


def sound(folder: Path, file: str) -> None:
    """Write a sound like a voice in the container that `file` names."""
    if file in JOINED:
        for each in JOINED[file]:
            sound(folder, each)
        first, second = (folder / each for each in JOINED[file])
        (folder / file).write_bytes(first.read_bytes() + b"ID3\x04\0\0\0\0\x01\0" + bytes(128) + second.read_bytes())
        return
    t = np.arange(int(RATE * 0.6)) / RATE
    noise = np.random.default_rng(7).standard_normal(len(t))
    container, subtype = CONTAINERS[file]
    voice = 0.2 * np.sin(2 * np.pi * 180 * t) * (1 + np.sin(6 * t)) + 0.02 * noise
    soundfile.write(folder / file, voice, RATE, subtype, format=container)


def _silence(file: str, seconds: int, rate: int, folder: Path) -> None:
    with soundfile.SoundFile(folder / file, "w", rate, 1, "PCM_16") as written:
        for _ in range(seconds // 60):
            written.write(np.zeros(60 * rate, np.int16))


def _sound_on_purpose(rng: random.Random) -> Iterator[Attack]:
    def attack(name: str, make: Callable[[Path], object], word: str) -> Attack:
        return Attack(f"audio: {name}", make, ((*QUICK, word),))

    # First, for it is written soonest: the tests try the first attack of each kind.
    yield attack("a day at the lowest rate", functools.partial(_silence, "x.flac", 86_400, 1_000), "x.flac")
    yield attack("a day of silence", functools.partial(_silence, "x.flac", 86_400, RATE), "x.flac")
    for name in (b"caf\xe9.flac", b"\x1b[2J\x1b]0;x\x07.flac"):
        yield attack(f"{name!r}", functools.partial(_named, name), ".")
    for word in ("x" * 5000, "~nobody-of-this-name/a.wav", ".", "**/*.[ab", *DEVICES):
        yield attack(word[:30], nothing, word)
    for word in ("x.wav", "."):
        yield attack(f"a pipe as {word}", lambda folder: os.mkfifo(folder / "x.wav"), word)


def _named(name: bytes, folder: Path) -> None:
    sound(folder, "b.flac")
    os.replace(folder / "b.flac", os.path.join(os.fsencode(folder), name))


AUDIO: Final = Kind(_sound_on_purpose, lambda: [*CONTAINERS, *JOINED], sound, lambda file: ((*QUICK, file),))

# -- texts ---------------------------------------------------------------------------------------

HEADER: Final = "#JSGF V1.0;\ngrammar t;\npublic <a> = "
TOML = """title = "Mine"
description = "Of my own."
[config]
block = 8
model = "ptm"
[config.search]
beam = 11.0
[config.graph]
grammar = "digits"
"""
TSV = f"file\ttranscript\n{SPEECH}\tyes of course\nother.wav\tno\n"
JSGF = HEADER + '[please] (yes | no | /2/ of course) <b>*;\n<b> = {tag} now | "right now"; // end\n'
LIST = "# commands\nyes\nof course\nno\n"
DICTIONARY = "yes Y EH S\nyes(2) Y AE S\nof AH V\ncourse K AO R S\nno N OW\nnow N AW\n"
ARPA = """\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-1.0 <s> -0.3
-1.0 </s>
-0.7 yes -0.2
-0.7 of -0.1
-0.7 course -0.1

\\2-grams:
-0.5 <s> yes
-0.2 of course
-0.4 course </s>

\\end\\
"""
TEXTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "a.toml": (TOML, ("run", "--config", "a.toml", "--no-profile", "--audio", SPEECH)),
    "a.tsv": (TSV, (*RUN, "--transcripts", "a.tsv")),
    "a.gram": (JSGF, (*RUN, "--set", "graph.grammar=a.gram")),
    "a.txt": (LIST, (*RUN, "--set", "graph.grammar=a.txt")),
    "a.dict": (DICTIONARY, (*RUN, "--set", "graph.dictionary=a.dict", "--set", "graph.grammar=b.txt")),
    "a.arpa": (ARPA, (*RUN, "--set", "graph.language_model=a.arpa")),
    "a.arpa.gz": (ARPA, (*RUN, "--set", "graph.language_model=a.arpa.gz")),
    "a.arpa.bz2": (ARPA, (*RUN, "--set", "graph.language_model=a.arpa.bz2")),
}
"""File, sound content, and the command that reads it."""


def text(folder: Path, file: str) -> None:
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(file).suffix, bytes)
    (folder / file).write_bytes(pack(TEXTS[file][0].encode()))
    (folder / "b.txt").write_text("yes\nno\n", encoding="utf-8")


def _texts_on_purpose(rng: random.Random) -> Iterator[Attack]:
    keys = [*(option.key for option in options()), "", "x", "search.", "gmm", "a.b.c"]
    for _ in range(300):
        key, value = rng.choice(keys), rng.choice(mutate.TEXTS).replace("\0", "")
        command = (*RUN, "--set", "graph.grammar=digits", "--set", f"{key}={value}")
        yield Attack(f"texts: {key} = {value[:20]!r}", nothing, (command,))


TEXT_FILES: Final = Kind(_texts_on_purpose, lambda: list(TEXTS), text, lambda file: (TEXTS[file][1],))
