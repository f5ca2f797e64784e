"""What will be decoded: the bundled voices, or files and folders that a person chose or dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import assets
from app.recent import is_audio

TRANSCRIPTS_SUFFIX = ".tsv"


@dataclass(frozen=True)
class AudioChoice:
    """Files or folders as the worker gets them, and the transcripts that belong to them."""

    paths: tuple[str, ...]
    transcripts: str | None
    bundled: bool = False

    @property
    def files(self) -> int:
        """How many audio files there are, folders counted one level deep."""
        return sum(len(audio_in(Path(p))) if Path(p).is_dir() else 1 for p in self.paths)


def audio_in(folder: Path) -> list[Path]:
    """Return the audio files directly in ``folder``; an unreadable folder holds none."""
    try:
        return sorted(path for path in folder.iterdir() if path.is_file() and is_audio(path))
    except OSError:
        return []


def bundled() -> AudioChoice | None:
    """Return the synthetic voices that ship with the program, or None when they are missing."""
    folder = assets.path("speech")
    if not audio_in(folder):
        return None
    return AudioChoice((str(folder),), _transcripts_in(folder), bundled=True)


def chosen(paths: Sequence[str | Path]) -> AudioChoice:
    """Make a choice of files and folders; ``ValueError`` with one sentence when none holds audio.

    A transcripts table is taken along when it is among the paths or the only one beside the audio.
    """
    audio: list[Path] = []
    table: str | None = None
    for given in paths:
        path = Path(given)
        if path.suffix.lower() == TRANSCRIPTS_SUFFIX and path.is_file():
            table = str(path)
        elif path.is_dir():
            if not audio_in(path):
                raise ValueError(f"There is no audio file directly in the folder {path}.")
            audio.append(path)
        elif not path.exists():
            raise ValueError(f"{path} does not exist.")
        elif is_audio(path):
            audio.append(path)
        else:
            raise ValueError(f"{path.name} is no audio file; WAV, FLAC, OGG and MP3 can be read.")
    if not audio:
        raise ValueError("A transcripts table alone cannot be decoded; add the audio files.")
    folder = audio[0] if audio[0].is_dir() else audio[0].parent
    return AudioChoice(tuple(str(p) for p in audio), table or _transcripts_in(folder))


def _transcripts_in(folder: Path) -> str | None:
    try:
        tables = sorted(p for p in folder.iterdir() if p.suffix.lower() == TRANSCRIPTS_SUFFIX)
    except OSError:
        return None
    return str(tables[0]) if len(tables) == 1 else None
