"""No compiled kernel of scoring goes beyond its arrays: each is called between walls, in a process of its own.

`kernel_calls` says how. A new kernel is in the list as soon as it stands in the room, and its test fails until some
model of `kernel_plays` calls it.
"""

import ast
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import kernel_calls
import numpy as np
import pytest
from numba.core.errors import TypingError

from pipelines.scoring.simd.vector import begin_of
from profiler.process.children import environment, python
from tests.fences import Fenced
from tests.kernel_exercises import CHECKED

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCORING = ROOT / "pipelines" / "scoring"
INNER = kernel_calls.inner()
ENTERED = sorted(set(kernel_calls.kernels()) - INNER - set(kernel_calls.BY_ADDRESS))

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSEGV"), reason="needs pages with rights")


def child(folder: Path, *what: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `kernel_calls`, with a cache of its own for models; the kernels that it compiles serve all tests."""
    made = environment({"ASRSCOPE_CACHE": str(folder), **more})
    made["PYTHONPATH"] = f"{ROOT}:{HERE}"
    command = python(str(HERE / "kernel_calls.py"), *what)
    return subprocess.run(command, env=made, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("caches")
    done = child(folder, "replay", "cut")
    assert done.returncode == 0, done.stderr[-3000:]
    return {**json.loads(done.stdout), "said": done.stderr}


@pytest.mark.parametrize("kernel", [*ENTERED, "products"])
def test_a_kernel_stays_within_its_arrays(outcomes, kernel):
    assert kernel in outcomes["replay"], f"no model of kernel_plays calls {kernel}"
    assert not outcomes["replay"][kernel], outcomes["said"][-3000:]


@pytest.mark.parametrize("kernel", ENTERED)
def test_a_kernel_refuses_arrays_that_do_not_fit(outcomes, kernel):
    assert not outcomes["cut"][kernel], outcomes["said"][-3000:]


@pytest.mark.parametrize("kernel", [*ENTERED, *kernel_calls.BY_ADDRESS])
def test_a_kernel_stores_what_it_computes_also_when_it_comes_from_the_cache(outcomes, kernel):
    """LLVM took one store of eight in a tile to be of no value, where the kernel was compiled into its caller.

    A process that compiles calls the kernel itself, and only those that load the caller from the cache got it wrong.
    """
    assert not outcomes["made up"][kernel]


def test_a_store_of_no_value_is_found():
    code = "  store <16 x float> poison, ptr %1, align 4\n  store float %2, ptr %poison\n ret i32 0"
    assert kernel_calls.stored_poison(code.replace("%poison", "%3")) == ["store <16 x float> poison, ptr %1, align 4"]


def test_every_inner_kernel_and_every_step_of_llvm_runs_in_one_that_is_entered():
    kernels = kernel_calls.kernels()
    entered = [kernels[name] for name in (*ENTERED, *kernel_calls.BY_ADDRESS)]
    run = {id(value) for kernel in entered for value in kernel_calls.used(kernel)}
    steps = {**kernel_calls.steps(), **{name: kernels[name] for name in INNER}}
    assert [name for name, value in steps.items() if id(value) not in run] == []


@pytest.mark.slow
def test_a_planted_mistake_is_caught(tmp_path):
    done = child(tmp_path, "plant")
    assert done.returncode == -signal.SIGSEGV
    assert "replay" in done.stderr  # the stack says where


@pytest.mark.slow
def test_every_index_is_within_bounds(tmp_path):
    done = child(tmp_path, "indices", **CHECKED)
    assert done.returncode == 0, done.stderr[-3000:]


def test_addresses_are_taken_of_checked_arrays_alone():
    """`.ctypes.data` takes any array; `vector.address` compiles for the right one. Python's doors name theirs."""
    doors = {"vector.py", "onnx.py", "int8.py"}
    for file in SCORING.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for function in [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]:
            takes = any(isinstance(n, ast.Attribute) and n.attr == "ctypes" for n in ast.walk(function))
            compiled = any("njit" in ast.unparse(d) for d in function.decorator_list)
            assert not takes or (file.name in doors and not compiled), f"{file}: {function.name}"


@pytest.mark.parametrize(
    "wrong",
    [np.ones(32), np.ones((2, 32), np.float32)[:, ::2], np.ones((4, 8), np.float32).T],
    ids=["another type", "with gaps", "in another order"],
)
def test_an_address_is_one_of_the_right_type_in_c_order(wrong):
    with pytest.raises(TypingError, match="the kernel"):
        kernel_calls.one_row_too_many(wrong, np.ones(1, np.float32))


def test_python_gets_the_address_of_floats_alone_in_any_order():
    floats = np.ones((4, 8), np.float32)
    for array in (floats, floats.T, floats[:, ::2], floats[1:].T):
        assert begin_of(array) == array.ctypes.data
    with pytest.raises(TypingError, match="the kernel wants aligned float32"):
        begin_of(np.ones(4))


def test_a_fence_sees_what_is_written_around_and_between():
    rows = np.zeros((3, 8), np.float32)[:, :5]
    for side in ("behind", "before"):
        fence = Fenced(rows, side)  # type: ignore[arg-type]
        assert fence.array.strides == rows.strides
        fence.array[:] = 1
        assert fence.intact()
        np.lib.stride_tricks.as_strided(fence.array, (3, 6), rows.strides)[0, 5] = 1
        assert not fence.intact()
