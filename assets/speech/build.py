"""Speak the bundled utterances with flite: `python -m assets.speech.build` writes them beside this.

The output is the same for the same flite (the shipped files come from FLITE_VERSION): its voices
use no chance, and the noise of one utterance is drawn from a fixed seed. Without flite nothing is
changed. Voices: https://github.com/festvox/flite; texts: written for this collection.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
from numpy.typing import NDArray

SAMPLE_RATE = 16_000
FLITE_VERSION = "flite-2.2"
VOICES = ("slt", "rms", "awb", "kal16")
"""flite's general 16 kHz voices; `kal` is 8 kHz and `awb_time` only tells the time."""

NOISE_SEED = 20_040
NOISE_TO_SPEECH = 1.0  # RMS of the burst relative to that of the whole utterance: 0 dB
NOISE_SPAN = (0.35, 0.75)  # where the burst lies, as parts of the utterance
NOISE_EDGE_S = 0.05  # it fades in and out


class FliteMissing(OSError):
    """flite is not installed, or lacks a voice."""


class Utterance(NamedTuple):
    """One bundled utterance: its file is `{number}-{voice}-{subject}.flac`."""

    voice: str
    subject: str
    text: str
    noise: bool = False


UTTERANCES = (
    Utterance(
        "slt",
        "morning",
        "the first train leaves the station at seven and most of the people on it "
        "are still half asleep when it comes into the city",
    ),
    Utterance(
        "rms",
        "harbor",
        "when the wind turned to the north the men pulled the boat up on the beach "
        "and waited under the trees for the rain to stop",
    ),
    Utterance(
        "awb",
        "letter",
        "she read the letter twice put it back on the table and said that nobody "
        "in the house had ever heard of such a thing",
    ),
    Utterance("kal16", "numbers", "four seven two nine one zero six five eight three seven one nine"),
    Utterance(
        "slt",
        "market",
        "prices rose again last month but the company says it will open three new "
        "stores before the end of the year and give work to more than two hundred people",
    ),
    Utterance(
        "rms",
        "noise",
        "we had almost reached the top of the hill when a truck came down the road "
        "and for a long time nobody could hear a single word that was said",
        noise=True,
    ),
    Utterance(
        "awb",
        "names",
        "professor kowalczyk showed miss featherstonehaugh a quinquereme a zymurgist "
        "and the thaumaturge of llanfairfechan",
    ),
    Utterance("kal16", "short", "yes of course"),
    Utterance(
        "slt",
        "doctor",
        "the doctor told him to drink more water to walk every day and to think "
        "about his work only when he was paid for it",
    ),
    Utterance(
        "rms",
        "evening",
        "in the evening the children came home from school the lights went on one "
        "by one and the street was quiet again until the next day when the whole story "
        "began once more",
    ),
)


def available_voices() -> list[str]:
    """The voices of the installed flite; FliteMissing when there is none."""
    if shutil.which("flite") is None:
        raise FliteMissing("flite is not installed (Debian and Ubuntu: apt install flite).")
    listed = subprocess.run(["flite", "-lv"], capture_output=True, text=True, check=False).stdout
    return listed.partition(":")[2].split()


def speak(text: str, voice: str) -> NDArray[np.int16]:
    """`text` as spoken by one of VOICES, int16[n] at 16 kHz."""
    if voice not in available_voices():
        raise FliteMissing(f"flite has no voice {voice}; it has {', '.join(available_voices())}.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "spoken.wav"
        subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(file)], check=True, capture_output=True)
        samples, rate = soundfile.read(file, dtype="int16")
    if rate != SAMPLE_RATE:
        raise FliteMissing(f"flite's voice {voice} speaks at {rate} Hz; 16000 Hz is needed.")
    return np.asarray(samples, np.int16)


def with_burst(samples: NDArray[np.int16]) -> NDArray[np.int16]:
    """Add a burst of white noise in the middle: what is said there is hard to tell."""
    first, last = (int(len(samples) * part) for part in NOISE_SPAN)
    # Raw bits, because only those are promised to stay the same in every version of numpy.
    bits = np.random.PCG64(NOISE_SEED).random_raw(last - first)
    uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53 - 0.5
    level = NOISE_TO_SPEECH * np.sqrt(np.mean(samples.astype(np.float64) ** 2))
    ramp = np.arange(len(uniform)) / (NOISE_EDGE_S * SAMPLE_RATE)
    envelope = np.clip(np.minimum(ramp, ramp[::-1]), 0.0, 1.0)
    noisy = samples.astype(np.float64)
    noisy[first:last] += uniform * np.sqrt(12.0) * level * envelope
    return np.clip(np.rint(noisy), -32_768, 32_767).astype(np.int16)


def render(utterance: Utterance) -> NDArray[np.int16]:
    """The samples of one utterance, int16[n] at 16 kHz."""
    samples = speak(utterance.text, utterance.voice)
    return with_burst(samples) if utterance.noise else samples


def file_name(number: int, utterance: Utterance) -> str:
    """Name of the `number`-th (from 1) utterance's file."""
    return f"{number:02d}-{utterance.voice}-{utterance.subject}.flac"


def build(folder: Path) -> list[Path]:
    """Write all utterances and `transcripts.tsv` into `folder`; returns the sound files."""
    rendered = [render(utterance) for utterance in UTTERANCES]  # all, before any file is touched
    files, lines = [], ["file\ttranscript"]
    for number, (utterance, samples) in enumerate(zip(UTTERANCES, rendered, strict=True), start=1):
        file = folder / file_name(number, utterance)
        soundfile.write(file, samples, SAMPLE_RATE, subtype="PCM_16")
        files.append(file)
        lines.append(f"{file.name}\t{utterance.text}")
    (folder / "transcripts.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return files


def main(arguments: Sequence[str] | None = None) -> int:
    """Rebuild the bundled speech in place, or say why not."""
    parser = argparse.ArgumentParser(
        prog="python -m assets.speech.build", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(__file__).parent,
        help="where the files go (beside this module, over what is there)",
    )
    folder = parser.parse_args(arguments).folder
    try:
        files = build(folder)
    except FliteMissing as error:
        sys.stderr.write(f"The bundled speech stays as it is: {error}\n")
        return 0
    seconds = sum(soundfile.info(file).duration for file in files)
    size = sum(file.stat().st_size for file in files)
    sys.stdout.write(f"{len(files)} utterances, {seconds:.1f} s, {size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
