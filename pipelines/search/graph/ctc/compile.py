"""Finds the graph of a CTC net: the one in its folder, or one that a child process compiles and the cache keeps.

L and G are composed, determinised and minimised; H, whose form is known, is laid over the result (`topologies`). In
folders lie icefall's and sherpa-onnx's HLG.fst, HL.fst and H.fst, wenet's TLG.fst. There input labels are token + 1;
output labels are those of words.txt in the folder or above it, in H.fst again token + 1.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from pipelines.config import Graph as GraphConfig
from pipelines.models import dictionary as dictionaries
from pipelines.models.ctc.layouts import Units
from pipelines.models.kaldi import contexts
from pipelines.search.graph import build, hclg, topology
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.ctc import g2p, lexicon, topologies
from pipelines.search.graph.grammar import backoff_label
from pipelines.search.graph.lookahead.folder import words_file
from pipelines.search.graph.openfst import Fst, from_arcs, from_kaldifst
from pipelines.search.graph.recipe import Recipe, sentences
from pipelines.search.graph.sources import Source, source
from pipelines.search.graph.wfst import Graph, GraphError, Senones, from_topology
from profiler.files.inputs import there

MODULE: Final = "pipelines.search.graph.ctc.compile"
LEXICON: Final = "lexicon.txt"
MOST_UNITS: Final = 1 << 16  # Graphs have 16 bits for them
SPACES: Final = (" ", "|")  # Units that nets for letters put out between words


def load_or_build(
    config: GraphConfig,
    units: Units,
    folder: Path | None = None,
    progress: graphs.Progress = lambda stage, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Graph:
    """The graph for these settings and `units`; its labels are unit + 1.

    `folder`: of the net, for a graph or lexicon that lies there; None for a net without a folder. BadInput in one
    sentence; Cancelled.
    """
    if not 0 <= units.blank < len(units.symbols) <= MOST_UNITS:
        raise GraphError(f"A search graph has 1 to {MOST_UNITS:,} units, the blank among them; the net has others.")
    if units.boundary is None and (spaces := [n for n, symbol in enumerate(units.symbols) if symbol in SPACES]):
        units = replace(units, boundary=spaces[0])
    if folder is not None and (path := file_of(config, folder)) is not None:
        progress("reading the graph", None)
        return load(path, units)
    return graphs.obtain(recipe_of(config, units, folder), progress, cancelled, MODULE)[1]


def recipe_of(config: GraphConfig, units: Units, folder: Path | None = None) -> Recipe:
    """Return the recipe for the settings; settings that do not act with the others are left out."""
    of_units = Recipe(
        "", "", units=units.symbols, blank=units.blank, boundary=units.boundary, parts=config.parts,
        topology=config.topology,
    )  # fmt: skip
    if config.parts == "H":
        return of_units
    phonetic = lexicon.phonetic(units)
    own = os.path.expanduser(config.dictionary)
    if not own and folder is not None and there(folder / LEXICON):
        own, phonetic = str(folder / LEXICON), False
    return replace(
        of_units,
        dictionary=own or (str(dictionaries.default_path()) if phonetic else ""),
        alternative_cost=config.alternative_cost,
        table=str(g2p.table()) if phonetic else "",
        g2p=g2p.version() if phonetic else "",
        **sentences(config),
    )


GRAPHS = {"HLG": ("HLG.fst", "TLG.fst"), "HL": ("HL.fst",), "H": ("H.fst",)}
"""File names of a graph of these parts, in the net's folder or in its folder graph."""


def file_of(config: GraphConfig, folder: Path) -> Path | None:
    """The graph of `config.parts` in the folder of a net; None where there is none, or the settings want another."""
    if any(getattr(config, name) for name in hclg.OWN):
        return None
    places = (folder / place / name for name in GRAPHS[config.parts] for place in ("", "graph"))
    return next((path for path in places if there(path)), None)


def load(path: Path, units: Units) -> Graph:
    """The graph `path` of a net with `units`; GraphError or ModelError in one sentence."""
    fst = hclg.read(path)
    last = len(units.symbols)
    if int(fst.ilabel.max()) > last:
        raise GraphError(f"{path} has label {int(fst.ilabel.max()):,}, and the net's last unit has {last:,} there.")
    made = senones(units)
    if path.name in GRAPHS["H"]:
        return hclg.packed(path, fst, ["", *units.symbols], np.append(True, made.filler), made, _each_itself(units))
    words = contexts.read_symbols(words_file(path))
    return hclg.packed(path, fst, words, np.array([hclg.is_no_word(word) for word in words]), made)


