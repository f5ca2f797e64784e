"""Does an A/B tell the truth? Known answers for `asrscope ab` and `compare`, on real decodes with real noise.

(i) A/A: the same configuration in both arms, so every "faster" is false; nominal level 5 %. (ii) Planted: in arm B one
stage really takes 5 % longer, for it waits busily before its kernel runs; the stage must be found, and no other one
blamed. Every try decodes in turn with both arms into a session file, which is then compared.

`python -m tests.bench.ab_validation --aa 200 --planted 50` takes 20 to 40 minutes and goes on where it was stopped:
tries are kept as JSON lines, by settings and by a digest of the statistics' source. `asrscope bench ab_validation` adds
`--repeat` tries of each kind to those kept and reports them all.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from app.cli.compare import FLOOR_FILE
from pipelines.config import Config, presets
from pipelines.experiments.ab import Arm, Interleaved
from pipelines.run import playlist
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser, build
from pipelines.scoring.blocks import Meter
from pipelines.scoring.strategy import never, quietly
from profiler.analysis.comparison import arms, compare, statistics
from profiler.clock import now_ns
from profiler.errors import BadInput
from profiler.files.paths import cache_dir
from profiler.machine import describe
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Lane, NullLane, Recorder
from tests.bench._rounds import LANE, Progress, command_line, digest_of, result, undisturbed

PRESET = "gmm-quick"
REPEATS = 10
SLOWDOWN = 0.05
STAGE = "score.mixture"
AA_FILES = ("04-kal16-numbers", "08-kal16-short")
"""5 s of the bundled voices; planted tries take all 62 s."""
AA, PLANTED = 200, 50
FALSE_ALLOWED, FOUND_WANTED = 0.10, 0.84  # 20 of 200, 42 of 50


class SlowMeter(Meter):
    """A meter that makes `stage` longer by the share SLOWDOWN, while `slow`.

    It waits before the stage's kernel runs, and after the stage before was closed: the effect of a wait on caches and
    on branch prediction falls on the stage itself. A wait behind the kernel slowed the next stage too.
    """

    def __init__(self, stage: str) -> None:
        super().__init__()
        self.stage = stage
        self.slow = False
        self._before = self._previous = ""
        self._since = self._waited = self._usual = 0
        self._lasted: deque[int] = deque(maxlen=15)

    def begin(self, first_frame: int, frames: int, lane: Lane | NullLane) -> None:
        super().begin(first_frame, frames, lane)
        self._pass("begin")

    def close(self, stage: str, work0: int = 0, work1: int = 0, work2: int = 0) -> None:
        """Close a stage's span."""
        super().close(stage, work0, work1, work2)
        if stage == self.stage:
            self._before = self._previous
            self._lasted.append(now_ns() - self._since - self._waited)
            # The median: a slow kernel would not repeat a preemption.
            self._usual = sorted(self._lasted)[len(self._lasted) // 2]
        self._pass(stage)

    def _pass(self, place: str) -> None:
        """Wait busily before the slow stage, for a share of its usual time."""
        self._previous, self._since = place, now_ns()
        # In both arms, so that they differ in nothing but the time waited.
        self._waited = round(self._usual * SLOWDOWN * self.slow) if place == self._before else 0
        while now_ns() < self._since + self._waited:
            pass


class SlowScorer:
    """A scorer for one arm: in arm B one stage is slow. Both arms have one, over the same scorer and meter."""

    def __init__(self, scorer: Any, meter: SlowMeter, slow: bool) -> None:
        self._scorer = scorer
        self._meter_of_both = meter
        self._slow = slow

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)

    def score(self, *arguments: Any) -> Any:
        self._meter_of_both.slow = self._slow
        return self._scorer.score(*arguments)


class Planted(Interleaved):
    """An A/B of which arm B has a slow stage."""

    def __init__(self, config: Config, arms: Sequence[Recogniser]) -> None:
        super().__init__(Arm(config, {}), Arm(config, {}), REPEATS)
        self._decoding = list(arms)

    def prepare(self, recogniser: Recogniser, build: Callable[[Config], Recogniser]) -> None:
        """Arm B gets the slow one."""
        self.recognisers = self._decoding


