"""Compare two sessions, or the arms of one: what `asrscope compare` prints, ratios with intervals first.

What both ran can be recorded again on this machine, in turns (`asrscope ab`): that is shown in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.model.compared import FrameTimes
from app.model.document import Table
from app.model.recent import SESSION_SUFFIX
from app.model.statistics import QUANTILES
from app.style.plain_text import Button, describe, set_tip
from app.views.roofline import point_table
from app.views.roofline_model import Place, Point
from app.views.roofline_plot import Roofline
from app.views.statistics import Histogram
from app.widgets import ChoiceBox
from app.window.tasks.page import JSON, VERB, TaskPage
from profiler.analysis.comparison.compare import UNDECIDED
from profiler.plain import milliseconds

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "Comparison")

COMPARE: Final = (*VERB, "compare", *JSON)
MEASURE: Final = (*VERB, "ab", *JSON)
FROM: Final = "--session"
MOST_REPEATS: Final = 64  # Of each arm, where repeats are added until it is decided


class Comparison(TaskPage):
    """What differs, what it does to the time of each stage and to the words, and how sure that is.

    `command`: the verb with its options, to which the sessions are added, one of an A/B or two. `measures`: it records
    the sessions' settings again. `unavailable_reason`: why nothing can be measured now, or None.
    """

    measure = Signal(bool)  # Record again on this machine; whether until it is decided
    wanted = Signal(object)  # Open the session that was recorded

    def __init__(
        self,
        sessions: Sequence[Path],
        parent: QWidget,
        command: Sequence[str] = COMPARE,
        measures: bool = False,
        unavailable_reason: Callable[[], str | None] = lambda: None,
    ) -> None:
        names = tr(" and ").join(path.name for path in sessions)
        title, begins = tr("Compare {0}"), tr("Comparing …")
        if measures:
            title = tr("Compare {0} again on this machine")
            begins = tr("Decoding what the sessions decoded, with both settings in turns …")
        super().__init__(title.format(names), (*command, *map(str, sessions)), begins, parent)
        self.sessions = tuple(sessions)
        self.times: FrameTimesPage | None = None
        self.roofline: Roofline | None = None
        self._unavailable_reason = unavailable_reason
        self.open_new = Button(tr("Open the new session"), lambda: self.wanted.emit(self.sessions[0]))
        self.again = Button(tr("Run again here"), partial(self.measure.emit, False))
        self.more = Button(tr("More repeats until decided"), partial(self.measure.emit, True))
        for button in (self.open_new, self.again, self.more):
            button.setEnabled(False)
            self.add_buttons(button)
        self.open_new.hide()

    def show_result(self, printed: bytes) -> None:
        """Show the comparison, then pages with the times per frame and the roofline."""
        super().show_result(printed)
        result = json.loads(printed)
        self.body.begin_page(tr("Time per frame"))
        self._add_times(msgspec.convert(result["frame_times"], list[FrameTimes]))
        a, b = (msgspec.convert(result.get("roofline", {}).get(side, []), list[Point]) for side in "ab")
        if a or b:
            self.body.begin_page(tr("Roofline"))
            self._add_roofline(a, b)
        self._offer(result.get("session"), result["overall"]["verdict"])

    def _add_times(self, times: Sequence[FrameTimes]) -> None:
        self.times = FrameTimesPage(times)
        self.body.add_widget(self.times.stage, 0)
        self.body.add_widget(self.times.plot, 3)
        headers = ["stage", "mean A", "mean B", *(f"{name} {side}" for name in QUANTILES for side in "AB")]
        headers += ["highest A", "highest B", "frames A", "frames B"]
        rows = [
            [tr(one.name), *map(milliseconds, pairs), one.a.frames, one.b.frames]
            for one in times
            if (pairs := [ms for both in zip(one.a.figures, one.b.figures, strict=True) for ms in both])
        ]
        self.body.add_table(Table(tr("ms per frame in A and B"), [tr(text) for text in headers], rows))

    def _add_roofline(self, a: Sequence[Point], b: Sequence[Point]) -> None:
        self.roofline = plot = Roofline()
        show = partial(plot.show_points, b, where=Place(threads=0), before=a, baseline="A")
        plot.chosen.connect(show)
        show(next((point.name for point in b), None))
        self.body.add_sentence(tr("An arrow goes from a stage in A (ring) to the same stage in B (dot)."))
        self.body.add_widget(plot, 3)
        self.body.add_table(Table(tr("Roofline of B and A"), *point_table(b, a, "A")))

    def _offer(self, session: str | None, verdict: str) -> None:
        if session is not None:
            self.sessions = (Path(session),)
            self.open_new.show()
            self.open_new.setEnabled(True)
        why = self._unavailable_reason()
        decided = None if verdict == UNDECIDED else tr("It is decided: {0}.").format(verdict)
        for button, tip, reason in (
            (self.again, tr("Records both settings on the same audio in turns, as a new session"), why),
            (self.more, tr("The same, doubling the repeats up to {0}").format(MOST_REPEATS), why or decided),
        ):
            button.setEnabled(reason is None)
            set_tip(button, reason or tip)


class FrameTimesPage:
    """The histogram of the ms per frame of A and B, and the choice of the stage that it is of."""

    def __init__(self, times: Sequence[FrameTimes]) -> None:
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
        self.plot.show_statistics(*map(one.statistics, (one.a, one.b)))
        sentence = tr("{0}: median {1} ms per frame in A, {2} ms in B; p99 {3} and {4} ms.").format(
            tr(one.name), *map(milliseconds, (one.a.p50_ms, one.b.p50_ms, one.a.p99_ms, one.b.p99_ms))
        )
        describe(self.plot, tr("Time per frame"), sentence)


def begin(w: MainWindow) -> None:
    if (session := w.playhead.session) is None:
        return
    kinds = tr("Sessions (*{0})").format(SESSION_SUFFIX)
    title = tr("Compare {0} with").format(session.path.name)
    path, _ = QFileDialog.getOpenFileName(w, title, str(session.path.parent), kinds)
    if path:
        _show(w, Comparison((session.path, Path(path)), w, unavailable_reason=w.bench.machine_reason))


def arms(w: MainWindow) -> None:
    if (session := w.playhead.session) is not None:
        _show(w, Comparison((session.path,), w, unavailable_reason=w.bench.machine_reason))


def _show(w: MainWindow, made: Comparison) -> None:
    """Show a comparison; what its sessions ran can be recorded again in turns on this machine, and compared."""

    def measure(until_decided: bool) -> None:
        until = ("--until-decided", str(MOST_REPEATS)) if until_decided else ()
        _show(w, Comparison(made.sessions, w, (*MEASURE, *until, FROM), True, w.bench.machine_reason))

    def remember() -> None:
        if made.open_new.isEnabled():
            w.memory.add_session(made.sessions[0])

    made.measure.connect(measure)
    made.wanted.connect(w.files.open_session)
    made.over.connect(remember)
    w.strip.place(made, False)
