"""Sound files of several recordings, or of more or less sound than their header says: nothing is lost in silence."""

import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipelines.audio import loading as audio
from pipelines.audio.loading import Part
from tests.each import each
from tests.pipelines.refusing import refusal
from tests.pipelines.sound_files import RATE, refused, voice

ID3 = b"ID3\x04\0\0\0\0\x01\x00" + bytes(128)
ID3V1 = b"TAG" + bytes(125)
FIRST, SECOND = voice(2.4), voice(2.8)
JOINED = "2 recordings joined in one file"


def encoded(folder: Path, name: str, samples: np.ndarray, rate: int = RATE, subtype: str | None = None) -> bytes:
    soundfile.write(folder / name, samples, rate, subtype=subtype)
    return (folder / name).read_bytes()


def written(file: Path, data: bytes) -> Path:
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("between", [b"", ID3, ID3V1, ID3V1 + ID3])
def test_joined_mp3_files_with_tags_between_are_all_read(between, tmp_path, capfd):
    a, b = encoded(tmp_path, "a.mp3", FIRST), encoded(tmp_path, "b.mp3", SECOND)
    sound = audio.load(written(tmp_path / "ab.mp3", ID3 + a + between + b + ID3V1))
    assert sound.duration_s == pytest.approx(5.2)
    assert sound.notes == [JOINED]
    alone = [audio.load(tmp_path / name).samples for name in ("a.mp3", "b.mp3")]
    assert np.array_equal(sound.samples, np.concatenate(alone))
    assert capfd.readouterr().err == "", "no line of a library"


def test_joined_mp3_files_without_a_note_of_their_length(tmp_path):
    a, b = (
        encoded(tmp_path, name, samples).replace(b"Info", bytes(4)).replace(b"Xing", bytes(4))
        for name, samples in (("a.mp3", FIRST), ("b.mp3", SECOND))
    )
    sound = audio.load(written(tmp_path / "ab.mp3", a + ID3 + b))
    assert sound.notes == []
    assert 5.2 <= sound.duration_s < 5.5  # the encoder's delay is not known


