"""How much of a run's time nothing explains: the share not attributed of scoring and of search, by preset and block.

    python -m tests.bench.attribution
    python -m tests.bench.attribution --repeat 5 --json
    python -m tests.bench.attribution --load 4
    python -m tests.bench.attribution --repeat 5 --sessions FOLDER
    python -m tests.bench.attribution --ladder
    python -m tests.bench.attribution --sessions FOLDER --without calls

Every configuration decodes the labelled human speech N times with `asrscope run … --json`, in turns, so that a busy
minute does not hit one configuration alone. Besides the median shares, the table has what would make them worth little:
wide intervals, stages whose law allows no less than more than the time, undecided stages, and verdicts that differ in
more than one run of ten; then the part of the time that no stage has, the least number of replays of a stage, and the
cost of hot replay at its default.

--load: this many other programs compute and read memory meanwhile. --ladder: the rungs of the ladder of nets instead of
the usual configurations, except for those that are among these. --sessions: sessions are kept in a folder, and those
that lie there are analysed instead of run, so that a change of the analysis is seen on the same runs. --without: one
ingredient of the attribution is left out; one that changes no figure is not worth its place.
"""

from __future__ import annotations

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
from tests.bench._measured import Table, known, printed
from tests.bench._rounds import command_line, print_measured

Tree = Mapping[str, Any]

BLOCKS = (1, 16, 64)


class Runs(NamedTuple):
    """Settings of a run, and how often it decodes all files at each of BLOCKS: for 15 to 50 seconds."""

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
"""The stage of the copies that a run keeps for replays."""


def share(parts: Mapping[str, float]) -> float | None:
    """The share of the time of parts that is not attributed, 0…1; None where there is no time."""
    time = sum(parts.values())
    return parts[NOT_ATTRIBUTED] / time if time else None


def large_stages(tree: Tree) -> list[Tree]:
    """The stages of scoring and search that take more than LARGE of the wall time."""
    return [stage for stage in tree["stages"] if stage["group"] in GROUPS and (stage["share"] or 0.0) > LARGE]


def width(stage: Tree) -> float:
    """Width of the interval of what is not attributed, as a share of the stage's time."""
    low, high = (stage[end][NOT_ATTRIBUTED] for end in ("parts_low", "parts_high"))
    return float(high - low) / float(stage["time_s"])


def over_explained(stage: Tree) -> bool:
    """Whether the least time that its law allows is more than the stage's: the program flags it as a defect."""
    return stage["defect"] is not None


def added(session: Session) -> float:
    """Time of hot replay outside the stages of a recorded run, as a share of its wall time."""
    wall_ns = sum(utterance.wall_ns or 0 for utterance in session.utterances)
    replays = [n for n, stage in session.stages.items() if stage.name.startswith((ASIDE, REPLAYED))]
    spans = session.spans[np.isin(session.spans["stage"], replays)]
    return float(spans["duration_ns"].sum()) / wall_ns


def fewest_replays(session: Session) -> int:
    """The least number of replays of a large stage."""
    rows = (row for row in breakdown(session).stages if row.group in GROUPS)
    return min((row.replays for row in rows if (row.share or 0.0) > LARGE), default=0)


def without_stage(tree: Tree) -> float:
    """The part of the wall time that no stage has, 0…1: the overhead less the run's own stages."""
    own = sum(stage["time_s"] for stage in tree["stages"] if stage["group"] == OVERHEAD)
    return float((tree["categories"]["overhead_s"] - own) / tree["wall_s"])


def figures(trees: Sequence[Tree]) -> dict[str, Any]:
    """Figures of the runs of one configuration (JSON of `asrscope run` with `added` and `replays`).

    BadInput where they have no parts.
    """
    if any(tree.get("parts") is None for tree in trees):
        raise BadInput("The bench needs the parts of the time, and asrscope run --json has none.")
    large = [large_stages(tree) for tree in trees]
    with_parts = [[one for one in stages if one.get("parts") is not None] for stages in large]
    every = [stage for stages in with_parts for stage in stages]
    verdicts: dict[str, Counter[str]] = {}
    for stages in large:
        for stage in stages:
            verdicts.setdefault(stage["name"], Counter())[str(stage["verdict"])] += 1
    undecided = [stage["verdict"] in (None, UNDECIDED) for stages in large for stage in stages]
    return {
        **{group: _middle([share(tree["parts"][group]) for tree in trees]) for group in GROUPS},
        "widest": max(map(width, every), default=None),
        "widest_stage": max(every, key=width)["name"] if every else None,
        "over_explained": sum(any(map(over_explained, stages)) for stages in with_parts),
        "defects": {
            stage["name"]: sorted(one["defect"] for one in every if one["name"] == stage["name"] and one["defect"])
            for stage in every
            if over_explained(stage)
        },
        "runs": len(trees),
        "without_stage": median(map(without_stage, trees)),
        "added": median(tree["added"] for tree in trees),
        "replays": min(tree["replays"] for tree in trees),
        "large_stages": len(verdicts),
        "undecided": sum(undecided) / len(undecided) if undecided else None,
        "changing": sorted(name for name, of in verdicts.items() if max(of.values()) < STEADY * of.total()),
        "verdicts": {name: dict(sorted(of.items())) for name, of in verdicts.items()},
    }


