"""What a run did before its first frame, step by step, as a waterfall: a page of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.layout import NONE, lay_out
from app.model.start import Phase, longest, phases
from app.style.plain_text import Wrapped
from app.views.table_twin import Table

if TYPE_CHECKING:
    from app.views.labs.card import Panels
    from profiler.session.reader import Session


class StartPage(QWidget):
    """When the first frame was decoded, and what came before it."""

    def __init__(self) -> None:
        super().__init__()
        self.about = Wrapped("")
        self._column = lay_out(QVBoxLayout(self), self.about, margins=NONE)
        self._column.addStretch(1)
        self.steps: tuple[Phase, ...] = ()
        self.chart: Panels | None = None

    def show_session(self, session: Session | None) -> None:
        """Draw the steps, which stay as they are once the first block is decoded."""
        found = () if session is None else phases(session)
        if found != self.steps and self.chart is not None:
            self.chart.deleteLater()
            self.chart = None
        if found != self.steps and found:
            self.chart = _waterfall(found)
            self._column.insertWidget(1, self.chart, 1000)
        self.steps = found
        self.about.setText(self.summary())

    def summary(self) -> str:
        """Return one sentence: the whole and the longest step."""
        if not self.steps:
            return self.tr("No frame is decoded yet.")
        most = longest(self.steps)
        return self.tr("The first block was decoded after {0} s; {1} took longest ({2} s).").format(
            f"{self.steps[-1].end_s:.2f}", self.tr(most.title), f"{most.seconds:.2f}"
        )

    def table(self) -> Table:
        """Return a row for each step."""
        headers = [self.tr(text) for text in ("step", "begins s", "ends s", "takes s")]
        return headers, [
            [self.tr(one.title), f"{one.begin_s:.3f}", f"{one.end_s:.3f}", f"{one.seconds:.3f}"] for one in self.steps
        ]


def _waterfall(steps: tuple[Phase, ...]) -> Panels:
    """The steps in rows over the time; what draws the labs is loaded with the first one."""
    from app.views.labs.card import Panels
    from pipelines.labs.chart import Axis, Block, Chart, Gantt

    blocks = tuple(Block(row, one.begin_s, one.end_s, "", f"{one.seconds:.2f} s") for row, one in enumerate(steps))
    names = tuple(one.title for one in steps)
    return Panels(Chart(Axis("", "s", low=0.0), Axis("", categories=names), (Gantt(blocks),)))
