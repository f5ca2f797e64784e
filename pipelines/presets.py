"""Presets: named configurations, each a TOML file in ``assets/presets`` that says what differs from the defaults.

A preset file holds ``title`` and ``description`` and a table ``[config]`` with settings by the names of
`pipelines.config`. Presets that belong together, each a step from another, say so in the head: ``group``, the
group's title; ``step``, the place in it; ``after``, the preset that the step starts from. A person's own file of the
same form is read by :func:`from_file`.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import assets
from pipelines.config import Config, ConfigError, from_dict

DEFAULT = "gmm"

_TEXTS = ("title", "description", "group", "after")


@dataclass(frozen=True, slots=True)
class Preset:
    """A configuration with a name to choose it by; `group` is empty for those that stand alone."""

    name: str
    title: str
    description: str
    config: Config
    group: str = ""
    step: int = 0
    after: str = ""


def names(group: str | None = None) -> list[str]:
    """The shipped presets: the default, those that stand alone, the groups, each in the order of its steps.

    `group`: only those of this group; with "" those that stand alone.
    """
    return [preset.name for preset in _shipped() if group in (None, preset.group)]


def groups() -> list[str]:
    """Titles of the groups that shipped presets belong to."""
    return list(dict.fromkeys(preset.group for preset in _shipped() if preset.group))


def load(name: str) -> Preset:
    """The shipped preset `name`; ConfigError lists what there is."""
    for preset in _shipped():
        if preset.name == name:
            return preset
    raise ConfigError(f"There is no preset called {name!r}; there are {', '.join(names())}.")


@functools.cache
def _shipped() -> tuple[Preset, ...]:
    found = [from_file(file) for file in assets.path("presets").glob("*.toml")]
    return tuple(sorted(found, key=lambda p: (p.group, p.step, p.name != DEFAULT, p.name)))


def from_file(path: str | Path) -> Preset:
    """Read a preset file; ConfigError with one sentence naming the file and what is wrong in it."""
    path = Path(path)
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read the configuration {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a TOML configuration: {error}.") from None
    unknown = set(tree) - {*_TEXTS, "step", "config"}
    settings = tree.get("config", {})
    if unknown or not isinstance(settings, dict):
        found = ", ".join(sorted(unknown)) or repr(settings)
        raise ConfigError(
            f"{path}: expected title, description and a table [config] (and group, step, after), "
            f"and not {found}."
        )
    step: Any = tree.get("step", 0)
    if type(step) is not int:
        raise ConfigError(f"{path}: step wants a whole number, and not {step!r}.")
    texts = {name: str(tree[name]) for name in _TEXTS if name in tree}
    return Preset(
        name=path.stem,
        config=from_dict(settings, where=str(path)),
        step=step,
        **{"title": path.stem, "description": ""} | texts,
    )
