"""What a trial has shown: its figures as ratios to the reference, or why there are none.

A trial runs between two runs of the reference. If these differ by more than their noise, the machine has changed in
between, and the trial is to be repeated. Times of different hosts are never compared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np

from pipelines.experiments.sweep import trial
from profiler.analysis.comparison.statistics import apart, undisturbed
from profiler.errors import BadInput
from profiler.files.inputs import MIB, InputError, read_struct
from profiler.plain import one_line
from profiler.process import children

BEFORE, TRIED, AFTER, AB = "before", "trial", "after", "ab"

DRIFT_FLOOR: Final = 0.03
"""A difference up to this is no drift: two runs of the same settings differ by as much on a quiet machine."""

LARGEST: Final = 64 * MIB  # Bytes of the report of a run: one of ten thousand utterances has 10 MB
MOST_MARGIN: Final = 0.9  # So that no margin makes a ratio 0
Number = Annotated[float, msgspec.Meta(ge=0.0, le=1e15)]  # No figure of a run is higher


class _Utterance(msgspec.Struct, frozen=True):
    id: str
    hypothesis: str
    wall_s: Number | None


class _Latency(msgspec.Struct, frozen=True):
    total_s: Number | None


class Report(msgspec.Struct, frozen=True):
    """Of the JSON of `asrscope run` what a sweep reads."""

    rtf: Number
    audio_s: Number
    wer: Number | None
    latency: _Latency | None
    memory: _Memory | None
    utterances: list[_Utterance]
    cer: Number | None = None

    def passes(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Seconds by pass and utterance [passes, utterances], the first pass (warm-up) left out if there are more."""
        rows: dict[str, list[float]] = {}
        for utterance in self.utterances:
            rows.setdefault(utterance.id, []).append(utterance.wall_s or math.nan)
        times = np.array(list(rows.values()), np.float64).T
        return times[1:] if len(times) > 1 else times

    def seconds(self) -> float:
        return float(undisturbed(self.passes()).sum())

    def words(self) -> dict[str, str]:
        return {utterance.id: utterance.hypothesis for utterance in self.utterances}


class _Memory(msgspec.Struct, frozen=True):
    peak_bytes: Number | None


class _Overall(msgspec.Struct, frozen=True):
    ratio: Number | None
    ci95: tuple[Number, Number] | None


class _Errors(msgspec.Struct, frozen=True):
    a: Number | None
    b: Number | None


class _Comparison(msgspec.Struct, frozen=True):
    """Of the JSON of `asrscope ab` what a sweep reads."""

    overall: _Overall
    wer: _Errors


class Figures(msgspec.Struct, frozen=True):
    """What a trial has shown. `margin`: by which share the ratios may be too high or too low, after the reference."""

    host: str
    session: str
    rtf: Number
    rtf_ratio: Number
    wer: Number | None
    memory_bytes: Number | None
    latency_s: Number | None
    latency_ratio: Number | None
    margin: Annotated[float, msgspec.Meta(ge=0.0, le=MOST_MARGIN)]
    cer: Number | None = None

    def objective(self, name: str) -> float | None:
        """The value that is minimised: times as ratios to the reference."""
        ratios = {"rtf": self.rtf_ratio, "latency": self.latency_ratio}
        return ratios[name] if name in ratios else self.measured(name)

    def measured(self, name: str) -> float | None:
        return {"rtf": self.rtf, "wer": self.wer, "memory": self.memory_bytes, "latency": self.latency_s}[name]


class Failed(msgspec.Struct, frozen=True, omit_defaults=True):
    """There are no figures; `again`: a repeat may give some. `drifted`: the reference changed in each attempt."""

    why: str
    again: bool = False
    drifted: bool = False


@dataclass(frozen=True)
class Confirmed:
    """The ratio of a point to the reference, with its 95 % interval, by interleaved repeats."""

    ratio: float
    ci95: tuple[float, float]


