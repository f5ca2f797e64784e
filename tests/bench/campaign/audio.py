"""Sound files of strangers: bombs, containers that lie, names, devices; then mutations of every container."""

from __future__ import annotations

import functools
import os
import random
import struct
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import soundfile

from tests.bench.campaign._damage import mutated
from tests.bench.campaign.attack import Attack

RATE = 16_000
SECONDS = 0.6
CONTAINERS = {
    "a.wav": ("WAV", "PCM_16"),
    "float.wav": ("WAV", "FLOAT"),
    "adpcm.wav": ("WAV", "IMA_ADPCM"),
    "b.flac": ("FLAC", "PCM_16"),
    "c.ogg": ("OGG", "VORBIS"),
    "d.opus": ("OGG", "OPUS"),
    "e.mp3": ("MP3", "MPEG_LAYER_III"),
    "f.aiff": ("AIFF", "PCM_24"),
    "g.rf64": ("RF64", "PCM_16"),
    "h.w64": ("W64", "PCM_16"),
    "i.au": ("AU", "PCM_16"),
    "j.caf": ("CAF", "PCM_16"),
    "k.sph": ("NIST", "PCM_16"),
    "l.wav": ("WAV", "GSM610"),
}
RUN = ("run", "--preset", "gmm-quick", "--no-profile", "--audio")


def attacks(random: random.Random, count: int) -> Iterator[Attack]:
    """`count` attacks: those on purpose first, then mutations."""
    return islice(_all(random), count)


def _all(rng: random.Random) -> Iterator[Attack]:
    for name, make, words in _on_purpose():
        yield Attack(f"audio: {name}", make, ((*RUN, *words),))
    while True:
        file, other, seed = (
            rng.choice(list(CONTAINERS)),
            rng.choice(list(CONTAINERS)),
            rng.getrandbits(32),
        )
        name, make = f"{file} mutated", functools.partial(_write_mutated, file, seed)
        if seed % 4 == 0:
            name = f"{file} and {other} joined, mutated"
            make = functools.partial(_write_joined, file, other, seed)
        yield Attack(f"audio: {name} by {seed}", make, ((*RUN, file),))


Purpose = tuple[str, Callable[[Path], None], tuple[str, ...]]


def _on_purpose() -> Iterator[Purpose]:
    # First, for it is written soonest: the tests try the first attack of each kind.
    yield (
        "a day at the lowest rate",
        functools.partial(_silence, "x.flac", 86_400, 1_000),
        ("x.flac",),
    )
    yield "a day of silence", functools.partial(_silence, "day.flac", 86_400, RATE), ("day.flac",)
    for channels in (7, 300, 1024):
        yield f"{channels} channels", functools.partial(_many_channels, channels), ("many.wav",)
    for rate in (0, 1, 999, 768_001, 2**31 - 1):
        make = functools.partial(_patched, "a.wav", 24, struct.pack("<I", rate))
        yield f"a rate of {rate}", make, ("a.wav",)
    for size in (0, 1, 2**31 - 1, 2**32 - 2, 2**32 - 1):
        make = functools.partial(_patched, "a.wav", 40, struct.pack("<I", size))
        yield f"a data chunk of {size}", make, ("a.wav",)
    samples = functools.partial(_patched, "b.flac", 21, b"\xff" * 5)
    yield "a FLAC of 2^36 samples", samples, ("b.flac",)
    frames = b"\xff\xf3\x14\xc0" + bytes(20)
    contents = [
        ("millions of chunks", "x.wav", b"RIFF\xff\xff\xff\x7fWAVE", b"junk\0\0\0\0", 2_000_000),
        ("a million empty Ogg pages", "x.ogg", b"", b"OggS\0\2" + bytes(21), 1_000_000),
        ("a million MPEG frames", "x.mp3", b"", frames, 1_700_000),
        ("an ID3 tag beyond the end", "x.mp3", b"ID3\x03\0\0\x7f\x7f\x7f\x7f", b"", 0),
        ("MPEG frames with rubbish between", "x.mp3", b"", frames * 3 + b"\xff", 300_000),
        ("100,000 FLACs", "x.flac", b"", b"fLaC\0\0\0\x22" + bytes(40), 100_000),
    ]
    for content in (b"", b"R", b"RIFF", b"OggS", b"fLaC", b"ID3", b"\xff\xfb\x90\x00", bytes(5000)):
        contents.append((f"only {content[:8]!r}", "x.wav", content, b"", 0))
    for name, file, head, part, times in contents:
        yield name, functools.partial(_put, file, head, part, times), (file,)
    for name, value in (("are no numbers", float("nan")), ("are beyond any scale", 1e38)):
        yield f"samples that {name}", functools.partial(_floats, value), ("x.wav",)
    yield "a sparse file of 60 GB", _sparse, ("a.wav",)
    yield "a sparse FLAC of 60 GB", _sparse_flac, ("b.flac",)
    yield "no UTF-8 in a name", _odd_name, (".",)
    escapes = functools.partial(_write, kind="a.wav", name="\x1b[2J\x1b]0;x\x07.wav")
    yield "an escape in a name", escapes, (".",)
    for name, word in (
        ("a long name that is not there", "x" * 5000),
        ("an unknown home", "~nobody-of-this-name/a.wav"),
        ("no file in the folder", "."),
        ("a pattern without a match", "**/*.[ab"),
    ):
        yield name, _nothing, (word,)
    for device in ("/dev/zero", "/dev/null", "/dev/full", "/dev/tty", "/proc/self/mem", "/"):
        yield f"{device}", _nothing, (device,)
    if hasattr(os, "mkfifo"):
        for name, word in (("a pipe", "x.wav"), ("a folder with a pipe", ".")):
            yield name, lambda folder: os.mkfifo(folder / "x.wav"), (word,)
    for target in ("/dev/zero", "x.wav", "nothing", "/"):
        yield f"a link to {target}", functools.partial(_link, target), ("x.wav",)
    yield "an MP3 without a note of its length", _no_length, ("e.mp3",)


