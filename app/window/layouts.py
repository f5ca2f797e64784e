"""Where each view stands in the layouts that come with the program: one table. No Qt.

A view that the table names and the registry lacks is skipped. One that the table lacks becomes the last tab at the
right, so that it is found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

EXPLORE: Final = "explore"
PRESENT: Final = "present"

MIDDLE, RIGHT = 0, 1
"""Columns."""


class Place(NamedTuple):
    """Column, row in it, and the share of the column's height that the row takes. Views of one row are tabs."""

    column: int
    row: int
    share: int


#: Per view its places in *explore* and in *present*; None: closed there. The order is that of tabs.
PLACES: Final[dict[str, tuple[Place | None, Place | None]]] = {
    "cost": (Place(MIDDLE, 0, 37), Place(MIDDLE, 0, 60)),
    "work": (Place(MIDDLE, 0, 37), None),
    "timeline": (Place(MIDDLE, 1, 33), None),
    "words": (Place(MIDDLE, 2, 30), Place(MIDDLE, 1, 40)),
    "breakdown": (Place(RIGHT, 0, 100), Place(RIGHT, 0, 100)),
    "roofline": (Place(RIGHT, 0, 100), None),
    "utterances": (Place(RIGHT, 0, 100), None),
    "session": (Place(RIGHT, 0, 100), None),
}

ELSEWHERE: Final = (Place(RIGHT, 0, 100), None)
"""The places of a view that the table lacks."""

NAMES: Final = (EXPLORE, PRESENT)

WIDTHS: Final = {EXPLORE: (67, 33), PRESENT: (62, 38)}
"""Shares of the width that the columns take."""

WITH_FORM: Final = (EXPLORE,)
"""The layouts that show the form."""


@dataclass(frozen=True)
class Row:
    """Views on top of each other, the first in front; `closed` ones come back as tabs here."""

    share: int
    views: tuple[str, ...]
    closed: tuple[str, ...] = ()


Column = tuple[Row, ...]


def columns(name: str, known: Iterable[str], low: bool = False) -> tuple[Column, ...]:
    """The columns of a layout, of those views that are `known`; `low`: with no more than two rows."""
    which = NAMES.index(name)
    known = list(known)
    order = [view for view in PLACES if view in known]
    order += [view for view in known if view not in PLACES]
    rows: dict[tuple[int, int], list[str]] = {}
    shares: dict[tuple[int, int], int] = {}
    closed: dict[int, list[str]] = {}
    for view in order:
        places = PLACES.get(view, ELSEWHERE)
        place, usual = places[which], places[0] or ELSEWHERE[0]
        if place is None:
            closed.setdefault(usual.column, []).append(view)
            continue
        at = place.column, place.row
        rows.setdefault(at, []).append(view)
        shares.setdefault(at, place.share)
    found: dict[int, list[Row]] = {}
    for at in sorted(rows):
        column = at[0]
        behind = closed.pop(column, []) if column not in found else []
        found.setdefault(column, []).append(Row(shares[at], tuple(rows[at]), tuple(behind)))
    return tuple(_fewer(found[column]) if low else tuple(found[column]) for column in sorted(found))


def _fewer(rows: list[Row]) -> Column:
    """At most two rows: those above the last become one, its first tabs what was in front."""
    *upper, last = rows
    if len(upper) < 2:
        return tuple(rows)
    fronts = [row.views[0] for row in upper]
    views = (*fronts, *(view for row in upper for view in row.views[1:]))
    closed = tuple(view for row in upper for view in row.closed)
    return Row(upper[0].share, views, closed), last