class Validation:
    """The tries of both kinds, kept in a file."""

    def __init__(self, results: Path, stage: str, keep: Path | None) -> None:
        self.stage = stage
        self._results = results
        self._keep = keep
        self._config = presets.load(PRESET).config
        self._digests = {kind: digest(stage, kind) for kind in ("aa", "planted")}
        self._recogniser: Recogniser | None = None
        self._meter = SlowMeter(stage)

    def tries(self) -> list[dict[str, Any]]:
        """The tries so far with these settings and statistics."""
        if not self._results.exists():
            return []
        kept = []
        for line in self._results.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # a line cut short when the last run was killed
                kept.append(json.loads(line))
        return [one for one in kept if one["digest"] == self._digests[one["kind"]]]

    def add(self, kind: str, number: int) -> dict[str, Any]:
        """Try once more and keep the outcome."""
        if self._recogniser is None:
            self._recogniser = build(self._config, Recorder(), LANE, quietly, never)
            self._recogniser.scorer._meter = self._meter
        items = playlist.build([], None).items
        if kind == "aa":
            items = [item for item in items if item.name in AA_FILES]
        plain = self._recogniser
        arms = [
            Recogniser(self._config, plain.frontend, SlowScorer(plain.scorer, self._meter, slow), plain.search)
            for slow in (False, kind == "planted")
        ]
        course = Planted(self._config, arms)
        folder = self._keep or cache_dir("bench")
        path = folder / (f"{kind}-{number:03}.asrs" if self._keep else "ab-validation.asrs")
        load, start = os.getloadavg()[0], time.time()
        compared = decode_and_compare(path, course, plain, items)
        one = outcome(compared) | {
            "kind": kind,
            "digest": self._digests[kind],
            "at": start,
            "seconds": time.time() - start,
            "load": load,
        }
        if not self._keep:
            path.unlink()
        with self._results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(one) + "\n")
        return one


def decode_and_compare(
    path: Path, course: Interleaved, recogniser: Recogniser, items: Sequence[Item]
) -> compare.Comparison:
    """Record one interleaved session and compare its arms."""
    recorder = Recorder()
    meta = {"preset": PRESET, "machine": describe.describe(), **course.about}
    journal = SessionWriter(path, recorder, meta, replace=True)
    try:
        course.prepare(recogniser, lambda config: recogniser)
        lane = recorder.lane("decode", decode=True)
        decoder = Decoder(recogniser, recorder, lane, journal, Control())
        with undisturbed():
            course.run(decoder, items, journal)
    finally:
        journal.close()
    with closing(Session.open(path)) as session:
        return compare.compare(session)


def outcome(compared: compare.Comparison) -> dict[str, Any]:
    """The kept part of a comparison."""

    def row(one: compare.StageRatio) -> dict[str, Any]:
        r = one.ratio
        return {
            "ratio": r.ratio,
            "ci95": [r.low, r.high],
            "p": r.p,
            "p_adjusted": one.p_adjusted,
            "verdict": one.verdict,
            "a_s": one.a_s,
            "b_s": one.b_s,
        }

    return {
        "overall": row(compared.overall),
        "stages": {stage.name: row(stage) for stage in compared.stages},
        "total_ratio": compared.total_ratio,
    }


def digest(stage: str, kind: str) -> str:
    """Of everything that must be the same for tries of a kind to be counted together."""
    sources = [Path(str(module.__file__)).read_bytes() for module in (statistics, arms, compare)]
    settings = json.dumps([PRESET, REPEATS, SLOWDOWN, stage, AA_FILES]).encode()
    if kind == "planted":
        sources += [inspect.getsource(one).encode() for one in (SlowMeter, SlowScorer)]
    return digest_of(b"\0".join([*sources, settings]))[:12]


def faster(row: dict[str, Any]) -> bool:
    return row["verdict"] in (compare.A_FASTER, compare.B_FASTER)


def added(row: dict[str, Any]) -> float:
    """Seconds that B takes more, where the verdict says that it is slower."""
    slower: bool = row["verdict"] == compare.A_FASTER
    return row["b_s"] - row["a_s"] if slower else 0.0


