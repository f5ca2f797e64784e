"""Which sound files are meant: arguments, folders, patterns and links; playlists and transcripts."""

import os
import sys
from pathlib import Path

import pytest
import soundfile

from pipelines.audio import collecting, transcripts
from pipelines.audio import loading as audio
from pipelines.audio.loading import AudioError
from pipelines.run import playlist
from tests.each import each
from tests.pipelines.sound_files import RATE, make, refused, table, voice


def test_collect_takes_files_folders_and_patterns(tmp_path: Path) -> None:
    b, a, deep, other = make(
        tmp_path / "in" / "b.wav", tmp_path / "in" / "a.flac", tmp_path / "in" / "below" / "c.wav", tmp_path / "z.wav"
    )
    (tmp_path / "in" / "transcripts.tsv").write_text("file\ttranscript\n")
    (tmp_path / "in" / ".hidden.wav").write_bytes(b"")
    assert collecting.collect([str(tmp_path / "in")]) == [a, b]
    assert collecting.collect([tmp_path / "in" / "*"]) == [a, b]
    assert collecting.collect([tmp_path / "**" / "*.wav"]) == sorted([b, deep, other])
    assert collecting.collect([other, tmp_path / "in"]) == [other, a, b], "arguments keep their order"
    assert collecting.collect([b, tmp_path / "in", b]) == [b, a], "each file once"


def test_collect_prefers_a_file_to_a_pattern(tmp_path: Path) -> None:
    odd, _ = make(tmp_path / "take[1].wav", tmp_path / "take1.wav")
    assert collecting.collect([odd]) == [odd]


def test_collect_takes_a_named_file_whatever_its_suffix(tmp_path: Path) -> None:
    file = tmp_path / "sound.dat"
    file.write_bytes(b"")
    assert collecting.collect([file]) == [file]


@pytest.mark.parametrize(
    ("given_path", "part"),
    [("", "no sound files directly in it"), ("no*.wav", "No sound file"), ("x.wav", "not exist")],
)
def test_collect_refuses_what_names_nothing(given_path: str, part: str, tmp_path: Path) -> None:
    make(tmp_path / "below" / "a.wav")
    refused(collecting.collect, [tmp_path / given_path], says=(part,))
    with pytest.raises(AudioError):
        collecting.collect([])


def test_transcripts_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    refused(transcripts.read, table(tmp_path, "file\ttranscript\na.wav\tcaf\u00e9\n", "latin-1"), says=("not UTF-8",))


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="names are text here")
@pytest.mark.parametrize("name", ["a.flac", "c.ogg", "f.mp3", "g.wav"])
def test_a_name_that_is_no_utf8_is_read(name: str, tmp_path: Path) -> None:
    soundfile.write(tmp_path / name, voice(1.0), RATE)
    odd = tmp_path / os.fsdecode(b"caf\xe9\x1b[31m-" + name.encode())
    (tmp_path / name).rename(odd)
    assert collecting.collect([odd]) == [odd]
    (item,) = playlist.build([str(odd)], None).items
    assert audio.load(item.path).duration_s == pytest.approx(1.0, abs=0.1)
    odd.write_bytes(b"no sound at all, only some words")
    refused(audio.load, odd, says=(r"caf\udce9\x1b[31m", "cannot be read as sound"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.wav")
    (tmp_path / "link.wav").symlink_to("/dev/zero")
    (tmp_path / "loop.wav").symlink_to("loop.wav")
    (tmp_path / "gone.wav").symlink_to("nothing")
    for name in ("pipe.wav", "link.wav", "loop.wav", "gone.wav"):
        for way in (lambda path: collecting.collect([path]), audio.load, audio.look):
            refused(way, tmp_path / name, says=(name,))
    for path in ("~nobody-of-this-name/a.wav", "a\0b.wav", "x" * 5000):
        with pytest.raises(AudioError) as error:
            collecting.collect([path])
        assert len(str(error.value)) < 400
    table(tmp_path, f"file\ttranscript\nloop.wav\thello\n{'x' * 5000}\thello\n")
    with pytest.raises(AudioError, match="names no sound file that is there"):
        playlist.build((), str(tmp_path / "t.tsv"))


def test_a_playlist_without_a_file_that_can_be_decoded_is_refused(tmp_path: Path) -> None:
    good, *bad = make(tmp_path / "a.wav", tmp_path / "b.wav", tmp_path / "c.wav")
    for file in bad:
        file.write_bytes(b"RIFF\0\0\0\0WAVEnothing")
    with pytest.raises(AudioError, match="None of the 2 files can be decoded; the first: "):
        playlist.build(list(map(str, bad)), None)
    with pytest.raises(AudioError, match=r"b\.wav cannot be read as sound"):
        playlist.build([str(bad[0])], None)
    assert len(playlist.build(list(map(str, [*bad, good])), None).items) == 3


@each(
    "text, part",
    [
        ("a.wav\thel\0lo\n", "NUL"),
        ("a\0.wav\thello\n", "NUL"),
        (f"a.wav\t{'hello ' * 80_000}\n", "479,999 characters"),
        ("a.wav\t\n" * 500_000, "500,001 lines"),
        (f"{'x' * 3000}.wav\thello\n{'x' * 3000}.wav\tbye\n", "two different"),
    ],
)
def test_hostile_transcripts_are_refused_in_a_short_sentence(text: str, part: str, tmp_path: Path) -> None:
    said = refused(transcripts.read, table(tmp_path, "file\ttranscript\n" + text), says=(part,))
    assert len(said) < 500


def test_patterns_name_files_below_and_follow_no_linked_folders(tmp_path):
    for name in ("a.wav", "b/c.wav", "b/d/e.flac", ".hidden/f.wav", "b/notes.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    for name in ("one", "two"):  # each leads back to the top: followed, they multiply without end
        (tmp_path / "b" / name).symlink_to(tmp_path, target_is_directory=True)

    def named(pattern: str) -> list[str]:
        return [str(p.relative_to(tmp_path)) for p in collecting.collect([f"{tmp_path}/{pattern}"])]

    assert named("**/*.wav") == ["a.wav", "b/c.wav"]
    assert named("**/**/*") == ["a.wav", "b/c.wav", "b/d/e.flac"]
    assert named("b/**.wav") == ["b/c.wav"]
    assert named("?.wav") == ["a.wav"]
    assert named(".hid*/*.wav") == [".hidden/f.wav"]
    with pytest.raises(audio.AudioError, match="No sound file matches"):
        collecting.collect([f"{tmp_path}/**/" + "**/" * 2000 + "*.ogg"])
    with pytest.raises(audio.AudioError, match=r"has 20\d\d parts"):
        collecting.collect([f"{tmp_path}/" + "*/" * 2000])
