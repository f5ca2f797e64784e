"""What describes a setting, and how the settings of a tree are found, read, changed and checked.

This module knows no particular setting: :mod:`pipelines.config.tree` holds those. The form in the window, ``--set
key=value``, ``asrscope options``, the presets and the configuration stored in a session all come from :func:`options`.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

import assets
from pipelines.config.fitting import SHOWN, either, fitting, key_now, quoted, value_now, wanted
from profiler.errors import BadInput
from profiler.plain import one_line

Tree = TypeVar("Tree", bound=msgspec.Struct)
Value = bool | int | float | str
EMPTY = "(empty)"
Condition = Mapping[str, tuple[Any, ...] | range]  # Settings by key, each with its allowed values; all must hold


class ConfigError(BadInput):
    """A setting that does not exist, or a value that does not fit; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Toggle:
    """What makes a live setting a toggle in the top bar of the window: any value except `off` is on.

    `on` is the value used if none was chosen before. Of the toggles that share a `place` (counted from the left), the
    one that acts is shown. `without` says in a few words what happens while it is off; `says`, with its values.
    """

    title: str
    tip: str
    place: int
    key: str
    off: Value
    on: Value
    without: str
    says: Mapping[str, str] = field(default_factory=dict)


Traits = dict[str, Any]  # what else a setting may have, by the names of `Option`, as `setting` explains it


def setting(title: str, help: str, *, ge: float | None = None, le: float | None = None, **traits: Any) -> msgspec.Meta:
    """Describe one field of the tree.

    Traits that a struct's `TRAITS` has are those of all its settings, unless one says something else.

    `layer` is the heading under which the form shows it (default: the struct's name). `live` settings take effect at
    the next block of a running decode. `switched_by` names the boolean setting that must be on for this one to act;
    assigning this one on the command line turns the switch on. `when` says which values other settings must have for
    this one to act. `choices_when` says the same for some of its choices; if it gives several conditions, one is enough
    (see :func:`unavailable_reason`). `names_in` is the folder of assets whose files a text may name, without the first
    of `suffixes`; any other text is the path of a file with one of these suffixes (an empty one: whatever its name).
    `like` is an example of a text that is no path. `reasons`: why a choice needs the values of `choices_when`, by the
    setting that has another one. `main`: whether the form shows it without "more". `words` says values
    that a number does not explain. `steps`: values that the arrow keys go through, where a number is not counted up.
    """
    return msgspec.Meta(title=title, description=help, ge=ge, le=le, extra=traits)


