"""Sound and texts of strangers. Damage comes from the mutator; made on purpose are bombs, devices, and odd names."""

from __future__ import annotations

import bz2
import functools
import gzip
import itertools
import os
import random
import struct
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


def _patched(file: str, at: int, content: bytes, length: int, folder: Path) -> None:
    sound(folder, file)
    data = bytearray((folder / file).read_bytes())
    data[at : at + len(content)] = content
    (folder / file).write_bytes(data)
    if length:
        os.truncate(folder / file, length)


def _sound_on_purpose(rng: random.Random) -> Iterator[Attack]:
    def attack(name: str, make: Callable[[Path], object], word: str) -> Attack:
        return Attack(f"audio: {name}", make, ((*QUICK, word),))

    # First, for it is written soonest: the tests try the first attack of each kind.
    yield attack("a day at the lowest rate", functools.partial(_silence, "x.flac", 86_400, 1_000), "x.flac")
    yield attack("a day of silence", functools.partial(_silence, "x.flac", 86_400, RATE), "x.flac")
    for shape, kind in (((4_000, 1024), np.int16), ((8_000,), np.float32)):
        for value in (0, float("nan"), 1e38)[: 1 if kind is np.int16 else 3]:
            samples, subtype = np.full(shape, value, kind), "PCM_16" if kind is np.int16 else "FLOAT"
            make = functools.partial(soundfile.write, data=samples, samplerate=RATE, subtype=subtype, format="WAV")
            yield attack(f"{shape} of {value}", lambda folder, make=make: make(folder / "x.wav"), "x.wav")
    numbers = [(24, rate) for rate in (0, 1, 999, 768_001, 2**31 - 1)]
    numbers += [(40, size) for size in (0, 1, 2**31 - 1, 2**32 - 2, 2**32 - 1)]
    for at, number in numbers:
        make = functools.partial(_patched, "a.wav", at, struct.pack("<I", number), 0)
        yield attack(f"{number} at {at}", make, "a.wav")
    yield attack("a FLAC of 2^36 samples", functools.partial(_patched, "b.flac", 21, b"\xff" * 5, 0), "b.flac")
    yield attack("60 GB", functools.partial(_patched, "a.wav", 40, b"\xff" * 4, 60 << 30), "a.wav")
    frames = b"\xff\xf3\x14\xc0" + bytes(20)
    for file, content, times in (
        ("x.wav", b"RIFF\xff\xff\xff\x7fWAVE" + b"junk\0\0\0\0" * 2_000_000, 1),
        ("x.ogg", b"OggS\0\2" + bytes(21), 1_000_000), ("x.mp3", frames, 1_700_000),
        ("x.mp3", b"ID3\x03\0\0\x7f\x7f\x7f\x7f", 1), ("x.mp3", frames * 3 + b"\xff", 300_000),
        ("x.flac", b"fLaC\0\0\0\x22" + bytes(40), 100_000),
        *(("x.wav", head, 1) for head in (b"R", b"RIFF", b"OggS", b"fLaC", b"ID3", b"\xff\xfb\x90\x00")),
    ):  # fmt: skip
        name = f"{times} × {content[:8]!r}"
        yield attack(name, lambda folder, f=file, c=content, n=times: (folder / f).write_bytes(c * n), file)
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
    """Write the sound text that `file` names."""
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(file).suffix, bytes)
    (folder / file).write_bytes(pack(TEXTS[file][0].encode()))
    (folder / "b.txt").write_text("yes\nno\n", encoding="utf-8")


def _texts_on_purpose(rng: random.Random) -> Iterator[Attack]:
    for file, name, content in (*_bombs(), *_packed()):

        def make(folder: Path, file: str = file, content: Callable[[], bytes] = content) -> None:
            text(folder, file)
            (folder / file).write_bytes(content())

        yield Attack(f"texts: {name}", make, (TEXTS[file][1],))
    keys = [*(option.key for option in options()), "", "x", "search.", "gmm", "a.b.c"]
    for _ in range(300):
        key, value = rng.choice(keys), rng.choice(mutate.TEXTS).replace("\0", "")
        command = (*RUN, "--set", "graph.grammar=digits", "--set", f"{key}={value}")
        yield Attack(f"texts: {key} = {value[:20]!r}", nothing, (command,))


def _packed() -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    for head, line in (
        ("\\data\\\nngram 1=40000000\n\n\\1-grams:\n", "-1 yes\n"),
        ("\\data\\\nngram 1=2\n\n\\1-grams:\n", "\n"),
        ("", "hello\n"),
    ):
        content = functools.partial(lambda h, n: gzip.compress(h + n * 10_000_000, 1), head.encode(), line.encode())
        yield "a.arpa.gz", f"10 million packed lines {line!r}", content


def _bombs() -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    for kind, what, content in _texts():
        yield kind, what, functools.partial(content.encode, "utf-8", "surrogatepass")


