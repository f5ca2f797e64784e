"""Stages by utterance and by configuration: what each stage took of a frame in every row. A click goes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from app.model.configurations import Configurations, differing
from app.model.figures import own_ns
from app.model.playhead import Snapshot
from app.model.statistics import WHOLE, stage_names, stage_sums
from app.model.time_axis import TimeAxis
from app.views.table_twin import Table
from app.views.table_view import TableView
from pipelines.config import value_text
from profiler.arrays import F64, I64
from profiler.frames import FRAME_S
from profiler.plain import clock, counted, milliseconds

AROUND = 0.1
"""Share of an utterance's length that is shown before and after it."""


class PivotView(TableView):
    """Where one utterance costs what another does not, and which stage it is."""

    id = "pivot"
    title = "Stages by utterance"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self._counted: Table = (), ()

    def draw(self, snapshot: Snapshot) -> None:
        self._counted = self._count(snapshot)
        super().draw(snapshot)
        self.set_note(self.tr("ms per 10 ms frame"), self.tr("ms per frame"))

    def clear(self) -> None:
        self._counted = (), ()
        super().clear()

    def table(self) -> Table:
        """Return ms per frame of every stage: a row per configuration, then one per utterance begun."""
        return self._counted

    def _count(self, snapshot: Snapshot) -> Table:
        titles = [self.tr(text) for text in ("utterance", "at", "configuration")]
        session, end = snapshot.session, snapshot.cursor_frame
        utterances = [one for one in session.utterances.in_time if one.first_frame < end]
        begins = np.array([one.first_frame for one in utterances], np.int64)
        ends = np.minimum([one.end_frame for one in utterances], end).astype(np.int64)
        whole, *names = stage_names(session, snapshot.track)
        sums = stage_sums(session, names, begins, end)
        dearest_first = np.argsort(-sums.sum(axis=1), kind="stable")
        names = [names[at] for at in dearest_first]
        frames = own_ns(snapshot.track, 0, end), snapshot.track.wall_row[:end]
        own, wall = (np.concatenate([[0.0], np.cumsum(each)]) for each in frames)
        own, wall = own[ends] - own[begins], wall[ends] - wall[begins]
        # Other programs took as large a part of each stage of an utterance as of all of it.
        share = np.divide(own, wall, out=np.ones(len(own)), where=wall > 0)
        ns = np.concatenate([own[None], share * sums[dearest_first]])
        rows: list[list[object]] = []
        configurations = Configurations().all(session)
        first = configurations[0][1] if configurations else {}
        settings = [(epochs, _changed(first, each)) for epochs, each in configurations]
        for epochs, text in settings if len(settings) > 1 else ():
            mine = [at for at, one in enumerate(utterances) if epochs.issuperset(one.epochs)]
            if mine:
                number = counted(len(mine), "utterance", "utterances")
                rows.append([number, "", text, *_means(ns[:, mine], ends[mine] - begins[mine])])
        for at, one in enumerate(utterances):
            text = next((text for epochs, text in settings if epochs.issuperset(one.epochs)), "")
            means = _means(ns[:, [at]], ends[[at]] - begins[[at]])
            rows.append([one.name, clock(one.first_frame * FRAME_S, 1), text, *means])
        if len(settings) < 2:
            titles, rows = titles[:2], [[*row[:2], *row[3:]] for row in rows]
        return [*titles, self.tr(whole), *names], rows

    def choose(self, row: Sequence[object]) -> None:
        """Select the utterance, in view of the charts."""
        utterances = () if self.snapshot is None else self.snapshot.session.utterances
        for one in utterances:
            if row[:2] == [one.name, clock(one.first_frame * FRAME_S, 1)]:
                self.axis.go_to_range(one.first_frame * FRAME_S, one.end_frame * FRAME_S, AROUND)
                return

    def summary(self) -> str:
        """Return one sentence: the utterance whose frames take longest."""
        headers, rows = self._counted
        column = headers.index(self.tr(WHOLE)) if rows else 0
        known = [row for row in rows if row[1] and row[column] != "–"]
        if not known:
            return self.tr("No utterance yet.")
        dearest = max(known, key=lambda row: float(str(row[column])))
        return self.tr("{0} takes most: {1} ms per frame.").format(dearest[0], dearest[column])


def _means(ns: F64, frames: I64) -> list[str]:
    """Mean ms per frame of each row of times [rows, utterances] over their frames; a dash where there is no time."""
    whole = max(1, int(frames.sum()))
    return [milliseconds(total * 1e-6 / whole) if total > 0 else "–" for total in ns.sum(axis=1).tolist()]


def _changed(first: Mapping[str, object], settings: Mapping[str, object]) -> str:
    keys = sorted(differing(first, settings))
    return ", ".join(f"{key}={value_text(settings.get(key))}" for key in keys)
