"""Devices by their names in the settings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.availability import availability
from pipelines.device.accelerator import QueueDevice, TorchDevice
from pipelines.device.base import HOST, Device, DeviceError
from pipelines.device.host import HostDevice
from profiler.machine import accelerator


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
    device = made(name, backend, torch.empty)
    device.identity = identity(name)
    return device


def identity(name: str) -> dict[str, str]:
    """What torch tells of its present device `name`: name, uuid, capability, memory, how float32 is multiplied.

    `nvml`: the number by which NVML, and so a session's `gpuN` samples, knows it; CUDA counts in another order.
    """
    import torch

    with _older_settings():
        found = {"products": torch.get_float32_matmul_precision()}
    if version := torch.version.cuda or getattr(torch.version, "hip", None):
        found["runtime"] = str(version)
    tell = getattr(getattr(torch, name), "get_device_properties", None)
    about = tell(torch.accelerator.current_accelerator()) if tell is not None else None
    for key in ("name", "uuid", "total_memory", "driver_version"):
        if (value := getattr(about, key, None)) is not None:
            found[key] = str(value)
    if (major := getattr(about, "major", None)) is not None:
        found["capability"] = f"{major}.{getattr(about, 'minor', 0)}"
    place = accelerator.place_of(found.get("uuid", ""), [each.get("uuid", "") for each in accelerator.gpus()])
    if place is not None:
        found["nvml"] = f"gpu{place}"
    return found


def exact_products() -> None:
    """Let torch multiply float32 in float32, not in TF32."""
    import torch

    with _older_settings():
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.set_float32_matmul_precision("highest")


@contextmanager
def _older_settings() -> Iterator[None]:
    """Without the warning of torch 2.9 to 2.12 that there are newer settings for this, which older ones lack."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Please use the new API settings", UserWarning)
        yield
