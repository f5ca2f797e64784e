"""Whole decodes, side by side: this recogniser and pocketsphinx' own decoder.

Both get the same acoustic model, the same dictionary, the same pruned bigram and the same samples, at the preset's
vocabulary and at 20 000 words; each utterance is decoded by one and at once by the other, the order swapped every time.
pocketsphinx runs one pass (`fwdflat` and `bestpath` off), which is what a single Viterbi pass compares with, and at the
preset's vocabulary for its word errors also with all its passes; everything else of it is at its defaults.
"""

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import pocketsphinx

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.audio import word_errors as wer
from pipelines.config import Config, presets
from pipelines.models import sphinx
from pipelines.run import playlist
from pipelines.run.playlist import Item
from pipelines.search.graph.recipe import Recipe, recipe_of
from pipelines.search.graph.sources import DictionaryEntries, language
from profiler.files.paths import cache_dir
from tests.bench import _rounds
from tests.bench._rounds import Answering, Progress, Tree, decoding, interleave, paired, timed
from tests.pipelines.language_models import write_arpa, write_dictionary

PRESET = "gmm"  # the default: exact scores, although the peer selects densities
BEAM = 12.0
"""On the development sentences (2 866 words) it costs 2 errors more than the preset's 13; the peer makes far more."""
LARGE_VOCABULARY = 20_000
OUR_SEARCH = ("beam", "max_active", "acoustic_scale", "insertion_penalty")
THEIR_SETTINGS = ("beam", "wbeam", "pbeam", "maxhmmpf", "lw", "wip", "topn", "compallsen", "ds")
OURS, ONE_PASS, ALL_PASSES = "ours", "pocketsphinx, one pass", "pocketsphinx, all passes"


def our_settings(config: Config) -> Tree:
    selection = config.gmm.selection.method if config.gmm.selection.enabled else "none"
    about = {"preset": PRESET, "block": config.block, "threads": config.threads, "selection": selection}
    about |= {name: getattr(config.search, name) for name in OUR_SEARCH}
    return about | {"bigrams": config.graph.bigrams, "recorder": "off"}


def theirs(name: str, files: tuple[Path, Path], used: Tree, **options: Any) -> Answering:
    """pocketsphinx with the language model and dictionary `files`; `used` gets its settings."""
    decoder = pocketsphinx.Decoder(
        hmm=str(sphinx.default_directory()), lm=str(files[0]), dict=str(files[1]), loglevel="FATAL", **options
    )
    for setting in THEIR_SETTINGS:
        used.setdefault(setting, decoder.config[setting])

    def decode(item: Item) -> tuple[str, float]:
        samples = _rounds.pcm(audio.load(item.path)).tobytes()
        # Otherwise it carries its noise estimate over from the utterance before.
        decoder.reinit_feat()

        def utterance() -> Any:
            decoder.start_utt()
            decoder.process_raw(samples, full_utt=True)
            decoder.end_utt()
            return decoder.hyp()

        hypothesis, seconds = timed(utterance)
        return (hypothesis.hypstr if hypothesis else ""), seconds

    return Answering(name, decode)


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> Tree:
    """Decode `paths` (default: the bundled voices) `repeat` times on both sides, per vocabulary."""
    items = playlist.build(paths, transcripts).items
    audio_s = sum(audio.load(item.path).duration_s for item in items)
    preset = settings.replace(presets.load(PRESET).config, "search.beam", BEAM)
    model = sphinx.load(sphinx.default_directory())
    ratios: dict[int, list[float]] = {}
    no_worse: dict[str, bool | None] = {}
    rows: list[Tree] = []
    used: Tree = {}
    for size in (preset.graph.vocabulary, LARGE_VOCABULARY):
        config = settings.replace(preset, "graph.vocabulary", size)
        mine = Answering(OURS, decoding(_rounds.opened(config, progress)))
        folder = cache_dir("bench", f"{size}-{config.graph.bigrams}")
        files = _language_files(recipe_of(config.graph, model), folder)
        one_pass = theirs(ONE_PASS, files, used, fwdflat=False, bestpath=False)
        interleave([mine, one_pass], items, repeat, partial(progress, f"{size} words"))
        best = [theirs(ALL_PASSES, files, used)] if size == preset.graph.vocabulary else []
        for side in best:
            interleave([side], items, 1, partial(progress, "pocketsphinx with all its passes"))
        ratios[size] = paired(one_pass, mine)
        counts = [wer.total((i.reference, side.answers[i.name]) for i in items) for side in (mine, one_pass, *best)]
        no_worse[str(size)] = counts[0].errors <= counts[1].errors if counts[0].reference_words else None
        for side, errors in zip((mine, one_pass, *best), counts, strict=True):
            row = {"vocabulary": size, "decoder": side.name, "rtf": median(side.seconds) / audio_s}
            row |= {"wer": errors.rate, "wer_errors": errors.errors}
            rows.append(row | {"ratio": median(ratios[size]) if side is one_pass else None})
    agreement = {
        "same": "acoustic model, dictionary, language model and samples; one thread each",
        "words": counts[0].reference_words,
        "ratios": {str(size): _rounds.spread(of)["ratio"] for size, of in ratios.items()},
        "word_errors_no_worse": no_worse,
        "our_settings": our_settings(config),
        "peer_settings": used,
    }
    meaning = "peer time / our time, features to words, median of paired rounds; the smaller of the vocabularies"
    peer = f"pocketsphinx {version('pocketsphinx')}, one pass"
    return _rounds.result(peer, min(ratios.values(), key=median), meaning, agreement, rows)


def _language_files(recipe: Recipe, folder: Path) -> tuple[Path, Path]:
    model, words = language(recipe, DictionaryEntries(recipe, sphinx.definition.read(Path(recipe.model) / "mdef")))
    paths = folder / "language.arpa", folder / "words.dict"
    write_arpa(model, paths[0])
    write_dictionary(words, paths[1])
    return paths
