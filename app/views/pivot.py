"""Stages by utterance and by configuration: what each stage took of a frame in every row. A click goes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from app.charts.scale import milliseconds
from app.model.configurations import Configurations, differing
from app.model.playhead import Snapshot
from app.model.statistics import WHOLE, stage_names, stage_ns
from app.views.scope import Scope
from app.views.table_twin import Table
from app.views.table_view import TableView
from pipelines.config import value_text
from profiler.arrays import F64
from profiler.frames import FRAME_S
from profiler.plain import clock, counted
from profiler.session.model import Utterance

AROUND = 0.1
"""Share of an utterance's length that is shown before and after it."""


class PivotView(TableView):
    """Where one utterance costs what another does not, and which stage it is."""

    id = "pivot"
    title = "Stages by utterance"

    def draw(self, snapshot: Snapshot) -> None:
        """Renew the rows."""
        super().draw(snapshot)
        self.set_note(self.tr("ms per 10 ms frame · start to cursor"), self.tr("ms per frame"))

    def table(self) -> Table:
        """Return ms per frame of every stage: a row per configuration, then one per utterance begun."""
        snapshot = self.snapshot
        titles = [self.tr(text) for text in ("utterance", "at", "configuration")]
        if snapshot is None:
            return titles, []
        session, end = snapshot.session, snapshot.cursor_frame
        whole, *names = stage_names(session)
        sums = {name: _before(stage_ns(session, name, 0, end)) for name in names}
        names.sort(key=lambda name: -sums[name][-1])
        before = [_before(snapshot.track.wall_row[:end]), *(sums[name] for name in names)]
        rows: list[list[object]] = []
        utterances = [one for one in session.utterances if one.first_frame < end]
        configurations = Configurations().all(session)
        first = configurations[0][1] if configurations else {}
        settings = [(epochs, _changed(first, each)) for epochs, each in configurations]
        for epochs, text in settings if len(settings) > 1 else ():
            mine = [one for one in utterances if epochs.issuperset(one.epochs)]
            if mine:
                number = counted(len(mine), "utterance", "utterances")
                rows.append([number, "", text, *_means(before, mine, end)])
        for one in utterances:
            text = next((text for epochs, text in settings if epochs.issuperset(one.epochs)), "")
            at = clock(one.first_frame * FRAME_S, 1)
            rows.append([one.name, at, text, *_means(before, [one], end)])
        if len(settings) < 2:
            titles, rows = titles[:2], [[*row[:2], *row[3:]] for row in rows]
        return [*titles, self.tr(whole), *names], rows

    def choose(self, row: Sequence[object]) -> None:
        """Select the utterance, in view of the charts."""
        utterances = () if self.snapshot is None else self.snapshot.session.utterances
        for one in utterances:
            if row[:2] == [one.name, clock(one.first_frame * FRAME_S, 1)]:
                Scope(self.axis).go_to(one.first_frame * FRAME_S, one.end_frame * FRAME_S, AROUND)
                return

    def summary(self) -> str:
        """Return one sentence: the utterance whose frames take longest."""
        headers, rows = self.table()
        column = headers.index(self.tr(WHOLE)) if rows else 0
        known = [row for row in rows if row[1] and row[column] != "–"]
        if not known:
            return self.tr("No utterance yet.")
        dearest = max(known, key=lambda row: float(str(row[column])))
        return self.tr("{0} takes most: {1} ms per frame.").format(dearest[0], dearest[column])


def _before(per_frame: F64) -> F64:
    """Sum of the frames before each, [frames + 1]."""
    return np.concatenate([[0.0], np.cumsum(per_frame)])


def _means(before: Sequence[F64], utterances: Sequence[Utterance], end: int) -> list[str]:
    """Mean ms per frame of each stage over the frames of these utterances; blank where it did not run."""
    first = np.array([min(one.first_frame, end) for one in utterances])
    last = np.array([min(one.end_frame, end) for one in utterances])
    frames = int((last - first).sum())
    sums = [float((each[last] - each[first]).sum()) for each in before]
    return [milliseconds(ns * 1e-6 / frames) if frames and ns > 0 else "–" for ns in sums]


def _changed(first: Mapping[str, object], settings: Mapping[str, object]) -> str:
    """How settings differ from the first ones."""
    keys = sorted(differing(first, settings))
    return ", ".join(f"{key}={value_text(settings.get(key))}" for key in keys)
