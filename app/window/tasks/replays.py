"""Tasks that decode the session shown again, or measure the machine: their pages show what the command prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from PySide6.QtCore import QCoreApplication

from app.model.document import RatioRow
from app.style.plain_text import Button
from app.views.ratios import Ratios
from app.window.tasks.page import JSON, VERB, TaskPage
from app.window.tasks.workbench import Workbench
from pipelines.config import Value, value_text

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

    def done() -> None:
        keep.setEnabled(page.copy.isEnabled())
        rows = [row for chart in page.charts if isinstance(chart, Ratios) for row in chart.rows]
        if page.copy.isEnabled() and rows:
            tell(rows[0])

    page.over.connect(done)

    def kept() -> None:
        bench.pipeline.edit()  # the settings that the session shows cannot be changed
        for key, value in settings.items():
            bench.pipeline.set(key, value)
        page.close()

    keep.clicked.connect(lambda _=False: kept())
    page.add_buttons(keep)
    bench.place(page, False)
