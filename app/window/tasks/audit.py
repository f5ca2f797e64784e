"""Audit: `asrscope audit` on the session shown; what its configuration costs in scores and words, and what it saves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtWidgets import QWidget

from app.model.figures import rate_name
from app.model.report import Printed, read_printed
from app.model.report_lines import number
from app.style.plain_text import describe
from app.views.labs.panel import Panel
from app.views.labs.series import looks
from app.window.tasks.page import VERB, TaskPage
from app.window.tasks.workbench import Workbench
from pipelines.config import value_text
from pipelines.labs.chart import Axis, Bars, Chart
from profiler.plain import counted

AUDIT: Final = (*VERB, "audit", "--json", "--session")

ROOM: Final = 0.2
"""Of the axis of shares, above all that exact scoring does: figures stand there."""

HEIGHT: Final = 150
"""Pixels of the chart, at least."""


class AuditPage(TaskPage):
    """Scores and words of the session's configuration next to those of exact scoring, on the same audio."""

    def __init__(self, session: Path, parent: QWidget, command: Sequence[str] = AUDIT) -> None:
        super().__init__(
            self.tr("Audit of {0}").format(session.name),
            (*command, str(session)),
            self.tr("Decoding the session's audio with its configuration and with exact scoring …"),
            parent,
        )
        self.chart: Panel | None = None

    def show_result(self, printed: bytes) -> None:
        """Show what it costs, then the work as a chart, then the words of each utterance."""
        result = read_printed(printed)
        said = [f"{key}={value_text(value)}" for key, value in result.approximations.items()]
        said.append(counted(len(result.utterances), self.tr("utterance"), self.tr("utterances")))
        said.append(self.tr("{0} frames").format(result.frames))
        self.state.setText(" · ".join(said))
        self.add_banner(result.notes)
        self.add_sentence(
            self.tr(
                "Scores: {0} nat off on average, within {1} nat of the best senone, which is the exact one in {2} of "
                "the frames."
            ).format(number(result.score_error_near, ".3g"), f"{result.near_nat:g}", _percent(result.same_best_senone))
        )
        self.add_sentence(self._words(result))
        changed = sum(one.hypothesis != one.exact for one in result.utterances)
        of = counted(len(result.utterances), self.tr("utterance"), self.tr("utterances"))
        self.add_sentence(self.tr("The words differ from those of exact scoring in {0} of {1}.").format(changed, of))
        if result.shares:
            work = {name.capitalize(): share for name, share in result.shares.items()}
            percent = tuple(100 * share for share in work.values())
            axis = Axis(self.tr("work done, of exact scoring"), "%", low=0.0, high=max(100.0, *percent) * (1 + ROOM))
            chart = Chart(Axis("", categories=tuple(work)), axis, (Bars(self.tr("work"), percent),))
            self.chart = Panel(chart, looks(chart))
            self.chart.setMinimumHeight(HEIGHT)
            sentence = ", ".join(f"{name} {_percent(share)}" for name, share in work.items())
            describe(self.chart, self.tr("Work done, of that of exact scoring"), f"{sentence}.")
            self.add_widget(self.chart, 2)
        headers = [
            self.tr(text)
            for text in ("utterance", "errors exact", "errors", "reference", "exact scoring", "this configuration")
        ]
        rows: list[list[object]] = [
            [one.id, one.exact_errors, one.errors, one.reference or "–", one.exact or "–", one.hypothesis or "–"]
            for one in sorted(result.utterances, key=_more_errors)
        ]
        title = self.tr("Words of each utterance, the worst first")
        self.add_table(title, (headers, rows), 3, wraps=(3, 4, 5))

    def _words(self, result: Printed) -> str:
        if result.wer is None or result.wer_exact is None or result.wer_change is None:
            return self.tr("Without transcripts the word errors are not known.")
        interval = ""
        if result.wer_change_ci95 is not None:
            low, high = (f"{100 * end:+.1f}" for end in result.wer_change_ci95)
            interval = self.tr(", 95 % interval {0} … {1}").format(low, high)
        name = rate_name(result.wer, result.cer)
        unit = ("character", "characters") if name == "CER" else ("word", "words")
        return self.tr("{0} {1} exact → {2}: {3} points{4}, over {5}.").format(
            name,
            _percent(result.wer_exact),
            _percent(result.wer),
            f"{100 * result.wer_change:+.1f}",
            interval,
            counted(result.wer_words, *map(self.tr, unit)),
        )


def _more_errors(one: Printed) -> float:
    """Rank of an utterance: what costs most errors first, what has no transcript last."""
    return 1e9 if one.errors is None or one.exact_errors is None else one.exact_errors - one.errors


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def begin(bench: Workbench) -> None:
    session = bench.session()
    if session is not None:
        bench.place(AuditPage(session, bench.window), False)
