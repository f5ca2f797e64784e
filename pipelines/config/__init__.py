"""All settings of a run. `tree` and a file per layer define them; `options` finds, reads and changes them.

The window imports this package, so it must load nothing heavier than msgspec.
"""

from pipelines.config.audio import SOUND, Audio
from pipelines.config.conditions import DEVICES, MIXTURES
from pipelines.config.dnn import Ctc, Dnn
from pipelines.config.fitting import named_now
from pipelines.config.gmm import Gmm, Selection
from pipelines.config.graph import Graph
from pipelines.config.options import (
    Condition,
    ConfigError,
    Option,
    Toggle,
    Value,
    assign,
    check,
    get,
    options_of,
    replace,
    setting,
    to_dict,
    value_text,
    value_texts,
)
from pipelines.config.recommended import FOLDER, assign_with_folder, unavailable_reason, with_folder
from pipelines.config.search import Search
from pipelines.config.tree import (
    COURSE,
    Config,
    Frames,
    Placement,
    found_again,
    from_dict,
    kept,
    of_files,
    option,
    options,
    parse_assignment,
)
from profiler.session.facts import flatten

__all__ = [
    "COURSE",
    "DEVICES",
    "FOLDER",
    "MIXTURES",
    "SOUND",
    "Audio",
    "Condition",
    "Config",
    "ConfigError",
    "Ctc",
    "Dnn",
    "Frames",
    "Gmm",
    "Graph",
    "Option",
    "Placement",
    "Search",
    "Selection",
    "Toggle",
    "Value",
    "assign",
    "assign_with_folder",
    "check",
    "flatten",
    "found_again",
    "from_dict",
    "get",
    "kept",
    "named_now",
    "of_files",
    "option",
    "options",
    "options_of",
    "parse_assignment",
    "replace",
    "setting",
    "to_dict",
    "unavailable_reason",
    "value_text",
    "value_texts",
    "with_folder",
]
