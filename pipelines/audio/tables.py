"""Transcripts in records with named fields: TSV and CSV with a header, manifests of JSON (NeMo, icefall's cuts).

A record names a sound file and what is said in it, and may say in which part of the file, and on which channel.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePath
from typing import Final, cast

import msgspec

from pipelines.audio.loading import AudioError, Part, printable
from pipelines.audio.text_file import TextFile, TranscriptRow, channel_of, seconds
from profiler.files import inputs
from profiler.plain import counted, one_line

FILE: Final = ("file", "path", "wav_filename", "audio", "filename", "file_name", "audio_filepath")
TEXT: Final = ("transcript", "sentence", "text", "transcription")
"""Names of fields (those of Common Voice, DeepSpeech and NeMo among them), the first that there is taken."""
BEGIN: Final = ("offset", "start", "begin", "start_time", "begin_time", "start_s")
END: Final = ("end", "stop", "end_time", "stop_time", "end_s")
DURATION: Final = ("duration", "dur", "duration_s")
CHANNEL: Final = ("channel", "side", "channel_id", "channel_selector")
SPEAKER: Final = ("speaker", "speaker_id", "spk")
RECORDING: Final = ("recording_id",)  # what a list of supervisions (lhotse) has in place of a file
DELIMITERS: Final = "\t,;|"
MAX_TRANSCRIPT: Final = 400_000  # Characters said in one file: three hours at four words a second are some 260 000
MIXED: Final = ("", "mix", "mixed", "mono", "both", "all", "average")
"""What stands in place of a channel where all are meant."""
Fields = Mapping[str, object]


def _value(fields: Fields, names: Sequence[str]) -> str:
    """The first of the named fields that says something, as text."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if value is not None and not isinstance(value, list | dict) and str(value).strip():
            return str(value).strip()
    return ""


def row(text: TextFile, line: int, fields: Fields, zero_based: bool) -> TranscriptRow:
    """The row of a record. `zero_based`: its channels are counted from 0."""
    path = _value(fields, FILE)
    place, file = text.place_of(path) if path else None, path or _value(fields, RECORDING)
    begin, end, duration = (_time(text, line, fields, names) for names in (BEGIN, END, DURATION))
    first = begin or 0.0
    last = end if end is not None else None if duration is None else first + duration
    if last is not None and last <= first:
        raise text.error(line, f"it ends at {last:g} s and so not after its begin, {first:g} s.")
    side = _value(fields, CHANNEL)
    channel = None
    if side.casefold() not in MIXED:
        zero = zero_based and side.isdecimal()
        channel = channel_of(text, line, str(int(side) + 1) if zero else side)
    named = [side] if channel is not None else []
    if begin is not None or end is not None:
        named += [f"{first:g}", "end" if last is None else f"{last:g}"]
    return TranscriptRow(
        file,
        _value(fields, TEXT),
        line,
        place,
        Part(channel, first, last),
        "-".join([PurePath(file.replace("\\", "/")).stem or file, *named]) if named else "",
        _value(fields, SPEAKER),
    )


def _time(text: TextFile, line: int, fields: Fields, names: Sequence[str]) -> float | None:
    value = _value(fields, names)
    return seconds(text, line, value) if value and value not in ("-1", "-1.0") else None


def header(line: str) -> tuple[str, list[str]] | None:
    """What separates the columns of a table, and their names, by its first line; None if it names no file and text."""
    for delimiter in DELIMITERS:
        names = [name.strip().strip('"').casefold() for name in line.split(delimiter)]
        if not set(FILE).isdisjoint(names) and not set(TEXT).isdisjoint(names):
            return delimiter, names
    return None


def table(text: TextFile) -> Iterator[TranscriptRow]:
    head = header(text.lines[0])
    if head is None:
        raise AudioError(
            f"The transcripts {printable(text.path)} must begin with a line that names their columns, such as "
            f"file<TAB>transcript, found {text.lines[0][:60]!r}."
        )
    delimiter, names = head
    records = list(_separated_by_tabs(text) if delimiter == "\t" else _quoted(text, delimiter))
    n, file, said = len(names), *(names.index(next(name for name in each if name in names)) for each in (FILE, TEXT))
    used = [name in BEGIN + END + DURATION + CHANNEL + SPEAKER for name in names]
    used[file] = used[said] = True
    sides = [at for at, name in enumerate(names) if name in CHANNEL][:1]
    zero_based = any(columns[at].strip() == "0" for _, columns in records if len(columns) == n for at in sides)
    for number, columns in records:
        if len(columns) != n or not columns[file].strip():
            raise text.error(
                number,
                f"{counted(n, 'column', 'columns')}, a file and its transcript among them, are needed, "
                f"found {counted(len(columns), 'column', 'columns')}.",
            )
        fields = {name: column for name, column, wanted in zip(names, columns, used, strict=True) if wanted}
        yield row(text, number, fields, zero_based)


