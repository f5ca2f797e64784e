"""How much of a run's time nothing explains: the share not attributed of scoring and of search, by preset and block.

    python -m tests.bench.attribution
    python -m tests.bench.attribution --repeat 5 --json
    python -m tests.bench.attribution --load 4
    python -m tests.bench.attribution --repeat 5 --sessions FOLDER
    python -m tests.bench.attribution --ladder
    python -m tests.bench.attribution --sessions FOLDER --without calls

Every configuration decodes the labelled human speech beside the checkout N times with `asrscope run … --json`, in
turns, so that a busy minute is not all of one configuration's. Beside the middle of the shares stand what would make
them worth little: wide intervals, parts whose least figures are together more than the time, stages left undecided, and
verdicts that are not the same in nine runs of ten. Then how much of the time no stage has, how many replays the stages
rest on at least, and what hot replay adds at its default. With --load, so many other programs compute and read memory
meanwhile. With --ladder, the rungs of the ladder of nets take the place of the usual configurations, but for those that
are among these. With --sessions, what was recorded is kept in a folder, and what lies there is looked at again and not
run: so a change of the analysis is seen on the same runs. With --without, one ingredient of the attribution is left
out; one that changes no figure has not earned its place.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from app.model.report import report
from profiler.analysis.breakdown import breakdown
from profiler.analysis.categories import OVERHEAD
from profiler.analysis.replays import REPLAYED
from profiler.errors import BadInput
from profiler.session.reader import Session
from tests.bench import _data
from tests.bench._ablation import WITHOUT, without
from tests.bench._load import programs
from tests.bench._measured import Table, printed

Tree = Mapping[str, Any]


BLOCKS = (1, 16, 64)


class Runs(NamedTuple):
    """Settings of a run, and how often it decodes all files at each of BLOCKS: for 15 to 50 seconds.

    In it scoring and search are replayed sixteen times early, and then for a hundredth of the time.
    """

    settings: str
    passes: tuple[int, int, int] = (16, 48, 64)


CONFIGURATIONS: dict[str, Runs] = {
    "gmm": Runs("--preset gmm"),
    "gmm, top 4": Runs("--preset gmm --set gmm.selection.method=top-n --set gmm.selection.top_n=4"),
    "gmm-continuous": Runs("--preset gmm-continuous", (3, 18, 24)),
    "dnn": Runs("--preset dnn"),
    "dnn, int8": Runs("--preset dnn --set dnn.dtype=int8"),
}
LADDER: dict[str, Runs] = {
    "ladder, scalar": Runs("--preset ladder-1-scalar", (3, 3, 3)),
    "ladder, BLAS": Runs("--preset ladder-3-blas", (16, 24, 32)),
    "ladder, int8": Runs("--preset ladder-5-batch"),
    "ladder, lazy": Runs("--preset ladder-6-lazy"),
    "ladder, lazy in batches": Runs("--preset ladder-7-batched-lazy"),
}
"""The rungs of the ladder of nets: the second is the preset `dnn`, and the fourth the fifth at another block."""
GROUPS = ("scoring", "search")
LARGE = 0.03
"""Stages with a larger share of the wall time must have a verdict."""
UNDECIDED = "undecided"
STEADY = 0.9
"""Part of the runs in which a stage must have the same verdict."""
NOT_ATTRIBUTED = "not_attributed_s"
REPEAT = 3
ASIDE = "setup.replay"
"""The stage of what a run takes aside."""


def share(parts: Mapping[str, float]) -> float | None:
    """What of the time of some parts is not attributed, 0…1; None where there is no time."""
    time = sum(parts.values())
    return parts[NOT_ATTRIBUTED] / time if time else None


def large_stages(tree: Tree) -> list[Tree]:
    """The stages of scoring and search that take more than LARGE of the wall time."""
    return [
        stage
        for stage in tree["stages"]
        if stage["group"] in GROUPS and (stage["share"] or 0.0) > LARGE
    ]


def width(stage: Tree) -> float:
    """How far the least and the most of what is not attributed are apart, of the stage's time."""
    low, high = (stage[end][NOT_ATTRIBUTED] for end in ("parts_low", "parts_high"))
    return float(high - low) / float(stage["time_s"])


