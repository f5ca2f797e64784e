"""The CUDA search where there is no CUDA: its simulated tests, and what its kernel takes of an H100's processor."""

import importlib.util
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipelines.device import DeviceWork, HostDevice
from pipelines.search.device import choice
from pipelines.search.device.cuda import arrays
from pipelines.search.device.search import DeviceSearch
from pipelines.search.graph.wfst import GraphError
from profiler.process import children
from profiler.spans import NullLane, Recorder
from tests.pipelines.search_graphs import circle, random_graph, settings

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
REGISTER_FILE = 65_536  # 32-bit registers of a processor of compute capability 9.0, given out in eights to each thread
MOST_THREADS = 1024  # Of a block


def test_the_kernels_in_the_simulator():
    if importlib.util.find_spec("numba.cuda") is None:
        pytest.skip("this numba has no CUDA simulator; install numba-cuda")
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/pipelines/cuda_simulated.py"]
    done = subprocess.run(
        children.python(*command),
        cwd=ROOT,
        env=children.environment({"PYTHONPATH": str(ROOT), "NUMBA_ENABLE_CUDASIM": "1"}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "skipped" not in done.stdout


def test_two_blocks_fit_a_processor_of_an_h100_without_spills(tmp_path, monkeypatch):
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    found = importlib.util.find_spec("nvidia.cuda_nvcc")
    ptxas = Path(found.submodule_search_locations[0]) / "bin" / "ptxas" if found else Path("missing")
    if not ptxas.is_file():
        pytest.skip("ptxas is not installed: it comes with numba-cuda[cu12]")
    from numba import cuda, types
    from numba.cuda import dispatcher

    from pipelines.search.device.cuda import kernel
    from pipelines.search.device.cuda.intrinsics import REGISTERS, SIMULATED

    if SIMULATED:
        pytest.skip("the simulator compiles nothing")
    # Functions that the kernel calls are compiled for the present device otherwise.
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=(9, 0)))
    i32, i64, f32, f64 = types.int32, types.int64, types.float32, types.float64
    graph = [(i32, 2), (i32, 2), (i32, 1)]
    state = [(i64, 2), (i32, 3), (i32, 3), (i32, 3), (i64, 2)]
    arguments = [*graph, (f32, 3), (f64, 1), *state, (f64, 2), (i64, 3)]
    signature = types.void(*(types.Array(kind, axes, "C") for kind, axes in arguments))
    ptx, _ = cuda.compile_ptx(kernel.search.py_func, signature, cc=(9, 0))
    assert "atom.global.min.s64" in ptx
    assert "%globaltimer" in ptx
    (tmp_path / "search.ptx").write_text(ptx)
    command = [str(ptxas), "-v", "-arch=sm_90", f"--maxrregcount={REGISTERS}", "search.ptx", "-o", "search.cubin"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in said
    used = re.search(r"Used (\d+) registers", said)
    shared = re.search(r"(\d+) bytes smem", said)
    assert used is not None
    assert shared is not None
    assert -(-int(used[1]) // 8) * 8 * 2 * kernel.THREADS <= REGISTER_FILE
    assert 2 * kernel.THREADS <= MOST_THREADS
    assert 2 * int(shared[1]) < 100_000


def chosen_search():
    """What a search is made of, and the notices of that."""
    work = DeviceWork(HostDevice(), Recorder(), NullLane())
    return type(choice.search_on(random_graph(3, all_final=True), settings(), work)), work.take_notices()


def test_what_cannot_run_the_kernel_gets_the_search_in_torch_and_a_reason(monkeypatch):
    assert chosen_search() == (DeviceSearch, [])
    # As on a machine with a GPU and without numba-cuda, then with it.
    monkeypatch.setattr(choice, "is_nvidia", lambda device: True)
    for module, reason in ((None, "numba-cuda is not installed"), (object(), "finds other words than the processor")):
        monkeypatch.setattr(choice.importlib.util, "find_spec", lambda name, module=module: module)
        monkeypatch.setattr(choice, "agrees", lambda device: False)
        search, (notice,) = chosen_search()
        assert search is DeviceSearch
        assert "runs in torch, which is slower" in notice
        assert reason in notice


def test_a_driver_that_is_missing_is_one_sentence(monkeypatch):
    from numba import cuda

    if cuda.is_available():
        pytest.skip("there is a driver of CUDA here")
    monkeypatch.setattr(choice, "is_nvidia", lambda device: True)
    monkeypatch.setattr(choice.importlib.util, "find_spec", lambda name: object())
    reason = choice.unavailable_reason(HostDevice())
    assert reason.startswith("numba-cuda does not run its kernel (")
    assert "\n" not in reason
    assert "\\n" not in reason


def test_one_utterance_alone_gives_no_warning():
    from pipelines.search.device.cuda import kernel

    # Tests take warnings for errors. What this would launch is not launched: there may be no device.
    assert kernel.search[1, kernel.THREADS] is not None


def test_epsilon_arcs_in_a_circle_are_refused():
    with pytest.raises(GraphError, match="cycle of epsilon arcs"):
        arrays.record_arcs(circle())
