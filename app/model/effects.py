"""The effect of a change of settings on time and words.

The settings in force are compared with the last ones before them that differ in no more than was changed, on speech
that both decoded (`profiler.analysis.comparison.same_speech`); during an A/B, its two arms are compared.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal
from weakref import WeakKeyDictionary

from PySide6.QtCore import QCoreApplication

from app.model.configurations import Configurations, Settings, differing, going_on
from pipelines import config as known_settings
from pipelines.audio.word_errors import ErrorCount, word_errors
from pipelines.config import COURSE, value_text
from profiler.errors import BadInput
from profiler.plain import counted
from profiler.session.facts import setting

if TYPE_CHECKING:
    from profiler.analysis.comparison.same_speech import SameSpeech
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session


tr = partial(QCoreApplication.translate, "effects")


Kind = Literal["preparing", "other speech", "undecided", "no difference", "faster", "slower"]

POINT: Final = 0.01  # A point of word error rate

UNSCORED: Final = ErrorCount()

TENFOLD: Final = 9.95
"""A factor is given with two significant figures or so; from here on without decimals …"""

NEAR: Final = 1.095  # … and below with two of them: 1.04× faster


@dataclass(frozen=True)
class Effect:
    """The effect of changing to the settings in force.

    `factor`: time before / time after with its interval `low`, `high`; None where no speech is shared. `before`,
    `after`: word errors over the same utterances. `seconds`: of speech timed. `turns`: of the A/B, 0 without one.
    `baseline`: ranges of frames that the time before is of. `follows`: the speech being decoded brings what is missing;
    `lacking`: only an A/B brings word errors. `arm`: of an A/B, what B has that A has not.
    """

    kind: Kind
    factor: float | None = None
    low: float | None = None
    high: float | None = None
    before: ErrorCount = UNSCORED
    after: ErrorCount = UNSCORED
    seconds: float = 0.0
    turns: int = 0
    baseline: tuple[tuple[int, int], ...] = ()
    follows: bool = False
    lacking: bool = False
    arm: str = ""

    @property
    def decided(self) -> bool:
        """Whether the interval says which is faster, or that they are equal."""
        return self.kind in ("faster", "slower", "no difference")

    @property
    def points(self) -> float | None:
        """Change of the word error rate in points; None where no scored utterance is shared."""
        if self.before.rate is None or self.after.rate is None:
            return None
        return (self.after.rate - self.before.rate) / POINT

    @property
    def headline(self) -> str:
        """What became of the time, in a few words; for other speech, only that."""
        if self.kind == "preparing":
            return tr("preparing …")
        if self.factor is None:
            return tr("no comparison yet")
        if self.kind == "no difference":
            return tr("no difference")
        if not self.arm:
            return self._times(self.factor)
        spread = ""
        if self.low and self.high:
            ends = (self.low, self.high) if self.factor >= 1 else (1 / self.high, 1 / self.low)
            spread = " ({:.2f}–{:.2f})".format(*ends)
        return tr("{0} is {1}{2}").format(self.arm, self._times(self.factor, exact=True), spread)

    @property
    def brief(self) -> str:
        """The headline without the interval of an A/B, for where there is no room for it."""
        if not self.arm or self.factor is None or self.kind == "no difference":
            return self.headline
        return f"{self.arm}: {self._times(self.factor)}"

    def _times(self, factor: float, exact: bool = False) -> str:
        """A factor in words: 1.5× slower."""
        size = factor if factor >= 1 else 1 / factor
        decimals = 0 if size >= TENFOLD else 2 if size < NEAR or exact else 1
        times = f"{size:.{decimals}f}"
        return (tr("{0}× faster") if factor >= 1 else tr("{0}× slower")).format(times)

    @property
    def change(self) -> str:
        """What became of the words, without how many they are: +1.0 point."""
        return self.words.partition(" (")[0]

    @property
    def words(self) -> str:
        """What became of the words: +1.0 point (n = 81 words); empty before an utterance is shared."""
        if self.points is None:
            return ""
        size = f"{abs(self.points):.1f}"
        sign = "±" if size == "0.0" else "+" if self.points > 0 else "\N{MINUS SIGN}"
        unit = tr("point") if size == "1.0" else tr("points")
        words = counted(self.after.words, tr("word"), tr("words"))
        return tr("{0} {1} (n = {2})").format(sign + size, unit, words)

    @property
    def remark(self) -> str:
        """Text after the headline: turns of an undecided A/B, the word error rates, or what is still awaited."""
        if self.turns and not self.decided:
            return self._turns_each
        if self.kind == "preparing" or self.points is not None:
            return self.words
        if self.factor is None:
            return tr("same speech comes next") if self.follows else ""
        if self.lacking:
            return tr("words: by A/B")
        return tr("words follow") if self.follows else ""

    @property
    def shorter(self) -> tuple[str, ...]:
        """What stands for `remark` where it has no room: +1.0 point (n = 81), +1.0 point, or nothing."""
        if not self.words or self.remark != self.words:
            return ("",)
        return f"{self.change} (n = {self.after.words})", self.change, ""

    @property
    def _turns_each(self) -> str:
        return tr("A/B: {0} each").format(counted(self.turns, tr("turn"), tr("turns")))

    @property
    def text(self) -> str:
        """Headline and remark, as one line."""
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
        if self.factor is not None:
            same = tr("Time before / time after, over {0} s of speech decoded both ways: {1}")
            span = f"{self.factor:.2f}"
            if self.low is not None and self.high is not None:
                span = tr("{0}, 95 % interval {1} to {2}").format(span, f"{self.low:.2f}", f"{self.high:.2f}")
            parts.append(same.format(f"{self.seconds:.1f}", span))
        if self.turns:
            parts.append(self._turns_each)
        if self.points is not None:
            errors = tr("Word errors over the same utterances: {0} before, {1} after, of {2}")
            words = counted(self.after.words, tr("word"), tr("words"))
            parts.append(errors.format(self.before.errors, self.after.errors, words))
        elif self.lacking:
            parts.append(
                tr(
                    "No utterance was decoded to its end before the change, so there are no word errors to compare; "
                    "an A/B decodes one both ways."
                )
            )
        elif self.follows:
            parts.append(tr("What was decoded last comes again; words count at its end."))
        return "\n".join(parts)


class Effects:
    """Effects within one session, computed again when there is more to go by."""

    def __init__(self) -> None:
        self._state: tuple[object, ...] = ()
        self._found: dict[frozenset[str] | None, Effect | None] = {}
        self.configurations = Configurations()

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
        sides = self.configurations.sides(session, end, None)
        if sides is not None and sides.before & self.configurations.alike(session, end):
            return None
        return self.last_change(session, track, end)

    def _effect(self, session: Session, track: CostTrack, end: int, keys: frozenset[str] | None) -> Effect | None:
        from profiler.analysis.categories import CATEGORIES, NOT_OWN
        from profiler.analysis.comparison import same_speech as same
        from profiler.analysis.comparison.arms import arms_of
        from profiler.analysis.comparison.statistics import MIN_REPEATS

        if _waits(session, end, keys):
            return Effect("preparing")
        sides = self.configurations.sides(session, end, keys)
        if sides is None:
            return None
        # One side came after the other: what other programs took meanwhile is no doing of either.
        own = track.wall_ns - track.categories_ns[:, [CATEGORIES.index(name) for name in NOT_OWN]].sum(axis=1)
        found = same.same_speech(session, own, end, sides.before, sides.after)
        if sides.in_turn:
            with suppress(BadInput):  # until both arms have had a turn
                turns = same.in_turn(session, track.wall_ns, end, arms_of(session))
                enough = turns is not None and turns.repeats >= MIN_REPEATS
                if turns is not None and (enough or going_on(session, end) is not None):
                    found = replace(turns, decoded=found.decoded)
        effect = _effect_of(found)
        if found.repeats:
            of = dict(self.configurations.up_to(session, end))
            effect = replace(effect, arm=arm_name(of[min(sides.before)], of[min(sides.after)]))
        if session.state != "recording" or effect.points is not None:
            return effect
        again = bool(setting(session.configs[-1].tree, "repeat_on_change"))
        whole = any(
            u.done and u.reference is not None and sides.before.issuperset(u.epochs)
            for u in session.utterances
            if u.end_frame <= end
        )
        return replace(effect, follows=again, lacking=not whole)


def arm_name(a: Settings, b: Settings) -> str:
    """What B of an A/B has that A has not, where it is one setting: on, every 2nd, 16; else its name."""
    changed = differing(a, b)
    if len(changed) != 1:
        return "B"
    (key,) = changed
    value = b.get(key)
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    names = {
        value: name for option in known_settings.options() if option.key == key for value, name in option.words.items()
    }
    return tr(names[value]) if isinstance(value, int) and value in names else value_text(value)


_effects: WeakKeyDictionary[Session, Effects] = WeakKeyDictionary()


def effects_of(session: Session) -> Effects:
    """The effects within a session: the same for all who show them."""
    if session not in _effects:
        _effects[session] = Effects()
    return _effects[session]


def _effect_of(comparison: SameSpeech) -> Effect:
    from profiler.analysis.comparison.compare import A_FASTER, B_FASTER, NO_DIFFERENCE

    before, after = (
        (word_errors(side) for side in zip(*comparison.decoded, strict=True))
        if comparison.decoded
        else (UNSCORED, UNSCORED)
    )
    ratio = comparison.ratio
    if ratio is None:
        return Effect("other speech", before=before, after=after)
    kinds: dict[str, Kind] = {
        A_FASTER: "slower",
        B_FASTER: "faster",
        NO_DIFFERENCE: "no difference",
    }
    kind = kinds.get(comparison.verdict, "undecided")
    factor, low, high = (None if value is None else 1 / value for value in (ratio.ratio, ratio.high, ratio.low))
    return Effect(kind, factor, low, high, before, after, comparison.seconds, comparison.repeats, comparison.baseline)


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
