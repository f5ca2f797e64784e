"""The graph that comes with a Kaldi model: `HCLG.fst` and `words.txt`, made by Kaldi's mkgraph.sh.

Input labels are transition-ids, of which each names a pdf; weights stay as they are. A state's self-loop becomes that
of the packed graph. Without a lexicon a word's time is that of its label.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipelines.config import Graph as GraphConfig
from pipelines.models.kaldi import contexts
from pipelines.models.kaldi.model import GRAPHS, graph_file
from pipelines.models.sphinx import AcousticModel
from pipelines.models.sphinx.model import Kaldi
from pipelines.search.graph import openfst
from pipelines.search.graph.lookahead import folder
from pipelines.search.graph.lookahead.folder import words_file
from pipelines.search.graph.openfst import Fst, from_arcs
from pipelines.search.graph.sources import FILLER, MARKS
from pipelines.search.graph.topology import Topology, epsilon_first
from pipelines.search.graph.wfst import Graph, GraphError, Pronunciations, Senones, from_topology
from profiler.arrays import Bool
from profiler.files.inputs import open_input, there
from profiler.plain import one_line

LARGEST = 512 << 20  # Bytes of a graph; reading one takes some six times as much memory
OWN = ("grammar", "language_model", "dictionary")
"""Settings that name files for another graph than the one in the folder."""


def file_of(config: GraphConfig, model: AcousticModel) -> Path | None:
    """The graph in the folder of a Kaldi model, or HCLr.fst with Gr.fst next to it; None where one is to be compiled.

    GraphError if that cannot be.
    """
    there_is = graph_file(model.directory) or folder.file_of(model.directory)
    if there_is is not None and not any(getattr(config, name) for name in OWN):
        return there_is
    lacking = [name for name in contexts.FILES if not there(model.directory / name)]
    if lacking:
        state = f"has to have another graph than its {there_is.name}" if there_is else f"has no {GRAPHS[0]}"
        raise GraphError(
            f"{model.directory} {state}, and no {lacking[0]} to compile one from; utils/mkgraph.sh of Kaldi makes "
            f"{GRAPHS[0]} and words.txt, which belong into the folder or its folder graph."
        )
    return None


def load(path: Path, model: AcousticModel, kaldi: Kaldi) -> Graph:
    """The graph `path` of `model`; GraphError or ModelError in one sentence."""
    words = contexts.read_symbols(words_file(path))
    fst = read(path)
    if int(fst.ilabel.max()) >= len(kaldi.pdfs):
        raise GraphError(
            f"{path} has transition-id {int(fst.ilabel.max()):,}, and the model ends at {len(kaldi.pdfs) - 1:,}: "
            "it was made for another one."
        )
    fst.ilabel = np.where(fst.ilabel > 0, kaldi.pdfs[fst.ilabel] + 1, 0).astype(np.int32)
    silent = np.array([is_no_word(word) for word in words])
    phones, filler = kaldi.phones(model.n_senones)
    # Which phone it is matters for word times from a lexicon alone.
    return packed(path, fst, words, silent, Senones(phones, model.mdef.senone_state, filler))


def packed(
    path: Path, fst: Fst, words: Sequence[str], silent: Bool, senones: Senones, ways: Pronunciations = ()
) -> Graph:
    """The graph of a file's transducer, whose labels are senone + 1 and places in `words`; `silent` ones are left out.

    `ways`: pronunciations of `words[1:]`. GraphError where a label is no place.
    """
    if not 0 <= int(fst.olabel.min()) <= int(fst.olabel.max()) < len(words):
        raise GraphError(f"{path} has word {int(fst.olabel.max()):,}, and words.txt ends at {len(words) - 1:,}.")
    fst.olabel[silent[fst.olabel]] = 0
    about = {"graph": str(path), "words": int(np.count_nonzero(~silent))}
    try:
        made = epsilon_first(with_loops(fst))
        return from_topology(made, senones, tuple(words[1:]), ways, about)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None


def read(path: Path) -> Fst:
    """The transducer of a file; GraphError in one sentence, also where it has no arcs."""
    try:
        open_input(path, "a search graph", LARGEST).close()
        fst = openfst.read(path)
    except ValueError as error:  # of the file, its form or its arrays
        raise GraphError(one_line(str(error), 400)) from None
    if not fst.n_states or not fst.n_arcs:
        raise GraphError(f"{path} has no arcs.")
    return fst


def is_no_word(word: str) -> bool:
    """Whether a hypothesis leaves a word of Kaldi's tables out: marks and noises, but not a number such as `[9]`."""
    noise = FILLER.fullmatch(word) is not None and any(map(str.isalpha, word))
    return not word or word.lower() in MARKS | {"!sil", "<sil>", "#0"} or noise


def with_loops(fst: Fst) -> Topology:
    """Of each state one self-loop taken off its arcs."""
    source = fst.source
    loops = np.flatnonzero((source == fst.target) & (fst.ilabel > 0) & (fst.olabel == 0))
    # Of several the first; the others stay arcs.
    states, place = np.unique(source[loops], return_index=True)
    loops = loops[place]
    label = np.zeros(fst.n_states, np.int32)
    weight = np.zeros(fst.n_states, np.float32)
    label[states], weight[states] = fst.ilabel[loops], fst.weight[loops]
    kept = np.ones(fst.n_arcs, bool)
    kept[loops] = False
    made = from_arcs(fst.n_states, fst.start, fst.final, source[kept], *fst.labels(kept), fst.target[kept])
    return Topology(made, label, weight)
