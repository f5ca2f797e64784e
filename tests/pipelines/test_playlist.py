"""What is decoded: which transcript belongs to which file, what utterances are called, and what is said of the rest."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.audio.loading import WHOLE, Part
from pipelines.experiments.scoring_replay import spoken
from pipelines.run import playlist
from pipelines.run.playlist import Item
from tests.each import each
from tests.pipelines.sound_files import make, refused, written

CAFE = "caf\u00e9"


def references(items: list[Item]) -> dict[str, str | None]:
    return {item.name: item.reference for item in items}


def build(folder: Path, text: str, name: str = "t.tsv") -> playlist.Playlist:
    """All sound files below a folder, with the transcripts `text`."""
    return playlist.build([str(folder / "**" / "*.wav")], str(written(folder, name, text)))


@pytest.mark.parametrize(("on_disk", "in_table"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_names_are_the_same_whichever_way_accents_are_written(on_disk, in_table, tmp_path):
    make(tmp_path / f"{unicodedata.normalize(on_disk, CAFE)}.wav")
    row = unicodedata.normalize(in_table, CAFE)
    for text, name in ((f"file\ttranscript\n{row}.wav\ttwo\n", "t.tsv"), (f"{row} two\n", "text")):
        found = build(tmp_path, text, name)
        assert references(found.items) == {CAFE: "two"}
        assert found.notes == ()


def test_each_of_two_names_that_differ_in_their_form_alone_has_its_own_row(tmp_path):
    one, other = (unicodedata.normalize(form, f"{CAFE}.wav") for form in ("NFC", "NFD"))
    make(tmp_path / one, tmp_path / other)
    if len(list(tmp_path.iterdir())) < 2:
        pytest.skip("one file here")
    found = build(tmp_path, f"file\ttranscript\n{one}\ttwo\n{other}\tnine\n")
    assert {item.path.name: item.reference for item in found.items} == {one: "two", other: "nine"}
    assert len({item.name for item in found.items}) == 2


def test_rows_that_name_no_file_are_reported(tmp_path):
    make(tmp_path / "a.wav", tmp_path / "b.wav")
    found = build(tmp_path, "file\ttranscript\na.wav\ttwo\nc.wav\tnine\nd.wav\tfour\n")
    assert references(found.items) == {"a": "two", "b": None}
    assert found.notes == ("2 rows of the transcripts name no file that is decoded: c.wav, d.wav",)
    found = build(tmp_path, "a two\nb nine\nc four\n", "text")
    assert found.notes == ("1 row of the transcripts names no file that is decoded: c",)
    rows = "".join(f"x{n} four\n" for n in range(9))
    assert build(tmp_path, f"a two\n{rows}", "text").notes == (
        "9 rows of the transcripts name no file that is decoded: x0, x1, x2 and 6 more",
    )
    refused(build, tmp_path, "c two\n", "text", says=("text", "Kaldi", "names none of the 2 audio files"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("file\ttranscript\nc.wav\tnine\n", "t.tsv, which lies next to the audio, names none of it; choose"),
        ("pitch\tgain\n1\t2\n", "The words are not judged: "),
    ],
)
def test_transcripts_that_nobody_chose_are_left_out_with_a_note(text, says, tmp_path):
    make(tmp_path / "a.wav")
    refused(build, tmp_path, text, says=("t.tsv",))
    found = playlist.build([str(tmp_path / "a.wav")], str(tmp_path / "t.tsv"), chosen=False)
    assert references(found.items) == {"a": None}
    (note,) = found.notes
    assert says in note


def test_a_row_is_of_the_file_of_its_path_and_else_of_its_name(tmp_path):
    make(tmp_path / "spk1" / "001.wav", tmp_path / "spk2" / "001.wav", tmp_path / "002.wav")
    elsewhere = "file\ttranscript\n/gone/spk1/001.flac\ttwo\n/gone/spk2/001.flac\tnine\n"
    found = build(tmp_path, elsewhere)
    assert references(found.items) == {"002": None, "spk1/001": "two", "spk2/001": "nine"}
    (note,) = found.notes
    assert note.startswith("2 rows of the transcripts name a path that is not there; a file of")
    found = build(tmp_path, "two (spk2/001)\nnine (002)\n", "t.trn")
    assert references(found.items) == {"002": "nine", "spk1/001": None, "spk2/001": "two"}
    assert not found.notes
    found = build(tmp_path, "two (001)\nnine (002)\n", "t.trn")
    assert references(found.items) == {"002": "nine", "spk1/001": None, "spk2/001": None}
    assert found.notes == ("1 row of the transcripts names more than one file, not scored: 001",)
    found = build(tmp_path, elsewhere + "spk1/001.wav\tfour\n")
    assert references(found.items) == {"002": None, "spk1/001": "four", "spk2/001": "nine"}
    assert [note.partition(" of ")[0] for note in found.notes] == ["1 row", "1 row"]
    # The file of that path is there and is another one.
    make(tmp_path / "other" / "003.wav", tmp_path / "003.wav")
    text = written(tmp_path, "t.tsv", "file\ttranscript\nother/003.wav\ttwo\n002.wav\tnine\n")
    files = [str(tmp_path / "002.wav"), str(tmp_path / "003.wav")]
    assert references(playlist.build(files, str(text)).items) == {"002": "nine", "003": None}


def test_rows_of_one_name_in_a_folder_that_is_not_there_are_distinguished_or_refused(tmp_path):
    make(tmp_path / "spk2" / "001.wav")
    rows = "file\ttranscript\n/gone/spk1/001.wav\ttwo\n/gone/spk2/001.wav\tnine\n"
    found = build(tmp_path, rows)
    assert references(found.items) == {"001": "nine"}
    assert "1 row of the transcripts names no file that is decoded" in found.notes[0]
    refused(build, tmp_path, rows.replace("spk2", "spk3"), says=("001.wav", "two different", "lines 2 and 3"))


def test_utterances_are_parts_of_files(tmp_path):
    (sound, other) = make(tmp_path / "r1.wav", tmp_path / "r2.wav")
    (tmp_path / "segments").write_text("u1 r1 0 0.5\nu2 r1 0.5 1\n")
    (tmp_path / "wav.scp").write_text("r1 r1.wav\nr2 r2.wav\nr3 r3.wav\n")
    expected = [Item("u1", sound, "two", Part(None, 0, 0.5)), Item("u2", sound, None, Part(None, 0.5, 1))]
    found = build(tmp_path, "u1 two\n", "text")
    assert found.items == [*expected, Item("r2", other, None, WHOLE)]
    own = playlist.build((), str(tmp_path / "text"))
    assert [(i.name, i.part, i.reference) for i in own.items] == [(i.name, i.part, i.reference) for i in expected]
    (tmp_path / "segments").unlink()
    own = playlist.build((), str(tmp_path / "text"))
    assert [i.name for i in own.items] == ["r1", "r2"]
    assert any("r3" in note for note in own.notes)


@each(
    "name, text",
    [("t.stm", "d 1 x 0 1 two\n"), ("t.ctm", "d 1 0 1 two\n"), ("t.trn", "two (d)\n"), ("text", "d.wav two\n")],
)
def test_a_name_alone_is_a_file_in_the_folder_of_the_table(name, text, tmp_path):
    file = written(tmp_path, name, text)
    says = (name, "names no sound file that is there", "its first: d", "--audio")
    assert "given" not in refused(playlist.build, (), str(file), says=says)
    make(tmp_path / "d.wav", tmp_path / "other.wav")
    (item,) = playlist.build((), str(file)).items
    assert (item.path, item.reference) == (tmp_path / "d.wav", "two")


def test_a_recording_in_an_archive_is_named(tmp_path):
    (tmp_path / "wav.scp").write_text("u x/wav.ark:1234\n")
    (tmp_path / "text").write_text("u two\n")
    refused(playlist.build, (), str(tmp_path / "text"), says=("wav.scp", "line 1", "archive (x/wav.ark:1234)"))
    make(tmp_path / "u.wav")
    assert references(build(tmp_path, "u two\n", "text").items) == {"u": "two"}


@each(
    "files, names",
    [
        (["spk1/001.wav", "spk2/001.wav", "spk2/002.wav"], ["spk1/001", "spk2/001", "002"]),
        (["a/x/001.wav", "b/x/001.wav", "b/y/001.wav"], ["a/x/001", "b/x/001", "b/y/001"]),
        (["001.wav", "a/001.wav"], ["top/001", "a/001"]),
        (["a.wav", "a.flac", "a.wav.flac"], ["a.wav", "a.flac", "a.wav-2"]),
    ],
)
def test_names_have_as_many_folders_as_tell_them_apart_or_a_suffix_or_number(files, names, tmp_path):
    made = make(*(tmp_path / "top" / file for file in files))
    assert [item.name for item in playlist.build(list(map(str, made)), None).items] == names


@given(
    paths=st.lists(
        st.lists(st.sampled_from(["a", "b", "a.wav", "e\u0301", "\u00e9"]), min_size=1, max_size=4),
        max_size=8,
        unique_by=tuple,
    ),
    suffixes=st.lists(st.sampled_from([".wav", ".flac", ""]), min_size=8, max_size=8),
)
def test_no_two_utterances_have_one_name(paths, suffixes):
    files = [Path("/", *path[:-1], path[-1] + suffix) for path, suffix in zip(paths, suffixes, strict=False)]
    files = list(dict.fromkeys(files))
    names = playlist._distinct(files)
    items = playlist._numbered([Item(names[file], file, None) for file in files])
    assert len({item.name for item in items}) == len(files)
    assert all(unicodedata.is_normalized("NFC", item.name) for item in items)
    stems = [unicodedata.normalize("NFC", file.stem) for file in files]
    for item, stem in zip(items, stems, strict=True):
        if stems.count(stem) == 1 and ".wav" not in stem:
            assert item.name == stem


def test_speech_is_taken_up_to_a_length_and_never_none():
    items = playlist.build([], None).items
    lengths = [sound.duration_s for _, sound in spoken(items, 8.0)]
    assert len(lengths) > 1
    assert sum(lengths[1:]) <= 8.0
    assert len(list(spoken(items, 0.1))) == 1
