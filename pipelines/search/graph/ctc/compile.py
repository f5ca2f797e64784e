"""Finds the graph of a CTC net: the one in its folder, or one that a child process compiles and the cache keeps."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from pipelines.config import Graph as GraphConfig
from pipelines.models import dictionary as dictionaries
from pipelines.models.ctc.units import Units
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.ctc import build, files, g2p, lexicon
from pipelines.search.graph.recipe import Recipe, sentences
from pipelines.search.graph.wfst import Graph, GraphError
from profiler.files.inputs import there

MODULE: Final = "pipelines.search.graph.ctc.compile"
LEXICON: Final = "lexicon.txt"
MOST_UNITS: Final = 1 << 16
"""Graphs have 16 bits for them."""


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
    if folder is not None and (path := files.file_of(config, folder)) is not None:
        progress("reading the graph", None)
        return files.load(path, units)
    return graphs.obtain(recipe_of(config, units, folder), progress, cancelled, MODULE)[1]


def recipe_of(config: GraphConfig, units: Units, folder: Path | None = None) -> Recipe:
    """Return the recipe for the settings; settings that do not act with the others are left out."""
    of_units = Recipe(
        "",
        "",
        units=units.symbols,
        blank=units.blank,
        boundary=units.boundary,
        parts=config.parts,
        topology=config.topology,
    )
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


if __name__ == "__main__":
    sys.exit(graphs.main(compiler=build.compile_graph))