def test_a_tag_within_a_recording_does_not_part_it(tmp_path):
    data = encoded(tmp_path, "a.mp3", voice(3.0))
    whole = audio.load(tmp_path / "a.mp3").samples
    starts = [i for i in range(len(data) - 1) if data[i : i + 2] == data[:2]]
    middle = next(i for i in starts[len(starts) // 2 :] if data[i + 4])  # takes bits from before
    sound = audio.load(written(tmp_path / "b.mp3", data[:middle] + ID3 + data[middle:]))
    assert sound.notes == []
    assert np.count_nonzero(sound.samples != whole) <= 1152, "a frame"


def test_lines_of_the_mp3_decoder_do_not_reach_stderr(tmp_path, capfd):
    encoded(tmp_path, "a.mp3", 0.1 * np.random.default_rng(0).standard_normal(60 * RATE))
    audio.load(tmp_path / "a.mp3")
    for content in (ID3 + b"\xff\xfb\x06\xa2" * 2_000, b"ID3\x04\0\0\0\0\xff\xff" + bytes(2_000)):
        refusal("cannot be read as sound", audio.load, written(tmp_path / "b.mp3", content))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("subtype", "rates"), [("VORBIS", (16_000, 44_100)), ("OPUS", (16_000, 48_000))])
def test_chained_ogg_is_read_to_its_end(subtype, rates, tmp_path):
    a = encoded(tmp_path, "a.ogg", FIRST, rates[0], subtype)
    b = encoded(tmp_path, "b.ogg", voice(2.8, rates[1]), rates[1], subtype)
    sound = audio.load(written(tmp_path / "ab.ogg", a + b))
    assert sound.duration_s == pytest.approx(5.2, abs=0.01)
    assert sound.notes == [JOINED, f"resampled from {rates[1]} Hz"]
    alone = [audio.load(tmp_path / name).samples for name in ("a.ogg", "b.ogg")]
    assert np.array_equal(sound.samples, np.concatenate(alone))
    assert audio.load(written(tmp_path / "aa.ogg", a + a)).duration_s == pytest.approx(4.8)
    refusal("last Ogg page is incomplete", audio.load, written(tmp_path / "cut.ogg", a + b[:-50]))


@each("between", [b"", ID3, ID3V1])
def test_joined_flac_files_are_all_read(between, tmp_path):
    a = encoded(tmp_path, "a.flac", FIRST)
    b = encoded(tmp_path, "b.flac", np.stack([voice(2.8, 48_000)] * 2, axis=1), 48_000)
    sound = audio.load(written(tmp_path / "ab.flac", a + between + b))
    assert sound.duration_s == pytest.approx(5.2)
    assert sound.notes == [JOINED, "mixed down from 2 channels", "resampled from 48000 Hz"]
    assert (sound.source_rate, sound.source_channels) == (RATE, 2)


@each("kind", ["WAV", "AIFF", "AU", "W64", "CAF", "NIST", "RF64"])
def test_any_joined_files_that_tell_their_length_are_all_read(kind, tmp_path):
    for name, samples in (("a", FIRST), ("b", SECOND)):
        soundfile.write(tmp_path / name, samples, RATE, format=kind, subtype="PCM_16")
    both = (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes()
    sound = audio.load(written(tmp_path / "ab.sound", both))
    assert sound.notes == [JOINED]
    alone = [audio.load(tmp_path / name).samples for name in "ab"]
    assert np.array_equal(sound.samples, np.concatenate(alone))
    refusal("is cut short", audio.load, written(tmp_path / "cut.sound", both[:-3_000]))


PLACES = {  # of the bytes of sound that a header says: behind which mark, and how they are written
    "WAV": (b"data", 4, "<I", 0),
    "AU": (b".snd", 8, ">I", 0),
    "CAF": (b"data", 4, ">Q", 4),
    "AIFF": (b"SSND", 4, ">I", 8),
    "W64": (b"data\xf3", 16, "<Q", 24),
    "RF64": (b"ds64", 16, "<Q", 0),
    "FLAC": (b"fLaC", 18, ">Q", 0),
    "NIST": (b"sample_count -i 38400", 0, "", 0),
}


def with_length(form: str, folder: Path, change: int | None) -> Path:
    """A file whose header promises `change` bytes of 16-bit sound more than there are; None: an open length."""
    soundfile.write(folder / "a", FIRST, RATE, format=form, subtype="PCM_16")
    data = bytearray((folder / "a").read_bytes())
    mark, behind, how, before = PLACES[form]
    at, n = data.find(mark) + behind, 76_800 + (change or 0)
    if form == "NIST":
        data = data.replace(mark, b"sample_count -i %05d" % (n // 2))
    elif form == "FLAC":
        about = int.from_bytes(data[at : at + 8], "big") >> 36 << 36
        struct.pack_into(how, data, at, about | (0 if change is None else n // 2))
    elif change is None:
        most = (1 << 8 * struct.calcsize(how)) - 1
        struct.pack_into(how, data, at, most if form != "W64" else most >> 1)
        if form == "W64":
            struct.pack_into(how, data, 16, most >> 1)
    else:
        struct.pack_into(how, data, at, n + before if n else 0)
    return written(folder / "said", bytes(data))


@each("form", PLACES)
@each(
    "change, seconds, note",
    [
        (None, 2.4, "its header leaves its length open: it is read to its end"),
        (-76_800, 2.4, "its header says 0 bytes of sound; the 76,800 bytes behind it are read"),
        (100, 2.4, "its header promises 100 bytes"),
        (-38_400, 1.2, "behind its sound are not read"),
    ],
)
def test_sound_is_read_to_its_end_whatever_its_header_says(form, change, seconds, note, tmp_path):
    """As a pipe leaves it, or a recorder that was killed or counts its header in."""
    if form == "FLAC" and change is not None:
        if change == -76_800:
            return  # as an open length is written
        seconds = 2.4
        note = note.replace("100 bytes", "50 samples").replace("behind its sound are not read", "out, which are read")
    if form == "NIST" and change is None:
        return  # as a length of 0 is written
    sound = audio.load(with_length(form, tmp_path, change))
    assert np.array_equal(sound.samples, audio.load(tmp_path / "a").samples[: round(seconds * RATE)])
    assert len(sound.notes) == 1
    assert note in sound.notes[0]


def test_flac_without_a_length_is_read_as_far_as_it_goes_and_to_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(audio, "BLOCK_SAMPLES", 1 << 12)  # more comes than was made room for
    file = with_length("FLAC", tmp_path, None)
    whole = file.read_bytes()
    assert np.array_equal(audio.load(file).samples, audio.load(tmp_path / "a").samples)
    sound = audio.load(written(tmp_path / "cut", whole[:-3_000]))  # its recorder was killed
    assert 2.0 < sound.duration_s < 2.4
    assert f"what follows after {sound.duration_s:.2f} s cannot be read as sound" in sound.notes
    monkeypatch.setattr(audio, "LONGEST_S", 2)
    refusal("goes on after that; recordings of at most 0:00:02 h", audio.load, file)


def chunk(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("<I", len(content)) + content


def test_chunks_of_a_wav_in_any_order(tmp_path):
    data = encoded(tmp_path, "a.wav", FIRST)
    whole = audio.load(tmp_path / "a.wav").samples
    fmt, sound = data[12:36], data[44:]
    odd = chunk(b"LIST", b"INFOx")
    for chunks, notes in (
        (chunk(b"data", sound) + fmt, []),
        (
            fmt + chunk(b"data", sound[:20_000]) + chunk(b"data", sound[20_000:]),
            ["its 2 chunks of sound are read one after the other"],
        ),
        (data[12:] + chunk(b"id3 ", bytes(3_001)) + b"\0" + chunk(b"LIST", bytes(2_000)), []),
        (fmt + odd + data[36:], []),  # without a pad byte
        (fmt + odd + b"\0" + data[36:], []),
    ):
        found = audio.load(written(tmp_path / "b.wav", data[:12] + chunks))
        assert np.array_equal(found.samples, whole)
        assert found.notes == notes


def wav_of(data_size: int, tmp_path: Path) -> Path:
    data = bytearray(encoded(tmp_path, "a.wav", FIRST))
    struct.pack_into("<I", data, 40, data_size)
    return written(tmp_path / "b.wav", bytes(data))


@each("more", [2, 8, 16, 28, 44, 512])
def test_a_header_that_promises_a_little_too_much(more, tmp_path):
    sound = audio.load(wav_of(len(FIRST) * 2 + more, tmp_path))
    assert len(sound.samples) == len(FIRST)
    ms = more / (RATE * 2 / 1000)
    assert sound.notes == [f"its header promises {more} bytes ({ms:.1f} ms) more sound than there are"]
    refusal("is cut short", audio.load, wav_of(len(FIRST) * 2 + 514, tmp_path))
    assert audio.load(wav_of(len(FIRST), tmp_path)).notes == ["38,400 bytes (1.20 s) behind its sound are not read"]


def wav_with(tag: int, content: bytes, more: bytes = b"", fact: int | None = None) -> bytes:
    fmt = struct.pack("<HHIIHHH", tag, 1, RATE, 8_000, 1, 0, len(more)) + more
    chunks = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt
    if fact is not None:
        chunks += b"fact" + struct.pack("<II", 4, fact)
    chunks += b"data" + struct.pack("<I", len(content)) + content
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


@each("fact", [None, 30_000, 40_298])
@each("noted", [True, False])
def test_mp3_within_wav_is_read_whole(fact, noted, tmp_path):
    frames = encoded(tmp_path, "a.mp3", FIRST)
    if not noted:
        frames = frames.replace(b"Info", bytes(4)).replace(b"Xing", bytes(4))
    about = struct.pack("<HIHHH", 1, 2, 1_152, 1, 1_393)
    data = wav_with(0x55, frames, about, fact)
    sound = audio.load(written(tmp_path / "a.wav", data))
    assert sound.notes == []
    assert 2.4 <= sound.duration_s < 2.6
    refusal("is cut short", audio.load, written(tmp_path / "b.wav", data[:-1_000]))


@each(
    "data, parts",
    [
        (wav_with(0x28F, bytes(4_000)), ["a WAV file that holds G.722", "ffmpeg -i"]),
        (wav_with(0x45, bytes(4_000)), ["G.726"]),
        (wav_with(0xFF, bytes(4_000)), ["AAC"]),
        (wav_with(0x9999, bytes(4_000)), ["the codec 0x9999"]),
        (b"\0\0\0\x20ftypM4A " + bytes(100), ["an MPEG-4 file", "ffmpeg -i"]),
        (b"\x1a\x45\xdf\xa3" + bytes(100), ["a Matroska or WebM file", "ffmpeg -i"]),
        (b"\xff\xf1\x50\x80" + bytes(100), ["an AAC file", "ffmpeg -i"]),
        (b"<!DOCTYPE html>\n<html></html>", ["an HTML page"]),
        (
            b"NIST_1A\n   1024\nsample_coding -s26 pcm,embedded-shorten-v2.00\nend_head\n".ljust(2_000),
            ["shorten", "sph2pipe"],
        ),
    ],
)
def test_sound_that_is_not_read_is_named(data, parts, tmp_path):
    refused(audio.load, written(tmp_path / "a.wav", data), says=parts)


@each("name", ["a.wav", "a.flac", "a.mp3", "a.ogg"])
def test_a_part_of_a_file_is_what_lies_there(name, tmp_path):
    encoded(tmp_path, name, voice(3.0))
    whole = audio.load(tmp_path / name).samples
    for begin, end in ((0.0, 1.0), (1.0, 2.5), (2.0, None)):
        sound = audio.load(tmp_path / name, Part(begin_s=begin, end_s=end))
        expected = whole[int(begin * RATE) : None if end is None else int(end * RATE)]
        assert np.array_equal(sound.samples, expected)
        assert sound.notes == ["the first 1.00 s of 3.00 s are read"] * (begin == 0)
    late = audio.load(tmp_path / name, Part(begin_s=2.0, end_s=3.5))
    assert late.notes == ["ends 0.50 s before the end that is asked for"]
    refusal(r"is 3\.00 s long; there is nothing of it from 5\.00 s on", audio.load, tmp_path / name, Part(begin_s=5.0))


def test_a_part_may_lie_across_joined_recordings(tmp_path):
    both = b"".join(encoded(tmp_path, "a.flac", samples) for samples in (FIRST, SECOND))
    file = written(tmp_path / "ab.flac", both)
    part = audio.load(file, Part(begin_s=2.0, end_s=3.0)).samples
    assert np.array_equal(part, audio.load(file).samples[2 * RATE : 3 * RATE])
