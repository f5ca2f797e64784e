"""Does an A/B tell the truth? Known answers for `asrscope ab` and `compare`, on real decodes with real noise.

(i) A/A: the same configuration in both arms, so every "faster" is false; nominal level 5 %. (ii) Planted: in arm B one
stage really takes 5 % longer, for it waits busily before its kernel runs; the stage must be found, and no other one
blamed. Every try decodes in turn with both arms into a session file, which is then compared.

`python -m tests.bench.ab_validation --aa 200 --planted 50` takes 20 to 40 minutes and goes on where it was stopped:
tries are kept as JSON lines in the cache, by settings and by a digest of the statistics' source. `asrscope bench
ab_validation` adds `--repeat` tries of each kind to those kept and reports them all.
"""

import inspect
import json
import math
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from statistics import median_low
from typing import Any

import numpy as np

from app.cli.compare import FLOOR_FILE
from pipelines.config import presets
from pipelines.experiments.ab import Arm, Interleaved
from pipelines.run import playlist
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
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
from tests.bench import _rounds
from tests.bench._rounds import LANE, Progress, Tree, command_line, printing, progress_lines, undisturbed

PRESET = "gmm-quick"
REPEATS = 10
SLOWDOWN = 0.05
STAGE = "score.mixture"
AA_FILES = ("04-kal16-numbers", "08-kal16-short")  # 5 s of the bundled voices; planted tries take all 62 s
AA, PLANTED = 200, 50
FALSE_ALLOWED, FOUND_WANTED = 0.10, 0.84  # 20 of 200, 42 of 50
FEWEST = 20  # A/A comparisons that make a floor
RESULTS = "ab-validation.jsonl"


