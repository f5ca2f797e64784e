"""Pronunciations by the G2P net of the wheel hama, which has the phones of its CTC net; the cache keeps them.

`python -m pipelines.search.graph.ctc.g2p 20000` makes the table that ships, `assets/pronunciations/g2p.dict`, of the
most probable words of the language model: words that it has already stay, so that it can be interrupted.
"""

import importlib.metadata
import importlib.resources
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import assets
from pipelines.models import dictionary as dictionaries
from pipelines.models.dictionary import Pronunciation
from profiler.files import cache
from profiler.process.children import read_arguments

Progress = Callable[[str, float], None]
EVERY = 500  # Words after which the table is written


def version() -> str:
    """The installed version of hama that has the net; "" where there is none."""
    try:
        found = importlib.metadata.version("hama")
    except importlib.metadata.PackageNotFoundError:
        return ""
    return found if found.startswith("1.3.") else ""


def table() -> Path:
    return assets.path("pronunciations", "g2p.dict")


def pronounce(
    words: Sequence[str], symbols: Collection[str], progress: Progress
) -> Mapping[str, tuple[Pronunciation, ...]]:
    """Return pronunciations in `symbols`, one a word; a word that the net does not pronounce is left out."""
    name = f"g2p-{version()}"
    kept = cache.find(cache.GRAPHS, name)
    known: dict[str, list[str]] = dict(kept.about) if kept else {}
    wanted = [word for word in words if word not in known]
    for n, (word, phones) in enumerate(spoken(wanted)):
        known[word] = phones
        if n % 20 == 0:
            progress(f"pronouncing words: {n:,} of {len(wanted):,}", 0.02 + 0.1 * n / len(wanted))
    if wanted:
        cache.keep(cache.GRAPHS, name, {}, known)
    found = {word: tuple(phone for phone in known[word] if phone in symbols) for word in words}
    return {word: (phones,) for word, phones in found.items() if phones}


def spoken(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each word with its phones, as the net says it: 22 ms a word on one thread, 59 on all, which it starts with."""
    if not words:
        return
    import onnxruntime
    from hama.inference import G2PModel

    model, options = G2PModel(), onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    for part in ("encoder", "decoder_step"):
        file = importlib.resources.files("hama.assets") / f"{part}.onnx"
        setattr(model, f"{part}_session", onnxruntime.InferenceSession(str(file), options))
    for word in words:
        yield word, [said.phoneme for said in model(word).alignments if said.phoneme.strip()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the table of the given number of words."""
    from pipelines.models.language import ngram
    from pipelines.search.graph.recipe import default_language_model
    from pipelines.search.graph.sources import FILLER, MARKS, read_language_model

    (number,) = read_arguments("pipelines.search.graph.ctc.g2p", __doc__, "WORDS", arguments=arguments)
    model = read_language_model(default_language_model(), 1)
    words = [word for word in model.words if word.lower() not in MARKS and not FILLER.fullmatch(word)]
    words = ngram.most_probable(model, words, int(number))
    file = table()
    known = dict(dictionaries.read(file).pronunciations) if file.exists() else {}
    for n, (word, phones) in enumerate(spoken([word for word in words if word not in known]), start=1):
        if phones:
            known[word] = (tuple(phones),)
        if n % EVERY == 0:
            _write(file, known)
    _write(file, known)
    return 0


def _write(file: Path, known: Mapping[str, tuple[Pronunciation, ...]]) -> None:
    file.parent.mkdir(exist_ok=True)
    about = f";;; The most probable words as the G2P net of hama {version()} (Apache-2.0) says them.\n"
    lines = sorted(f"{word} {' '.join(way)}\n" for word, ways in known.items() for way in ways)
    file.write_text(about + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
