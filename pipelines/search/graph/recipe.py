"""What decides which graph comes out: the settings, and the files that they name."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import assets
from pipelines.config import Graph as GraphConfig
from pipelines.models import dictionary as dictionaries
from pipelines.models.sphinx import AcousticModel
from pipelines.search.graph.wfst import GraphError
from profiler.files import inputs
from profiler.plain import one_line


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what graph comes out, as JSON values.

    With a `grammar` there is no language model, and what says how it is cut is 0 or empty. Of a CTC net there are
    `units`, with the indices of `blank` and `boundary`, instead of a `model`, and what of the graph is made of them;
    `table`: pronunciations in these units, `g2p`: version of the net that makes more.
    """

    model: str
    dictionary: str
    language_model: str = ""
    vocabulary: int = 0
    order: int = 0
    bigrams: int = 0
    trigrams: int = 0
    pruning: Literal["entropy", "count"] = "entropy"
    grammar: str = ""
    # Tuned together with acoustic scale and insertion penalty on synthetic speech (tests/bench/corpus.py): 552 word
    # errors in 1 433, where 1.0 / 0.01 for transitions and fillers gave over 570. Kaldi scales self-loops by 0.1.
    silence_probability: float = 0.3
    filler_probability: float = 0.001
    transition_scale: float = 0.3  # of the HMM transition probabilities
    units: Sequence[str] = ()
    blank: int = 0
    boundary: int | None = None
    parts: str = ""
    topology: str = ""
    alternative_cost: float = 0.0
    table: str = ""
    g2p: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def default_language_model() -> Path:
    return dictionaries.default_path().with_name("en-us.lm.bin")


def recipe_of(config: GraphConfig, model: AcousticModel) -> Recipe:
    """Return the recipe for the settings; files that they do not name are those of the pocketsphinx package.

    Settings that do not act with the others are left out, so that they do not cause another graph. GraphError for a
    missing grammar.
    """
    dictionary = os.path.expanduser(config.dictionary) or str(dictionaries.default_path())
    return Recipe(str(model.directory), dictionary, **sentences(config))


def sentences(config: GraphConfig) -> dict[str, Any]:
    """Return what of a recipe says which sentences there are."""
    if name := config.grammar:
        shipped = {path.stem: path for path in sorted(assets.path("grammars").glob("*.gram"))}
        file = shipped.get(name, Path(os.path.expanduser(name)))
        if name not in shipped and not inputs.regular(file):
            raise GraphError(
                f"There is no grammar file {one_line(name)}; shipped with the program are {', '.join(shipped)}."
            )
        return {"grammar": str(file)}
    return {
        "language_model": os.path.expanduser(config.language_model) or str(default_language_model()),
        "vocabulary": config.vocabulary,
        "order": config.order,
        "bigrams": config.bigrams if config.order > 1 else 0,
        "trigrams": config.trigrams if config.order > 2 else 0,
        "pruning": config.pruning if config.order > 1 else "entropy",
    }
