"""The one typed tree of settings, from which everything else about settings is generated.

A setting is written once, as a field of a struct below: type, default, bounds, title, help, unit, the
layer of the pipeline it belongs to and whether it can change while a run goes on. The form in the
window, ``--set key=value``, ``asrscope options``, the presets and the configuration stored in a
session all come from :func:`options`. Importing this module loads msgspec and nothing heavier.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from profiler.errors import BadInput

Tree = TypeVar("Tree", bound=msgspec.Struct)


class ConfigError(BadInput):
    """A setting that does not exist or does not fit, in one sentence."""


def setting(
    title: str,
    help: str,
    *,
    layer: str = "",
    unit: str = "",
    live: bool = False,
    switched_by: str = "",
    ge: float | None = None,
    le: float | None = None,
) -> msgspec.Meta:
    """Describe one field of the tree.

    `layer` is the heading under which the form shows it (default: the struct's own). `live` settings act
    at the next block of a running decode. `switched_by` names the boolean setting that must be on for
    this one to act; assigning this one from the command line turns that switch on.
    """
    return msgspec.Meta(
        title=title,
        description=help,
        ge=ge,
        le=le,
        extra={"layer": layer, "unit": unit, "live": live, "switched_by": switched_by},
    )


class Frames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Frame layer: which frames are scored at all."""

    skip: Annotated[
        int,
        setting(
            "Frame skipping",
            "1 scores every frame; k scores every k-th and gives the others scores by the rule below.",
            layer="Frame layer",
            live=True,
            ge=1,
            le=4,
        ),
    ] = 1
    rule: Annotated[
        Literal["copy"],
        setting(
            "Skipped frames",
            "Where a skipped frame's scores come from: copy takes those of the last scored frame.",
            layer="Frame layer",
            live=True,
        ),
    ] = "copy"


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Gaussian layer: which densities are evaluated."""

    enabled: Annotated[
        bool,
        setting(
            "Gaussian selection",
            "Sum only the densities that the method below selects, instead of all of them.",
            layer="Gaussian layer",
            live=True,
        ),
    ] = False
    method: Annotated[
        Literal["none", "top-n"],
        setting(
            "Method",
            "top-n keeps the n best densities of each codebook and stream; none keeps them all.",
            layer="Gaussian layer",
            live=True,
            switched_by="gmm.selection.enabled",
        ),
    ] = "top-n"
    top_n: Annotated[
        int,
        setting(
            "Densities kept",
            "How many top-n keeps (pocketsphinx: 4); from about 32 on, selecting costs more than it saves.",
            layer="Gaussian layer",
            unit="per codebook and stream",
            live=True,
            switched_by="gmm.selection.enabled",
            ge=1,
            le=64,
        ),
    ] = 4


class Gmm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Gaussian mixture scoring."""

    selection: Selection = Selection()


class Graph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The search graph: dictionary and language model, compiled once and cached."""

    vocabulary: Annotated[
        int,
        setting(
            "Vocabulary",
            "How many words can be recognised: the most probable words of the language model.",
            layer="Graph",
            unit="words",
            ge=100,
            le=20000,
        ),
    ] = 5000
    order: Annotated[
        Literal[1, 2],
        setting(
            "N-gram order",
            "1: each word by its own probability. 2: by the word before it, backing off where a pair was pruned.",
            layer="Graph",
        ),
    ] = 2
    bigrams: Annotated[
        int,
        setting(
            "Bigrams kept",
            "The language model is pruned to this many word pairs; more make a larger graph and fewer errors.",
            layer="Graph",
            unit="word pairs",
            ge=0,
            le=2000000,
        ),
    ] = 300000


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Token passing over the graph."""

    device: Annotated[
        Literal["cpu"],
        setting("Search on", "Where token passing runs.", layer="Search"),
    ] = "cpu"
    beam: Annotated[
        float,
        setting(
            "Beam",
            "Tokens that cost this much more than the best are dropped (negative log likelihood, acoustics scaled).",
            layer="Search",
            unit="nat",
            live=True,
            ge=1.0,
            le=40.0,
        ),
    ] = 13.0
    max_active: Annotated[
        int,
        setting(
            "Most tokens",
            "At most about this many tokens survive a frame (histogram pruning).",
            layer="Search",
            unit="tokens",
            live=True,
            ge=50,
            le=100000,
        ),
    ] = 7000
    acoustic_scale: Annotated[
        float,
        setting(
            "Acoustic scale",
            "Weight of the acoustic log likelihoods against the language model.",
            layer="Search",
            live=True,
            ge=0.01,
            le=1.0,
        ),
    ] = 0.115  # tuned on development sentences, with the penalty below: tests/bench/decode.py compares
    insertion_penalty: Annotated[
        float,
        setting(
            "Word insertion penalty",
            "Cost added for each word; larger gives fewer and longer words.",
            layer="Search",
            unit="nat",
            live=True,
            ge=-5.0,
            le=10.0,
        ),
    ] = 1.0


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of a run."""

    pace: Annotated[
        float,
        setting(
            "Pace",
            "0 decodes as fast as possible; 1, 2, 4 feed the audio at that multiple of real time.",
            layer="Audio",
            unit="× real time",
            live=True,
            ge=0.0,
            le=100.0,
        ),
    ] = 0.0
    loop: Annotated[
        bool,
        setting(
            "Loop", "Start again with the first file after the last one.", layer="Audio", live=True
        ),
    ] = False
    block: Annotated[
        int,
        setting(
            "Block",
            "Frames scored and searched in one call: larger blocks reuse what was loaded from memory, and wait longer.",
            layer="Audio",
            unit="frames",
            live=True,
            ge=1,
            le=256,
        ),
    ] = 16
    model: Annotated[
        Literal["ptm"],
        setting(
            "Acoustic model",
            "ptm: the phonetically tied mixture model that ships with pocketsphinx.",
            layer="Scoring",
        ),
    ] = "ptm"
    device: Annotated[
        Literal["cpu"], setting("Scoring on", "Where scores are computed.", layer="Scoring")
    ] = "cpu"
    threads: Annotated[
        int,
        setting(
            "Threads",
            "Threads of the scoring kernels; search is serial.",
            layer="Scoring",
            unit="threads",
            ge=1,
            le=64,
        ),
    ] = 1
    frames: Frames = Frames()
    gmm: Gmm = Gmm()
    graph: Graph = Graph()
    search: Search = Search()
    counters: Annotated[
        bool,
        setting(
            "Count events",
            "Read the processor's and the kernel's counters after every stage (cycles, cache misses, page faults …, "
            "as far as this machine has them: see `asrscope doctor`). Adds some 3 µs to every span.",
            layer="Instrument",
        ),
    ] = False


Value = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Option:
    """One setting, as the form, the command line and `asrscope options` show it."""

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


_TYPE_NAMES: dict[type, Literal["bool", "int", "float", "text"]] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "text",
}


def options(tree: type[msgspec.Struct] | None = None) -> list[Option]:
    """Every setting of the tree, in the order of the data: depth first, as written above."""
    return list(_options(tree or Config))


@functools.cache
def _options(tree: type[msgspec.Struct]) -> tuple[Option, ...]:
    return tuple(_walk(tree, ""))


def _walk(tree: type[msgspec.Struct], prefix: str) -> Iterator[Option]:
    hints = get_type_hints(tree, include_extras=True)
    for field in msgspec.structs.fields(tree):
        hint = hints[field.name]
        key = prefix + field.name
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from _walk(hint, key + ".")
            continue
        if get_origin(hint) is not Annotated:
            raise TypeError(f"{tree.__name__}.{field.name} has no setting(...) beside its type")
        kind, meta = get_args(hint)
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        extra = meta.extra or {}
        yield Option(
            key=key,
            title=meta.title,
            help=meta.description,
            type="choice" if choices else _TYPE_NAMES[kind],
            default=field.default,
            choices=choices,
            minimum=meta.ge,
            maximum=meta.le,
            unit=extra.get("unit", ""),
            live=extra.get("live", False),
            layer=extra.get("layer", "") or tree.__name__,
            switched_by=extra.get("switched_by", ""),
        )


def option(key: str, tree: type[msgspec.Struct] | None = None) -> Option:
    """The setting called `key`; ConfigError when there is none, with the nearest name."""
    known = options(tree)
    for candidate in known:
        if candidate.key == key:
            return candidate
    import difflib

    near = difflib.get_close_matches(key, [o.key for o in known], n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(
        f"There is no setting called {key!r}{hint} `asrscope options` lists them all."
    )


def get(config: msgspec.Struct, key: str) -> Value:
    """The value of setting `key`."""
    option(key, type(config))
    node: Any = config
    for part in key.split("."):
        node = getattr(node, part)
    return node


def replace(config: Tree, key: str, value: Value) -> Tree:
    """A copy of `config` with setting `key` changed; ConfigError when the value does not fit."""
    return _replaced(config, key, _fitting(option(key, type(config)), value))


def assign(config: Tree, assignments: Mapping[str, Value]) -> Tree:
    """`config` with settings changed as a person asks for them on the command line.

    Choosing a setting that acts only under a switch (``gmm.selection.method``) turns the switch on,
    unless the switch itself is among the assignments.
    """
    for key, value in assignments.items():
        config = replace(config, key, value)
        switch = option(key, type(config)).switched_by
        if switch and switch not in assignments:
            config = replace(config, switch, value not in ("none", False))
    return config


def parse_assignment(
    text: str, tree: type[msgspec.Struct] | None = None, option_name: str = "--set"
) -> tuple[str, Value]:
    """Read ``key=value`` as written after `option_name`; ConfigError with one sentence otherwise."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ConfigError(
            f"{option_name} wants key=value, for example search.beam=13, and not {text!r}."
        )
    return key, _fitting(option(key, tree), value.strip())


