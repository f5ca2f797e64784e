"""Whole decodes, side by side: this recogniser and pocketsphinx' own decoder.

Both get the same acoustic model, the same dictionary, the same pruned bigram and the same samples, at
the preset's vocabulary and at 20 000 words; each utterance is decoded by one and at once by the other,
the order swapped every time. pocketsphinx runs one pass (`fwdflat` and `bestpath` off), which is what a
single Viterbi pass compares with, and at the preset's vocabulary for its word errors also with all its
passes; everything else of it is at its defaults.
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

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.audio import word_errors as wer
from pipelines.config import Config, presets
from pipelines.models import sphinx
from pipelines.run import playlist
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.interleave import turns
from pipelines.run.null_writer import NullWriter
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser, build
from pipelines.search.graph.recipe import Recipe, recipe_of
from pipelines.search.graph.sources import language
from profiler.files.paths import cache_dir
from profiler.spans import NullLane, Recorder
from tests.pipelines.language_models import write_arpa, write_dictionary

Progress = Callable[[str, float | None], None]

PRESET = "gmm"
"""What a person gets who changes nothing: exact scores, although the peer selects densities."""
BEAM = 12.0
"""On the development sentences (2 866 words) it costs 2 errors more than the preset's 13; the peer makes far more."""
LARGE_VOCABULARY = 20_000
OUR_SEARCH = ("beam", "max_active", "acoustic_scale", "insertion_penalty")
THEIR_SETTINGS = ("beam", "wbeam", "pbeam", "maxhmmpf", "lw", "wip", "topn", "compallsen", "ds")
OURS, ONE_PASS, ALL_PASSES = "ours", "pocketsphinx, one pass", "pocketsphinx, all passes"


@dataclass
class Side:
    """One decoder's words and times; a time for each utterance of each round."""

    decode: Callable[[Item], tuple[str, float]]
    settings: dict[str, Any]
    heard: dict[str, str] = field(default_factory=dict)
    rounds: list[dict[str, float]] = field(default_factory=list)

    def take(self, item: Item) -> None:
        """Decode `item` once more, in the present round."""
        self.heard[item.name], self.rounds[-1][item.name] = self.decode(item)

    def errors(self, items: Iterable[Item]) -> wer.Count:
        """Word errors over the utterances of which is known what was said."""
        return wer.total((i.reference, self.heard[i.name]) for i in items)

    def seconds(self) -> list[float]:
        """Time of each round."""
        return [sum(times.values()) for times in self.rounds]


def ours(recogniser: Recogniser) -> Side:
    """This recogniser with the recorder off."""

    def decode(item: Item) -> tuple[str, float]:
        decoder = Decoder(recogniser, Recorder(), NullLane(), NullWriter(), Control())
        (done,) = decoder.run([item]).utterances
        return done.hypothesis, done.wall_ns / 1e9

    config = recogniser.config
    known = {"preset": PRESET, "block": config.block, "threads": config.threads}
    known |= {"selection": config.gmm.selection.method if config.gmm.selection.enabled else "none"}
    known |= {name: getattr(config.search, name) for name in OUR_SEARCH}
    return Side(decode, known | {"bigrams": config.graph.bigrams, "recorder": "off"})


def theirs(files: tuple[Path, Path], **options: Any) -> Side:
    """pocketsphinx with the language model and dictionary `files`."""
    decoder = pocketsphinx.Decoder(
        hmm=str(sphinx.default_directory()),
        lm=str(files[0]),
        dict=str(files[1]),
        loglevel="FATAL",
        **options,
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

    return Side(decode, {name: decoder.config[name] for name in THEIR_SETTINGS})


def run(
    paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress
) -> dict[str, Any]:
    """Decode `paths` (default: the bundled voices) `repeat` times on both sides, per vocabulary."""
    items = playlist.build(paths, transcripts).items
    audio_s = sum(audio.load(item.path).duration_s for item in items)
    preset = settings.replace(presets.load(PRESET).config, "search.beam", BEAM)
    sizes: dict[int, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    for vocabulary in (preset.graph.vocabulary, LARGE_VOCABULARY):
        config = settings.replace(preset, "graph.vocabulary", vocabulary)
        sides = _decoded(config, items, repeat, progress, vocabulary == preset.graph.vocabulary)
        mine, one_pass = sides[OURS], sides[ONE_PASS]
        ratios = [
            slow / quick for quick, slow in zip(mine.seconds(), one_pass.seconds(), strict=True)
        ]
        sizes[vocabulary] = {
            "ratio": median(ratios),
            "ratio_min": min(ratios),
            "ratio_max": max(ratios),
            "no_worse": no_worse(mine.errors(items), one_pass.errors(items)),
        }
        for name, side in sides.items():
            errors = side.errors(items)
            rows.append(
                {
                    "vocabulary": vocabulary,
                    "decoder": name,
                    "rtf": median(side.seconds()) / audio_s,
                    "wer": errors.rate,
                    "wer_errors": errors.errors,
                    "ratio": sizes[vocabulary]["ratio"] if name == ONE_PASS else None,
                }
            )
    least = min(sizes.values(), key=lambda size: size["ratio"])
    return {
        "peer": f"pocketsphinx {version('pocketsphinx')}, one pass",
        **{key: least[key] for key in ("ratio", "ratio_min", "ratio_max")},
        "ratio_meaning": "peer time / our time, features to words, median of paired rounds; the smaller "
        "of the vocabularies",
        "agreement": {
            "same": "acoustic model, dictionary, language model and samples; one thread each",
            "words": mine.errors(items).reference_words,
            "ratios": {str(size): found["ratio"] for size, found in sizes.items()},
            "word_errors_no_worse": {str(size): found["no_worse"] for size, found in sizes.items()},
            "our_settings": mine.settings,
            "peer_settings": one_pass.settings,
        },
        "rows": rows,
    }


def no_worse(ours: wer.Count, theirs: wer.Count) -> bool | None:
    """Whether we make no more word errors; None where nobody knows what was said."""
    return ours.errors <= theirs.errors if ours.reference_words else None


def _language_files(recipe: Recipe, folder: Path) -> tuple[Path, Path]:
    """The pruned language model (ARPA) and dictionary of `recipe`, as files for the peer."""
    model, words = language(recipe, sphinx.mdef.read(Path(recipe.model) / "mdef"))
    paths = folder / "language.arpa", folder / "words.dict"
    write_arpa(model, paths[0])
    write_dictionary(words, paths[1])
    return paths


def _decoded(
    config: Config, items: Sequence[Item], repeat: int, progress: Progress, all_passes: bool
) -> dict[str, Side]:
    """Both decoders over all `items`, in turns; with `all_passes` also the peer at its best, once."""
    size = config.graph.vocabulary
    recogniser = build(config, Recorder(), NullLane(), progress, lambda: False)
    model = sphinx.load(sphinx.default_directory())
    folder = cache_dir("bench", f"{size}-{config.graph.bigrams}")
    files = _language_files(recipe_of(config.graph, model), folder)
    sides = {OURS: ours(recogniser), ONE_PASS: theirs(files, fwdflat=False, bestpath=False)}
    pair = list(sides.values())
    for turn, place, number in turns(len(pair), len(items), range(repeat)):
        progress(f"{size} words, round {turn + 1} of {repeat}", place / len(items))
        if place == 0:
            pair[number].rounds.append({})
        pair[number].take(items[place])
    if all_passes:
        side = sides[ALL_PASSES] = theirs(files)
        side.rounds.append({})
        for place, item in enumerate(items):
            progress("pocketsphinx with all its passes", place / len(items))
            side.take(item)
    return sides
