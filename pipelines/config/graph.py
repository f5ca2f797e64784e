"""Settings of the search graph."""

from typing import Annotated, Literal

import msgspec

from pipelines.config.conditions import CTC
from pipelines.config.options import setting

NO_GRAMMAR = {"graph.grammar": ("",)}  # a grammar alone defines what can be recognised
VOCABULARY = setting(
    "Vocabulary",
    "How many words can be recognised: the most probable words of the language model that are also in the "
    "dictionary (about 72 000 with the files that ship with pocketsphinx).",
    unit="words",
    ge=1,
    le=1000000,
    when=NO_GRAMMAR,
)
ORDER = setting(
    "N-gram order",
    "1: the probability of a word does not depend on other words. 2, 3: it depends on the previous one or two "
    "words, backing off where the model is pruned.",
    when=NO_GRAMMAR,
)
BIGRAMS = setting(
    "LM bigrams",
    "The language model is pruned to this many word pairs. More pairs give a larger graph and fewer errors.",
    unit="word pairs",
    ge=0,
    le=100000000,
    when={**NO_GRAMMAR, "graph.order": (2, 3)},
)
TRIGRAMS = setting(
    "LM trigrams",
    "The language model is pruned to this many word triples.",
    unit="word triples",
    ge=0,
    le=100000000,
    when={**NO_GRAMMAR, "graph.order": (3,)},
)
PRUNING = setting(
    "Pruning",
    "Which n-grams are kept. count: those that the model expects most often. entropy: those whose loss would "
    "change the model most (Stolcke 1998).",
    when={**NO_GRAMMAR, "graph.order": (2, 3)},
)
LANGUAGE_MODEL = setting(
    "Language model",
    "A .lm.bin or ARPA file (may be packed with gzip or bzip2). Empty: the one that ships with pocketsphinx.",
    when=NO_GRAMMAR,
)
DICTIONARY = setting(
    "Dictionary",
    "A pronunciation dictionary in CMU format, with or without stress digits; for a CTC net also a lexicon.txt "
    "in its units. Empty: the one that ships with pocketsphinx, or lexicon.txt in the net's folder.",
)
GRAMMAR = setting(
    "Grammar",
    "Replaces the language model. A JSGF file (.gram, .jsgf); a plain list of words or phrases, one per line, which "
    "may be said in any number and order; or a grammar that ships with the program: cards, digits, robot.",
    names_in="grammars",
    suffixes=(".gram", ".jsgf", ""),
)
PARTS = setting(
    "Parts",
    "What the graph of a CTC net is composed of. H: the net's units in any order, which are then shown as words. HL: "
    "words of the lexicon in any order; of those that sound alike the more probable one. HLG: with the language model "
    "or grammar. A file HLG.fst or TLG.fst, HL.fst or H.fst in the net's folder is opened instead.",
    when=CTC,
)
TOPOLOGY = setting(
    "Topology",
    "How frames spell a unit (H). standard: a unit may last for several frames, and a blank stands between "
    "two equal ones. compact: with fewer arcs; two equal units may also follow each other without a blank. "
    "minimal: each unit lasts for one frame, which gives the smallest graph and more errors.",
    when=CTC,
)
ALTERNATIVE_COST = setting(
    "Alternative pronunciations",
    "Cost of each pronunciation of a word after the first.",
    unit="nat",
    when=CTC,
    ge=0.0,
    le=20.0,
)


class Graph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The search graph: dictionary and language model, compiled once and cached."""

    vocabulary: Annotated[int, VOCABULARY] = 5000
    order: Annotated[Literal[1, 2, 3], ORDER] = 2
    bigrams: Annotated[int, BIGRAMS] = 300000
    trigrams: Annotated[int, TRIGRAMS] = 200000
    pruning: Annotated[Literal["count", "entropy"], PRUNING] = "entropy"
    language_model: Annotated[str, LANGUAGE_MODEL] = ""
    dictionary: Annotated[str, DICTIONARY] = ""
    grammar: Annotated[str, GRAMMAR] = ""
    parts: Annotated[Literal["HLG", "HL", "H"], PARTS] = "HLG"
    topology: Annotated[Literal["standard", "compact", "minimal"], TOPOLOGY] = "standard"
    alternative_cost: Annotated[float, ALTERNATIVE_COST] = (
        2.0  # 14 errors in 63 words of human speech where 0 gives 16 (preset ctc)
    )
