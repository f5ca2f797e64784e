"""Which sound files are meant: arguments, folders, patterns and links; playlists and transcripts."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipelines.audio import collecting, formats, transcripts
from pipelines.audio import loading as audio
from pipelines.audio.loading import AudioError, Part
from pipelines.config import Audio, assign, option
from pipelines.config.tree import Config
from pipelines.run import playlist
from tests.each import each
from tests.pipelines.refusing import refusal
from tests.pipelines.sound_files import RATE, make, refused, voice, written


def test_collect_takes_files_folders_and_patterns(tmp_path):
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
    odd, other = make(tmp_path / "take[1].wav", tmp_path / "take1.wav")
    assert collecting.collect([odd]) == [odd], "rather than the pattern"
    (tmp_path / "sound.dat").touch()
    assert collecting.collect([tmp_path / "sound.dat"]) == [tmp_path / "sound.dat"], "whatever its suffix"


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="names are text here")
@pytest.mark.parametrize("name", ["a.flac", "c.ogg", "f.mp3", "g.wav"])
def test_a_name_that_is_no_utf8_is_read(name, tmp_path):
    soundfile.write(tmp_path / name, voice(1.0), RATE)
    odd = tmp_path / os.fsdecode(b"caf\xe9\x1b[31m-" + name.encode())
    (tmp_path / name).rename(odd)
    assert collecting.collect([odd]) == [odd]
    (item,) = playlist.build([str(odd)], None).items
    assert audio.load(item.path).duration_s == pytest.approx(1.0, abs=0.1)
    odd.write_bytes(b"no sound at all, only some words")
    refused(audio.load, odd, says=(r"caf\udce9\x1b[31m", "cannot be read as sound"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_is_no_file_is_refused_without_waiting(tmp_path):
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
    written(tmp_path, "t.tsv", f"file\ttranscript\nloop.wav\thello\n{'x' * 5000}\thello\n")
    refusal("names no sound file that is there", playlist.build, (), str(tmp_path / "t.tsv"))


def test_a_playlist_without_a_file_that_can_be_decoded_is_refused(tmp_path):
    good, *bad = make(tmp_path / "a.wav", tmp_path / "b.wav", tmp_path / "c.wav")
    for file in bad:
        file.write_bytes(b"RIFF\0\0\0\0WAVEnothing")
    refusal("None of the 2 files can be decoded; the first: ", playlist.build, list(map(str, bad)), None)
    refusal(r"b\.wav cannot be read as sound", playlist.build, [str(bad[0])], None)
    assert len(playlist.build(list(map(str, [*bad, good])), None).items) == 3


@each(
    "text, part",
    [
        ("a.wav\tcafé\n", "not UTF-8"),
        ("a\0.wav\thello\n", "NUL"),
        (f"a.wav\t{'hello ' * 80_000}\n", "479,999 characters"),
        ("a.wav\t\n" * 500_000, "500,001 lines"),
        (f"{'x' * 3000}.wav\thello\n{'x' * 3000}.wav\tbye\n", "two different"),
    ],
)
def test_hostile_transcripts_are_refused_in_a_short_sentence(text, part, tmp_path):
    said = refused(transcripts.read, written(tmp_path, "t.tsv", "file\ttranscript\n" + text, "latin-1"), says=(part,))
    assert len(said) < 500


def test_patterns_name_files_below_and_follow_no_linked_folders(tmp_path):
    for name in ("a.wav", "b/c.wav", "b/d/e.flac", ".hidden/f.wav", "b/notes.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    for name in ("one", "two"):  # each leads back to the top: followed, they multiply without end
        (tmp_path / "b" / name).symlink_to(tmp_path, target_is_directory=True)
    for pattern, names in (
        ("**/*.wav", ["a.wav", "b/c.wav"]),
        ("**/**/*", ["a.wav", "b/c.wav", "b/d/e.flac"]),
        ("b/**.wav", ["b/c.wav"]),
        ("?.wav", ["a.wav"]),
        (".hid*/*.wav", [".hidden/f.wav"]),
    ):
        assert collecting.collect([tmp_path / pattern]) == [tmp_path / name for name in names]
    for pattern, problem in (
        ("**/" * 2000 + "*.ogg", "No sound file matches"),
        ("*/" * 2000, r"has 20\d\d parts"),
        ("no*.wav", "No sound file"),
        ("x.wav", "not exist"),
    ):
        refusal(problem, collecting.collect, [f"{tmp_path}/{pattern}"])
    (tmp_path / "b" / "d" / "e.flac").unlink()
    refusal("no sound files directly in it", collecting.collect, [tmp_path / "b" / "d"])
    refused(collecting.collect, [], says=())


def channels(folder: Path, name: str, n: int) -> np.ndarray:
    many = np.random.default_rng(n).uniform(-0.5, 0.5, (8_000, n))
    soundfile.write(folder / name, many, RATE, subtype="FLOAT")
    return many


@each(
    "channel, n, named",
    [
        ("mix", 2, {"call": None}),
        ("left", 2, {"call": 0}),
        ("right", 2, {"call": 1}),
        ("each", 2, {"call-left": 0, "call-right": 1}),
        ("each", 3, {"call-1": 0, "call-2": 1, "call-3": 2}),
        ("each", 1, {"call": None}),
        ("right", 1, {"call": None}),
    ],
)
def test_channels_are_chosen(channel, n, named, tmp_path):
    many = channels(tmp_path, "call.wav", n)
    choice = assign(Config(), {"audio.channel": channel}).audio
    items = playlist.build([str(tmp_path / "call.wav")], None, choice).items
    assert {item.name: item.part.channel for item in items} == named
    for item in items:
        at = item.part.channel
        expected = many.mean(axis=1) if at is None else many[:, at]
        assert np.abs(audio.load(item.path, item.part).samples - expected).max() < 1e-6


def test_a_row_of_one_channel_is_that_channel_whatever_is_chosen(tmp_path):
    channels(tmp_path, "call.wav", 2)
    stm = tmp_path / "t.stm"
    stm.write_text("call A x 0 0.1 hello\ncall B y 0.1 0.2 bye\n")
    for choice in (Audio(), Audio(channel="each")):
        items = playlist.build([str(tmp_path)], str(stm), choice).items
        assert [(item.name, item.part, item.reference) for item in items] == [
            ("call-A-0-0.1", Part(0, 0, 0.1), "hello"),
            ("call-B-0.1-0.2", Part(1, 0.1, 0.2), "bye"),
        ]
    (tmp_path / "segments").write_text("u1 call 0 0.1\n")
    (tmp_path / "text").write_text("u1 hello\n")
    items = playlist.build([str(tmp_path)], str(tmp_path / "text"), Audio(channel="each")).items
    assert [(item.name, item.part, item.reference) for item in items] == [
        ("u1-left", Part(0, 0, 0.1), None),
        ("u1-right", Part(1, 0, 0.1), None),
    ]


def test_what_was_said_on_one_channel_alone_is_not_known(tmp_path):
    channels(tmp_path, "call.wav", 2)
    channels(tmp_path, "mono.wav", 1)
    said = str(written(tmp_path, "t.tsv", "file\ttranscript\ncall.wav\thello\nmono.wav\tbye\n"))
    for choice, expected in (
        ("each", {"call-left": None, "call-right": None, "mono": "bye"}),
        ("left", {"call": "hello", "mono": "bye"}),
    ):
        items = playlist.build([str(tmp_path)], said, Audio(channel=choice)).items
        assert {item.name: item.reference for item in items} == expected


@each("suffix", [".sph", ".au", ".snd", ".w64", ".caf", ".rf64", ".aifc", ".voc"])
def test_folders_and_patterns_take_all_suffixes_of_sound(suffix, tmp_path):
    kinds = {".sph": "NIST", ".snd": "AU", ".aifc": "AIFF"}
    file = tmp_path / f"a{suffix.upper()}"
    kind = kinds.get(suffix, suffix[1:].upper())
    soundfile.write(file, voice(1.0), RATE, format=kind, subtype="PCM_16")
    assert collecting.collect([tmp_path]) == collecting.collect([tmp_path / "*"]) == [file]
    assert audio.load(file).duration_s == pytest.approx(1.0, abs=0.01)


@pytest.mark.skipif(not hasattr(Path, "symlink_to"), reason="there are no links here")
def test_links_to_one_file_are_decoded_once_with_a_note(tmp_path):
    (file,) = make(tmp_path / "in" / "a.wav")
    for n in range(20):
        (tmp_path / "in" / f"b{n:02}.wav").symlink_to(file)
    (other,) = make(tmp_path / "in" / "c.wav")
    items = playlist.build([str(tmp_path / "in")], None).items
    assert {item.path: item.notes for item in items} == {
        file: ("21 links to the same file are decoded once",),
        other: (),
    }
    assert playlist.build([str(file), str(file)], None).items[0].notes == ()


def pcm(folder: Path, name: str = "a.raw") -> np.ndarray:
    samples = (voice(1.0) * 30_000).astype("<i2")
    (folder / name).write_bytes(samples.tobytes())
    return samples


def test_sound_without_a_header_is_read_as_the_setting_says(tmp_path):
    samples = pcm(tmp_path)
    refused(playlist.build, [str(tmp_path / "a.raw")], None, says=("has no header", "--set audio.raw=16000:s16le"))
    refusal("has no sound files directly in it", playlist.build, [str(tmp_path)], None)
    choice = assign(Config(), {"audio.raw": "16000:s16le"}).audio
    (item,) = playlist.build([str(tmp_path)], None, choice).items
    assert np.array_equal(audio.load(item.path, item.part).samples * 32_768, samples)
    assert audio.load(item.path, Part(raw="8000:S16LE:2")).notes == [
        "mixed down from 2 channels",
        "resampled from 8000 Hz, with nothing above 4000 Hz where the model listens up to 6800",
    ]
    swapped = audio.load(item.path, Part(raw="16000:s16be")).samples
    assert np.array_equal(swapped * 32_768, samples.byteswap())


def test_a_setting_of_raw_sound_leaves_files_with_a_header_as_they_are(tmp_path):
    soundfile.write(tmp_path / "a.wav", voice(1.0), RATE)
    (tmp_path / "b.raw").write_bytes((tmp_path / "a.wav").read_bytes())
    items = playlist.build([str(tmp_path)], None, Audio(raw="8000:u8")).items
    sounds = [audio.load(item.path, item.part) for item in items]
    assert [sound.duration_s for sound in sounds] == [1.0, 1.0]
    assert [sound.notes for sound in sounds] == [[], ["read by its header, not as audio.raw says"]]


@each("text", ["16000", "16000:s16", "s16le", "0:s16le:0", "16000:s16le:x", "x" * 999])
def test_a_setting_of_raw_sound_that_says_nothing_is_refused(text, tmp_path):
    pcm(tmp_path)
    says = ("audio.raw must be rate:format", "such as 16000:s16le")
    assert len(refused(playlist.build, [str(tmp_path / "a.raw")], None, Audio(raw=text), says=says)) < 400


def test_the_help_names_every_format_of_raw_sound():
    for name in formats.FORMATS:
        assert name in option("audio.raw").help
    assert formats.raw_format(option("audio.raw").like)
    assert not formats.SUFFIXES & formats.RAW
