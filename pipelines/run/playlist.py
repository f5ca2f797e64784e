"""What a run decodes: audio files in order, each with what was said where that is known."""

import math
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import msgspec

import assets
from pipelines.audio import collecting, formats
from pipelines.audio import loading as audio
from pipelines.audio import transcripts as texts
from pipelines.audio.text_file import TranscriptRow
from pipelines.config import Audio
from profiler.plain import counted, one_line

NAMED = 3  # Rows that a note names
ALL = Audio()
SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class Item:
    """A file, or part of it, to decode; `reference` is None where nothing is known of what was said.

    No two utterances of a playlist have the same `name`.
    """

    name: str
    path: Path
    reference: str | None
    part: audio.Part = audio.WHOLE
    notes: tuple[str, ...] = ()  # Of how the file was found


@dataclass(frozen=True)
class Playlist:
    """The utterances to decode, and what was left out, a sentence each."""

    items: list[Item]
    notes: tuple[str, ...] = ()


def bundled_speech() -> tuple[list[str], str]:
    folder = assets.path("speech")
    return [str(folder)], str(folder / "transcripts.tsv")


def build(paths: Sequence[str], transcripts: str | None, choice: Audio = ALL, chosen: bool = True) -> Playlist:
    """The files that `paths` (files, folders, globs) name, matched with transcripts, in the parts of `choice`.

    Without any path the files that the transcripts name are taken; without those, too, the bundled synthetic voices.
    Raises `audio.AudioError`, also when none of the files can be decoded; those among others that cannot be are named
    when their turn comes. Transcripts that nobody has `chosen`, which only lie next to the audio, are left out with a
    note where they cannot be read or name none of the files.
    """
    notes: list[str] = []
    try:
        said = texts.read(transcripts, plain=not paths) if transcripts else None
    except audio.AudioError as problem:
        if chosen:
            raise
        said, notes = None, [f"The words are not judged: {problem}"]
    if said is not None:
        paths = paths or said.files()
    elif not paths:
        paths, transcripts = bundled_speech()
        said = texts.read(transcripts)
    if said is not None and not paths:
        raise audio.AudioError(
            f"{audio.printable(said.path)}, read as {said.title}, names no sound file that is there (its first: "
            f"{one_line(said.rows[0].file, 60)}); name the sound with --audio."
        )
    found = collecting.collected(paths, formats.SUFFIXES | (formats.RAW if choice.raw else set()))
    files = list(found)
    rows, of_rows = _matched(said.rows if said else (), files)
    notes += of_rows
    if said is not None and not rows:
        if chosen:
            given = counted(len(files), "audio file", "audio files")
            raise audio.AudioError(
                f"{audio.printable(said.path)}, read as {said.title}, names none of the {given} given (its first: "
                f"{one_line(said.rows[0].file, 60)}); its paths are read relative to itself, and names are those of "
                "files, with or without a suffix."
            )
        beside = f"{audio.printable(said.path)}, which lies next to the audio, names none of it"
        notes = [f"{beside}; choose transcripts with the audio to have its words judged."]
    _look(files, choice)
    names = _distinct(files)
    items = [
        Item(
            (row.name or names[file]) + ending,
            file,
            said_of or None,
            part,
            (f"{times:,} links to the same file are decoded once",) * (times > 1),
        )
        for file, times in found.items()
        for row in rows.get(file) or [TranscriptRow("", "", 0)]
        for ending, part, said_of in _parts_of(file, row, choice)
    ]
    return Playlist(_numbered(items), tuple(notes))


def parts_of(path: Path, choice: Audio) -> dict[str, audio.Part]:
    """The parts of a sound file to decode (all channels mixed, one, or each), by what is added to its name."""
    whole = audio.Part(raw=choice.raw if path.suffix.lower() in formats.RAW else "")
    n = 1
    if choice.channel != "mix":
        with suppress(audio.AudioError):  # said when its turn comes
            n = audio.look(path, whole)
    if n == 1:
        return {"": whole}
    if choice.channel != "each":
        return {"": audio.Part(channel=SIDES.index(choice.channel), raw=whole.raw)}
    names = SIDES if n == len(SIDES) else tuple(map(str, range(1, n + 1)))
    return {f"-{name}": audio.Part(channel=at, raw=whole.raw) for at, name in enumerate(names)}


def _parts_of(file: Path, row: TranscriptRow, choice: Audio) -> Iterator[tuple[str, audio.Part, str]]:
    """The utterances of a row: what is appended to its name, the part of the file, and what is said.

    What was said on one channel alone is not known, unless the row says of which channel it is.
    """
    own = row.part.channel
    for ending, part in parts_of(file, choice if own is None else Audio(raw=choice.raw)).items():
        channel = part.channel if own is None else own
        placed = msgspec.structs.replace(row.part, channel=channel, raw=part.raw)
        yield ending, placed, "" if ending else row.text


