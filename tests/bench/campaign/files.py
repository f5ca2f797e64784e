"""Sound and texts of strangers: damage comes from the mutator; on purpose are days of silence and odd names."""

import bz2
import functools
import gzip
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import soundfile

from tests.bench.campaign.attack import SPEECH, Attack, Kind, nothing

RATE: Final = 16_000
QUICK: Final = ("run", "--preset", "gmm-quick", "--no-profile", "--audio")
RUN: Final = (*QUICK, SPEECH)

CONTAINERS: Final = {
    "a.wav": ("WAV", "PCM_16"), "float.wav": ("WAV", "FLOAT"), "adpcm.wav": ("WAV", "IMA_ADPCM"),
    "b.flac": ("FLAC", "PCM_16"), "c.ogg": ("OGG", "VORBIS"), "d.opus": ("OGG", "OPUS"),
    "e.mp3": ("MP3", "MPEG_LAYER_III"), "f.aiff": ("AIFF", "PCM_24"), "g.rf64": ("RF64", "PCM_16"),
    "h.w64": ("W64", "PCM_16"), "i.au": ("AU", "PCM_16"), "j.caf": ("CAF", "PCM_16"), "k.sph": ("NIST", "PCM_16"),
    "l.wav": ("WAV", "GSM610"),
}  # fmt: skip
JOINED: Final = {"m.mp3": ("e.mp3", "e.mp3"), "n.ogg": ("c.ogg", "d.opus"), "o.flac": ("b.flac", "a.wav")}
"""Files that are two, one behind the other, with a tag between."""
WORDS: Final = (
    *("x" * 5000, "~nobody-of-this-name/a.wav", ".", "**/*.[ab"),
    *("/dev/zero", "/dev/null", "/dev/full", "/dev/tty", "/proc/self/mem", "/"),
)
"""What no sound is named."""


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


def _silence(rate: int, folder: Path) -> None:
    """A day of it."""
    with soundfile.SoundFile(folder / "x.flac", "w", rate, 1, "PCM_16") as written:
        for _ in range(24 * 60):
            written.write(np.zeros(60 * rate, np.int16))


def _sound_on_purpose(rng: random.Random) -> Iterator[Attack]:
    # First the lowest rate, for it is written soonest: the tests try the first attack of each kind.
    for rate in (1_000, RATE):
        yield Attack(f"audio: a day at {rate} Hz", functools.partial(_silence, rate), ((*QUICK, "x.flac"),))
    for word in WORDS:
        yield Attack(f"audio: {word[:30]}", nothing, ((*QUICK, word),))


AUDIO: Final = Kind(_sound_on_purpose, lambda: [*CONTAINERS, *JOINED], sound, lambda file: ((*QUICK, file),))

TOML = (
    'title = "Mine"\ndescription = "Of my own."\n[config]\nblock = 8\nmodel = "ptm"\n[config.search]\nbeam = 11.0\n'
    '[config.graph]\ngrammar = "digits"\n'
)
TSV = f"file\ttranscript\n{SPEECH}\tyes of course\nother.wav\tno\n"
JSGF = """#JSGF V1.0;
grammar t;
public <a> = [please] (yes | no | /2/ of course) <b>*;
<b> = {tag} now | "right now"; // end
"""
DICTIONARY = "yes Y EH S\nyes(2) Y AE S\nof AH V\ncourse K AO R S\nno N OW\nnow N AW\n"
ARPA = (
    "\\data\\\nngram 1=5\nngram 2=3\n\n\\1-grams:\n-1.0 <s> -0.3\n-1.0 </s>\n-0.7 yes -0.2\n-0.7 of -0.1\n"
    "-0.7 course -0.1\n\n\\2-grams:\n-0.5 <s> yes\n-0.2 of course\n-0.4 course </s>\n\n\\end\\\n"
)
TEXTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "a.toml": (TOML, ("run", "--config", "a.toml", "--no-profile", "--audio", SPEECH)),
    "a.tsv": (TSV, (*RUN, "--transcripts", "a.tsv")),
    "a.gram": (JSGF, (*RUN, "--set", "graph.grammar=a.gram")),
    "a.txt": ("# commands\nyes\nof course\nno\n", (*RUN, "--set", "graph.grammar=a.txt")),
    "a.dict": (DICTIONARY, (*RUN, "--set", "graph.dictionary=a.dict", "--set", "graph.grammar=b.txt")),
    **{f"a.arpa{end}": (ARPA, (*RUN, "--set", f"graph.language_model=a.arpa{end}")) for end in ("", ".gz", ".bz2")},
}
"""File, sound content, and the command that reads it."""


def text(folder: Path, file: str) -> None:
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(file).suffix, bytes)
    (folder / file).write_bytes(pack(TEXTS[file][0].encode()))
    (folder / "b.txt").write_text("yes\nno\n", encoding="utf-8")


TEXT_FILES: Final = Kind(files=lambda: list(TEXTS), make=text, commands=lambda file: (TEXTS[file][1],))