def report(tries: list[dict[str, Any]], stage: str) -> dict[str, Any]:
    """The result in the form of a bench."""
    aa = [t for t in tries if t["kind"] == "aa"]
    planted = [t for t in tries if t["kind"] == "planted"]
    found = [t for t in planted if t["stages"][stage]["verdict"] == compare.A_FASTER]
    blamed = {id(t): [n for n, r in t["stages"].items() if n != stage and faster(r)] for t in planted}
    attributed = [t for t in found if not blamed[id(t)]]
    most = [t for t in found if max(t["stages"], key=lambda n: added(t["stages"][n])) == stage]
    share = len(attributed) / len(planted) / FOUND_WANTED if planted else math.nan

    def quantiles(values: list[float]) -> list[float] | None:
        return [float(v) for v in np.quantile(values, (0.05, 0.5, 0.95))] if values else None

    def count(holds: Callable[[dict[str, Any]], bool]) -> int:
        return sum(map(holds, aa))

    agreement = {
        "A/A comparisons": len(aa),
        f"A/A saying that one arm is faster (at most {FALSE_ALLOWED:.0%})": count(lambda t: faster(t["overall"])),
        "A/A with 1 outside of the overall 95 % interval": count(lambda t: t["overall"]["p"] < compare.LEVEL),
        "A/A saying so of any stage (family-wise)": count(lambda t: any(faster(row) for row in t["stages"].values())),
        "A/A overall verdicts": {
            verdict: sum(t["overall"]["verdict"] == verdict for t in aa)
            for verdict in (compare.NO_DIFFERENCE, compare.UNDECIDED)
        },
        "planted tries": len(planted),
        "planted, found in the stage": len(found),
        "planted, found and it added the most time of all stages called slower": len(most),
        f"planted, found and no other stage blamed (at least {FOUND_WANTED:.0%})": len(attributed),
        "planted, blamed wrongly": sorted({n for names in blamed.values() for n in names}),
        "load average at the begin of a try, 5/50/95 %": quantiles([t["load"] for t in tries]),
    }
    ratios = {
        "A/A overall ratio": [t["overall"]["ratio"] for t in aa],
        f"A/A ratio of {stage}": [t["stages"][stage]["ratio"] for t in aa],
        f"planted ratio of {stage}": [t["stages"][stage]["ratio"] for t in planted],
        "planted overall ratio": [t["overall"]["ratio"] for t in planted],
    }
    return result(
        f"the truth: no difference in A/A, {SLOWDOWN:.0%} more in {stage}",
        [share],
        f"planted slowdowns found and attributed, as a share of the {FOUND_WANTED:.0%} wanted",
        agreement,
        [
            {"what": what, "q05": q[0], "median": q[1], "q95": q[2]}
            for what, values in ratios.items()
            if (q := quantiles(values))
        ],
    )


def store_floor(tries: list[dict[str, Any]]) -> None:
    """Keep the A/A floor for `asrscope compare`: the bound of 95 % of the A/A overall ratios."""
    apart = [abs(math.log(t["overall"]["ratio"])) for t in tries if t["kind"] == "aa"]
    if len(apart) < 20:
        return
    machine = describe.describe()
    stored = {
        "floor": math.expm1(float(np.quantile(apart, 0.95))),
        "comparisons": len(apart),
        "measured": time.time(),
        "machine": {key: machine.get(key) for key in ("host", "cpu")},
    }
    (cache_dir() / FLOOR_FILE).write_text(json.dumps(stored, indent=1), encoding="utf-8")


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    """Try `repeat` times more of each kind, and report all tries kept."""
    if paths or transcripts:
        raise BadInput("ab_validation decodes the bundled voices; it takes no --audio.")
    validation = Validation(cache_dir("bench") / "ab-validation.jsonl", STAGE, None)
    for kind in ("aa", "planted"):
        done = sum(t["kind"] == kind for t in validation.tries())
        for number in range(done, done + repeat):
            progress(f"{kind} {number + 1}", (number - done) / repeat)
            validation.add(kind, number)
    tries = validation.tries()
    store_floor(tries)
    return report(tries, STAGE)


def main(arguments: list[str] | None = None) -> int:
    """Try until there are as many as wanted, and print the report as JSON."""
    parser = command_line("ab_validation", __doc__)
    parser.add_argument("--aa", type=int, default=AA, help="A/A comparisons in all")
    parser.add_argument("--planted", type=int, default=PLANTED, help="planted slowdowns in all")
    parser.add_argument("--stage", default=STAGE, help="where to plant: a scoring stage")
    parser.add_argument("--results", type=Path, help="JSON lines of the tries; default: in the cache")
    parser.add_argument("--keep", type=Path, help="keep the sessions in this folder")
    given = parser.parse_args(arguments)
    results = given.results or cache_dir("bench") / "ab-validation.jsonl"
    validation = Validation(results, given.stage, given.keep)
    wanted = {"aa": given.aa, "planted": given.planted}
    done = {kind: sum(t["kind"] == kind for t in validation.tries()) for kind in wanted}
    # Both kinds in step, so that they see the same times of day.
    while left := [kind for kind in wanted if done[kind] < wanted[kind]]:
        kind = min(left, key=lambda k: done[k] / wanted[k])
        one = validation.add(kind, done[kind])
        done[kind] += 1
        row = one["overall"] if kind == "aa" else one["stages"][given.stage]
        sys.stderr.write(
            f"{kind} {done[kind]} of {wanted[kind]}: {row['ratio']:.4f} "
            f"({row['ci95'][0]:.4f}…{row['ci95'][1]:.4f}) {row['verdict']}, "
            f"{one['seconds']:.0f} s, load {one['load']:.1f}\n"
        )
        sys.stderr.flush()
    tries = validation.tries()
    store_floor(tries)
    print(json.dumps(report(tries, given.stage), indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
