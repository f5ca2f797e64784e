"""Which colour, hatch and sign each name of a lab's chart has: the same in all panels, and never colour alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from PySide6.QtGui import QColor

from app.style.theme import Tokens
from pipelines.labs.chart import Bars, Chart, Gantt, Line, Mark

COLOURS = ("compute", "memory", "search", "transfer", "other_programs")
GREYS = ("frontend", "unexplained", "overhead")
"""Categories whose colours and hatches series take, in this order; greys where a panel has no colour left."""

RING = "ring"
SIGNS = (("o", 6.8), ("s", 6.2), ("t1", 8.0), ("d", 9.0), (RING, 6.8))
"""Points of lines: disc, square, triangle, diamond, ring, and their sizes in pixels."""


@dataclass(frozen=True)
class Look:
    """The category whose colour and hatch a series takes, and the number of its sign (0…4)."""

    category: str
    sign: int

    def color(self, tokens: Tokens) -> QColor:
        return tokens.color(self.category)


def looks(chart: Chart) -> Mapping[str, Look]:
    """How each name in the panels of a chart looks: alike in all of them, and unlike all others of its panels.

    A colour that no panel has yet comes first, then one that this panel does not have.
    """
    found: dict[str, Look] = {}
    for panel in (chart, *chart.beside):
        names = list(named(panel))
        mine = [found[name] for name in names if name in found]
        for name in names:
            if name in found:
                continue
            known = {look.category for look in found.values()}
            here = {look.category for look in mine}
            wanted = [c for c in COLOURS if c not in known]
            wanted += [c for c in (*COLOURS, *GREYS) if c not in here]
            signs = [n for n in range(len(SIGNS)) if n not in {look.sign for look in mine}]
            number = len(mine)
            again = (*COLOURS, *GREYS)[number % (len(COLOURS) + len(GREYS))]
            look = Look((wanted or [again])[0], (signs or [number % len(SIGNS)])[0])
            mine.append(look)
            found[name] = look
    return found


def named(panel: Chart) -> Iterator[str]:
    """The names of a panel's series, each once, in order."""
    found: dict[str, None] = {}
    for layer in panel.layers:
        if isinstance(layer, Gantt):
            found |= dict.fromkeys(block.kind for block in layer.blocks)
        elif isinstance(layer, Bars | Line):
            found[layer.name] = None
    yield from found


def line_of(panel: Chart, name: str) -> Line | None:
    """The line of that name; None where bars have it."""
    lines = (x for x in panel.layers if isinstance(x, Line) and x.name == name)
    return next(lines, None)


def marks(panel: Chart) -> list[Mark]:
    return [layer for layer in panel.layers if isinstance(layer, Mark)]
