"""Devices by their names in the settings."""

from __future__ import annotations

from pipelines.availability import availability
from pipelines.device.accelerator import QueueDevice, TorchDevice
from pipelines.device.base import HOST, Device, DeviceError
from pipelines.device.host import HostDevice


def open_device(name: str, threads: int = 1) -> Device:
    """Open a device by its name in the settings; DeviceError with the reason where it cannot be used.

    `threads`: on the processor, how many each stream computes on. Products of float32 are computed in float32 from
    then on, whatever the environment says (NVIDIA's containers set TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1): the roofs
    are those of float32.
    """
    if name == HOST:
        return HostDevice(threads)
    known = {found.name: found for found in availability()}
    if name not in known or name == "cpu":
        choices = ", ".join(n for n in known if n != "cpu")
        raise DeviceError(f"device: there is no {name!r}; choose one of {choices}")
    if not known[name].available:
        raise DeviceError(f"device {name} cannot be used: {known[name].reason}; choose cpu")
    import torch

    exact_products()
    backend = getattr(torch, name)
    made = TorchDevice if hasattr(backend, "Stream") else QueueDevice
    return made(name, backend, torch.empty)


def exact_products() -> None:
    """Let torch multiply float32 in float32, not in TF32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
