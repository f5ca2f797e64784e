"""Results that sessions held before `sweep.SweepResult`, brought into that form.

Each lab had a struct of its own. `FORMS` says where its rounds were; its other fields go by their type. The input
comes from strangers: what does not fit raises ValueError, LookupError or msgspec.ValidationError, here or when the new
form is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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


@dataclass(frozen=True)
class Form:
    """Where an earlier result kept its rounds; `changed`: fields that are not converted by type."""

    timings: Reader
    more: Mapping[str, Reader] = field(default_factory=dict)
    changed: Callable[[Old], Mapping[str, object]] = lambda old: {}


def current(name: str, measured: Old, stored: type[msgspec.Struct]) -> Old:
    """The result of the lab `name` as a `stored`; unchanged where it is one, or where the lab never had another form.

    Fields of `stored` keep their names. Of the others numbers become counts, strings texts, and numbers by variant
    `by_variant`.
    """
    if "timings" in measured or name not in FORMS:
        return measured
    form, others = (
        FORMS[name],
        {k: v for k, v in measured.items() if k not in stored.__struct_fields__},
    )
    return {
        "timings": {"seconds": form.timings(measured)},
        "more": {name: {"seconds": read(measured)} for name, read in form.more.items()},
        "counts": {k: float(v) for k, v in others.items() if isinstance(v, int | float)},
        "texts": {k: v for k, v in others.items() if isinstance(v, str)},
        "by_variant": {k: v for k, v in others.items() if isinstance(v, dict) and _are_numbers(v)},
        **{k: v for k, v in measured.items() if k not in others},
        **form.changed(measured),
    }


def _are_numbers(values: Mapping[str, object]) -> bool:
    return all(isinstance(value, int | float) for value in values.values())


def _read(old: Old, name: str, kind: type[T]) -> T:
    return msgspec.convert(old[name], kind, str_keys=True)


def by_name(cell: Callable[[Old, str], tuple[str, int]], name: str = "seconds") -> Reader:
    """Rounds by a name that says variant and size."""

    def read(old: Old) -> Cells:
        cells: Cells = {}
        for text, rounds in _read(old, name, dict[str, Rounds]).items():
            variant, size = cell(old, text)
            cells.setdefault(variant, {})[size] = rounds
        return cells

    return read


def at_size(size: str | int, name: str = "seconds") -> Reader:
    """Rounds by variant, all of one size: a number, or that of a field."""
    return by_name(lambda old, text: (text, size if isinstance(size, int) else _read(old, size, int)), name)


def named(pattern: str) -> Reader:
    """Rounds by a name that has `variant` and `size` in it."""

    def cell(_: Old, text: str) -> tuple[str, int]:
        if (parts := re.fullmatch(pattern, text)) is None:
            raise ValueError(f"not the name of a variant: {text}")
        return parts["variant"], int(parts["size"])

    return by_name(cell)


def columns(sizes: str, rows: str | Mapping[str, str]) -> Reader:
    """Rounds in the order of the sizes: a field by variant, or {variant: field}. A variant may end early."""

    def read(old: Old) -> Cells:
        if isinstance(rows, str):
            found = _read(old, rows, dict[str, list[Rounds]])
        else:
            found = {variant: _read(old, name, list[Rounds]) for variant, name in rows.items()}
        known = _read(old, sizes, list[int])
        return {variant: dict(zip(known, each, strict=False)) for variant, each in found.items()}

    return read


def _clocks_cores(old: Old) -> Cells:
    names = ("clock", "one", "every", *(["device"] if old["device"] else []))
    return {name: {_read(old, "n", int): _read(old, name, Rounds)} for name in names}


def _cold(old: Old) -> Cells:
    return {v: {_read(old, "n", int): [seconds]} for v, seconds in _read(old, "cold", dict[str, float]).items()}


def _exp_cost(old: Old, text: str) -> tuple[str, int]:
    return text, _read(old, "items" if text.startswith("Python") else "elements", int)


def _scoring_free(old: Old) -> Cells:
    samples = round(16_000 * _read(old, "audio_s", float))
    return {
        f"{name}: {part}": {samples: rounds}
        for part in ("whole", "scoring", "free")
        for name, rounds in _read(old, part, dict[str, Rounds]).items()
    }


def _simd_int8(old: Old) -> Old:
    return {"counts": dict(zip(("outputs", "inputs"), _read(old, "shape", tuple[int, int]), strict=True))}


def _sparse(_: Old, text: str) -> tuple[str, int]:
    product, *kept, frames = text.split(", ")
    return f"{product}, {frames}", int(kept[0].partition("%")[0]) if kept else 100


def _vq_lookup(old: Old) -> Old:
    facts = {name: old[name] for name in ("error", "same_best", "bytes_read", "exps")}
    codewords = {f"{way} {size}": size for size in _read(old, "sizes", list[int]) for way in ("flat", "tree")}
    return {"by_variant": {"codewords": codewords, **facts}}


def _matrix_200(old: Old) -> Old:
    device = _read(old, "device", str)
    return {"texts": {"place": device}, "device": device if old["real"] else ""}


FORMS: Final[Mapping[str, Form]] = {
    "access-orders": Form(columns("sizes", "by_size"), {"strides": columns("strides", {"strided": "by_stride"})}),
    "bandwidth-ladder": Form(columns("sizes", {"one core": "one", "all cores": "all_cores"})),
    "batching": Form(named(r"(?P<variant>.+), (?P<size>\d+) frames")),
    "call-costs": Form(columns("sizes", "times"), changed=lambda old: {"device": old["device"] or ""}),
    "clocks-cores": Form(_clocks_cores, changed=lambda old: {"device": old["device_name"]}),
    "exp-cost": Form(by_name(_exp_cost)),
    "exp-share": Form(named(r"(?P<variant>.+) (?P<size>\d+)")),
    "gaussian-selection": Form(at_size("frames")),
    "gpu-scoring-search": Form(at_size("frames")),
    "lazy-outputs": Form(named(r"(?P<variant>.+), blocks of (?P<size>\d+)")),
    "low-rank": Form(at_size("frames")),
    "matrix-200": Form(columns("sizes", "by_size"), {"parts": at_size("n", "parts"), "cold": _cold}, _matrix_200),
    "matrix-orders": Form(
        at_size("n", "at_n"),
        {"sizes": columns("sizes", "by_size"), "blocks": columns("blocks", {"blocks": "by_block"})},
    ),
    "multi-frame": Form(at_size("frames")),
    "parameter-bytes": Form(
        named(r"(?P<variant>.+), (?P<size>\d+) senones"),
        changed=lambda old: {"counts": old["sizes"]},
    ),
    "scoring-free": Form(_scoring_free),
    "simd-int8": Form(at_size("frames", "rungs"), {"loops": at_size(1, "loops")}, _simd_int8),
    "sparse": Form(by_name(_sparse)),
    "teacher-student": Form(at_size("frames")),
    "vq-lookup": Form(at_size("frames"), changed=_vq_lookup),
}
"""By lab."""
