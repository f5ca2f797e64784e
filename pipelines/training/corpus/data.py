"""Training data: utterances as features in shards, made once, in an order and with changes that a seed fixes.

A shard is one safetensors file: `heard` f16 [frames, 39], the input of the student; `clean` f16 [frames, 39], that of
the teacher (without noise, level or vocal-tract change); `ends` i32 [utterances], where each utterance ends. Targets
are not kept: all posteriors of a frame take far more room than its features, so teachers answer afresh.
`held-out.safetensors` is made of sentences, and of one human recording, that no shard contains.

flite's voices speak sentences, which are parted once and for all by a seed: figures are reported on `test`, constants
are tuned on `development`, models are trained on `training`.

More voices, rooms and levels come from the same recordings. Speed changes by resampling, which moves pitch and
formants too (Ko et al. 2015, "Audio augmentation for speech recognition"); the vocal tract by scaling the mel filters
(Lee & Rose 1996; as augmentation Jaitly & Hinton 2013). Speed changes when things are said, so it applies to the
teacher's input too; noise, level and vocal tract change that of the student alone, which is to answer as the teacher
did for the clean sound.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soxr
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from assets.speech.build import VOICES, speak
from pipelines.audio import loading as audio
from pipelines.audio import word_errors as wer
from pipelines.frontend.parameters import SAMPLE_RATE
from profiler.arrays import F32, I32, I64, Array
from profiler.errors import BadInput
from profiler.files import inputs
from profiler.files.outputs import writing

SPEEDS = (0.9, 1.1)  # Drawn evenly between; Ko et al. took 0.9, 1.0 and 1.1.
WARPS = (0.88, 0.92, 0.96, 1.0, 1.04, 1.08, 1.12)
"""Factors of the mel filters: the range that vocal tract length normalisation searches."""
SNR_DB = (8.0, 40.0)
SLOPES = (0.0, 1.5)  # Amplitude of the noise falls with this power of the frequency: white to brownish
LEVEL_DB = (-20.0, 6.0)
CHANGED = 0.6  # Share of the utterances that each change is applied to; the others keep what they had
Samples = F32


@dataclass(frozen=True)
class Change:
    """Changes to one utterance; the defaults make none."""

    speed: float = 1.0
    warp: float = 1.0
    snr_db: float | None = None
    slope: float = 0.0
    level_db: float = 0.0


def draw(rng: np.random.Generator) -> Change:
    """A change by chance."""
    happens = rng.random(4) < CHANGED
    speed, warp = rng.uniform(*SPEEDS), float(rng.choice(WARPS))
    snr_db, slope, level_db = rng.uniform(*SNR_DB), rng.uniform(*SLOPES), rng.uniform(*LEVEL_DB)
    drawn = {"speed": speed, "warp": warp, "snr_db": snr_db, "level_db": level_db}
    return Change(slope=slope, **{name: each for (name, each), so in zip(drawn.items(), happens, strict=True) if so})


def faster(samples: Samples, speed: float) -> Samples:
    """`samples` at `speed` times the speed, pitch and formants with it."""
    if speed == 1.0:
        return samples
    return np.asarray(soxr.resample(samples, SAMPLE_RATE * speed, SAMPLE_RATE), np.float32)


def roughened(samples: Samples, change: Change, rng: np.random.Generator) -> Samples:
    """`samples` with the noise and at the level of `change`; nothing moves in time."""
    result = samples
    if change.snr_db is not None and len(samples) > 1:
        points = 1 << (len(samples) - 1).bit_length()  # other lengths take up to ten times as long
        spectrum = np.fft.rfft(rng.standard_normal(points))
        spectrum *= np.maximum(np.arange(len(spectrum)), 1.0) ** -change.slope
        noise = np.fft.irfft(spectrum)[: len(samples)]
        wanted = np.sqrt(np.mean(samples.astype(np.float64) ** 2)) * 10 ** (-change.snr_db / 20)
        result = samples + noise * (wanted / np.sqrt(np.mean(noise**2)))
    result = result * 10 ** (change.level_db / 20)
    return np.clip(result, -1.0, 1.0).astype(np.float32)


SENTENCES = Path(__file__).parents[4] / "shared" / "text" / "sentences.txt"
"""One sentence per line; used where no other file is named."""

SEED = 1
RESERVED = 300  # sentences set aside for `test`, and as many for `development`
SPLITS = ("test", "development", "training")


class CorpusError(BadInput):
    """The requested corpus cannot be made; the message is one sentence."""


def sentences(text: Path, split: str, seed: int = SEED) -> list[str]:
    """The sentences of `split` in a fixed random order, as plain words."""
    try:
        lines = inputs.lines_of(text.read_text(encoding="utf-8"))
    except OSError as error:
        raise CorpusError(f"The text {text} cannot be read: {error.strerror or error}.") from None
    # A sentence that occurs twice must not fall into two splits.
    plain = sorted({" ".join(wer.words(line)) for line in lines} - {""})
    random.Random(seed).shuffle(plain)
    first = RESERVED * SPLITS.index(split)
    return plain[first:] if split == "training" else plain[first : first + RESERVED]


Progress = Callable[[str, float | None], None]

SHARD_UTTERANCES = 256
PIECE_S = (3.0, 10.0)  # Long human recordings are cut into pieces of a length drawn between these, anew for every pass
HELD_OUT = "held-out"
RECIPE = "recipe.json"


@dataclass(frozen=True)
class DataRecipe:
    """Sources of the shards. `human` names unlabelled recordings, the last of which is held out."""

    text: str = str(SENTENCES)
    passes: int = 2  # How often each voice speaks each sentence, changed in another way each time
    human: tuple[str, ...] = ()
    human_passes: int = 40
    held_out: int = 60
    """Sentences of the training split, spoken by one voice each, that are validated on and not trained on."""
    seed: int = 1

    @property
    def described(self) -> dict[str, Any]:
        named = {"text": Path(self.text).name, "human": [Path(file).name for file in self.human]}
        return asdict(self) | named

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.described).encode()).hexdigest()[:10]


@dataclass(frozen=True)
class Source:
    """Origin of an utterance: a sentence and its voice, or seconds of a recording."""

    voice: str = ""
    text: str = ""
    file: str = ""
    span_s: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Frames:
    """Utterances one after the other; `heard` and `clean` f32 or f16 [frames, 39], `ends` i32 [utterances]."""

    heard: Array
    clean: Array
    ends: I32

    def __len__(self) -> int:
        return len(self.heard)


def plan(recipe: DataRecipe) -> tuple[list[Source], list[Source]]:
    """Return the training utterances in the order of the shards, and the held-out ones."""
    chosen = sentences(Path(recipe.text), "training")
    if len(chosen) <= recipe.held_out:
        raise CorpusError(
            f"The training split of {recipe.text} has {len(chosen)} sentences; more than the "
            f"{recipe.held_out} that are held out are needed."
        )
    held, spoken = chosen[: recipe.held_out], chosen[recipe.held_out :]
    held_out = [Source(VOICES[i % len(VOICES)], text) for i, text in enumerate(held)]
    trained = [Source(voice, text) for _ in range(recipe.passes) for text in spoken for voice in VOICES]
    rng = np.random.default_rng([recipe.seed, 0])
    for file in recipe.human[:-1]:
        for _ in range(recipe.human_passes):
            trained += _pieces(file, rng)
    for file in recipe.human[-1:]:
        held_out += _pieces(file, rng)
    return [trained[i] for i in rng.permutation(len(trained))], held_out


def _pieces(file: str, rng: np.random.Generator) -> Iterator[Source]:
    duration_s = audio.load(file).duration_s
    start = 0.0
    while start < duration_s:
        length = rng.uniform(*PIECE_S)
        # What would be left over behind is shorter than any piece: it goes with this one.
        end = duration_s if duration_s - start - length < PIECE_S[0] else start + length
        yield Source(file=file, span_s=(start, end))
        start = end


class Maker:
    """Turns sources into features."""

    def __init__(self, feat_params: dict[str, str]) -> None:
        from pipelines.frontend.mfcc import Mfcc  # loads numba, and who reads shards needs none

        self._plain = Mfcc(feat_params)
        self._warped = {warp: Mfcc(feat_params, warp) for warp in WARPS}
        self._recordings: dict[str, Samples] = {}

    def frames(self, source: Source, change: Change, rng: np.random.Generator) -> Frames:
        """Features of one utterance."""
        samples = faster(self._samples(source), change.speed)
        clean = self._plain.features(samples)
        heard = self._warped[change.warp].features(roughened(samples, change, rng))
        return Frames(heard, clean, np.array([len(clean)], np.int32))

    def _samples(self, source: Source) -> Samples:
        if source.text:
            return np.divide(speak(source.text, source.voice), 32768, dtype=np.float32)
        if source.file not in self._recordings:
            self._recordings[source.file] = audio.load(source.file).samples
        first, last = (int(s * SAMPLE_RATE) for s in source.span_s)
        return self._recordings[source.file][first:last]


def joined(parts: Sequence[Frames]) -> Frames:
    """Several as one."""
    starts = np.cumsum([0, *(len(part) for part in parts)])
    return Frames(
        np.concatenate([part.heard for part in parts]),
        np.concatenate([part.clean for part in parts]),
        np.concatenate([part.ends + start for part, start in zip(parts, starts, strict=False)]),
    )


def prepare(
    recipe: DataRecipe, folder: Path, feat_params: dict[str, str], progress: Progress, shards: int | None = None
) -> None:
    """Make the shards of `recipe`, or the first `shards`, that are not in `folder` yet; it may be interrupted."""
    folder.mkdir(parents=True, exist_ok=True)
    trained, held_out = plan(recipe)
    (folder / RECIPE).write_text(json.dumps(recipe.described, indent=1) + "\n", encoding="utf-8")
    maker = Maker(feat_params)
    quiet = np.random.default_rng(0)
    path = folder / f"{HELD_OUT}.safetensors"
    if not path.exists():
        progress("held-out utterances", None)
        write(joined([maker.frames(source, Change(), quiet) for source in held_out]), path)
    for first in range(0, len(trained), SHARD_UTTERANCES)[:shards]:
        path = folder / f"shard-{first // SHARD_UTTERANCES:04d}.safetensors"
        if path.exists():
            continue
        parts = []
        for i, source in enumerate(trained[first : first + SHARD_UTTERANCES], first):
            rng = np.random.default_rng([recipe.seed, 1, i])  # its own, wherever it is made
            parts.append(maker.frames(source, draw(rng), rng))
            progress(path.stem, i / len(trained))
        write(joined(parts), path)


def write(frames: Frames, path: Path) -> None:
    """Write a shard, or the held-out utterances."""
    heard, clean = frames.heard.astype(np.float16), frames.clean.astype(np.float16)
    with writing(path, "the shard") as draft:
        save_file({"heard": heard, "clean": clean, "ends": frames.ends.astype(np.int32)}, draft)


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("shard-*.safetensors"))


def read(path: Path) -> Frames:
    """One shard, or the held-out utterances; CorpusError when it is not one."""
    try:
        found = load_file(path)
        frames = Frames(found["heard"], found["clean"], found["ends"])
    except (OSError, SafetensorError, KeyError) as error:
        raise CorpusError(f"{path} is no shard of training data: {error}.") from None
    fits = frames.heard.ndim == 2 and frames.heard.shape == frames.clean.shape
    if not fits or not len(frames.ends) or frames.ends[-1] != len(frames):
        raise CorpusError(f"{path} is no shard of training data: its tensors do not fit together.")
    return frames


class Pool:
    """All frames of some shards. Context never reaches into another utterance: its outermost frame repeats."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        lengths = np.diff(frames.ends, prepend=0)
        self._last = np.repeat(frames.ends - 1, lengths)
        self._first = np.repeat(frames.ends - lengths, lengths)

    @classmethod
    def of(cls, paths: Sequence[Path]) -> Pool:
        """The pool of the shards `paths`."""
        return cls(joined([read(path) for path in paths]))

    def __len__(self) -> int:
        return len(self.frames)

    def student_input(self, at: Array, left: int, right: int) -> F32:
        """Return the student's input around the frames `at` [n]: f32 [n, left + 1 + right, 39]."""
        return self._around(self.frames.heard, at, left, right)

    def clean(self, at: Array, left: int = 0, right: int = 0) -> F32:
        """Return the teacher's input, in the same form."""
        return self._around(self.frames.clean, at, left, right)

    def later(self, at: Array, frames: int) -> Array:
        """The frames that many after `at`, or the last of the utterance."""
        later: Array = np.minimum(at + frames, self._last[at])
        return later

    def _around(self, source: Array, at: Array, left: int, right: int) -> F32:
        where = at[:, None] + np.arange(-left, right + 1)
        where = np.clip(where, self._first[at][:, None], self._last[at][:, None])
        return source[where].astype(np.float32)


def order(frames: int, seed: int, epoch: int, run: int = 1) -> I64:
    """The order in which an epoch takes the frames, `run` that follow each other at a time."""
    starts = np.random.default_rng([seed, epoch]).permutation(-(-frames // run)) * run
    taken = (starts[:, None] + np.arange(run)).ravel()
    return taken[taken < frames]
