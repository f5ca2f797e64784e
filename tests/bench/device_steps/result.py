"""The result of a step, and the speech that steps share."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipelines.device import HOST
from pipelines.run import playlist
from pipelines.run.playlist import Item

SAME_NAT = 0.05  # of log densities of some hundred nat: products are summed in another order on a device


@dataclass
class Result:
    """`proved`: True, False, or None where it cannot be proved on this device; `why` in one sentence."""

    proved: bool | None
    why: str
    figures: dict[str, Any] = field(default_factory=dict)


def verdict(wrong: Mapping[str, object], why: str, figures: dict[str, Any], unless: str = "") -> Result:
    """The result of a step: False with every reason that holds, else None where `unless` says why it cannot be proved
    here, else True."""
    reasons = [reason for reason, holds in wrong.items() if holds]
    return Result(False if reasons else None if unless else True, "; ".join(reasons) or unless or why, figures)


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


def write(path: Path, step: str, result: Result) -> None:
    """Keep the row of a step, whole or not at all."""
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps({"step": step, **asdict(result)}, indent=1, default=str), encoding="utf-8")
    draft.replace(path)
