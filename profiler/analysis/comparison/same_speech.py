"""What a change of settings did, against a fair baseline: the same speech under both, within one session.

A second of speech counts where the same second of the same file was decoded wholly under either configuration. Seconds
in which a change was being prepared are left out. The interval is a bootstrap over seconds, longer than the bursts of
other programs. It does not know what is slower (clock rate, another program for a minute), because one configuration
came after the other; an A/B in turns (`arms.arms_of`) does, and is used where the session has it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from profiler.analysis.comparison.arms import CELL_FRAMES, Arm, by_key, cell_edges
from profiler.analysis.comparison.compare import UNDECIDED, by_interval, verdict
from profiler.analysis.comparison.statistics import (
    DRAWS,
    MIN_REPEATS,
    Ratio,
    alternated,
    bootstrap_interval,
    undisturbed,
)
from profiler.arrays import Array
from profiler.frames import FRAME_S
from profiler.session.model import Utterance
from profiler.session.reader import Session

UNIT: Final = round(1 / FRAME_S)
"""Frames that count together: a second."""

MIN_UNITS: Final = 4
"""Seconds from which an interval is given; the percentiles of fewer lie within their extremes."""

MAX_UNITS: Final = 100
"""Number of latest units (seconds) that count: enough to resolve 1 %, and fast to resample."""

A, B = 1, 2


class Place(NamedTuple):
    """A second of speech: its file, that file's frames, and which second of it."""

    path: str
    n_frames: int
    second: int


@dataclass(frozen=True)
class SameSpeech:
    """Configuration B against A on speech that both have decoded.

    `ratio`: time of B / time of A, None where both decoded nothing. `seconds`: of speech that count. `repeats`: turns
    of both, 0 without turns. `decoded`: the latest of A and of B of utterances that both decoded to their end.
    `baseline`: the stretches (first frame, one after the last) of A that count.
    """

    ratio: Ratio | None
    verdict: str
    seconds: float
    repeats: int
    decoded: tuple[tuple[Utterance, Utterance], ...]
    baseline: tuple[tuple[int, int], ...]


def same_speech(session: Session, wall_ns: Array, end: int, a: Collection[int], b: Collection[int]) -> SameSpeech:
    """Compare the epochs `b` with the epochs `a`, of what was decoded before frame `end`.

    `wall_ns` [frames]: wall time of each frame. Epochs on one side ran alike.
    """
    end = min(end, len(wall_ns))
    shared = list(_shared(session, end, a, b).items())[-MAX_UNITS:]
    decoded = _decoded_by_both(session.utterances, end, a, b)
    if not shared:
        return SameSpeech(None, UNDECIDED, 0.0, 0, decoded, ())
    running = np.concatenate([[0.0], np.cumsum(wall_ns[:end])])
    times = np.array([[_time(running, of_a), _time(running, of_b)] for _, (of_a, of_b) in shared])
    estimate = _ratio(times)
    ratio = Ratio(estimate)
    if len(times) >= MIN_UNITS:
        low, high = bootstrap_interval(times, _ratio, method="percentile", resamples=DRAWS)
        ratio = Ratio(estimate, low, high)
    baseline = tuple((of_a[-1], of_a[-1] + UNIT) for _, (of_a, _) in shared)
    seconds = len(times) * UNIT * FRAME_S
    return SameSpeech(ratio, by_interval(ratio), seconds, 0, decoded, baseline)


def in_turn(session: Session, wall_ns: Array, end: int, arms: tuple[Arm, Arm]) -> SameSpeech | None:
    """Compare the arms of an A/B, of what was decoded before frame `end`; None until both have decoded something."""
    end = min(end, len(wall_ns))
    a, b = (by_key(u for u in arm.utterances if u.first_frame + u.n_frames <= end) for arm in arms)
    matched = [key for key in a if key in b and a[key][0].n_frames == b[key][0].n_frames]
    if not matched:
        return None
    repeats = min(len(side[key]) for side in (a, b) for key in matched)
    running = np.concatenate([[0.0], np.cumsum(wall_ns[:end])])
    of_a, of_b = (np.concatenate([_cells(running, side[key][:repeats]) for key in matched], axis=1) for side in (a, b))
    ratio = alternated(of_a, of_b).ratio()
    return SameSpeech(
        ratio,
        UNDECIDED if ratio is None or repeats < MIN_REPEATS else verdict(ratio, ratio.p),
        sum(a[key][0].n_frames for key in matched) * FRAME_S,
        repeats,
        tuple((a[key][-1], b[key][-1]) for key in matched),
        tuple((u.first_frame, u.first_frame + u.n_frames) for key in matched for u in a[key][:repeats]),
    )