def _nothing(folder: Path) -> None:
    """The command alone is the attack."""


def _put(file: str, head: bytes, part: bytes, times: int, folder: Path) -> None:
    (folder / file).write_bytes(head + part * times)


def _link(target: str, folder: Path) -> None:
    (folder / "x.wav").symlink_to(target)


def _write(folder: Path, kind: str, name: str | None = None) -> Path:
    """A sound like a voice in the container that `kind` names."""
    t = np.arange(int(RATE * SECONDS)) / RATE
    noise = np.random.default_rng(7).standard_normal(len(t))
    sound = 0.2 * np.sin(2 * np.pi * 180 * t) * (1 + np.sin(6 * t)) + 0.02 * noise
    container, subtype = CONTAINERS[kind]
    path = folder / (name or kind)
    soundfile.write(path, sound, RATE, subtype, format=container)
    return path


def _write_mutated(kind: str, seed: int, folder: Path) -> None:
    path = _write(folder, kind)
    path.write_bytes(mutated(random.Random(seed), path.read_bytes()))


def _write_joined(kind: str, other: str, seed: int, folder: Path) -> None:
    """Both behind each other, with a tag between."""
    rng = random.Random(seed)
    between = rng.choice((b"", b"ID3\x04\0\0\0\0\x01\0" + bytes(128), b"TAG" + bytes(125)))
    second = _write(folder, other).read_bytes()
    path = _write(folder, kind)
    path.write_bytes(mutated(rng, path.read_bytes() + between + second))


def _patched(kind: str, at: int, content: bytes, folder: Path) -> None:
    path = _write(folder, kind)
    data = bytearray(path.read_bytes())
    data[at : at + len(content)] = content
    path.write_bytes(data)


def _no_length(folder: Path) -> None:
    path = _write(folder, "e.mp3")
    path.write_bytes(path.read_bytes().replace(b"Xing", bytes(4)).replace(b"Info", bytes(4)))


def _silence(file: str, seconds: int, rate: int, folder: Path) -> None:
    with soundfile.SoundFile(folder / file, "w", rate, 1, "PCM_16") as sound:
        for _ in range(seconds // 60):
            sound.write(np.zeros(60 * rate, np.int16))


def _many_channels(channels: int, folder: Path) -> None:
    soundfile.write(folder / "many.wav", np.zeros((4_000, channels), np.int16), RATE)


def _floats(value: float, folder: Path) -> None:
    soundfile.write(folder / "x.wav", np.full(8_000, value, np.float32), RATE, "FLOAT")


def _sparse(folder: Path) -> None:
    _patched("a.wav", 40, struct.pack("<I", 0xFFFF_FFFF), folder)
    os.truncate(folder / "a.wav", 60 << 30)


def _sparse_flac(folder: Path) -> None:
    os.truncate(_write(folder, "b.flac"), 60 << 30)


def _odd_name(folder: Path) -> None:
    path = _write(folder, "b.flac")
    os.replace(path, os.path.join(os.fsencode(folder), b"caf\xe9.flac"))
