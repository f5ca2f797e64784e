"""Sound files: what is read, and what is refused in which words."""

import os
import re
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.audio import containers
from pipelines.audio import loading as audio
from pipelines.audio.loading import AudioError, Part
from tests.each import each
from tests.pipelines.refusing import refusal
from tests.pipelines.sound_files import RATE, refused, voice

CONTAINERS = [
    *(("a.wav", "PCM_16"), ("b.wav", "FLOAT"), ("c.flac", "PCM_16"), ("d.ogg", "VORBIS"), ("e.ogg", "OPUS")),
    *(("f.mp3", "MPEG_LAYER_III"), ("g.aiff", "PCM_24")),
]


@each("name, subtype", CONTAINERS)
def test_every_container_yields_its_sound(name, subtype, tmp_path):
    samples = voice()
    soundfile.write(tmp_path / name, samples, RATE, subtype=subtype)
    sound = audio.load(tmp_path / name)
    assert (sound.samples.dtype, sound.samples.ndim) == (np.float32, 1)
    assert (sound.sample_rate, sound.source_rate, sound.source_channels, sound.notes) == (RATE, RATE, 1, [])
    assert sound.duration_s == pytest.approx(3.0, abs=0.1)
    n = min(len(samples), len(sound.samples))
    assert np.corrcoef(samples[:n], sound.samples[:n])[0, 1] > 0.98
    if subtype == "PCM_16":
        assert np.array_equal(sound.samples * 32_768, soundfile.read(tmp_path / name, dtype="int16")[0])


