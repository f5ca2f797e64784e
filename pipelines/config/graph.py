"""Settings of the search graph."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pipelines.config.options import setting

NO_GRAMMAR = {"graph.grammar": ("",)}
"""A grammar says by itself what can be recognised."""


class Graph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The search graph: dictionary and language model, compiled once and cached."""

    vocabulary: Annotated[
        int,
        setting(
            "Vocabulary",
            "How many words can be recognised: the most probable words of the language model that the dictionary has "
            "(some 72 000 of those that ship with pocketsphinx).",
            layer="Graph",
            unit="words",
            ge=1,
            le=1000000,
            when=NO_GRAMMAR,
        ),
    ] = 5000
    order: Annotated[
        Literal[1, 2, 3],
        setting(
            "N-gram order",
            "1: each word by its own probability. 2, 3: by the one or two words before it, backing off where pruned.",
            layer="Graph",
            when=NO_GRAMMAR,
        ),
    ] = 2
    bigrams: Annotated[
        int,
        setting(
            "Bigrams kept",
            "The language model is pruned to this many word pairs; more make a larger graph and fewer errors.",
            layer="Graph",
            unit="word pairs",
            ge=0,
            le=100000000,
            when={**NO_GRAMMAR, "graph.order": (2, 3)},
        ),
    ] = 300000
    trigrams: Annotated[
        int,
        setting(
            "Trigrams kept",
            "The language model is pruned to this many triples of words.",
            layer="Graph",
            unit="word triples",
            ge=0,
            le=100000000,
            when={**NO_GRAMMAR, "graph.order": (3,)},
        ),
    ] = 200000
    pruning: Annotated[
        Literal["count", "entropy"],
        setting(
            "Pruning",
            "Which n-grams are kept: count takes those that the model expects most often; entropy those whose loss "
            "would change the model most (Stolcke 1998).",
            layer="Graph",
            when={**NO_GRAMMAR, "graph.order": (2, 3)},
        ),
    ] = "entropy"
    language_model: Annotated[
        str,
        setting(
            "Language model",
            "A .lm.bin or ARPA file (also gzip); empty: the one that ships with pocketsphinx.",
            layer="Graph",
            when=NO_GRAMMAR,
        ),
    ] = ""
    dictionary: Annotated[
        str,
        setting(
            "Dictionary",
            "A pronunciation dictionary in CMU form; empty: the one that ships with pocketsphinx.",
            layer="Graph",
        ),
    ] = ""
    grammar: Annotated[
        str,
        setting(
            "Grammar",
            "What to recognise instead of the language model: a JSGF file (.gram, .jsgf), a plain list of words or "
            "phrases, one a line, of which any number may be said in any order, or one that ships with the program: "
            "cards, digits, robot.",
            layer="Graph",
        ),
    ] = ""