def _texts() -> Iterator[tuple[str, str, str]]:
    yield "a.toml", "TOML 5 000 deep", "a = " + "[" * 5000 + "]" * 5000
    yield "a.toml", "tables 5 000 deep", "[config" + ".a" * 5000 + "]\nx = 1"
    values = (
        "9" * 6000, "9" * 400, "[1]", "{}", "{a = 1}", "2024-02-29", "07:32:00", "nan", "-inf", "''", "true",
    )  # fmt: skip
    keys = ("block", "pace", "loop", "model", "model_directory", "search", "search.beam", "graph.order")
    for value, key in itertools.product(values, keys):
        if (key, value) == ("loop", "true"):  # sound input: that run goes on until it is stopped
            continue
        yield "a.toml", f"{key} = {value[:12]}", f"[config]\n{key} = {value}\n"
    yield "a.toml", "NUL in a value", '[config.graph]\ngrammar = "a\\u0000b"\n'
    yield "a.toml", "a long key", "[config]\n" + "x" * 1_000_000 + " = 1\n"
    yield "a.toml", "very many keys", "[config]\n" + "".join(f"x{i} = 1\n" for i in range(200_000))
    yield "a.tsv", "very many lines", "file\ttranscript\n" + "a.wav\t\n" * 2_000_000
    yield "a.tsv", "a long transcript", f"file\ttranscript\n{SPEECH}\t{'yes ' * 2_000_000}\n"
    yield "a.tsv", "NUL in a name", "file\ttranscript\na\0b\tyes\n"
    yield "a.tsv", "a loop of names", "file\ttranscript\n" + "../" * 3000 + "x\tyes\n"
    yield "a.gram", "a line of 300 000 words", HEADER + "yes no " * 150_000 + ";\n"
    yield "a.txt", "a list's line of 300 000 words", "yes no " * 150_000
    yield "a.txt", "a million words", "".join(f"w{i}\n" for i in range(1_000_000))
    yield "a.gram", "a million marks", HEADER + "yes" + "+" * 1_000_000 + ";\n"
    yield "a.gram", "groups 5 000 deep", HEADER + "(" * 5000 + "yes" + ")" * 5000 + ";\n"
    yield "a.gram", "weights beyond floats", HEADER + "/1e308/ yes | /1e308/ no | /1e-320/ of;\n"
    yield "a.gram", "a header without an end", "#JSGF V1.0" + " " * 3_000_000
    yield "a.gram", "a tag without an end", HEADER + "yes {" + "x" * 3_000_000
    yield "a.gram", "a million tags within tags", HEADER + "yes " + "{{}" * 1_000_000
    for name in ("punycode", "idna", "utf-7", "unicode_escape", "rot13", "UTF-16", "\x1b[31m"):
        yield "a.gram", f"declared {name!r}", HEADER.replace(";", f" {name};", 1) + "yes \\} né;\n"
    rules = "".join(f"<b{i}> = <b{i + 1}> <b{i + 1}>;\n" for i in range(50))
    yield "a.gram", "rules that double", f"{HEADER}<b0>;\n{rules}<b50> = yes;\n"
    chain = "".join(f"<b{i}> = <b{i + 1}>;\n" for i in range(5000))
    yield "a.gram", "a chain of rules", f"{HEADER}<b0>;\n{chain}<b5000> = yes;\n"
    yield "a.gram", "many ways to say it", HEADER + "(yes|no)* yes " + "(yes|no) " * 3000 + ";\n"
    yield "a.dict", "a word of 60 000 phones", "yes " + "AH N " * 30_000 + "\nno N OW\n"
    phones = ("AH", "N", "T", "IY")
    variants = (" ".join(phones[n >> 2 * i & 3] for i in range(9)) for n in range(120_000))
    many = "".join(f"yes({i}) {v}\n" for i, v in enumerate(variants))
    yield "a.dict", "120 000 variants", "no N OW\n" + many
    yield "a.dict", "a word that repeats itself", "no N OW\n" + "yes Y EH S\n" * 900_000
    yield "a.dict", "a long word", "no N OW\nyes Y EH S\n" + "x" * 5_000_000 + " AH\n"
    yield "a.dict", "unknown phones", "no N OW\nyes " + "\x1b[31m " * 10 + "\n"
    for count in ("9" * 5000, "²", "-1", "0", "49999999", "1e3"):
        yield "a.arpa", f"{count[:8]} 1-grams", ARPA.replace("ngram 1=5", f"ngram 1={count}")
    for number in ("nan", "-inf", "1e999", "1", "-1_0", "0x1"):
        yield "a.arpa", f"a probability of {number}", ARPA.replace("-0.7", number, 1)
    for order in (4, 5, 99):
        counts = "".join(f"\nngram {k}=0" for k in range(3, order + 1))
        text = ARPA.replace("\n\n", f"{counts}\n\n", 1)
        blocks = "".join(f"\\{k}-grams:\n\n" for k in range(3, order + 1))
        yield "a.arpa", f"order {order}", text.replace("\\end", f"{blocks}\\end")
    yield "a.arpa", "a long line", ARPA.replace("yes", "y" * 5_000_000)


TEXT_FILES: Final = Kind(_texts_on_purpose, lambda: list(TEXTS), text, lambda file: (TEXTS[file][1],))
