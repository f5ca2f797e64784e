"""Whether a value fits a setting: anything a user types, or that TOML, JSON or a session can contain.

Older names of settings and values are still taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from profiler.plain import one_line

if TYPE_CHECKING:
    from pipelines.config.options import Option, Value

LONGEST_TEXT: Final = 4096  # maximum characters of a text setting: no file path is longer
SHOWN: Final = 60  # characters of an unknown key or value that the message repeats; our longest key has 28
_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}


def fitting(target: Option, value: object) -> Value | None:
    """`value`, possibly given as text, in the type of the setting; None if it does not fit the type or the bounds."""
    if target.type == "bool":
        found = _WORDS.get(value.lower()) if isinstance(value, str) else value
        return found if isinstance(found, bool) else None
    if target.type == "text":
        return value if isinstance(value, str) and len(value) <= LONGEST_TEXT and "\0" not in value else None
    if not isinstance(value, str | int | float):
        return None
    if target.type == "choice":
        if isinstance(value, int) and value not in target.choices:
            return None  # not by its text: Python refuses to print thousands of digits
        return next((c for c in target.choices if str(c) == str(value)), None)
    return None if isinstance(value, bool) else _number(target, value)


def _number(target: Option, value: str | float) -> float | None:
    low, high = target.minimum, target.maximum
    try:
        number = float(value) if target.type == "float" else int(value)
        same = isinstance(value, str) or number == value
        inside = math.isfinite(number) and (low is None or number >= low) and (high is None or number <= high)
    except (ValueError, OverflowError):
        return None
    return number if same and inside else None


def wanted(target: Option) -> str:
    """Describe what the setting accepts."""
    if target.type == "bool":
        return "true or false"
    if target.type == "choice":
        return either([str(c) for c in target.choices])
    if target.type == "text":
        return f"a text of at most {LONGEST_TEXT} characters, none of them NUL"
    kind = "a whole number" if target.type == "int" else "a number"
    if target.minimum is not None and target.maximum is not None:
        return f"{kind} from {target.minimum:g} to {target.maximum:g}"
    return kind


def either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]


def quoted(value: object) -> str:
    """The given value as the message repeats it: shortened, or its kind if there is no short form."""
    if isinstance(value, str):
        return f"'{one_line(value, SHOWN)}'"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length():,} bits"
    if value is None or isinstance(value, bool | int | float):
        return "nothing" if value is None else str(value)
    if isinstance(value, list | tuple):
        return "a list"
    return "a table" if isinstance(value, Mapping) else f"a {type(value).__name__}"


KEYS: Final[Mapping[str, str]] = {
    "search.governor": "search.adaptive_beam",
    "search.wished_rtf": "search.target_rtf",
    "model.folder": "model_directory",
}
"""Old or other key → key."""
VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "gmm.senones": {"asked": "active", "asked-ci": "active-ci"},
    "dnn.senones": {"asked": "active", "asked-ahead": "active-ahead"},
    "frames.rule": {"heads": "multi-frame"},
}
"""Key → old value → value."""


def key_now(key: str) -> str:
    """Today's name of the setting `key`."""
    return KEYS.get(key, key)


def value_now(key: str, value: object) -> object:
    """Today's name of `value` of the setting `key` (itself by today's name)."""
    return VALUES.get(key, {}).get(value, value) if isinstance(value, str) else value


def named_now(leaves: Iterable[tuple[str, object]]) -> dict[str, object]:
    """`leaves` (key, value) of a configuration that may be old, all by today's names."""
    named = ((key_now(key), value) for key, value in leaves)
    return {key: value_now(key, value) for key, value in named}
