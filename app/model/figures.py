"""Figures next to the charts, computed from a snapshot: RTF, WER, and the recorder's own cost.

Pure functions over the snapshot; an unknown figure is None and is shown blank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from profiler.frames import FRAME_S

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from pipelines.audio.word_errors import ErrorCount, Transcribed
    from profiler.analysis.own_cost import RecorderCost
    from profiler.session.reader import Session

NOW_S = 3.0
"""While following, the large RTF is that of the last three seconds of audio: a toggle shows at once."""


LEAST_RTF = 0.0005  # Smaller ones would be shown as 0.000

LOADED_LATER = (
    "app.model.alignment",
    "profiler.analysis.comparison.same_speech",
    "profiler.analysis.own_cost",
)
"""What figures and effects are worked out with."""


def load() -> None:
    """Import these slow modules early, before a session is opened or a setting is changed."""
    for name in LOADED_LATER:
        import_module(name)


@dataclass(frozen=True)
class Figures:
    """RTF of ``scope`` and of all that is shown; word errors of what is finished under the settings in force, or of the
    selection, and how many of those utterances have a transcript.

    `before`: word errors of the same utterances under the settings before these, None where there were no others or
    where some were not decoded then, which is the case for `unlike` of the `scored` utterances.
    """

    rtf: float | None
    scope: str
    rtf_whole: float | None
    errors: ErrorCount
    transcribed: Transcribed
    of_selection: bool = False
    before: ErrorCount | None = None
    unlike: int = 0
    scored: int = 0


def counts_steps(session: Session) -> bool:
    """Whether its frames are the steps of a lab, which stand for no audio."""
    from profiler.analysis import utterances

    return utterances.counts_steps(session)


def _rtf(snapshot: Snapshot, first: int, last: int) -> float | None:
    from profiler.analysis.utterances import audio_seconds, real_time_factor

    first, last = max(0, first), min(last, snapshot.cursor_frame)
    if last <= first or counts_steps(snapshot.session):
        return None
    wall = snapshot.track.wall_row.total(first, last)
    return real_time_factor(wall, audio_seconds(snapshot.session.utterances, first, last))


def figures(snapshot: Snapshot) -> Figures:
    """Return the large figures for what is shown."""
    from app.model.alignment import errors_within
    from app.model.effects import effects_of
    from pipelines.audio.word_errors import last_of_each, total_of, transcribed

    end = snapshot.cursor_frame
    whole = _rtf(snapshot, 0, end)
    selected = snapshot.axis.selected_frames
    arm = None if snapshot.live else _arm(snapshot)
    if selected is not None:
        rtf, scope = _rtf(snapshot, *selected), "selection"
    elif snapshot.live or end < snapshot.track.n_frames:
        rtf, scope = _rtf(snapshot, end - round(NOW_S / FRAME_S), end), "last 3 s"
    elif arm is not None:
        rtf, scope = arm
    else:
        rtf, scope = whole, "whole run"
    done = [u for u in snapshot.session.utterances if u.end_frame <= end]
    if selected is not None:
        within = [u for u in done if u.first_frame < selected[1] and u.end_frame > selected[0]]
        errors = errors_within(done, *selected)
        return Figures(rtf, scope, whole, errors, transcribed(within), of_selection=True)
    # What other settings made wrong says nothing of these.
    now, earlier = effects_of(snapshot.session).configurations.scored(snapshot.session, end)
    under_these = [u for u in done if now.issuperset(u.epochs)]
    counts = last_of_each(under_these)
    known = last_of_each(u for u in done if u.epochs and earlier.issuperset(u.epochs))
    unlike = sum(which not in known for which in counts) if earlier else 0
    comparable = bool(counts) and bool(earlier) and not unlike
    return Figures(
        rtf,
        scope,
        whole,
        total_of(counts.values()),
        transcribed(under_these),
        before=total_of(known[which] for which in counts) if comparable else None,
        unlike=unlike,
        scored=len(counts),
    )


def _arm(snapshot: Snapshot) -> tuple[float | None, str] | None:
    """RTF of the arm at the cursor and its name where all of a session is an A/B, without the warm-up; else None."""
    from app.model.configurations import going_on
    from profiler.analysis.utterances import real_time_factor

    session, end = snapshot.session, snapshot.cursor_frame
    going = going_on(session, end)
    over = [u for u in session.utterances if u.end_frame <= end]
    if going is None or not over or over[-1].epochs not in {(epoch,) for epoch in going.epochs}:
        return None
    mine = [u for u in over if u.epochs == over[-1].epochs and u.first_frame >= going.start]
    row = snapshot.track.wall_row
    wall = sum(row.total(u.first_frame, u.end_frame) for u in mine)
    rtf = real_time_factor(wall, sum(u.audio_s for u in mine))
    return rtf, ("arm A", "arm B")[going.epochs.index(over[-1].epochs[0])]


def recorder_cost(snapshot: Snapshot) -> RecorderCost:
    """Return the recorder's own cost, of the whole session as far as it has come."""
    from profiler.analysis import own_cost

    return own_cost.recorder_cost(snapshot.session, snapshot.track)


def rtf_text(rtf: float | None) -> str:
    """An RTF with three decimals, two from 1 on; "<0.001" is not none; an en dash where it is unknown."""
    if rtf is None or not math.isfinite(rtf) or rtf <= 0:
        return "–"
    if rtf < LEAST_RTF:
        return "<0.001"
    return f"{rtf:.3f}" if rtf < 1 else f"{rtf:.2f}"
