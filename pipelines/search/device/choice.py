"""Which search a device gets: the CUDA kernel where it runs, else the search in torch, which runs everywhere.

Whether it runs is tried on the user's own device, with a small graph, which also compiles the kernel.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Final

import numpy as np

from pipelines.config import Search
from pipelines.device import Device, DeviceWork
from pipelines.search.device.search import DeviceSearch
from pipelines.search.graph.openfst import from_arcs
from pipelines.search.graph.topology import Topology, epsilon_first
from pipelines.search.graph.wfst import Graph, Senones, from_topology
from pipelines.search.viterbi import Viterbi
from profiler.spans import NullLane, Recorder

if TYPE_CHECKING:
    from pipelines.search.device.cuda.search import CudaSearch


def search_on(graph: Graph, config: Search, work: DeviceWork, batch: int = 1) -> CudaSearch | DeviceSearch:
    """The search of `batch` utterances on the device of `work`; a notice says what keeps an NVIDIA GPU from its own."""
    reason = unavailable_reason(work.device)
    if not reason:
        from pipelines.search.device.cuda.search import CudaSearch

        return CudaSearch(graph, config, work, batch)
    if is_nvidia(work.device):
        work.device.notices.append(f"The search on {work.device.name} runs in torch, which is slower: {reason}.")
    return DeviceSearch(graph, config, work, batch)


def is_nvidia(device: Device) -> bool:
    """Whether it is a device of CUDA; ROCm's devices have the same name in torch."""
    import torch

    return device.where == "cuda" and torch.version.cuda is not None


def unavailable_reason(device: Device) -> str:
    """Why the CUDA kernel cannot run there, as a phrase; "" if it can."""
    if not is_nvidia(device):
        return "it is no device of CUDA"
    if importlib.util.find_spec("numba_cuda") is None:
        return "numba-cuda is not installed (pip install 'asrscope[gpu]')"
    try:
        agreed = agrees(device)
    except Exception as problem:  # of the driver, the compiler or the linker: whatever it is, torch can do without
        return f"numba-cuda does not run its kernel ({' '.join(str(problem).split()).rstrip('.: ')})"
    return "" if agreed else "its kernel finds other words than the processor in a trial"


STATES, SENONES, FRAMES = 300, 20, 48
WORDS: Final = ("a", "b", "c")
CHOSEN: Final = Search(beam=8.0, max_active=100, min_active=5)
"""Settings with which all rules of pruning act on such a graph."""
NEAR: Final = 1e-3  # Nat by which costs may differ: the order of sums is the same, and their rounding should be


def agrees(device: Device) -> bool:
    """Whether both find the same words at the same cost; raises what the device raises."""
    from pipelines.search.device.cuda.search import CudaSearch

    graph = _graph()
    scores = np.random.default_rng(2).normal(0.0, 4.0, (FRAMES, SENONES)).astype(np.float32)
    compiled = Viterbi(graph, CHOSEN)
    compiled.start(0)
    compiled.advance(scores, 0)
    expected = compiled.finish()
    tried = CudaSearch(graph, CHOSEN, DeviceWork(device, Recorder(), NullLane()))
    tried.advance(scores[:, None], [FRAMES], 0, NullLane())
    (utterance,) = tried.utterances
    words, _ = utterance.words(True)
    return words == expected and abs(utterance.best_cost - compiled.best_cost) < NEAR


def _graph() -> Graph:
    """Three emitting arcs and one epsilon arc a state, half of them with words; no two paths cost the same."""
    rng = np.random.default_rng(1)
    every = np.arange(STATES)
    ahead = every[:-1]
    source = np.concatenate([np.repeat(every, 3), ahead])
    target = np.concatenate([rng.integers(0, STATES, 3 * STATES), rng.integers(ahead + 1, STATES)])
    ilabel = np.concatenate([rng.integers(1, SENONES + 1, 3 * STATES), np.zeros(len(ahead), np.int64)])
    olabel = np.where(rng.random(len(source)) < 0.5, rng.integers(1, len(WORDS) + 1, len(source)), 0)
    weight = rng.exponential(1.0, len(source))
    fst = from_arcs(STATES, 0, np.zeros(STATES, np.float32), source, ilabel, olabel, weight, target)
    loops = rng.integers(1, SENONES + 1, STATES).astype(np.int32)
    topology = Topology(fst, loops, rng.exponential(1.0, STATES).astype(np.float32))
    senones = Senones(np.zeros(SENONES), np.zeros(SENONES), np.array([True]))
    return from_topology(epsilon_first(topology), senones, WORDS)
