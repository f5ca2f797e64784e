"""The scope: the frames, and with them the settings, that every figure of the desk is of, and how it is called.

Apart from `app.model.configurations`, which the command line reads without Qt.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication

from app.model.configurations import arm_of, configurations_of, is_ab
from app.model.time_axis import CHANGE, LIVE, RANGE, WHOLE, Kind
from profiler.clock import FRAME_S
from profiler.plain import clock, counted, one_line

if TYPE_CHECKING:
    from profiler.session.reader import Session

tr = partial(QCoreApplication.translate, "Scope")

LIVE_S: Final = 3.0
"""Seconds of audio before the cursor that the scope LIVE is of."""


@dataclass(frozen=True)
class Scope:
    """Frames [first, last), of which only those before `end`, the cursor, are known.

    Attributes:
        kind: why these: LIVE, CHANGE (since the settings changed last), RANGE (selected) or WHOLE.
        first: first frame.
        last: exclusive end, at most `end`.
        end: the cursor.
        change: text of the change that it begins with, of the kind CHANGE; empty for one without a name.
        configurations: how many different settings were in force in it.
    """

    kind: Kind
    first: int
    last: int
    end: int
    change: str = ""
    configurations: int = 1

    @property
    def frames(self) -> int:
        return max(0, self.last - self.first)

    @property
    def text(self) -> str:
        """What it is of, in a few words: what stands on the chip, and nowhere else."""
        first, last = self.first * FRAME_S, self.last * FRAME_S
        digits = 2 if last - first < 10 else 1
        found = {
            LIVE: tr("last {0} s").format(f"{LIVE_S:.0f}"),
            CHANGE: tr("since {0}").format(self.change or clock(first, 1)),
            RANGE: tr("{0} – {1}").format(clock(first, digits), clock(last, digits)),
            WHOLE: tr("whole run"),
        }[self.kind]
        return " · ".join(filter(None, (found, self.several)))

    @property
    def several(self) -> str:
        return counted(self.configurations, "", tr("settings")).strip() if self.configurations > 1 else ""

    @property
    def extent(self) -> str:
        first, last = (clock(frame * FRAME_S, 2) for frame in (self.first, self.last))
        text = tr("From {0} to {1},")
        return text.format(first, last)


def scope_of(session: Session, end: int, chosen: Kind | None, selected: tuple[int, int] | None) -> Scope:
    """The scope before frame `end`: the frames `selected`, or else of the kind `chosen`.

    None chosen: since the last change of the settings, and without one the whole run.
    """
    known = configurations_of(session)
    change = ""
    kind: Kind = RANGE if selected is not None else chosen or (WHOLE if is_ab(session) else CHANGE)
    first, last = 0, end
    if selected is not None:
        first, last = (min(max(frame, 0), end) for frame in selected)
    elif kind == LIVE:
        first = max(0, end - round(LIVE_S / FRAME_S))
    elif kind == CHANGE:
        first = known.since(session, end)
        kind = CHANGE if first > 0 else WHOLE
        change = _change(session, first) if first > 0 else ""
    return Scope(kind, first, last, end, change, known.within(session, first, last))


def _change(session: Session, first: int) -> str:
    """What changed at a frame: the arm of an A/B that began, or the text of the marker; empty without either."""
    if arm := arm_of(session, first + 1):
        return tr("A/B, arm {0}").format(arm)
    texts = (m.text for m in reversed(session.markers) if m.applied_frame == first)
    return one_line(next(texts, ""))