def _separated_by_tabs(text: TextFile) -> Iterator[tuple[int, list[str]]]:
    for number, line in islice(enumerate(text.lines, start=1), 1, None):
        if line.strip():
            columns = line.split("\t")
            quoted = [re.fullmatch(r'"((?:[^"]|"")*)"', column) for column in columns]
            yield number, [q[1].replace('""', '"') if q else c for q, c in zip(quoted, columns, strict=True)]


def _quoted(text: TextFile, delimiter: str) -> Iterator[tuple[int, list[str]]]:
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


BEGINNING: Final = re.compile(r'(?:\[\s*)?\{\s*(?:"|$)|\[\s*$')


def manifest(text: TextFile) -> Iterator[TranscriptRow]:
    """The rows of a manifest: a record of JSON in each line, or a list of them."""
    for number, record in _records(text):
        fields = {str(key).casefold(): value for key, value in record.items()}
        if "recording" in fields or "tracks" in fields or "supervisions" in fields:
            yield from _cut(text, number, fields)
        elif not (_value(fields, FILE + RECORDING) and set(TEXT) & fields.keys()):
            raise text.error(
                number,
                "a record of a manifest names a file and what is said, such as "
                f'{{"audio_filepath": "a.wav", "text": "two"}}, found {one_line(json.dumps(record), 60)}.',
            )
        else:
            yield row(text, number, fields, zero_based=True)


def _records(text: TextFile) -> Iterator[tuple[int, dict[str, object]]]:
    whole = text.lines[0].lstrip().startswith("[") or text.lines[0].strip() == "{"
    written = [(1, "\n".join(text.lines))] if whole else list(text.numbered())
    for number, line in written:
        try:
            tree = inputs.json_tree(line, f"The transcripts {printable(text.path)}, line {number}")
        except inputs.InputError as error:
            raise AudioError(str(error)) from None
        for record in tree if isinstance(tree, list) else [tree]:
            if not isinstance(record, dict):
                raise text.error(number, f"a record of JSON is needed, found {one_line(str(record), 60)!r}.")
            yield number, cast(dict[str, object], record)


class _Source(msgspec.Struct):
    type: str
    source: str


class _Recording(msgspec.Struct):
    id: str
    sources: list[_Source]


class _Supervision(msgspec.Struct):
    id: str
    duration: float
    start: float = 0.0
    text: str | None = None
    speaker: str | None = None


class _Cut(msgspec.Struct):
    id: str
    recording: _Recording
    duration: float
    start: float = 0.0
    channel: int | list[int] = 0
    supervisions: list[_Supervision] = []


def _cut(text: TextFile, number: int, fields: Fields) -> Iterator[TranscriptRow]:
    """Cuts as lhotse writes them: each supervision of one recording in one file is an utterance."""
    if "tracks" in fields:
        raise text.error(number, "a cut of several tracks (mixed or padded) is not read; write it to a file.")
    try:
        cut = msgspec.convert(fields, _Cut)
    except msgspec.ValidationError as error:
        raise text.error(number, f"this is no cut of one recording: {error}.") from None
    sources = cut.recording.sources
    if len(sources) != 1 or sources[0].type != "file":
        kinds = ", ".join(one_line(source.type, 20) for source in sources) or "none"
        raise text.error(number, f"a recording in one file is needed; its sources are: {kinds}.")
    file = sources[0].source
    for one in cut.supervisions or [_Supervision(cut.id, cut.duration)]:
        record = {
            "start": max(cut.start + one.start, 0.0),
            "duration": min(one.duration, cut.duration),
            "channel": cut.channel,
            "text": one.text,
            "speaker": one.speaker,
        }
        found = row(text, number, {"file": file, **record}, zero_based=True)
        yield TranscriptRow(file, found.text, number, text.existing(file), found.part, one.id, found.speaker)
