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

PACKAGE: Final = "pynvml"  # The module that nvidia-ml-py installs
KILO: Final = 1000  # NVML says "KB/s" without saying which; read as 1000, the traffic is understated by 2 % at worst

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
    """Open NVML (`library`, if given) for the context; Unavailable with one sentence where it cannot be."""
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
        nvml, found = self._nvml, [{"name": name} for name in self.names]
        for one, handle in zip(found, self._handles, strict=True):
            with suppress(nvml.NVMLError):
                one["uuid"] = self._text(nvml.nvmlDeviceGetUUID(handle))
            with suppress(nvml.NVMLError):
                one["driver"] = self._text(nvml.nvmlSystemGetDriverVersion())
            with suppress(nvml.NVMLError):
                version = int(nvml.nvmlSystemGetCudaDriverVersion())
                one["cuda"] = f"{version // 1000}.{version % 1000 // 10}"
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

        def power() -> dict[str, float]:
            # From Ampere on nvmlDeviceGetPowerUsage tells the mean of the last second.
            instant = getattr(nvml, "NVML_FI_DEV_POWER_INSTANT", None)
            if instant is not None:
                with suppress(nvml.NVMLError):
                    (reading,) = nvml.nvmlDeviceGetFieldValues(handle, [instant])
                    if reading.nvmlReturn == 0:
                        return {"power_watts": reading.value.uiVal / 1000}
            return {"power_watts": nvml.nvmlDeviceGetPowerUsage(handle) / 1000}

        def traffic(direction: str) -> float:
            return float(nvml.nvmlDeviceGetPcieThroughput(handle, getattr(nvml, f"NVML_PCIE_UTIL_{direction}")) * KILO)

        return {
            "load": load,
            "memory": lambda: {"memory_used_bytes": nvml.nvmlDeviceGetMemoryInfo(handle).used},
            "power": power,
            "energy": lambda: {"energy_joules": nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000},
            "temperature": lambda: {
                "temperature_celsius": nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
            },
            "clock": lambda: {"clock_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)},
            "sent": lambda: {"pcie_sent_bytes_per_s": traffic("TX_BYTES")},
            "received": lambda: {"pcie_received_bytes_per_s": traffic("RX_BYTES")},
        }

    def _guarded(self, prefix: str, read: Reading) -> Reading:
        """Name the device in the samples; what it does not tell becomes an OSError for the sampler."""

        def reading() -> dict[str, float]:
            try:
                return {prefix + name: float(value) for name, value in read().items()}
            except self._nvml.NVMLError as error:
                raise OSError(f"{prefix} {error}") from error

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
    known = {
        "LIBRARY_NOT_FOUND": "there is no NVIDIA driver here (its library libnvidia-ml is missing)",
        "DRIVER_NOT_LOADED": "the NVIDIA driver is installed but not loaded",
        "NO_PERMISSION": "this user may not access the NVIDIA driver (/dev/nvidiactl)",
    }
    code = getattr(error, "value", None)
    named = (text for name, text in known.items() if code == getattr(nvml, f"NVML_ERROR_{name}", object()))
    return next(named, f"NVML does not start: {error}")


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
    """Return which of NVML's devices CUDA calls `uuid` (torch: without "GPU-"); None where it is none of them."""
    bare, wanted = ([each.lower().removeprefix("gpu-") for each in some] for some in (uuids, [uuid]))
    return bare.index(wanted[0]) if wanted[0] in bare else None


def _of_the_driver(folder: Path) -> list[dict[str, str]]:
    try:
        known = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", (folder / "version").read_text("utf-8"))
        cards = sorted(folder.glob("gpus/*/information"))
        texts = [card.read_text("utf-8", "replace") for card in cards]
    except OSError:
        return []
    found = []
    for text in texts:
        values = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
        one = {"name": values.get("Model"), "uuid": values.get("GPU UUID"), "driver": known and known.group(1)}
        found.append({name: value for name, value in one.items() if value})
    return found
