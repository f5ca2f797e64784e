"""Reads what was said in sound files, as people and other recognisers write it down.

`FORMATS` has one reader for each format; a format is known by its suffix, else by its beginning. What a row says is a
`TranscriptRow`; which files are meant is found out by `pipelines.run.playlist`.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePath
from typing import NamedTuple

from pipelines.audio import formats, tables
from pipelines.audio.loading import AudioError, Part, printable
from pipelines.audio.tables import MAX_TRANSCRIPT
from pipelines.audio.text_file import TextFile, TranscriptRow, channel_of, opened, part, seconds
from profiler.files import inputs
from profiler.plain import one_line

WAV_SCP, SEGMENTS = "wav.scp", "segments"  # Kaldi's list of sound files and of their parts, in the folder of its `text`
_ARCHIVE = re.compile(r".+:\d+(?:\[.*\])?")
_NOT_READ = (  # how it begins, and what it is
    (r"WEBVTT", "a subtitle file (WebVTT)"),
    (r"(?:\d+\s*\n)?\s*(?:\d+:)?\d+:\d\d[,.]\d+\s+-->", "a subtitle file (SRT)"),
    (r"\d+:\d\d:\d\d[.,]\d+,\d+:\d\d:\d\d[.,]\d+", "a subtitle file (SBV)"),
    (r"\[Script Info\]", "a subtitle file (ASS)"),
    (r'(?:File type = )?"ooTextFile', "a TextGrid of Praat"),
    (r"(?s:.*)<ANNOTATION_DOCUMENT", "an annotation of ELAN (EAF)"),
    (r"(?s:.*)<Trans[\s>]", "an annotation of Transcriber (TRS)"),
    (r"(?s:.*)<tt[\s>]", "a subtitle file (TTML)"),
    (r"<\?xml|<!DOCTYPE|<[\w:]+\s+xmlns", "an XML file"),
    (r"@(?:UTF8|Begin|Window|Font)\b", "a transcript of CHAT"),
    (r"\{\\rtf", "a document (RTF)"),
    (r"SPEAKER \S+ \S+ [\d.]+ [\d.]+ ", "a list of speakers without words (RTTM)"),
)


@dataclass(frozen=True)
class Transcripts:
    """The rows of a file, in its order, and as what it was read."""

    path: Path
    rows: list[TranscriptRow]
    title: str

    def files(self) -> list[str]:
        """The sound files that rows name and that exist, each once; a name alone is a file in the same folder."""
        folders: dict[Path, dict[str, str]] = {}
        found: dict[str, None] = {}
        for place, name in dict.fromkeys((row.place, row.file) for row in self.rows):
            if place is None:
                at = self.path.parent / name
                if at.parent not in folders:
                    folders[at.parent] = _sounds_in(at.parent)
                place = folders[at.parent].get(at.name, "")
            if place and inputs.regular(Path(place)):
                found[place] = None
        return list(found)

    def by_place(self) -> dict[Path, str]:
        return {Path(row.place): row.text for row in self.rows if row.place is not None}


def _sounds_in(folder: Path) -> dict[str, str]:
    """The sound files of a folder by their names, with and without suffix."""
    try:
        files = sorted(p for p in folder.iterdir() if p.suffix.lower() in formats.SUFFIXES)
    except OSError:
        return {}
    return {file.stem: str(file) for file in reversed(files)} | {file.name: str(file) for file in files}


def read(path: str | Path, plain: bool = False) -> Transcripts:
    """What is said, in any of `FORMATS`. Raises AudioError with one sentence that names the file and the line.

    `plain`: the sound files are those that are named here, so each must be a file and no command.
    """
    text = opened(Path(path), plain)
    name = printable(path)
    if not any(text.numbered()):
        raise AudioError(f"The transcripts {name} are an empty file, or hold comments alone.")
    if text.path.name in (WAV_SCP, SEGMENTS):
        raise AudioError(f"{name} says nothing of the words; name the file `text` beside it.")
    form = _format(text)
    speakers: dict[tuple[str, Part, str], set[str]] = defaultdict(set)
    found = list(form.rows(text))
    for row in found:
        speakers[row.place or row.file, row.part, row.name].add(row.speaker)
    rows: dict[tuple[str, Part, str], TranscriptRow] = {}
    for row in found:
        if len(row.text) > MAX_TRANSCRIPT:
            raise text.error(
                row.line, f"a transcript of {len(row.text):,} characters; one file says at most {MAX_TRANSCRIPT:,}."
            )
        if len(speakers[row.place or row.file, row.part, row.name]) > 1:  # at once
            row = replace(row, name=f"{row.name or PurePath(row.file).stem}-{row.speaker}")
        first = rows.setdefault((row.place or row.file, row.part, row.name), row)
        if first.text != row.text:
            raise text.error(
                row.line,
                f"{printable(row.file)} has two different transcripts at one place, the other in line {first.line}.",
            )
    if not rows:
        raise AudioError(f"The transcripts {name}, {form.title}, name no file.")
    return Transcripts(Path(path), list(rows.values()), form.title)


def _format(text: TextFile) -> Format:
    """The format that the suffix tells, else the first that the first lines fit."""
    first = [line for _, line in islice(text.numbered(), 20)]
    begin = "\n".join(first)[:4096].lstrip()
    for pattern, what in _NOT_READ:
        if re.match(pattern, begin):
            raise AudioError(
                f"{printable(text.path)} is {what}, which is not read; write its words as STM "
                "(file channel speaker begin end words) or as a table with a header (file, start, end, transcript)."
            )
    suffix = text.path.suffix.lower()
    named = next((form for form in FORMATS if suffix in form.suffixes), None)
    form = named or next((form for form in FORMATS if form.fits(first)), None)
    if form is None:
        read = ", ".join(form.title for form in FORMATS)
        raise AudioError(
            f"{printable(text.path)} begins with {one_line(first[0], 40)!r} and is in no format that is read: {read}."
        )
    return form


_NAMED = re.compile(r"\s*(?P<text>.*?)\s*\((?P<name>[^()\s]+)\)\s*")


def _named_behind(text: TextFile) -> Iterator[TranscriptRow]:
    for number, line in text.numbered():
        found = _NAMED.fullmatch(line)
        if found is None:
            raise text.error(number, "words and behind them the name of the sound file in parentheses are needed.")
        said = re.sub(r"</?s>", " ", found["text"])
        yield TranscriptRow(found["name"], _first_of_each(said).strip(), number)


def _first_of_each(text: str) -> str:
    """Choose the first of alternatives as NIST writes them: `{ it is / it's / @ }`, where @ is nothing."""
    return re.sub(r"\{([^{}]*)\}", lambda match: match[1].partition("/")[0].replace("@", "").strip(), text)


def _are_times(words: Sequence[str]) -> bool:
    try:
        return all(float(word) >= 0 for word in words)
    except ValueError:
        return False


def _stm(text: TextFile) -> Iterator[TranscriptRow]:
    """STM: file, channel, speaker, begin, end, a label in angle brackets (may lack), words."""
    for number, line in text.numbered():
        fields = line.split(None, 5)
        if len(fields) < 5:
            raise text.error(number, "file, channel, speaker, begin, end and words are needed by STM.")
        file, channel, speaker, begin, end = fields[:5]
        said = re.sub(r"^<[^<>\s]*>", "", fields[5] if len(fields) > 5 else "").strip()
        where = part(text, number, begin, end, channel_of(text, number, channel))
        said = "" if said.casefold() == "ignore_time_segment_in_scoring" else _first_of_each(said).strip()
        yield TranscriptRow(file, said, number, None, where, f"{file}-{channel}-{begin}-{end}", speaker)


def _is_ctm(lines: Sequence[str]) -> bool:
    timed = [f for line in lines if (f := line.split())[2:3] != ["*"]]
    return all(5 <= len(f) <= 8 and _are_times(f[2:4]) for f in timed)


def _ctm(text: TextFile) -> Iterator[TranscriptRow]:
    """CTM: file, channel, begin, seconds, word (and more) of each word; of alternatives the first is taken."""
    words: dict[tuple[str, str], list[tuple[float, str]]] = {}
    lines: dict[tuple[str, str], int] = {}
    left_out = False
    for number, line in text.numbered():
        fields = line.split()
        if len(fields) < 5:
            raise text.error(number, "file, channel, begin, seconds and a word are needed by CTM.")
        if fields[4].startswith("<ALT"):
            left_out = fields[4] == "<ALT>"
        elif not left_out:
            begin = seconds(text, number, fields[2])
            words.setdefault((fields[0], fields[1]), []).append((begin, fields[4]))
            lines.setdefault((fields[0], fields[1]), number)
    channels = Counter(file for file, _ in words)
    for (file, channel), timed in words.items():
        number = lines[file, channel]
        said = " ".join(word for _, word in sorted(timed, key=lambda each: each[0]))
        where = Part(channel_of(text, number, channel))
        name = f"{file}-{channel}" if channels[file] > 1 else ""
        yield TranscriptRow(file, said.replace("@", "").strip(), number, part=where, name=name)


def _kaldi(text: TextFile) -> Iterator[TranscriptRow]:
    """`text`: an utterance's name and its words; `wav.scp` and `segments` in its folder give file and times."""
    said: dict[str, tuple[str, int]] = {}
    for number, (name, words) in _pairs(text):
        if said.setdefault(name, (words, number))[0] != words:
            raise text.error(number, f"{printable(name)} has two different transcripts.")
    scp, segments = text.sibling(WAV_SCP), text.sibling(SEGMENTS)
    places = {} if scp is None else _wav_scp(scp)
    if segments is not None:
        for number, line in segments.numbered():
            fields = line.split()
            if len(fields) < 4:
                raise segments.error(number, "utterance, recording, begin and end are needed.")
            name, file, begin, end = fields[:4]
            words, at = said.pop(name, ("", number))
            where = part(segments, number, begin, end, _channel_of_segment(segments, number, fields[4:5]))
            yield TranscriptRow(file, words, at, places.get(file), where, name)
    elif scp is not None:
        for name, place in places.items():
            words, at = said.pop(name, ("", 0))
            yield TranscriptRow(name, words, at, place, name=name)
    for name, (words, number) in said.items():
        yield TranscriptRow(name, words, number)


