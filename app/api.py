"""Sessions from Python: what the command line and the window know of a session, as objects, arrays and tables.

    from app.api import compare, open_session

    with open_session("run.asrs") as run:
        print(run.rtf, run.word_errors.rate)
        for stage in run.breakdown().stages:
            print(stage.name, stage.share, stage.verdict)

Nothing here measures; a session is only read. docs/python.md has a tour, docs/session-format.md the file itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from profiler.analysis.breakdown import Breakdown, breakdown
from profiler.analysis.categories import CATEGORIES
from profiler.analysis.track import CostTrack
from profiler.analysis.whatif import Prediction, scaled, unchanged
from profiler.arrays import F64, Array
from profiler.session.model import Utterance
from profiler.session.reader import Session

if TYPE_CHECKING:
    import pandas

    from app.model.report import Tree
    from app.model.statistics import Statistics
    from app.views.word_costs_model import WordCost
    from pipelines.audio.word_errors import ErrorCount
    from profiler.analysis.comparison.compare import Comparison

__all__ = ["Recording", "compare", "open_session"]


def open_session(path: str | os.PathLike[str]) -> Recording:
    """Open a session file, finished or still being recorded; SessionError (one sentence) when it cannot be read."""
    return Recording(Session.open(path))


def compare(a: Recording, b: Recording | None = None) -> Comparison:
    """Compare two sessions, or the arms of one that `asrscope ab` recorded: ratios with intervals and verdicts.

    BadInput (one sentence) when they have no utterance in common or `a` alone has no arms.
    """
    from profiler.analysis.comparison import compare as comparison

    return comparison.compare(a.session, None if b is None else b.session)


class Recording(AbstractContextManager["Recording"]):
    """An open session. Close it, or use it in a `with` statement."""

    def __init__(self, session: Session) -> None:
        self.session = session  # The reader: stages, lanes, markers, configurations, samples and what else there is
        self._track = CostTrack()
        self._track.update(session)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.session.close()

    def refresh(self) -> bool:
        """Read what a run has recorded since; True if there was anything."""
        news = self.session.refresh()
        self._track.update(self.session)
        return news

    @property
    def frames(self) -> int:
        """Frames of 10 ms decoded."""
        return int(self._track.n_frames)

    @property
    def rtf(self) -> float | None:
        """Processing time over audio time; None without audio."""
        return self.breakdown().rtf

    @property
    def frame_ms(self) -> F64:
        """Wall time of each frame, ms [frames]."""
        return self._track.wall_row[:] * 1e-6

    @property
    def category_ms(self) -> dict[str, F64]:
        """Time of each frame by category, ms [frames] each; they add up to `frame_ms`."""
        return {name: row[:] * 1e-6 for name, row in zip(CATEGORIES, self._track.category_rows, strict=True)}

    @property
    def work(self) -> dict[str, Array]:
        """Counts of each frame by name, [frames] each: "search tokens", "scoring gaussians" …"""
        return {name: row[:] for name, row in self._track.work_rows.items()}

    def breakdown(self, first: int | None = None, last: int | None = None) -> Breakdown:
        """Where the time of frames [first, last) went, by category and stage; of all without them."""
        return breakdown(self.session, first, last, track=self._track)

    def stage_ms(self, name: str) -> F64:
        """Time of a stage in each frame, ms [frames]; 0 where it did not run."""
        from app.model.statistics import stage_ns

        ms: F64 = stage_ns(self.session, name, 0, self.frames) * 1e-6
        return ms

    def statistics(self, name: str | None = None) -> Statistics | None:
        """How the own time of single frames is spread, of a stage or of whole frames; None where it did not run."""
        from app.model.statistics import WHOLE, statistics

        return statistics(self.session, self._track, name or WHOLE, 0, self.frames)

    def predict(self, factors: Mapping[str, float]) -> Prediction:
        """Predict the time with stages, groups or parts of scoring scaled: 0 is free; BadInput for an unknown name."""
        return scaled(unchanged(self.breakdown()), factors.items())

    @property
    def utterances(self) -> list[Utterance]:
        """The utterances with their words, in the order of decoding."""
        return self.session.utterances

    @property
    def word_errors(self) -> ErrorCount:
        """Errors and reference words of all utterances that were scored."""
        from pipelines.audio.word_errors import word_errors

        return word_errors(self.session.utterances)

    def words(self) -> tuple[WordCost, ...]:
        """Every recognised word with the time, tokens and senones of its frames, and whether it was right."""
        from app.views.word_costs_model import word_costs

        return word_costs(self.session, self._track, self.frames)[0]

    @property
    def spans(self) -> Array:
        """All spans, a structured array [spans] (`profiler.spans.SPAN`)."""
        return self.session.spans

    def spans_table(self) -> pandas.DataFrame:
        """All spans as a pandas table, with names of stages and lanes; pandas must be installed."""
        import pandas

        spans = self.session.spans
        table = pandas.DataFrame({name: spans[name] for name in spans.dtype.names or ()})
        table["stage"] = table["stage"].map({n: s.name for n, s in self.session.stages.items()})
        table["lane"] = table["lane"].map({n: lane.name for n, lane in self.session.lanes.items()})
        return table

    def report(self, select: Sequence[str] = ()) -> Tree:
        """The JSON object of `asrscope report`; `select`: as for `--select`, BadInput for what is not there."""
        from app.export.markdown import details
        from app.model.report import report
        from app.pictures.request import selected_of

        selected = selected_of(select, self.session, self.frames)
        return report(self.session, self._track, selected) | details(self.session, self._track, selected.frames)
