"""The views: one chart per file, each a card that draws a ``Snapshot`` and nothing else.

A view reads the session only through its snapshot and shares range and selection
through the ``TimeAxis``. Not here: windows, actions, file handling, the worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from app.model.time_axis import TimeAxis
    from app.views.view import View


@dataclass(frozen=True)
class Entry:
    """Module of a view's class, its column, its share of the height, its minimum height."""

    module: str
    cls: str
    column: Literal["middle", "right"]
    stretch: int
    height: int

    def load(self) -> type[View]:
        found: type[View] = getattr(import_module(self.module), self.cls)
        return found


#: Adding a view takes its file and one line here.
VIEWS: dict[str, Entry] = {
    "cost": Entry("app.views.cost", "CostView", "middle", 5, 230),
    "timeline": Entry("app.views.timeline", "TimelineView", "middle", 4, 180),
    "words": Entry("app.views.words", "WordsView", "middle", 4, 206),
    "latency": Entry("app.views.latency", "LatencyView", "middle", 5, 230),
    "work": Entry("app.views.work", "WorkView", "middle", 5, 262),
    "breakdown": Entry("app.views.breakdown", "BreakdownView", "right", 1, 230),
    "roofline": Entry("app.views.roofline", "RooflineView", "right", 1, 230),
    "utterances": Entry("app.views.utterances", "UtterancesView", "right", 3, 160),
    "word-costs": Entry("app.views.word_costs", "WordCostsView", "right", 3, 160),
    "faster": Entry("app.views.faster", "FasterView", "right", 3, 200),
    "statistics": Entry("app.views.statistics", "StatisticsView", "right", 3, 200),
    "pivot": Entry("app.views.pivot", "PivotView", "right", 3, 160),
    "session": Entry("app.views.session_info", "SessionView", "right", 3, 160),
    "start": Entry("app.views.start", "StartView", "right", 3, 160),
    "system": Entry("app.views.system", "SystemView", "middle", 5, 230),
    "memory-use": Entry("app.views.memory_use", "MemoryUseView", "middle", 5, 230),
    "transfers": Entry("app.views.transfers", "TransfersView", "right", 3, 200),
    "memory": Entry("app.views.memory_ladder", "MemoryLadderView", "right", 1, 230),
    "icicle": Entry("app.views.icicle", "IcicleView", "middle", 4, 180),
}


def create(view_id: str, axis: TimeAxis) -> View:
    """Make the view called ``view_id``; ``ValueError`` lists the existing ones."""
    entry = VIEWS.get(view_id)
    if entry is None:
        raise ValueError(f"no view is called {view_id!r}; the views are {', '.join(VIEWS)}")
    return entry.load()(axis)
