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

from tests.bench.campaign._mutation import mutated
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
        file, seed = rng.choice(list(CONTAINERS)), rng.getrandbits(32)
        if seed % 4 == 0:
            other = rng.choice(list(CONTAINERS))
            make = functools.partial(_write_joined, file, other, seed)
            yield Attack(
                f"audio: {file} and {other} joined, mutated by {seed}", make, ((*RUN, file),)
            )
            continue
        yield Attack(
            f"audio: {file} mutated by {seed}",
            functools.partial(_write_mutated, file, seed),
            ((*RUN, file),),
        )


Purpose = tuple[str, Callable[[Path], None], tuple[str, ...]]


def _on_purpose() -> Iterator[Purpose]:
    # First, for it is written soonest: the tests try the first attack of each kind.
    yield (
        "a day at the lowest rate",
        lambda folder: _silence(folder / "x.flac", 86_400, 1_000),
        ("x.flac",),
    )
    yield "a day of silence", lambda folder: _silence(folder / "day.flac", 86_400), ("day.flac",)
    for channels in (7, 300, 1024):
        make = functools.partial(_many_channels, channels=channels)
        yield f"{channels} channels", make, ("many.wav",)
    for rate in (0, 1, 999, 768_001, 2**31 - 1):
        make = functools.partial(_patched, "a.wav", 24, struct.pack("<I", rate))
        yield f"a rate of {rate}", make, ("a.wav",)
    for size in (0, 1, 2**31 - 1, 2**32 - 2, 2**32 - 1):
        make = functools.partial(_patched, "a.wav", 40, struct.pack("<I", size))
        yield f"a data chunk of {size}", make, ("a.wav",)
    yield (
        "a FLAC of 2^36 samples",
        functools.partial(_patched, "b.flac", 21, b"\xff" * 5),
        ("b.flac",),
    )
    chunks = b"RIFF\xff\xff\xff\x7fWAVE" + b"junk\0\0\0\0" * 2_000_000
    yield "millions of chunks", lambda folder: _put(folder / "x.wav", chunks), ("x.wav",)
    pages = (b"OggS\0\2" + bytes(21)) * 1_000_000
    yield "a million empty Ogg pages", lambda folder: _put(folder / "x.ogg", pages), ("x.ogg",)
    frames = b"\xff\xf3\x14\xc0" + bytes(20)
    yield (
        "a million MPEG frames",
        lambda folder: _put(folder / "x.mp3", frames * 1_700_000),
        ("x.mp3",),
    )
    tag = b"ID3\x03\0\0\x7f\x7f\x7f\x7f"
    yield "an ID3 tag beyond the end", lambda folder: _put(folder / "x.mp3", tag), ("x.mp3",)
    yield "samples that are no numbers", lambda folder: _floats(folder, float("nan")), ("x.wav",)
    yield "samples beyond any scale", lambda folder: _floats(folder, 1e38), ("x.wav",)
    yield "a sparse file of 60 GB", _sparse, ("x.wav",)
    yield "a sparse FLAC of 60 GB", _sparse_flac, ("b.flac",)
    parted = (frames[:24] * 3 + b"\xff") * 300_000
    yield (
        "MPEG frames with rubbish between",
        lambda folder: _put(folder / "x.mp3", parted),
        ("x.mp3",),
    )
    many = b"fLaC\0\0\0\x22" + bytes(40)
    yield "100,000 FLACs", lambda folder: _put(folder / "x.flac", many * 100_000), ("x.flac",)
    for content in (b"", b"R", b"RIFF", b"OggS", b"fLaC", b"ID3", b"\xff\xfb\x90\x00", bytes(5000)):
        make = functools.partial(
            lambda folder, content: _put(folder / "x.wav", content), content=content
        )
        yield f"only {content[:8]!r}", make, ("x.wav",)
    yield "no UTF-8 in a name", _odd_name, (".",)
    yield (
        "an escape in a name",
        lambda folder: _write(folder, "a.wav", "\x1b[2J\x1b]0;x\x07.wav"),
        (".",),
    )
    yield "a long name that is not there", _nothing, ("x" * 5000,)
    yield "an unknown home", _nothing, ("~nobody-of-this-name/a.wav",)
    yield "no file in the folder", _nothing, (".",)
    yield "a pattern without a match", _nothing, ("**/*.[ab",)
    for device in ("/dev/zero", "/dev/null", "/dev/full", "/dev/tty", "/proc/self/mem", "/"):
        yield f"{device}", _nothing, (device,)
    if hasattr(os, "mkfifo"):
        yield "a pipe", lambda folder: os.mkfifo(folder / "x.wav"), ("x.wav",)
        yield "a folder with a pipe", lambda folder: os.mkfifo(folder / "x.wav"), (".",)
    for target in ("/dev/zero", "x.wav", "nothing", "/"):
        make = functools.partial(lambda folder, to: (folder / "x.wav").symlink_to(to), to=target)
        yield f"a link to {target}", make, ("x.wav",)
    bare = functools.partial(_patched, "e.mp3", 0, b"")
    yield (
        "an MP3 without a note of its length",
        lambda folder: bare(folder, b"Xing", b"Info"),
        ("e.mp3",),
    )


def _nothing(folder: Path) -> None:
    """The command alone is the attack."""


def _put(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _write(folder: Path, kind: str, name: str | None = None) -> Path:
    """Something like a voice in the container that `kind` names."""
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


def _patched(kind: str, at: int, content: bytes, folder: Path, *gone: bytes) -> None:
    path = _write(folder, kind)
    data = bytearray(path.read_bytes())
    data[at : at + len(content)] = content
    for mark in gone:
        data = data.replace(mark, bytes(len(mark)))
    path.write_bytes(data)


def _silence(path: Path, seconds: int, rate: int = RATE) -> None:
    with soundfile.SoundFile(path, "w", rate, 1, "PCM_16") as file:
        for _ in range(seconds // 60):
            file.write(np.zeros(60 * rate, np.int16))


def _many_channels(folder: Path, channels: int) -> None:
    soundfile.write(folder / "many.wav", np.zeros((4_000, channels), np.int16), RATE)


def _floats(folder: Path, value: float) -> None:
    soundfile.write(folder / "x.wav", np.full(8_000, value, np.float32), RATE, "FLOAT")


def _sparse(folder: Path) -> None:
    path = _write(folder, "a.wav", "x.wav")
    os.truncate(path, 60 << 30)
    with path.open("r+b") as file:
        file.seek(40)
        file.write(struct.pack("<I", 0xFFFF_FFFF))


def _sparse_flac(folder: Path) -> None:
    os.truncate(_write(folder, "b.flac"), 60 << 30)


def _odd_name(folder: Path) -> None:
    path = _write(folder, "b.flac")
    os.replace(path, os.path.join(os.fsencode(folder), b"caf\xe9.flac"))
