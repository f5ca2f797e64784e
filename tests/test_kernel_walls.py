"""Kernels outside of scoring: none leaves its arrays, and those of the search get no others."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from pipelines.search.workspace import Workspace
from profiler.arrays import ArrayError
from profiler.process import children
from tests import kernel_exercises, kernel_walls, search_walls
from tests.kernel_exercises import CHECKED, EXERCISES, NAMED, ROOT, Walls
from tests.waiting import PATIENCE_S

LONG = ("composition", "speakers")  # Their kernels are also between guards in `tests/pipelines/test_kernel_fences.py`


@pytest.mark.parametrize("side", ["behind", "before"])
@pytest.mark.parametrize(
    "exercise", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in EXERCISES]
)
def test_kernels_stay_between_walls(exercise, side):
    walls = Walls(side)
    EXERCISES[exercise](walls)
    assert walls.intact()


def test_every_kernel_has_been_between_walls():
    assert kernel_exercises.kernels() == set(NAMED)


def test_a_workspace_that_lacks_an_element_is_refused():
    space = Workspace(search_walls.graph(1, 7))
    held = space.arrays
    refused = 0
    for group in set(held._fields) - {"lattice"}:
        columns = getattr(held, group)
        for name in set(columns._fields) - {"history"}:
            column = getattr(columns, name)
            longer = np.zeros(len(column) + 1, np.float16)
            for other in (column[:-1], longer, longer[:-1]):
                spoilt = held._replace(**{group: columns._replace(**{name: other})})
                with pytest.raises(ArrayError, match="graph" if group == "graph" else name):
                    space.hold(spoilt)
                assert space.arrays is held
                refused += 1
    assert refused == 3 * 40


def test_a_workspace_with_a_lattice_that_does_not_fit_is_refused():
    space = Workspace(search_walls.graph(1, 7))
    for kept in (False, True):
        space.start(kept, 3.0)
        held = space.arrays
        for name, column in held.lattice._asdict().items():
            other = np.zeros((2, 3), np.int32) if name == "alternative" else column[:-1]
            with pytest.raises(ArrayError):
                space.hold(held._replace(lattice=held.lattice._replace(**{name: other})))


def run_walls(*words: str, **more: str) -> str:
    """What `kernel_walls` prints as a program."""
    done = subprocess.run(
        children.python("-m", "tests.kernel_walls", *words),
        cwd=ROOT,
        env=children.environment({"PYTHONPATH": str(ROOT), **more}),
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,  # kernels are compiled anew
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="walls stand on POSIX only")
def test_a_planted_fault_is_caught():
    ends = json.loads(run_walls())
    assert set(ends) == {fault.__name__ for fault in kernel_walls.PLANTED}
    for fault, code in ends.items():
        assert -code in (signal.SIGSEGV, signal.SIGBUS), (fault, code)


@pytest.mark.slow
def test_every_index_is_within_bounds():
    run_walls("indices", **CHECKED)