def over_explained(stage: Tree) -> bool:
    """Whether the least that its law allows is more than the time: the program flags it as a defect.

    The least ends of the parts cannot tell: they are taken back to what there was room for.
    """
    return stage["defect"] is not None


def added(session: Session) -> float:
    """What hot replay took beside the stages of a recorded run, of its wall time; 0 where it never came."""
    wall_ns = sum(utterance.wall_ns or 0 for utterance in session.utterances)
    of = [n for n, stage in session.stages.items() if stage.name.startswith((ASIDE, REPLAYED))]
    spans = session.spans[np.isin(session.spans["stage"], of)]
    return float(spans["duration_ns"].sum()) / wall_ns


def fewest_replays(session: Session) -> int:
    """How many replays the large stages rest on at least."""
    rows = [
        row
        for row in breakdown(session).stages
        if row.group in GROUPS and (row.share or 0.0) > LARGE
    ]
    return min((row.replays for row in rows), default=0)


def without_stage(tree: Tree) -> float:
    """The part of the wall time that no stage has, 0…1: the overhead but for what the run itself does in stages."""
    own = sum(stage["time_s"] for stage in tree["stages"] if stage["group"] == OVERHEAD)
    return float((tree["categories"]["overhead_s"] - own) / tree["wall_s"])


def figures(trees: Sequence[Tree]) -> dict[str, Any]:
    """What runs of one configuration say, each as `asrscope run --json` has it with what was `added` to it.

    BadInput where they have no parts.
    """
    if any(tree.get("parts") is None for tree in trees):
        raise BadInput("The bench needs the parts of the time, and asrscope run --json has none.")
    large = [large_stages(tree) for tree in trees]
    known = [[stage for stage in stages if stage.get("parts") is not None] for stages in large]
    every = [stage for stages in known for stage in stages]
    verdicts: dict[str, Counter[str]] = {}
    for stages in large:
        for stage in stages:
            verdicts.setdefault(stage["name"], Counter())[str(stage["verdict"])] += 1
    undecided = [stage["verdict"] in (None, UNDECIDED) for stages in large for stage in stages]
    return {
        **{group: _middle([share(tree["parts"][group]) for tree in trees]) for group in GROUPS},
        "widest": max(map(width, every), default=None),
        "widest_stage": max(every, key=width)["name"] if every else None,
        "over_explained": sum(any(map(over_explained, stages)) for stages in known),
        "defects": {
            stage["name"]: sorted(
                one["defect"] for one in every if one["name"] == stage["name"] and one["defect"]
            )
            for stage in every
            if over_explained(stage)
        },
        "runs": len(trees),
        "without_stage": median(map(without_stage, trees)),
        "added": median(tree["added"] for tree in trees),
        "replays": min(tree["replays"] for tree in trees),
        "large_stages": len(verdicts),
        "undecided": sum(undecided) / len(undecided) if undecided else None,
        "changing": sorted(
            name for name, said in verdicts.items() if max(said.values()) < STEADY * said.total()
        ),
        "verdicts": {name: dict(sorted(said.items())) for name, said in verdicts.items()},
    }


def _middle(shares: Sequence[float | None]) -> float | None:
    known = [one for one in shares if one is not None]
    return median(known) if known else None


def recorded(
    name: str, block: int, path: Path, paths: Sequence[str], left_out: str | None = None
) -> Tree:
    """What is said of a run of one configuration over the files `paths`, with what was `added` to it.

    Recorded to `path`; a session that is there already is looked at instead. `left_out`: of WITHOUT.
    """
    if not path.exists():
        settings, passes = (CONFIGURATIONS | LADDER)[name]
        # Under another name until it is whole, so that one that was cut short is not looked at for a run.
        part = path.with_stem(f"{path.stem}-part")
        part.unlink(missing_ok=True)
        command = (
            f"asrscope run {settings} --set block={block} --repeat {passes[BLOCKS.index(block)]} "
            "--out SESSION --json"
        )
        printed(command, {"SESSION": str(part)}, ["--audio", *paths])
        part.rename(path)
    with closing(Session.open(path)) as session, without(left_out):
        return {**report(session), "added": added(session), "replays": fewest_replays(session)}


