"""Rules: whether the figures of a step prove its claim. They measure nothing, so that tests can plant figures.

A rule returns True, False with every reason, or None where this device cannot show it (`Result`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from profiler.device.clock import ClockMap, ClockPair
from profiler.device.time import LATENCY
from profiler.machine.roofs.table import RoofTable
from tests.bench.device_steps.result import Result

MOST_DRIFT_NS = 5_000
"""The largest error of a time that is interpolated between pairs 100 ms apart."""
LARGEST_RATE = 30e12
"""B/s; no device's memory is faster, so that such a figure is a mistake of the measurement."""
SAME_NAT = 0.05
"""Of log densities of some hundred nat: products are summed in another order there."""
NEAR = 0.15
"""How near events must come to the kernels' own times …"""
NEAR_NS = 2_000
"""… plus this much for each kernel between two of them."""
MOST_OVERHEAD = 0.03
"""Of the wall time, in each combination: time that no stage covers, and the recording of a device."""
SAME_COST_NAT = 1e-3
"""Of paths over some hundred frames: the last bits of costs that are summed in the same order."""
SEARCH_GOALS = {1: 250.0, 256: 20_000.0}
"""Times real time by utterances at once, of the search alone: Kaldi's CUDA decoder does 16 500 to 24 900 on a V100."""
DECODING_GOALS = {1: 200.0, 256: 10_000.0}
"""The same of scoring and search."""
MOST_STAMPS = 0.02
"""Of the search's time, that its stamps may take."""
LARGEST_SESSION = 2 << 20
"""Bytes of the session that is kept."""
MOST_REASONS = 6
"""That a sentence names."""


def identity(facts: dict[str, Any], accelerator: bool) -> Result:
    """Whether the device has a name, and multiplies float32 as float32."""
    if not accelerator:
        why = "the processor stands in: there is no device and no driver to name"
        return Result(None, why, facts)
    if not facts.get("name"):
        return Result(False, "torch does not name it", facts)
    if facts.get("products") != "highest":
        return Result(False, "float32 is not kept", facts)
    return Result(True, "named, and float32 is multiplied as float32", facts)


def tested(returned: int, out: str, err: str, device: str) -> Result:
    """The result of pytest. A test that is skipped on `device` proves nothing; on MPS some have to be."""
    summary = next((line for line in reversed(out.splitlines()) if " in " in line), "")
    numbers = re.findall(r"(\d+) (passed|failed|skipped|error)", summary)
    counts = {kind: int(number) for number, kind in numbers}
    skipped = re.findall(r"^SKIPPED \[\d+\] (.+)", out, re.MULTILINE)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", out, re.MULTILINE)
    if failed:
        return Result(False, f"these do not pass: {', '.join(failed)}", counts)
    if returned or not counts.get("passed"):
        words = (err.strip() or out.strip())[-300:]
        return Result(False, f"it ended with {returned}: {words}", counts)
    left_out = f"; skipped: {'; '.join(skipped)}" if skipped else ""
    proved = not skipped or device not in ("cuda", "xpu")
    return Result(proved, f"all {counts['passed']} that ran pass{left_out}", counts)


def races(result: Result, out: str) -> Result:
    """The races in the output of tests under torch's sanitizer, which were judged as `result`."""
    named = out.count("CSAN detected a possible data race")
    figures = {**result.figures, "races": named}
    if named:
        return Result(False, f"the sanitizer names {named} possible data races", figures)
    return Result(result.proved, result.why, figures)


def roofs(table: RoofTable, kind: str) -> Result:
    """Whether a machine can have such roofs; `kind` "cpu": the processor was measured in a device's place."""
    figures, doubts = plausible(table, kind)
    if doubts:
        return Result(False, "; ".join(doubts), figures)
    if kind == "cpu":
        why = "measured with the processor in the device's place, which shows the method and no device"
        return Result(None, why, figures)
    return Result(True, "products, memory and copies are such as a machine can have", figures)


