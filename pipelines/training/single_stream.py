"""Re-estimates the single-stream model on aligned speech: `python -m pipelines.training.single_stream`.

Sentences are spoken by flite, or recordings are taken from a folder with a `transcripts.tsv`; each utterance is
aligned with its words by the model as shipped; then every senone's mixture is fitted by EM to its frames together
with samples of its own density, which stand for what a few frames cannot tell (as a prior does in MAP
estimation, Gauvain & Lee 1994). Aligned speech is kept in the cache, so that a stopped run goes on where it was.
Only a finished model replaces the one before; it says in its `origin` on what it was estimated, and runs with
`model=single-stream` take it from then on. The same speech gives the same model.
"""

import argparse
import functools
import hashlib
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soxr

import assets
from pipelines.audio import loading as audio
from pipelines.audio import transcripts
from pipelines.audio import word_errors as wer
from pipelines.config import Config
from pipelines.frontend.mfcc import Mfcc
from pipelines.frontend.parameters import SAMPLE_RATE
from pipelines.models import derived, dictionary, single_stream, sphinx
from pipelines.models.derived import Progress
from pipelines.models.estimation import Frames
from pipelines.models.single_stream import no_frames
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import build_scorer
from pipelines.training.align import Aligner, Alignment, AlignmentError
from pipelines.training.corpus.data import SENTENCES, CorpusError, sentences
from profiler.arrays import Array
from profiler.errors import BadInput, Cancelled
from profiler.files import cache
from profiler.files.paths import cache_dir
from profiler.spans import NullLane

FRAMES_PER_HOUR = 360_000
FULL_SCALE = np.float32(32_768)
BATCH = 50  # utterances per file of aligned frames: what is lost at most when it is stopped
RECIPE = 1  # of these files; raise it when the same speech would give others
HOURS = 1.0  # To speak and to align an hour takes some three minutes on one core, to fit the mixtures one more
NEIGHBOURS = 4
SHARPNESS = 0.2
ALIGNED_SHARE = 0.5
"""A frame counts ALIGNED_SHARE for the senone it is aligned to; the rest is parted among the NEIGHBOURS likeliest
senones of the same phone and state, by their likelihoods to the power of SHARPNESS. So senones without frames of
their own see real frames too."""
PRIOR_FRAMES = 150.0
"""A senone's samples count as this many frames: of 30, 150 and 500, best on development sentences (240, 227 and
252 errors in 725 words, each at its best acoustic scale), and no worse on human speech than 30."""
DRAWS = 400  # samples per senone


class TrainingUtterance(NamedTuple):
    """The words spoken, `samples()` f32 at 16 kHz, and a `key` that changes when either does."""

    key: str
    words: list[str]
    samples: Callable[[], Array]


class Speech(NamedTuple):
    """Utterances to train on, and in words what they are."""

    utterances: list[TrainingUtterance]
    about: str


def synthetic(text: Path) -> Speech:
    """The training sentences of `text`, in flite's voices in turn, again and again. CorpusError or FliteMissing."""
    from assets.speech.build import FLITE_VERSION, VOICES, available_voices, speak

    available_voices()
    utterances = []
    for turn, (number, sentence) in itertools.product(range(len(VOICES)), enumerate(sentences(text, "training"))):
        voice = VOICES[(number + turn) % len(VOICES)]
        samples = partial(lambda s, v: speak(s, v) / FULL_SCALE, sentence, voice)
        utterances.append(TrainingUtterance(f"{FLITE_VERSION} {voice} {sentence}", sentence.split(), samples))
    return Speech(utterances, f"synthetic speech, flite's voices {', '.join(VOICES)}")


def recorded(folder: Path, about: str = "") -> Speech:
    """The sound files of `folder` that its `transcripts.tsv` names. AudioError."""
    utterances = []
    for file, words in sorted(transcripts.read(folder / "transcripts.tsv").by_place().items()):
        key = f"{hashlib.sha256(file.read_bytes()).hexdigest()} {words}"
        samples = partial(lambda f: audio.load(f).samples, file)
        utterances.append(TrainingUtterance(key, wer.words(words), samples))
    return Speech(utterances, about or f"the recordings in {folder}")


def available(text: Path) -> Speech:
    """Synthetic speech where flite and a text are there, else the few utterances that ship for the demo."""
    from assets.speech.build import FliteMissing

    try:
        return synthetic(text)
    except (CorpusError, FliteMissing) as error:
        sys.stderr.write(f"{error} Only the bundled demonstration utterances are left to train on.\n")
        return recorded(assets.path("speech"), "the bundled demonstration utterances (too little)")


def train(
    base: AcousticModel,
    components: int,
    speech: Speech,
    hours: float,
    progress: Progress,
    cancelled: Callable[[], bool] = lambda: False,
) -> AcousticModel:
    """Align up to `hours` of `speech`, fit the model and keep it; Cancelled, or BadInput when none can be aligned."""
    batches = list(_aligned(base, speech, hours, progress, cancelled))
    frames = _by_senone(base, batches)
    n = len(frames.features)
    if not n:
        raise CorpusError(f"None of {speech.about} can be aligned with its words.")
    seen = int(np.count_nonzero(np.diff(frames.first)))
    arrays = derived.create(single_stream.shape_of(base, components))
    title = "fitting the mixtures"
    single_stream.fit(base, arrays, title, frames, PRIOR_FRAMES, DRAWS, progress=progress, cancelled=cancelled)
    origin = (
        f"single-stream, {components} Gaussians per senone, resampled from the {base.origin} and "
        f"re-estimated on {n / FRAMES_PER_HOUR * 60:.0f} minutes of {speech.about}; "
        f"{seen} of {base.n_senones} senones have seen real frames"
    )
    path = single_stream.trained_file(base, components)
    cache.clear(path)
    cache.write(path, arrays, {"origin": origin})
    model = single_stream.trained(base, components)
    assert model is not None
    return model


