"""What a report says beyond the breakdown: percentiles of stages, the slowest frames and the words that took longest.

As JSON values by key; `report` adds them to those of `show`, and the Markdown report has them as tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from profiler.frames import FRAME_S

if TYPE_CHECKING:
    from app.model.report import Tree
    from app.views.word_costs_model import WordCost
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

ROWS: Final = 10
"""Frames and words that a report lists; it says of how many."""


def details(session: Session, track: CostTrack) -> Tree:
    """Return `percentiles`, `slowest_frames` and `slowest_words` of a whole session; `track`: up to date."""
    from app.model.statistics import QUANTILES, WHOLE, stage_names, statistics, word_at
    from app.views.word_costs_model import TOKENS, word_costs

    frames = int(track.n_frames)
    every = (statistics(session, track, name, 0, frames) for name in stage_names(session, track))
    known = [one for one in every if one is not None]
    tokens = track.work_rows.get(TOKENS)
    slowest = [
        (frame, ms)
        for one in known
        if one.name == WHOLE
        for frame, ms in zip(one.slowest.tolist(), one.slowest_ms.tolist(), strict=True)
    ]
    return {
        "percentiles": [
            {
                "name": one.name,
                "frames": one.frames,
                "mean_ms": one.mean,
                **{f"{name}_ms": ms for name, ms in zip(QUANTILES, one.quantiles, strict=True)},
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
        "slowest_words": slowest_words(word_costs(session, track, frames)[0], ROWS),
    }


def slowest_words(words: Sequence[WordCost], most: int) -> Tree:
    """The `most` words that took longest, and of how many."""
    return {
        "of": len(words),
        "rows": [
            {
                "word": word.word,
                "kind": word.kind,
                "reference": word.reference,
                "utterance": word.utterance,
                "at_s": word.first_frame * FRAME_S,
                "audio_s": word.frames * FRAME_S,
                "ms": word.ms,
                "rtf": word.rtf,
                "tokens_per_frame": word.tokens,
                "senones_per_frame": word.senones,
            }
            for word in sorted(words, key=lambda word: -word.ms)[: max(0, most)]
        ],
    }
