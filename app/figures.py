"""The figures beside the charts, read from a snapshot: RTF, WER, and what the recorder itself cost.

Pure functions over the snapshot; a figure that cannot be known is None and is shown blank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.time_axis import FRAME_S

if TYPE_CHECKING:
    from app.playhead import Snapshot

NOW_S = 3.0
"""While following, the large RTF is that of the last three seconds of audio: a toggle shows at once."""

FRAME_NS = FRAME_S * 1e9


@dataclass(frozen=True)
class Figures:
    """RTF of ``scope`` and of all that is shown; word errors of the utterances finished by then."""

    rtf: float | None
    scope: str
    rtf_whole: float | None
    errors: int | None
    words: int | None

    @property
    def wer(self) -> float | None:
        """Word error rate, 0…; None without reference words."""
        if self.errors is None or not self.words:
            return None
        return self.errors / self.words


@dataclass(frozen=True)
class RecorderCost:
    """What measuring cost: per span, in all, and as a share of the run's wall time."""

    ns_per_span: float | None
    spans: int
    dropped: int
    share: float | None


def _rtf(snapshot: Snapshot, first: int, last: int) -> float | None:
    first, last = max(0, first), min(last, snapshot.cursor_frame)
    if last <= first:
        return None
    wall = float(snapshot.track.wall_ns[first:last].sum())
    return wall / ((last - first) * FRAME_NS)


def figures(snapshot: Snapshot) -> Figures:
    """Return the large figures for what is shown."""
    end = snapshot.cursor_frame
    whole = _rtf(snapshot, 0, end)
    selected = snapshot.axis.selected_frames
    if selected is not None:
        rtf, scope = _rtf(snapshot, *selected), "selection"
    elif snapshot.live or end < snapshot.track.n_frames:
        rtf, scope = _rtf(snapshot, end - round(NOW_S / FRAME_S), end), "last 3 s"
    else:
        rtf, scope = whole, "whole run"
    errors = words = None
    for utterance in snapshot.session.utterances:
        done = utterance.first_frame + utterance.n_frames <= end
        if not done or utterance.errors is None or not utterance.reference_words:
            continue
        if len(set(utterance.epochs)) > 1:
            continue  # decoded under more than one configuration: belongs to none of them
        errors = (errors or 0) + utterance.errors
        words = (words or 0) + utterance.reference_words
    return Figures(rtf, scope, whole, errors, words)


def recorder_cost(snapshot: Snapshot) -> RecorderCost:
    """Return the recorder's own cost as the session tells it."""
    told: dict[str, Any] = dict(snapshot.session.meta.get("recorder") or {})
    spans = len(snapshot.session.spans)
    per_span = told.get("ns_per_span")
    wall = float(snapshot.track.wall_ns[: snapshot.track.n_frames].sum())
    share = told.get("perturbation")
    if share is None and per_span is not None and wall > 0:
        share = float(per_span) * spans / wall
    lanes = snapshot.session.lanes.values()
    return RecorderCost(
        ns_per_span=None if per_span is None else float(per_span),
        spans=spans,
        dropped=sum(lane.dropped for lane in lanes),
        share=None if share is None else float(share),
    )


def clock_text(seconds: float, *, tenths: bool = False) -> str:
    """Return 41.2 as 0:41 (or 0:41.2), 3700 as 1:01:40."""
    seconds = max(0.0, seconds)
    whole = int(seconds)
    tail = f".{int(seconds * 10) % 10}" if tenths else ""
    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{rest:02d}{tail}"
    return f"{minutes}:{rest:02d}{tail}"


def rtf_text(rtf: float | None) -> str:
    """Return an RTF with three significant figures or so; an en dash when unknown."""
    if rtf is None:
        return "–"
    return f"{rtf:.3f}" if rtf < 1 else f"{rtf:.2f}"
