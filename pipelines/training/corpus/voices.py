"""The shipped voices as training data: enough to watch a net learn, with nothing that has to be fetched or spoken.

Ten utterances, a minute of speech, made many by changes that `data` draws; two of them are held out, sentences that no
shard contains. They lie in the cache as the shards and labels of any corpus do.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pipelines.audio import loading as audio
from pipelines.audio import word_errors as wer
from pipelines.models import sphinx
from pipelines.run import playlist
from pipelines.run.playlist import Item
from pipelines.training.corpus import data, labels
from pipelines.training.corpus.data import HELD_OUT, Change, Maker, Progress, Source
from profiler.files.paths import cache_dir

HELD = ("05-slt-market", "10-rms-evening")
PASSES = 10  # Of each utterance, the first unchanged: 50 000 frames
SEED = 1


def prepare(progress: Progress, passes: int = PASSES) -> Path:
    """The folder of one shard and the held-out utterances, both with labels; made the first time (half a minute)."""
    items = playlist.build(*playlist.bundled_speech()).items
    named = json.dumps([passes, SEED, [(item.name, item.path.stat().st_size) for item in items]])
    folder = cache_dir("training", f"voices-{hashlib.sha256(named.encode()).hexdigest()[:10]}")
    model = sphinx.load(sphinx.default_directory())
    maker = Maker(model.feat_params)
    taught = [item for item in items if item.name not in HELD]
    parts = [(HELD_OUT, [item for item in items if item.name in HELD], 1), ("shard-0000", taught, passes)]
    for stem, spoken, times in parts:
        path = folder / f"{stem}.safetensors"
        if not path.exists():
            progress("features of the shipped voices", None)
            made = [maker.frames(*each) for each in _changed(spoken, times)]
            data.write(data.joined(made), path)
        if not labels.labelled(path):
            words = [wer.words(item.reference or "") for item in spoken] * times
            labels.write(labels.aligned(data.read(path), words, model, progress, "labels of the shipped voices"), path)
    return folder


def _changed(items: list[Item], passes: int) -> Iterator[tuple[Source, Change, np.random.Generator]]:
    for number in range(passes):
        for place, item in enumerate(items):
            rng = np.random.default_rng([SEED, number, place])
            source = Source(file=str(item.path), span_s=(0.0, audio.load(item.path).duration_s))
            yield source, data.draw(rng) if number else Change(), rng
