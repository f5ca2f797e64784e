"""What labs of the device share: the sentence for machines without one, and the processor's torch in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipelines.labs.desk import Desk

if TYPE_CHECKING:
    from pipelines.device import Device

NONE: Final = "There is no accelerator here"
HALF: Final = f"{NONE}, so only the processor's half was run"


def opened(desk: Desk) -> tuple[Device, bool]:
    """Return the accelerator and True; without one, torch on the processor's threads and False."""
    from pipelines.device import HOST, open_device

    name = desk.device
    return open_device(name or HOST), name is not None
