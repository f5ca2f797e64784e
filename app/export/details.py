"""What a report says beyond the breakdown: percentiles of stages, the slowest frames and the words that took longest.

As JSON values by key; `report` adds them to those of `show`, and the Markdown report has them as tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from profiler.frames import FRAME_S

if TYPE_CHECKING:
    from app.model.report import Tree
    from profiler.session.reader import Session

ROWS: Final = 10
"""Frames and words that a report lists; it says of how many."""

QUANTILE_KEYS: Final = ("p50_ms", "p90_ms", "p99_ms")


def details(session: Session) -> Tree:
    """Return `percentiles`, `slowest_frames` and `slowest_words` of a whole session."""
    from app.model.statistics import WHOLE, stage_names, statistics, word_at
    from app.views.word_costs_model import TOKENS, word_costs
    from profiler.analysis.track import CostTrack

    track = CostTrack()
    track.update(session)
    frames = int(track.n_frames)
    every = (statistics(session, track, name, 0, frames) for name in stage_names(session))
    known = [one for one in every if one is not None]
    tokens = track.work_rows.get(TOKENS)
    whole = next((one for one in known if one.name == WHOLE), None)
    slowest = [] if whole is None else list(zip(whole.slowest.tolist(), whole.slowest_ms.tolist(), strict=True))
    words, _ = word_costs(session, track, frames)
    return {
        "percentiles": [
            {
                "name": one.name,
                "frames": one.frames,
                "mean_ms": one.mean,
                **dict(zip(QUANTILE_KEYS, one.quantiles, strict=True)),
                "highest_ms": one.highest,
                "highest_frame": int(one.slowest[0]),
            }
            for one in known
        ],
        "slowest_frames": {
            "of": frames,
            "rows": [
                {
                    "frame": frame,
                    "at_s": frame * FRAME_S,
                    "ms": ms,
                    "word": word_at(session, frame),
                    "tokens": None if tokens is None else float(tokens[frame : frame + 1][0]),
                }
                for frame, ms in slowest[:ROWS]
            ],
        },
        "slowest_words": {
            "of": len(words),
            "rows": [
                {
                    "word": word.word,
                    "at_s": word.first_frame * FRAME_S,
                    "audio_s": word.frames * FRAME_S,
                    "ms": word.ms,
                    "rtf": word.rtf,
                    "tokens_per_frame": word.tokens,
                    "senones_per_frame": word.senones,
                    "error": word.kind,
                    "reference": word.reference,
                    "utterance": word.utterance,
                }
                for word in sorted(words, key=lambda word: -word.ms)[:ROWS]
            ],
        },
    }
