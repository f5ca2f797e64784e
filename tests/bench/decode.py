"""Whole decodes, side by side: this recogniser and pocketsphinx' own decoder.

Both get the same acoustic model, the same dictionary, the same pruned bigram and the same samples; each
utterance is decoded by one and at once by the other, the order swapped every time. pocketsphinx runs one
pass (`fwdflat` and `bestpath` off), which is what a single Viterbi pass compares with, and for its word
errors also with all its passes; everything else of it is at its defaults.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pocketsphinx

from pipelines import audio, playlist, presets, wer
from pipelines.control import Control
from pipelines.decode import Decoder
from pipelines.models import sphinx
from pipelines.playlist import Item
from pipelines.recogniser import Recogniser, build
from pipelines.search import build as language
from pipelines.search import compile as graphs
from pipelines.unrecorded import Unrecorded
from profiler.paths import cache_dir
from profiler.spans import NullLane, Recorder

Progress = Callable[[str, float | None], None]


@dataclass
class Side:
    """One decoder's words and times; a time for each utterance of each round."""

    decode: Callable[[Item], tuple[str, float]]
    heard: dict[str, str] = field(default_factory=dict)
    rounds: list[dict[str, float]] = field(default_factory=list)

    def take(self, item: Item) -> None:
        """Decode `item` once more, in the present round."""
        self.heard[item.name], self.rounds[-1][item.name] = self.decode(item)

    def errors(self, items: Iterable[Item]) -> wer.Count:
        """Word errors over the utterances of which is known what was said."""
        return wer.total((i.reference, self.heard[i.name]) for i in items if i.reference)

    def seconds(self) -> list[float]:
        """Time of each round."""
        return [sum(times.values()) for times in self.rounds]


def ours(recogniser: Recogniser) -> Side:
    """This recogniser with the recorder off."""

    def decode(item: Item) -> tuple[str, float]:
        decoder = Decoder(recogniser, Recorder(), NullLane(), Unrecorded(), Control())
        (done,) = decoder.run([item]).utterances
        return done.hypothesis, done.wall_ns / 1e9

    return Side(decode)


def theirs(files: tuple[Path, Path], **settings: Any) -> Side:
    """pocketsphinx with the language model and dictionary `files`."""
    decoder = pocketsphinx.Decoder(
        hmm=str(sphinx.default_directory()),
        lm=str(files[0]),
        dict=str(files[1]),
        loglevel="FATAL",
        **settings,
    )

    def decode(item: Item) -> tuple[str, float]:
        sound = audio.load(item.path)
        samples = np.clip(np.round(sound.samples * 32768.0), -32768, 32767).astype("<i2").tobytes()
        # Otherwise it carries its noise estimate over from the utterance before.
        decoder.reinit_feat()
        start = time.perf_counter()
        decoder.start_utt()
        decoder.process_raw(samples, full_utt=True)
        decoder.end_utt()
        found = decoder.hyp()
        return (found.hypstr if found else ""), time.perf_counter() - start

    return Side(decode)


def run(
    paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress
) -> dict[str, Any]:
    """Decode `paths` (default: the bundled voices) `repeat` times on both sides."""
    items = playlist.build(paths, transcripts)
    config = presets.load("gmm").config
    recogniser = build(config, Recorder(), NullLane(), progress, lambda: False)
    model = sphinx.load(sphinx.default_directory())
    folder = cache_dir("bench", f"{config.graph.vocabulary}-{config.graph.bigrams}")
    files = language.write_language(graphs.recipe_of(config.graph, model), folder)
    mine, one_pass = ours(recogniser), theirs(files, fwdflat=False, bestpath=False)
    all_passes = theirs(files)
    for turn in range(repeat):
        for side in (mine, one_pass):
            side.rounds.append({})
        for place, item in enumerate(items):
            progress(f"round {turn + 1} of {repeat}", place / len(items))
            order = (mine, one_pass) if (turn + place) % 2 else (one_pass, mine)
            for side in order:
                side.take(item)
    all_passes.rounds.append({})
    for place, item in enumerate(items):
        progress("pocketsphinx with all its passes", place / len(items))
        all_passes.take(item)
    ratios = [
        theirs / ours for ours, theirs in zip(mine.seconds(), one_pass.seconds(), strict=True)
    ]
    audio_s = sum(audio.load(item.path).duration_s for item in items)
    counts = {
        "ours": mine.errors(items),
        "pocketsphinx, one pass": one_pass.errors(items),
        "pocketsphinx, all passes": all_passes.errors(items),
    }
    return {
        "peer": f"pocketsphinx {version('pocketsphinx')}, one pass",
        "ratio": median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "ratio_meaning": "peer time / our time, features to words, median of paired runs",
        "agreement": {
            "same": "acoustic model, dictionary, language model and samples",
            "vocabulary": config.graph.vocabulary,
            "bigrams": config.graph.bigrams,
            "beam": config.search.beam,
            "max_active": config.search.max_active,
            "words": counts["ours"].reference_words,
            **{f"word errors, {name}": count.errors for name, count in counts.items()},
        },
        "rows": [
            {
                "decoder": "ours",
                "rtf": median(mine.seconds()) / audio_s,
                "wer": counts["ours"].rate,
            },
            {
                "decoder": "pocketsphinx, one pass",
                "rtf": median(one_pass.seconds()) / audio_s,
                "wer": counts["pocketsphinx, one pass"].rate,
            },
            {
                "decoder": "pocketsphinx, all passes",
                "rtf": median(all_passes.seconds()) / audio_s,
                "wer": counts["pocketsphinx, all passes"].rate,
            },
        ],
    }
