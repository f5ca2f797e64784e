"""What will be decoded: the bundled voices, or files and folders that a person chose or dropped."""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import assets
from app.model.recent import is_audio
from profiler.files.inputs import InputError, open_input, regular

if TYPE_CHECKING:
    from profiler.session.reader import Session

TRANSCRIPTS_SUFFIX = ".tsv"

NAMES = "07-awb-names"

MOST_LOOKED_INTO = 100
"""Files of one choice whose beginning is read: ten thousand on a slow disk would hold up the window."""

HEAD_BYTES, ANY_SIZE = 4096, 1 << 62

NIST = b"NIST_1A\n"
"""How the sound files of NIST's corpora (TIMIT, WSJ) begin, which end in .wav too."""


@dataclass(frozen=True)
class AudioChoice:
    """Files or folders as the worker gets them, and the transcripts that belong to them."""

    paths: tuple[str, ...]
    transcripts: str | None
    bundled: bool = False

    @cached_property
    def files(self) -> int:
        """How many audio files there were when it was chosen, folders counted one level deep."""
        return sum(len(audio_in(Path(p))) if os.path.isdir(p) else 1 for p in self.paths)


def audio_in(folder: Path) -> list[Path]:
    """Return the audio files directly in ``folder``; an unreadable folder holds none."""
    try:
        return sorted(path for path in folder.iterdir() if is_audio(path) and regular(path))
    except OSError:
        return []


def bundled() -> AudioChoice | None:
    """Return the synthetic voices that ship with the program, or None when they are missing.

    The short ones first: whoever flips a switch after some seconds has whole utterances to hold against it. The one
    with rare names comes last: of them a recogniser with all tricks on makes words that nobody wants to show.
    """
    folder = assets.path("speech")
    voices = sorted(audio_in(folder), key=lambda path: (path.stem == NAMES, path.stat().st_size))
    if not voices:
        return None
    return AudioChoice(tuple(map(str, voices)), _transcripts_in(folder), bundled=True)


def recorded(session: Session) -> AudioChoice | None:
    """What a session was to decode: files that need not be there any more. None where it does not say."""
    told = session.meta.get("audio")
    paths = told if isinstance(told, list) else dict.fromkeys(u.path for u in session.utterances)
    names = tuple(str(path) for path in paths)
    folder = str(assets.path("speech"))
    bundled = all(os.path.dirname(name) == folder for name in names)
    return AudioChoice(names, None, bundled) if names else None


def chosen(paths: Sequence[str | Path]) -> AudioChoice:
    """Make a choice of files and folders; ``ValueError`` with one sentence when none holds audio.

    A transcripts table is taken along when it is among the paths or the only one beside the audio.
    """
    audio: list[Path] = []
    table: str | None = None
    for given in paths:
        path = Path(given)
        if path.suffix.lower() == TRANSCRIPTS_SUFFIX and regular(path):
            table = str(path)
        elif os.path.isdir(path):
            inside = audio_in(path)
            if not inside:
                raise ValueError(f"There is no audio file directly in the folder {path}.")
            if found := _none_of_sound(inside):
                raise ValueError(f"No file in the folder {path} is sound: {found}.")
            audio.append(path)
        elif not os.path.exists(path):
            raise ValueError(f"{path} does not exist.")
        elif not is_audio(path):
            raise ValueError(f"{path.name} is no audio file; WAV, FLAC, OGG and MP3 can be read.")
        elif not regular(path):
            raise ValueError(f"{path} is a pipe or a device; choose an audio file.")
        elif len(audio) < MOST_LOOKED_INTO and (found := _no_sound(path)):
            raise ValueError(f"{path.name} {found}; WAV, FLAC, OGG and MP3 can be read.")
        else:
            audio.append(path)
    if not audio:
        raise ValueError("A transcripts table alone cannot be decoded; add the audio files.")
    folder = audio[0] if os.path.isdir(audio[0]) else audio[0].parent
    return AudioChoice(tuple(str(p) for p in audio), table or _transcripts_in(folder))


def _no_sound(path: Path) -> str | None:
    """What the beginning of a file shows it to be if that is certainly no sound; None if it may be.

    Sound formats have zeros, and bytes that are no UTF-8, in their headers; NIST's begins with a page of text. Whether
    it can be decoded is found out by the process that does.
    """
    with open_input(path, "an audio file", ANY_SIZE) as file:
        head = file.read(HEAD_BYTES)
    if not head:
        return "is empty (0 bytes)"
    if head.startswith(NIST):
        return None
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return None
    return "is text, not sound" if all(c.isprintable() or c.isspace() for c in text) else None


def _none_of_sound(files: Sequence[Path]) -> str | None:
    """What the first of files is if certainly none is sound; None if one may be, or there are too many to look into."""
    if len(files) > MOST_LOOKED_INTO:
        return None
    first = ""
    for file in files:
        try:
            found = _no_sound(file)
        except InputError:
            found = "cannot be read"
        if not found:
            return None
        first = first or f"{file.name} {found}"
    return first


def _transcripts_in(folder: Path) -> str | None:
    try:
        tables = sorted(p for p in folder.iterdir() if p.suffix.lower() == TRANSCRIPTS_SUFFIX)
    except OSError:
        return None
    return str(tables[0]) if len(tables) == 1 else None
