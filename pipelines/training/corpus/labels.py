"""Hard labels: the senone of each frame of read text, by forced alignment.

They lie in the folder of the shards: `labels-0000.safetensors` with `senones` u16 [frames] belongs to `shard-0000`.
Frames of recordings without a transcript, and of sentences with a word that has no pronunciation, are UNLABELLED.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from pipelines.config import Config
from pipelines.models import dictionary
from pipelines.models.sphinx import AcousticModel
from pipelines.training.corpus import data
from pipelines.training.corpus.data import CorpusError, DataRecipe, Frames, Progress
from profiler.arrays import U16, Array
from profiler.files.outputs import writing
from profiler.spans import NullLane

UNLABELLED = 65_535


def prepare(recipe: DataRecipe, folder: Path, model: AcousticModel, progress: Progress) -> None:
    """Label the shards of `recipe` in `folder` that have no labels yet, by what the teacher hears."""
    sources, _ = data.plan(recipe)
    ready = data.shards(folder)
    for number, shard in enumerate(ready):
        if not labelled(shard):
            words = [source.text.split() for source in sources[number * data.SHARD_UTTERANCES :]]
            what = f"labels of shard {number + 1} of {len(ready)}"
            write(aligned(data.read(shard), words, model, progress, what), shard)


def aligned(frames: Frames, words: Sequence[Sequence[str]], model: AcousticModel, progress: Progress, what: str) -> U16:
    """The senone of each frame by what `model` hears; UNLABELLED where an utterance has no words or none fit.

    `words`: of each utterance; more of them than utterances are left over. `what`: said to `progress` meanwhile.
    """
    from pipelines.scoring import build_scorer
    from pipelines.training.align import Aligner, AlignmentError

    aligner = Aligner(model.mdef, model.transitions, dictionary.default())
    scorer = build_scorer(Config(), model)
    labels = np.full(len(frames), UNLABELLED, np.uint16)
    starts = np.concatenate([[0], frames.ends[:-1]])
    for said, start, end in zip(words, starts, frames.ends, strict=False):
        progress(what, start / len(frames))
        if said:
            clean = frames.clean[start:end].astype(np.float32)
            with suppress(AlignmentError):
                labels[start:end] = aligner.align(scorer.score(clean, 0, NullLane()), said).senones
    return labels


def write(labels: U16, shard: Path) -> None:
    """Write the labels of `shard`, or of the held-out utterances, into its folder."""
    with writing(_file_of(shard), "the labels") as draft:
        save_file({"senones": labels}, draft)


def labelled(shard: Path) -> bool:
    return _file_of(shard).exists()


def read(shards: Sequence[Path]) -> U16:
    """The labels of all frames of `shards`; CorpusError where one has none."""
    parts: list[Array] = []
    for shard in shards:
        try:
            parts.append(load_file(_file_of(shard))["senones"])
        except (OSError, SafetensorError, KeyError):
            raise CorpusError(f"{shard} has no labels beside it; `prepare --labels` makes them.") from None
    return np.concatenate(parts)


def _file_of(shard: Path) -> Path:
    return shard.with_name(f"labels-{shard.name.removeprefix('shard-')}")
