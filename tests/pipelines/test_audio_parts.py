"""Which files and which of their channels are decoded: the settings of the sound, links, sound without a header."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipelines.audio import collecting, formats
from pipelines.audio import loading as audio
from pipelines.audio.loading import AudioError, Part
from pipelines.config import Audio, assign, option
from pipelines.config.tree import Config
from pipelines.experiments.ab import Arm, Interleaved
from pipelines.run import playlist
from profiler.errors import BadInput
from tests.each import each
from tests.pipelines.sound_files import RATE, make, refused, table, voice


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
def test_channels_are_chosen(channel: str, n: int, named: dict[str, int | None], tmp_path: Path) -> None:
    many = channels(tmp_path, "call.wav", n)
    choice = assign(Config(), {"audio.channel": channel}).audio
    items = playlist.build([str(tmp_path / "call.wav")], None, choice).items
    assert {item.name: item.part.channel for item in items} == named
    for item in items:
        at = item.part.channel
        expected = many.mean(axis=1) if at is None else many[:, at]
        assert np.abs(audio.load(item.path, item.part).samples - expected).max() < 1e-6


def test_a_row_of_one_channel_is_that_channel_whatever_is_chosen(tmp_path: Path) -> None:
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


def test_what_was_said_on_one_channel_alone_is_not_known(tmp_path: Path) -> None:
    channels(tmp_path, "call.wav", 2)
    channels(tmp_path, "mono.wav", 1)
    said = str(table(tmp_path, "file\ttranscript\ncall.wav\thello\nmono.wav\tbye\n"))
    items = playlist.build([str(tmp_path)], said, Audio(channel="each")).items
    assert [(item.name, item.reference) for item in items] == [
        ("call-left", None),
        ("call-right", None),
        ("mono", "bye"),
    ]
    items = playlist.build([str(tmp_path)], said, Audio(channel="left")).items
    assert [item.reference for item in items] == ["hello", "bye"]


def test_two_arms_decode_the_same_sound() -> None:
    other = assign(Config(), {"audio.channel": "left"})
    with pytest.raises(BadInput, match=r"audio\.channel says what is decoded"):
        Interleaved(Arm(Config(), {}), Arm(other, {"audio.channel": "left"}), 1)


@each("suffix", [".sph", ".au", ".snd", ".w64", ".caf", ".rf64", ".aifc", ".voc"])
def test_folders_and_patterns_take_all_suffixes_of_sound(suffix: str, tmp_path: Path) -> None:
    kinds = {".sph": "NIST", ".snd": "AU", ".aifc": "AIFF"}
    file = tmp_path / f"a{suffix.upper()}"
    kind = kinds.get(suffix, suffix[1:].upper())
    soundfile.write(file, voice(1.0), RATE, format=kind, subtype="PCM_16")
    assert collecting.collect([tmp_path]) == collecting.collect([tmp_path / "*"]) == [file]
    assert audio.load(file).duration_s == pytest.approx(1.0, abs=0.01)


@pytest.mark.skipif(not hasattr(Path, "symlink_to"), reason="there are no links here")
def test_links_to_one_file_are_decoded_once_with_a_note(tmp_path: Path) -> None:
    (file,) = make(tmp_path / "in" / "a.wav")
    for n in range(20):
        (tmp_path / "in" / f"b{n:02}.wav").symlink_to(file)
    (other,) = make(tmp_path / "in" / "c.wav")
    items = playlist.build([str(tmp_path / "in")], None).items
    assert [(item.path, item.notes) for item in items] == [
        (file, ("21 links to the same file are decoded once",)),
        (other, ()),
    ]
    assert playlist.build([str(file), str(file)], None).items[0].notes == ()


def pcm(folder: Path, name: str = "a.raw") -> np.ndarray:
    samples = (voice(1.0) * 30_000).astype("<i2")
    (folder / name).write_bytes(samples.tobytes())
    return samples


def test_sound_without_a_header_is_read_as_the_setting_says(tmp_path: Path) -> None:
    samples = pcm(tmp_path)
    refused(playlist.build, [str(tmp_path / "a.raw")], None, says=("has no header", "--set audio.raw=16000:s16le"))
    with pytest.raises(AudioError, match="has no sound files directly in it"):
        playlist.build([str(tmp_path)], None)
    choice = assign(Config(), {"audio.raw": "16000:s16le"}).audio
    (item,) = playlist.build([str(tmp_path)], None, choice).items
    assert np.array_equal(audio.load(item.path, item.part).samples * 32_768, samples)
    assert audio.load(item.path, Part(raw="8000:S16LE:2")).notes == [
        "mixed down from 2 channels",
        "resampled from 8000 Hz, with nothing above 4000 Hz where the model listens up to 6800",
    ]
    swapped = audio.load(item.path, Part(raw="16000:s16be")).samples
    assert np.array_equal(swapped * 32_768, samples.byteswap())


def test_a_setting_of_raw_sound_leaves_files_with_a_header_as_they_are(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", voice(1.0), RATE)
    (tmp_path / "b.raw").write_bytes((tmp_path / "a.wav").read_bytes())
    items = playlist.build([str(tmp_path)], None, Audio(raw="8000:u8")).items
    plain, named_raw = (audio.load(item.path, item.part) for item in items)
    assert (plain.duration_s, named_raw.duration_s) == (1.0, 1.0)
    assert plain.notes == []
    assert named_raw.notes == ["read by its header, not as audio.raw says"]


@each("text", ["16000", "16000:s16", "s16le", "0:s16le:0", "16000:s16le:x", "x" * 999])
def test_a_setting_of_raw_sound_that_says_nothing_is_refused(text: str, tmp_path: Path) -> None:
    pcm(tmp_path)
    says = ("audio.raw must be rate:format", "such as 16000:s16le")
    assert len(refused(playlist.build, [str(tmp_path / "a.raw")], None, Audio(raw=text), says=says)) < 400


def test_the_help_names_every_format_of_raw_sound() -> None:
    for name in formats.FORMATS:
        assert name in option("audio.raw").help
    assert formats.raw_format(option("audio.raw").like)
    assert not formats.SUFFIXES & formats.RAW
