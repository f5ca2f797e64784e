"""What came of a run: of every utterance its words, word errors and time."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Decoded:
    """What came of one utterance. `errors` is None where nothing can be said about word errors.

    `audio_s`: of its whole length the part that its decoded frames are. `done`: decoded to its end. `complete`:
    whether the words are a sentence of the grammar, None without one. `notes`: what was done to the sound.
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


@dataclass
class Result:
    """What came of a run."""

    utterances: list[Decoded] = field(default_factory=list)
    wall_ns: int = 0
    idle_ns: int = 0
    refused: list[str] = field(default_factory=list)  # a sentence for each file that cannot be read
