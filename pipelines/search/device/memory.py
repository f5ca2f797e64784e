"""Too little memory of a device for a search is one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.device import Device, DeviceError, is_out_of_memory


def check_room(device: Device, need: int, batch: int) -> None:
    """Raise DeviceError where fewer than `need` bytes are free, for a search of `batch` utterances at once."""
    free = device.free_bytes()
    if free is not None and need > free:
        raise DeviceError(
            f"search.device = {device.name} needs {need / 1e6:.0f} MB for this graph and {batch} utterances at once, "
            f"and {free / 1e6:.0f} MB are free; take a smaller graph.vocabulary or search.device = cpu."
        )


@contextmanager
def guarded(device: Device) -> Iterator[None]:
    """Raise DeviceError where memory runs out within."""
    try:
        yield
    except RuntimeError as problem:
        if not is_out_of_memory(problem):
            raise
        raise DeviceError(
            f"The memory of {device.name} does not suffice for the search; lower "
            "search.max_active or graph.vocabulary, or choose search.device = cpu."
        ) from problem