_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}


def _fitting(target: Option, value: Value) -> Value:
    """`value`, perhaps given as text, as the setting's own type and within its bounds."""
    try:
        if target.type == "bool":
            fitted: Value = _WORDS[value.lower()] if isinstance(value, str) else value
            if not isinstance(fitted, bool):
                raise ValueError
        elif target.type == "choice":
            fitted = next(c for c in target.choices if str(c) == str(value))
        elif target.type == "int":
            if isinstance(value, bool) or (isinstance(value, float) and value != int(value)):
                raise ValueError
            fitted = int(value)
        elif target.type == "float":
            if isinstance(value, bool):
                raise ValueError
            fitted = float(value)
        else:
            fitted = str(value)
    except (KeyError, StopIteration, ValueError, OverflowError):
        raise ConfigError(f"{target.key} wants {_wanted(target)}, and not {value!r}.") from None
    if isinstance(fitted, int | float) and not isinstance(fitted, bool):
        low, high = target.minimum, target.maximum
        inside = (low is None or fitted >= low) and (high is None or fitted <= high)
        if not inside:
            raise ConfigError(f"{target.key} wants {_wanted(target)}, and not {value}.")
    return fitted


def _wanted(target: Option) -> str:
    if target.type == "bool":
        return "true or false"
    if target.type == "choice":
        names = [str(c) for c in target.choices]
        return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]
    if target.type == "text":
        return "a text"
    kind = "a whole number" if target.type == "int" else "a number"
    if target.minimum is not None and target.maximum is not None:
        return f"{kind} from {target.minimum:g} to {target.maximum:g}"
    return kind


def _replaced(config: Tree, key: str, value: Value) -> Tree:
    head, _, rest = key.partition(".")
    inner = _replaced(getattr(config, head), rest, value) if rest else value
    return msgspec.structs.replace(config, **{head: inner})


def to_dict(config: msgspec.Struct) -> dict[str, Any]:
    """The tree as nested plain values, for TOML, JSON and sessions."""
    return msgspec.to_builtins(config)


def from_dict(tree: Mapping[str, Any], where: str = "configuration") -> Config:
    """Build a configuration; settings left out keep their default. ConfigError names what is wrong."""
    config = Config()
    for key, value in flatten(tree):
        try:
            config = replace(config, key, value)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
    return config


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Value]]:
    """The leaves of a nested mapping as dotted keys and values."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
