"""Which search a device gets: the CUDA kernel where it runs, else the search in torch, which runs everywhere."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from pipelines.config import Search
from pipelines.device import Device, DeviceWork
from pipelines.search.device.search import DeviceSearch
from pipelines.search.graph.wfst import Graph

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
    from pipelines.search.device.cuda import trial

    try:
        agrees = trial.agrees(device)
    except Exception as problem:  # of the driver, the compiler or the linker: whatever it is, torch can do without
        return f"numba-cuda does not run its kernel ({' '.join(str(problem).split()).rstrip('.: ')})"
    return "" if agrees else "its kernel finds other words than the processor in a trial"
