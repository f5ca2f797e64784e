"""Presets: named configurations, each a TOML file in ``assets/presets`` that says what differs from the defaults.

A preset file holds ``title`` and ``description`` and a table ``[config]`` with settings by the names of
`pipelines.config`. A person's own file of the same form is read by :func:`from_file`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import assets
from pipelines.config import Config, ConfigError, from_dict

DEFAULT = "gmm"


@dataclass(frozen=True, slots=True)
class Preset:
    """A configuration with a name to choose it by."""

    name: str
    title: str
    description: str
    config: Config


def names() -> list[str]:
    """The shipped presets, the default first."""
    found = sorted(file.stem for file in assets.path("presets").glob("*.toml"))
    return sorted(found, key=lambda name: name != DEFAULT)


def load(name: str) -> Preset:
    """The shipped preset `name`; ConfigError lists what there is."""
    if name not in names():
        raise ConfigError(f"There is no preset called {name!r}; there are {', '.join(names())}.")
    return from_file(assets.path("presets", f"{name}.toml"))


def from_file(path: str | Path) -> Preset:
    """Read a preset file; ConfigError with one sentence naming the file and what is wrong in it."""
    path = Path(path)
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read the configuration {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a TOML configuration: {error}.") from None
    unknown = set(tree) - {"title", "description", "config"}
    settings = tree.get("config", {})
    if unknown or not isinstance(settings, dict):
        found = ", ".join(sorted(unknown)) or repr(settings)
        raise ConfigError(
            f"{path}: expected title, description and a table [config], and not {found}."
        )
    return Preset(
        name=path.stem,
        title=str(tree.get("title", path.stem)),
        description=str(tree.get("description", "")),
        config=from_dict(settings, where=str(path)),
    )
