"""What figures have in common wherever they are shown: how an RTF is written, and the recorder's own cost."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from profiler.analysis.own_cost import RecorderCost
    from profiler.analysis.track import CostTrack
    from profiler.arrays import F64
    from profiler.session.reader import Session

LEAST_RTF = 0.0005  # Smaller ones would be shown as 0.000

LOADED_LATER = (
    "app.model.desk_snapshot",
    "app.model.alignment",
    "profiler.analysis.comparison.same_speech",
    "profiler.analysis.own_cost",
)
"""What figures and effects are worked out with."""


def load() -> None:
    for name in LOADED_LATER:
        import_module(name)


def counts_steps(session: Session) -> bool:
    from profiler.analysis import utterances

    return utterances.counts_steps(session)


def own_ns(track: CostTrack, first: int, last: int) -> F64:
    """Time of each of frames [first, last) without what other programs took, float64 [frames] in ns."""
    from profiler.analysis.categories import CATEGORIES, NOT_OWN

    rows, own = track.category_rows, track.wall_row[first:last]
    for name in NOT_OWN:
        own = own - rows[CATEGORIES.index(name)][first:last]
    return own


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


def rate_name(rate: float | None, cer: float | None) -> str:
    """What an error rate is called, where `cer` is that of the references without spaces between words; None: none."""
    return "CER" if cer is not None and cer == rate else "WER"
