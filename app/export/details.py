"""What a report says beyond the breakdown: percentiles, the slowest frames, the longest words, and confused words.

As JSON values by key; `report` adds them to those of `show`, and the Markdown report has them as tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from profiler.clock import FRAME_S

if TYPE_CHECKING:
    from app.model.report import Tree
    from app.views.word_costs_model import Confusion, WordCost
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

ROWS: Final = 10
"""Frames, words and pairs of words that a report lists; it says of how many."""


def details(session: Session, track: CostTrack, selected: tuple[int, int] | None = None) -> Tree:
    """`percentiles`, `slowest_frames`, `slowest_words` and `confusions`; `track`: up to date.

    `selected`: frames [first, last) that they are of; all if None.
    """
    from app.model.statistics import QUANTILES, WHOLE, stage_names, statistics, word_at
    from app.views.word_costs_model import TOKENS, confusions, word_costs

    frames = int(track.n_frames)
    first, last = selected or (0, frames)
    last = min(last, frames)
    every = (statistics(session, track, name, first, last) for name in stage_names(session, track))
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
            "of": last - first,
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
        "slowest_words": slowest_words(word_costs(session, track, frames, selected)[0], ROWS),
        "confusions": most_confused(confusions(session, track, frames, selected)[0], ROWS),
    }


def most_confused(pairs: Sequence[Confusion], most: int) -> Tree:
    """The `most` frequent of pairs in that order, of how many pairs, and of how many errors."""
    return {
        "of": len(pairs),
        "errors": sum(pair.count for pair in pairs),
        "rows": [
            {
                "reference": pair.reference,
                "hypothesis": pair.hypothesis,
                "count": pair.count,
                "wall_s": pair.wall_s,
                "at_s": pair.places[0][0] * FRAME_S,
            }
            for pair in pairs[:most]
        ],
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
