"""Runs in this process that measure only what is not known of the machine.

What is not known is timed for just long enough to have a figure, and nothing again at the end. All that is tried by
itself (`test_machine_calibration`, `test_machine`) and in the runs that have a process of their own. The model that the
program ships is read once, a model laid out once, and the machine looked at once for all of a process: nobody changes
any of them.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

from pipelines.models import sphinx
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import continuous, scorer
from pipelines.scoring.tied.packing import pack
from profiler.machine import describe, memory
from profiler.machine.roofs import calibration, cpu, timing

Packed = TypeVar("Packed")


def shorten(patch: pytest.MonkeyPatch) -> None:
    """Until `patch` is undone."""
    patch.setattr(timing, "REPEAT_SECONDS", timing.REPEAT_SECONDS / 4)
    patch.setattr(timing, "QUICK_SECONDS", timing.QUICK_SECONDS / 8)
    patch.setattr(cpu, "recheck", lambda roof_table, threads=1: roof_table)
    for module in (calibration, describe):
        patch.setattr(module, "describe", _described)
    patch.setattr(describe, "versions", _versions)
    patch.setattr(memory, "mappings", _mappings)
    patch.setattr(sphinx, "load", _loaded)
    patch.setattr(scorer, "pack", _packed)
    patch.setattr(continuous, "pack", _packed_untied)


def explain_briefly(patch: pytest.MonkeyPatch) -> None:
    """Few rounds of few blocks; neither the size of caches nor other programs decide anything."""
    from pipelines.experiments import explain, replays

    patch.setattr(explain, "ROUNDS", 2)
    patch.setattr(explain, "MOST_BLOCKS", 3)
    patch.setattr(explain.RunQueue, "waited_ns", lambda self: 0)
    patch.setattr(replays, "ELSEWHERE", 1)
    patch.setattr(replays, "last_level_caches", lambda: (8 << 20, 1))


_described, _versions, _mappings = cache(describe.describe), cache(describe.versions), cache(memory.mappings)
_load = sphinx.load


@cache
def _shipped() -> AcousticModel:
    return _load(sphinx.default_directory())


def _loaded(directory: Path | str) -> AcousticModel:
    return _shipped() if directory == sphinx.default_directory() else _load(directory)


def _once(pack: Callable[[AcousticModel], Packed]) -> Callable[[AcousticModel], Packed]:
    """`pack`, which lays out none of the last few models anew."""
    kept: list[tuple[AcousticModel, Packed]] = []

    def packed(model: AcousticModel) -> Packed:
        found = next((made for known, made in kept if known is model), None)
        if found is None:
            found = pack(model)
            kept[:] = [*kept[-3:], (model, found)]
        return found

    return packed


_packed, _packed_untied = _once(pack), _once(continuous.pack)
