"""Capacity: how many streams this machine carries with the settings of the form; `asrscope capacity` measures it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QCoreApplication, QProcess
from PySide6.QtWidgets import QFormLayout, QWidget

from app.layout import NONE
from app.model.assignments import words_of_run
from app.model.capacity import BOUND_S, Quantiles, headline
from app.model.report import Printed, read_printed
from app.model.report_lines import number
from app.style.plain_text import Button, Label, describe
from app.views.labs.panel import Panel
from app.views.labs.series import looks
from app.widgets import NumberBox
from app.window.tasks.page import VERB, TaskPage
from app.window.tasks.workbench import Workbench
from pipelines.labs.chart import Axis, Chart, Layer, Line, Mark
from profiler.files.paths import new_session_path
from profiler.plain import counted

CAPACITY: Final = (*VERB, "capacity", "--json")
MOST: Final = 4096
LONGEST_S: Final = 60.0
HEIGHT = 200
"""Pixels of the chart, at least."""

tr = partial(QCoreApplication.translate, "Capacity")


def quantile_of(row: Printed, latency: str, quantile: str) -> float | None:
    """A quantile of a latency of N streams, s; None where it is not known."""
    known: Quantiles = row.latency_s.get(latency) or {}
    return known.get(quantile)


def chart(result: Printed) -> Chart:
    """p50 and p99 of the delay over the number of streams, with the bound; whiskers are the range of the repeats."""
    rows = [row for row in result.streams if quantile_of(row, DELAY, "p99") is not None]
    n = tuple(float(row.n) for row in rows)
    ranges = [row.p99_range_s or (None, None) for row in rows]
    layers: list[Layer] = [
        Line(
            tr("p99"),
            n,
            tuple(quantile_of(row, DELAY, "p99") for row in rows),
            tuple(low for low, _ in ranges),
            tuple(high for _, high in ranges),
        ),
        Line(tr("p50"), n, tuple(quantile_of(row, DELAY, "p50") for row in rows)),
        Mark(tr("bound {0} s").format(f"{result.bound_p99_s:g}"), result.bound_p99_s),
    ]
    if result.capacity:
        layers.append(Mark(_streams(result.capacity), float(result.capacity), on="x"))
    cores = counted(result.cores, tr("core"), tr("cores"))
    return Chart(Axis(tr("streams on {0}").format(cores), log=True), Axis(tr("delay"), "s", log=True), tuple(layers))


DELAY: Final = "without_emission"
HEADERS: Final = (
    "streams", "delay p50, s", "delay p99, s", "first shown p99, s", "stable p99, s", "final p99, s", "chunk p99, s",
    "RTF p50", "RTFx", "memory, MB", "core-s per hour", "queue grows", "held",
)  # fmt: skip


class CapacityPage(TaskPage):
    """Bound, cores and most streams; then latency and costs by number of streams."""

    def __init__(self, words: Sequence[str], about: str, parent: QWidget, command: Sequence[str] = CAPACITY) -> None:
        super().__init__(tr("How many streams?"), (), tr("Preparing …"), parent)
        self._command, self._stopping = (*command, *words), False
        self.chart: Panel | None = None
        self.bound, self.cores, self.most = NumberBox(), NumberBox(whole=True), NumberBox(whole=True)
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.form = QWidget()
        rows = QFormLayout(self.form)
        rows.setContentsMargins(*NONE)
        for box, title, low, high, value in (
            (self.bound, tr("p99 of the delay, at most"), 0.01, LONGEST_S, BOUND_S),
            (self.cores, tr("Cores"), 1, usable, usable),
            (self.most, tr("Streams, at most"), 1, MOST, MOST),
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
        """Show how many, what limits them, the chart and the table."""
        result = read_printed(printed)
        self.form.hide()
        figures = (result.capacity, result.capacity_range, result.cores, result.bound_p99_s, result.finished)
        self.state.setText(headline(*figures, result.cpu_limit))
        for sentence in (result.why, *result.notes):
            self.add_sentence(sentence)
        if result.streams:
            drawn = chart(result)
            self.chart = Panel(drawn, looks(drawn))
            self.chart.setMinimumHeight(HEIGHT)
            describe(self.chart, tr("Delay by number of streams"), self.state.text())
            self.add_widget(self.chart, 3)
            self.add_table(tr("Streams"), ([tr(text) for text in HEADERS], [*map(_cells, result.streams)]), 2)
        self.add_sentence(tr("Delay: {0}.").format(result.bound_meaning))
        self.add_sentence(tr("Study: {0}").format(result.study))


def _cells(row: Printed) -> list[object]:
    seconds = [
        quantile_of(row, DELAY, "p50"),
        *(quantile_of(row, name, "p99") for name in (DELAY, "first_shown", "stable", "final")),
    ]
    memory = None if row.memory_bytes is None else row.memory_bytes / 1e6
    return [
        row.n,
        *(number(value, ".3f") for value in (*seconds, quantile_of(row, "chunk", "p99"), (row.rtf or {}).get("p50"))),
        number(row.rtfx, ".1f"),
        number(memory, ".0f"),
        number(row.core_s_per_audio_hour, ".0f"),
        tr("yes") if row.queue_grows else tr("no"),
        tr("{0} of {1}").format(row.held, row.measurements),
    ]


def _streams(n: int) -> str:
    return counted(n, tr("stream"), tr("streams"))


def begin(bench: Workbench) -> None:
    """Ask for bound and cores, with the settings and the audio of the next run."""
    preset = bench.pipeline.preset.name
    about = tr(
        "Streams of the audio of the next run share the cores, each a process with the settings of the form (preset "
        "{0}), until words are shown too late. Use the machine for nothing else meanwhile."
    ).format(preset)
    words = words_of_run(bench.pipeline.next, preset, bench.runs.next.audio)
    bench.place(CapacityPage(words, about, bench.window), True)