def _channel_of_segment(segments: TextFile, number: int, word: list[str]) -> int | None:
    """What `extract-segments` takes: from 0, or -1 for all."""
    if not word or word == ["-1"]:
        return None
    if not word[0].isdecimal() or int(word[0]) > 98:
        raise segments.error(number, f"a channel is a number from 0, found {one_line(word[0])!r}.")
    return int(word[0])


def _pairs(text: TextFile) -> Iterator[tuple[int, tuple[str, str]]]:
    for number, line in text.numbered():
        name, *rest = line.split(None, 1)
        yield number, (name, rest[0].strip() if rest else "")


def _wav_scp(scp: TextFile) -> dict[str, str | None]:
    """Where each recording is; None for one in an archive or that a command would write.

    Relative to the list, else to this folder."""
    found: dict[str, str | None] = {}
    for number, (name, file) in _pairs(scp):
        shown, place, wrong = one_line(file, 60), scp.existing(file), ""
        if file.endswith("|"):
            wrong = f"a command ({shown}) is not run; write the sound to a file and name that."
        elif _ARCHIVE.fullmatch(file) and not os.path.exists(place):
            wrong = f"it points into an archive ({shown}), which is not read."
        if wrong and scp.plain:
            raise scp.error(number, wrong)
        found[name] = None if wrong else place
    return found


