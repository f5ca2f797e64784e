"""Start: what a run did before its first frame, step by step, as a waterfall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.layout import NONE, lay_out
from app.model.playhead import Snapshot
from app.model.start import LIBRARIES, Phase, longest, phases
from app.model.time_axis import TimeAxis
from app.style.plain_text import Wrapped
from app.views.table_twin import Table
from app.views.view import View

if TYPE_CHECKING:
    from app.views.labs.card import Panels


class StartView(View):
    """When the first frame was decoded, and what came before it."""

    id = "start"
    title = "Start"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.about = Wrapped("")
        body = QWidget()
        self._column = lay_out(QVBoxLayout(body), self.about, margins=NONE)
        self._column.addStretch(1)
        self.set_body(body)
        self._steps: tuple[Phase, ...] = ()
        self.chart: Panels | None = None

    def draw(self, snapshot: Snapshot) -> None:
        """Draw the steps, which stay as they are once the first block is decoded."""
        self._soon.stop()
        found = phases(snapshot.session)
        if found == self._steps and (found or self.about.text()):
            return
        self._steps = found
        self.about.setText(self.summary())
        self._show(_waterfall(found) if found else None)
        whole = bool(found) and found[0].title == LIBRARIES
        self.set_note(self.tr("since the process began") if whole else self.tr("since set-up began"))

    def _show(self, chart: Panels | None) -> None:
        if self.chart is not None:
            self.chart.deleteLater()
        self.chart = chart
        if chart is not None:
            self._column.insertWidget(1, chart, 1000)

    def clear(self) -> None:
        """Show nothing."""
        super().clear()
        self._steps = ()
        self.about.setText("")
        self._show(None)
        self.set_note("")

    def model(self) -> tuple[Phase, ...]:
        return self._steps

    def summary(self) -> str:
        """Return one sentence: the whole and the longest step."""
        if not self._steps:
            return self.tr("No frame is decoded yet.")
        most = longest(self._steps)
        return self.tr("The first block was decoded after {0} s; {1} took longest ({2} s).").format(
            f"{self._steps[-1].end_s:.2f}", self.tr(most.title), f"{most.seconds:.2f}"
        )

    def table(self) -> Table:
        """Return a row for each step."""
        headers = [self.tr(text) for text in ("step", "begins s", "ends s", "takes s")]
        return headers, [
            [self.tr(one.title), f"{one.begin_s:.3f}", f"{one.end_s:.3f}", f"{one.seconds:.3f}"] for one in self._steps
        ]


def _waterfall(steps: tuple[Phase, ...]) -> Panels:
    """The steps in rows over the time; what draws the labs is loaded with the first one."""
    from app.views.labs.card import Panels
    from pipelines.labs.chart import Axis, Block, Chart, Gantt

    blocks = tuple(Block(row, one.begin_s, one.end_s, "", f"{one.seconds:.2f} s") for row, one in enumerate(steps))
    names = tuple(one.title for one in steps)
    return Panels(Chart(Axis("", "s", low=0.0), Axis("", categories=names), (Gantt(blocks),)))
