"""The confusion pairs of the words as a table; a click goes to the first occurrence of a pair, then to the next one."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex

from app.model.pace import Slices
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import describe
from app.views.table_twin import Table, TableModel, TableTwin
from app.views.word_costs_model import Confusion, confusions
from app.views.words_model import align
from profiler.clock import FRAME_S
from profiler.plain import clock, counted

AT_ONCE = 16
"""Utterances that a drawing waits for; more are aligned meanwhile."""

AROUND = 4.0
"""Lengths of a word that are shown before and after it."""

NONE: Final = "–"
"""In place of the word that an insertion or a deletion lacks."""


class Confusions(TableTwin):
    """Reference, hypothesis, how often, seconds; in the scope."""

    def __init__(self, axis: TimeAxis) -> None:
        self._pairs = TableModel()
        super().__init__(self._pairs)
        self._pairs.setParent(self)
        self._axis = axis
        self._found: tuple[Confusion, ...] = ()
        self._snapshot: Snapshot | None = None
        self._ahead: Slices[None] = Slices(self, lambda _: self._renew())
        for signal in (self.clicked, self.activated):
            signal.connect(self._choose)

    def show_snapshot(self, snapshot: Snapshot | None) -> None:
        """Show the pairs of a snapshot; None shows none. Where many utterances are to be aligned, a few at a time."""
        self._snapshot = snapshot
        self._ahead.drop()
        self._renew()

    def settle(self) -> None:
        if self._ahead.busy:
            self._ahead.finish()

    def _renew(self) -> None:
        self._found, shown = (), self._snapshot
        if shown is not None:
            scope = shown.desk.scope
            within = scope.first, scope.last
            self._found, left = confusions(shown.session, shown.track, scope.end, within, AT_ONCE)
            if left:
                self._ahead.start(align(shown.session, left, scope.end))
        columns = self._pairs.columnCount()
        self._pairs.replace(*self.table())
        if columns != self._pairs.columnCount():
            self.fit_columns()
        describe(self, self.tr("Confusion pairs"), self.summary())

    def table(self) -> Table:
        """Return one row per pair, the most frequent first."""
        headers = [self.tr(text) for text in ("reference", "hypothesis", "count", "seconds", "first at")]
        return headers, [
            [
                one.reference or NONE,
                one.hypothesis or NONE,
                one.count,
                None if one.wall_s is None else f"{one.wall_s:.3f}",
                clock(one.places[0][0] * FRAME_S, 2),
            ]
            for one in self._found
        ]

    def summary(self) -> str:
        """Return one sentence: how many errors and pairs, and the most frequent pair."""
        if not self._found:
            return self.tr("No word error in range.")
        first, errors = self._found[0], sum(one.count for one in self._found)
        text = self.tr("{0} in {1}; the most frequent is {2} → {3}, {4}.")
        return text.format(
            counted(errors, self.tr("word error"), self.tr("word errors")),
            counted(len(self._found), self.tr("pair"), self.tr("pairs")),
            first.reference or NONE,
            first.hypothesis or NONE,
            counted(first.count, self.tr("time"), self.tr("times")),
        )

    def _choose(self, index: QModelIndex) -> None:
        """Go to the occurrence after the one that is marked; from elsewhere, to the first."""
        row = self._pairs.row(index.row())
        pair = next((one for one in self._found if [one.reference or NONE, one.hypothesis or NONE] == row[:2]), None)
        if pair is None:
            return
        places = [(first * FRAME_S, last * FRAME_S) for first, last in pair.places]
        at = places.index(self._axis.pointed) if self._axis.pointed in places else -1
        self._axis.point_at(places[(at + 1) % pair.count], AROUND)
