"""Results of sweeps as sessions held them before `sweep.SweepResult`, brought into that form.

Every lab of this kind had a shape of its own. What is read here comes from strangers: what does
not fit raises ValueError, LookupError or msgspec.ValidationError, here or when the new form is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

Old = Mapping[str, object]
"""The JSON of a result in its earlier form."""

T = TypeVar("T")
Rounds = list[float]
Numbers = dict[str, float]

New = dict[str, object]
"""The JSON of a `SweepResult`, or of what a lab makes of it."""

Cells = dict[str, dict[int, Rounds]]
"""Rounds by variant and size: `Timings.seconds`."""


def current(name: str, measured: Mapping[str, object]) -> Mapping[str, object]:
    """The result of the lab `name` in the form of today; unchanged where it is, or where the lab has no other."""
    if "timings" in measured or name not in FORMS:
        return measured
    return FORMS[name](measured)


def _read(old: Old, name: str, kind: type[T]) -> T:
    """A value of this type."""
    return msgspec.convert(old[name], kind, str_keys=True)


def _rounds(old: Old, name: str = "seconds") -> dict[str, Rounds]:
    """Seconds by round and variant."""
    return _read(old, name, dict[str, Rounds])


def _count(old: Old, name: str) -> int:
    return _read(old, name, int)


def _timings(cells: Cells) -> New:
    return {"seconds": cells}


def _at(size: int, seconds: Mapping[str, Rounds]) -> New:
    """Variants that were taken at one size."""
    return _timings({variant: {size: rounds} for variant, rounds in seconds.items()})


def _split(seconds: Mapping[str, Rounds], pattern: str) -> New:
    """Rounds by a name with `variant` and `size` in it."""
    cells: Cells = {}
    for name, rounds in seconds.items():
        parts = re.fullmatch(pattern, name)
        if parts is None:
            raise ValueError(f"not the name of a variant: {name}")
        cells.setdefault(parts["variant"], {})[int(parts["size"])] = rounds
    return _timings(cells)


def _columns(old: Old, name: str, rows: Mapping[str, Sequence[Rounds]]) -> New:
    """Rounds in the order of the sizes called `name`; a variant may end before the largest."""
    sizes = _read(old, name, list[int])
    return _timings(
        {variant: dict(zip(sizes, each, strict=False)) for variant, each in rows.items()}
    )


def _batching(old: Old) -> New:
    timings = _split(_rounds(old), r"(?P<variant>.+), (?P<size>\d+) frames")
    return {"timings": timings, "texts": {"net": old["net"]}}


def _exp_cost(old: Old) -> New:
    cells: Cells = {
        name: {_count(old, "items" if name.startswith("Python") else "elements"): rounds}
        for name, rounds in _rounds(old).items()
    }
    return {"timings": _timings(cells)}


def _exp_share(old: Old) -> New:
    return {
        "timings": _split(_rounds(old), r"(?P<variant>.+) (?P<size>\d+)"),
        "counts": {"gaussians": old["gaussians"]},
        "texts": {"model": old["model"]},
    }


def _gaussian_selection(old: Old) -> New:
    facts = ("gaussians", "same_best", "error", "word_errors")
    return {
        "timings": _at(_count(old, "frames"), _rounds(old)),
        "counts": {"words": old["words"]},
        "by_variant": {fact: old[fact] for fact in facts},
    }


def _gpu_scoring_search(old: Old) -> New:
    return {
        "timings": _at(_count(old, "frames"), _rounds(old)),
        "counts": {"senones": old["senones"], "asked": old["asked"]},
        "texts": {"reason": old["reason"]},
        "device": old["device"],
    }


def _lazy_outputs(old: Old) -> New:
    timings = _split(_rounds(old), r"(?P<variant>.+), blocks of (?P<size>\d+)")
    return {"timings": timings} | {name: old[name] for name in ("outputs", "asked", "frames")}


def _low_rank(old: Old) -> New:
    same = {name: old[name] for name in ("decoded", "changed", "layers")}
    by_variant = {"weights": old["weights"]}
    return {"timings": _at(_count(old, "frames"), _rounds(old)), "by_variant": by_variant} | same


def _multi_frame(old: Old) -> New:
    return {"timings": _at(_count(old, "frames"), _rounds(old)), "decoded": old["decoded"]}


def _teacher_student(old: Old) -> New:
    return _multi_frame(old) | {"counts": {"bundled": float(_read(old, "bundled", bool))}}


def _vq_lookup(old: Old) -> New:
    facts = ("error", "same_best", "bytes_read", "exps")
    codewords = {
        f"{way} {size}": size for size in _read(old, "sizes", list[int]) for way in ("flat", "tree")
    }
    return {
        "timings": _at(_count(old, "frames"), _rounds(old)),
        "by_variant": {"codewords": codewords} | {fact: old[fact] for fact in facts},
    }


def _parameter_bytes(old: Old) -> New:
    pattern = r"(?P<variant>.+), (?P<size>\d+) senones"
    sizes = _read(old, "sizes", Numbers)
    return {
        "timings": _split(_rounds(old), pattern),
        "counts": {name: sizes[name] for name in ("gaussians", "dimensions")},
        "cache_bytes": old["cache_bytes"],
    }


def _scoring_free(old: Old) -> New:
    seconds = {
        f"{name}: {part}": rounds
        for part in ("whole", "scoring", "free")
        for name, rounds in _rounds(old, part).items()
    }
    return {"timings": _at(round(16_000 * _read(old, "audio_s", float)), seconds)}


def _simd_int8(old: Old) -> New:
    outputs, inputs = _read(old, "shape", tuple[int, int])
    return {
        "timings": _at(_count(old, "frames"), _rounds(old, "rungs")),
        "more": {"loops": _at(1, _rounds(old, "loops"))},
        "counts": {"outputs": outputs, "inputs": inputs},
        "by_variant": {"same_best": old["same_best"]},
    }


def _sparse(old: Old) -> New:
    cells: Cells = {}
    for name, rounds in _rounds(old).items():
        product, *kept, frames = name.split(", ")
        share = int(kept[0].partition("%")[0]) if kept else 100
        cells.setdefault(f"{product}, {frames}", {})[share] = rounds
    return {
        "timings": _timings(cells),
        "counts": {"words": old["words"], "small": old["small"]},
        "by_variant": {"word_errors": old["word_errors"]},
        "below": old["below"],
    }


def _access_orders(old: Old) -> New:
    strided = _columns(old, "strides", {"strided": _read(old, "by_stride", list[Rounds])})
    return {
        "timings": _columns(old, "sizes", _read(old, "by_size", dict[str, list[Rounds]])),
        "more": {"strides": strided},
        "cache_bytes": old["cache_bytes"],
    }


def _bandwidth_ladder(old: Old) -> New:
    columns = {"one core": "one", "all cores": "all_cores"}
    rows = {name: _read(old, column, list[Rounds]) for name, column in columns.items()}
    return {
        "timings": _columns(old, "sizes", rows),
        "counts": {"threads": old["threads"]},
        "cache_bytes": old["cache_bytes"],
    }


def _call_costs(old: Old) -> New:
    return {
        "timings": _columns(old, "sizes", _read(old, "times", dict[str, list[Rounds]])),
        "device": old["device"] or "",
    }


def _matrix_orders(old: Old) -> New:
    more = {
        "sizes": _columns(old, "sizes", _read(old, "by_size", dict[str, list[Rounds]])),
        "blocks": _columns(old, "blocks", {"blocks": _read(old, "by_block", list[Rounds])}),
    }
    return {
        "timings": _at(_count(old, "n"), _rounds(old, "at_n")),
        "more": more,
        "counts": {"block": old["block"]},
        "cache_bytes": old["cache_bytes"],
    }


def _clocks_cores(old: Old) -> New:
    names = ("clock", "one", "every", *(["device"] if old["device"] else []))
    seconds = {name: _read(old, name, Rounds) for name in names}
    return {
        "timings": _at(_count(old, "n"), seconds),
        "counts": {"cores": old["cores"], "cycles": old["cycles"]},
        "device": old["device_name"],
    }


def _matrix_200(old: Old) -> New:
    cold = {variant: [seconds] for variant, seconds in _read(old, "cold", Numbers).items()}
    n = _count(old, "n")
    return {
        "timings": _columns(old, "sizes", _read(old, "by_size", dict[str, list[Rounds]])),
        "more": {"parts": _at(n, _rounds(old, "parts")), "cold": _at(n, cold)},
        "counts": {"n": n},
        "texts": {"place": old["device"]},
        "device": old["device"] if old["real"] else "",
    }


FORMS: Final[Mapping[str, Callable[[Old], New]]] = {
    "access-orders": _access_orders,
    "bandwidth-ladder": _bandwidth_ladder,
    "batching": _batching,
    "call-costs": _call_costs,
    "clocks-cores": _clocks_cores,
    "exp-cost": _exp_cost,
    "exp-share": _exp_share,
    "gaussian-selection": _gaussian_selection,
    "gpu-scoring-search": _gpu_scoring_search,
    "lazy-outputs": _lazy_outputs,
    "low-rank": _low_rank,
    "matrix-200": _matrix_200,
    "matrix-orders": _matrix_orders,
    "multi-frame": _multi_frame,
    "parameter-bytes": _parameter_bytes,
    "scoring-free": _scoring_free,
    "simd-int8": _simd_int8,
    "sparse": _sparse,
    "teacher-student": _teacher_student,
    "vq-lookup": _vq_lookup,
}
"""By lab."""