class Batch(NamedTuple):
    """Aligned frames: `features` f32 [n, dim], `senones` int32 and `shares` f32 [n, 1 + NEIGHBOURS]."""

    features: Array
    senones: Array
    shares: Array


def _aligned(
    base: AcousticModel, speech: Speech, hours: float, progress: Progress, cancelled: Callable[[], bool]
) -> Iterator[Batch]:
    """Batches of aligned utterances from the cache, or made now, until there are enough frames."""
    recipe = {"frames": RECIPE, "sharing": [NEIGHBOURS, SHARPNESS, ALIGNED_SHARE]}
    folder = cache_dir("training") / f"frames-{derived.key(base, recipe)}"
    folder.mkdir(exist_ok=True)
    maker = functools.cache(lambda: _Maker(base))  # made when it is first used
    wanted, n = hours * FRAMES_PER_HOUR, 0
    for at in range(0, len(speech.utterances), BATCH):
        if n >= wanted:
            break
        progress("aligning speech", n / wanted)
        utterances = speech.utterances[at : at + BATCH]
        keys = "\n".join(utterance.key for utterance in utterances)
        path = folder / f"{hashlib.sha256(keys.encode()).hexdigest()[:24]}{cache.SUFFIX}"
        try:
            batch = Batch(**cache.read(path).arrays)
        except cache.CacheError:
            batch = maker().batch(utterances, cancelled)
            cache.clear(path)
            cache.write(path, batch._asdict(), {})
        n += len(batch.features)
        yield batch


class _Maker:
    """Aligns utterances."""

    def __init__(self, base: AcousticModel) -> None:
        self._aligner = Aligner(base.mdef, base.transitions, dictionary.default())
        self._scorer = build_scorer(Config(block=64), base)
        self._frontend = Mfcc(base.feat_params, transform=base.transform)
        state = base.mdef.senone_phone.astype(np.int64) * 8 + base.mdef.senone_state
        groups = [np.flatnonzero(state == s) for s in np.unique(state)]
        self._siblings = {int(senone): group for group in groups for senone in group}

    def batch(self, utterances: list[TrainingUtterance], cancelled: Callable[[], bool]) -> Batch:
        columns = 1 + NEIGHBOURS
        empty = (self._frontend.dimension, np.float32), (columns, np.int32), (columns, np.float32)
        parts = [Batch(*(np.empty((0, width), dtype) for width, dtype in empty))]
        rate = self._frontend.parameters.target.rate
        for utterance in utterances:
            if cancelled():
                raise Cancelled
            samples = utterance.samples()
            if rate != SAMPLE_RATE:
                samples = np.asarray(soxr.resample(samples, SAMPLE_RATE, rate), np.float32)
            features = self._frontend.features(samples)
            self._scorer.reset()
            scores = self._scorer.score(features, 0, NullLane())
            with suppress(AlignmentError):  # a word that the dictionary lacks
                parts.append(Batch(features, *self._share(scores, self._aligner.align(scores, utterance.words))))
        return Batch(*map(np.concatenate, zip(*parts, strict=True)))

    def _share(self, scores: Array, alignment: Alignment) -> tuple[Array, Array]:
        """Senones int32 and shares f32 [frames, 1 + NEIGHBOURS]: the aligned senone and likely siblings."""
        n = len(scores)
        senones = np.zeros((n, 1 + NEIGHBOURS), np.int32)
        shares = np.zeros((n, 1 + NEIGHBOURS), np.float32)
        senones[:, 0], shares[:, 0] = alignment.senones, ALIGNED_SHARE
        for t in range(n):
            group = self._siblings[int(alignment.senones[t])]
            value = np.exp(SHARPNESS * (scores[t, group] - scores[t, group].max()))
            best = np.argsort(-value, kind="stable")[:NEIGHBOURS]
            senones[t, 1 : 1 + len(best)] = group[best]
            shares[t, 1 : 1 + len(best)] = (1 - ALIGNED_SHARE) * value[best] / value[best].sum()
        return senones, shares


def _by_senone(base: AcousticModel, batches: list[Batch]) -> Frames:
    if not batches:
        return no_frames(base)
    features, senones, shares = map(np.concatenate, zip(*batches, strict=True))
    frame, column = np.nonzero(shares > 0)
    senone = senones[frame, column]
    order = np.argsort(senone, kind="stable")
    return Frames(
        features=features,
        which=frame[order].astype(np.int32),
        shares=shares[frame, column][order],
        first=np.searchsorted(senone[order], np.arange(base.n_senones + 1)),
    )


def _show(title: str, fraction: float | None) -> None:
    done = "" if fraction is None else f" {fraction:4.0%}"
    sys.stderr.write(f"\r\x1b[K{title}{done}" if sys.stderr.isatty() else f"{title}{done}\n")
    sys.stderr.flush()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.training.single_stream",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--components", type=int, default=Config().gmm.components, metavar="M")
    parser.add_argument("--hours", type=float, default=HOURS, help="of speech, at most")
    parser.add_argument("--text", type=Path, default=SENTENCES, help="sentences to speak, one a line")
    parser.add_argument("--audio", type=Path, help="a folder of recordings with a transcripts.tsv")
    parser.add_argument("--model", type=Path, help="the model to begin with (default: the shipped one)")
    given = parser.parse_args(arguments)
    try:
        base = sphinx.load(given.model or sphinx.default_directory())
        speech = recorded(given.audio) if given.audio else available(given.text)
        model = train(base, given.components, speech, given.hours, _show)
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped; speech that is aligned is kept, the model is as it was.\n")
        return 130
    except (BadInput, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{model.origin}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
