"""What is to be run. This module loads neither numba nor torch: a wrong name is reported before they are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pipelines import config as settings
from pipelines.config import Config
from pipelines.run import playlist
from pipelines.run.playlist import Playlist


@dataclass(frozen=True)
class Request:
    """What to run. Without `out` it runs with the recorder off; `replace` lets an old session go.

    Raises ConfigError for settings that cannot act together.
    """

    config: Config
    preset: str
    audio: tuple[str, ...]
    transcripts: str | None
    out: Path | None
    repeat: int = 1
    replace: bool = False

    def __post_init__(self) -> None:
        settings.check(self.config)

    @cached_property
    def playlist(self) -> Playlist:
        """The files to decode, looked for once. Raises AudioError where there is none that can be decoded."""
        return playlist.build(self.audio, self.transcripts, self.config.audio)