def plausible(table: RoofTable, kind: str) -> tuple[dict[str, Any], list[str]]:
    """The main figures of a device's roofs, and those that cannot be, one phrase each."""
    doubts: list[str] = []
    gemm = {
        dtype: roof.median
        for dtype in ("float32", "tf32", "bfloat16", "float16")
        if (roof := table.rate(f"gemm.torch@{kind}", 1, dtype)) is not None
    }
    read = {roof.bytes: roof.median for roof in table.ladder("read", 1, kind)}
    figures: dict[str, Any] = {
        **{f"gemm {dtype} TFLOP/s": rate / 1e12 for dtype, rate in gemm.items()},
        **{f"read {size >> 10} KiB GB/s": rate / 1e9 for size, rate in read.items()},
    }
    for name in ("exp", "log", "fma"):
        rate = table.rate(f"{name}@{kind}")
        if rate is None:
            doubts.append(f"{name} has no roof")
        else:
            figures[f"{name} Gop/s"] = rate.median / 1e9
    if "float32" not in gemm:
        doubts.append("float32 products have no roof")
    elif kind == "cuda" and gemm.get("bfloat16", 0.0) < 0.8 * gemm["float32"]:
        doubts.append("products of bfloat16 are slower than those of float32")
    if len(read) < 3:
        doubts.append("the ladder of reading has fewer than three rungs")
    else:
        largest = max(read)
        if max(rate for size, rate in read.items() if size != largest) < 0.9 * read[largest]:
            doubts.append("no cache is as fast as the memory behind it")
        if max(read.values()) > LARGEST_RATE:
            doubts.append(f"reading at {max(read.values()) / 1e12:.0f} TB/s cannot be")
    launch = table.overhead_ns(f"launch@{kind}")
    if launch is None:
        doubts.append("a launch has no roof")
    else:
        figures["launch µs"] = launch / 1e3
    for end, memory in itertools.product(("to", "from"), ("pinned", "pageable")):
        rungs = table.ladder(f"{end}_device.{memory}", 1, kind)
        if rungs:
            figures[f"{end} device, {memory}, GB/s"] = max(r.median for r in rungs) / 1e9
    return figures, doubts


def clock(pairs: Sequence[ClockPair], seconds: float, host_time: bool, device: str) -> Result:
    """Whether each pair is interpolated well from its neighbours; at least three pairs, in order."""
    widths = [pair.uncertainty_ns for pair in pairs]
    away = []
    for before, here, after in zip(pairs, pairs[1:], pairs[2:], strict=False):
        neighbours = ClockMap()
        neighbours.add(before)
        neighbours.add(after)
        away.append(abs(neighbours.to_host(here.device_ns) - here.host_ns))
    first, last = pairs[0], pairs[-1]
    rate = (last.host_ns - first.host_ns) / max(last.device_ns - first.device_ns, 1)
    figures = {
        "seconds": seconds,
        "pairs": len(pairs),
        "uncertainty ns, median": median(widths),
        "uncertainty ns, most": max(widths),
        "estimated from the neighbours, ns off, median": median(away),
        "estimated from the neighbours, ns off, most": max(away),
        "drift ppm": (rate - 1) * 1e6,
    }
    if host_time:
        return Result(None, f"{device} is timed by the host's own clock: nothing can drift", figures)
    if median(away) > max(MOST_DRIFT_NS, 2 * median(widths)):
        return Result(False, "the clocks drift apart", figures)
    return Result(True, "times are estimated within the width of the readings", figures)


def memory(notices: Sequence[str], error: float, planted: bool) -> Result:
    """Whether scoring went on when memory was full: with the same scores, and a notice."""
    how = "a planted failure" if planted else "torch was given no more of the device's memory"
    figures = {"notice": list(notices[:1]), "largest difference, nat": error}
    if not notices:
        return Result(False, f"{how}: nothing was said of it", figures)
    # Not a number is no small difference.
    if not error < SAME_NAT:
        return Result(False, f"{how}: scores are {error:.2g} nat off", figures)
    return Result(True, f"{how}: scoring went on on the processor and said so", figures)


def combinations(rows: Sequence[Mapping[str, Any]], of: int, accelerator: bool) -> Result:
    """Every combination by itself: the words, the sums, the roofs, and how much no stage covers.

    A row: `combination`, `same words`, `exact` (words may not differ: 16 bits may decide between words that are as
    likely, 32 may not), `adds up`, `above its roof`, `overhead` (shares of the wall time by name). Time in which the
    host waits and the device runs nothing is the device's: reported, and no fault of ours.
    """
    wrong: list[str] = []
    for row in rows:
        reasons = []
        if row["exact"] and not row["same words"]:
            reasons.append("other words")
        if not row["adds up"]:
            reasons.append("categories do not add up")
        if row["above its roof"]:
            reasons.append(f"above its roof: {', '.join(row['above its roof'])}")
        own = _own(row["overhead"])
        if sum(own.values()) > MOST_OVERHEAD:
            parts = sorted(own.items(), key=lambda part: -part[1])
            listed = ", ".join(f"{share:.1%} {name}" for name, share in parts)
            reasons.append(f"{sum(own.values()):.1%} overhead ({listed})")
        wrong += [f"{row['combination']}: {reason}" for reason in reasons]
    most = max(sum(_own(row["overhead"]).values()) for row in rows)
    idle = max(row["overhead"].get(LATENCY, 0.0) for row in rows)
    figures = {"of": of, "taken": len(rows), "most overhead": most, "most latency": idle}
    figures["rows"] = list(rows)
    if wrong:
        beyond = len(wrong) - MOST_REASONS
        more = [f"and {beyond} more"] if beyond > 0 else []
        return Result(False, "; ".join([*wrong[:MOST_REASONS], *more]), figures)
    how = "all" if accelerator else "every two values together at least once: all"
    differ = sum(not row["same words"] for row in rows)
    same = f"hear the same but for {differ} in 16 bits" if differ else "hear the same"
    why = (
        f"{how} {len(rows)} combinations {same}, add up and stay below the roofs; at most {most:.1%} of a run is "
        f"overhead, beside up to {idle:.1%} in which the host waits and no stream runs anything"
    )
    return Result(True, why, figures)


