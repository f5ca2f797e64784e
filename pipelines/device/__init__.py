"""Devices as torch knows them: streams, events and copies, in the form that `profiler.device.time` reads.

`open_device` gives one object per kind of device; on "torch-cpu" threads stand in for the streams. `DeviceWork` records
what a recogniser does there. Scoring and search live elsewhere; torch is imported only when a device is opened.
"""

from pipelines.device.accelerator import QueueDevice, TorchDevice, open_device
from pipelines.device.base import (
    COMPUTE,
    COPY,
    HOST,
    STREAMS,
    Device,
    DeviceError,
    DeviceLost,
    first_line,
    is_lost,
    is_out_of_memory,
)
from pipelines.device.host import HostDevice
from pipelines.device.launches import Dispatched, Launches, dispatched_by, launched
from pipelines.device.work import DOWNLOAD, UPLOAD, DeviceWork

__all__ = [
    "COMPUTE",
    "COPY",
    "DOWNLOAD",
    "HOST",
    "STREAMS",
    "UPLOAD",
    "Device",
    "DeviceError",
    "DeviceLost",
    "DeviceWork",
    "Dispatched",
    "HostDevice",
    "Launches",
    "QueueDevice",
    "TorchDevice",
    "dispatched_by",
    "first_line",
    "is_lost",
    "is_out_of_memory",
    "launched",
    "open_device",
]
