"""What `asrscope whatif --check` predicts and what comes of it, for the changes that a person would ask about.

    python -m tests.bench.whatif_check
    python -m tests.bench.whatif_check --json

One session of the labelled human speech is recorded with each preset; every change is then predicted from it and run
beside the unchanged settings in turns, and both ratios of wall times (changed / unchanged) are kept. The stage that was
predicted worst, of those that take more than some part of the time, stands beside the whole.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
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


def figures(change: str, tree: Tree) -> dict[str, Any]:
    """What one `asrscope whatif … --check --json` says of `change`."""
    check = tree["check"]
    before = {stage["name"]: stage["time_s"] / tree["wall_s"] for stage in tree["stages"]}
    known = [
        stage
        for stage in check["stages"]
        if stage["predicted"] and stage["ratio"] and before.get(stage["name"], 0.0) > LARGE
    ]
    return {
        "change": change,
        "predicted": check["predicted_ratio"],
        "measured": check["ratio"],
        "ci95": check["ci95"],
        "difference": check["difference"],
        "worst_stage": max(known, key=_off, default=None),
    }


def _off(stage: Tree) -> float:
    return abs(stage["ratio"] / stage["predicted"] - 1.0)


def measure() -> dict[str, Any]:
    """Record a session of each preset and check every change on it."""
    paths = [str(item.path) for item in _data.human_speech()]
    rows = []
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as folder:
        for preset, changes in CHANGES.items():
            names = {"SESSION": str(Path(folder) / f"{preset}.asrs")}
            record = f"asrscope run --preset {preset} --set block=16 --out SESSION --json"
            printed(record, names, ["--audio", *paths])
            for change in changes:
                sys.stderr.write(f"{preset}, {change}\n")
                command = f"asrscope whatif SESSION --set {change} --check --json"
                (tree,) = printed(command, names)
                rows.append({"preset": preset, **figures(change, tree)})
    return {"schema": 1, "bench": "whatif_check", "files": len(paths), "rows": rows}


def table(tree: Tree) -> Table:
    """The result for a person."""
    return Table(
        (
            "preset",
            "change",
            "predicted",
            "measured (95 %)",
            "difference",
            "worst stage: predicted · measured",
        ),
        [
            (
                row["preset"],
                f"`{row['change']}`",
                _ratio(row["predicted"]),
                _ratio(row["measured"]) + _interval(row["ci95"]),
                "–" if row["difference"] is None else f"{row['difference']:+.1%}",
                _stage(row["worst_stage"]),
            )
            for row in tree["rows"]
        ],
    )


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
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    try:
        tree = measure()
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(tree, ensure_ascii=False) if given.json else table(tree).markdown(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
