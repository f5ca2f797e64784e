"""A block of frames as all scorers see it."""

from __future__ import annotations

from typing import Final

MAX_FRAMES: Final = 64
"""Frames per call of a kernel or a device: bounds the workspace and keeps a call far below 50 ms."""

FLOAT: Final = 4
"""Bytes of a float32."""