@settings(deadline=None, max_examples=40)
@given(part=st.floats(0.001, 0.999), which=st.sampled_from(["a.wav", "c.flac", "d.ogg", "f.mp3"]))
def test_no_cut_goes_unnoticed(part, which, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut")
    soundfile.write(folder / which, voice(1.0), RATE, subtype=dict(CONTAINERS)[which])
    data = (folder / which).read_bytes()
    (folder / which).write_bytes(data[: int(part * len(data))])
    missing = len(data) - int(part * len(data))
    if which == "a.wav" and 0 < missing <= containers.TOLERATED:
        note = f"its header promises {missing} bytes ({missing / 32:.1f} ms) more sound than there are"
        assert audio.load(folder / which).notes == [note]
        return
    try:
        (note,) = audio.load(folder / which).notes
    except AudioError:
        return
    assert which == "f.mp3", "encoders do not agree on the number of frames"
    assert re.fullmatch(r"its header promises \d+ samples \(0\.0\d\d s\) more than there are", note)


@each("rate", [8_000, 16_000, 44_100])
@each("channels", [1, 2])
@each("mode", ["CONSTANT", "VARIABLE"])
def test_an_mp3_that_does_not_note_its_length(rate, channels, mode, tmp_path):
    t = np.arange(3 * rate) / rate
    sweep = 0.5 * np.sin(2 * np.pi * (200.0 + 400.0 * t) * t)  # nowhere alike, to find the lag
    sweep[rate // 2 : rate] = 0.0  # so that the bit rate varies
    samples = np.stack([sweep] * channels, axis=1)
    soundfile.write(tmp_path / "a.mp3", samples, rate, bitrate_mode=mode)
    data = bytearray((tmp_path / "a.mp3").read_bytes())
    at = max(data.find(b"Xing"), data.find(b"Info"))
    assert at > 0
    data[at : at + 4] = b"\0\0\0\0"
    (tmp_path / "b.mp3").write_bytes(data)
    noted, plain = audio.load(tmp_path / "a.mp3"), audio.load(tmp_path / "b.mp3")
    # The frame that bore the note is now sound (silent), and so is the encoder's delay.
    assert 3.0 <= plain.duration_s <= 3.4
    lag = np.argmax(np.correlate(plain.samples, noted.samples[16_000:32_000], "valid")) - 16_000
    assert 0 < lag < 0.3 * RATE
    n = min(len(noted.samples), len(plain.samples) - lag)
    assert np.corrcoef(noted.samples[:n], plain.samples[lag : lag + n])[0, 1] > 0.95
    tagged = b"ID3\x03\0\0\0\0\0\x0a" + b"\0" * 10 + bytes(data) + b"TAG" + b" " * 125
    (tmp_path / "d.mp3").write_bytes(tagged)
    assert audio.load(tmp_path / "d.mp3").duration_s == plain.duration_s


def test_a_flac_cut_between_two_frames(tmp_path):
    soundfile.write(tmp_path / "a.flac", voice(), RATE)
    data = (tmp_path / "a.flac").read_bytes()
    frame_starts = [i for i in range(100, len(data)) if data[i : i + 2] == b"\xff\xf8"]
    assert len(frame_starts) > 5
    for cut in frame_starts:
        (tmp_path / "b.flac").write_bytes(data[:cut])
        with pytest.raises(AudioError):
            audio.load(tmp_path / "b.flac")


@each("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000])
def test_any_rate_is_resampled_and_said_so(rate, tmp_path):
    t = np.arange(2 * rate) / rate
    soundfile.write(tmp_path / "a.wav", 0.5 * np.sin(2 * np.pi * 1_000 * t), rate)
    sound = audio.load(tmp_path / "a.wav")
    assert sound.source_rate == rate
    assert len(sound.samples) == pytest.approx(2 * RATE, abs=2)
    (note,) = sound.notes
    assert f"resampled from {rate} Hz" in note
    assert ("nothing above" in note) == (rate < 13_600)
    expected = 0.5 * np.sin(2 * np.pi * 1_000 * np.arange(2 * RATE) / RATE)
    middle = slice(RATE // 2, RATE)
    assert np.abs(sound.samples[middle] - expected[middle]).max() < 1e-3


@each(
    "samples, notes, subtypes",
    [
        (np.clip(10 * voice(), -1, 1), ["clipped: "], ["PCM_16"]),
        (np.zeros(RATE), ["silent: every sample is 0"], ["PCM_16"]),
        (3e-4 * voice(), ["almost silent: at most -72 dB of full scale"], ["PCM_16"]),
        (3e-3 * voice(), [], ["PCM_16"]),
        (
            np.repeat([1.0, 0.0], [50, 9_950]),
            ["clipped: 0.5 % of its samples are at full scale"],
            ["PCM_16", "PCM_U8", "ULAW", "FLOAT"],
        ),
    ],
)
def test_a_level_that_matters_is_said(samples, notes, subtypes, tmp_path):
    for subtype in subtypes:
        soundfile.write(tmp_path / "a.wav", samples, RATE, subtype=subtype)
        found = audio.load(tmp_path / "a.wav").notes
        assert [note[: len(words)] for note, words in zip(found, notes, strict=True)] == notes


def test_channels_that_cancel_each_other_are_not_mixed(tmp_path):
    noise = 0.001 * np.random.default_rng(0).standard_normal(3 * RATE)
    soundfile.write(tmp_path / "a.wav", np.stack([0.9 * voice(), noise - voice()], 1), RATE)
    sound = audio.load(tmp_path / "a.wav")
    assert np.abs(sound.samples - (noise - voice())).max() < 1e-4
    assert sound.notes == ["its 2 channels cancel each other (opposite polarity): channel 2 alone is decoded"]
    soundfile.write(tmp_path / "b.wav", np.stack([voice(), np.zeros(3 * RATE)], 1), RATE)
    assert audio.load(tmp_path / "b.wav").notes == ["mixed down from 2 channels"]


def test_one_channel_alone_is_read(tmp_path):
    both = np.random.default_rng(1).uniform(-0.5, 0.5, (200_000, 2))
    soundfile.write(tmp_path / "a.wav", both, RATE, subtype="FLOAT")
    for channel in (0, 1):
        sound = audio.load(tmp_path / "a.wav", Part(channel=channel))
        assert sound.notes == [f"channel {channel + 1} of 2"]
        assert np.abs(sound.samples - both[:, channel]).max() < 1e-6
    refusal("has 2 channels; there is no channel 3", audio.load, tmp_path / "a.wav", Part(channel=2))


def test_very_short_sound_is_read_and_said_so(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.full(5, 0.1), RATE)
    sound = audio.load(tmp_path / "a.wav")
    assert len(sound.samples) == 5
    assert "shorter than one analysis window" in sound.notes[0]
    soundfile.write(tmp_path / "b.wav", np.full(1, 0.1), 96_000)
    refusal("contains no sound", audio.load, tmp_path / "b.wav")


def test_what_is_no_sound_is_refused(tmp_path):
    refused(audio.load, tmp_path / "missing.wav", says=("missing.wav", "does not exist"))
    refused(audio.load, tmp_path, says=("is a folder",))
    for name, data, part in (
        ("empty.wav", b"", "is empty"),
        ("text.wav", b"these are only words, no sound", "cannot be read as sound"),
        ("text.mp3", b"these are only words, no sound", "cannot be read as sound"),
        ("zero.flac", bytes(4_000), "cannot be read as sound"),
        ("bare.raw", bytes(4_000), "cannot be read as sound"),
        ("tiny.ogg", b"OggS", "cannot be read as sound"),
        ("page.ogg", b"OggS" + bytes(40), "Ogg page"),
    ):
        (tmp_path / name).write_bytes(data)
        refused(audio.load, tmp_path / name, says=(name, part))


@each(
    "name, samples, says",
    [
        *((name, np.empty(0), ["contains no sound"]) for name in ("a.wav", "a.aiff")),
        *(
            ("a.wav", np.where(np.arange(3 * RATE) == 24_000, bad, voice()), ["not a finite number", "1.500 s"])
            for bad in (np.nan, np.inf, -np.inf)
        ),
        ("a.wav", 20_000 * voice(), ["where 1 is full scale"]),
    ],
)
def test_samples_that_cannot_be_sound_are_refused(name, samples, says, tmp_path):
    soundfile.write(tmp_path / name, samples, RATE, subtype="FLOAT")
    refused(audio.load, tmp_path / name, says=(name, *says))


def test_absurd_rates_are_refused(tmp_path):
    soundfile.write(tmp_path / "a.wav", voice(), RATE)
    data = bytearray((tmp_path / "a.wav").read_bytes())
    for rate in (1, 500, 2_000_000_000):
        struct.pack_into("<I", data, data.find(b"fmt ") + 12, rate)
        (tmp_path / "a.wav").write_bytes(data)
        refused(audio.load, tmp_path / "a.wav", says=("a.wav", f"{rate} Hz"))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_refused(tmp_path):
    soundfile.write(tmp_path / "a.wav", voice(), RATE)
    (tmp_path / "a.wav").chmod(0)
    refusal("cannot be read", audio.load, tmp_path / "a.wav")


def test_peaks_bound_each_frame():
    samples = np.zeros(1_000, np.float32)
    samples[5], samples[170], samples[999], samples[330] = 0.5, -1.0, 0.25, 2.0
    found = audio.peaks(samples, 5)
    assert found.dtype == np.int8
    assert found.tolist() == [[0, 64], [-127, 0], [0, 127], [0, 0], [0, 32]]
    assert audio.peaks(samples, 1).tolist() == [[-127, 127]]
    assert audio.peaks(samples, 9)[7:].tolist() == audio.peaks(samples[:0], 2).tolist() == [[0, 0], [0, 0]]


def raw_flac(path: Path, seconds: float, rate: int = RATE) -> None:
    """Silence of any length, written a piece at a time."""
    with soundfile.SoundFile(path, "w", rate, 1, "PCM_16") as file:
        left = int(seconds * rate)
        while left:
            n = min(left, 1 << 22)
            file.write(np.zeros(n, np.int16))
            left -= n


def test_a_recording_of_a_day_is_refused_by_its_header(tmp_path):
    """Before a sample is decoded: nothing that grows with its length is kept."""
    raw_flac(tmp_path / "day.flac", 24 * 3600, 1_000)  # the lowest rate, which is written soonest
    tracemalloc.start()
    try:
        for way in (audio.look, audio.load):
            refused(way, tmp_path / "day.flac", says=("is 24:00:00 h long", "at most 3:00:00 h"))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_decoding_takes_the_memory_of_its_result_once(tmp_path):
    raw_flac(tmp_path / "a.flac", 600, 22_050)
    tracemalloc.start()
    try:
        sound = audio.load(tmp_path / "a.flac")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sound.duration_s == pytest.approx(600, abs=0.01)
    assert sound.samples.nbytes < peak < 1.2 * sound.samples.nbytes


def test_containers_of_very_many_parts_are_given_up(tmp_path, monkeypatch):
    for kind in (b"RIFF\0\0\0\0WAVE", b"FORM\0\0\0\0AIFF"):
        (tmp_path / "chunks.wav").write_bytes(kind + b"junk\0\0\0\0" * 20_000)
        refusal("more than 10,000 chunks before its sound", audio.load, tmp_path / "chunks.wav")
    monkeypatch.setattr(containers, "MAX_PAGES", 5)
    soundfile.write(tmp_path / "d.ogg", voice(20.0), RATE)
    refusal("has more than 5 Ogg pages", audio.load, tmp_path / "d.ogg")
