"""Studies of a sweep with known figures, as `asrscope sweep` leaves them in their folder."""

import json
from pathlib import Path

from app.model.study import REPORT

Tree = dict[str, object]


def trial(number: int, ratio: float | None, wer: float | None, **more: object) -> Tree:
    """A trial of `search.beam` (7, 8 …) with a time ratio and word errors, failed where `ratio` is None."""
    made: Tree = {"id": number, "settings": {"search.beam": 7.0 + number}, "rtf_ratio": ratio, "wer": wer}
    made |= {"session": f"/elsewhere/beams/trials/{number}-1/trial.asrs", "host": "here"}
    if ratio is None:
        made |= {"state": "failed", "why": "The run failed on here: it crashed."}
        made |= dict.fromkeys(("rtf", "memory_bytes", "latency_s", "latency_ratio"))
    else:
        made |= {"state": "done", "why": None, "rtf": ratio / 10, "memory_bytes": 2e8 + number * 1e6}
        made |= {"latency_s": 0.16, "latency_ratio": 1.0}
    return made | more


def point(number: int, ratio: float | None = None, ends: tuple[float, float] | None = None, **more: object) -> Tree:
    """A point of the front, confirmed where it has a ratio."""
    known: Tree = {"trial": number, "rtf_ratio": ratio, "rtf_ratio_ci95": ends, "touches": [], "why": None}
    return known | more


def study(trials: list[Tree], front: list[Tree], **more: object) -> Tree:
    """The report of a sweep."""
    known: Tree = {
        "schema": 1,
        "study": "/elsewhere/beams",
        "objectives": ["rtf", "wer"],
        "constraints": [],
        "unfinished": 0,
        "trials": trials,
        "front": front,
        "importance": {},
        "command": ["--preset", "gmm-quick", "--over", "search.beam=7..10"],
        "complete": True,
    }
    return known | more


def four_trials(**more: object) -> Tree:
    """Trials 0, 1 and 3 are done, 2 failed; 0 and 1 are on the front, of which 1 is confirmed; 3 is dominated by 1."""
    trials = [trial(0, 0.5, 0.4), trial(1, 0.8, 0.1), trial(2, None, None), trial(3, 0.9, 0.2)]
    front = [point(0, why="The repeats were too few for an interval."), point(1, 0.75, (0.7, 0.82))]
    return study(trials, front) | more


def write_study(folder: Path, tree: Tree) -> Path:
    """The folder of a study with this report."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / REPORT).write_text(json.dumps(tree))
    return folder


SWEEP = """
import json, os, signal, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from made_study import point, study, trial, write_study
folder = Path(sys.argv[sys.argv.index("--out") + 1])
begun = len(list(folder.parent.glob("begun*")))
(folder.parent / f"begun{begun}").write_text(" ".join(sys.argv[2:]))
signal.signal(signal.SIGTERM, lambda *_: sys.exit("asrscope: stopped."))
trials = [trial(n, 0.5 + n / 10, 0.4 - n / 10) for n in range(begun + 1)]
write_study(folder, study(trials, [point(one["id"]) for one in trials], complete=begun > 0))
print(f"{begun + 1} of 2 trials done, about 3 min left 50%", file=sys.stderr, flush=True)
if begun == 0:
    time.sleep(600)
"""
"""A program that stands in for a sweep: its first start has one of two trials and waits, the next has both."""
