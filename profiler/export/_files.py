"""Writing an export: whole or not at all, and one sentence when it cannot be."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TextIO


def write_text(path: str | os.PathLike[str], fill: Callable[[TextIO], None]) -> None:
    """Let `fill` write a draft beside `path`, then put it in place; OSError with one sentence."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        try:
            with draft.open("w", encoding="utf-8", newline="") as file:
                fill(file)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(
            f"{target}: the export cannot be written there: {(error.strerror or str(error)).lower()}"
        ) from error
