"""Presets: named configurations, each a TOML file in ``assets/presets`` with what differs from the defaults.

A preset file has a ``title``, a ``description`` and a table ``[config]`` of settings. Three more keys may be there:
``group``, the title of the group (one of `GROUPS`); ``step``, the position in it; ``after``, in a series, the preset
that the step starts from. :func:`from_file` reads a user's own file of the same form.
"""

import functools
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import assets
from pipelines.config import FOLDER, Config, ConfigError, assign_with_folder, from_dict
from profiler.files import inputs
from profiler.plain import one_line

DEFAULT = "gmm"
DEMO: Final = "demo"
HEARING: Final = "ctc"  # it hears people whom no model here was trained on (docs/measurements.md)
GROUPS: Final = ("", "More mixtures", "Words and grammars", "CTC nets", "Compressed nets", "The ladder")
"""In the order in which they are offered; first those outside any group."""
LONGEST_HEAD = 2_000  # maximum characters of a title or description; the longest that ships has about 300
_TEXTS = ("title", "description", "group", "after")


@dataclass(frozen=True, slots=True)
class Preset:
    """A named configuration; `group` is empty for those outside any group."""

    name: str
    title: str
    description: str
    config: Config
    group: str = ""
    step: int = 0
    after: str = ""


def names(group: str | None = None) -> list[str]:
    """The shipped presets: those outside any group, then the groups, each in the order of its steps.

    `group`: only those of this group; "" for those outside any group.
    """
    return [preset.name for preset in _shipped() if group in (None, preset.group)]


def groups() -> list[str]:
    return list(dict.fromkeys(preset.group for preset in _shipped() if preset.group))


def load(name: str) -> Preset:
    """The shipped preset `name`; ConfigError lists the existing ones."""
    for preset in _shipped():
        if preset.name == name:
            return preset
    raise ConfigError(f"There is no preset called {name!r}; there are {', '.join(names())}.")


def of_own_speech() -> str:
    """The preset for a person's own speech, of those that the installed packages suffice for."""
    return HEARING if importlib.util.find_spec("hama") and importlib.util.find_spec("onnxruntime") else DEFAULT


@functools.cache
def _shipped() -> tuple[Preset, ...]:
    found = [from_file(file) for file in assets.path("presets").glob("*.toml")]
    return tuple(sorted(found, key=lambda p: (GROUPS.index(p.group), p.step, p.name)))


def from_file(path: str | Path) -> Preset:
    """Read a preset file; ConfigError in one sentence names the file and the error."""
    path = Path(path)
    name = one_line(str(path))
    try:
        tree = inputs.read_toml(path, "a configuration")
    except inputs.InputError as error:
        raise ConfigError(str(error)) from None
    unknown = set(tree) - {*_TEXTS, "step", "config"}
    settings = tree.get("config", {})
    if unknown or not isinstance(settings, dict):
        found = one_line(", ".join(sorted(unknown)) or repr(settings))
        raise ConfigError(
            f"{name}: expected title, description and a table [config] (and group, step, after), not {found}."
        )
    step: Any = tree.get("step", 0)
    if type(step) is not int:
        raise ConfigError(f"{name}: step must be a whole number, not {one_line(repr(step))}.")
    texts: dict[str, Any] = {key: tree[key] for key in _TEXTS if key in tree}
    for key, text in texts.items():
        if not isinstance(text, str) or len(text) > LONGEST_HEAD:
            raise ConfigError(f"{name}: {key} must be a text of at most {LONGEST_HEAD:,} characters.")
    # Whatever the file does not say is as the model folder recommends.
    folder = settings.get(FOLDER)
    base = assign_with_folder(Config(), {FOLDER: folder}) if isinstance(folder, str) else None
    return Preset(
        name=path.stem,
        config=from_dict(settings, where=name, base=base),
        step=step,
        **{"title": path.stem, "description": ""} | texts,
    )
