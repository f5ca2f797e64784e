"""Open the dialogs over a window; what each of them needs is loaded when it is first wanted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.window.main_window import MainWindow
    from pipelines.config import Value


def explain(w: MainWindow, stage: str = "") -> None:
    from app.window import explanation

    explanation.explain(w, stage)


def confirm(w: MainWindow, stage: str = "") -> None:
    from app.window import confirmation

    confirmation.confirm(w, stage)


def audit(w: MainWindow) -> None:
    """Compare scores and words of the session's configuration with exact scoring."""
    from app.window import audit

    audit.audit(w)


def calibrate(w: MainWindow) -> None:
    from app.window import calibration

    calibration.calibrate(w)


def compare(w: MainWindow) -> None:
    from app.window import comparison

    comparison.compare_with(w)


def try_change(w: MainWindow, settings: Mapping[str, Value]) -> None:
    from app.window import trial

    trial.try_change(w, settings)


def sweep(w: MainWindow) -> None:
    from app.window import sweep

    sweep.ask(w)


def study(w: MainWindow, folder: Path) -> None:
    """Show the trials of a sweep."""
    from app.window import study

    if w.pages.currentWidget() is w.skeleton:
        w.show_welcome()
    study.show_study(w, folder)


def capacity(w: MainWindow) -> None:
    from app.window import capacity

    capacity.ask(w)


def run_on(w: MainWindow) -> None:
    from app.window import run_on

    run_on.ask(w)


def record(w: MainWindow) -> None:
    from app.window import microphone

    microphone.record(w)
