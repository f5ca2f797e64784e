"""Reads what was said in sound files, as people and other recognisers write it down.

`FORMATS` has one reader for each format. What a row says is a `Row`: the sound file by its path, or by its name alone,
which part of it, and the words. Which files are meant is found out by `pipelines.run.playlist`.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pipelines.audio.loading import WHOLE, AudioError, Part, printable
from profiler.files import inputs
from profiler.plain import counted, one_line

FILE_COLUMNS = ("file", "path", "wav_filename", "audio", "filename", "file_name", "audio_filepath")
TEXT_COLUMNS = ("transcript", "sentence", "text", "transcription")
"""Names of columns (those of Common Voice and DeepSpeech among them), the first that there is taken."""
DELIMITERS = "\t,;|"
MAX_TABLE_BYTES = 64 << 20
"""The transcripts of the thousand hours of LibriSpeech have 60 MB."""
MAX_TABLE_LINES = 500_000
MAX_TRANSCRIPT = 400_000
"""Characters said in one file: three hours at four words a second are some 260 000."""
LOOKED_AT = 20
"""Lines by which a format is known."""

WAV_SCP, SEGMENTS = "wav.scp", "segments"
"""Kaldi's list of sound files and of their parts, in the folder of its `text`."""
NOT_SCORED = "ignore_time_segment_in_scoring"  # what an STM has in place of words
CHANNELS = {"a": 0, "b": 1}


@dataclass(frozen=True, slots=True)
class Row:
    """What is said in one utterance.

    `file`: a sound file, or the name of one, as written; `place`: where it is, resolved, None where there is a name
    alone. `text`: empty where nothing is known or nothing is to be scored. `name`: of the utterance, if it has one.
    """

    file: str
    text: str
    line: int
    place: str | None = None
    part: Part = WHOLE
    name: str = ""


@dataclass(frozen=True)
class Transcripts:
    """The rows of a file, in its order, and as what it was read."""

    rows: list[Row]
    title: str

    def files(self) -> list[str]:
        """The sound files that rows name and that exist, each once."""
        places = dict.fromkeys(row.place for row in self.rows)
        return [place for place in places if place is not None and inputs.regular(Path(place))]


@dataclass
class _Text:
    """A file of transcripts, in lines. `plain`: commands of a `wav.scp` would be needed, and are refused."""

    path: Path
    lines: list[str]
    plain: bool = False
    places: _Places = field(init=False)

    def __post_init__(self) -> None:
        self.places = _Places(self.path)

    def error(self, line: int, what: str) -> AudioError:
        return AudioError(f"The transcripts {printable(self.path)}, line {line}: {what}")

    def sibling(self, name: str) -> _Text | None:
        """The file of that name in the same folder, if there is one."""
        path = self.path.parent / name
        return _text(path, self.plain) if inputs.regular(path) else None

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Lines that are neither empty nor a comment (`;;`), with their numbers."""
        for number, line in enumerate(self.lines, start=1):
            if line.strip() and not line.startswith(";;"):
                yield number, line


class _Places:
    """Finds the files that a table names; each folder's real path is resolved once."""

    def __init__(self, table: str | Path) -> None:
        self._folder = os.path.dirname(os.path.abspath(table))
        self._real: dict[str, str] = {}

    def of(self, file: str) -> str:
        """The resolved path of `file`, which is relative to the table."""
        folder, name = os.path.split(os.path.join(self._folder, file))
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)
        path = os.path.join(self._real[folder], name)
        direct = name not in ("", os.curdir, os.pardir) and not os.path.islink(path)
        return path if direct else os.path.realpath(path)


def read(path: str | Path, plain: bool = False) -> Transcripts:
    """What is said, in any of `FORMATS`. Raises AudioError with one sentence that names the file and the line.

    `plain`: the sound files are those that are named here, so each must be a file and no command.
    """
    text = _text(Path(path), plain)
    name = printable(path)
    if not any(text.numbered()):
        raise AudioError(f"The transcripts {name} are an empty file, or hold comments alone.")
    if text.path.name in (WAV_SCP, SEGMENTS):
        raise AudioError(f"{name} says nothing of the words; name the file `text` beside it.")
    form = _format(text)
    rows: dict[tuple[str, Part, str], Row] = {}
    for row in form.rows(text):
        if len(row.text) > MAX_TRANSCRIPT:
            raise text.error(
                row.line,
                f"a transcript of {len(row.text):,} characters; one file says at most {MAX_TRANSCRIPT:,}.",
            )
        if rows.setdefault((row.place or row.file, row.part, row.name), row).text != row.text:
            raise text.error(row.line, f"{printable(row.name or row.file)} has two different transcripts.")
    if not rows:
        raise AudioError(f"The transcripts {name}, {form.title}, name no file.")
    return Transcripts(list(rows.values()), form.title)


