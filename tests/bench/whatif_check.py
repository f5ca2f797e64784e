"""Predictions of `asrscope whatif --check` and their outcomes, for typical changes.

    python -m tests.bench.whatif_check
    python -m tests.bench.whatif_check --repeat 3 --json

A round records one session of the labelled human speech with each preset; every change is then predicted from it and
run interleaved with the unchanged settings, and both ratios of wall times (changed / unchanged) are kept. The table
also has the stage that was predicted worst, of those that take more than some part of the time. Of several rounds it
shows the middle, and the range of the outcomes: where a program's data lie in memory differs from start to start, and
in some starts a layer of a net runs up to 15 % faster.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from profiler.errors import BadInput
from tests.bench import _data
from tests.bench._measured import Table, interval, known, printed
from tests.bench._rounds import command_line, print_measured

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
    """The JSON objects of `asrscope whatif … --check --json` for `change`; the ratio is that of the middle round."""
    in_order = sorted((tree["check"] for tree in trees), key=_difference)
    check = in_order[len(in_order) // 2]
    by_stage: dict[str, list[Tree]] = {}
    for tree in trees:
        for stage in _large(tree):
            by_stage.setdefault(stage["name"], []).append(stage)
    stages = [sorted(of_rounds, key=_ratio_off)[len(of_rounds) // 2] for of_rounds in by_stage.values()]
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
    return float(check["difference"] or 0.0)


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
    if repeat < 1:
        raise BadInput(f"--repeat must be at least 1 round, not {repeat}.")
    paths = [str(item.path) for item in _data.human_speech()]
    trees: dict[tuple[str, str], list[Tree]] = {}
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as folder:
        for number, (preset, changes) in product(range(repeat), CHANGES.items()):
            names = {"SESSION": str(Path(folder) / f"{preset}-{number}.asrs")}
            record = f"asrscope run --preset {preset} --set block=16 --out SESSION --json"
            printed(record, names, ["--audio", *paths])
            for change in changes:
                sys.stderr.write(f"round {number + 1} of {repeat}: {preset}, {change}\n")
                command = f"asrscope whatif SESSION --set {change} --check --json"
                trees.setdefault((preset, change), []).extend(printed(command, names))
    rows = [{"preset": preset, **figures(change, of)} for (preset, change), of in trees.items()]
    return {"schema": 1, "bench": "whatif_check", "files": len(paths), "repeat": repeat, "rows": rows}


def table(tree: Tree) -> Table:
    """The result for a person."""
    return Table.of(
        tree["rows"],
        ("preset", "preset"),
        ("change", lambda row: f"`{row['change']}`"),
        ("predicted", "predicted", ".3f"),
        ("measured (95 %)", lambda row: known(row["measured"], ".3f") + interval(row["ci95"], ".3f")),
        ("difference (all rounds)", _differences),
        ("worst stage: predicted · measured", _stage),
    )


def _differences(row: Tree) -> str | None:
    if row["difference"] is None:
        return None
    all_rounds = [one for one in row["differences"] if one is not None]
    ends = (all_rounds[0], all_rounds[-1]) if len(all_rounds) > 1 else None
    return f"{row['difference']:+.1%}" + interval(ends, "+.1%")


def _stage(row: Tree) -> str | None:
    stage = row["worst_stage"]
    return stage and f"`{stage['name']}`: {stage['predicted']:.2f} · {stage['ratio']:.2f}"


def main(arguments: list[str] | None = None) -> int:
    """Check and print."""
    parser = command_line("whatif_check", __doc__)
    parser.add_argument("--repeat", metavar="N", type=int, default=1, help="rounds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    markdown = None if given.json else lambda tree: table(tree).markdown()
    return print_measured(lambda: measure(given.repeat), markdown)


if __name__ == "__main__":
    sys.exit(main())
