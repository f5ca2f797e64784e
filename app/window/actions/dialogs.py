"""Open the dialogs over a window; what each of them needs is loaded when it is first wanted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.window.main_window import MainWindow
    from pipelines.config import Value


def explain(w: MainWindow, stage: str = "") -> None:
    """Find out what the time of a stage consists of; without a name, of the one that the breakdown explains."""
    from app.window import explanation

    explanation.explain(w, stage)


def confirm(w: MainWindow, stage: str = "") -> None:
    """Change a stage and see whether its verdict survives; without a name, the one that the breakdown explains."""
    from app.window import confirmation

    confirmation.confirm(w, stage)


def audit(w: MainWindow) -> None:
    """Compare scores and words of the session's configuration with exact scoring."""
    from app.window import audit

    audit.audit(w)


def calibrate(w: MainWindow) -> None:
    """Measure the roofs of this machine, and show them."""
    from app.window import calibration

    calibration.calibrate(w)


def compare(w: MainWindow) -> None:
    """Compare the session shown with another one, or its arms if it is of an A/B."""
    from app.window import comparison

    comparison.compare_with(w)


def try_change(w: MainWindow, settings: Mapping[str, Value]) -> None:
    """Measure settings on the audio of the current session and show the result next to the prediction."""
    from app.window import trial

    trial.try_change(w, settings)


def sweep(w: MainWindow) -> None:
    """Ask which settings are to vary, and try them."""
    from app.window import sweep

    sweep.ask(w)


def study(w: MainWindow, folder: Path) -> None:
    """Show the trials of a sweep."""
    from app.window import study

    if w.pages.currentWidget() is w.skeleton:
        w.show_welcome()
    study.show_study(w, folder)


def capacity(w: MainWindow) -> None:
    """Ask within which latency, and measure how many streams this machine carries."""
    from app.window import capacity

    capacity.ask(w)


def run_on(w: MainWindow) -> None:
    """Ask for another machine, and run there."""
    from app.window import run_on

    run_on.ask(w)


def record(w: MainWindow) -> None:
    """Record from a microphone, and decode the recording."""
    from app.window import microphone

    microphone.record(w)
