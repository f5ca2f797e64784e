"""The result of a step, and the speech that steps share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipelines.device import HOST
from pipelines.run import playlist
from pipelines.run.playlist import Item


@dataclass
class Result:
    """`proved`: True, False, or None where it cannot be proved on this device; `why` in one sentence."""

    proved: bool | None
    why: str
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """The input of a step: the device by its name, the folder for its output, and the speech."""

    device: str
    folder: Path
    paths: tuple[str, ...] = ()
    transcripts: str | None = None

    @property
    def accelerator(self) -> bool:
        return self.device != HOST

    def speech(self, most: int) -> Sequence[Item]:
        return playlist.build(self.paths, self.transcripts).items[:most]


def write(path: Path, step: str, result: Result) -> dict[str, Any]:
    """Keep the row of a step, whole or not at all; and return it."""
    row = {"step": step, **asdict(result)}
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(row, indent=1, default=str), encoding="utf-8")
    draft.replace(path)
    return row