@dataclass(frozen=True, slots=True)
class Option:
    """One setting as the form, the command line and `asrscope options` show it."""

    key: str
    title: str
    help: str
    type: Literal["bool", "int", "float", "choice", "text"]
    default: Value
    choices: tuple[Value, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    unit: str = ""
    live: bool = False
    layer: str = ""
    switched_by: str = ""
    when: Condition = field(default_factory=dict)
    choices_when: Mapping[str, tuple[Condition, ...]] = field(default_factory=dict)
    toggle: Toggle | None = None
    names_in: str = ""
    suffixes: tuple[str, ...] = ()
    like: str = ""
    main: bool = False
    words: Mapping[Value, str] = field(default_factory=dict)
    steps: tuple[float, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def hangs_on(self) -> tuple[str, ...]:
        """The settings that must act for this one to act: its switch and those in `when`."""
        return tuple(filter(None, (self.switched_by, *self.when)))

    def shipped(self) -> list[str]:
        return list(_shipped(self.names_in, self.suffixes[0])) if self.names_in else []


@functools.cache
def _shipped(folder: str, suffix: str) -> tuple[str, ...]:
    """Names of the files that ship in a folder: looked up once, since the window asks several times a second."""
    files = assets.path(folder).glob(f"*{suffix}")
    return tuple(sorted(file.name.removesuffix(suffix) for file in files))


_TYPES: dict[type, Literal["bool", "int", "float", "text"]] = {bool: "bool", int: "int", float: "float", str: "text"}


@functools.cache
def options_of(tree: type[msgspec.Struct]) -> tuple[Option, ...]:
    return tuple(_walk(tree, ""))


def _walk(tree: type[msgspec.Struct], prefix: str) -> Iterator[Option]:
    hints, shared = get_type_hints(tree, include_extras=True), getattr(tree, "TRAITS", Traits())
    for member in msgspec.structs.fields(tree):
        hint = hints[member.name]
        key = prefix + member.name
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from _walk(hint, key + ".")
            continue
        if get_origin(hint) is not Annotated:
            raise TypeError(f"{tree.__name__}.{member.name} has no setting(...) next to its type")
        kind, meta = get_args(hint)
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        traits: Traits = {"layer": tree.__name__, **shared, **(meta.extra or {})}
        some = traits.get("choices_when", {})
        traits["choices_when"] = {choice: one if isinstance(one, tuple) else (one,) for choice, one in some.items()}
        yield Option(
            key=key,
            title=meta.title,
            help=meta.description,
            type="choice" if choices else _TYPES[kind],
            default=member.default,
            choices=choices,
            minimum=meta.ge,
            maximum=meta.le,
            **traits,
        )


def option_of(tree: type[msgspec.Struct], key: str) -> Option:
    """The setting called `key`, now or once; ConfigError when there is none, with the nearest name."""
    known = _by_key(tree)
    if found := known.get(key_now(key)):
        return found
    shown = one_line(key, SHOWN)
    near = _nearest(shown, list(known))
    hint = f"; did you mean {near}?" if near else "."
    raise ConfigError(f"There is no setting called '{shown}'{hint} `asrscope options` lists them all.")


@functools.cache
def _by_key(tree: type[msgspec.Struct]) -> Mapping[str, Option]:
    return {option.key: option for option in options_of(tree)}


def _nearest(wanted: str, keys: list[str]) -> str:
    """Return the key that `wanted` abbreviates (`graph.lm`, `graph.dict`), else the most similar one, or ""."""
    import difflib

    group, _, name = wanted.rpartition(".")
    for key in keys:
        inside, _, full = key.rpartition(".")
        initials = "".join(word[0] for word in full.split("_"))
        if group in ("", inside) and name and (name == initials != full or full.startswith(name)):
            return key
    return next(iter(difflib.get_close_matches(wanted, keys, n=1, cutoff=0.4)), "")


def get(config: msgspec.Struct, key: str) -> Value:
    """The value of setting `key`."""
    node: Any = config
    for part in option_of(type(config), key).key.split("."):
        node = getattr(node, part)
    value: Value = node
    return value


def unavailable_reason(config: msgspec.Struct, key: str, value: Value | None = None) -> str | None:
    """Why setting `key` (or its choice `value`) cannot act with the other settings; None if it can.

    A setting that depends on one that cannot act cannot act either. The result is one sentence for the user.
    """
    target = option_of(type(config), key)
    if value is None:
        for other in target.hangs_on:
            if reason := unavailable_reason(config, other):
                return f"{key} acts only with {reason.partition(' acts only with ')[2]}"
    conditions = (target.when,) if value is None else target.choices_when.get(str(value), ({},))
    reasons = [reason for condition in conditions if (reason := _unmet(config, condition))]
    if len(reasons) < len(conditions):
        return None
    what = key if value is None else f"{key}={value_text(value) or EMPTY}"
    named = (reason.partition(" ")[0] for reason in reasons if value is not None)
    why = next((target.reasons[name] for name in named if name in target.reasons), "")
    return f"{what} acts only with {', or with '.join(dict.fromkeys(reasons))}{why and ': ' + why}."


def _unmet(config: msgspec.Struct, condition: Condition) -> str | None:
    """The first part of `condition` that does not hold, in words; None if all hold."""
    for other, allowed in condition.items():
        if get(config, other) not in allowed:
            title = option_of(type(config), other).title
            return f"{other} = {either([text or EMPTY for text in value_texts(allowed)])} ({title.lower()})"
    return None


def value_text(value: object) -> str:
    """Format a value for ``--set``, as short as possible without changing it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and float(short := f"{value:g}") == value:
        return short
    return str(value)


def value_texts(allowed: tuple[Any, ...] | range) -> list[str]:
    if isinstance(allowed, range):
        return [f"{allowed[0]}…{allowed[-1]}"]
    return [value_text(value) for value in allowed]


def check(config: Tree) -> Tree:
    """`config` itself; ConfigError when a choice in it cannot act with the others.

    Settings that do not act at all (switched off, or `when` does not hold) are not checked.
    """
    for target in options_of(type(config)):
        acts = not target.switched_by or get(config, target.switched_by)
        if acts and target.choices_when and unavailable_reason(config, target.key) is None:
            why = unavailable_reason(config, target.key, get(config, target.key))
            if why is not None:
                raise ConfigError(why)
    return config


def replace(config: Tree, key: str, value: object) -> Tree:
    """A copy of `config` with setting `key` changed; ConfigError when the value does not fit."""
    target = option_of(type(config), key)
    return _replaced(config, target.key, fitted(target, value))


def assign(config: Tree, assignments: Mapping[str, Value]) -> Tree:
    """`config` with settings changed as a user assigns them on the command line.

    Assigning a setting that acts only under a switch (``gmm.selection.method``) turns the switch on,
    unless the switch itself is among the assignments.
    """
    by_option = {option_of(type(config), key).key: value for key, value in assignments.items()}
    for key, value in by_option.items():
        config = replace(config, key, value)
        switch = option_of(type(config), key).switched_by
        if switch and switch not in by_option:
            config = replace(config, switch, value not in ("none", False))
    return config


def fitted(target: Option, value: object) -> Value:
    """`value`, possibly given as text, in the type of the setting and within its bounds.

    It may be anything that TOML, JSON or a session can contain; ConfigError in one sentence if it does not fit.
    """
    found = fitting(target, value_now(target.key, value))
    if found is None:
        raise ConfigError(f"{target.key} must be {wanted(target)}, not {quoted(value)}.")
    return found


def _replaced(config: Tree, key: str, value: Value) -> Tree:
    head, _, rest = key.partition(".")
    inner = _replaced(getattr(config, head), rest, value) if rest else value
    return msgspec.structs.replace(config, **{head: inner})


def to_dict(config: msgspec.Struct) -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.to_builtins(config)
    return tree
