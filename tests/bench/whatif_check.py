"""What `asrscope whatif --check` predicts and what comes of it, for the changes that a person would ask about.

    python -m tests.bench.whatif_check
    python -m tests.bench.whatif_check --repeat 3 --json

A round records one session of the labelled human speech with each preset; every change is then predicted from it and
run beside the unchanged settings in turns, and both ratios of wall times (changed / unchanged) are kept. The stage that
was predicted worst, of those that take more than some part of the time, stands beside the whole. Of several rounds the
table shows the middle, and between which ends the outcomes lay: where a program's data lie in memory differs from start
to start, and in some starts a layer of a net runs up to 15 % faster.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from profiler.errors import BadInput
from tests.bench import _data
from tests.bench._measured import Table, printed

Tree = Mapping[str, Any]

BLOCKS = (1, 2, 4, 8, 32, 64)
"""The sessions are recorded at 16."""
CHANGES: dict[str, tuple[str, ...]] = {
    "gmm": (
        *(f"block={block}" for block in BLOCKS),
        "frames.skip=2",
        "gmm.selection.enabled=true",
        "threads=2",
        "search.max_active=3500",
    ),
    "dnn": (*(f"block={block}" for block in BLOCKS), "dnn.dtype=int8", "threads=2"),
}
"""By preset; top-4 is what selection is unless a setting says otherwise, and 3 500 tokens half of the usual most."""
LARGE = 0.05
"""Stages with less of the time before the change say nothing about a prediction."""


def figures(change: str, trees: Sequence[Tree]) -> dict[str, Any]:
    """What `asrscope whatif … --check --json` says of `change` in some rounds; the whole is that of the middle one."""
    in_order = sorted((tree["check"] for tree in trees), key=_difference)
    check = in_order[len(in_order) // 2]
    by_stage: dict[str, list[Tree]] = {}
    for tree in trees:
        for stage in _large(tree):
            by_stage.setdefault(stage["name"], []).append(stage)
    stages = [
        sorted(of_rounds, key=_ratio_off)[len(of_rounds) // 2] for of_rounds in by_stage.values()
    ]
    return {
        "change": change,
        "predicted": check["predicted_ratio"],
        "measured": check["ratio"],
        "ci95": check["ci95"],
        "difference": check["difference"],
        "differences": [one["difference"] for one in in_order],
        "worst_stage": max(stages, key=lambda stage: abs(_ratio_off(stage)), default=None),
    }


def _difference(check: Tree) -> float:
    known: float | None = check["difference"]
    return 0.0 if known is None else known


def _large(tree: Tree) -> list[Tree]:
    before = {stage["name"]: stage["time_s"] / tree["wall_s"] for stage in tree["stages"]}
    return [
        stage
        for stage in tree["check"]["stages"]
        if stage["predicted"] and stage["ratio"] and before.get(stage["name"], 0.0) > LARGE
    ]


def _ratio_off(stage: Tree) -> float:
    return float(stage["ratio"] / stage["predicted"] - 1.0)


def measure(repeat: int) -> dict[str, Any]:
    """Record a session of each preset and check every change on it, `repeat` times."""
    paths = [str(item.path) for item in _data.human_speech()]
    found: dict[tuple[str, str], list[Tree]] = {}
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as folder:
        for number, (preset, changes) in product(range(repeat), CHANGES.items()):
            names = {"SESSION": str(Path(folder) / f"{preset}-{number}.asrs")}
            record = f"asrscope run --preset {preset} --set block=16 --out SESSION --json"
            printed(record, names, ["--audio", *paths])
            for change in changes:
                sys.stderr.write(f"round {number + 1} of {repeat}: {preset}, {change}\n")
                command = f"asrscope whatif SESSION --set {change} --check --json"
                found.setdefault((preset, change), []).extend(printed(command, names))
    rows = [{"preset": preset, **figures(change, of)} for (preset, change), of in found.items()]
    return {
        "schema": 1,
        "bench": "whatif_check",
        "files": len(paths),
        "repeat": repeat,
        "rows": rows,
    }


def table(tree: Tree) -> Table:
    """The result for a person."""
    return Table(
        (
            "preset",
            "change",
            "predicted",
            "measured (95 %)",
            "difference (all rounds)",
            "worst stage: predicted · measured",
        ),
        [
            (
                row["preset"],
                f"`{row['change']}`",
                _ratio(row["predicted"]),
                _ratio(row["measured"]) + _interval(row["ci95"]),
                _differences(row),
                _stage(row["worst_stage"]),
            )
            for row in tree["rows"]
        ],
    )


def _differences(row: Tree) -> str:
    if row["difference"] is None:
        return "–"
    known = [one for one in row["differences"] if one is not None]
    ends = f" ({known[0]:+.1%} to {known[-1]:+.1%})" if len(known) > 1 else ""
    return f"{row['difference']:+.1%}{ends}"


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(ends: list[float] | None) -> str:
    return "" if ends is None else f" ({ends[0]:.3f} to {ends[1]:.3f})"


def _stage(stage: Tree | None) -> str:
    if stage is None:
        return "–"
    return f"`{stage['name']}`: {stage['predicted']:.2f} · {stage['ratio']:.2f}"


def main(arguments: list[str] | None = None) -> int:
    """Check and print."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.whatif_check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeat", metavar="N", type=int, default=1, help="rounds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    try:
        if given.repeat < 1:
            raise BadInput(f"--repeat must be at least 1 round, not {given.repeat}.")
        tree = measure(given.repeat)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(tree, ensure_ascii=False) if given.json else table(tree).markdown(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
