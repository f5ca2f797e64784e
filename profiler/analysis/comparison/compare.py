"""Compares two arms (two sessions, or the arms of one A/B): verdicts, and what speaks against them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from profiler.analysis.categories import OVERHEAD
from profiler.analysis.comparison.arms import (
    Arm,
    FrameSums,
    Key,
    Times,
    arms_of,
    by_key,
    lay_out,
    pairs,
    session_arm,
    total,
)
from profiler.analysis.comparison.statistics import MIN_REPEATS, Pair, Ratio, alternated, apart, holm, student_quantile
from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.plain import counted, one_line
from profiler.session.model import Utterance
from profiler.session.reader import Session

A_FASTER: Final = "A faster"
B_FASTER: Final = "B faster"
NO_DIFFERENCE: Final = "no difference"
UNDECIDED: Final = "undecided"

EQUAL: Final = (0.98, 1.02)
"""An interval within these ratios is no difference that matters."""

LEVEL: Final = 0.05
"""Of false findings: for the overall ratio, and for all stages together (adjusted)."""

CALIBRATION_APART: Final = 0.05
"""A roof that differs by more between two sessions says that the machine was not the same."""


PEAKS_APART: Final = 2
"""Of ±127: peaks of one sound differ by less where another version has decoded or resampled it."""


@dataclass(frozen=True, slots=True)
class StageRatio:
    """How a stage, or everything ("overall"), compares. `a_s`, `b_s`: seconds per repeat."""

    name: str
    group: str
    a_s: float
    b_s: float
    ratio: Ratio
    p_adjusted: float | None
    verdict: str


@dataclass(frozen=True)
class Comparison:
    """The outcome. `decoded_a`, `decoded_b`: one decode of each matched utterance.

    `only_a`, `only_b`: seconds per repeat of stages on one side alone. `repeats`: those that count, of each side;
    `warm_up`: those left out at the beginning. `total_ratio`: of plain sums. `floor`: half-width of the interval of an
    arm against itself.
    """

    a: Arm
    b: Arm
    interleaved: bool
    overall: StageRatio
    stages: tuple[StageRatio, ...]
    only_a: Mapping[str, float]
    only_b: Mapping[str, float]
    decoded_a: tuple[Utterance, ...]
    decoded_b: tuple[Utterance, ...]
    repeats: int
    warm_up: tuple[int, int]
    matched: tuple[Key, ...]
    unmatched_a: tuple[str, ...]
    unmatched_b: tuple[str, ...]
    audio_s: float
    total_ratio: float
    floor: float | None
    warnings: tuple[str, ...] = field(default=())


def compare(a: Session, b: Session | None = None, floor: float | None = None) -> Comparison:
    """Compare two sessions, or the arms of the interleaved session `a`; BadInput (one sentence) if there is nothing to.

    `floor`: the machine's A/A floor (half-width, a fraction) where it was measured; else repeats within the arms give
    it.
    """
    if b is None:
        return compare_arms(*arms_of(a), floor=floor)
    return compare_arms(session_arm(a, "A"), session_arm(b, "B"), floor=floor)


def compare_arms(a: Arm, b: Arm, floor: float | None = None) -> Comparison:
    """Compare two arms; arms of one session are taken as interleaved."""
    interleaved = a.session is b.session
    found_a, found_b = by_key(a.utterances), by_key(b.utterances)
    matched = [key for key in found_a if key in found_b and found_a[key][0].n_frames == found_b[key][0].n_frames]
    if not matched:
        raise BadInput(
            f"{a.session.path} and {b.session.path} share no utterance of one name and length, "
            "so there is nothing to compare."
        )
    frames = {key: found_a[key][0].n_frames for key in matched}
    since = min(u.first_frame for u in (*a.utterances, *b.utterances)) if interleaved else 0
    sums = {id(s): FrameSums(s, since) for s in (a.session, b.session)}
    times_a = lay_out(sums[id(a.session)], [found_a[key] for key in matched], frames.values())
    times_b = lay_out(sums[id(b.session)], [found_b[key] for key in matched], frames.values())
    dropped = (0, 0)
    if not interleaved:
        dropped = (times_a.warm_up(), times_b.warm_up())
    repeats = min(times_a.repeats - dropped[0], times_b.repeats - dropped[1])
    times_a, times_b = times_a.last(repeats), times_b.last(repeats)
    if _cut_otherwise(a, b):
        times_a, times_b = times_a.whole_repeats(), times_b.whole_repeats()
    found = pairs(times_a, times_b, alternated if interleaved else apart)
    everything = total(found.values()) if found else None
    whole_ratio = everything.ratio() if everything else None
    if everything is None or whole_ratio is None or not times_a.total:
        raise BadInput(f"{a.session.path} and {b.session.path} hold no decoding time to compare.")
    tested = {name: ratio for name, pair in found.items() if (ratio := pair.ratio())}
    adjusted = holm([ratio.p for ratio in tested.values()])
    groups = {stage.name: stage.group for s in (b.session, a.session) for stage in s.stages.values()}

    def row(name: str, pair: Pair, ratio: Ratio, p_adjusted: float | None) -> StageRatio:
        return StageRatio(
            name, groups.get(name, OVERHEAD), pair.a / 1e9, pair.b / 1e9, ratio, p_adjusted, verdict(ratio, p_adjusted)
        )

    stages = tuple(row(name, found[name], ratio, p) for (name, ratio), p in zip(tested.items(), adjusted, strict=True))
    overall = row("overall", everything, whole_ratio, whole_ratio.p)
    decoded_a, decoded_b = (tuple(of[key][-1] for key in matched) for of in (found_a, found_b))
    unmatched_a = tuple(key[0] for key in found_a if key not in frames)
    unmatched_b = tuple(key[0] for key in found_b if key not in frames)
    return Comparison(
        a,
        b,
        interleaved,
        overall,
        stages,
        {name: pair.a / 1e9 for name, pair in found.items() if pair.a > 0 >= pair.b},
        {name: pair.b / 1e9 for name, pair in found.items() if pair.b > 0 >= pair.a},
        decoded_a,
        decoded_b,
        repeats,
        dropped,
        tuple(matched),
        unmatched_a,
        unmatched_b,
        sum(found_a[key][0].audio_s for key in matched),
        times_b.total / times_a.total,
        floor if floor is not None else floor_within(times_a, times_b),
        (
            *_warnings(a, b, repeats, len(matched), (unmatched_a, unmatched_b)),
            *_other_speech(list(zip(decoded_a, decoded_b, strict=True))),
        ),
    )


def verdict(ratio: Ratio, p_adjusted: float | None) -> str:
    """Say which arm is faster, going by interval and adjusted p."""
    if ratio.low is None or ratio.high is None or p_adjusted is None:
        return UNDECIDED
    if EQUAL[0] <= ratio.low and ratio.high <= EQUAL[1]:
        return NO_DIFFERENCE
    if p_adjusted < LEVEL:
        return A_FASTER if ratio.ratio > 1 else B_FASTER
    return UNDECIDED


def by_interval(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return UNDECIDED
    return verdict(ratio, 0.0 if ratio.low > 1 or ratio.high < 1 else 1.0)


def floor_within(*arms: Times) -> float | None:
    """Return the A/A floor as a fraction, from repeats of one arm taken as two; None for too few.

    Every other repeat plays B. The larger half-width of the arms' intervals, brought to all repeats, is the floor.
    """
    halves = []
    for times in arms:
        couples = times.repeats // 2
        if couples < MIN_REPEATS:
            return None
        first, second = [], []
        for number in range(couples):
            # Swapped every other time, as the arms themselves are.
            one, other = 2 * number + number % 2, 2 * number + 1 - number % 2
            first.append(one)
            second.append(other)
        ratio = total(alternated(t[first], t[second]) for t in times.stages.values()).ratio()
        if ratio is None or ratio.low is None or ratio.high is None:
            return None
        fewer = student_quantile(0.975, couples - 1) / student_quantile(0.975, times.repeats - 1)
        halves.append(math.log(ratio.high / ratio.low) / 2 / fewer / math.sqrt(2))
    return math.expm1(max(halves))


# -- what speaks against it -----------------------------------------------------------------------


def _warnings(
    a: Arm, b: Arm, repeats: int, matched: int, unmatched: tuple[tuple[str, ...], tuple[str, ...]]
) -> Iterable[str]:
    if repeats < MIN_REPEATS:
        yield (
            f"Too few repeats for an interval ({repeats}; {MIN_REPEATS} are the least, 10 are good): one "
            "run per arm cannot know the noise between runs, so nothing is decided."
        )
    if _cut_otherwise(a, b):
        block_a, block_b = (_plain(arm.config.get("block")) for arm in (a, b))
        yield (
            f"Blocks differ ({block_a} frames in A, {block_b} in B), and a long one differs more from repeat to repeat "
            "than several short ones: whole repeats are compared, not pieces of them."
        )
    for name, missing in zip("AB", unmatched, strict=True):
        if missing:
            shown = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
            yield (
                f"The audio differs: {counted(matched, 'utterance matches', 'utterances match')} by name and length; "
                f"{len(missing)} only in {name} ({shown}) left out."
            )
    for name, arm in (("A", a), ("B", b)):
        dropped = sum(lane.dropped for lane in arm.session.lanes.values())
        if dropped:
            spans = counted(dropped, "span", "spans")
            yield f"The recorder dropped {spans} of {name}, whose stages miss their time."
        if arm.session is b.session and name == "A":
            break
    if a.session is not b.session:
        if repeats >= MIN_REPEATS:
            yield (
                "The arms were recorded one after the other: the intervals know the noise within each "
                "session, not between them; `asrscope ab` interleaves."
            )
        yield from _differences(a, b)


def _other_speech(decoded: Sequence[tuple[Utterance, Utterance]]) -> Iterable[str]:
    """Yield what differs in the sound or in the transcripts of utterances of one name and length."""
    of = counted(len(decoded), "utterance", "utterances")
    sound = sum(a.peaks.shape == b.peaks.shape and bool((_apart(a, b) > PEAKS_APART).any()) for a, b in decoded)
    if sound:
        yield f"The audio differs: {sound} of {of} of the same name and length {_have(sound)} another wave form."
    said = sum(a.reference != b.reference for a, b in decoded)
    if said:
        yield f"The transcripts differ: {said} of {of} {_have(said)} another reference, so word errors do not compare."


def _apart(a: Utterance, b: Utterance) -> Array:
    return np.abs(a.peaks.astype(np.int16) - b.peaks.astype(np.int16))


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _cut_otherwise(a: Arm, b: Arm) -> bool:
    return bool(a.config.get("block") != b.config.get("block"))


def _differences(a: Arm, b: Arm) -> Iterable[str]:
    """Yield the unintended differences between two sessions."""
    machine_a, machine_b = (_table(arm.session.meta.get("machine")) for arm in (a, b))
    for key, title in (
        ("host", "host"),
        ("cpu", "CPU"),
        ("cores", "number of cores"),
        ("memory_bytes", "memory"),
        ("governor", "frequency governor"),
        ("gpus", "GPU or its driver"),
        ("gpu_settings", "choice of GPU"),
        ("os", "operating system"),
        ("python", "Python"),
        ("blas", "linear-algebra library"),
    ):
        yield from _unequal(title, machine_a.get(key), machine_b.get(key))
    versions = [_table(arm.session.meta.get("versions")) for arm in (a, b)]
    for name in sorted({*versions[0], *versions[1]}):
        yield from _unequal(f"build of {name}", versions[0].get(name), versions[1].get(name))
    for key, title in (
        ("asrscope_version", "build of asrscope"),
        ("preset", "preset"),
        ("devices", "device as it was opened"),
    ):
        yield from _unequal(title, a.session.meta.get(key), b.session.meta.get(key))
    yield from _unequal("number of threads", a.config.get("threads"), b.config.get("threads"))
    for name, arm in (("A", a), ("B", b)):
        epochs = {c.epoch for c in arm.session.configs}
        if len(epochs) > 1:
            yield f"{name} was decoded under {len(epochs)} configurations; they are taken together."
    yield from _calibration(a.session, b.session)


def _unequal(title: str, a: Any, b: Any) -> Iterable[str]:
    if a != b:
        yield f"The {title} differs: {_plain(a)} in A, {_plain(b)} in B."


def _plain(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, dict):
        return one_line(" ".join(f"{k} {_plain(v)}" for k, v in value.items()))
    if isinstance(value, list):
        return one_line(", ".join(_plain(item) for item in value))
    return one_line(str(value))


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _calibration(a: Session, b: Session) -> Iterable[str]:
    roofs = {roof.key: roof.median for roof in a.calibration.roofs}
    apart = []
    for roof in b.calibration.roofs:
        known = roofs.get(roof.key)
        if known and abs(roof.median / known - 1) > CALIBRATION_APART:
            size = f" of {roof.bytes >> 10} KiB" if roof.bytes else ""
            apart.append((abs(math.log(roof.median / known)), f"{roof.name}{size}", roof.median / known))
    if apart:
        _, name, factor = max(apart)
        yield (
            f"The calibration differs by more than {CALIBRATION_APART:.0%} in {len(apart)} roofs, most in "
            f"{name} (B {factor:.2f} × A): the machine was not in the same state."
        )
