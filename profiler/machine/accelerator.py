"""Readings of NVIDIA's management library (NVML), through the package nvidia-ml-py.

Load, memory, power, temperature, clock and PCIe traffic of each device over some tens of ms, whoever uses it: context,
never the time of a stage. NVML watches PCIe traffic for 20 ms in every call, so devices have a sampler thread of their
own. What a device does not tell is left out from then on.
"""

import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

PACKAGE: Final = "pynvml"
"""The module that nvidia-ml-py installs."""

KILO: Final = 1000
"""NVML says "KB/s" without saying which; read as 1000, the traffic is understated by 2 % at worst."""

Reading = Callable[[], Mapping[str, float]]


class Unavailable(Exception):
    """NVML is unavailable; the message says why."""


def probe() -> tuple[bool, str]:
    """Return whether a device can be read here, and a sentence that names it or gives the reason."""
    try:
        with devices() as found:
            return True, ", ".join(found.names)
    except Unavailable as reason:
        return False, str(reason)


@contextmanager
def devices(library: Any = None) -> "Iterator[Devices]":
    """Open NVML for as long as the context lasts; Unavailable with one sentence where it cannot be.

    `library`: the module to ask (tests bring their own).
    """
    nvml = _library() if library is None else library
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise Unavailable(_sentence(nvml, error)) from error
    try:
        try:
            found = Devices(nvml)
        except nvml.NVMLError as error:
            raise Unavailable(f"NVML cannot list its devices: {error}") from error
        yield found
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


class Devices:
    """The devices that NVML lists. `names`: one line for each."""

    def __init__(self, nvml: Any) -> None:
        count = nvml.nvmlDeviceGetCount()
        if not count:
            raise Unavailable("the NVIDIA driver is here, but no device")
        self._nvml = nvml
        self._handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
        self.names = [self._text(nvml.nvmlDeviceGetName(handle)) for handle in self._handles]

    def identity(self) -> list[dict[str, str]]:
        """Return name, uuid, driver and cuda (the newest that the driver serves) of each device, as far as known."""
        nvml, found = self._nvml, []
        for name, handle in zip(self.names, self._handles, strict=True):
            one = {"name": name}
            with suppress(nvml.NVMLError):
                one["uuid"] = self._text(nvml.nvmlDeviceGetUUID(handle))
            with suppress(nvml.NVMLError):
                one["driver"] = self._text(nvml.nvmlSystemGetDriverVersion())
            with suppress(nvml.NVMLError):
                version = int(nvml.nvmlSystemGetCudaDriverVersion())
                one["cuda"] = f"{version // 1000}.{version % 1000 // 10}"
            found.append(one)
        return found

    def readings(self) -> dict[str, Reading]:
        """Return what a Sampler can read: `gpuN.*` with units in the names, N in NVML's order (see `gpus`)."""
        found: dict[str, Reading] = {}
        for number, handle in enumerate(self._handles):
            for name, read in self._of(handle).items():
                found[f"gpu{number} {name}"] = self._guarded(f"gpu{number}.", read)
        return found

    def _of(self, handle: Any) -> dict[str, Reading]:
        nvml = self._nvml

        def load() -> dict[str, float]:
            rates = nvml.nvmlDeviceGetUtilizationRates(handle)
            return {"busy_percent": rates.gpu, "memory_busy_percent": rates.memory}

        def memory() -> dict[str, float]:
            return {"memory_used_bytes": nvml.nvmlDeviceGetMemoryInfo(handle).used}

        def power() -> dict[str, float]:
            # From Ampere on nvmlDeviceGetPowerUsage tells the mean of the last second.
            instant = getattr(nvml, "NVML_FI_DEV_POWER_INSTANT", None)
            if instant is not None:
                with suppress(nvml.NVMLError):
                    (reading,) = nvml.nvmlDeviceGetFieldValues(handle, [instant])
                    if reading.nvmlReturn == 0:
                        return {"power_watts": reading.value.uiVal / 1000}
            return {"power_watts": nvml.nvmlDeviceGetPowerUsage(handle) / 1000}

        def energy() -> dict[str, float]:
            return {"energy_joules": nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000}

        def temperature() -> dict[str, float]:
            degrees = nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
            return {"temperature_celsius": degrees}

        def clock() -> dict[str, float]:
            return {"clock_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)}

        def sent() -> dict[str, float]:
            return {"pcie_sent_bytes_per_s": traffic(nvml.NVML_PCIE_UTIL_TX_BYTES)}

        def received() -> dict[str, float]:
            return {"pcie_received_bytes_per_s": traffic(nvml.NVML_PCIE_UTIL_RX_BYTES)}

        def traffic(counter: Any) -> float:
            return float(nvml.nvmlDeviceGetPcieThroughput(handle, counter) * KILO)

        reads = (load, memory, power, energy, temperature, clock, sent, received)
        return {read.__name__: read for read in reads}

    def _guarded(self, prefix: str, read: Reading) -> Reading:
        """Name the device in the samples; what it does not tell becomes an OSError for the sampler."""

        def reading() -> dict[str, float]:
            try:
                return {prefix + name: float(value) for name, value in read().items()}
            except self._nvml.NVMLError as error:
                raise OSError(f"{prefix}{read.__name__}: {error}") from error

        return reading

    @staticmethod
    def _text(name: str | bytes) -> str:
        # Old versions of the package return bytes.
        return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def _library() -> Any:
    try:
        return importlib.import_module(PACKAGE)
    except ImportError:
        raise Unavailable(
            "nvidia-ml-py is not installed; `pip install 'asrscope[gpu]'` if there is an NVIDIA device"
        ) from None


def _sentence(nvml: Any, error: Exception) -> str:
    code = getattr(error, "value", None)
    if code == getattr(nvml, "NVML_ERROR_LIBRARY_NOT_FOUND", object()):
        return "there is no NVIDIA driver here (its library libnvidia-ml is missing)"
    if code == getattr(nvml, "NVML_ERROR_DRIVER_NOT_LOADED", object()):
        return "the NVIDIA driver is installed but not loaded"
    if code == getattr(nvml, "NVML_ERROR_NO_PERMISSION", object()):
        return "this user may not access the NVIDIA driver (/dev/nvidiactl)"
    return f"NVML does not start: {error}"


DRIVER: Final = Path("/proc/driver/nvidia")
VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_TF32_OVERRIDE")
"""Variables that decide which device a program gets, and how it multiplies."""


def gpus(library: object = None, driver: Path = DRIVER) -> list[dict[str, str]]:
    """Return name, uuid, driver and cuda of each device, as far as they are known; empty where there is none."""
    try:
        with devices(library) as found:
            return found.identity()
    except Unavailable:
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
