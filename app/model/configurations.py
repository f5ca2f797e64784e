"""The configurations of a session by epoch, and which of them to compare; what only paces or loops a run is ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from pipelines.config import COURSE
from profiler.session.facts import flatten

if TYPE_CHECKING:
    from profiler.session.model import ConfigEpoch
    from profiler.session.reader import Session


NEVER = 1 << 62  # A frame that no session reaches


def settings_before(session: Session, end: int) -> ConfigEpoch | None:
    """The settings in force at the last frame before `end`."""
    return next((c for c in reversed(session.configs) if c.first_frame < max(end, 1)), None)


class Sides(NamedTuple):
    """Epochs that ran with the settings before and after, and whether an A/B decodes them in turn."""

    before: frozenset[int]
    after: frozenset[int]
    in_turn: bool


Settings = Mapping[str, object]


_known: WeakKeyDictionary[Session, dict[int, Settings]] = WeakKeyDictionary()


def up_to(session: Session, end: int) -> list[tuple[int, Settings]]:
    """Epochs and settings as they came into force before frame `end`, in order; pace and loop are no settings."""
    known = _known.setdefault(session, {})
    rows = [row for row in session.configs if row.first_frame < max(end, 1)]
    for row in rows:
        if row.epoch not in known:
            values = flatten(row.tree)
            known[row.epoch] = {k: v for k, v in values if k not in COURSE and not isinstance(v, Mapping)}
    return [(row.epoch, known[row.epoch]) for row in rows]


def settings_of_arm(session: Session, end: int) -> Settings:
    """What the arm of an A/B that decoded frame `end` − 1 has and the other has not; empty outside an A/B."""
    going, found = going_on(session, end), up_to(session, end)
    if going is None or not found or found[-1][0] not in going.epochs:
        return {}
    epoch, here = found[-1]
    other = dict(found).get(sum(going.epochs) - epoch, here)
    return {key: value for key, value in here.items() if other.get(key) != value}


def every(session: Session) -> list[tuple[frozenset[int], Settings]]:
    """Every configuration of the session with its epochs, in the order in which they first acted."""
    rows = up_to(session, NEVER)
    found: list[tuple[frozenset[int], Settings]] = []
    for _, settings in rows:
        if all(settings != known for _, known in found):
            found.append((_epochs(rows, settings), settings))
    return found


def since(session: Session, end: int) -> int:
    """The frame from which the settings in force before `end` have been so without a break."""
    rows = [row for row in session.configs if row.first_frame < max(end, 1)]
    both = zip(rows[1:], pairwise(settings for _, settings in up_to(session, end)), strict=True)
    return max((int(row.first_frame) for row, (before, these) in both if these != before), default=0)


def within(session: Session, first: int, last: int) -> int:
    """How many different settings were in force in frames [first, last): at least one."""
    rows = list(zip(session.configs, up_to(session, NEVER), strict=True))
    begun = [number for number, (row, _) in enumerate(rows) if row.first_frame <= first]
    found: list[Settings] = []
    for row, (_, settings) in rows[begun[-1] if begun else 0 :]:
        if row.first_frame < max(last, first + 1) and settings not in found:
            found.append(settings)
    return max(1, len(found))


def alike(session: Session, end: int) -> frozenset[int]:
    """Epochs before `end` with the settings in force there."""
    rows = up_to(session, end)
    return _epochs(rows, rows[-1][1]) if rows else frozenset()


def before(session: Session, end: int, keys: Collection[str]) -> dict[str, bool | int | float | str] | None:
    """Of the last settings that differ from those in force in nothing but `keys`: what differs."""
    rows = up_to(session, end)
    for _, settings in reversed(rows[:-1]):
        changed = differing(settings, rows[-1][1])
        if changed and changed <= set(keys):
            values = {key: settings.get(key) for key in sorted(changed)}
            return {k: v for k, v in values.items() if isinstance(v, bool | int | float | str)}
    return None


def sides(session: Session, end: int, keys: Collection[str] | None) -> Sides | None:
    """The epochs to compare: before and after the last change of `keys` alone (None: of any settings), or None."""
    rows, going = up_to(session, end), going_on(session, end)
    by_epoch = dict(rows)
    if going is not None and not set(going.epochs) <= by_epoch.keys():
        # One of them has not had its turn: until then, what was known before.
        rows, going = up_to(session, going.start), None
    if not rows:
        return None
    now = rows[-1][1]
    earlier = rows[:-1]
    if going is not None:
        other, now = (by_epoch[epoch] for epoch in going.epochs)
        earlier = [(going.epochs[0], other)]
    for _, settings in reversed(earlier):
        changed = differing(settings, now)
        if changed and (keys is None or changed <= set(keys)):
            before, after, arms = _epochs(rows, settings), _epochs(rows, now), epochs_of_arms(session)
            return Sides(before, after, arms is not None and arms[0] in before and arms[1] in after)
    return None


class GoingOn(NamedTuple):
    """An A/B at the cursor: where it began, and the epochs of its arms."""

    start: int
    epochs: tuple[int, int]


def going_on(session: Session, end: int) -> GoingOn | None:
    """The A/B within which frame `end` lies."""
    about = session.meta.get("ab") or {}
    start, over, epochs = about.get("measured_from"), about.get("ended"), epochs_of_arms(session)
    if epochs is None or start is None or end <= start or (over is not None and end > over):
        return None
    return GoingOn(start, epochs)


def arm_of(session: Session, end: int) -> str:
    """The arm of an A/B, A or B, that frame `end` − 1 is of; empty outside one."""
    going, row = going_on(session, end), settings_before(session, end)
    if going is None or row is None or row.epoch not in going.epochs:
        return ""
    return "AB"[going.epochs.index(row.epoch)]


class Turn(NamedTuple):
    """Frames [first, last) that an arm of an A/B decoded; `number`: which turn of it. `text`: arm, and what it has."""

    first: int
    last: int
    arm: str
    number: int
    text: str


def turns_of(session: Session, end: int, names: tuple[str, str]) -> list[Turn]:
    """The turns of an A/B before frame `end`, in order; `names`: what the arms A and B have. Empty without one."""
    about, epochs = session.meta.get("ab") or {}, epochs_of_arms(session)
    start, over = about.get("measured_from"), about.get("ended")
    if epochs is None or start is None:
        return []
    end = end if over is None else min(end, over)
    rows = [row for row in session.configs if row.first_frame < end]
    ends = [*(row.first_frame for row in rows[1:]), end]
    found: list[Turn] = []
    for row, last in zip(rows, ends, strict=True):
        if row.epoch not in epochs or last <= max(row.first_frame, start):
            continue
        arm = epochs.index(row.epoch)
        number = 1 + sum(turn.arm == "AB"[arm] for turn in found)
        text = f"{'AB'[arm]} {names[arm]}".strip() + (f" · {number}" if number > 1 else "")
        found.append(Turn(max(row.first_frame, start), last, "AB"[arm], number, text))
    return found


def is_ab(session: Session) -> bool:
    return epochs_of_arms(session) is not None and not turns_within(session)


def turns_within(session: Session) -> frozenset[int]:
    about = session.meta.get("ab") or {}
    return frozenset(epochs_of_arms(session) or ()) if "ended" in about else frozenset()


def epochs_of_arms(session: Session) -> tuple[int, int] | None:
    found = [arm["epoch"] for arm in (session.meta.get("ab") or {}).get("arms", ()) if "epoch" in arm]
    return (found[0], found[1]) if len(found) == 2 else None


def _epochs(rows: Iterable[tuple[int, Settings]], wanted: Settings) -> frozenset[int]:
    return frozenset(epoch for epoch, settings in rows if settings == wanted)


def differing(a: Settings, b: Settings) -> set[str]:
    return {key for key in {*a, *b} if a.get(key) != b.get(key)}