def _cells(running: Array, utterances: Iterable[Utterance]) -> Array:
    """Time of every cell of one file's utterances, float64 [repeats, cells] in ns."""
    found = list(utterances)
    at = np.array([u.first_frame for u in found])[:, None] + cell_edges(found[0].n_frames, CELL_FRAMES)
    cells: Array = np.diff(running[at], axis=1)
    return cells


def _ratio(times: Array) -> float:
    of_a, of_b = times.sum(axis=0)
    return float(of_b / max(of_a, 1.0))


def _time(running: Array, starts: list[int]) -> float:
    """The undisturbed time of a second that was decoded at each of `starts`."""
    at = np.array(starts)
    return float(undisturbed(running[at + UNIT] - running[at]))


def _shared(
    session: Session, end: int, a: Collection[int], b: Collection[int]
) -> dict[Place, tuple[list[int], list[int]]]:
    """The seconds that both sides decoded, in the order of B's last: where A's and B's begin, as many of each."""
    sides = _sides(session, end, a, b)
    starts: dict[Place, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    latest: dict[Place, int] = {}
    for utterance in session.utterances:
        first = utterance.first_frame
        seconds = (min(first + utterance.n_frames, end) - first) // UNIT
        if seconds <= 0:
            continue
        frames = sides[first : first + seconds * UNIT].reshape(seconds, UNIT)
        side = np.where((frames == frames[:, :1]).all(axis=1), frames[:, 0], 0)
        for second in np.flatnonzero(side).tolist():
            place = Place(utterance.path, utterance.n_frames, second)
            starts[place][side[second] - A].append(first + second * UNIT)
            if side[second] == B:
                latest[place] = first + second * UNIT
    found = {}
    for place in sorted(latest, key=latest.__getitem__):
        of_a, of_b = starts[place]
        # As many of each: the fastest of more would be faster.
        takes = min(len(of_a), len(of_b))
        if takes:
            found[place] = of_a[-takes:], of_b[-takes:]
    return found


def _sides(session: Session, end: int, a: Collection[int], b: Collection[int]) -> Array:
    """Which side each frame is of, int8 [end]: A, B, or 0 for neither."""
    sides = np.zeros(end, np.int8)
    rows = sorted(session.configs, key=lambda config: config.first_frame)
    for number, row in enumerate(rows):
        last = rows[number + 1].first_frame if number + 1 < len(rows) else end
        if row.epoch in a or row.epoch in b:
            sides[max(row.first_frame, 0) : max(last, 0)] = A if row.epoch in a else B
    for first, last in _preparing(session, end):
        sides[max(first, 0) : max(last, 0)] = 0
    return sides


def _preparing(session: Session, end: int) -> Iterable[tuple[int, int]]:
    """Frames from the asking for a change to its acting, or to its being given up or overtaken."""
    over = sorted(
        [c.first_frame for c in session.configs] + [m.asked_frame for m in session.markers if m.kind == "error"]
    )
    for marker in session.markers:
        if marker.kind != "option":
            continue
        asked, applied = marker.asked_frame, marker.applied_frame
        if applied is None:
            applied = next((frame for frame in over if frame > asked), end)
        # Block boundaries: a change that acts at once was asked for within the block before.
        yield asked, applied


def _decoded_by_both(
    utterances: Iterable[Utterance], end: int, a: Collection[int], b: Collection[int]
) -> tuple[tuple[Utterance, Utterance], ...]:
    """What both sides decoded to its end: the latest of either."""
    latest: dict[tuple[str, int], dict[int, Utterance]] = defaultdict(dict)
    for utterance in utterances:
        epochs = set(utterance.epochs)
        if not utterance.done or len(epochs) != 1:
            continue
        if utterance.first_frame + utterance.n_frames > end:
            continue
        for side, numbers in ((A, a), (B, b)):
            if epochs <= set(numbers):
                latest[utterance.path, utterance.n_frames][side] = utterance
    return tuple((found[A], found[B]) for found in latest.values() if len(found) == 2)
