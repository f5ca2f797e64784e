"""Steps that are whole runs: every combination of model, number type, moves and search; and a session to keep."""

import itertools
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipelines import config as settings
from pipelines.availability import SEARCH_OBSTACLES
from pipelines.config import Config, presets
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from profiler.analysis.breakdown import breakdown
from profiler.device.time import EVENTS, LATENCY
from profiler.process import children
from profiler.session.reader import Session
from tests.bench.device_steps.result import Result, Task, verdict

PRESETS = {"ptm": "gmm", "continuous": "gmm-continuous", "dnn": "dnn"}
FACTORS: dict[str, dict[str, dict[str, Any]]] = {
    "model": {name: {} for name in PRESETS},
    "number": {dtype: {"placement.dtype": dtype} for dtype in ("fp32", "bf16")},
    "moves": {each: {"placement.transfer": each} for each in ("block", "frame")},
    "copies": {
        "pinned": {"placement.pinned": True},
        "pageable": {"placement.pinned": False},
        "overlapped": {"placement.overlapped": True},
    },
    "search": {"cpu": {}, "device": {}},
}
SMALL: dict[str, Any] = {"graph.vocabulary": 1000, "graph.bigrams": 50_000, "search.beam": 10.0}
ROUNDING = 1e-6
MOST_OVERHEAD = 0.03  # Of the wall time, in each combination: time that no stage covers, and the recording of a device
MOST_REASONS = 6  # that a sentence names
LARGEST = 2 << 20  # bytes of the session that is kept
Choice = dict[str, str]


def every() -> list[Choice]:
    return [dict(zip(FACTORS, values, strict=True)) for values in itertools.product(*FACTORS.values())]


def pairwise(choices: Iterable[Choice]) -> list[Choice]:
    """Some of `choices` in which every two values that occur together do so at least once."""
    pairs = [(choice, set(itertools.combinations(sorted(choice.items()), 2))) for choice in choices]
    left, some = set().union(*(of for _, of in pairs)), []
    while left:
        best, of = max(pairs, key=lambda each: len(each[1] & left))
        some.append(best)
        left -= of
    return some


def config_of(task: Task, choice: Choice) -> Config:
    values = SMALL | {"device": task.device, "dnn.senones": "all", "gmm.selection.enabled": False}
    for factor, name in choice.items():
        values |= FACTORS[factor][name]
    if choice["search"] == "device":
        values["search.device"] = task.device
    return settings.assign(presets.load(PRESETS[choice["model"]]).config, values)


def combinations(task: Task) -> Result:
    """The same words in every combination, categories that add up, no stage above its roofs, little overhead."""
    speech = str(task.speech(1)[0].path)
    first = {factor: next(iter(values)) for factor, values in FACTORS.items()}
    here = {"device": "cpu", "search.device": "cpu"}
    plain = {model: settings.assign(config_of(task, first | {"model": model}), here) for model in PRESETS}
    expected = {model: _words(config, speech) for model, config in plain.items()}
    chosen = every() if task.accelerator else pairwise(every())
    if task.device in SEARCH_OBSTACLES:
        chosen = [choice for choice in chosen if choice["search"] == "cpu"]
    rows, path, wrong = [], task.folder / "combination.asrs", []
    for choice in chosen:
        words = _words(config_of(task, choice), speech, path)
        with Session.open(path) as session:
            parts = breakdown(session)
            shares = {name: ns / parts.wall_ns for name, ns in parts.overhead().items()}
            own = {name: share for name, share in shares.items() if name != LATENCY}
            row: dict[str, Any] = {
                "combination": " ".join(choice.values()),
                "same words": words == expected[choice["model"]],
                "rtf": parts.rtf,
                "overhead": shares,
                "event ns": session.meta.get(EVENTS, {}).get("ns_per_event"),
                "above its roof": [r.name for r in parts.stages if r.defect],
                "launch-bound": [r.name for r in parts.stages if r.verdict == "launch-bound"],
            }
            reasons = {
                # 16 bits may decide between words that are as likely, 32 may not.
                "other words": choice["number"] == "fp32" and not row["same words"],
                "categories do not add up": abs(sum(parts.categories.values()) - parts.wall_ns)
                > ROUNDING * parts.wall_ns,
                f"above its roof: {', '.join(row['above its roof'])}": row["above its roof"],
                # Time in which the host waits and the device runs nothing is the device's: reported, and no fault.
                f"{sum(own.values()):.1%} overhead": sum(own.values()) > MOST_OVERHEAD,
            }
        wrong += [f"{row['combination']}: {reason}" for reason, holds in reasons.items() if holds]
        rows.append(row | {"own overhead": sum(own.values())})
    path.unlink()
    figures = {"of": len(every()), "taken": len(rows), "rows": rows, "wrong": wrong}
    listed = dict.fromkeys(wrong[:MOST_REASONS], True) | {f"{len(wrong)} reasons in all": len(wrong) > MOST_REASONS}
    differ, most = sum(not row["same words"] for row in rows), max(row["own overhead"] for row in rows)
    why = (
        f"{len(rows)} combinations add up, stay below the roofs and hear the same but for {differ} in 16 bits; at most "
        f"{most:.1%} of a run is overhead"
    )
    return verdict(listed, why, figures)


def session(task: Task) -> Result:
    search = "cpu" if task.device in SEARCH_OBSTACLES else "device"
    choice = {"model": "dnn", "number": "fp32", "moves": "block", "copies": "overlapped", "search": search}
    path = task.folder / f"{task.device}.asrs"
    path.unlink(missing_ok=True)
    items = task.speech(3)
    request = Request(config_of(task, choice), "dnn", tuple(str(item.path) for item in items), None, path)
    outcome = execute(request, Control(), lambda *_: None)
    size = path.stat().st_size
    figures = {"session": str(path), "bytes": size, "state": outcome.state}
    wrong = {f"the session has {size} bytes and is {outcome.state}": size > LARGEST or outcome.state != "closed"}
    return verdict(wrong, "a session is there", figures)


def lab(task: Task) -> Result:
    """The lab that asks what a GPU gives scoring and search; its session stays in the folder."""
    out = task.folder / "gpu-scoring-search.asrs"
    out.unlink(missing_ok=True)
    command = children.python("-m", "app.cli.main", "lab", "gpu-scoring-search", "--out", str(out), "--json")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=children.environment())
    if done.returncode:
        return Result(False, children.last_words(done.stderr, done.returncode))
    row = json.loads(done.stdout)["labs"][0]
    return Result(True if task.accelerator else None, f"the lab says: {row['verdict']}. {row['why']}", row)


def _words(config: Config, speech: str, out: Path | None = None) -> str:
    if out is not None:
        out.unlink(missing_ok=True)
    outcome = execute(Request(config, "bench", (speech,), None, out), Control(), lambda *_: None)
    return str(outcome.result.utterances[0].hypothesis)