def _matched(rows: Sequence[TranscriptRow], files: Sequence[Path]) -> tuple[dict[Path, list[TranscriptRow]], list[str]]:
    """The rows of each file in their order, and notes on those that are of no use."""
    meant = _Files(files)
    best: dict[tuple[Path, audio.Part, str], tuple[float, TranscriptRow]] = {}
    lost: list[TranscriptRow] = []
    unclear: list[TranscriptRow] = []
    for row in rows:
        found, fit = meant.of(row)
        if len(found) != 1:
            (unclear if found else lost).append(row)
            continue
        key = found[0], row.part, row.name
        before_fit, before = best.get(key, (-1.0, row))
        if before_fit == fit and before.text != row.text:
            raise audio.AudioError(
                f"The transcripts have two different ones of {audio.printable(found[0])}, in lines {before.line} and "
                f"{row.line}."
            )
        if before_fit < fit:
            best[key] = fit, row
        if before.text != row.text:
            lost.append(row if before_fit >= fit else before)
    matched: dict[Path, list[TranscriptRow]] = defaultdict(list)
    elsewhere = []
    for (file, _, _), (fit, row) in best.items():
        matched[file].append(row)
        if row.place is not None and fit < len(_parts(row.file)) - 1:
            elsewhere.append(row)
    useless = {
        "no file that is decoded": lost,
        "more than one file, not scored": unclear,
        "a path that is not there; a file of the same name was taken": elsewhere,
    }
    return matched, [_note(rows, what) for what, rows in useless.items() if rows]


class _Files:
    """Files as rows name them: by path, else by name; whichever way Unicode writes an accent."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._by_place = {os.path.realpath(file): file for file in files}
        self._by_form = {_composed(place): file for place, file in self._by_place.items()}
        self._by_name: dict[str, dict[Path, None]] = defaultdict(dict)
        for place, file in self._by_place.items():
            for path in (PurePath(place), file):
                for name in (path.name, path.stem):
                    self._by_name[_composed(name)][file] = None

    def of(self, row: TranscriptRow) -> tuple[list[Path], float]:
        """The files that a row may mean, one if it is clear which, and how well they fit."""
        if row.place is not None:
            found = self._by_place.get(row.place) or self._by_form.get(_composed(row.place))
            if found is not None:
                return [found], math.inf
        *folders, name = _parts(row.file) or [""]
        stem, suffix = os.path.splitext(name)
        named = self._by_name.get(name)
        if named is None and suffix.lower() in formats.SUFFIXES | formats.RAW:
            named = self._by_name.get(stem)
        if named is None or (row.place is not None and os.path.exists(row.place)):
            return [], 0
        shared = {file: _alike(folders, _parts(os.path.realpath(file))[:-1]) for file in named}
        most = max(shared.values())
        return [file for file, count in shared.items() if count == most], most


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"[\\/]", _composed(path)) if part not in ("", ".")]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(reversed(one), reversed(other), strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _note(rows: Sequence[TranscriptRow], what: str) -> str:
    first = ", ".join(one_line(row.name or row.file, 60) for row in rows[:NAMED])
    more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    one = len(rows) == 1
    return f"{counted(len(rows), 'row', 'rows')} of the transcripts name{'s' * one} {what}: {first}{more}"


def _distinct(files: Sequence[Path]) -> dict[Path, str]:
    """A name for each file: without suffix and folder, or with as many folders as tell it from others."""
    alike: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        alike[_composed(file.stem)].append(file)
    names: dict[Path, str] = {}
    for stem, group in alike.items():
        folders = {file: Path(os.path.abspath(file)).parent.parts for file in group}
        for depth in range(max(map(len, folders.values())) + 1):
            named = {f: _composed(str(PurePath(*p[len(p) - min(depth, len(p)) :], stem))) for f, p in folders.items()}
            if len(set(named.values())) == len(set(folders.values())):
                break
        times = Counter(named.values())
        names |= {f: n + f.suffix if times[n] > 1 else n for f, n in named.items()}
    return names


def _numbered(items: Sequence[Item]) -> list[Item]:
    """The items with a number behind the names that are taken already."""
    taken = {item.name for item in items}
    seen: set[str] = set()
    found = []
    for item in items:
        name, number = item.name, 2
        while name in seen or (name != item.name and name in taken):
            name, number = f"{item.name}-{number}", number + 1
        taken.add(name)
        seen.add(name)
        found.append(replace(item, name=name))
    return found


def _look(files: Sequence[Path], choice: Audio) -> None:
    """Raise AudioError if none of `files` can be decoded, by their headers."""
    refused = []
    for file in files:
        try:
            for part in parts_of(file, choice).values():
                audio.look(file, part)
            return
        except audio.AudioError as error:
            refused.append(error)
    if len(refused) == 1:
        raise refused[0]
    raise audio.AudioError(f"None of the {len(refused)} files can be decoded; the first: {refused[0]}")


def passes(items: Sequence[Item], repeat: int, again: Callable[[], bool], frame: Callable[[], int]) -> Iterator[Item]:
    """`items` `repeat` times over, then once more for as long as `again` says so.

    They end after a pass in which `frame`, the number of frames decoded so far, has not grown: none can be read.
    """
    done = 0
    while done < repeat or again():
        before = frame()
        yield from items
        if frame() == before:
            return
        done += 1
