"""From the files of a look-ahead folder to the graph that is searched, which the cache keeps.

Words are those of `words.txt` in the folder or above it, else of the symbol table in Gr.fst or HCLr.fst.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pipelines.models.kaldi import symbols
from pipelines.models.sphinx import AcousticModel
from pipelines.models.sphinx.model import Kaldi
from pipelines.search.graph.lookahead import files
from pipelines.search.graph.lookahead.compose import compose
from pipelines.search.graph.openfst import Fst
from pipelines.search.graph.wfst import VERSION, Graph, GraphError, save
from profiler.arrays import I32
from profiler.files import cache
from profiler.files.inputs import InputError, open_input, there

HCL, G, DISAMBIGUATION, WORDS = "HCLr.fst", "Gr.fst", "disambig_tid.int", "words.txt"
PLACES = (HCL, f"graph/{HCL}")
COMPOSER_VERSION = 2
"""Part of the cache key: raise it when other graphs come out."""

Progress = Callable[[str, float | None], None]


def file_of(directory: Path) -> Path | None:
    """HCLr.fst in the folder of a model or in its folder graph; None where there is none with a Gr.fst next to it."""
    return next((p for name in PLACES if there(p := directory / name) and there(p.with_name(G))), None)


def words_file(graph: Path) -> Path:
    """`words.txt` next to a graph, or in the folder above it."""
    beside = graph.with_name(WORDS)
    above = graph.parent.with_name(WORDS)
    return above if not there(beside) and there(above) else beside


def cached_as(path: Path, model: AcousticModel, kaldi: Kaldi) -> Path:
    """The file that the graph of HCLr.fst `path` has in the cache, named after the content of all that makes it."""
    made = hashlib.sha256(f"{COMPOSER_VERSION} {VERSION} {model.n_senones}".encode())
    made.update(kaldi.pdfs.tobytes() + kaldi.phones(model.n_senones)[0].tobytes() + model.mdef.senone_state.tobytes())
    for file in (path, path.with_name(G), path.with_name(DISAMBIGUATION), words_file(path)):
        made.update(_digest(file) if there(file) else b"none")
    return cache.path_of(cache.GRAPHS, f"composed-{made.hexdigest()[:24]}")


def make(
    target: Path,
    path: Path,
    model: AcousticModel,
    kaldi: Kaldi,
    silent: Callable[[str], bool],
    progress: Progress,
    cancelled: Callable[[], bool],
) -> None:
    """Compose the graph of HCLr.fst `path` and write it to `target`.

    Words that are `silent` are left out of hypotheses. GraphError or ModelError in one sentence; Cancelled.
    """
    progress(f"reading {HCL} and {G}", None)
    hcl, ahead, own = files.hcl(path)
    model_of_words, names = files.g(path.with_name(G))
    table = words_file(path)
    words = symbols.read(table) if there(table) else names or own
    if not words:
        raise GraphError(f"{path} and {G} name no words, and there is no {WORDS}.")
    _fit(path, hcl, model_of_words, kaldi, files.disambiguation(path.with_name(DISAMBIGUATION)), words)
    kept = ~np.fromiter(map(silent, words), bool, len(words))
    model_of_words.olabel = np.where(kept[model_of_words.olabel], model_of_words.olabel, 0).astype(np.int32)
    try:
        made = compose(
            hcl,
            ahead,
            model_of_words,
            lambda states: progress(f"composing {HCL} and {G}: {states:,} states", None),
            cancelled,
        )
        phones, filler = kaldi.phones(model.n_senones)
        none: I32 = np.zeros(len(words), np.int32)
        notes = f"graph composed of {HCL} and {G}: {len(made.final):,} states, {len(made.arcs):,} arcs"
        graph = Graph(
            start=made.start,
            n_epsilon_states=made.n_epsilon_states,
            n_senones=model.n_senones,
            states=made.states,
            arcs=made.arcs,
            final=made.final,
            words=tuple(words[1:]),
            pron_first=none,
            phone_first=none[:1],
            pron_phones=np.empty(0, np.uint16),
            senone_phone=phones.astype(np.uint16),
            senone_state=model.mdef.senone_state.astype(np.uint8),
            filler=filler,
            made={"graph": str(path), "words": int(np.count_nonzero(kept)), "notes": [notes]},
        )
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None
    progress("writing the graph to the cache", None)
    save(graph, target)


def _fit(path: Path, hcl: Fst, g: Fst, kaldi: Kaldi, symbols_of: I32, words: Sequence[str]) -> None:
    """Replace transition-ids by pdfs + 1 and disambiguation symbols by 0; GraphError where the files do not fit."""
    if not (hcl.n_arcs and g.n_arcs):
        raise GraphError(f"{path} or {G} has no arcs.")
    hcl.ilabel = np.where(np.isin(hcl.ilabel, symbols_of), 0, hcl.ilabel).astype(np.int32)
    largest = int(hcl.ilabel.max())
    if largest >= len(kaldi.pdfs):
        raise GraphError(
            f"{path} has transition-id {largest:,}, which {DISAMBIGUATION} does not name, and the model ends at "
            f"{len(kaldi.pdfs) - 1:,}: it was made for another one."
        )
    if int(g.olabel.max()) >= len(words):
        raise GraphError(
            f"{path.with_name(G)} has word {int(g.olabel.max()):,}, and the last one is {len(words) - 1:,}."
        )
    hcl.ilabel = np.where(hcl.ilabel > 0, kaldi.pdfs[hcl.ilabel] + 1, 0).astype(np.int32)


def _digest(file: Path) -> bytes:
    try:
        with open_input(file, "a part of a graph", files.LARGEST) as handle:
            return hashlib.file_digest(handle, "sha256").digest()
    except InputError as error:
        raise GraphError(str(error)) from None
