"""Graphs of CTC nets as other tools make them: icefall's and sherpa-onnx's HLG.fst, HL.fst and H.fst, wenet's TLG.fst.

Input labels are token + 1, 0 is epsilon; weights stay as they are. Output labels are those of words.txt in the folder
or above it, in H.fst again token + 1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipelines.config import Graph as GraphConfig
from pipelines.models.ctc.units import Units
from pipelines.models.kaldi import symbols
from pipelines.search.graph import hclg
from pipelines.search.graph.ctc.build import senones
from pipelines.search.graph.lookahead.folder import words_file
from pipelines.search.graph.topology import epsilon_first
from pipelines.search.graph.wfst import Graph, GraphError, from_topology
from profiler.files.inputs import there

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
    if path.name in GRAPHS["H"]:
        words = ["", *units.symbols]
        silent = np.isin(
            np.arange(last + 1), [0, units.blank + 1, -1 if units.boundary is None else units.boundary + 1]
        )
        ways: list[list[tuple[int, ...]]] = [[(n,)] for n in range(last)]
    else:
        words = symbols.read(words_file(path))
        silent = np.array([hclg.is_no_word(word) for word in words])
        ways = [[] for _ in words[1:]]
    hclg.check_words(path, fst, len(words))
    fst.olabel[silent[fst.olabel]] = 0
    about = {"graph": str(path), "words": int(np.count_nonzero(~silent))}
    try:
        made = epsilon_first(hclg.with_loops(fst))
        return from_topology(made, senones(units), tuple(words[1:]), ways, about)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None