def _middle(shares: Sequence[float | None]) -> float | None:
    present = [one for one in shares if one is not None]
    return median(present) if present else None


def recorded(name: str, block: int, path: Path, paths: Sequence[str], left_out: str | None = None) -> Tree:
    """The report of a run of one configuration over the files `paths`, with `added` and `replays`.

    Recorded to `path`; a session that is there already is analysed instead. `left_out`: of WITHOUT.
    """
    if not path.exists():
        settings, passes = (CONFIGURATIONS | LADDER)[name]
        # Under another name until it is complete: a session that was cut short is no run.
        part = path.with_stem(f"{path.stem}-part")
        part.unlink(missing_ok=True)
        command = (
            f"asrscope run {settings} --set block={block} --repeat {passes[BLOCKS.index(block)]} --out SESSION --json"
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
    """Run every configuration at every block size `repeat` times, in turns, with `load` other programs.

    `sessions`: a folder that keeps the recordings, see `recorded`. BadInput for arguments out of range.
    """
    if repeat < 1:
        raise BadInput(f"--repeat must be at least 1 run, not {repeat}.")
    if load < 0:
        raise BadInput(f"--load must be at least 0 programs, not {load}.")
    if sessions is not None and not sessions.is_dir():
        raise BadInput(f"--sessions must name a folder, and there is no folder {sessions}.")
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
        "rows": [{"configuration": name, "block": block, **figures(trees[name, block])} for name, block in places],
    }


def table(tree: Tree) -> Table:
    """The result for a person."""
    return Table.of(
        tree["rows"],
        ("configuration", "configuration"),
        ("block", "block"),
        ("scoring not attributed", "scoring", ".0%"),
        ("search not attributed", "search", ".0%"),
        ("widest interval", _widest),
        ("over-explained runs", lambda row: f"{row['over_explained']} of {row['runs']}" + _listed(row["defects"])),
        (
            f"stages above {LARGE:.0%}: undecided",
            lambda row: f"{known(row['undecided'], '.0%')} of {row['large_stages']}",
        ),
        ("no verdict in nine runs of ten", lambda row: ", ".join(f"`{name}`" for name in row["changing"]) or "none"),
        # With other programs the time in stages contains theirs, and the time of categories does not.
        ("in no stage", lambda row: None if tree["load"] else row["without_stage"], ".1%"),
        ("replays at least", "replays"),
        ("hot replay adds", "added", ".2%"),
    )


def _widest(row: Tree) -> str:
    name = row["widest_stage"]
    return known(row["widest"], ".0%") + (f" (`{name}`)" if name else "")


def _listed(names: Iterable[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names)
    return f" ({listed})" if listed else ""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = command_line("attribution", __doc__)
    number = {"metavar": "N", "type": int}
    parser.add_argument("--repeat", **number, default=REPEAT, help="runs of each configuration")
    parser.add_argument("--load", **number, default=0, help="other programs that run meanwhile")
    parser.add_argument("--sessions", metavar="FOLDER", type=Path, help="keep sessions there, and analyse those")
    parser.add_argument("--ladder", action="store_true", help="run the rungs of the ladder of nets")
    parser.add_argument("--without", choices=tuple(WITHOUT), help="leave an ingredient of the attribution out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    chosen = tuple(LADDER if given.ladder else CONFIGURATIONS)
    markdown = None if given.json else lambda tree: table(tree).markdown()
    return print_measured(lambda: measure(given.repeat, given.load, given.sessions, chosen, given.without), markdown)


if __name__ == "__main__":
    sys.exit(main())
