"""Kernels outside of scoring: none leaves its arrays, none is called around the place that checks them."""

import ast
import json
import re
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

ENTRIES = {
    "pipelines.search.graph._arcs": "pipelines.search.graph.openfst",
    "pipelines.search.graph.lookahead._compose": "pipelines.search.graph.lookahead.compose",
    "pipelines.search.kernels.calls": "pipelines.search.workspace",
    "pipelines.search.kernels.history": "pipelines.search.words",
    "pipelines.search.kernels.lattice": "pipelines.search.alternatives",
    "pipelines.frontend._kernels": "pipelines.frontend.mfcc",
}
"""Files of kernels, and the one module that calls them: it checks what they are given."""
TIMED = "pipelines.labs._kernels"
LABS = {
    f"pipelines.labs.{lab}" for lab in ("access_orders", "call_costs", "clocks_cores", "matrix_orders", "simd_int8")
}
"""Who calls the kernels of the labs, each on arrays that it makes itself."""
MACHINE = "profiler.machine.roofs._kernels"
PROBES = {f"profiler.machine.roofs.{name}" for name in ("cpu", "accesses")}
"""Who calls the kernels of `profiler.machine.roofs`, each on arrays that it makes itself."""
WITHIN = (
    "pipelines.models.estimation",
    "pipelines.training.align",
    "pipelines.frontend.ivector",
    "pipelines.search.device.history",
    "pipelines.search.graph.expansion",
    "pipelines.search.graph.lookahead.folder",
    "pipelines.search.graph.lookahead.ngram",
    "pipelines.search.graph.wfst",
)
"""Modules that hold kernels and the functions that check their arguments."""
ROOMS = ("app", "pipelines", "profiler")
FROM_KERNELS = ("profiler.recording.kernel_spans",)
"""What only kernels call, with what a lane has lent."""
LONG = ("composition", "speakers")
"""Their kernels are also between guards in `tests/pipelines/test_kernel_fences.py`."""
INNER = tuple(f"pipelines.search.kernels.{name}" for name in ("epsilon", "pruning", "sparse_set", "token_passing"))
"""What only kernels import."""


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


def test_kernels_are_called_from_one_place():
    files = {kernel_exercises.module_of(file) for file in kernel_exercises.kernel_files()}
    assert files == {*ENTRIES, *WITHIN, *FROM_KERNELS, *INNER, MACHINE, TIMED}
    importers = _importers()
    assert importers.pop(MACHINE) == PROBES
    assert importers.pop(TIMED) == LABS
    for name, found in importers.items():
        assert found - files == ({ENTRIES[name]} if name in ENTRIES else set()), name


def _importers() -> dict[str, set[str]]:
    """Which modules import each file of kernels; of files that hold more than kernels, those that import one."""
    found: dict[str, set[str]] = {name: set() for name in (*ENTRIES, *WITHIN, *INNER, MACHINE, TIMED)}
    modules = re.compile("|".join(name.rpartition(".")[2] for name in found))
    for file in [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]:
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if modules.search(text) else ():
            if isinstance(node, ast.Import):
                taken = {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                taken = {f"{node.module}.{name.name}" for name in node.names} | {node.module}
            else:
                continue
            for name in taken:
                home = name.rpartition(".")[0]
                if name in ENTRIES or name in INNER or name in (MACHINE, TIMED):
                    found[name].add(kernel_exercises.module_of(file))
                elif name in NAMED and home in WITHIN:
                    found[home].add(kernel_exercises.module_of(file))
    return found


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
