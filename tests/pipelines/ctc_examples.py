"""A small CTC net's units, words in them, and what the net may put out."""

from __future__ import annotations

from pathlib import Path

import kaldifst
import numpy as np
from language_models import random_model, write_arpa

from pipelines.models.ctc.layouts import Units
from pipelines.models.language import ngram
from pipelines.search.graph.openfst import Fst, from_arcs, to_kaldifst
from pipelines.search.graph.recipe import Recipe

UNITS = Units(("<blank>", "a", "b", "c", "<wb>"), 0, 4)
WORDS = {"ab": ["a b"], "a": ["a"], "aa": ["a a"], "cab": ["c a b", "c b"], "bc": ["b c"], "bee": ["b"], "be": ["b"]}
"""Homophones, words that begin others, one that doubles a unit, one with an alternative."""


def recipe(folder: Path, units: Units = UNITS, words: dict[str, list[str]] = WORDS, **changes) -> Recipe:
    """Files of a random bigram model over `words` in `folder`, and the recipe that compiles them."""
    drawn = random_model(7, len(words), 2)
    write_arpa(ngram.make(("<s>", "</s>", *words), drawn.ids, drawn.log_prob, drawn.log_backoff), folder / "toy.arpa")
    lines = [f"{word}{f'({n})' * (n > 1)} {way}\n" for word, ways in words.items() for n, way in enumerate(ways, 1)]
    (folder / "lexicon.txt").write_text("".join(lines))
    values = {
        "model": "",
        "dictionary": str(folder / "lexicon.txt"),
        "language_model": str(folder / "toy.arpa"),
        "vocabulary": 100,
        "order": 2,
        "bigrams": 1000,
        "units": units.symbols,
        "blank": units.blank,
        "boundary": units.boundary,
        "parts": "HLG",
        "topology": "standard",
        "alternative_cost": 0.5,
    }
    return Recipe(**(values | changes))


def h(units: Units, topology: str) -> Fst:
    """H as the literature defines it: state 0 of the blank, and one for each unit, but in the minimal topology."""
    blank, labels = units.blank + 1, [n + 1 for n in range(len(units.symbols)) if n != units.blank]
    arcs = [(0, blank, 0, 0)]
    for state, label in enumerate(labels, 1):
        if topology == "minimal":
            arcs.append((0, label, label, 0))
            continue
        arcs += [(0, label, label, state), (state, label, 0, state)]
        if topology == "compact":
            arcs.append((state, 0, 0, 0))
        else:
            arcs.append((state, blank, 0, 0))
            arcs += [(state, other, other, at) for at, other in enumerate(labels, 1) if other != label]
    source, ilabel, olabel, target = (np.array(column) for column in zip(*arcs, strict=True))
    n = 1 if topology == "minimal" else len(labels) + 1
    return from_arcs(n, 0, np.zeros(n, np.float32), source, ilabel, olabel, 0.0 * source, target)


def composed(units: Units, topology: str, lg: Fst):
    """H composed with `lg` by OpenFst."""
    left, right = to_kaldifst(h(units, topology)), to_kaldifst(lg)
    kaldifst.arcsort(left, "olabel")
    kaldifst.arcsort(right, "ilabel")
    return kaldifst.StdConstFst(kaldifst.StdVectorFst(kaldifst.compose(left, right)))


def log_probabilities(seed: int, frames: int, units: Units = UNITS, blank: float = 3.0) -> np.ndarray:
    """What a net may put out, f32 [frames, units]: `blank` times as probable a blank, in runs of a few frames."""
    rng = np.random.default_rng(seed)
    held = np.repeat(rng.normal(scale=3.0, size=(frames, len(units.symbols))), 2, axis=0)[:frames]
    held += rng.normal(scale=0.3, size=held.shape)
    held[:, units.blank] += blank
    return (held - np.log(np.exp(held).sum(1, keepdims=True))).astype(np.float32)
