"""What will be decoded: the bundled voices, or files and folders that a person chose or dropped."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import assets
from pipelines.audio import formats
from profiler.files.inputs import InputError, open_input, regular

if TYPE_CHECKING:
    from profiler.session.reader import Session

TRANSCRIPTS_SUFFIXES = (".tsv", ".csv", ".trn", ".transcription", ".stm", ".ctm", ".jsonl", ".json")  # Likeliest first
KALDI = ("text", ".trans.txt")  # Name of Kaldi's transcripts, and how those of LibriSpeech end, which are alike
WORDS = ("transcript", "sentence", "text", "transcription")  # Of titles of columns or names that transcripts have
NAMES = "07-awb-names"
MOST_LOOKED_INTO = 100  # Files whose beginning is read: ten thousand on a slow disk would hold up the window
HEAD_BYTES, ANY_SIZE = 4096, 1 << 62
NIST = b"NIST_1A\n"  # How the sound files of NIST's corpora (TIMIT, WSJ) begin, which end in .wav too


@dataclass(frozen=True)
class AudioChoice:
    """Files or folders as the worker gets them, and the transcripts that belong to them."""

    paths: tuple[str, ...]
    transcripts: str | None
    bundled: bool = False
    found: bool = False  # Nobody chose the transcripts, which are next to the audio and may be of something else

    @property
    def name(self) -> str:
        return "" if self.bundled else Path(self.paths[0]).stem

    @cached_property
    def files(self) -> int:
        return sum(len(audio_in(Path(p))) if os.path.isdir(p) else 1 for p in self.paths)


def audio_in(folder: Path) -> list[Path]:
    """Return the audio files directly in ``folder``; an unreadable folder holds none."""
    try:
        inside = [path for path in sorted(folder.iterdir()) if is_audio(path) and regular(path)]
    except OSError:
        return []
    return [path for path in inside if path.suffix.lower() not in formats.RAW] or inside


def is_audio(path: Path) -> bool:
    return path.suffix.lower() in formats.SUFFIXES | formats.RAW


def bundled() -> AudioChoice | None:
    """The synthetic voices that ship with the program, or None without them: short ones first, rare names last."""
    return _shipped(assets.path("speech"))


@cache
def _shipped(folder: Path) -> AudioChoice | None:
    # Who flips a switch soon has whole utterances to compare then; rare names are recognised badly.
    voices = sorted(audio_in(folder), key=lambda path: (path.stem == NAMES, path.stat().st_size))
    return AudioChoice(tuple(map(str, voices)), _transcripts_in(folder), bundled=True) if voices else None


def recorded(session: Session) -> AudioChoice | None:
    """What a session was to decode: files that need not be there any more. None where it does not say."""
    listed = session.meta.get("audio")
    names = tuple(dict.fromkeys(u.path for u in session.utterances) if listed is None else listed)
    folder = str(assets.path("speech"))
    bundled = all(os.path.dirname(name) == folder for name in names)
    return AudioChoice(names, None, bundled) if names else None


def chosen(paths: Sequence[str | Path]) -> AudioChoice:
    """Choose files and folders with their transcripts; ``ValueError`` (one sentence) when none holds audio."""
    audio: list[Path] = []
    table: str | None = None
    for given in paths:
        path = Path(given)
        if (_kind(path) is not None or path.suffix.lower() == ".txt") and regular(path):
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
        elif path.suffix.lower() in formats.CONVERTIBLE:
            raise ValueError(f"{path.name} is not read; ffmpeg converts it: ffmpeg -i {path.name} {path.stem}.wav.")
        elif not is_audio(path):
            raise ValueError(f"The format of {path.name} is not supported; {formats.READ} can be read.")
        elif not regular(path):
            raise ValueError(f"{path} is a pipe or a device; choose an audio file.")
        elif len(audio) < MOST_LOOKED_INTO and (found := _no_sound(path)):
            raise ValueError(f"{path.name} {found}; {formats.READ} can be read.")
        else:
            audio.append(path)
    if not audio:
        raise ValueError("Transcripts alone cannot be decoded; add the audio files.")
    folder = audio[0] if os.path.isdir(audio[0]) else audio[0].parent
    return AudioChoice(tuple(str(p) for p in audio), table or _transcripts_in(folder), found=table is None)


def _no_sound(path: Path) -> str | None:
    """Why a file is certainly no sound, judged by its beginning; None if it may be sound.

    Headers of sound formats contain zeros and bytes that are not UTF-8; NIST's begins with a page of text.
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
    reasons = []
    for file in files:
        try:
            reasons.append(_no_sound(file))
        except InputError:
            reasons.append("cannot be read")
        if not reasons[-1]:
            return None
    return f"{files[0].name} {reasons[0]}"


def _kind(path: Path) -> int | None:
    """Which of the kinds of transcripts a file is by its name, the likeliest 0; None for another file."""
    if path.name == KALDI[0] or path.name.endswith(KALDI[1]):
        return len(TRANSCRIPTS_SUFFIXES)
    suffix = path.suffix.lower()
    return TRANSCRIPTS_SUFFIXES.index(suffix) if suffix in TRANSCRIPTS_SUFFIXES else None


def _transcripts_in(folder: Path) -> str | None:
    """The transcripts of the likeliest kind in a folder, if it is one file."""
    found: dict[int, list[Path]] = {}
    try:
        for path in folder.iterdir():
            if (kind := _kind(path)) is not None and regular(path) and _may_be_transcripts(path):
                found.setdefault(kind, []).append(path)
    except OSError:
        return None
    tables = found[min(found)] if found else []
    return str(tables[0]) if len(tables) == 1 else None


def _may_be_transcripts(path: Path) -> bool:
    if path.suffix.lower() not in (".csv", ".json", ".jsonl"):
        return True
    try:
        with open_input(path, "a table of transcripts", ANY_SIZE) as file:
            header = file.readline(HEAD_BYTES).decode("utf-8", "replace").casefold()
    except (InputError, OSError):
        return False
    return not set(WORDS).isdisjoint(re.split(r"[\W_]+", header))
