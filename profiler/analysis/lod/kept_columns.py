"""Values per pixel column as computed last, from which columns that are the same are taken over. No Qt.

A range that moves by some columns has most of its columns already; two charts that ask for columns of different widths
in turn do not take them from each other.
"""

from collections.abc import Callable, Hashable

import numpy as np

from profiler.arrays import F64

GRIDS = 4
"""Widths of columns that are kept: of the charts that ask one series in turn, and of a table."""


class KeptColumns:
    """Columns of each of the last `GRIDS` widths."""

    def __init__(self) -> None:
        self._grids: dict[object, _Kept] = {}

    def changed_from(self, frame: int) -> None:
        """What was computed of frames from here on holds no longer."""
        for grid in self._grids.values():
            grid.changed_from(frame)

    def columns(
        self,
        edges: F64,
        sure: float,
        compute: Callable[[F64], tuple[F64, ...]],
        kind: Hashable = None,
    ) -> tuple[F64, ...]:
        """Return arrays of `compute` [columns, …] for all columns, computing those that are not known.

        Args:
            edges: column edges in frames [columns + 1].
            sure: columns that end here or before will not change by what is to come.
            compute: the arrays of the columns between some edges, each depending on its own edges alone.
            kind: columns computed in another way are other columns.
        """
        # The last one asked for goes to the end: the first is forgotten.
        key = (len(edges), float(f"{edges[1] - edges[0]:.6g}"), kind)
        grid = self._grids.pop(key, None) or _Kept()
        self._grids[key] = grid
        if len(self._grids) > GRIDS:
            del self._grids[next(iter(self._grids))]
        return grid.columns(edges, sure, compute)


class _Kept:
    """Values per column as computed last, from which columns of the same edges are taken over."""

    def __init__(self) -> None:
        self._edges: F64 = np.empty(0)
        self._values: tuple[F64, ...] = ()
        self._sure = 0.0

    def changed_from(self, frame: int) -> None:
        """What was computed of frames from here on holds no longer."""
        self._sure = min(self._sure, float(frame))

    def columns(
        self, edges: F64, sure: float, compute: Callable[[F64], tuple[F64, ...]]
    ) -> tuple[F64, ...]:
        """Return arrays of `compute` [columns, …] for all columns, computing those that are not known.

        Args:
            edges: column edges in frames [columns + 1].
            sure: columns that end here or before will not change by what is to come.
            compute: the arrays of the columns between some edges, each depending on its own edges alone.
        """
        begin, end, at = self._known(edges, sure)
        if begin < end:
            pieces = [[old[at : at + end - begin] for old in self._values]]
            if begin > 0:
                pieces.insert(0, list(compute(edges[: begin + 1])))
            if end < len(edges) - 1:
                pieces.append(list(compute(edges[end:])))
            self._values = tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))
        else:
            self._values = compute(edges)
        self._edges, self._sure = edges, sure
        # Read only: they are handed out and taken over.
        for values in self._values:
            values.flags.writeable = False
        return self._values

    def _known(self, edges: F64, sure: float) -> tuple[int, int, int]:
        """Columns begin … end − 1 that are known from column `at` of the kept ones on."""
        begin, end, at = _same_columns(self._edges, edges)
        # The playhead may also have gone back.
        unchanged = min(self._sure, sure)
        end = min(end, int(np.searchsorted(edges[1:], unchanged, side="right")))
        return begin, end, at


_compared: tuple[F64, F64, tuple[int, int, int]] | None = None
"""The last two arrays of edges compared, and what they have in common: every series of a chart asks the same."""


def _same_columns(old: F64, edges: F64) -> tuple[int, int, int]:
    """Columns begin … end − 1 of `edges` that are those of `old` from number `at` on; 0, 0, 0 where there are none."""
    global _compared
    if _compared is not None and _compared[0] is old and _compared[1] is edges:
        return _compared[2]
    found = (0, 0, 0)
    if len(old) == len(edges) and len(edges) > 1 and old[-1] > old[0]:
        moved = round((edges[0] - old[0]) / (old[-1] - old[0]) * (len(old) - 1))
        begin, end = max(0, -moved), min(len(edges) - 1, len(edges) - 1 - moved)
        if begin < end and np.array_equal(
            edges[begin : end + 1], old[begin + moved : end + moved + 1]
        ):
            found = (begin, end, begin + moved)
    _compared = (old, edges, found)
    return found
