"""Warnings of libraries on stderr: a sentence each, once, in place of the file and line that gave it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from app.cli import _output
from profiler.plain import one_line

PACKAGES = "site-packages"


@contextmanager
def in_sentences() -> Iterator[None]:
    """While this lasts, a warning that would be shown is one sentence."""
    printed: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        sentence = f"{_origin(category, filename)} warns: {one_line(str(message))}"
        if sentence not in printed:
            printed.add(sentence)
            _output.complain(sentence)

    before, warnings.showwarning = warnings.showwarning, show
    try:
        yield
    finally:
        warnings.showwarning = before


def _origin(category: type[Warning], filename: str) -> str:
    """The library that has warnings of this kind, or to which the file belongs that gave it."""
    if category.__module__ != Warning.__module__:
        return category.__module__.partition(".")[0]
    parts = Path(filename).parts
    if PACKAGES not in parts[:-1]:
        return "Python"
    return parts[parts.index(PACKAGES) + 1].removesuffix(".py")
