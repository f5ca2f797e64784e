"""Devices as torch knows them: streams, events and copies, in the form that `profiler.device.time` reads.

`open_device` gives one object per kind of device; on "torch-cpu" threads stand in for the streams. `DeviceWork` records
what a recogniser does there. Scoring and search live elsewhere; torch is imported only when a device is opened.
"""

from pipelines.device.accelerator import open_device
from pipelines.device.base import COMPUTE, COPY, HOST, Device, DeviceError
from pipelines.device.host import HostDevice
from pipelines.device.work import DeviceWork

__all__ = ["COMPUTE", "COPY", "HOST", "Device", "DeviceError", "DeviceWork", "HostDevice", "open_device"]
