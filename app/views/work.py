"""Work per frame as small multiples over audio time: tokens, beam, senones, Gaussians, bytes and time of scoring."""

from __future__ import annotations

from functools import partial

from app.model.time_axis import TimeAxis
from app.views import work_figures
from app.views.lanes import LanesView, Quantity
from app.views.lanes_model import Curve, LanesModel
from app.views.work_figures import COLORS, DOTTED, SHORT, TITLES, UNITS
from app.views.work_model import work_model


class WorkView(LanesView):
    """How many tokens and senones the search has active, and how much is computed for it."""

    id = "work"
    title = "Work per frame"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis, work_model)

    def quantity(self, name: str) -> Quantity:
        """How a count, or the time of scoring, is shown."""
        title = TITLES[name]
        return Quantity(
            title=self.tr(title),
            color=COLORS[name],
            axis_figure=partial(work_figures.axis_figure, name),
            figure=partial(work_figures.figure, name),
            short=self.tr(SHORT.get(title, title)),
            dotted=name in DOTTED,
            unit=UNITS.get(name, ""),
        )

    def average(self, curve: Curve) -> str:
        """A curve's mean, and what part it is of the whole where there is one."""
        return work_figures.average(curve)

    def cell(self, name: str, value: float) -> str:
        return work_figures.cell(name, value)

    def show_texts(self, model: LanesModel) -> None:
        """Show the headings' figures and the note."""
        self.headings.set_model(model)
        note = self.by_unit(
            self.tr("per 10 ms frame · band: min–max, line: mean"), self.tr("per step · band: min–max, line: mean")
        )
        blocks = self.by_unit(self.tr("{0} of {1} frames"), self.tr("{0} of {1} steps")).format(
            note, model.block_frames
        )
        self.set_note(*[blocks] * (model.block_frames > 1), note, note.partition(" · ")[0])

    def readout_head(self) -> str:
        return self.by_unit(self.tr("per frame"), self.tr("per step"))

    def summary(self) -> str:
        """Return one sentence with the mean of every quantity."""
        model = self.model()
        if model is None or not model.panels:
            return self.tr("No work counts recorded yet.")
        parts = [f"{self.tr(TITLES[c.name])} {self.average(c)}" for c in model.curves]
        text = self.by_unit(self.tr("{0} the means per frame are: {1}."), self.tr("{0} the means per step are: {1}."))
        return text.format(self.extent, ", ".join(parts))
