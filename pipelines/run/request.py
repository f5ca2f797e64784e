"""What is to be run, and what came of it.

This module loads neither numba nor torch: a wrong name is reported before they are loaded.
"""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pipelines import config as settings
from pipelines.config import Config
from pipelines.run import playlist
from pipelines.run.playlist import Item, Playlist


@dataclass(frozen=True)
class Request:
    """What to run. Without `out` it runs with the recorder off; `replace` lets an old session go.

    `items`: what is decoded instead of `audio` and `transcripts`, if there is any. `chosen`: somebody chose the
    transcripts, which else only lie next to the audio. ConfigError for settings that cannot act together.
    """

    config: Config
    preset: str
    audio: tuple[str, ...]
    transcripts: str | None
    out: Path | None
    repeat: int = 1
    replace: bool = False
    items: tuple[Item, ...] = ()
    chosen: bool = True

    def __post_init__(self) -> None:
        settings.check(self.config)

    @cached_property
    def playlist(self) -> Playlist:
        """The files to decode, collected once. Raises AudioError if none can be decoded."""
        if self.items:
            return Playlist(list(self.items))
        return playlist.build(self.audio, self.transcripts, self.config.audio, self.chosen)


@dataclass
class Decoded:
    """What came of one utterance. `errors` is None where nothing can be said about word errors.

    `audio_s`: of its whole length the part that its decoded frames are. `done`: decoded to its end. `complete`:
    whether the words are a sentence of the grammar, None without one. `notes`: what was done to the sound. `stream`:
    what a session keeps of a stream (docs/session-format.md), and its words with frames of the utterance.
    """

    name: str
    audio_s: float
    wall_ns: int
    hypothesis: str
    reference: str | None
    errors: int | None
    reference_words: int | None
    done: bool
    epochs: tuple[int, ...]  # the configurations it ran under
    complete: bool | None = None
    notes: tuple[str, ...] = ()
    alternatives: dict[str, object] | None = None  # nbest and confidences, as JSON values
    path: str = ""
    stream: dict[str, object] | None = None


@dataclass
class RunResult:
    """The result of a run."""

    utterances: list[Decoded] = field(default_factory=list)
    wall_ns: int = 0
    idle_ns: int = 0
    stopped_ns: int = 0  # for which the process stood still while it decoded; no part of the wall time
    refused: list[str] = field(default_factory=list)  # a sentence for each file that cannot be read
