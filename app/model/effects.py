"""The effect of a change of settings on time and words.

The settings in force are compared with the last ones before them that differ in no more than was changed, on speech
that both decoded (`profiler.analysis.comparison.same_speech`); during an A/B, its two arms are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal
from weakref import WeakKeyDictionary

from PySide6.QtCore import QCoreApplication

from app.model import configurations
from app.model.configurations import Settings, differing, epochs_of_arms, going_on
from pipelines import config as known_settings
from pipelines.audio.word_errors import ErrorCount, errors_of, total_of
from pipelines.config import COURSE, value_text
from profiler.clock import FRAME_S
from profiler.errors import BadInput
from profiler.plain import counted, milliseconds
from profiler.session.facts import setting

if TYPE_CHECKING:
    from profiler.analysis.comparison.same_speech import SameSpeech
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session


tr = partial(QCoreApplication.translate, "effects")


Kind = Literal["preparing", "other speech", "undecided", "no difference", "faster", "slower"]

UNSCORED: Final = ErrorCount()
TENFOLD: Final = 9.95  # A factor is given with two significant figures or so; from here on without decimals …
NEAR: Final = 1.095  # … and below with two of them: 1.04× faster
MOST_TURNS: Final = 99  # More turns than these are not predicted


@dataclass(frozen=True)
class Effect:
    """The effect of changing to the settings in force, on the same speech; times and factor are None without any."""

    kind: Kind
    factor: float | None = None
    low: float | None = None
    high: float | None = None
    before: ErrorCount = UNSCORED  # Word errors over the same utterances
    after: ErrorCount = UNSCORED
    words_kind: str = ""  # Whether they are decidedly "more" or "fewer", the "same", or "undecided"
    before_ms: float | None = None  # Of a frame of that speech
    after_ms: float | None = None
    seconds: float = 0.0  # Of speech timed
    turns: int = 0  # Of the A/B, 0 without one
    missing: tuple[int, float] | None = None  # About how many turns more would decide it, and their seconds
    before_parts: Mapping[str, float] = field(default_factory=dict)  # By category, without other programs
    after_parts: Mapping[str, float] = field(default_factory=dict)
    follows: bool = False  # The speech being decoded brings what is missing
    lacking: bool = False  # Only an A/B brings word errors

    @property
    def decided(self) -> bool:
        return self.kind in ("faster", "slower", "no difference")

    @property
    def figures(self) -> str:
        """Time before and after: 41.5 → 12.2 ms; empty where no speech is shared."""
        if self.before_ms is None or self.after_ms is None:
            return ""
        return f"{milliseconds(self.before_ms)} → {milliseconds(self.after_ms)} ms"

    @property
    def times(self) -> str:
        """The factor with its interval: 3.4× faster (2.9 to 3.9); never one without the other."""
        if self.factor is None or self.low is None or self.high is None:
            return tr("undecided")
        size = self.factor if self.factor >= 1 else 1 / self.factor
        ends = (self.low, self.high) if self.factor >= 1 else (1 / self.high, 1 / self.low)
        decimals = 0 if size >= TENFOLD else 2 if size < NEAR else 1
        number, low, high = (f"{value:.{decimals}f}" for value in (size, *ends))
        said = {
            "faster": tr("{0}× faster ({1} to {2})"),
            "slower": tr("{0}× slower ({1} to {2})"),
            "no difference": tr("no difference ({1} to {2})"),
        }
        return said.get(self.kind, tr("undecided ({1} to {2})")).format(number, low, high)

    @property
    def headline(self) -> str:
        if self.kind == "preparing":
            return tr("preparing …")
        return " · ".join((self.figures, self.times)) if self.figures else tr("no comparison yet")

    @property
    def brief(self) -> str:
        return self.times.replace(tr(" to "), "–") if self.figures and self.kind != "preparing" else self.headline

    @property
    def words(self) -> str:
        """What became of the words: 3 → 6 errors of 30 (undecided); empty before an utterance is shared."""
        if not (self.before.words and self.after.words):
            return ""
        text = tr("{0} → {1} errors of {2}").format(self.before.errors, self.after.errors, self.after.words)
        said = {"undecided": tr("undecided"), "same": tr("the same")}.get(self.words_kind)
        return f"{text} ({said})" if said else text

    @property
    def needs(self) -> str:
        """What is still missing for a decision: about 3 turns more, 40 s; empty where nothing is, or nobody knows."""
        if self.missing is None:
            return ""
        turns, seconds = self.missing
        more = counted(turns, tr("turn"), tr("turns"))
        return tr("about {0} more, {1} s").format(more, f"{seconds:.0f}")

    @property
    def remark(self) -> str:
        """Text after the headline: what an A/B still needs, the word errors, or what is still awaited."""
        if self.turns and not self.decided:
            return self.needs or self._turns_each
        if self.kind == "preparing" or self.words:
            return self.words
        if self.before_ms is None:
            return tr("same speech comes next") if self.follows else ""
        if self.lacking:
            return tr("words: by A/B")
        return tr("words follow") if self.follows else ""

    @property
    def shorter(self) -> tuple[str, ...]:
        """What stands for `remark` where it has no room: 3 → 6 of 30, or nothing."""
        if not self.words or self.remark != self.words:
            return ("",)
        return f"{self.before.errors} → {self.after.errors} / {self.after.words}", ""

    @property
    def _turns_each(self) -> str:
        return tr("A/B: {0} each").format(counted(self.turns, tr("turn"), tr("turns")))

    @property
    def text(self) -> str:
        return " · ".join(filter(None, (self.headline, self.remark)))

    @property
    def details(self) -> str:
        """All that there is to say, in sentences."""
        said = {
            "preparing": tr("The change does not act yet: what it needs is being made."),
            "other speech": tr(
                "Nothing decoded since the change has also been decoded with the settings before it, and other "
                "speech costs something else: there is no fair ratio yet."
            ),
            "undecided": tr("Too little has been decoded both ways to tell."),
        }
        parts = [said[self.kind]] if self.kind in said else []
        if self.figures:
            same = tr("A frame before and after, over {0} s of speech decoded both ways: {1}")
            parts.append(same.format(f"{self.seconds:.1f}", self.headline))
        if self.turns:
            parts.append(" · ".join(filter(None, (self._turns_each, self.needs))))
        if self.words:
            parts.append(tr("Over the same utterances: {0}").format(self.words))
        elif self.lacking:
            lacking = tr(
                "No utterance was decoded to its end before the change, so there are no word errors to compare; "
                "an A/B decodes one both ways."
            )
            parts.append(lacking)
        elif self.follows:
            parts.append(tr("What was decoded last comes again; words count at its end."))
        return "\n".join(parts)


class Effects:
    """Effects within one session, computed again when there is more to go by."""

    def __init__(self) -> None:
        self._state: tuple[object, ...] = ()
        self._found: dict[frozenset[str] | None, Effect | None] = {}
        self._turns: tuple[tuple[int, int], SameSpeech | None] = (-1, -1), None

    def last_change(
        self, session: Session, track: CostTrack, end: int, keys: frozenset[str] | None = None
    ) -> Effect | None:
        """Return the effect of the last change of `keys` (None: of any) before frame `end`; None without one."""
        from profiler.analysis.comparison.same_speech import UNIT

        done = sum(u.done and u.end_frame <= end for u in session.utterances)
        known = tuple((m.applied_frame or end) < end for m in session.markers)
        state = (end // UNIT, done, known, len(session.configs), track.generation)
        if state != self._state:
            self._state, self._found = state, {}
        if keys not in self._found:
            self._found[keys] = self._effect(session, track, end, keys)
        return self._found[keys]

    def in_force(self, session: Session, track: CostTrack, end: int) -> Effect | None:
        """The effect of the settings in force before frame `end`; None where they are the baseline itself."""
        sides = configurations.sides(session, end, None)
        if sides is not None and sides.before & configurations.alike(session, end):
            return None
        return self.last_change(session, track, end)

    def _effect(self, session: Session, track: CostTrack, end: int, keys: frozenset[str] | None) -> Effect | None:
        from profiler.analysis.comparison import same_speech as same
        from profiler.analysis.comparison.statistics import MIN_REPEATS

        if _waits(session, end, keys):
            return Effect("preparing")
        sides = configurations.sides(session, end, keys)
        if sides is None:
            return None
        # One side came after the other: what other programs took meanwhile is no doing of either.
        own = track.own_ns(0, track.n_frames)
        found = same.same_speech(session, own, end, sides.before, sides.after)
        if sides.in_turn:
            turns = self._in_turn(session, end)
            enough = turns is not None and turns.repeats >= MIN_REPEATS
            if turns is not None and (enough or going_on(session, end) is not None):
                found = replace(turns, decoded=found.decoded or turns.decoded)
        effect = _effect_of(found)
        if effect.before_ms is not None and effect.after_ms is not None:
            before, after = _divided(effect.before_ms, track, found.of_a), _divided(effect.after_ms, track, found.of_b)
            effect = replace(effect, before_parts=before, after_parts=after)
        if session.state != "recording":
            return replace(effect, missing=None)
        if effect.words:
            return effect
        again = bool(setting(session.configs[-1].tree, "repeat_on_change"))
        whole = any(
            u.done and u.reference is not None and sides.before.issuperset(u.epochs)
            for u in session.utterances
            if u.end_frame <= end
        )
        return replace(effect, follows=again, lacking=not whole)

    def _in_turn(self, session: Session, end: int) -> SameSpeech | None:
        """The arms of the A/B compared; None until both have had a turn. Each turn is looked at once."""
        from profiler.analysis.comparison import same_speech as same
        from profiler.analysis.comparison.arms import arms_of

        try:
            arms = arms_of(session)
        except BadInput:
            return None
        turns = sum(u.first_frame + u.n_frames <= end for arm in arms for u in arm.utterances)
        if (session.generation, turns) != self._turns[0]:
            self._turns = (session.generation, turns), same.in_turn(arms, end)
        return self._turns[1]


def arm_name(a: Settings, b: Settings) -> str:
    """The value in B of the one setting that differs from A (on, every 2nd, 16); "B" where several differ."""
    changed = differing(a, b)
    if len(changed) != 1:
        return "B"
    (key,) = changed
    value = b.get(key)
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    names = next((option.words for option in known_settings.options() if option.key == key), {})
    return tr(names[value]) if isinstance(value, int) and value in names else value_text(value)


def arm_names(session: Session, end: int) -> tuple[str, str]:
    """The values in A and B of the one setting that differs before frame `end`; empty texts where several differ."""
    epochs, known = epochs_of_arms(session), dict(configurations.up_to(session, end))
    if epochs is None or not set(epochs) <= known.keys():
        return "", ""
    a, b = (known[epoch] for epoch in epochs)
    return (arm_name(b, a), arm_name(a, b)) if len(differing(a, b)) == 1 else ("", "")


_effects: WeakKeyDictionary[Session, Effects] = WeakKeyDictionary()


def effects_of(session: Session) -> Effects:
    if session not in _effects:
        _effects[session] = Effects()
    return _effects[session]


def _effect_of(comparison: SameSpeech) -> Effect:
    from profiler.analysis.comparison.compare import A_FASTER, B_FASTER, NO_DIFFERENCE

    before, after, of_words = _words(comparison)
    ratio = comparison.ratio
    if ratio is None or comparison.a_ns is None or comparison.b_ns is None:
        return Effect("other speech", before=before, after=after, words_kind=of_words)
    kinds: dict[str, Kind] = {A_FASTER: "slower", B_FASTER: "faster", NO_DIFFERENCE: "no difference"}
    kind = kinds.get(comparison.verdict, "undecided")
    factor, low, high = (None if value is None else 1 / value for value in (ratio.ratio, ratio.high, ratio.low))
    a_ms, b_ms, turns = comparison.a_ns * 1e-6, comparison.b_ns * 1e-6, comparison.repeats
    missing = _missing(comparison) if kind == "undecided" else None
    return Effect(kind, factor, low, high, before, after, of_words, a_ms, b_ms, comparison.seconds, turns, missing)


def _divided(ms: float, track: CostTrack, stretches: Sequence[tuple[int, int]]) -> dict[str, float]:
    """A time per frame by category, as the own time of these frames is."""
    import numpy as np

    from profiler.analysis.categories import CATEGORIES, NOT_OWN

    totals = np.sum([track.total_ns(first, last) for first, last in stretches], axis=0)
    sums = dict(zip(CATEGORIES, totals.tolist(), strict=True))
    sums |= dict.fromkeys(NOT_OWN, 0.0)
    whole = sum(sums.values())
    return {name: ms * float(ns) / whole if whole > 0 else 0.0 for name, ns in sums.items()}


def _words(comparison: SameSpeech) -> tuple[ErrorCount, ErrorCount, str]:
    """Word errors of both sides, and whether those of B are more or fewer: by a bootstrap over utterances."""
    import numpy as np

    from profiler.analysis.comparison.same_speech import MIN_UNITS
    from profiler.analysis.comparison.statistics import DRAWS, bootstrap_interval

    counted_both = ((errors_of(a), errors_of(b)) for a, b in comparison.decoded)
    scored = [(a, b) for a, b in counted_both if a is not None and b is not None]
    before, after = total_of(a for a, _ in scored), total_of(b for _, b in scored)
    more = np.array([b.errors - a.errors for a, b in scored], np.float64)
    if scored and not more.any():
        return before, after, "same"
    if len(more) < MIN_UNITS:
        return before, after, "undecided"
    low, high = bootstrap_interval(more, lambda some: float(some.sum()), method="percentile", resamples=DRAWS)
    return before, after, "more" if low > 0 else "fewer" if high < 0 else "undecided"


def _missing(comparison: SameSpeech) -> tuple[int, float] | None:
    """About how many turns more would decide an A/B (intervals narrow with their root), and seconds; or None."""
    from profiler.analysis.comparison.compare import EQUAL
    from profiler.analysis.comparison.statistics import MIN_REPEATS

    ratio, turns = comparison.ratio, comparison.repeats
    if not turns or ratio is None or comparison.a_ns is None or comparison.b_ns is None:
        return None
    more = MIN_REPEATS - turns
    if ratio.low is not None and ratio.high is not None:
        half, away, bound = math.log(ratio.high / ratio.low) / 2, abs(math.log(ratio.ratio)), math.log(EQUAL[1])
        room = max(away, bound - away)
        more = math.ceil(turns * ((half / room) ** 2 - 1))
    more = min(max(more, 1), MOST_TURNS)
    each_s = comparison.seconds / FRAME_S * (comparison.a_ns + comparison.b_ns) * 1e-9
    return more, more * each_s


def _waits(session: Session, end: int, keys: frozenset[str] | None) -> bool:
    """Whether a change of `keys` was requested and is not applied yet."""
    given_up = [m.asked_frame for m in session.markers if m.kind == "error"]
    for marker in session.markers:
        if marker.kind != "option" or marker.asked_frame >= end or marker.key in COURSE:
            continue
        if keys is not None and marker.key not in keys:
            continue
        acts = marker.applied_frame is not None and marker.applied_frame < end
        if not acts and not any(marker.asked_frame <= frame < end for frame in given_up):
            return session.state == "recording" or marker.applied_frame is not None
    return False
