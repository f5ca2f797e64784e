"""What the verbs share for talking: JSON on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any


def json_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )


def print_json(tree: dict[str, Any]) -> None:
    """Print one JSON object; what is not a finite number is null."""
    print(json.dumps(_finite(tree), ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "item"):  # a numpy scalar
        return _finite(value.item())
    return value


def plain(value: object) -> str:
    """A setting's value as it is written after ``--set``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Progress:
    """Progress on stderr: one line that moves on a terminal, plain lines otherwise."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = ""
        self._width = 0

    def __call__(self, stage: str, fraction: float | None = None) -> None:
        """Say what goes on; `fraction` is None where nobody knows how much is left."""
        if self._terminal:
            share = "" if fraction is None else f" {fraction:4.0%}"
            text = f"{stage}{share}"
            print(f"\r{text:{self._width}}", end="", file=sys.stderr, flush=True)
            self._width = len(text)
        elif stage != self._last:
            print(stage, file=sys.stderr, flush=True)
        self._last = stage

    def done(self) -> None:
        """Clear the moving line."""
        if self._terminal and self._width:
            print(f"\r{'':{self._width}}\r", end="", file=sys.stderr, flush=True)
            self._width = 0
