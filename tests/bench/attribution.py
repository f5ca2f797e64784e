"""How much of a run's time nothing explains: the share not attributed of scoring and of search, by preset and block.

    python -m tests.bench.attribution --repeat 5

Every configuration decodes the labelled human speech N times with `asrscope run … --json`, in turns. Besides the median
shares, the rows have what would make them worth little: wide intervals, stages whose law allows no less than more than
the time, undecided stages, and verdicts that differ in more than one run of ten; then the part of the time that no
stage has, the least number of replays of a stage, and the cost of hot replay at its default.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from app.model.report import report
from profiler.analysis.attribution import REPLAYED
from profiler.analysis.breakdown import breakdown
from profiler.analysis.categories import OVERHEAD
from profiler.errors import BadInput
from profiler.session.reader import Session
from tests.bench import corpus
from tests.bench._rounds import command_line, in_turns, printed, printing

Tree = Mapping[str, Any]
BLOCKS = (1, 16, 64)
OFTEN = (16, 48, 64)
CONFIGURATIONS: dict[str, tuple[str, tuple[int, int, int]]] = {
    "gmm": ("--preset gmm", OFTEN),
    "gmm, top 4": ("--preset gmm --set gmm.selection.method=top-n --set gmm.selection.top_n=4", OFTEN),
    "gmm-continuous": ("--preset gmm-continuous", (3, 18, 24)),
    "dnn": ("--preset dnn", OFTEN),
    "dnn, int8": ("--preset dnn --set dnn.dtype=int8", OFTEN),
}
"""Settings of a run, and how often it decodes all files at each of BLOCKS: for 15 to 50 seconds."""
GROUPS = ("scoring", "search")
LARGE = 0.03  # stages with a larger share of the wall time must have a verdict
STEADY = 0.9  # part of the runs in which a stage must have the same verdict
NOT_ATTRIBUTED = "not_attributed_s"
ASIDE = "setup.replay"  # the stage of the copies that a run keeps for replays


def width(stage: Tree) -> float:
    """Width of the interval of what is not attributed, as a share of the stage's time."""
    low, high = (stage[end][NOT_ATTRIBUTED] for end in ("parts_low", "parts_high"))
    return float(high - low) / float(stage["time_s"])


def figures(trees: Sequence[Tree]) -> dict[str, Any]:
    """Figures of the runs of one configuration (JSON of `asrscope run`, and more); BadInput without parts."""
    if any(tree.get("parts") is None for tree in trees):
        raise BadInput("The bench needs the parts of the time, and asrscope run --json has none.")
    large = [
        [stage for stage in tree["stages"] if stage["group"] in GROUPS and (stage["share"] or 0.0) > LARGE]
        for tree in trees
    ]
    every = [stage for stages in large for stage in stages]
    verdicts: dict[str, Counter[str]] = {}
    for stage in every:
        verdicts.setdefault(stage["name"], Counter())[str(stage["verdict"])] += 1
    widest = max((stage for stage in every if stage.get("parts") is not None), key=width, default={})
    parts = {group: [p for tree in trees if sum((p := tree["parts"][group]).values())] for group in GROUPS}
    # Of the wall time what no stage has: the overhead less the run's own stages.
    own = [sum(stage["time_s"] for stage in tree["stages"] if stage["group"] == OVERHEAD) for tree in trees]
    without = [
        (tree["categories"]["overhead_s"] - time) / tree["wall_s"] for tree, time in zip(trees, own, strict=True)
    ]
    undecided = [stage["verdict"] in (None, "undecided") for stage in every]
    return {
        **{
            group: median(p[NOT_ATTRIBUTED] / sum(p.values()) for p in of) if of else None
            for group, of in parts.items()
        },
        "widest": width(widest) if widest else None,
        "widest_stage": widest.get("name"),
        # More than its law allows: the program flags it as a defect.
        "over_explained": sum(any(stage["defect"] is not None for stage in stages) for stages in large),
        "runs": len(trees),
        "without_stage": median(without),
        "added": median(tree["added"] for tree in trees),
        "replays": min(tree["replays"] for tree in trees),
        "large_stages": len(verdicts),
        "undecided": sum(undecided) / len(undecided) if undecided else None,
        "changing": sorted(name for name, of in verdicts.items() if max(of.values()) < STEADY * of.total()),
        "verdicts": {name: dict(sorted(of.items())) for name, of in verdicts.items()},
    }


def recorded(name: str, block: int, path: Path, speech: Sequence[str]) -> Tree:
    """The report of a run of one configuration, with the cost of hot replay and the fewest replays of a large stage."""
    settings, passes = CONFIGURATIONS[name]
    often = passes[BLOCKS.index(block)]
    command = f"asrscope run {settings} --set block={block} --repeat {often} --out SESSION --json"
    printed(command, {"SESSION": path}, ["--audio", *speech])
    with closing(Session.open(path)) as session:
        wall_ns = sum(utterance.wall_ns or 0 for utterance in session.utterances)
        aside = [n for n, stage in session.stages.items() if stage.name.startswith((ASIDE, REPLAYED))]
        spent = session.spans["duration_ns"][np.isin(session.spans["stage"], aside)].sum()
        rows = [row for row in breakdown(session).stages if row.group in GROUPS and (row.share or 0.0) > LARGE]
        replays = min((row.replays for row in rows), default=0)
        return {**report(session), "added": float(spent) / wall_ns, "replays": replays}


def measure(repeat: int) -> dict[str, Any]:
    """Run every configuration at every block size `repeat` times, in turns."""
    speech = [str(item.path) for item in corpus.human_speech()]
    trees: dict[tuple[str, int], list[Tree]] = {case: [] for case in product(CONFIGURATIONS, BLOCKS)}
    for _, case in in_turns(repeat, trees):
        with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as folder:
            trees[case].append(recorded(*case, Path(folder) / "run.asrs", speech))
        figures(trees[case])  # refused at once where a run has no parts
    rows = [{"configuration": name, "block": block, **figures(of)} for (name, block), of in trees.items()]
    return {"schema": 1, "bench": "attribution", "files": len(speech), "rows": rows}


if __name__ == "__main__":
    parser = command_line("attribution", __doc__)
    parser.add_argument("--repeat", metavar="N", type=int, default=3, help="runs of each configuration")
    sys.exit(printing(parser, lambda args: measure(args.repeat)))
