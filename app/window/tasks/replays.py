"""Tasks that decode again, or measure the machine: their pages show the document that the command prints."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFormLayout, QWidget

from app.layout import NONE, named
from app.model.capacity import BOUND_S
from app.model.document import RatioRow
from app.model.provenance import words_of_run
from app.style.plain_text import Button, Label, describe
from app.views.ratios import Ratios
from app.widgets import NumberBox
from app.window.tasks.page import JSON, VERB, TaskPage
from pipelines.config import Value, value_text
from profiler.files.paths import new_session_path

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "Replays")


def explain(w: MainWindow, stage: str = "") -> None:
    """Find out what the time of a stage consists of; without a name, of the one that the breakdown explains."""
    begins = tr("Decoding some seconds of the session's audio again, the stage hot, cold and reshaped …")
    _of_a_stage(w, "explain", stage, tr("Explain {0}"), begins)


def confirm(w: MainWindow, stage: str = "") -> None:
    """Confirm the verdict of a stage; without a name, of the one that the breakdown explains."""
    begins = tr("Decoding some seconds of the session's audio with the stage changed …")
    _of_a_stage(w, "confirm", stage, tr("Confirm the verdict of {0}"), begins)


def _of_a_stage(w: MainWindow, verb: str, stage: str, title: str, begins: str) -> None:
    session = w.bench.session()
    if session is not None and (chosen := w.bench.stage(stage)) is not None:
        _show(w, verb, title.format(chosen), begins, str(session), chosen)


def _show(w: MainWindow, verb: str, title: str, begins: str, *words: str) -> TaskPage:
    page = TaskPage(title, (*VERB, verb, *JSON, *words), begins, w, verb)
    w.strip.place(page, False)
    return page


def audit(w: MainWindow) -> None:
    """Compare scores and words of the session's configuration with those of exact scoring, on the same audio."""
    if (session := w.bench.session()) is not None:
        begins = tr("Decoding the session's audio with its configuration and with exact scoring …")
        _show(w, "audit", tr("Audit of {0}").format(session.name), begins, "--session", str(session))


def calibrate(w: MainWindow) -> None:
    """Measure the roofs of this machine; what is known and undisturbed is not measured again."""
    begins = tr("Measuring the rates of this machine; use it for nothing else meanwhile …")
    _show(w, "calibrate", tr("Roofs of this machine"), begins)


def trial(w: MainWindow, settings: Mapping[str, Value], tell: Callable[[RatioRow], object]) -> None:
    """Predict and measure what settings do to the session, to keep them perhaps; `tell` gets the outcome."""
    session = w.bench.session()
    if session is None:
        return
    texts = [f"{key}={value_text(value)}" for key, value in settings.items()]
    options = (word for text in texts for word in ("--set", text))
    begins = tr("Decoding some seconds of the session's audio with and without the change …")
    page = _show(w, "whatif", tr("Try {0}").format(", ".join(texts)), begins, "--check", str(session), *options)

    def keep_it() -> None:
        w.pipeline.edit()  # the settings that the session shows cannot be changed
        for key, value in settings.items():
            w.pipeline.set(key, value)
        page.close()

    keep = Button(tr("Keep it for the next run"), keep_it)
    keep.setEnabled(False)
    page.add_buttons(keep)

    def show_outcome() -> None:
        keep.setEnabled(page.copy.isEnabled())
        rows = [row for chart in page.body.charts if isinstance(chart, Ratios) for row in chart.rows]
        if page.copy.isEnabled() and rows:
            tell(rows[0])

    page.over.connect(show_outcome)


CAPACITY: Final = (*VERB, "capacity", *JSON)
MOST: Final = 4096
PER_CORE: Final = 64  # Streams that are tried at most for each core, unless somebody wants more
LONGEST_S: Final = 60.0


class CapacityPage(TaskPage):
    """Bound, cores and most streams; then latency and costs by number of streams."""

    def __init__(self, words: Sequence[str], about: str, parent: QWidget, command: Sequence[str] = CAPACITY) -> None:
        super().__init__(tr("How many streams?"), (), tr("Preparing …"), parent)
        self._command = (*command, *words)
        self.bound, self.cores, self.most = NumberBox(), NumberBox(whole=True), NumberBox(whole=True)
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.form = QWidget()
        rows = QFormLayout(self.form)
        rows.setContentsMargins(*NONE)
        for box, title, low, high, value in (
            (self.bound, tr("p99 of the delay, at most"), 0.01, LONGEST_S, BOUND_S),
            (self.cores, tr("Cores"), 1, usable, usable),
            (self.most, tr("Streams, at most"), 1, MOST, PER_CORE * usable),
        ):
            box.setRange(low, high)
            box.setValue(value)
            describe(box, title)
            rows.addRow(Label(title), box)
        self.bound.set_unit(tr(" s"))
        start = Button(tr("Start"), lambda: self.cancel() if self.command.running else self._begin())
        self.start = named(start, primary=True)
        self.add_buttons(self.start)
        self.column.insertWidget(1, self.form)
        self.state.setText(about)

    def _begin(self) -> None:
        try:
            folder = new_session_path("capacity").with_suffix(".capacity")
        except OSError as error:
            self.state.setText(str(error))
            return
        self.form.setEnabled(False)
        self.start.setText(tr("Stop"))
        own = ("--bound", f"{self.bound.value():g}", "--cores", str(int(self.cores.value())))
        self.begin((*self._command, *own, "--streams", f"1..{int(self.most.value())}", "--out", str(folder)))

    def cancel(self) -> None:
        """Have the command end its streams and print what it has measured."""
        if not self.stop():
            self.close()
            return
        self.start.setEnabled(False)
        self.state.setText(tr("Stopping …"))

    def _ended(self, printed: bytes, why: str) -> None:
        self.start.hide()
        super()._ended(printed, "" if self.stopping and printed else why)

    def show_result(self, printed: bytes) -> None:
        super().show_result(printed)
        self.form.hide()


def capacity(w: MainWindow) -> None:
    """Ask for bound and cores, with the settings and the audio of the next run."""
    preset = w.pipeline.preset.name
    about = tr(
        "Streams of the audio of the next run share the cores, each a process with the settings of the form (preset "
        "{0}), until words are shown too late. Use the machine for nothing else meanwhile."
    ).format(preset)
    w.strip.place(CapacityPage(words_of_run(w.pipeline.next, preset, w.runs.next.audio), about, w), True)
