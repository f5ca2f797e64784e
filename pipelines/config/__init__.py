"""All settings of a run: `tree` says what there is, `options` how a setting is found, read and changed.

The window imports this package: msgspec and nothing heavier may be loaded here.
"""

from pipelines.config.options import (
    Condition,
    ConfigError,
    Option,
    Value,
    assign,
    check,
    flatten,
    get,
    obstacle,
    option,
    options,
    parse_assignment,
    replace,
    setting,
    to_dict,
)
from pipelines.config.tree import (
    DEVICES,
    Config,
    Dnn,
    Frames,
    Gmm,
    Graph,
    Placement,
    Search,
    Selection,
    from_dict,
)

__all__ = [
    "DEVICES",
    "Condition",
    "Config",
    "ConfigError",
    "Dnn",
    "Frames",
    "Gmm",
    "Graph",
    "Option",
    "Placement",
    "Search",
    "Selection",
    "Value",
    "assign",
    "check",
    "flatten",
    "from_dict",
    "get",
    "obstacle",
    "option",
    "options",
    "parse_assignment",
    "replace",
    "setting",
    "to_dict",
]
