"""Which transcripts are taken along with audio that a person chose."""

from pathlib import Path

import pytest

from app.model import audio_choice
from app.model.audio_choice import chosen
from pipelines.audio import tables, transcripts

HEADER = "file\ttranscript\n"


def folder_with(folder: Path, *names: str, text: str = HEADER) -> Path:
    (folder / "a.wav").write_bytes(b"RIFF\0\0\0\0WAVE\xff")
    for name in names:
        (folder / name).write_text(text)
    return folder


def test_all_that_can_be_read_is_looked_for():
    assert set(audio_choice.TRANSCRIPTS_SUFFIXES) == transcripts.SUFFIXES
    assert set(audio_choice.WORDS) == set(tables.TEXT)


@pytest.mark.parametrize(
    "name", [f"t{suffix}" for suffix in sorted(transcripts.SUFFIXES)] + ["text", "84-121.trans.txt"]
)
def test_the_only_transcripts_next_to_the_audio_are_used(name, tmp_path):
    folder_with(tmp_path, name)
    for one in (chosen([tmp_path]), chosen([tmp_path / "a.wav"])):
        assert (one.transcripts, one.found) == (str(tmp_path / name), True)


def test_of_several_kinds_the_likeliest_is_taken_and_of_two_of_a_kind_none(tmp_path):
    folder_with(tmp_path, "t.tsv", "t.csv", "hypotheses.ctm", "text")
    assert chosen([tmp_path]).transcripts == str(tmp_path / "t.tsv")
    (tmp_path / "u.tsv").write_text(HEADER)
    assert chosen([tmp_path]).transcripts is None
    assert chosen([tmp_path, tmp_path / "t.csv"]).transcripts == str(tmp_path / "t.csv")


def test_a_csv_of_something_else_is_not_taken(tmp_path):
    folder_with(tmp_path, "pitch.csv", text="file,pitch\na.wav,120\n")
    assert chosen([tmp_path]).transcripts is None


def test_a_text_file_is_taken_if_it_is_chosen(tmp_path):
    folder_with(tmp_path, "words.txt", text="a two nine\n")
    assert chosen([tmp_path]).transcripts is None
    table = str(tmp_path / "words.txt")
    one = chosen([tmp_path / "a.wav", table])
    assert (one.transcripts, one.found) == (table, False)
    with pytest.raises(ValueError, match="Transcripts alone"):
        chosen([table])
