"""Whole decodes, side by side: this recogniser and pocketsphinx' own decoder.

Both get the same acoustic model, the same dictionary, the same pruned bigram and the same samples, at the preset's
vocabulary and at 20 000 words; each utterance is decoded by one and at once by the other, the order swapped every time.
pocketsphinx runs one pass (`fwdflat` and `bestpath` off), which is what a single Viterbi pass compares with, and at the
preset's vocabulary for its word errors also with all its passes; everything else of it is at its defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser, build
from pipelines.search.graph.recipe import Recipe, recipe_of
from pipelines.search.graph.sources import language
from profiler.files.paths import cache_dir
from profiler.spans import Recorder
from tests.bench._rounds import LANE, Progress, Side, decoded, interleave, paired, result, spread, timed
from tests.pipelines.language_models import write_arpa, write_dictionary

PRESET = "gmm"
"""The default: exact scores, although the peer selects densities."""
BEAM = 12.0
"""On the development sentences (2 866 words) it costs 2 errors more than the preset's 13; the peer makes far more."""
LARGE_VOCABULARY = 20_000
OUR_SEARCH = ("beam", "max_active", "acoustic_scale", "insertion_penalty")
THEIR_SETTINGS = ("beam", "wbeam", "pbeam", "maxhmmpf", "lw", "wip", "topn", "compallsen", "ds")
OURS, ONE_PASS, ALL_PASSES = "ours", "pocketsphinx, one pass", "pocketsphinx, all passes"


class Decoding(Side):
    """One decoder: its settings, its times, and the words of each utterance."""

    def __init__(self, name: str, decode: Callable[[Item], tuple[str, float]], settings: dict[str, Any]) -> None:
        self.settings = settings
        self.words: dict[str, str] = {}

        def take(item: Item) -> float:
            self.words[item.name], seconds = decode(item)
            return seconds

        super().__init__(name, take)

    def errors(self, items: Iterable[Item]) -> wer.Count:
        return wer.total((i.reference, self.words[i.name]) for i in items)


def ours(recogniser: Recogniser) -> Decoding:
    """This recogniser with the recorder off."""

    def decode(item: Item) -> tuple[str, float]:
        utterance = decoded(recogniser, item)
        return utterance.hypothesis, utterance.wall_ns / 1e9

    config = recogniser.config
    known = {"preset": PRESET, "block": config.block, "threads": config.threads}
    known |= {"selection": config.gmm.selection.method if config.gmm.selection.enabled else "none"}
    known |= {name: getattr(config.search, name) for name in OUR_SEARCH}
    known |= {"bigrams": config.graph.bigrams, "recorder": "off"}
    return Decoding(OURS, decode, known)


def theirs(name: str, files: tuple[Path, Path], **options: Any) -> Decoding:
    """pocketsphinx with the language model and dictionary `files`."""
    decoder = pocketsphinx.Decoder(
        hmm=str(sphinx.default_directory()), lm=str(files[0]), dict=str(files[1]), loglevel="FATAL", **options
    )

    def decode(item: Item) -> tuple[str, float]:
        sound = audio.load(item.path)
        samples = np.clip(np.round(sound.samples * 32768.0), -32768, 32767).astype("<i2").tobytes()
        # Otherwise it carries its noise estimate over from the utterance before.
        decoder.reinit_feat()

        def utterance() -> Any:
            decoder.start_utt()
            decoder.process_raw(samples, full_utt=True)
            decoder.end_utt()
            return decoder.hyp()

        hypothesis, seconds = timed(utterance)
        return (hypothesis.hypstr if hypothesis else ""), seconds

    return Decoding(name, decode, {name: decoder.config[name] for name in THEIR_SETTINGS})


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    """Decode `paths` (default: the bundled voices) `repeat` times on both sides, per vocabulary."""
    items = playlist.build(paths, transcripts).items
    audio_s = sum(audio.load(item.path).duration_s for item in items)
    preset = settings.replace(presets.load(PRESET).config, "search.beam", BEAM)
    ratios: dict[int, list[float]] = {}
    no_worse: dict[str, bool | None] = {}
    rows: list[dict[str, Any]] = []
    for size in (preset.graph.vocabulary, LARGE_VOCABULARY):
        config = settings.replace(preset, "graph.vocabulary", size)
        sides = _decoded(config, items, repeat, progress, size == preset.graph.vocabulary)
        mine, one_pass, *_ = sides
        ratios[size] = paired(one_pass, mine)
        no_worse[str(size)] = makes_no_more(mine.errors(items), one_pass.errors(items))
        for side in sides:
            errors = side.errors(items)
            rows.append(
                {
                    "vocabulary": size,
                    "decoder": side.name,
                    "rtf": median(side.seconds) / audio_s,
                    "wer": errors.rate,
                    "wer_errors": errors.errors,
                    "ratio": median(ratios[size]) if side is one_pass else None,
                }
            )
    agreement = {
        "same": "acoustic model, dictionary, language model and samples; one thread each",
        "words": mine.errors(items).reference_words,
        "ratios": {str(size): spread(of)["ratio"] for size, of in ratios.items()},
        "word_errors_no_worse": no_worse,
        "our_settings": mine.settings,
        "peer_settings": one_pass.settings,
    }
    meaning = "peer time / our time, features to words, median of paired rounds; the smaller of the vocabularies"
    peer = f"pocketsphinx {version('pocketsphinx')}, one pass"
    return result(peer, min(ratios.values(), key=median), meaning, agreement, rows)


def makes_no_more(ours: wer.Count, theirs: wer.Count) -> bool | None:
    """Whether we make no more word errors; None without references."""
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
) -> list[Decoding]:
    """Both decoders over all `items`, in turns; with `all_passes` also the peer at its best, once."""
    size = config.graph.vocabulary
    recogniser = build(config, Recorder(), LANE, progress, lambda: False)
    model = sphinx.load(sphinx.default_directory())
    folder = cache_dir("bench", f"{size}-{config.graph.bigrams}")
    files = _language_files(recipe_of(config.graph, model), folder)
    pair = [ours(recogniser), theirs(ONE_PASS, files, fwdflat=False, bestpath=False)]
    interleave(pair, items, repeat, lambda share: progress(f"{size} words", share))
    if not all_passes:
        return pair
    best = theirs(ALL_PASSES, files)
    interleave([best], items, 1, lambda share: progress("pocketsphinx with all its passes", share))
    return [*pair, best]