def result_of(folder: Path) -> trial.TrialResult | Failed:
    """The result of the plan of `folder` where all its commands succeeded."""
    try:
        result = read_struct(folder / trial.RESULT, trial.TrialResult, "the result of a trial")
    except InputError:
        return Failed("The program of the trial was ended before it had a result.", again=True)
    for name, status in result.statuses.items():
        if status:
            why = children.last_words(children.complaints(folder / f"{name}.txt"), status)
            what = {BEFORE: "The reference", AFTER: "The reference"}.get(name, "The run")
            # A setting that does not fit will not fit the next time; a signal comes from outside.
            return Failed(f"{what} failed on {result.host}: {one_line(why)}.", again=status < 0)
    return result


def judged(folder: Path, words: Mapping[str, str] | None) -> Figures | Failed:
    """The figures of the trial in `folder`; `words`: what the reference recognised in earlier trials."""
    result = result_of(folder)
    if isinstance(result, Failed):
        return result
    try:
        before, tried, after = (read_report(folder / f"{name}.json") for name in (BEFORE, TRIED, AFTER))
    except BadInput as problem:
        return Failed(str(problem))
    known = before.words() if words is None else words
    if not before.words() == after.words() == known:
        return Failed(f"The reference recognised other words on {result.host} than before.")
    if tried.words().keys() != known.keys():
        return Failed("The trial decoded other utterances than the reference.")
    if before.passes().shape != after.passes().shape:
        return Failed("The reference was decoded more often before the trial than after it, or less often.")
    drift = apart(before.passes(), after.passes()).ratio()
    assert drift is not None  # every utterance took time
    low, high = (drift.ratio if end is None else end for end in (drift.low, drift.high))
    if low > 1 + DRIFT_FLOOR or high < 1 - DRIFT_FLOOR:
        return Failed(
            f"The reference took {drift.ratio:.2f} times as long after the trial as before on {result.host} "
            f"({low:.2f} to {high:.2f}).",
            again=True,
            drifted=True,
        )
    latency = _latency(tried)
    of_reference = [seconds for report in (before, after) if (seconds := _latency(report)) is not None]
    return Figures(
        host=result.host,
        session=str(folder / f"{TRIED}.asrs"),
        rtf=tried.rtf,
        rtf_ratio=tried.seconds() / math.sqrt(before.seconds() * after.seconds()),
        wer=tried.wer,
        memory_bytes=None if tried.memory is None else tried.memory.peak_bytes,
        latency_s=latency,
        latency_ratio=latency / (sum(of_reference) / 2) if latency is not None and len(of_reference) == 2 else None,
        margin=min(max(DRIFT_FLOOR, high / drift.ratio - 1), MOST_MARGIN),
        cer=tried.cer,
    )


def confirmed(folder: Path, wer: float | None) -> Confirmed | Failed:
    """The interval of the point compared in `folder`; `wer`: that of the trial, which must come out again."""
    result = result_of(folder)
    if isinstance(result, Failed):
        return result
    try:
        found = read_struct(folder / f"{AB}.json", _Comparison, "the result of a comparison", LARGEST)
    except InputError as problem:
        return Failed(str(problem), again=True)
    if found.wer.b != wer:
        return Failed("The repeats recognised other words than the trial.")
    if found.overall.ratio is None or found.overall.ci95 is None:
        return Failed("The repeats were too few for an interval.")
    return Confirmed(found.overall.ratio, found.overall.ci95)


def read_report(path: Path) -> Report:
    """The JSON of a run; BadInput where it is none, or an utterance was not decoded."""
    report = read_struct(path, Report, "the report of a run", LARGEST)
    if not report.utterances or any(not utterance.wall_s for utterance in report.utterances):
        raise BadInput("An utterance was not decoded to its end.")
    if len(set(Counter(utterance.id for utterance in report.utterances).values())) > 1:
        raise BadInput("An utterance was decoded more often than another.")
    return report


def _latency(report: Report) -> float | None:
    return None if report.latency is None else report.latency.total_s