def read_transcripts(table: str | Path) -> dict[Path, str]:
    """What is said in each file of a table of paths: resolved path to transcript, in the table's order.

    Paths are relative to the table. An empty transcript means: decode, but do not score. Files that do not exist are
    left in (a table may describe more than what lies here), unless none of them exists.
    """
    said = {Path(row.place): row.text for row in read(table).rows if row.place is not None}
    if not any(os.path.exists(path) for path in said):
        raise AudioError(
            f"The transcripts {printable(table)} name {len(said)} file(s) of which none exists; "
            "paths are relative to the table."
        )
    return said


def _text(path: Path, plain: bool) -> _Text:
    try:
        text = inputs.read_text(path, "a file of transcripts", MAX_TABLE_BYTES)
    except inputs.InputError as error:
        raise AudioError(f"The transcripts cannot be read: {error}") from None
    found = _Text(path, inputs.lines_of(text), plain)
    if len(found.lines) > MAX_TABLE_LINES:
        raise AudioError(
            f"The transcripts {printable(path)} have {len(found.lines):,} lines; more than {MAX_TABLE_LINES:,} "
            "are not read."
        )
    if (at := text.find("\0")) >= 0:
        raise found.error(text.count("\n", 0, at) + 1, "a NUL character stands there.")
    return found


def _format(text: _Text) -> Format:
    """The format that the suffix tells, else the first that the first lines fit."""
    suffix = text.path.suffix.lower()
    named = next((form for form in FORMATS if suffix in form.suffixes), None)
    first = [line for _, line in islice(text.numbered(), LOOKED_AT)]
    return named or next(form for form in FORMATS if form.fits(first))


# -- a table with a header -------------------------------------------------------------------------


class _Header(NamedTuple):
    """How a table is separated, how many columns it has, and which two of them matter."""

    delimiter: str
    columns: int
    file: int
    text: int


def _header(line: str) -> _Header | None:
    for delimiter in DELIMITERS:
        names = [name.strip().strip('"').casefold() for name in line.split(delimiter)]
        file = next((names.index(name) for name in FILE_COLUMNS if name in names), None)
        text = next((names.index(name) for name in TEXT_COLUMNS if name in names), None)
        if file is not None and text is not None:
            return _Header(delimiter, len(names), file, text)
    return None


def _table(text: _Text) -> Iterator[Row]:
    header = _header(text.lines[0])
    if header is None:
        raise AudioError(
            f"The transcripts {printable(text.path)} must begin with a line that names their columns, such as "
            f"file<TAB>transcript, found {text.lines[0][:60]!r}."
        )
    records = _separated_by_tabs if header.delimiter == "\t" else _quoted
    for number, columns in records(text, header.delimiter):
        if len(columns) != header.columns or not columns[header.file].strip():
            raise text.error(
                number,
                f"{counted(header.columns, 'column', 'columns')}, a file and its transcript among them, are needed, "
                f"found {counted(len(columns), 'column', 'columns')}.",
            )
        file = columns[header.file].strip()
        yield Row(file, columns[header.text].strip(), number, text.places.of(file))


