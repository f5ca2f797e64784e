"""Runs in this process that measure only what is not known of the machine.

More than half of a run of a few seconds goes into the rest: known roofs taken at more moments, calls timed on beside
the blocks, and again at the end. What is not known is timed for just long enough to have a figure, since the tests need
hundreds of roofs. All that is tried by itself (`test_machine_calibration`, `test_calls_again`, `test_machine`) and
in the runs that have a process of their own. The model that the program ships is read once, and the machine looked at
once, for all of a process: nobody changes either.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pipelines.models import sphinx
from pipelines.models.sphinx import AcousticModel
from pipelines.run import beside
from pipelines.run.calls_again import CallsAgain
from profiler.machine.roofs import calibration, cpu, timing


def shorten(patch: pytest.MonkeyPatch) -> None:
    """Until `patch` is undone."""
    patch.setattr(calibration, "SETTLING_SECONDS", -1.0)
    patch.setattr(timing, "REPEAT_SECONDS", timing.REPEAT_SECONDS / 4)
    patch.setattr(timing, "QUICK_SECONDS", timing.QUICK_SECONDS / 8)
    patch.setattr(timing, "PAUSED_SECONDS", timing.PAUSED_SECONDS / 4)
    patch.setattr(beside, "CallsAgain", _untimed)
    patch.setattr(cpu, "recheck", lambda roof_table, threads=1: roof_table)
    patch.setattr(calibration, "describe", _described)
    patch.setattr(sphinx, "load", _loaded)


_described = cache(calibration.describe)
_load = sphinx.load


@cache
def _shipped() -> AcousticModel:
    return _load(sphinx.default_directory())


def _loaded(directory: Path | str) -> AcousticModel:
    return _shipped() if directory == sphinx.default_directory() else _load(directory)


def _untimed(recorder: Any, lane: Any, journal: Any, probe: Any, share: float) -> CallsAgain:
    return CallsAgain(recorder, lane, journal, probe, share=0.0)
