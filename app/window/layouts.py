"""Where each view stands in the layouts that come with the program. No Qt.

A view that a layout names and the registry lacks is skipped. One that it lacks becomes the last tab at the right, so
that it is found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

EXPLORE: Final = "explore"
PRESENT: Final = "present"


class Row(NamedTuple):
    """Views on top of each other, the first in front, and the share of the column's height that they take.

    `closed` ones come back as tabs here.
    """

    share: int
    views: tuple[str, ...]
    closed: tuple[str, ...] = ()

    def of(self, known: Iterable[str]) -> Row:
        """The same without unknown views."""
        views, closed = (tuple(v for v in part if v in known) for part in self[1:])
        return Row(self.share, views, closed)


Column = tuple[Row, ...]

LAYOUTS: Final[dict[str, tuple[Column, ...]]] = {
    EXPLORE: (
        (Row(37, ("cost", "work")), Row(33, ("timeline",)), Row(30, ("words",))),
        (Row(100, ("breakdown", "roofline", "utterances", "session")),),
    ),
    PRESENT: (
        (Row(60, ("cost",), ("work", "timeline")), Row(40, ("words",))),
        (Row(100, ("breakdown",), ("roofline", "utterances", "session")),),
    ),
}

NAMES: Final = tuple(LAYOUTS)

WIDTHS: Final = {EXPLORE: (64, 36), PRESENT: (62, 38)}  # Shares of the width that the columns take
WITH_FORM: Final = (EXPLORE,)  # The layouts that show the form, and every view


def columns(name: str, known: Iterable[str], low: bool = False) -> tuple[Column, ...]:
    """The columns of a layout, of those views that are `known`; `low`: with no more than two rows."""
    known = list(known)
    layout = LAYOUTS[name]
    named = {view for column in layout for row in column for view in (*row.views, *row.closed)}
    new = tuple(view for view in known if view not in named)
    share, views, closed = layout[-1][-1]
    last = Row(share, views + new, closed) if name in WITH_FORM else Row(share, views, closed + new)
    whole = [*layout[:-1], (*layout[-1][:-1], last)]
    found = [[row.of(known) for row in column] for column in whole]
    shown = [[row for row in column if row.views] for column in found]
    return tuple(_fewer(rows) if low else tuple(rows) for rows in shown if rows)


def _fewer(rows: list[Row]) -> Column:
    """At most two rows: those above the last become one, its first tabs what was in front."""
    *upper, last = rows
    if len(upper) < 2:
        return tuple(rows)
    fronts = [row.views[0] for row in upper]
    views = (*fronts, *(view for row in upper for view in row.views[1:]))
    closed = tuple(view for row in upper for view in row.closed)
    return Row(upper[0].share, views, closed), last
