"""Compare two sessions, or the arms of one: `asrscope compare` as a dialog, ratios with intervals first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from PySide6.QtWidgets import QFileDialog, QWidget

from app.model.recent import SESSION_SUFFIX
from app.model.report_lines import number
from app.views.ratios import RatioRow, Ratios
from app.window.command_dialog import VERB, CommandDialog, interval_text, open_over
from pipelines.config import Value, value_text
from profiler.plain import counted

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

COMPARE: Final = (*VERB, "compare", "--json")


class Row(msgspec.Struct, frozen=True):
    """A ratio of `asrscope compare --json`; times in seconds."""

    ratio: float
    ci95: tuple[float, float] | None
    verdict: str
    a_s: float
    b_s: float
    name: str = ""
    p_adjusted: float | None = None
    rtf_a: float | None = None
    rtf_b: float | None = None


class Result(msgspec.Struct, frozen=True):
    """What `asrscope compare --json` prints, as far as it is shown."""

    a: str
    b: str
    warnings: list[str]
    overall: Row
    stages: list[Row]
    only_a: dict[str, float]
    only_b: dict[str, float]
    wer: dict[str, float | None]
    wer_errors: dict[str, int]
    wer_words: dict[str, int]
    repeats: int
    audio_s: float
    interleaved: bool
    differences: dict[str, tuple[Value | None, Value | None]]


class Comparison(CommandDialog):
    """What differs, what it does to the time of each stage and to the words, and how sure that is."""

    def __init__(self, sessions: Sequence[Path], parent: QWidget, command: Sequence[str] = COMPARE) -> None:
        names = self.tr(" and ").join(path.name for path in sessions)
        super().__init__(
            self.tr("Compare {0}").format(names),
            (*command, *map(str, sessions)),
            self.tr("Comparing …"),
            parent,
        )
        self.chart: Ratios | None = None

    def show_result(self, printed: bytes) -> None:
        """Show warnings, the whole, the words, then the stages as chart and table."""
        found = msgspec.json.decode(printed, type=Result)
        one = found.a == found.b
        what = self.tr("A and B of {0}") if one else self.tr("A: {0} · B: {1}")
        said = [what.format(Path(found.a).name, Path(found.b).name)]
        said += [f"{key}: {_value(a)} → {_value(b)}" for key, (a, b) in found.differences.items()] or [
            self.tr("the same settings")
        ]
        self.state.setText(" · ".join(said))
        for warning in found.warnings:
            self.add_sentence(self.tr("Note: {0}").format(warning))
        self.add_sentence(self._summary(found))
        if found.wer["a"] is not None and found.wer["b"] is not None:
            self.add_sentence(
                self.tr("WER {0} in A ({1}), {2} in B ({3}).").format(
                    f"{found.wer['a']:.1%}",
                    counted(found.wer_errors["a"], self.tr("error"), self.tr("errors")),
                    f"{found.wer['b']:.1%}",
                    counted(found.wer_errors["b"], self.tr("error"), self.tr("errors")),
                )
            )
        rows = [RatioRow(self.tr("whole run"), *_judged(found.overall))]
        rows += [RatioRow(row.name, *_judged(row)) for row in found.stages]
        self.chart = Ratios(rows)
        self.add_widget(self.chart, 3)
        headers = [self.tr(t) for t in ("stage", "A s", "B s", "B / A", "95 % interval", "p", "verdict")]
        table: list[list[object]] = [
            [
                row.name,
                f"{row.a_s:.3f}",
                f"{row.b_s:.3f}",
                f"{row.ratio:.3f}",
                interval_text(row.ci95),
                number(row.p_adjusted, ".4f"),
                self.tr(row.verdict),
            ]
            for row in found.stages
        ]
        table += [[n, f"{s:.3f}", "", "", "", "", self.tr("only in A")] for n, s in found.only_a.items()]
        table += [[n, "", f"{s:.3f}", "", "", "", self.tr("only in B")] for n, s in found.only_b.items()]
        self.add_table(self.tr("Stages of A and B"), (headers, table), 2)

    def _summary(self, result: Result) -> str:
        overall = result.overall
        interval = "" if overall.ci95 is None else f" ({interval_text(overall.ci95)})"
        how = self.tr("in turns") if result.interleaved else self.tr("one after the other")
        return self.tr("{0}: B takes {1}{2} of A's time, over {3} {4}, {5} s of audio.").format(
            self.tr(overall.verdict),
            f"{overall.ratio:.3f}",
            interval,
            counted(result.repeats, self.tr("repeat"), self.tr("repeats")),
            how,
            f"{result.audio_s:.1f}",
        )


def _judged(row: Row) -> tuple[float, tuple[float, float] | None, str]:
    return row.ratio, row.ci95, row.verdict


def _value(value: object) -> str:
    return "–" if value is None else value_text(value)


def compare_with(window: MainWindow) -> None:
    """Ask for a session, and compare the one shown with it; an A/B session compares its arms without asking."""
    session = window.playhead.session
    if session is None:
        return
    sessions = [session.path]
    if "ab" not in session.meta:
        kinds = window.tr("Sessions (*{0})").format(SESSION_SUFFIX)
        title = window.tr("Compare {0} with").format(session.path.name)
        path, _ = QFileDialog.getOpenFileName(window, title, str(session.path.parent), kinds)
        if not path:
            return
        sessions.append(Path(path))
    open_over(window, Comparison(sessions, window))
