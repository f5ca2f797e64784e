"""Try a change: `asrscope whatif --check` decodes some seconds of the session's audio with and without it, in turns.

Shows prediction and outcome next to each other, in total and per stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtWidgets import QWidget

from app.model.report import Printed, read_printed
from app.model.report_lines import interval_text, number, words_changed
from app.style.plain_text import Button, describe
from app.views.ratios import RatioRow, Ratios
from app.window.tasks.page import VERB, TaskPage
from app.window.tasks.workbench import Workbench
from pipelines.config import Value, value_text
from profiler.analysis.comparison.compare import A_FASTER, B_FASTER, by_interval
from profiler.analysis.comparison.statistics import Ratio
from profiler.plain import counted

WHATIF: Final = (*VERB, "whatif", "--check", "--json")


class Trial(TaskPage):
    """The effect of settings on the time of a session's audio, predicted and measured.

    Args:
        session: the session's file.
        settings: what is changed, key → value.
        parent: the window.
        keep: takes the settings over for the next run.
        command: the verb with its options.
    """

    def __init__(
        self,
        session: Path,
        settings: Mapping[str, Value],
        parent: QWidget,
        keep: Callable[[Mapping[str, Value]], None],
        command: Sequence[str] = WHATIF,
    ) -> None:
        texts = [f"{key}={value_text(value)}" for key, value in settings.items()]
        given = [word for text in texts for word in ("--set", text)]
        super().__init__(
            self.tr("Try {0}").format(", ".join(texts)),
            (*command, str(session), *given),
            self.tr("Decoding some seconds of the session's audio with and without the change …"),
            parent,
        )
        self.keep = Button(self.tr("Keep it for the next run"))
        self.keep.setEnabled(False)
        self.keep.clicked.connect(lambda _=False: keep(settings))
        self.keep.clicked.connect(self.close)
        self.add_buttons(self.keep)
        self.chart: Ratios | None = None

    def show_result(self, printed: bytes) -> None:
        """Show prediction and outcome."""
        found = read_printed(printed)
        check = found.check
        rounds = counted(check.rounds, self.tr("round"), self.tr("rounds"))
        self.state.setText(self.tr("Measured on this machine, now: {0} of {1}.").format(rounds, check.audio))
        self.add_sentence(
            self.tr("Time with the change: {0} of the time without it; the prediction was {1}.").format(
                _ratio(check.ratio, check.ci95), _ratio(check.predicted_ratio, None)
            )
        )
        self.add_sentence(
            self.tr("RTF here and now {0} → {1}; of the session {2}, predicted {3}.").format(
                *(number(rtf, ".4f") for rtf in (check.rtf, check.changed_rtf, found.rtf, found.predicted_rtf))
            )
        )
        whole = Printed(check, name=self.tr("whole run"), predicted=check.predicted_ratio)
        self.chart = Ratios([self._row(row) for row in (whole, *check.stages) if row.ratio is not None])
        describe(self.chart, self.tr("Measured ratios with their intervals; a bar across the row is the prediction"))
        self.add_widget(self.chart, 3)
        self.add_sentence(self.tr("A blue bar is what was predicted; left of 1× the change is faster."))
        self.add_sentence(words_changed(check.wer_words, check.wer_errors, check.changed_wer_errors))
        headers = [self.tr(t) for t in ("stage", "predicted", "measured", "95 % interval")]
        rows = [
            [row.name, number(row.predicted, ".2f"), number(row.ratio, ".2f"), interval_text(row.ci95)]
            for row in check.stages
        ]
        self.add_table(self.tr("Time with the change over time without it"), (headers, rows))
        for sentence in found.assumptions:
            self.add_sentence(sentence)
        self.keep.setEnabled(True)

    def _row(self, row: Printed) -> RatioRow:
        """A line of the chart."""
        ratio = row.ratio or 0.0
        verdict = by_interval(Ratio(ratio, *(row.ci95 or (None, None))))
        text = {B_FASTER: self.tr("faster"), A_FASTER: self.tr("slower")}.get(verdict, "")
        return RatioRow(row.name, ratio, row.ci95, verdict, row.predicted, text)


def _ratio(value: float | None, ends: tuple[float, float] | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1%}" if ends is None else f"{value:.1%} ({ends[0]:.1%} – {ends[1]:.1%})"


def begin(bench: Workbench, settings: Mapping[str, Value]) -> None:
    """Try settings on the session shown."""

    def keep(kept: Mapping[str, Value]) -> None:
        for key, value in kept.items():
            bench.pipeline.set(key, value)

    session = bench.session()
    if session is not None:
        bench.place(Trial(session, settings, bench.window, keep), False)
