"""Devices as torch knows them: streams, events and copies, in the form that `profiler.device.time` reads.

`open_device` gives one object per kind of device; on "torch-cpu" threads stand in for the streams. `DeviceWork` records
what a recogniser does there. Scoring and search live elsewhere; torch is imported only when a device is opened.
"""

from pipelines.device.accelerator import QueueDevice, TorchDevice
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
from pipelines.device.launches import Launches, Work, launched, work_of
from pipelines.device.opening import open_device
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
    "HostDevice",
    "Launches",
    "QueueDevice",
    "TorchDevice",
    "Work",
    "first_line",
    "is_lost",
    "is_out_of_memory",
    "launched",
    "open_device",
    "work_of",
]
