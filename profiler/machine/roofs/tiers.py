"""Which kinds of roofs this machine has and why it lacks the others, by its last calibration: for `asrscope doctor`.

Nothing is measured here and torch is not started.
"""

from importlib import metadata
from typing import NamedTuple

from profiler.machine.roofs import calibration
from profiler.machine.roofs.calibration import Calibration
from profiler.machine.roofs.table import BANDWIDTH, NOMINAL_DTYPE, OVERHEAD, RATE, Roof, size_text
from profiler.machine.roofs.timing import is_steady

NOT_YET = "not measured yet: run `asrscope calibrate`"


class Tier(NamedTuple):
    """One kind of roof: whether it is available, and the figure or the reason."""

    name: str
    available: bool
    detail: str


def roof_tiers(known: Calibration | None = None) -> list[Tier]:
    """Return the tiers of roofs stored for this machine (or those in `known`)."""
    known = calibration.load(calibration.file()) if known is None else known
    roofs = list(known.roofs.values())
    tiers = [
        _tier("roofs: GEMM float32", _named(roofs, RATE, "gemm"), NOT_YET),
        *(_torch(known, roofs, dtype) for dtype in ("bfloat16", "float16", "int8")),
        _tier("roofs: exp and log", _named(roofs, RATE, "exp"), NOT_YET),
        _ladder(roofs),
        _tier("roofs: calls", _named(roofs, OVERHEAD, "numpy"), NOT_YET),
        _device(known, roofs),
    ]
    shaky = [roof for roof in roofs if roof.kind != OVERHEAD and not is_steady(roof)]
    if roofs:
        detail = f"{len(shaky)} of {len(roofs)} roofs disturbed by other programs"
        tiers.append(Tier("roofs: steadiness", not shaky, detail))
        refused = list(known.roof_table.refused.values())
        detail = refused[0] if refused else "those of several threads fit those of one"
        tiers.append(Tier("roofs: threads", not refused, detail))
    return tiers


def _named(roofs: list[Roof], kind: str, family: str, dtype: str = NOMINAL_DTYPE) -> list[Roof]:
    """The processor's roofs of a class, through any library."""
    mine = (r for r in roofs if r.kind == kind and "@" not in r.name and r.dtype in (dtype, ""))
    return [r for r in mine if r.name.partition(".")[0] == family]


def _tier(name: str, roofs: list[Roof], reason: str) -> Tier:
    if not roofs:
        return Tier(name, False, reason)
    if roofs[0].kind == OVERHEAD:
        return Tier(name, True, f"{min(r.median for r in roofs):.0f} ns through {roofs[0].name}")
    best = max(roofs, key=lambda r: r.median)
    count = f"{best.threads} thread{'s' if best.threads > 1 else ''}"
    return Tier(name, True, f"{best.median / 1e9:.4g} G{best.unit} with {count}")


def _torch(known: Calibration, roofs: list[Roof], dtype: str) -> Tier:
    reason = NOT_YET
    try:
        metadata.version("torch")
    except metadata.PackageNotFoundError:
        reason = "torch is not installed"
    for missing in known.missing:
        if missing.name == f"gemm.torch {dtype}" or missing.name.startswith("torch on"):
            reason = missing.reason
            break
    return _tier(f"roofs: GEMM {dtype}", _named(roofs, RATE, "gemm", dtype), reason)


def _ladder(roofs: list[Roof]) -> Tier:
    rungs = [r for r in roofs if (r.kind, r.name) == (BANDWIDTH, "read")]
    if not rungs:
        return Tier("roofs: bandwidth", False, NOT_YET)
    first, last = min(r.bytes for r in rungs), max(r.bytes for r in rungs)
    return Tier("roofs: bandwidth", True, f"ladder from {size_text(first)} to {size_text(last)}")


def _device(known: Calibration, roofs: list[Roof]) -> Tier:
    there = [roof for roof in roofs if "@" in roof.name]
    if there:
        kind = there[0].name.partition("@")[2]
        return Tier("roofs: device", True, f"{len(there)} roofs of {kind}")
    reasons = [missing.reason for missing in known.missing if missing.name == "device"]
    return Tier("roofs: device", False, reasons[0] if reasons else NOT_YET)
