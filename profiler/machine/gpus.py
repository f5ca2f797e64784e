"""Which NVIDIA devices a machine has, and which of them a program may use, without CUDA.

NVML tells names, UUIDs, driver and CUDA version; without its package, the kernel driver's files tell all but the last.
NVML counts devices in the order of the bus and CUDA by speed: only UUIDs say which is which.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from profiler.machine import accelerator

DRIVER: Final = Path("/proc/driver/nvidia")
VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_TF32_OVERRIDE")
"""Variables that decide which device a program gets, and how it multiplies."""


def gpus(library: object = None, driver: Path = DRIVER) -> list[dict[str, str]]:
    """Return name, uuid, driver and cuda of each device, as far as they are known; empty where there is none."""
    try:
        with accelerator.devices(library) as found:
            return found.identity()
    except accelerator.Unavailable:
        return _of_the_driver(driver)


def chosen(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {name: environment[name] for name in VISIBLE if name in environment}


def place_of(uuid: str, uuids: Sequence[str]) -> int | None:
    """Return which of NVML's devices CUDA calls `uuid`; None where it is none of them.

    torch gives it without NVML's "GPU-" before it.
    """
    wanted = _bare(uuid)
    return next((i for i, each in enumerate(uuids) if _bare(each) == wanted), None)


def _bare(uuid: str) -> str:
    return uuid.lower().removeprefix("gpu-")


def _of_the_driver(folder: Path) -> list[dict[str, str]]:
    try:
        known = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", (folder / "version").read_text("utf-8"))
        cards = sorted(folder.glob("gpus/*/information"))
        texts = [card.read_text("utf-8", "replace") for card in cards]
    except OSError:
        return []
    found = []
    for text in texts:
        lines = (line.partition(":") for line in text.splitlines())
        values = {name.strip(): value.strip() for name, _, value in lines}
        one = {"name": values.get("Model", ""), "uuid": values.get("GPU UUID", "")}
        one["driver"] = known.group(1) if known else ""
        found.append({name: value for name, value in one.items() if value})
    return found
