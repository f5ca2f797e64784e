"""Measure the best rates of computation and memory traffic of this machine: the roofs used for verdicts.

    asrscope calibrate
    asrscope calibrate --png ladder.png --theme light
    asrscope calibrate --fresh --threads 1 --json

Takes about a minute the first time; after that, only what is missing or was disturbed is measured again.
Do not use the machine for anything else meanwhile. Ctrl+C stops and keeps the previous results.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from app.cli import _output
from app.model.report import Tree
from profiler.errors import BadInput
from profiler.plain import counted

if TYPE_CHECKING:
    from profiler.machine.roofs.calibration import Calibration
    from profiler.machine.roofs.table import Roof

DTYPES = ("float32", "tf32", "bfloat16", "float16", "int8")  # In the order of the table


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    _output.json_flag(parser)
    parser.add_argument("--png", metavar="F", help="draw the ladder and the rates as a PNG")
    parser.add_argument("--theme", choices=("light", "dark"), default="dark")
    parser.add_argument(
        "--threads",
        metavar="N",
        type=_output.whole_number(0, 10**9),
        help="up to N threads (default: all usable cores)",
    )
    parser.add_argument("--fresh", action="store_true", help="measure everything again")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, draw."""
    from profiler.machine.describe import usable_cores

    cores = usable_cores() or 1
    if arguments.threads is not None and not 1 <= arguments.threads <= cores:
        raise BadInput(f"--threads must be 1 to {cores} on this machine, not {arguments.threads}.")
    if arguments.png and not arguments.png.lower().endswith(".png"):
        raise BadInput(f"--png must be a file that ends in .png, not {arguments.png!r}.")
    from pipelines.scoring import peaks
    from profiler.machine.roofs import calibration

    with _output.Progress() as progress:
        known = calibration.calibrate(arguments.threads, progress, fresh=arguments.fresh, kernels=peaks.everywhere())
    tree = as_json(known)
    if arguments.png:
        from app.pictures.calibration import calibration_picture

        calibration_picture(tree, arguments.png, theme=arguments.theme)
    if arguments.json:
        _output.print_json(tree)
    else:
        print(as_text(known))
        if arguments.png:
            print(f"\n{arguments.png}")
    return 0


def as_json(known: Calibration) -> Tree:
    """The JSON object of `calibrate`."""
    from profiler.machine.describe import describe

    rows = known.as_dict()["roofs"]
    return {
        "schema": 1,
        "machine": describe(),
        "roofs": rows,
        "measured_at": known.measured_at,
        "unavailable": [missing._asdict() for missing in known.missing],
    }


def as_text(known: Calibration) -> str:
    """The table as text: rates, calls, ladders with their plateaus, what is missing and why."""
    from profiler.machine.roofs.table import BANDWIDTH, LATENCY, OVERHEAD, RATE, size_text
    from profiler.machine.roofs.timing import is_steady

    roofs = list(known.roofs.values())
    lines = [f"{'rate':30} {'threads':>7} {'sustained':>16} {'best':>10} {'spread':>7}"]
    for roof in _of_kind(roofs, RATE):
        lines.append(
            f"{_title(roof):30} {roof.threads:7} {roof.median / 1e9:10.4g} Gop/s "
            f"{roof.high / 1e9:10.4g} {_spread(roof)}"
        )
    lines += ["", f"{'one call':30} {'':7} {'median':>16} {'least':>10}"]
    for roof in _of_kind(roofs, OVERHEAD):
        after = f" after {size_text(roof.bytes)}" if roof.bytes else ""
        lines.append(f"{roof.name + after:30} {'':7} {roof.median:13.4g} ns {roof.low:10.4g}")
    lines += ["", f"{'one scattered access':30} {'':7} {'median':>16} {'least':>10}"]
    for roof in sorted(_of_kind(roofs, LATENCY), key=lambda r: (r.name, r.bytes)):
        over = f"{roof.name} over {size_text(roof.bytes)}"
        lines.append(f"{over:30} {'':7} {roof.median:13.4g} ns {roof.low:10.4g}")
    ladders = sorted({(r.name, r.threads) for r in _of_kind(roofs, BANDWIDTH)}, key=_order)
    for name, threads in ladders:
        head, _, device = name.partition("@")
        rungs = known.roof_table.ladder(head, threads, device)
        lines += ["", *_ladder(name, threads, rungs)]
    if known.missing:
        lines += ["", "not available:"]
        lines += [f"  {missing.name}: {missing.reason}" for missing in known.missing]
    if known.measured_at is not None:
        when = datetime.fromtimestamp(known.measured_at).astimezone()
        lines += [
            "",
            f"Measured {when:%Y-%m-%d %H:%M}; stored for this machine and these libraries.",
        ]
    lines += [f"* {sentence}" for sentence in known.roof_table.refused.values()]
    shaky = sum(not is_steady(roof) for roof in roofs if roof.kind != OVERHEAD)
    if shaky:
        lines.append(
            f"* {shaky} figures were disturbed by other programs; `asrscope calibrate` takes them again "
            "from ten minutes on."
        )
    return _output.page(lines)


def _of_kind(roofs: Iterable[Roof], kind: str) -> list[Roof]:
    found = [roof for roof in roofs if roof.kind == kind]
    families = {r.name.partition(".")[0]: i for i, r in reversed(list(enumerate(found)))}
    return sorted(
        found,
        key=lambda r: (
            families[r.name.partition(".")[0]],
            DTYPES.index(r.dtype) if r.dtype in DTYPES else len(DTYPES),
            r.name,
            r.threads,
        ),
    )


def _title(roof: Roof) -> str:
    head, _, device = roof.name.partition("@")
    family, _, library = head.partition(".")
    parts = [family.upper() if family in ("gemm", "gemv") else family]
    if family == "gemm":
        parts.append(roof.dtype)
    if library:
        parts.append(f"({library})")
    if device:
        parts.append(f"on {device}")
    return " ".join(parts)


def _order(ladder: tuple[str, int]) -> tuple[int, str, int]:
    names = ("read", "write", "triad")
    return (names.index(ladder[0]) if ladder[0] in names else len(names), *ladder)


def _ladder(name: str, threads: int, rungs: Sequence[Roof]) -> list[str]:
    from profiler.machine.roofs.table import plateaus, size_text

    count = counted(threads, "thread", "threads")
    flat = plateaus(rungs)
    lines = [f"{name}, {count}: {'working set':>14} {'sustained':>13} {'best':>8} {'spread':>7}"]
    for rung in rungs:
        inside = next((p for p in flat if p.first_bytes <= rung.bytes <= p.last_bytes), None)
        mark = f"  {inside.rate / 1e9:.3g} GB/s over {inside.label}" if inside else ""
        # Shown once, next to the first rung of the plateau.
        mark = mark if inside and rung.bytes == inside.first_bytes else ""
        lines.append(
            f"{'':{len(name) + len(count) + 3}} {size_text(rung.bytes):>14} {rung.median / 1e9:8.4g} GB/s "
            f"{rung.high / 1e9:8.4g} {_spread(rung)}{mark}"
        )
    return lines


def _spread(roof: Roof) -> str:
    from profiler.machine.roofs.timing import is_steady

    return f"{roof.spread:6.1%}{' ' if is_steady(roof) else '*'}"
