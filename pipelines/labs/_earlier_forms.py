"""Results of sweeps as sessions held them before `sweep.SweepResult`, brought into that form.

Every lab of this kind had a shape of its own: `FORMS` says of each where its rounds and its other values were. What is
read here comes from strangers: what does not fit raises ValueError, LookupError or msgspec.ValidationError, here or
when the new form is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

Old = Mapping[str, object]
"""The JSON of a result in its earlier form."""

T = TypeVar("T")
Rounds = list[float]
Cells = dict[str, dict[int, Rounds]]
"""Rounds by variant and size: `Timings.seconds`."""

Reader = Callable[[Old], Cells]


def current(name: str, measured: Mapping[str, object]) -> Mapping[str, object]:
    """The result of the lab `name` in the form of today; unchanged where it is, or where the lab has no other."""
    if "timings" in measured or name not in FORMS:
        return measured
    return FORMS[name].current(measured)


@dataclass(frozen=True)
class Form:
    """Where an earlier result had what a `SweepResult` has, by the names of its fields; `kept`: under the same name.

    `facts`: of `by_variant`. `changed`: fields that are made otherwise. What each cache holds is kept.
    """

    timings: Reader
    more: Mapping[str, Reader] = field(default_factory=dict)
    counts: Sequence[str] = ()
    texts: Sequence[str] = ()
    facts: Sequence[str] = ()
    kept: Sequence[str] = ()
    changed: Callable[[Old], Mapping[str, object]] = lambda old: {}

    def current(self, old: Old) -> Mapping[str, object]:
        """The JSON of the form of today."""
        caches = ["cache_bytes"] if "cache_bytes" in old else []
        return {
            "timings": {"seconds": self.timings(old)},
            "more": {name: {"seconds": read(old)} for name, read in self.more.items()},
            "counts": {name: old[name] for name in self.counts},
            "texts": {name: old[name] for name in self.texts},
            "by_variant": {name: old[name] for name in self.facts},
            **{name: old[name] for name in (*self.kept, *caches)},
            **self.changed(old),
        }


def _read(old: Old, name: str, kind: type[T]) -> T:
    """A value of this type."""
    return msgspec.convert(old[name], kind, str_keys=True)


def _rounds(old: Old, name: str = "seconds") -> dict[str, Rounds]:
    """Seconds by round and variant."""
    return _read(old, name, dict[str, Rounds])


def at(size: str | int, name: str = "seconds") -> Reader:
    """Variants that were taken at one size, a number or that of a field."""

    def read(old: Old) -> Cells:
        one = size if isinstance(size, int) else _read(old, size, int)
        return {variant: {one: rounds} for variant, rounds in _rounds(old, name).items()}

    return read


def named(pattern: str) -> Reader:
    """Rounds by a name that has `variant` and `size` in it."""

    def read(old: Old) -> Cells:
        cells: Cells = {}
        for name, rounds in _rounds(old).items():
            parts = re.fullmatch(pattern, name)
            if parts is None:
                raise ValueError(f"not the name of a variant: {name}")
            cells.setdefault(parts["variant"], {})[int(parts["size"])] = rounds
        return cells

    return read


def columns(sizes: str, name: str) -> Reader:
    """Rounds by variant in the order of the sizes; a variant may end before the largest."""

    def read(old: Old) -> Cells:
        rows = _read(old, name, dict[str, list[Rounds]])
        return {variant: _by_size(old, sizes, each) for variant, each in rows.items()}

    return read


def fields(sizes: str, names: Mapping[str, str]) -> Reader:
    """A field of rounds in the order of the sizes for each variant: {variant: field}."""
    return lambda old: {
        variant: _by_size(old, sizes, _read(old, name, list[Rounds]))
        for variant, name in names.items()
    }


def _by_size(old: Old, sizes: str, rows: Sequence[Rounds]) -> dict[int, Rounds]:
    return dict(zip(_read(old, sizes, list[int]), rows, strict=False))


def _clocks_cores(old: Old) -> Cells:
    names = ("clock", "one", "every", *(["device"] if old["device"] else []))
    return {name: {_read(old, "n", int): _read(old, name, Rounds)} for name in names}


def _cold(old: Old) -> Cells:
    n, first = _read(old, "n", int), _read(old, "cold", dict[str, float])
    return {variant: {n: [seconds]} for variant, seconds in first.items()}


def _exp_cost(old: Old) -> Cells:
    return {
        name: {_read(old, "items" if name.startswith("Python") else "elements", int): rounds}
        for name, rounds in _rounds(old).items()
    }


def _scoring_free(old: Old) -> Cells:
    samples = round(16_000 * _read(old, "audio_s", float))
    return {
        f"{name}: {part}": {samples: rounds}
        for part in ("whole", "scoring", "free")
        for name, rounds in _rounds(old, part).items()
    }


def _simd_int8(old: Old) -> Mapping[str, object]:
    outputs, inputs = _read(old, "shape", tuple[int, int])
    return {"counts": {"outputs": outputs, "inputs": inputs}}


def _sparse(old: Old) -> Cells:
    cells: Cells = {}
    for name, rounds in _rounds(old).items():
        product, *kept, frames = name.split(", ")
        share = int(kept[0].partition("%")[0]) if kept else 100
        cells.setdefault(f"{product}, {frames}", {})[share] = rounds
    return cells


def _vq_lookup(old: Old) -> Mapping[str, object]:
    sizes = _read(old, "sizes", list[int])
    facts = {name: old[name] for name in ("error", "same_best", "bytes_read", "exps")}
    codewords = {f"{way} {size}": size for size in sizes for way in ("flat", "tree")}
    return {"by_variant": {"codewords": codewords, **facts}}


def _parameter_bytes(old: Old) -> Mapping[str, object]:
    sizes = _read(old, "sizes", dict[str, float])
    return {"counts": {name: sizes[name] for name in ("gaussians", "dimensions")}}


def _matrix_200(old: Old) -> Mapping[str, object]:
    device = _read(old, "device", str)
    return {"texts": {"place": device}, "device": device if old["real"] else ""}


FORMS: Final[Mapping[str, Form]] = {
    "access-orders": Form(
        columns("sizes", "by_size"), more={"strides": fields("strides", {"strided": "by_stride"})}
    ),
    "bandwidth-ladder": Form(
        fields("sizes", {"one core": "one", "all cores": "all_cores"}), counts=["threads"]
    ),
    "batching": Form(named(r"(?P<variant>.+), (?P<size>\d+) frames"), texts=["net"]),
    "call-costs": Form(
        columns("sizes", "times"), changed=lambda old: {"device": old["device"] or ""}
    ),
    "clocks-cores": Form(
        _clocks_cores,
        counts=["cores", "cycles"],
        changed=lambda old: {"device": old["device_name"]},
    ),
    "exp-cost": Form(_exp_cost),
    "exp-share": Form(
        named(r"(?P<variant>.+) (?P<size>\d+)"), counts=["gaussians"], texts=["model"]
    ),
    "gaussian-selection": Form(
        at("frames"), counts=["words"], facts=["gaussians", "same_best", "error", "word_errors"]
    ),
    "gpu-scoring-search": Form(
        at("frames"), counts=["senones", "asked"], texts=["reason"], kept=["device"]
    ),
    "lazy-outputs": Form(
        named(r"(?P<variant>.+), blocks of (?P<size>\d+)"), kept=["outputs", "asked", "frames"]
    ),
    "low-rank": Form(at("frames"), facts=["weights"], kept=["decoded", "changed", "layers"]),
    "matrix-200": Form(
        columns("sizes", "by_size"),
        more={"parts": at("n", "parts"), "cold": _cold},
        counts=["n"],
        changed=_matrix_200,
    ),
    "matrix-orders": Form(
        at("n", "at_n"),
        more={
            "sizes": columns("sizes", "by_size"),
            "blocks": fields("blocks", {"blocks": "by_block"}),
        },
        counts=["block"],
    ),
    "multi-frame": Form(at("frames"), kept=["decoded"]),
    "parameter-bytes": Form(
        named(r"(?P<variant>.+), (?P<size>\d+) senones"), changed=_parameter_bytes
    ),
    "scoring-free": Form(_scoring_free),
    "simd-int8": Form(
        at("frames", "rungs"),
        more={"loops": at(1, "loops")},
        facts=["same_best"],
        changed=_simd_int8,
    ),
    "sparse": Form(_sparse, counts=["words", "small"], facts=["word_errors"], kept=["below"]),
    "teacher-student": Form(
        at("frames"),
        kept=["decoded"],
        changed=lambda old: {"counts": {"bundled": float(_read(old, "bundled", bool))}},
    ),
    "vq-lookup": Form(at("frames"), changed=_vq_lookup),
}
"""By lab."""
