"""Compares two arms (two sessions, or the arms of one A/B): verdicts, and what speaks against them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from profiler.analysis.categories import OVERHEAD
from profiler.analysis.comparison import arms
from profiler.analysis.comparison.arms import Arm, Key, Times
from profiler.analysis.comparison.statistics import MIN_REPEATS, Pair, Ratio, alternated, apart, holm, student_quantile
from profiler.errors import BadInput
from profiler.plain import counted, one_line
from profiler.session.model import Utterance
from profiler.session.reader import Session

A_FASTER: Final = "A faster"
B_FASTER: Final = "B faster"
NO_DIFFERENCE: Final = "no difference"
UNDECIDED: Final = "undecided"

EQUAL: Final = (0.98, 1.02)  # An interval within these ratios is no difference that matters
LEVEL: Final = 0.05  # Of false findings: for the overall ratio, and for all stages together (adjusted)
CALIBRATION_APART: Final = 0.05  # Roofs of two sessions that differ by more are not of the same machine
PEAKS_APART: Final = 2  # Of ±127: peaks of one sound differ by less where another version has decoded or resampled it

MACHINE: Final = {
    "host": "host",
    "cpu": "CPU",
    "cores": "number of cores",
    "memory_bytes": "memory",
    "governor": "frequency governor",
    "gpus": "GPU or its driver",
    "gpu_settings": "choice of GPU",
    "os": "operating system",
    "python": "Python",
    "blas": "linear-algebra library",
}
"""What is compared of the machines, and how it is called."""


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
    """Compare two sessions, or the arms of `a`; `floor`: A/A half-width, else by repeats; BadInput if none match."""
    if b is None:
        return compare_arms(*arms.arms_of(a), floor=floor)
    return compare_arms(arms.session_arm(a, "A"), arms.session_arm(b, "B"), floor=floor)


def compare_arms(a: Arm, b: Arm, floor: float | None = None) -> Comparison:
    """Compare two arms; arms of one session are taken as interleaved."""
    interleaved = a.session is b.session
    found_a, found_b = arms.by_key(a.utterances), arms.by_key(b.utterances)
    matched = [key for key in found_a if key in found_b and found_a[key][0].n_frames == found_b[key][0].n_frames]
    if not matched:
        raise BadInput(
            f"{a.session.path} and {b.session.path} share no utterance of one name and length, "
            "so there is nothing to compare."
        )
    frames = {key: found_a[key][0].n_frames for key in matched}
    since = min(u.first_frame for u in (*a.utterances, *b.utterances)) if interleaved else 0
    sums = {id(s): arms.FrameSums(s, since) for s in (a.session, b.session)}
    times_a, times_b = (
        arms.lay_out(sums[id(arm.session)], [of[key] for key in matched], frames.values())
        for arm, of in ((a, found_a), (b, found_b))
    )
    dropped = (0, 0) if interleaved else (times_a.warm_up(), times_b.warm_up())
    repeats = min(times_a.repeats - dropped[0], times_b.repeats - dropped[1])
    times_a, times_b = times_a.last(repeats), times_b.last(repeats)
    if a.config.get("block") != b.config.get("block"):
        times_a, times_b = times_a.whole_repeats(), times_b.whole_repeats()
    found = arms.pairs(times_a, times_b, alternated if interleaved else apart)
    everything = arms.total(found.values()) if found else None
    whole_ratio = everything.ratio() if everything else None
    if everything is None or whole_ratio is None or not times_a.total:
        raise BadInput(f"{a.session.path} and {b.session.path} hold no decoding time to compare.")
    tested = {name: ratio for name, pair in found.items() if (ratio := pair.ratio())}
    adjusted = holm([ratio.p for ratio in tested.values()])
    groups = {stage.name: stage.group for s in (b.session, a.session) for stage in s.stages.values()}

    def row(name: str, pair: Pair, ratio: Ratio, p: float | None) -> StageRatio:
        return StageRatio(name, groups.get(name, OVERHEAD), pair.a / 1e9, pair.b / 1e9, ratio, p, verdict(ratio, p))

    decoded_a, decoded_b = (tuple(of[key][-1] for key in matched) for of in (found_a, found_b))
    unmatched_a, unmatched_b = (tuple(key[0] for key in of if key not in frames) for of in (found_a, found_b))
    return Comparison(
        a=a,
        b=b,
        interleaved=interleaved,
        overall=row("overall", everything, whole_ratio, whole_ratio.p),
        stages=tuple(row(n, found[n], ratio, p) for (n, ratio), p in zip(tested.items(), adjusted, strict=True)),
        only_a={name: pair.a / 1e9 for name, pair in found.items() if pair.a > 0 >= pair.b},
        only_b={name: pair.b / 1e9 for name, pair in found.items() if pair.b > 0 >= pair.a},
        decoded_a=decoded_a,
        decoded_b=decoded_b,
        repeats=repeats,
        warm_up=dropped,
        matched=tuple(matched),
        unmatched_a=unmatched_a,
        unmatched_b=unmatched_b,
        audio_s=sum(found_a[key][0].audio_s for key in matched),
        total_ratio=times_b.total / times_a.total,
        floor=floor if floor is not None else floor_within(times_a, times_b),
        warnings=(
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


def floor_within(*sides: Times) -> float | None:
    """Return the A/A floor as a fraction, from repeats of one arm taken as two; None for too few.

    Every other repeat plays B. The larger half-width of the arms' intervals, brought to all repeats, is the floor.
    """
    halves = []
    for times in sides:
        couples = times.repeats // 2
        if couples < MIN_REPEATS:
            return None
        # Swapped every other time, as the arms themselves are.
        first = [2 * number + number % 2 for number in range(couples)]
        second = [2 * number + 1 - number % 2 for number in range(couples)]
        ratio = arms.total(alternated(t[first], t[second]) for t in times.stages.values()).ratio()
        if ratio is None or ratio.low is None or ratio.high is None:
            return None
        fewer = student_quantile(0.975, couples - 1) / student_quantile(0.975, times.repeats - 1)
        halves.append(math.log(ratio.high / ratio.low) / 2 / fewer / math.sqrt(2))
    return math.expm1(max(halves))


def _warnings(
    a: Arm, b: Arm, repeats: int, matched: int, unmatched: tuple[tuple[str, ...], tuple[str, ...]]
) -> Iterable[str]:
    if repeats < MIN_REPEATS:
        yield (
            f"Too few repeats for an interval ({repeats}; {MIN_REPEATS} are the least, 10 are good): one "
            "run per arm cannot know the noise between runs, so nothing is decided."
        )
    if a.config.get("block") != b.config.get("block"):
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
    for name, session in (("A", a.session), ("B", b.session))[: 1 if a.session is b.session else 2]:
        if dropped := sum(lane.dropped for lane in session.lanes.values()):
            spans = counted(dropped, "span", "spans")
            yield f"The recorder dropped {spans} of {name}, whose stages miss their time."
    if a.session is not b.session:
        if repeats >= MIN_REPEATS:
            yield (
                "The arms were recorded one after the other: the intervals know the noise within each "
                "session, not between them; `asrscope ab` interleaves."
            )
        yield from _differences(a, b)


def _other_speech(decoded: Sequence[tuple[Utterance, Utterance]]) -> Iterable[str]:
    """Yield what differs in the sound or in the transcripts of utterances of one name and length."""

    def differs(a: Utterance, b: Utterance) -> bool:
        one, other = a.peaks.astype(np.int16), b.peaks.astype(np.int16)
        return one.shape == other.shape and bool((np.abs(one - other) > PEAKS_APART).any())

    def of_all(number: int, more: str = "") -> str:
        utterances = counted(len(decoded), "utterance", "utterances")
        return f"{number} of {utterances}{more} {'has' if number == 1 else 'have'}"

    if sound := sum(differs(a, b) for a, b in decoded):
        yield f"The audio differs: {of_all(sound, ' of the same name and length')} another wave form."
    if said := sum(a.reference != b.reference for a, b in decoded):
        yield f"The transcripts differ: {of_all(said)} another reference, so word errors do not compare."


def _differences(a: Arm, b: Arm) -> Iterable[str]:
    """Yield the unintended differences between two sessions."""
    one, other = _conditions(a), _conditions(b)
    for title in one | other:
        if one.get(title) != other.get(title):
            yield f"The {title} differs: {_plain(one.get(title))} in A, {_plain(other.get(title))} in B."
    for name, arm in (("A", a), ("B", b)):
        epochs = {c.epoch for c in arm.session.configs}
        if len(epochs) > 1:
            yield f"{name} was decoded under {len(epochs)} configurations; they are taken together."
    yield from _calibration(a.session, b.session)


def _conditions(arm: Arm) -> dict[str, Any]:
    """What should be alike in both sessions, by its name in a sentence."""
    meta = arm.session.meta
    machine, versions = (of if isinstance(of, dict) else {} for of in (meta.get("machine"), meta.get("versions")))
    return {
        **{title: machine.get(key) for key, title in MACHINE.items()},
        **{f"build of {name}": version for name, version in sorted(versions.items())},
        "build of asrscope": meta.get("asrscope_version"),
        "preset": meta.get("preset"),
        "device as it was opened": meta.get("devices"),
        "number of threads": arm.config.get("threads"),
    }


def _plain(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, dict):
        return one_line(" ".join(f"{k} {_plain(v)}" for k, v in value.items()))
    if isinstance(value, list):
        return one_line(", ".join(_plain(item) for item in value))
    return one_line(str(value))


def _calibration(a: Session, b: Session) -> Iterable[str]:
    roofs = {roof.key: roof.median for roof in a.calibration.roofs}
    factors = {roof: roof.median / roofs[roof.key] for roof in b.calibration.roofs if roof.key in roofs}
    apart = {roof: factor for roof, factor in factors.items() if abs(factor - 1) > CALIBRATION_APART}
    if apart:
        roof, factor = max(apart.items(), key=lambda each: abs(math.log(each[1])))
        name = f"{roof.name} of {roof.bytes >> 10} KiB" if roof.bytes else roof.name
        yield (
            f"The calibration differs by more than {CALIBRATION_APART:.0%} in {len(apart)} roofs, most in "
            f"{name} (B {factor:.2f} × A): the machine was not in the same state."
        )