class SlowMeter(Meter):
    """A meter that makes STAGE longer by the share SLOWDOWN, while `slow`. It waits before the stage's kernel runs, and
    after the stage before was closed: the effect of a wait on caches and on branch prediction falls on the stage
    itself. A wait behind the kernel slowed the next stage too."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = False
        self._before = self._previous = ""
        self._since = self._waited = self._usual = 0
        self._lasted: deque[int] = deque(maxlen=15)

    def begin(self, first_frame: int, frames: int, lane: Lane | NullLane) -> None:
        super().begin(first_frame, frames, lane)
        self._pass("begin")

    def close(self, stage: str, work0: int = 0, work1: int = 0, work2: int = 0) -> None:
        super().close(stage, work0, work1, work2)
        if stage == STAGE:
            self._before = self._previous
            self._lasted.append(now_ns() - self._since - self._waited)
            self._usual = median_low(self._lasted)  # a slow kernel would not repeat a preemption
        self._pass(stage)

    def _pass(self, place: str) -> None:
        """Wait busily before the slow stage, for a share of its usual time; in both arms, for no time in one."""
        self._previous, self._since = place, now_ns()
        self._waited = round(self._usual * SLOWDOWN * self.slow) if place == self._before else 0
        while now_ns() < self._since + self._waited:
            pass


class SlowScorer:
    """A scorer for one arm: in arm B one stage is slow. Both arms have one, over the same scorer and meter."""

    def __init__(self, scorer: Any, slow: bool) -> None:
        self._scorer, self._slow = scorer, slow

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)

    def score(self, *arguments: Any) -> Any:
        self._scorer._meter.slow = self._slow
        return self._scorer.score(*arguments)


@cache
def _recogniser() -> Recogniser:
    made = build(presets.load(PRESET).config, Recorder(), LANE, quietly, never)
    made.scorer._meter = SlowMeter()
    return made


def tries() -> list[Tree]:
    """The tries kept so far with these settings and statistics."""
    kept, results = [], cache_dir("bench") / RESULTS
    for line in results.read_text(encoding="utf-8").splitlines() if results.exists() else ():
        with suppress(ValueError):  # a line cut short when the last run was killed
            kept.append(json.loads(line))
    return [one for one in kept if one["digest"] == digest(one["kind"])]


def add(kind: str) -> Tree:
    items = [item for item in playlist.build([], None).items if kind != "aa" or item.name in AA_FILES]
    plain, recorder, load = _recogniser(), Recorder(), os.getloadavg()[0]
    config, path = plain.config, cache_dir("bench") / "ab-validation.asrs"
    course = Interleaved(Arm(config, {}), Arm(config, {}), REPEATS)
    course.recognisers = [
        Recogniser(config, plain.frontend, SlowScorer(plain.scorer, slow), plain.search)
        for slow in (False, kind == "planted")
    ]
    about = {"preset": PRESET, "machine": describe.describe(), **course.about}
    with closing(SessionWriter(path, recorder, about, replace=True)) as journal, undisturbed():
        course.run(Decoder(plain, recorder, recorder.lane("decode", decode=True), journal, Control()), items, journal)
    with closing(Session.open(path)) as session:
        compared = compare.compare(session)
    path.unlink()

    def row(one: compare.StageRatio) -> Tree:
        more = one.b_s - one.a_s if one.verdict == compare.A_FASTER else 0.0  # only where B is called slower
        return {"ratio": one.ratio.ratio, "p": one.ratio.p, "verdict": one.verdict, "more_s": more}

    stages = {stage.name: row(stage) for stage in compared.stages}
    one = {"kind": kind, "digest": digest(kind), "load": load, "overall": row(compared.overall), "stages": stages}
    with (cache_dir("bench") / RESULTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(one) + "\n")
    return one


def digest(kind: str) -> str:
    """Of everything that must be the same for tries of a kind to be counted together."""
    sources = [Path(str(module.__file__)).read_bytes() for module in (statistics, arms, compare)]
    settings = json.dumps([PRESET, REPEATS, SLOWDOWN, STAGE, AA_FILES]).encode()
    slow = [inspect.getsource(one).encode() for one in (SlowMeter, SlowScorer)] if kind == "planted" else []
    return _rounds.digest_of(b"\0".join([*sources, *slow, settings]))[:12]


def faster(row: Tree) -> bool:
    return row["verdict"] in (compare.A_FASTER, compare.B_FASTER)


def report(tries: list[Tree]) -> Tree:
    aa, planted = ([t for t in tries if t["kind"] == kind] for kind in ("aa", "planted"))
    found = [t for t in planted if t["stages"][STAGE]["verdict"] == compare.A_FASTER]
    blamed = {id(t): [n for n, r in t["stages"].items() if n != STAGE and faster(r)] for t in planted}
    alone = [t for t in found if not blamed[id(t)]]
    most = [t for t in found if max(t["stages"], key=lambda n: t["stages"][n]["more_s"]) == STAGE]
    share = len(alone) / len(planted) / FOUND_WANTED if planted else math.nan
    agreement = {
        "A/A comparisons": len(aa),
        f"A/A saying that one arm is faster (at most {FALSE_ALLOWED:.0%})": sum(faster(t["overall"]) for t in aa),
        "A/A with 1 outside of the overall 95 % interval": sum(t["overall"]["p"] < compare.LEVEL for t in aa),
        "A/A saying so of any stage (family-wise)": sum(any(map(faster, t["stages"].values())) for t in aa),
        "planted tries": len(planted),
        "planted, found in the stage": len(found),
        "planted, found and it added the most time of all stages called slower": len(most),
        f"planted, found and no other stage blamed (at least {FOUND_WANTED:.0%})": len(alone),
        "planted, blamed wrongly": sorted({n for names in blamed.values() for n in names}),
    }
    ratios = {
        "A/A overall ratio": [t["overall"]["ratio"] for t in aa],
        f"planted ratio of {STAGE}": [t["stages"][STAGE]["ratio"] for t in planted],
    }
    quantiles = {"q05": 0.05, "median": 0.5, "q95": 0.95}
    rows = [
        {"what": what, **{name: float(np.quantile(values, q)) for name, q in quantiles.items()}}
        for what, values in ratios.items()
        if values
    ]
    meaning = f"planted slowdowns found and attributed, as a share of the {FOUND_WANTED:.0%} wanted"
    return _rounds.result(
        f"the truth: no difference in A/A, {SLOWDOWN:.0%} more in {STAGE}", [share], meaning, agreement, rows
    )


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> Tree:
    """Try `repeat` times more of each kind, and report all tries kept."""
    if paths or transcripts:
        raise BadInput("ab_validation decodes the bundled voices; it takes no --audio.")
    done = Counter(one["kind"] for one in tries())
    return measure({kind: done[kind] + repeat for kind in ("aa", "planted")}, progress)


def measure(wanted: dict[str, int], progress: Progress) -> Tree:
    """Try until there are as many of each kind as wanted, both in step, so that they see the same times of day. Keeps
    the A/A floor for `asrscope compare`: the bound of 95 % of the A/A overall ratios."""
    done = Counter(one["kind"] for one in tries())
    while left := [kind for kind in wanted if done[kind] < wanted[kind]]:
        kind = min(left, key=lambda k: done[k] / wanted[k])
        one = add(kind)
        done[kind] += 1
        row = one["overall"] if kind == "aa" else one["stages"][STAGE]
        progress(f"{kind} {done[kind]} of {wanted[kind]}: {row['ratio']:.4f} {row['verdict']}", None)
    kept = tries()
    apart = [abs(math.log(t["overall"]["ratio"])) for t in kept if t["kind"] == "aa"]
    if len(apart) >= FEWEST:
        machine = describe.describe()
        stored = {
            "floor": math.expm1(float(np.quantile(apart, 0.95))),
            "comparisons": len(apart),
            "measured": time.time(),
            "machine": {key: machine.get(key) for key in ("host", "cpu")},
        }
        (cache_dir() / FLOOR_FILE).write_text(json.dumps(stored, indent=1), encoding="utf-8")
    return report(kept)


if __name__ == "__main__":
    parser = command_line("ab_validation", __doc__)
    parser.add_argument("--aa", type=int, default=AA, help="A/A comparisons in all")
    parser.add_argument("--planted", type=int, default=PLANTED, help="planted slowdowns in all")
    sys.exit(printing(parser, lambda args: measure({"aa": args.aa, "planted": args.planted}, progress_lines)))