class Format(NamedTuple):
    """One way to write transcripts down. `fits`: whether the first lines of a file look like it."""

    title: str
    suffixes: tuple[str, ...]
    fits: Callable[[Sequence[str]], bool]
    rows: Callable[[TextFile], Iterator[TranscriptRow]]


FORMATS = (
    Format("a table with a header", (".tsv", ".csv"), lambda lines: bool(tables.header(lines[0])), tables.table),
    Format(
        "records of JSON",
        (".json", ".jsonl"),
        lambda lines: bool(tables.BEGINNING.match("\n".join(lines).strip())),
        tables.manifest,
    ),
    Format(
        "words with the name of the file behind them",
        (".trn", ".transcription"),
        lambda lines: all(map(_NAMED.fullmatch, lines)),
        _named_behind,
    ),
    Format(
        "segments (STM)",
        (".stm",),
        lambda lines: all(len(f := line.split(None, 5)) >= 5 and _are_times(f[3:5]) for line in lines),
        _stm,
    ),
    Format("words with times (CTM)", (".ctm",), _is_ctm, _ctm),
    Format(
        "names with words behind them (Kaldi)",
        (),
        lambda lines: all(re.match(r"""[^\s<>{}\[\]()"'#%;@*\\]""", line) for line in lines),
        _kaldi,
    ),
)
"""Looked through from the first to the last."""
SUFFIXES = frozenset(suffix for form in FORMATS for suffix in form.suffixes)
