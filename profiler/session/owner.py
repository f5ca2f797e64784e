"""Who records a session, and whether that process still lives.

A process number alone is reused; with its start time, the host and the boot it names one process.
"""

import os
import platform
from pathlib import Path
from typing import Any

import psutil

START_TOLERANCE_S = 2.0
"""Start times are read with the kernel's tick and a boot time that may be corrected by a second."""


def identity() -> dict[str, Any]:
    """Describe this process so that another one can ask later whether it lives."""
    return {"pid": os.getpid(), "started": psutil.Process().create_time(), "host": platform.node(), "boot": _boot()}


def alive(owner: object) -> bool | None:
    """Say whether the process that `identity` described lives; None where it cannot be known."""
    if not isinstance(owner, dict):
        return None
    pid, started = owner.get("pid"), owner.get("started")
    if not isinstance(pid, int) or not 0 < pid < 2**31 or not isinstance(started, int | float):
        return None
    if owner.get("host") != platform.node():
        return None
    if owner.get("boot") != _boot():
        return False
    try:
        process = psutil.Process(pid)
        return (
            bool(abs(process.create_time() - started) < START_TOLERANCE_S) and process.status() != psutil.STATUS_ZOMBIE
        )
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
