"""Capacity: how many streams this machine carries with the settings of the form; `asrscope capacity` measures it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from PySide6.QtCore import QCoreApplication, QProcess
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.layout import NONE, REST, lay_out
from app.model.assignments import words_of_run
from app.model.capacity import BOUND_S, Quantiles, headline
from app.model.report_lines import number
from app.style.plain_text import Button, Label, describe
from app.views.labs.panel import Panel
from app.views.labs.series import looks
from app.widgets import NumberBox
from app.window.command_dialog import VERB, CommandDialog, open_over
from pipelines.labs.chart import Axis, Chart, Layer, Line, Mark
from profiler.files.paths import new_session_path
from profiler.plain import counted

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

CAPACITY: Final = (*VERB, "capacity", "--json")
MOST: Final = 4096
LONGEST_S: Final = 60.0
HEIGHT, LEAST_HEIGHT = 200, 540
"""Pixels of the chart, and of the whole with its sentences and some rows, at least."""

tr = partial(QCoreApplication.translate, "Capacity")


class Row(msgspec.Struct, frozen=True):
    """N streams, as `asrscope capacity --json` prints them."""

    n: int
    rtfx: float | None
    rtf: dict[str, float] | None
    latency_s: dict[str, dict[str, float] | None]
    queue_grows: bool
    memory_bytes: float | None
    core_s_per_audio_hour: float | None
    measurements: int
    held: int
    p99_range_s: tuple[float, float] | None

    def quantile_of(self, latency: str, quantile: str) -> float | None:
        """A quantile of a latency, s."""
        known: Quantiles = self.latency_s.get(latency) or {}
        return known.get(quantile)


class Result(msgspec.Struct, frozen=True):
    """What it prints, as far as it is shown."""

    study: str
    finished: bool
    cores: int
    streams: list[Row]
    capacity: int
    capacity_range: tuple[int, int]
    bound_p99_s: float
    why: str
    bound_meaning: str
    notes: list[str] = []
    cpu_limit: float | None = None


def chart(result: Result) -> Chart:
    """p50 and p99 of the delay over the number of streams, with the bound; whiskers are the range of the repeats."""
    rows = [row for row in result.streams if row.quantile_of(DELAY, "p99") is not None]
    n = tuple(float(row.n) for row in rows)
    ranges = [row.p99_range_s or (None, None) for row in rows]
    layers: list[Layer] = [
        Line(
            tr("p99"),
            n,
            tuple(row.quantile_of(DELAY, "p99") for row in rows),
            tuple(low for low, _ in ranges),
            tuple(high for _, high in ranges),
        ),
        Line(tr("p50"), n, tuple(row.quantile_of(DELAY, "p50") for row in rows)),
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


class CapacityDialog(CommandDialog):
    """Bound, cores and most streams; then latency and costs by number of streams."""

    def __init__(self, words: Sequence[str], about: str, parent: QWidget, command: Sequence[str] = CAPACITY) -> None:
        super().__init__(tr("How many streams?"), (), tr("Preparing …"), parent)
        self._command, self._stopping = (*command, *words), False
        self.chart: Panel | None = None
        self.bound, self.cores, self.most = NumberBox(), NumberBox(whole=True), NumberBox(whole=True)
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        for box, title, low, high, value in (
            (self.bound, tr("Bound of the p99"), 0.01, LONGEST_S, BOUND_S),
            (self.cores, tr("Cores"), 1, usable, usable),
            (self.most, tr("Streams, at most"), 1, MOST, MOST),
        ):
            box.setRange(low, high)
            box.setValue(value)
            describe(box, title)
        self.bound.set_unit(tr(" s"))
        self.start = Button(tr("Start"))
        self.start.setProperty("primary", True)
        self.start.setDefault(True)
        self.start.clicked.connect(lambda _=False: self._stop() if self.working else self._begin())
        self.buttons.insertWidget(self.buttons.count() - 1, self.start)
        self.form = QWidget()
        parts = (
            *(Label(tr("p99 of the delay at most")), self.bound, Label(tr("streams at most")), self.most),
            *(Label(tr("cores")), self.cores, REST),
        )
        lay_out(QHBoxLayout(self.form), *parts, margins=NONE)
        self.column.insertWidget(1, self.form)
        self.state.setText(about)
        self.bound.setFocus()
        self.bar.hide()

    def _begin(self) -> None:
        try:
            folder = new_session_path("capacity").with_suffix(".capacity")
        except OSError as error:
            self.state.setText(str(error))
            return
        self.form.setEnabled(False)
        self.start.setText(tr("Stop"))
        self.bar.setRange(0, 0)
        self.bar.show()
        own = ("--bound", f"{self.bound.value():g}", "--cores", str(int(self.cores.value())))
        self.begin((*self._command, *own, "--streams", f"1..{int(self.most.value())}", "--out", str(folder)))

    def _stop(self) -> None:
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
        result = msgspec.json.decode(printed, type=Result)
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
        self.setMinimumHeight(LEAST_HEIGHT)


def _cells(row: Row) -> list[object]:
    seconds = [
        row.quantile_of(DELAY, "p50"),
        *(row.quantile_of(name, "p99") for name in (DELAY, "first_shown", "stable", "final")),
    ]
    memory = None if row.memory_bytes is None else row.memory_bytes / 1e6
    return [
        row.n,
        *(number(value, ".3f") for value in (*seconds, row.quantile_of("chunk", "p99"), (row.rtf or {}).get("p50"))),
        number(row.rtfx, ".1f"),
        number(memory, ".0f"),
        number(row.core_s_per_audio_hour, ".0f"),
        tr("yes") if row.queue_grows else tr("no"),
        tr("{0} of {1}").format(row.held, row.measurements),
    ]


def _streams(n: int) -> str:
    return counted(n, tr("stream"), tr("streams"))


def ask(window: MainWindow) -> CapacityDialog:
    """Ask for bound and cores, with the settings and the audio of the next run."""
    preset = window.pipeline.preset.name
    about = tr(
        "Streams of the audio of the next run share the cores, each a process with the settings of the form (preset "
        "{0}), until words are shown too late. Use the machine for nothing else meanwhile."
    ).format(preset)
    dialog = CapacityDialog(words_of_run(window.pipeline.next, preset, window.runs.next.audio), about, window)
    open_over(window, dialog)
    return dialog
