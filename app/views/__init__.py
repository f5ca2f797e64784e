"""The views: one chart per file, each a card that draws a `Snapshot` and nothing else.

A view reads the session only through its snapshot and shares range and selection through the `TimeAxis`.
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
    "faster": Entry("app.views.faster", "FasterView", "right", 3, 200),
    "statistics": Entry("app.views.statistics", "StatisticsView", "right", 3, 200),
    "session": Entry("app.views.session_info", "SessionView", "right", 3, 160),
    "system": Entry("app.views.system", "SystemView", "middle", 5, 230),
    "transfers": Entry("app.views.transfers", "TransfersView", "right", 3, 200),
    "memory": Entry("app.views.memory_ladder", "MemoryLadderView", "right", 1, 230),
    "results": Entry("app.views.results", "ResultsView", "right", 3, 160),
}

#: What a view can show in place of its usual, by the page's name: the view, and the title. A picture can be of a page.
PAGES: dict[str, tuple[str, str]] = {
    "icicle": ("breakdown", "Icicle"),
    "pivot": ("utterances", "Stages by utterance"),
    "word-costs": ("utterances", "Cost per word"),
    "confusions": ("words", "Confusions"),
    "start": ("session", "Start"),
    "memory-use": ("system", "Memory use"),
}

#: What a picture of a session can be of.
PICTURES: tuple[str, ...] = (*(name for name in VIEWS if name != "results"), *PAGES)


def title_of(name: str) -> str:
    """The title of a view or page."""
    return PAGES[name][1] if name in PAGES else VIEWS[name].load().title


def view_of(name: str) -> str:
    """The view that has a page, or the view of that name itself."""
    return PAGES[name][0] if name in PAGES else name


def create(name: str, axis: TimeAxis) -> View:
    """Make the view called ``name``, or the one that shows this page; ``ValueError`` lists the existing ones."""
    entry = VIEWS.get(view_of(name))
    if entry is None:
        raise ValueError(f"no view is called {name!r}; the views are {', '.join((*VIEWS, *PAGES))}")
    view = entry.load()(axis)
    if name in PAGES:
        view.pages[name].setChecked(True)
    return view
