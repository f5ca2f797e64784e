"""Tasks that decode again, or measure the machine: their pages show the document that the command prints."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QCoreApplication, QProcess
from PySide6.QtWidgets import QFormLayout, QWidget

from app.layout import NONE
from app.model.capacity import BOUND_S
from app.model.document import RatioRow
from app.model.provenance import words_of_run
from app.style.plain_text import Button, Label, describe
from app.views.ratios import Ratios
from app.widgets import NumberBox
from app.window.tasks.page import JSON, VERB, TaskPage
from app.window.tasks.workbench import Workbench
from pipelines.config import Value, value_text
from profiler.files.paths import new_session_path

tr = partial(QCoreApplication.translate, "Replays")


def explain(bench: Workbench, stage: str = "") -> None:
    """Find out what the time of a stage consists of; without a name, of the one that the breakdown explains."""
    begins = tr("Decoding some seconds of the session's audio again, the stage hot, cold and reshaped …")
    _of_a_stage(bench, "explain", stage, tr("Explain {0}"), begins)


def confirm(bench: Workbench, stage: str = "") -> None:
    """Confirm the verdict of a stage; without a name, of the one that the breakdown explains."""
    begins = tr("Decoding some seconds of the session's audio with the stage changed …")
    _of_a_stage(bench, "confirm", stage, tr("Confirm the verdict of {0}"), begins)


def _of_a_stage(bench: Workbench, verb: str, stage: str, title: str, begins: str) -> None:
    session = bench.session()
    chosen = None if session is None else bench.stage(stage)
    if session is not None and chosen is not None:
        words = (*VERB, verb, *JSON, str(session), chosen)
        bench.place(TaskPage(title.format(chosen), words, begins, bench.window, verb), False)


def audit(bench: Workbench) -> None:
    """Compare scores and words of the session's configuration with those of exact scoring, on the same audio."""
    session = bench.session()
    if session is not None:
        title, words = tr("Audit of {0}").format(session.name), (*VERB, "audit", *JSON, "--session", str(session))
        begins = tr("Decoding the session's audio with its configuration and with exact scoring …")
        bench.place(TaskPage(title, words, begins, bench.window, "audit"), False)


def calibrate(bench: Workbench) -> None:
    """Measure the roofs of this machine; what is known and undisturbed is not measured again."""
    begins = tr("Measuring the rates of this machine; use it for nothing else meanwhile …")
    words = (*VERB, "calibrate", *JSON)
    bench.place(TaskPage(tr("Roofs of this machine"), words, begins, bench.window, "calibrate"), False)


def trial(bench: Workbench, settings: Mapping[str, Value], tell: Callable[[RatioRow], object]) -> None:
    """Predict and measure what settings do to the session shown; they can be kept for the next run.

    `tell` gets the outcome of the whole run.
    """
    session = bench.session()
    if session is None:
        return
    texts = [f"{key}={value_text(value)}" for key, value in settings.items()]
    words = (*VERB, "whatif", "--check", *JSON, str(session), *(word for text in texts for word in ("--set", text)))
    begins = tr("Decoding some seconds of the session's audio with and without the change …")
    page = TaskPage(tr("Try {0}").format(", ".join(texts)), words, begins, bench.window, "whatif")
    keep = Button(tr("Keep it for the next run"))
    keep.setEnabled(False)

    def show_outcome() -> None:
        keep.setEnabled(page.copy.isEnabled())
        rows = [row for chart in page.charts if isinstance(chart, Ratios) for row in chart.rows]
        if page.copy.isEnabled() and rows:
            tell(rows[0])

    page.over.connect(show_outcome)

    def kept() -> None:
        bench.pipeline.edit()  # the settings that the session shows cannot be changed
        for key, value in settings.items():
            bench.pipeline.set(key, value)
        page.close()

    keep.clicked.connect(lambda _=False: kept())
    page.add_buttons(keep)
    bench.place(page, False)


CAPACITY: Final = (*VERB, "capacity", *JSON)
MOST: Final = 4096
PER_CORE: Final = 64
"""Streams that are tried at most for each core, unless somebody wants more."""
LONGEST_S: Final = 60.0


class CapacityPage(TaskPage):
    """Bound, cores and most streams; then latency and costs by number of streams."""

    def __init__(self, words: Sequence[str], about: str, parent: QWidget, command: Sequence[str] = CAPACITY) -> None:
        super().__init__(tr("How many streams?"), (), tr("Preparing …"), parent)
        self._command, self._stopping = (*command, *words), False
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
        self.start = Button(tr("Start"))
        self.start.setProperty("primary", True)
        self.start.clicked.connect(lambda _=False: self.cancel() if self.working else self._begin())
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
        if self.command.process.state() == QProcess.ProcessState.NotRunning:  # it waits for the measurement before
            self.close()
            return
        self._stopping = True
        self.start.setEnabled(False)
        self.state.setText(tr("Stopping …"))
        self.command.process.terminate()

    def _ended(self, printed: bytes, why: str) -> None:
        self.start.hide()
        super()._ended(printed, "" if self._stopping and printed else why)

    def show_result(self, printed: bytes) -> None:
        super().show_result(printed)
        self.form.hide()


def capacity(bench: Workbench) -> None:
    """Ask for bound and cores, with the settings and the audio of the next run."""
    preset = bench.pipeline.preset.name
    about = tr(
        "Streams of the audio of the next run share the cores, each a process with the settings of the form (preset "
        "{0}), until words are shown too late. Use the machine for nothing else meanwhile."
    ).format(preset)
    words = words_of_run(bench.pipeline.next, preset, bench.runs.next.audio)
    bench.place(CapacityPage(words, about, bench.window), True)