def _separated_by_tabs(text: _Text, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Quotation marks are part of the text, unless they are around a whole field, as a spreadsheet writes it."""
    for number, line in islice(enumerate(text.lines, start=1), 1, None):
        if line.strip():
            yield number, [_unquoted(each) for each in line.split(delimiter)]


def _unquoted(column: str) -> str:
    inside = column[1:-1].replace('""', "")
    if len(column) > 1 and column[0] == column[-1] == '"' and '"' not in inside:
        return column[1:-1].replace('""', '"')
    return column


def _quoted(text: _Text, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """CSV: a quoted field may go over several lines; the number is that of the first."""
    csv.field_size_limit(MAX_TRANSCRIPT + 1)
    lines = (line.replace("\r", " ") + "\n" for line in text.lines)
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    number = 1
    try:
        for columns in reader:
            if number > 1 and columns:
                yield number, columns
            number = reader.line_num + 1
    except csv.Error as error:
        raise text.error(number, f"this is not CSV: {error}.") from None


# -- words, and behind them the name of the file ----------------------------------------------------

_NAMED = re.compile(r"\s*(?P<text>.*?)\s*\((?P<name>[^()\s]+)\)\s*")
_SENTENCE = re.compile(r"</?s>")


def _named_behind(text: _Text) -> Iterator[Row]:
    for number, line in text.numbered():
        found = _NAMED.fullmatch(line)
        if found is None:
            raise text.error(
                number,
                "words and behind them the name of the sound file in parentheses are needed.",
            )
        said = _SENTENCE.sub(" ", found["text"])
        yield Row(found["name"], _first_of_each(said).strip(), number)


_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")


def _first_of_each(text: str) -> str:
    """Choose the first of alternatives as NIST writes them: `{ it is / it's / @ }`, where @ is nothing."""
    return _ALTERNATIVES.sub(lambda match: match[1].partition("/")[0].replace("@", "").strip(), text)


# -- NIST's tables of times -------------------------------------------------------------------------


def _seconds(text: _Text, line: int, word: str) -> float:
    try:
        found = float(word)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise text.error(line, f"a time in seconds is needed, found {one_line(word)!r}.")
    return found


def _part(text: _Text, line: int, begin: str, end: str, channel: int | None = None) -> Part:
    """Part of a file from `begin` to `end`, of which -1 is the end of the file."""
    first = _seconds(text, line, begin)
    last = None if end.strip().startswith("-1") else _seconds(text, line, end)
    if last is not None and last <= first:
        raise text.error(line, f"it ends at {end} s and so not after its begin, {begin} s.")
    return Part(channel, first, last)


def _channel(text: _Text, line: int, word: str) -> int:
    """From 0: they are called A and B, or 1 and 2."""
    if word.lower() in CHANNELS:
        return CHANNELS[word.lower()]
    if not word.isdecimal() or not 1 <= int(word) <= 99:
        raise text.error(line, f"a channel is A, B or a number from 1, found {one_line(word)!r}.")
    return int(word) - 1


def _is_stm(lines: Sequence[str]) -> bool:
    return all(len(f := line.split(None, 5)) >= 5 and _are_times(f[3:5]) for line in lines)


def _are_times(words: Sequence[str]) -> bool:
    try:
        return all(float(word) >= 0 for word in words)
    except ValueError:
        return False


def _stm(text: _Text) -> Iterator[Row]:
    """STM: file, channel, speaker, begin, end, a label in angle brackets (may lack), words."""
    for number, line in text.numbered():
        fields = line.split(None, 5)
        if len(fields) < 5:
            raise text.error(number, "file, channel, speaker, begin, end and words are needed by STM.")
        file, channel, _, begin, end = fields[:5]
        said = re.sub(r"^<[^<>\s]*>", "", fields[5] if len(fields) > 5 else "").strip()
        part = _part(text, number, begin, end, _channel(text, number, channel))
        said = "" if said.casefold() == NOT_SCORED else _first_of_each(said).strip()
        yield Row(file, said, number, part=part, name=f"{file}-{channel}-{begin}-{end}")


def _is_ctm(lines: Sequence[str]) -> bool:
    timed = [f for line in lines if (f := line.split())[2:3] != ["*"]]
    return all(5 <= len(f) <= 8 and _are_times(f[2:4]) for f in timed)


def _ctm(text: _Text) -> Iterator[Row]:
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
            begin = _seconds(text, number, fields[2])
            words.setdefault((fields[0], fields[1]), []).append((begin, fields[4]))
            lines.setdefault((fields[0], fields[1]), number)
    channels = Counter(file for file, _ in words)
    for (file, channel), timed in words.items():
        number = lines[file, channel]
        said = " ".join(word for _, word in sorted(timed, key=lambda each: each[0]))
        part = Part(_channel(text, number, channel))
        name = f"{file}-{channel}" if channels[file] > 1 else ""
        yield Row(file, said.replace("@", "").strip(), number, part=part, name=name)


# -- Kaldi ------------------------------------------------------------------------------------------


def _kaldi(text: _Text) -> Iterator[Row]:
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
            part = _part(segments, number, begin, end)
            yield Row(file, words, at, places.get(file), part, name)
    elif scp is not None:
        for name, place in places.items():
            words, at = said.pop(name, ("", 0))
            yield Row(name, words, at, place, name=name)
    for name, (words, number) in said.items():
        yield Row(name, words, number)


def _pairs(text: _Text) -> Iterator[tuple[int, tuple[str, str]]]:
    """The first word of each line and what is behind it."""
    for number, line in text.numbered():
        name, *rest = line.split(None, 1)
        yield number, (name, rest[0].strip() if rest else "")


def _wav_scp(scp: _Text) -> dict[str, str | None]:
    """Where each recording is; None for one that a command would write. Relative to the list, else to this folder."""
    found: dict[str, str | None] = {}
    for number, (name, file) in _pairs(scp):
        if file.endswith("|"):
            if scp.plain:
                raise scp.error(
                    number,
                    f"a command ({one_line(file, 60)}) is not run; write the sound to a file and name that.",
                )
            found[name] = None
            continue
        place = scp.places.of(file)
        found[name] = place if os.path.exists(place) else os.path.realpath(file)
    return found


# -- all of them ------------------------------------------------------------------------------------


class Format(NamedTuple):
    """One way to write transcripts down. `fits`: whether the first lines of a file look like it."""

    title: str
    suffixes: frozenset[str]
    fits: Callable[[Sequence[str]], bool]
    rows: Callable[[_Text], Iterator[Row]]


FORMATS = (
    Format(
        "a table with a header",
        frozenset({".tsv", ".csv"}),
        lambda lines: _header(lines[0]) is not None,
        _table,
    ),
    Format(
        "words with the name of the file behind them",
        frozenset({".trn", ".transcription"}),
        lambda lines: all(_NAMED.fullmatch(line) for line in lines),
        _named_behind,
    ),
    Format("segments (STM)", frozenset({".stm"}), _is_stm, _stm),
    Format("words with times (CTM)", frozenset({".ctm"}), _is_ctm, _ctm),
    Format("names with words behind them (Kaldi)", frozenset(), lambda lines: True, _kaldi),
)
"""Looked through from the first to the last, which fits everything."""

SUFFIXES = frozenset[str]().union(*(form.suffixes for form in FORMATS))