def _own(shares: Mapping[str, float]) -> dict[str, float]:
    return {name: share for name, share in shares.items() if name != LATENCY}


def busy(rows: Sequence[Mapping[str, Any]], device: str) -> Result:
    """Whether events behind a gate last as long as the kernels between them, stage by stage."""
    figures = {"rows": list(rows)}
    if device != "cuda":
        why = f"{device} has no gate that keeps Python out of its events; its operations stand beside them"
        return Result(None, why, figures)
    off = [
        row["stage"]
        for row in rows
        if abs(row["events behind a gate, µs"] - row["kernels, µs"]) * 1e3
        > NEAR * row["kernels, µs"] * 1e3 + NEAR_NS * (row["kernels"] or 0)
    ]
    if off:
        return Result(False, f"events and kernels differ for {', '.join(off)}", figures)
    return Result(True, "events are the kernels' time", figures)


def graphs(figures: dict[str, Any], stages: int, can: bool, same: bool, notices: Sequence[str], device: str) -> Result:
    """Whether a block held as graphs is a launch a stage, with the same scores."""
    if not can:
        why = f"{device} cannot hold kernels as a graph: both ways are the same"
        return Result(None, why, figures)
    if figures["launches as graphs"] > stages:
        return Result(False, "kernels were not held as graphs: " + " ".join(notices), figures)
    if not same:
        return Result(False, "other scores from graphs", figures)
    return Result(True, "the same scores", figures)


def search(utterances: int, others: int, apart: int, figures: dict[str, Any]) -> Result:
    """Whether utterances have the words that each has alone (`others` do not) and on the processor (`apart`)."""
    if others or apart:
        why = f"{others} utterances have other words in company, and {apart} other ones than on the processor"
        return Result(False, why, figures)
    why = f"each of {utterances} utterances has the words that it has alone, and that the processor finds"
    return Result(True, why, figures)


def same_words(utterances: int, apart: int, furthest: float, figures: dict[str, Any]) -> Result:
    """Whether the CUDA search finds what the compiled search finds; `apart` utterances have other words."""
    if apart or not furthest <= SAME_COST_NAT:
        why = f"{apart} of {utterances} utterances have other words; costs are up to {furthest:.2g} nat off"
        return Result(False, why, figures)
    return Result(True, f"{utterances} utterances have the words and costs that the processor finds", figures)


def fast(rows: Sequence[Mapping[str, Any]], goals: Mapping[int, float], device: str) -> Result:
    """Whether each preset reaches the goals, times real time by utterances at once."""
    figures = {"rows": list(rows), "goals, × real time": dict(goals)}
    if device != "cuda":
        return Result(None, "a simulator says nothing of speed; every figure is there", figures)
    missed = [
        f"{row['preset']}, {row['at once']} at once: {row['× real time']:.0f} times real time, not {wanted:.0f}"
        for row in rows
        if "on" not in row and row["× real time"] < (wanted := goals.get(row["at once"], 0.0))
    ]
    if missed:
        return Result(False, "; ".join(missed), figures)
    return Result(True, "every preset is as fast as wanted", figures)


def stamps(ratios: Sequence[float], device: str) -> Result:
    """Whether stamps cost little: time with / time without, paired, ascending."""
    figures = {"time with / without": median(ratios), "least": ratios[0], "most": ratios[-1]}
    if device != "cuda":
        return Result(None, "a simulator says nothing of speed", figures)
    cost = median(ratios) - 1.0
    return Result(cost <= MOST_STAMPS, f"the stamps of the phases take {cost:.1%} of the search", figures)


def scoring(utterances: int, worst: float, rows: Sequence[Mapping[str, Any]]) -> Result:
    """Whether the scores of utterances in company are those of the processor, `worst` nat apart."""
    figures = {"rows": list(rows), "largest difference, nat": worst}
    if not worst < SAME_NAT:
        return Result(False, f"scores are {worst:.2g} nat off", figures)
    return Result(True, f"the scores of {utterances} utterances are those of the processor", figures)


def lab(tree: Mapping[str, Any], device: str) -> Result:
    """What the lab of scoring and search says (`asrscope lab --json`)."""
    row = tree["labs"][0]
    said = f"the lab says: {row['verdict']}. {row['why']}"
    return Result(True if device in ("cuda", "xpu", "mps") else None, said, dict(row))


def session(size: int, state: str, figures: dict[str, Any]) -> Result:
    """Whether there is a session, closed and small enough to be sent."""
    if size > LARGEST_SESSION or state != "closed":
        return Result(False, f"the session has {size} bytes and is {state}", figures)
    return Result(True, "a session is there", figures)
