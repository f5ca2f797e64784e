"""Transcripts as people and other recognisers write them down: each format, its places, and its sentences."""

import gzip
import os
import random
from collections.abc import Callable
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.audio import transcripts
from pipelines.audio.loading import Part
from pipelines.audio.text_file import TranscriptRow
from pipelines.config import presets
from pipelines.frontend.parameters import SAMPLE_RATE
from pipelines.models import dictionary
from pipelines.models.language import arpa, lm_bin
from pipelines.run import playlist
from pipelines.search.graph import grammar
from pipelines.search.graph.sources import read_grammar, read_language_model
from profiler.errors import BadInput
from profiler.plain import printable
from tests.bench.campaign.__main__ import KINDS
from tests.each import each
from tests.pipelines.sound_files import make, refused, written


def texts_by_file(file: Path) -> dict[str, str]:
    return {row.file: row.text for row in transcripts.read(file).rows}


TWO = {"a": "two nine", "b": "oh, zero"}
WAYS = {
    "t.tsv": "file\ttranscript\na.wav\ttwo nine\nb.wav\toh, zero\n",
    "spaces.tsv": "File \t Transcript\r\na.wav\t two nine \r\nb.wav\toh, zero\r\n",
    "quoted.tsv": 'file\ttranscript\n"a.wav"\t"two nine"\nb.wav\t"oh, zero"\n',
    "t.csv": 'file,transcript\na.wav,two nine\nb.wav,"oh, zero"\n',
    "semicolons.csv": "file;transcript\na.wav;two nine\nb.wav;oh, zero\n",
    "deepspeech.csv": ('wav_filename,wav_filesize,transcript\na.wav,77,two nine\nb.wav,5,"oh, zero"\n'),
    "validated.tsv": (
        "client_id\tpath\tsentence_id\tsentence\tup_votes\nx\ta.wav\t1\ttwo nine\t2\nx\tb.wav\t1\toh, zero\t2\n"
    ),
    "table.txt": "audio\ttext\na.wav\ttwo nine\nb.wav\toh, zero\n",
    "text": "a two nine\nb oh, zero\n",
    "84-121123.trans.txt": "a two nine\nb oh, zero\n",
    "t.trn": "two nine (a)\noh, { zero / null } (b)\n",
    "t.transcription": "<s> two nine </s> (a)\n<s> oh, zero </s> (b)\n",
    "test.ref": "two nine (a)\n\noh, zero (b)\n",
    "t.ctm": (
        ";; by hand\nb A * * <ALT_BEGIN>\nb A 0.50 0.1 zero 0.9\nb A * * <ALT>\nb A 0.5 0.1 hero\nb A * * <ALT_END>\n"
        "a 1 0.1 0.2 two\na 1 0.4 0.2 nine\nb A 0.1 0.2 oh,\n"
    ),
    "words.out": "a 1 0.1 0.2 two\na 1 0.4 0.2 nine\nb A 0.1 0.2 oh,\nb A 0.50 0.1 zero\n",
    "t.stm": (";; CATEGORY\na 1 jane 0.0 1.5 <o,f0,female> two nine\nb A joe 1.00 2.5 oh, zero\n"),
    "t.jsonl": '{"audio_filepath": "a.wav", "text": "two nine"}\n\n{"audio": "b.wav", "transcription": "oh, zero"}\n',
    "manifest": '{"audio_filepath": "a.wav", "text": "two nine"}\n{"audio_filepath": "b.wav", "text": "oh, zero"}\n',
    "t.json": '[\n  {"audio": "a.wav", "text": "two nine"},\n  {"audio": "b.wav", "text": "oh, zero"}\n]\n',
    "cuts.jsonl": "\n".join(
        f'{{"id": "{name}-0", "start": 0.0, "duration": 1.5, "channel": 0, "type": "MonoCut", "supervisions": [{{"id": '
        f'"{name}", "recording_id": "{name}", "start": 0.0, "duration": 1.5, "channel": 0, "text": "{words}"}}], '
        f'"recording": {{"id": "{name}", "sampling_rate": 16000, "num_samples": 24000, "duration": 1.5, "sources": '
        f'[{{"type": "file", "channels": [0], "source": "{name}.wav"}}]}}}}'
        for name, words in TWO.items()
    ),
    "segments.out": "a 1 jane 0.0 1.5 two nine\nb A joe 1.00 2.5 <o,f0,male> oh, zero\n",
}


