"""Whether there is a display to open a window on."""

from __future__ import annotations

import os
import sys

from profiler.errors import BadInput


def has_display() -> bool:
    """True where a window can be shown (or Qt was told which platform to use)."""
    if os.environ.get("QT_QPA_PLATFORM") or sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def require_display() -> None:
    """BadInput where no window can be shown: Qt itself would abort the process."""
    if not has_display():
        raise BadInput(
            "There is no display to open a window on; `asrscope run` works without one, "
            "and `asrscope export` makes pictures."
        )
