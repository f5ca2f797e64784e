"""Other names of settings and old ones of their values, read from the command line, presets and sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

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