@each("name", WAYS)
@each("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_each_format_says_the_same(name, encoding, tmp_path):
    found = texts_by_file(written(tmp_path, name, WAYS[name], encoding))
    assert {Path(file).stem: words for file, words in found.items()} == TWO


def test_parts_of_files(tmp_path):
    stm = written(tmp_path, "t.stm", "r A x 0 1.5 two\nr B y 1.5 2 IGNORE_TIME_SEGMENT_IN_SCORING\n")
    assert transcripts.read(stm).rows == [
        TranscriptRow("r", "two", 1, part=Part(0, 0.0, 1.5), name="r-A-0-1.5", speaker="x"),
        TranscriptRow("r", "", 2, part=Part(1, 1.5, 2.0), name="r-B-1.5-2", speaker="y"),
    ]
    ctm = written(tmp_path, "t.ctm", "r 1 0 1 two\nr 2 0 1 nine\n")
    assert [(r.text, r.part.channel, r.name) for r in transcripts.read(ctm).rows] == [
        ("two", 0, "r-1"),
        ("nine", 1, "r-2"),
    ]


PARTS = {
    "offset.csv": ("audio_filepath,offset,duration,text\na.wav,0.5,0.7,two\n", Part(None, 0.5, 1.2), "a-0.5-1.2"),
    "start.tsv": ("path\tsentence\tstart\tend\na.wav\ttwo\t0.5\t-1\n", Part(None, 0.5, None), "a-0.5-end"),
    "side.csv": ("file,side,text\nx/a.wav,right,two\n", Part(1), "a-right"),
    "ones.csv": ("file,channel,begin,stop,text\na.wav,1,0,1.5,two\n", Part(0, 0, 1.5), "a-1-0-1.5"),
    "zeros.csv": ("file,channel,text\na.wav,1,two\nb.wav,0,nine\n", Part(1), "a-1"),
    "mixed.csv": ("file,channel,text\na.wav,mix,two\n", Part(), ""),
    "alone.csv": ("file,duration,text\na.wav,1.5,two\n", Part(None, 0, 1.5), ""),
    "none.csv": ("file,start,end,duration,text\na.wav,,,,two\n", Part(), ""),
    "nemo.json": (
        '{"audio_filepath": "a.wav", "offset": 0.5, "duration": 0.7, "channel": 1, "text": "two"}\n',
        Part(1, 0.5, 1.2),
        "a-1-0.5-1.2",
    ),
    "supervisions.jsonl": (
        '{"id": "u", "recording_id": "a", "start": 0.5, "duration": 0.7, "channel": 0, "text": "two"}\n',
        Part(0, 0.5, 1.2),
        "a-0-0.5-1.2",
    ),
    "cuts.jsonl": (
        '{"id": "c", "start": 1.0, "duration": 5.0, "channel": [1], "recording": {"id": "a", "sources": '
        '[{"type": "file", "channels": [0, 1], "source": "a.wav"}]}, "supervisions": '
        '[{"id": "u", "start": 0.5, "duration": 0.75, "text": "two", "speaker": "x"}]}\n',
        Part(1, 1.5, 2.25),
        "u",
    ),
}


@each("name", PARTS)
@each("packed", [False, True])
def test_what_says_which_part_of_a_file_is_meant_is_used(name, packed, tmp_path):
    text, expected, called = PARTS[name]
    file = written(tmp_path, name, text)
    if packed and "json" in name:
        file = tmp_path / f"{name}.gz"
        file.write_bytes(gzip.compress(text.encode()))
    row = transcripts.read(file).rows[0]
    assert (row.text, row.name, row.part.channel, row.part.begin_s) == (
        "two",
        called,
        expected.channel,
        expected.begin_s,
    )
    assert row.part.end_s == pytest.approx(expected.end_s)


def test_speakers_at_once_are_utterances_of_their_own(tmp_path):
    for name, text in (
        ("t.stm", "r A x 0 1.5 two\nr A y 0 1.5 nine\nr A x 2 3 oh\n"),
        ("t.csv", "file,channel,start,end,speaker,text\nr,A,0,1.5,x,two\nr,A,0,1.5,y,nine\nr,A,2,3,x,oh\n"),
    ):
        rows = transcripts.read(written(tmp_path, name, text)).rows
        assert [row.name for row in rows] == ["r-A-0-1.5-x", "r-A-0-1.5-y", "r-A-2-3"]
        refused(
            transcripts.read,
            written(tmp_path, name, text.replace("y", "x")),
            says=(f"line {2 + (name == 't.csv')}", "r has two different transcripts"),
        )


def test_segments_count_channels_from_0_and_end_after_they_begin(tmp_path):
    text = written(tmp_path, "text", "u1 two\nu2 nine\nu3 oh\n")
    written(tmp_path, "segments", "u1 r 0 1 1\nu2 r 0 1 0\nu3 r 0 1 -1\n")
    assert [row.part.channel for row in transcripts.read(text).rows] == [1, 0, None]
    for segment, says in (("r 0 1 left", "a channel is a number from 0, found 'left'"), ("r 2.5 2", "2.5 s")):
        written(tmp_path, "segments", f"u1 r 0 1\nu2 {segment}\n")
        refused(transcripts.read, text, says=("segments", "line 2", says))


@each(
    "text, what",
    [
        ("WEBVTT\n\n00:00.000 --> 00:02.400\ntwo\n", "WebVTT"),
        ("1\n00:00:00,000 --> 00:00:02,400\ntwo\n", "SRT"),
        ('File type = "ooTextFile"\nObject class = "TextGrid"\n', "TextGrid"),
        ('<?xml version="1.0"?>\n<ANNOTATION_DOCUMENT AUTHOR="">\n', "EAF"),
        ('<?xml version="1.0"?>\n<!DOCTYPE Trans SYSTEM "trans-14.dtd">\n<Trans scribe="x">\n', "TRS"),
        ('<?xml version="1.0"?>\n<a/>\n', "XML"),
        ("SPEAKER r 1 0.00 1.50 <NA> <NA> x <NA> <NA>\n", "RTTM"),
        ("{\\rtf1\\ansi\n", "RTF"),
        ("- two\n# nine\n", "begins with '- two' and is in no format that is read"),
        ('{"words": "two"}\n', "names a file and what is said"),
        ('{"audio_filepath": "a.wav", "text": "two"}\n{"audio_filepath"\n', "not JSON"),
        ('{"id": "c", "tracks": []}\n', "several tracks"),
    ],
)
@each("name", ["t.txt", "text"])
def test_what_is_not_read_is_named(name, text, what, tmp_path):
    refused(transcripts.read, written(tmp_path, name, text), says=(name, what))


def test_kaldi_says_where_its_utterances_are(tmp_path, monkeypatch):
    (sound,) = make(tmp_path / "wav" / "r1.wav")
    text = written(tmp_path, "text", "u1 two nine\nu2 four\n")
    written(tmp_path, "wav.scp", "u1 wav/r1.wav\nu2 sph2pipe -f wav r2.sph |\nu3 wav/r1.wav\n")
    place = str(sound.resolve())
    assert transcripts.read(text).rows == [
        TranscriptRow("u1", "two nine", 1, place, name="u1"),
        TranscriptRow("u2", "four", 2, None, name="u2"),
        TranscriptRow("u3", "", 0, place, name="u3"),
    ]
    refused(transcripts.read, text, plain=True, says=("wav.scp", "line 2", "sph2pipe -f wav r2.sph |", "is not run"))
    written(tmp_path, "wav.scp", "r1 wav/r1.wav\n")
    written(tmp_path, "segments", "u1 r1 0.5 1.25\nu2 r1 1.5 -1\n")
    assert transcripts.read(text).rows == [
        TranscriptRow("r1", "two nine", 1, place, Part(None, 0.5, 1.25), "u1"),
        TranscriptRow("r1", "four", 2, place, Part(None, 1.5, None), "u2"),
    ]
    # Files of a list are looked for from the current folder, too.
    (tmp_path / "data").mkdir()
    text = written(tmp_path / "data", "text", "u1 two\n")
    written(tmp_path / "data", "wav.scp", "u1 wav/r1.wav\n")
    monkeypatch.chdir(tmp_path)
    assert transcripts.read(text).files() == [place]


@each("inside", ["\u2028", "\x85", "\x0b", "\x0c", "\x1c", "\u2029", "\r"])
def test_lines_end_at_line_feeds_alone(inside, tmp_path):
    text = f"file\ttranscript\na.wav\ttwo{inside}nine\nb.wav\n"
    refused(transcripts.read, written(tmp_path, "t.tsv", text), says=("line 3", "found 1 column"))
    found = texts_by_file(written(tmp_path, "t.tsv", text.removesuffix("b.wav\n")))
    assert found == {"a.wav": f"two{inside}nine"}
    assert list(texts_by_file(written(tmp_path, "text", f"a two{inside}nine\n"))) == ["a"]


@each(
    "name, text, parts",
    [
        ("t.csv", "name,words\na,two\n", ["must begin with", "file<TAB>transcript", "name,words"]),
        ("t.csv", 'file,transcript\na,"b\nc"\nd,"e\n', ["line 4", "not CSV"]),
        ("t.csv", "file,transcript\na,two,nine\n", ["line 2", "found 3 columns"]),
        ("t.tsv", "\n\n", ["an empty file"]),
        ("t.tsv", "transcript\tfile\n", ["name no file"]),
        ("t.tsv", "file\ttranscript\n\thello\n", ["line 2"]),
        ("t.trn", "two (a)\n\ntwo nine\n", ["line 3", "in parentheses"]),
        ("t.stm", "a 1 x 0 1 two\na 1 x 0\n", ["line 2", "STM"]),
        ("t.stm", "a 1 x 2 1 two\n", ["line 1", "ends at 1 s"]),
        ("t.stm", "a 1 x soon 1 two\n", ["line 1", "'soon'"]),
        ("t.stm", "a middle x 0 1 two\n", ["line 1", "'middle'"]),
        ("t.ctm", ";;\na 1 0 two\n", ["line 2", "CTM"]),
        ("t.ctm", "a 1 nan 1 two\n", ["line 1", "'nan'"]),
        ("text", "a two\nb nine\na too\n", ["line 3", "a has two different"]),
        ("text", "a two\n\nb ni\0ne\n", ["line 3", "NUL"]),
        ("wav.scp", "a a.wav\n", ["nothing of the words", "`text`"]),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_line(name, text, parts, tmp_path):
    refused(transcripts.read, written(tmp_path, name, text), says=(name, *parts))


SHARE = 50


def problem_of(use: Callable[[], object]) -> str:
    """What was said of the input, one short printable line; empty where it was read."""
    try:
        use()
    except BadInput as problem:
        said = str(problem)
    else:
        return ""
    assert printable(said) == said
    assert len(said) < 600
    assert said.endswith(".")
    return said


def listen(command: tuple[str, ...]) -> None:
    for item in playlist.build(command[command.index("--audio") + 1 :], None).items:
        sound = audio.load(item.path)
        assert sound.samples.dtype == np.float32
        assert np.isfinite(sound.samples).all()
        assert 0 < len(sound.samples) <= audio.LONGEST_S * SAMPLE_RATE


READERS: dict[str, Callable[[Any], object]] = {
    "--config": presets.from_file,
    "--transcripts": transcripts.read,
    "graph.dictionary": dictionary.read,
    "graph.grammar": lambda path: grammar.acceptor(read_grammar(path), lambda word: 1 + ord(word.text[0])),
    "graph.language_model": lambda path: read_language_model(path, 2),
    "arpa": arpa.read,
    "lm.bin": lm_bin.read,
}


def read(command: tuple[str, ...]) -> None:
    for name, word in pairwise(command):
        key, value = settings.parse_assignment(word) if name == "--set" else (name, word)
        if key in READERS:
            READERS[key](value)


@pytest.mark.parametrize(("kind", "use"), [("audio", listen), ("texts", read)])
def test_spoiled_files_are_read_or_refused_in_a_sentence(kind, use, tmp_path, monkeypatch):
    # Attacks that were made on purpose have tests of their own.
    spoiled = (a for a in KINDS[kind].attacks(kind, random.Random(0)) if " mutated by " in a.name)
    said = []
    for number, attack in enumerate(islice(spoiled, SHARE)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        attack.make(folder)
        (command,) = attack.commands
        said.append(problem_of(partial(use, command)))
    assert len(said) == SHARE
    assert any(said)
    assert not all(said)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_or_never_ends_is_refused_at_once(name, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path, said in (
        (tmp_path / "pipe", "pipe or a device"),
        (tmp_path / "link", "pipe or a device"),
        (tmp_path, "folder"),
        (tmp_path / "none", "no such file"),
    ):
        assert said in problem_of(partial(READERS[name], path))
