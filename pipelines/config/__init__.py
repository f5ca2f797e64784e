"""All settings of a run. `tree` and a file per layer define them; `options` finds, reads and changes them.

The window imports this package, so it must load nothing heavier than msgspec.
"""

from pipelines.config.audio import SOUND, Audio
from pipelines.config.conditions import MIXTURES
from pipelines.config.gmm import Gmm
from pipelines.config.graph import Graph
from pipelines.config.options import (
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
    "COURSE", "FOLDER", "MIXTURES", "SOUND", "Audio", "Config", "ConfigError", "Gmm", "Graph", "Option", "Search",
    "Toggle", "Value", "assign", "assign_with_folder", "check", "flatten", "found_again", "from_dict", "get",
    "kept", "of_files", "option", "options", "options_of", "parse_assignment", "replace", "setting", "to_dict",
    "unavailable_reason", "value_text", "value_texts", "with_folder",
]  # fmt: skip
