"""What machine and which libraries a session was recorded with.

Everything that cannot be read is left out: a reader shows a blank, never a guess. Library versions come
from package metadata, so nothing heavy is imported.
"""

import math
import os
import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import psutil

from profiler.machine import accelerator, cpu_limit

VECTORS: Final = {
    "avx512f": "AVX-512",
    "avx2": "AVX2",
    "asimd": "NEON",
    "sve": "SVE",
    "avx512_vnni": "VNNI",
    "avx_vnni": "VNNI",
    "avx512_bf16": "BF16",
    "amx_tile": "AMX",
}
"""Sets of instructions that decide how fast kernels of vectors and matrices are, by the kernel's flag for them."""

LIBRARIES: Final = ("numpy", "numba", "torch", "kaldifst", "pocketsphinx", "PySide6-Essentials")


def describe() -> dict[str, Any]:
    """Return what is known of the machine and of the libraries, as JSON values."""
    facts: dict[str, Callable[[], Any]] = {
        "cpu": _cpu,
        "cores": lambda: {
            "logical": psutil.cpu_count(),
            "physical": psutil.cpu_count(logical=False),
            "usable": usable_cores(),
            **({"limit": limit} if (limit := cpu_limit.cores()) is not None else {}),
        },
        "vectors": _vectors,
        "caches": _caches,
        "memory_bytes": lambda: psutil.virtual_memory().total,
        "virtualised": lambda: "hypervisor" in flags if (flags := _flags("flags")) else None,
        "gpus": accelerator.gpus,
        "gpu_settings": accelerator.chosen,
        "governor": lambda: _line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "os": platform.platform,
        "host": platform.node,
        "python": platform.python_version,
        "blas": _blas,
        "hardware_counters": _counters,
    }
    described: dict[str, Any] = {}
    for name, read in facts.items():
        with suppress(OSError, ValueError, KeyError, psutil.Error):
            if (value := read()) not in (None, "", [], {}):
                described[name] = value
    return described | {"versions": versions()}


def versions() -> dict[str, str]:
    """Return the versions of the libraries that decide a run's speed, of those that are installed."""
    return {name: version for name in LIBRARIES if (version := own_version(name))}


def own_version(name: str = "asrscope") -> str | None:
    """Return the version of this program, or of a library, as installed; None where it is not."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    return None


def _line(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace").strip()


def _cpu() -> str:
    if sys.platform == "linux":
        for line in _line("/proc/cpuinfo").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    if sys.platform == "darwin":
        import subprocess

        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=5).stdout.strip()
    return platform.processor() or platform.machine()


def usable_cores() -> int | None:
    """Return how many cores this process may run on: those of its affinity, as far as a container's limit reaches."""
    affinity = getattr(os, "sched_getaffinity", None)
    found = len(affinity(0)) if affinity else os.cpu_count()
    limit = cpu_limit.cores()
    return found if found is None or limit is None else min(found, max(1, math.ceil(limit)))


def _caches() -> list[dict[str, Any]]:
    """Caches as the first core sees them (Linux): level, type, size in bytes, sharing cores."""
    found = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size, sharing = (_line(f"{index}/{name}") for name in ("level", "type", "size", "shared_cpu_list"))
        number = int(size.rstrip("KM")) * {"K": 1 << 10, "M": 1 << 20}.get(size[-1:], 1)
        found.append({"level": int(level), "type": kind.lower(), "bytes": number, "shared_by": sharing})
    return found


def last_level_caches() -> tuple[int, int] | None:
    """Return size in bytes and number of the caches farthest from the cores, or None if unknown."""
    caches: list[dict[str, Any]] = []
    with suppress(OSError, ValueError):
        caches = [cache for cache in _caches() if cache["type"] != "instruction"]
    if not caches:
        return None
    last = max(caches, key=lambda cache: cache["level"])
    sharing = 0
    for part in last["shared_by"].split(","):
        first, _, end = part.partition("-")
        sharing += int(end or first) - int(first) + 1
    return last["bytes"], max(1, -(-(usable_cores() or 1) // sharing))


def _flags(*names: str) -> set[str]:
    """The first line of one of these names about a processor (Linux), its words; empty where there is none."""
    for line in _line("/proc/cpuinfo").splitlines():
        name, _, words = line.partition(":")
        if name.strip() in names:
            return set(words.split())
    return set()


def _vectors() -> list[str]:
    """The sets of VECTORS that the processor has; of AVX-512 and AVX2 the wider alone (Linux)."""
    flags = _flags("flags", "Features")
    found = dict.fromkeys(name for flag, name in VECTORS.items() if flag in flags)
    return [name for name in found if name != "AVX2" or "AVX-512" not in found]


def _blas() -> list[dict[str, Any]]:
    """Return the linear-algebra libraries that numpy has loaded."""
    import numpy as np
    from threadpoolctl import threadpool_info

    # Some builds load their library with the first product only.
    np.ones((2, 2), np.float32) @ np.ones((2, 2), np.float32)
    return [
        {key: info[key] for key in ("internal_api", "version", "architecture") if info.get(key)}
        for info in threadpool_info()
        if info.get("user_api") == "blas"
    ]


def _counters() -> str | None:
    """Say whether a kernel interface for hardware counters exists (Linux); reading them may yet fail."""
    if sys.platform != "linux":
        return None
    names = sorted(path.name for path in Path("/sys/bus/event_source/devices").iterdir())
    cores = [name for name in names if name.startswith(("cpu", "armv8"))]
    level = _line("/proc/sys/kernel/perf_event_paranoid")
    return f"{', '.join(cores)} (perf_event_paranoid {level})" if cores else "not available"
