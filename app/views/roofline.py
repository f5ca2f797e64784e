"""The roofline as a view: the stages of the scope, against the roofs of one of them."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QResizeEvent

from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.views.roofline_model import Point, place_of, points, rate
from app.views.roofline_plot import HEIGHT, WIDTHS_HIGH, Roofline
from app.views.table_twin import Table
from app.views.view import View
from profiler.plain import speed


class RooflineView(View):
    """How far each stage is from what the machine allows."""

    id = "roofline"
    title = "Roofline"
    least_in_picture = 60 + HEIGHT  # With what the card has above and below its body

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.plot = Roofline()
        self.set_column((self.plot, 1)).addStretch(0)
        self._before: tuple[Point, ...] = ()
        axis.stage_changed.connect(self._soon.start)
        self.plot.chosen.connect(axis.choose_stage)

    def draw(self, snapshot: Snapshot) -> None:
        desk = snapshot.desk
        now = () if desk.costs is None else points(desk.costs.stages)
        self._before = () if desk.baseline is None else points(desk.baseline.costs.stages)
        names = [point.name for point in now]
        marked = self.axis.stage if self.axis.stage in names else next(iter(names), None)
        where = place_of(snapshot.session, marked, desk.threads) if marked else None
        self.plot.show_points(now, marked, where, self._before, self.tr("the baseline"))
        units = self.tr("operations per second over operations per byte"), self.tr("op/s over op/byte")
        arrows = self.tr("arrows from the baseline")
        self.set_note(*[f"{unit} · {arrows}" for unit in units] * bool(self._before), *units)

    def clear(self) -> None:
        super().clear()
        self._before = ()
        self.plot.show_points((), None)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.plot.setMaximumHeight(max(HEIGHT, int(WIDTHS_HIGH * self.width())))

    def summary(self) -> str:
        return self.plot.sentence() or self.tr("No stage with known roofs yet.")

    def table(self) -> Table:
        """One row per stage, then per level of memory of the marked one; with a baseline, two columns of its points."""
        headers, rows = point_table(self.plot.stages, self._before, self.tr("baseline"))
        blank = [""] * (len(headers) - 4)
        levels = [[level.name, "", "", speed(level.bandwidth), *blank] for level in self.plot.where.levels]
        return headers, [*rows, *levels]


def point_table(now: Sequence[Point], before: Sequence[Point] = (), baseline: str = "") -> Table:
    """Headers and one row per stage; with `before`, intensity and rate of the `baseline` in two more columns."""
    tr = partial(QCoreApplication.translate, "RooflineView")
    headers = [tr(t) for t in ("stage", "op/byte", "rate", "roof", "share of the roof")]
    rows: list[list[object]] = []
    for point in now:
        rates, share = (rate(point.rate), rate(point.roof)), f"{100 * point.rate / point.roof:.0f} %"
        rows.append([point.name, f"{point.intensity:.3g}", *rates, share])
    if not before:
        return headers, rows
    known = {point.name: point for point in before}
    rows += [[name, None, None, None, None] for name in known if name not in {point.name for point in now}]
    for row in rows:
        one = known.get(str(row[0]))
        row += [None, None] if one is None else [f"{one.intensity:.3g}", rate(one.rate)]
    return [*headers, *(tr(t).format(baseline) for t in ("{0} op/byte", "{0} rate"))], rows
