"""Compare two sessions, or the arms of one: what `asrscope compare` prints, ratios with intervals first.

What both ran can be recorded again on this machine, in turns (`asrscope ab`): that is shown in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.model.figures import rate_name
from app.model.recent import SESSION_SUFFIX
from app.model.report import Printed, read_printed
from app.model.report_lines import interval_text, number
from app.model.statistics import QUANTILES, Statistics
from app.style.plain_text import Button, describe, set_tip
from app.views.histogram import Histogram
from app.views.ratios import RatioRow, Ratios
from app.views.roofline import point_table
from app.views.roofline_model import Place, Point
from app.views.roofline_plot import Roofline
from app.widgets import ChoiceBox
from app.window.tasks.page import VERB, TaskPage
from app.window.tasks.workbench import Workbench
from pipelines.config import value_text
from profiler.analysis.comparison.compare import UNDECIDED
from profiler.plain import counted, milliseconds

tr = partial(QCoreApplication.translate, "Comparison")

COMPARE: Final = (*VERB, "compare", "--json")
MEASURE: Final = (*VERB, "ab", "--json")
FROM: Final = "--session"
MOST_REPEATS: Final = 64
"""Of each arm, where repeats are added until it is decided."""


class Comparison(TaskPage):
    """What differs, what it does to the time of each stage and to the words, and how sure that is.

    Args:
        sessions: one A/B session, or two sessions.
        parent: the window.
        command: the verb with its options, to which the sessions are added.
        measures: whether the command records the sessions' settings again, which takes a while.
        unavailable_reason: why nothing can be measured now, or None.

    Signals:
        measure: record again on this machine; whether until it is decided.
        wanted: open the session that was recorded.
    """

    measure = Signal(bool)
    wanted = Signal(object)

    def __init__(
        self,
        sessions: Sequence[Path],
        parent: QWidget,
        command: Sequence[str] = COMPARE,
        measures: bool = False,
        unavailable_reason: Callable[[], str | None] = lambda: None,
    ) -> None:
        names = tr(" and ").join(path.name for path in sessions)
        title = tr("Compare {0} again on this machine") if measures else tr("Compare {0}")
        begins = (
            tr("Decoding what the sessions decoded, with both settings in turns …") if measures else tr("Comparing …")
        )
        super().__init__(title.format(names), (*command, *map(str, sessions)), begins, parent)
        self.sessions = tuple(sessions)
        self.chart: Ratios | None = None
        self.times: FrameTimesPage | None = None
        self.roofline: Roofline | None = None
        self._unavailable_reason = unavailable_reason
        self.open_new = Button(tr("Open the new session"))
        self.again = Button(tr("Run again here"))
        self.more = Button(tr("More repeats until decided"))
        for button in (self.open_new, self.again, self.more):
            button.setEnabled(False)
            self.add_buttons(button)
        self.open_new.hide()
        self.open_new.clicked.connect(lambda _=False: self.wanted.emit(self.sessions[0]))
        self.again.clicked.connect(lambda _=False: self.measure.emit(False))
        self.more.clicked.connect(lambda _=False: self.measure.emit(True))

    def show_result(self, printed: bytes) -> None:
        """Show warnings, the whole, the words, then pages with stages, words and times per frame."""
        result = read_printed(printed)
        one = result.a == result.b
        what = tr("A and B of {0}") if one else tr("A: {0} · B: {1}")
        said = [what.format(Path(result.a).name, Path(result.b).name)]
        said += [f"{key}: {_value(a)} → {_value(b)}" for key, (a, b) in result.differences.items()] or [
            tr("the same settings")
        ]
        self.state.setText(" · ".join(said))
        warnings = list(result.warnings)
        if result.words.differ:
            of = counted(result.words.of, tr("utterance"), tr("utterances"))
            warnings.append(tr("The recognised words differ in {0} of {1}.").format(result.words.differ, of))
        self.add_sentence(_summary(result))
        if result.wer["a"] is not None and result.wer["b"] is not None:
            self.add_sentence(
                tr("{0} {1} in A ({2}), {3} in B ({4}).").format(
                    rate_name(result.wer["a"], result.cer["a"]),
                    f"{result.wer['a']:.1%}",
                    counted(result.wer_errors["a"], tr("error"), tr("errors")),
                    f"{result.wer['b']:.1%}",
                    counted(result.wer_errors["b"], tr("error"), tr("errors")),
                )
            )
        self.add_banner(warnings)
        self.begin_page(tr("Stages"))
        self._add_stages(result)
        self.begin_page(tr("Words"))
        self._add_words(result.words)
        self.begin_page(tr("Time per frame"))
        self._add_times(result.frame_times)
        a, b = (msgspec.convert(result.get("roofline", {}).get(side, []), list[Point]) for side in "ab")
        if a or b:
            self.begin_page(tr("Roofline"))
            self._add_roofline(a, b)
        self._offer(result)

    def _add_stages(self, result: Printed) -> None:
        rows = [RatioRow(tr("whole run"), *_judged(result.overall))]
        rows += [RatioRow(row.name, *_judged(row)) for row in result.stages]
        self.chart = Ratios(rows)
        describe(self.chart, tr("Time of B over time of A"), _summary(result))
        self.add_widget(self.chart, 3)
        headers = [tr(t) for t in ("stage", "A s", "B s", "B / A", "95 % interval", "p", "verdict")]
        table: list[list[object]] = [
            [
                row.name,
                f"{row.a_s:.3f}",
                f"{row.b_s:.3f}",
                f"{row.ratio:.3f}",
                interval_text(row.ci95),
                number(row.p_adjusted, ".4f"),
                tr(row.verdict),
            ]
            for row in result.stages
        ]
        table += [[n, f"{s:.3f}", "", "", "", "", tr("only in A")] for n, s in result.only_a.items()]
        table += [[n, "", f"{s:.3f}", "", "", "", tr("only in B")] for n, s in result.only_b.items()]
        self.add_table(tr("Stages of A and B"), (headers, table), 2)

    def _add_words(self, words: Printed) -> None:
        of = counted(words.of, tr("utterance"), tr("utterances"))
        if not words.differ:
            self.add_sentence(tr("The recognised words are the same in A and B ({0}).").format(of))
        elif len(words.utterances) < words.differ:
            cut = tr("The recognised words differ in {0} of {1}; the {2} worst are shown, {3} are left out.")
            left_out = words.differ - len(words.utterances)
            self.add_sentence(cut.format(words.differ, of, len(words.utterances), left_out))
        headers = [tr(t) for t in ("utterance", "errors A", "errors B", "reference", "A", "B")]
        rows: list[list[object]] = [
            [row.id, row.errors_a, row.errors_b, row.reference or "–", row.a or "–", row.b or "–"]
            for row in words.utterances
        ]
        self.add_table(tr("Utterances whose words differ, the worst first"), (headers, rows), wraps=(3, 4, 5))

    def _add_times(self, times: Sequence[Printed]) -> None:
        self.times = FrameTimesPage(times)
        self.add_widget(self.times.stage, 0)
        self.add_widget(self.times.plot, 3)
        headers = ["stage", "mean A", "mean B", *(f"{name} {side}" for name in QUANTILES for side in "AB")]
        headers += ["highest A", "highest B", "frames A", "frames B"]
        rows: list[list[object]] = []
        for one in times:
            pairs = ("mean_ms", *(f"{name}_ms" for name in QUANTILES), "highest_ms")
            figures = [milliseconds(getattr(side, name)) for name in pairs for side in (one.a, one.b)]
            rows.append([tr(one.name), *figures, one.a.frames, one.b.frames])
        self.add_table(tr("ms per frame in A and B"), ([tr(text) for text in headers], rows), 2)

    def _add_roofline(self, a: Sequence[Point], b: Sequence[Point]) -> None:
        self.roofline = plot = Roofline()
        show = partial(plot.show_points, b, where=Place(threads=0), before=a, baseline="A")
        plot.chosen.connect(show)
        show(next((point.name for point in b), None))
        self.add_sentence(tr("An arrow goes from a stage in A (ring) to the same stage in B (dot)."))
        self.add_widget(plot, 3)
        self.add_table(tr("Roofline of B and A"), point_table(b, a, "A"), 2)

    def _offer(self, result: Printed) -> None:
        """What can be done next."""
        if "session" in result:
            self.sessions = (Path(result.session),)
            self.open_new.show()
            self.open_new.setEnabled(True)
        why = self._unavailable_reason()
        decided = (
            None if result.overall.verdict == UNDECIDED else tr("It is decided: {0}.").format(result.overall.verdict)
        )
        for button, tip, reason in (
            (self.again, tr("Records both settings on the same audio in turns, as a new session"), why),
            (self.more, tr("The same, doubling the repeats up to {0}").format(MOST_REPEATS), why or decided),
        ):
            button.setEnabled(reason is None)
            set_tip(button, reason or tip)


class FrameTimesPage:
    """The histogram of the ms per frame of A and B, and the choice of the stage that it is of."""

    def __init__(self, times: Sequence[Printed]) -> None:
        self._times = times
        self.plot = Histogram()
        self.stage = ChoiceBox(tr("Time of"), [(tr(one.name), one.name) for one in times])
        self.stage.currentIndexChanged.connect(self._show)
        self._show(self.stage.currentIndex())

    def _show(self, at: int) -> None:
        if not 0 <= at < len(self._times):
            describe(self.plot, tr("Time per frame"), tr("No stage ran in both."))
            return
        one = self._times[at]
        self.plot.show_statistics(*(_statistics(one, side) for side in (one.a, one.b)))
        sentence = tr("{0}: median {1} ms per frame in A, {2} ms in B; p99 {3} and {4} ms.").format(
            tr(one.name), *map(milliseconds, (one.a.p50_ms, one.b.p50_ms, one.a.p99_ms, one.b.p99_ms))
        )
        describe(self.plot, tr("Time per frame"), sentence)


def _statistics(times: Printed, side: Printed) -> Statistics:
    quantiles = (side.p50_ms, side.p90_ms, side.p99_ms)
    edges, counts = np.array(times.edges_ms), np.array(side.counts, np.int64)
    slowest = np.empty(0, np.int64), np.empty(0)
    return Statistics(times.name, side.frames, side.mean_ms, quantiles, side.highest_ms, edges, counts, *slowest)


def _summary(result: Printed) -> str:
    overall = result.overall
    interval = "" if overall.ci95 is None else f" ({interval_text(overall.ci95)})"
    how = tr("in turns") if result.interleaved else tr("one after the other")
    return tr("{0}: B takes {1}{2} of A's time, over {3} {4}, {5} s of audio.").format(
        tr(overall.verdict),
        f"{overall.ratio:.3f}",
        interval,
        counted(result.repeats, tr("repeat"), tr("repeats")),
        how,
        f"{result.audio_s:.1f}",
    )


def _judged(row: Printed) -> tuple[float, tuple[float, float] | None, str]:
    return row.ratio, row.ci95, row.verdict


def _value(value: object) -> str:
    return "–" if value is None else value_text(value)


def begin(bench: Workbench, arms: bool = False) -> None:
    """Ask for a session, and compare the one shown with it; `arms`: compare A and B of the one shown."""
    session = bench.playhead.session
    if session is None:
        return
    sessions = [session.path]
    if not arms:
        kinds = tr("Sessions (*{0})").format(SESSION_SUFFIX)
        title = tr("Compare {0} with").format(session.path.name)
        path, _ = QFileDialog.getOpenFileName(bench.window, title, str(session.path.parent), kinds)
        if not path:
            return
        sessions.append(Path(path))
    _place(bench, Comparison(sessions, bench.window, unavailable_reason=bench.machine_reason))


def _measure(bench: Workbench, before: Comparison, until_decided: bool) -> None:
    """Record what the sessions of a comparison ran, in turns on this machine, and compare the arms."""
    until = ("--until-decided", str(MOST_REPEATS)) if until_decided else ()
    command = (*MEASURE, *until, FROM)
    reason = bench.machine_reason
    _place(bench, Comparison(before.sessions, bench.window, command, measures=True, unavailable_reason=reason))


def _place(bench: Workbench, made: Comparison) -> None:
    """Show a comparison, from which further ones can be measured."""
    made.measure.connect(lambda until_decided: _measure(bench, made, until_decided))
    made.wanted.connect(bench.files.open_session)
    made.over.connect(lambda: _remember(bench, made))
    bench.place(made, False)


def _remember(bench: Workbench, made: Comparison) -> None:
    if made.open_new.isEnabled():
        bench.memory.add_session(made.sessions[0])
