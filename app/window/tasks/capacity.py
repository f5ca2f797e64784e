"""Capacity: how many streams this machine carries with the settings of the form; `asrscope capacity` measures it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QCoreApplication, QProcess
from PySide6.QtWidgets import QFormLayout, QWidget

from app.layout import NONE
from app.model.capacity import BOUND_S
from app.model.provenance import words_of_run
from app.style.plain_text import Button, Label, describe
from app.widgets import NumberBox
from app.window.tasks.page import JSON, VERB, TaskPage
from app.window.tasks.workbench import Workbench
from profiler.files.paths import new_session_path

CAPACITY: Final = (*VERB, "capacity", *JSON)
MOST: Final = 4096
PER_CORE: Final = 64
"""Streams that are tried at most for each core, unless somebody wants more."""
LONGEST_S: Final = 60.0

tr = partial(QCoreApplication.translate, "Capacity")


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


def begin(bench: Workbench) -> None:
    """Ask for bound and cores, with the settings and the audio of the next run."""
    preset = bench.pipeline.preset.name
    about = tr(
        "Streams of the audio of the next run share the cores, each a process with the settings of the form (preset "
        "{0}), until words are shown too late. Use the machine for nothing else meanwhile."
    ).format(preset)
    words = words_of_run(bench.pipeline.next, preset, bench.runs.next.audio)
    bench.place(CapacityPage(words, about, bench.window), True)
