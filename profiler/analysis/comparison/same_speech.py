"""What a change of settings did, against a fair baseline: the same speech under both, within one session.

A second of speech counts where the same second of the same file was decoded wholly under either configuration. Seconds
in which a change was being prepared are left out. The interval is a bootstrap over seconds, longer than the bursts of
other programs. It does not know what is slower (clock rate, another program for a minute), because one configuration
came after the other; an A/B in turns (`arms.arms_of`) does, and is used where the session has it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from profiler.analysis.comparison.arms import Arm, by_key
from profiler.analysis.comparison.compare import UNDECIDED, by_interval, compare_arms
from profiler.analysis.comparison.statistics import DRAWS, Ratio, bootstrap_interval, undisturbed
from profiler.arrays import Array
from profiler.clock import FRAME_S
from profiler.errors import BadInput
from profiler.session.model import Utterance
from profiler.session.reader import Session

UNIT: Final = round(1 / FRAME_S)  # Frames that count together: a second
MIN_UNITS: Final = 4  # Seconds from which an interval is given; the percentiles of fewer lie within their extremes
MAX_UNITS: Final = 100  # Number of latest units (seconds) that count: enough to resolve 1 %, and fast to resample

A, B = 1, 2


@dataclass(frozen=True)
class SameSpeech:
    """Configuration B against A on speech that both have decoded.

    `ratio`: time of B / time of A, None where both decoded nothing. `seconds`: of speech that count. `repeats`: turns
    of both, 0 without turns. `decoded`: the latest of A and of B of utterances that both decoded to their end.
    `a_ns`, `b_ns`: time of a frame of that speech, whose ratio is `ratio`; None without any. `of_a`, `of_b`: the
    stretches (first frame, one after the last) that count.
    """

    ratio: Ratio | None
    verdict: str
    seconds: float
    repeats: int
    decoded: tuple[tuple[Utterance, Utterance], ...]
    a_ns: float | None = None
    b_ns: float | None = None
    of_a: tuple[tuple[int, int], ...] = ()
    of_b: tuple[tuple[int, int], ...] = ()


def same_speech(session: Session, wall_ns: Array, end: int, a: Collection[int], b: Collection[int]) -> SameSpeech:
    """Compare epochs `b` with `a`, each run alike, before frame `end`; `wall_ns` [frames]: time of each."""
    end = min(end, len(wall_ns))
    shared = _shared(session, end, a, b)[-MAX_UNITS:]
    decoded = _decoded_by_both(session.utterances, end, a, b)
    if not shared:
        return SameSpeech(None, UNDECIDED, 0.0, 0, decoded)
    running = np.concatenate([[0.0], np.cumsum(wall_ns[:end])])

    def time(starts: list[int]) -> float:
        """The undisturbed time of a second that was decoded at each of `starts`."""
        at = np.array(starts)
        return float(undisturbed(running[at + UNIT] - running[at]))

    times = np.array([[time(starts) for starts in sides] for sides in shared])
    ratio = Ratio(_ratio(times))
    if len(times) >= MIN_UNITS:
        ratio = Ratio(ratio.ratio, *bootstrap_interval(times, _ratio, method="percentile", resamples=DRAWS))
    of_a, of_b = (tuple((sides[side][-1], sides[side][-1] + UNIT) for sides in shared) for side in (0, 1))
    a_ns, b_ns = (float(total) / len(times) / UNIT for total in times.sum(axis=0))
    seconds = len(times) * UNIT * FRAME_S
    return SameSpeech(ratio, by_interval(ratio), seconds, 0, decoded, a_ns, b_ns, of_a, of_b)


def in_turn(arms: tuple[Arm, Arm], end: int) -> SameSpeech | None:
    """Compare an A/B up to frame `end` as `compare_arms` does; None until both arms have decoded something."""
    a, b = (replace(arm, utterances=tuple(u for u in arm.utterances if u.end_frame <= end)) for arm in arms)
    try:
        found = compare_arms(a, b)
    except BadInput:
        return None
    decoded = tuple(zip(found.decoded_a, found.decoded_b, strict=True))
    frames = sum(one.n_frames for one, _ in decoded)
    of_a, of_b = (
        tuple((u.first_frame, u.end_frame) for key in found.matched for u in side[key][: found.repeats])
        for side in (by_key(a.utterances), by_key(b.utterances))
    )
    overall = found.overall
    times = (overall.a_s * 1e9 / frames, overall.b_s * 1e9 / frames)
    return SameSpeech(overall.ratio, overall.verdict, frames * FRAME_S, found.repeats, decoded, *times, of_a, of_b)


def _ratio(times: Array) -> float:
    of_a, of_b = times.sum(axis=0)
    return float(of_b / max(of_a, 1.0))


def _shared(session: Session, end: int, a: Collection[int], b: Collection[int]) -> list[tuple[list[int], list[int]]]:
    """The seconds that both sides decoded, in the order of B's last: where A's and B's begin, as many of each."""
    sides = _sides(session, end, a, b)
    starts: dict[tuple[str, int, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for utterance in session.utterances:
        first = utterance.first_frame
        seconds = (min(first + utterance.n_frames, end) - first) // UNIT
        if seconds <= 0:
            continue
        frames = sides[first : first + seconds * UNIT].reshape(seconds, UNIT)
        side = np.where((frames == frames[:, :1]).all(axis=1), frames[:, 0], 0)
        for second in np.flatnonzero(side).tolist():
            starts[utterance.path, utterance.n_frames, second][side[second] - A].append(first + second * UNIT)
    both = sorted((each for each in starts.values() if all(each)), key=lambda each: each[1][-1])
    # As many of each: the fastest of more would be faster.
    return [(of_a[-len(of_b) :], of_b[-len(of_a) :]) for of_a, of_b in both]


def _sides(session: Session, end: int, a: Collection[int], b: Collection[int]) -> Array:
    """Which side each frame is of, int8 [end]: A, B, or 0 for neither."""
    sides = np.zeros(end, np.int8)
    rows = sorted(session.configs, key=lambda config: config.first_frame)
    for number, row in enumerate(rows):
        last = rows[number + 1].first_frame if number + 1 < len(rows) else end
        if row.epoch in a or row.epoch in b:
            sides[max(row.first_frame, 0) : max(last, 0)] = A if row.epoch in a else B
    # A change is prepared from when it was asked for until it acts, or is given up or overtaken.
    errors = [m.asked_frame for m in session.markers if m.kind == "error"]
    over = sorted([*(row.first_frame for row in rows), *errors])
    for marker in session.markers:
        if marker.kind == "option":
            asked, applied = marker.asked_frame, marker.applied_frame
            # Block boundaries: a change that acts at once was asked for within the block before.
            until = next((frame for frame in over if frame > asked), end) if applied is None else applied
            sides[max(asked, 0) : max(until, 0)] = 0
    return sides


def _decoded_by_both(
    utterances: Iterable[Utterance], end: int, a: Collection[int], b: Collection[int]
) -> tuple[tuple[Utterance, Utterance], ...]:
    """What both sides decoded to its end: the latest of either."""
    latest: dict[tuple[str, int], dict[int, Utterance]] = defaultdict(dict)
    for utterance in utterances:
        epochs = set(utterance.epochs)
        if utterance.done and len(epochs) == 1 and utterance.end_frame <= end:
            for side, numbers in ((A, a), (B, b)):
                if epochs <= set(numbers):
                    latest[utterance.path, utterance.n_frames][side] = utterance
    return tuple((found[A], found[B]) for found in latest.values() if len(found) == 2)