Progress = Callable[[str, float], None]
SOUND_ALIKE = 0.01
"""Weight of the costs of words where their order is free: enough to choose among those that have the same units."""


def compile_graph(recipe: Recipe, progress: Progress) -> Graph:
    """The graph of `recipe`, which has units; `progress(what, fraction)` is called before each step."""
    units = Units(tuple(recipe.units), recipe.blank, recipe.boundary)
    if recipe.parts == "H":
        return of_units(units, recipe)
    language, lg = words_in_units(recipe, units, progress)
    progress("adding blanks and repetitions", 0.8)
    made = topologies.apply(lg, units, recipe.topology)
    del lg
    progress("checking the graph", 0.95)
    about = build.about(language, {**recipe.as_dict(), "units": len(units.symbols)})
    return from_topology(made, senones(units), language.words, _spelled(language, units), about)


def words_in_units(recipe: Recipe, units: Units, progress: Progress) -> tuple[Source, Fst]:
    """What can be said, and L composed with its G, or of parts HL with any order of its words.

    Input labels are unit + 1. BadInput in one sentence.
    """
    progress("reading language model or grammar", 0.0)
    language = source(recipe, lexicon.Lexicon(recipe, units, progress))
    build.check_phones(language, recipe)
    progress("composing words and pronunciations", 0.15)
    ways = [
        (label, way, recipe.alternative_cost if rank else 0.0)
        for label, of_word in enumerate(_spelled(language, units), start=1)
        for rank, way in enumerate(of_word)
    ]
    spelled = lexicon.transducer(ways, units, backoff_label(len(language.words)))
    acceptor = language.acceptor if recipe.parts == "HLG" else _any_order(language, recipe)
    fst = build.words_in_units(spelled, acceptor, progress, (0.3, 0.6))
    result = from_kaldifst(fst)
    result.ilabel[result.ilabel > len(units.symbols)] = 0  # disambiguation symbols
    return language, topology.fold_epsilons(result)


def of_units(units: Units, recipe: Recipe) -> Graph:
    """H alone: units in any order, each shown as a word, but for the one between words."""
    said = np.array([n for n in range(len(units.symbols)) if n != units.blank])
    words = np.where(said == units.boundary, 0, said + 1)
    none = np.zeros(len(said), np.int32)
    loop = from_arcs(1, 0, np.zeros(1, np.float32), none, said + 1, words, none, none)
    return from_topology(
        topologies.apply(loop, units, recipe.topology),
        senones(units),
        units.symbols,
        _each_itself(units),
        {"recipe": {"parts": recipe.parts, "topology": recipe.topology}, "words": int(np.count_nonzero(words))},
    )


def senones(units: Units) -> Senones:
    """Each unit is a phone of one state; the blank and the unit between words are no part of words."""
    number = np.arange(len(units.symbols))
    filler = (number == units.blank) | (number == (-1 if units.boundary is None else units.boundary))
    return Senones(number, np.zeros(len(number)), filler, units.blank)


def _spelled(language: Source, units: Units) -> list[list[tuple[int, ...]]]:
    index = {symbol: n for n, symbol in enumerate(units.symbols)}
    said = language.dictionary.pronunciations
    return [[tuple(index[unit] for unit in way) for way in said.get(word, ())] for word in language.words]


def _each_itself(units: Units) -> list[list[tuple[int, ...]]]:
    return [[(n,)] for n in range(len(units.symbols))]


def _any_order(language: Source, recipe: Recipe) -> Fst:
    """One state that each word leads back to: nearly at no cost, more probable ones at the least."""
    none, label = np.zeros(len(language.words), np.int32), np.arange(1, len(language.words) + 1)
    weight = np.zeros(len(label) + 2, np.float32)
    if not recipe.grammar:
        g = language.acceptor  # its first state is the empty history
        weight[g.ilabel[: g.first[1]]] = SOUND_ALIKE * g.weight[: g.first[1]]
    return from_arcs(1, 0, np.zeros(1, np.float32), none, label, label, weight[label], none)


if __name__ == "__main__":
    sys.exit(graphs.main(compiler=compile_graph))