def measure(
    repeat: int,
    load: int = 0,
    sessions: Path | None = None,
    configurations: Iterable[str] = tuple(CONFIGURATIONS),
    left_out: str | None = None,
) -> dict[str, Any]:
    """Run every one of the configurations at every block size so many times, in turns, beside `load` other programs.

    `sessions`: a folder that keeps what was recorded, see `recorded`.
    """
    paths = [str(item.path) for item in _data.human_speech()]
    places = [(name, block) for name in configurations for block in BLOCKS]
    trees: dict[tuple[str, int], list[Tree]] = {place: [] for place in places}
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as folder, programs(load):
        for turn in range(repeat):
            for name, block in places:
                sys.stderr.write(f"round {turn + 1} of {repeat}: {name}, block {block}\n")
                kept = name.replace(", ", "-").replace(" ", "-")
                path = (sessions or Path(folder)) / f"{kept}-{block}-load{load}-{turn + 1}.asrs"
                trees[name, block].append(recorded(name, block, path, paths, left_out))
                if sessions is None:
                    path.unlink()
                if turn == 0:
                    figures(trees[name, block])
    return {
        "schema": 1,
        "bench": "attribution",
        "files": len(paths),
        "load": load,
        "without": left_out,
        "rows": [
            {"configuration": name, "block": block, **figures(trees[name, block])}
            for name, block in places
        ],
    }


def table(tree: Tree) -> Table:
    """The result for a person."""
    return Table(
        (
            "configuration",
            "block",
            "scoring not attributed",
            "search not attributed",
            "widest interval",
            "over-explained runs",
            f"stages above {LARGE:.0%}: undecided",
            "no verdict in nine runs of ten",
            "in no stage",
            "replays at least",
            "hot replay adds",
        ),
        [
            (
                row["configuration"],
                row["block"],
                _percent(row["scoring"]),
                _percent(row["search"]),
                _widest(row),
                f"{row['over_explained']} of {row['runs']}" + _listed(row["defects"]),
                f"{_percent(row['undecided'])} of {row['large_stages']}",
                ", ".join(f"`{name}`" for name in row["changing"]) or "none",
                # Beside other programs the time in stages has theirs in it, and the time of categories has not.
                "–" if tree["load"] else f"{row['without_stage']:.1%}",
                row["replays"],
                f"{row['added']:.2%}",
            )
            for row in tree["rows"]
        ],
    )


def _widest(row: Tree) -> str:
    name = row["widest_stage"]
    return _percent(row["widest"]) + (f" (`{name}`)" if name else "")


def _listed(names: Iterable[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names)
    return f" ({listed})" if listed else ""


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.attribution",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--repeat", metavar="N", type=int, default=REPEAT, help="runs of each configuration"
    )
    parser.add_argument(
        "--load", metavar="N", type=int, default=0, help="other programs that run meanwhile"
    )
    parser.add_argument(
        "--sessions",
        metavar="FOLDER",
        type=Path,
        help="keep the sessions there, and look at those that are",
    )
    parser.add_argument("--ladder", action="store_true", help="run the rungs of the ladder of nets")
    parser.add_argument(
        "--without", choices=tuple(WITHOUT), help="leave an ingredient of the attribution out"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    try:
        if given.repeat < 1:
            raise BadInput(f"--repeat must be at least 1 run, not {given.repeat}.")
        if given.load < 0:
            raise BadInput(f"--load must be at least 0 programs, not {given.load}.")
        if given.sessions is not None and not given.sessions.is_dir():
            raise BadInput(
                f"--sessions must name a folder, and there is no folder {given.sessions}."
            )
        chosen = LADDER if given.ladder else CONFIGURATIONS
        tree = measure(given.repeat, given.load, given.sessions, tuple(chosen), given.without)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(tree, ensure_ascii=False) if given.json else table(tree).markdown(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
