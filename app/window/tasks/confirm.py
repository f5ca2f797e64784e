"""Confirm a verdict: `asrscope confirm` changes a stage (block, threads, parameters) and says whether it behaves as
its verdict predicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtWidgets import QWidget

from app.model.report import Printed, read_printed
from app.model.report_lines import interval_text, number
from app.style.plain_text import describe
from app.views.ratios import RatioRow, Ratios
from app.window.tasks.page import VERB, TaskPage
from app.window.tasks.workbench import Workbench
from profiler.analysis.comparison.compare import A_FASTER, B_FASTER, UNDECIDED
from profiler.plain import counted

CONFIRM: Final = (*VERB, "confirm", "--json")


class Confirmation(TaskPage):
    """Whether the verdict of a stage survives when the stage is changed."""

    def __init__(self, session: Path, stage: str, parent: QWidget, command: Sequence[str] = CONFIRM) -> None:
        super().__init__(
            self.tr("Confirm the verdict of {0}").format(stage),
            (*command, str(session), stage),
            self.tr("Decoding some seconds of the session's audio with the stage changed …"),
            parent,
        )
        self.chart: Ratios | None = None

    def _row(self, one: Printed) -> RatioRow:
        """A line of the chart, coloured by whether the outcome is as predicted."""
        texts = {
            True: (B_FASTER, self.tr("as predicted")),
            False: (A_FASTER, self.tr("not so")),
            None: (UNDECIDED, self.tr("not compared")),
        }
        verdict, text = texts[one.agrees]
        return RatioRow(one.change or one.name, one.measured_ratio or 0.0, one.ci95, verdict, one.predicted, text)

    def show_result(self, printed: bytes) -> None:
        """Show the outcome, then each change."""
        found = read_printed(printed)
        rounds = counted(found.rounds, self.tr("round"), self.tr("rounds"))
        state = self.tr("Measured on this machine, now: {0} over {1}.").format(rounds, found.audio)
        self.state.setText(" ".join([state, *found.notes]))
        outcome = {
            True: self.tr("The verdict survives."),
            False: self.tr("The verdict does not survive."),
            None: self.tr("The verdict is neither confirmed nor refuted."),
        }[found.survives]
        verdicts = self.tr("In the session: {0} · {1}; now: {2}.").format(
            found.verdict or "–", found.evidence, found.verdict_now or "–"
        )
        self.add_sentence(" ".join(filter(None, (outcome, verdicts, found.why))))
        self.add_sentence(found.sentence)
        self.chart = Ratios([self._row(one) for one in found.perturbations if one.measured_ratio is not None])
        if self.chart.rows:
            describe(self.chart, self.tr("Measured ratios with intervals; a bar across the row is the prediction"))
            self.add_widget(self.chart, 3)
            self.add_sentence(self.tr("A blue bar is what the verdict predicts; left of 1× the stage takes less."))
        agrees = {True: self.tr("yes"), False: self.tr("no"), None: "–"}
        titles = ("change", "of", "predicted", "measured", "95 % interval", "as predicted", "why")
        rows: list[list[object]] = [
            [
                one.name,
                one.change or "",
                number(one.predicted, ".3f"),
                number(one.measured_ratio, ".3f"),
                interval_text(one.ci95),
                agrees[one.agrees],
                one.unavailable or one.why or "",
            ]
            for one in found.perturbations
        ]
        title = self.tr("Time with the change over time without it")
        self.add_table(title, ([self.tr(text) for text in titles], rows), wraps=(-1,))


def begin(bench: Workbench, stage: str = "") -> None:
    """Confirm the verdict of a stage; without a name, of the one that the breakdown explains."""
    session = bench.session()
    chosen = None if session is None else bench.stage(stage)
    if session is not None and chosen is not None:
        bench.place(Confirmation(session, chosen[0], bench.window), False)
