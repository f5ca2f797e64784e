"""Predictions of `asrscope whatif --check` and their outcomes, for typical changes.

    python -m tests.bench.whatif_check --repeat 3

A round records one session of the labelled human speech with each preset; every change is then predicted from it and
run interleaved with the unchanged settings: ratios of wall times (changed / unchanged). The rows also have the stage
that was predicted worst. Of several rounds they show the middle, and the range of the outcomes: where a program's data
lie in memory differs from start to start, and in some starts a layer of a net runs up to 15 % faster.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench import corpus
from tests.bench._rounds import command_line, in_turns, printed, printing

Tree = Mapping[str, Any]
BLOCKS = tuple(f"block={block}" for block in (1, 2, 4, 8, 32, 64))  # the sessions are recorded at 16
CHANGES: dict[str, tuple[str, ...]] = {
    "gmm": (*BLOCKS, "frames.skip=2", "gmm.selection.enabled=true", "threads=2", "search.max_active=3500"),
    "dnn": (*BLOCKS, "dnn.dtype=int8", "threads=2"),
}
"""By preset; top-4 is what selection is unless a setting says otherwise, and 3 500 tokens half of the usual most."""
LARGE = 0.05  # stages with less of the time before the change say nothing about a prediction


def figures(change: str, trees: Sequence[Tree]) -> dict[str, Any]:
    """The JSON objects of `asrscope whatif … --check --json` for `change`; the ratio is that of the middle round."""
    in_order = sorted((tree["check"] for tree in trees), key=lambda check: check["difference"] or 0.0)
    check = in_order[len(in_order) // 2]
    worst: dict[str, list[tuple[float, str]]] = {}
    for tree in trees:
        before = {stage["name"]: stage["time_s"] / tree["wall_s"] for stage in tree["stages"]}
        for stage in tree["check"]["stages"]:
            if stage["predicted"] and stage["ratio"] and before.get(stage["name"], 0.0) > LARGE:
                said = f"{stage['name']}: {stage['predicted']:.2f} · {stage['ratio']:.2f}"
                worst.setdefault(stage["name"], []).append((stage["ratio"] / stage["predicted"] - 1.0, said))
    middle = [sorted(rounds)[len(rounds) // 2] for rounds in worst.values()]
    return {
        "change": change,
        "predicted": check["predicted_ratio"],
        "measured": check["ratio"],
        "ci95": check["ci95"],
        "difference": check["difference"],
        "differences": [one["difference"] for one in in_order],
        "worst_stage": max(middle, key=lambda stage: abs(stage[0]), default=(0.0, None))[1],
    }


def measure(repeat: int) -> dict[str, Any]:
    """Record a session of each preset and check every change on it, `repeat` times."""
    paths = [str(item.path) for item in corpus.human_speech()]
    trees: dict[tuple[str, str], list[Tree]] = {(p, change): [] for p, of in CHANGES.items() for change in of}
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as folder:
        for number, (preset, change) in in_turns(repeat, trees):
            session = Path(folder) / f"{preset}-{number}.asrs"
            if not session.exists():
                record = f"asrscope run --preset {preset} --set block=16 --out SESSION --json"
                printed(record, {"SESSION": session}, ["--audio", *paths])
            check = f"asrscope whatif SESSION --set {change} --check --json"
            trees[preset, change] += printed(check, {"SESSION": session})
    rows = [{"preset": preset, **figures(change, of)} for (preset, change), of in trees.items()]
    return {"schema": 1, "bench": "whatif_check", "files": len(paths), "repeat": repeat, "rows": rows}


if __name__ == "__main__":
    parser = command_line("whatif_check", __doc__)
    parser.add_argument("--repeat", metavar="N", type=int, default=1, help="rounds")
    sys.exit(printing(parser, lambda args: measure(args.repeat)))
