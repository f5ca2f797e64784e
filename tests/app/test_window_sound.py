"""Playback of decoded audio: which samples, where the cursor is meanwhile, and why playback is not possible."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from PySide6.QtCore import Qt
from shown_windows import errors

from app.model import sound
from app.model.sound import Piece, SoundError, frame_at, pieces_of, read, together
from profiler.session.model import Utterance
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder

RATE = 8000


class FakeOutput:
    """An output that plays nothing; the test sets how much of it was played."""

    samples: Any = None
    played_s, stopped = 0.0, 0

    def __call__(self, samples: Any, rate: int):
        self.samples, self.played_s = samples, 0.0
        return self

    def stop(self) -> None:
        self.stopped += 1


@pytest.fixture
def stereo(tmp_path):
    """Ten seconds: the second as a number left, minus that right."""
    path = tmp_path / "call.wav"
    level = np.repeat(np.arange(10) / 10, RATE)
    soundfile.write(path, np.stack([level, -level], axis=1), RATE, subtype="FLOAT")
    return path


def levels(samples: Any) -> set[float]:
    """The levels that occur, in tenths."""
    return {round(float(each), 3) for each in np.unique(samples)}


def utterance(path: Path, first: int = 0, frames: int = 300, seconds: float = 3.02, **part: Any) -> Utterance:
    peaks = np.zeros((0, 2), np.int8)
    return Utterance(
        0, "a", str(path), first, frames, seconds, None, "", (), 1, (0,), None, None, True, peaks,
        part=part,
    )  # fmt: skip


def test_an_utterance_is_its_channel_and_its_stretch_of_time(stereo):
    samples, rate = read(utterance(stereo, begin_s=2.0, end_s=5.02, channel=1), 0, 300)
    assert rate == RATE
    assert len(samples) == round(3.02 * RATE), "its last 20 ms make no frame"
    assert samples[0] == pytest.approx(-0.2)
    assert samples[-1] == pytest.approx(-0.5)
    some, _ = read(utterance(stereo, begin_s=2.0, end_s=5.02, channel=0), 100, 200)
    assert levels(some) == {0.3}
    mixed, _ = read(utterance(stereo), 0, 300)
    assert not mixed.any(), "all channels, mixed"


def test_a_selection_over_several_utterances_is_played_in_one(stereo):
    reported = [utterance(stereo, channel=0), utterance(stereo, 300, begin_s=5.0, channel=0)]
    assert [(begin, end) for _, begin, end in pieces_of(reported, 200, 400)] == [(200, 300), (0, 100)]
    samples, rate, places = together(reported, 200, 400)
    assert places == [Piece(0.0, 200, 300), Piece(pytest.approx(1.02), 300, 400)]
    assert len(samples) == round(2.02 * rate)
    assert [frame_at(places, at) for at in (0.0, 0.5, 1.01, 1.025, 9.0)] == [200, 250, 300, 300, 400]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"path": "gone.wav"}, "is not there any more"),
        ({"path": __file__}, r"test_window_sound\.py cannot be played"),
        ({"channel": 7}, "has no channel 7"),
        ({"begin_s": 60.0}, "has no sound there any more"),
        ({"raw": "8000 mulaw"}, "has no header"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(stereo, change, why):
    path = Path(change.pop("path", stereo))
    with pytest.raises(SoundError, match=why) as reported:
        read(utterance(path, **change), 0, 300)
    assert str(reported.value).endswith(".")


@pytest.fixture
def opened(window, stereo, tmp_path):
    """Two utterances of three seconds, one of each channel."""
    recorder = Recorder()
    path = tmp_path / "heard.asrs"
    writer = SessionWriter(path, recorder, {"preset": "gmm"})
    lane = recorder.lane("decode", decode=True)
    stage = recorder.stage("decode.block", "decode")
    for channel in (0, 1):
        first = 300 * channel
        peaks = np.zeros((300, 2), np.int8)
        part = {"channel": channel, "begin_s": 1.0, "end_s": 4.02}
        number = writer.utterance("a", str(stereo), first, 300, 3.02, None, peaks, (), part)
        lane.put(stage, first, first + 1, first, 300)
        writer.utterance_done(number, "", [], 1, [0], None, None)
    writer.close("closed")
    w = window()
    w.open_session(path)
    return w


@pytest.fixture
def output(monkeypatch):
    heard = FakeOutput()
    monkeypatch.setattr(sound, "Playback", heard)
    return heard


def test_the_utterance_at_the_cursor_is_played_and_the_cursor_follows(qtbot, opened, output):
    opened.playhead.seek(400)
    qtbot.keyClick(opened, Qt.Key.Key_P)
    assert opened.sound.playing
    assert opened.actions_["view.sound"].isChecked()
    assert levels(output.samples) == {-0.1, -0.2, -0.3, -0.4}, "its channel and time"
    for heard, frame in ((0.0, 300), (1.5, 450), (2.0, 500)):
        output.played_s = heard
        qtbot.waitUntil(lambda: opened.playhead.cursor_frame == frame)  # noqa: B023
    output.played_s = 3.1
    qtbot.waitUntil(lambda: not opened.sound.playing)
    assert opened.playhead.cursor_frame == 600
    assert output.stopped == 1


def test_the_selection_is_played_until_a_second_press_a_replay_or_another_session(qtbot, opened, output):
    opened.axis.select(1.0, 2.0)
    ends = (opened.sound.toggle, opened.playhead.play, opened.playhead.close)
    for number, end in enumerate(ends, 1):
        qtbot.keyClick(opened, Qt.Key.Key_P)
        assert opened.sound.playing
        assert len(output.samples) == RATE
        assert levels(output.samples) == {0.2}
        end()
        assert (opened.sound.playing, output.stopped) == (False, number)
        opened.playhead.pause()


def fails_to_load(name, *_):
    if name == "sounddevice":
        raise OSError("PortAudio library not found")


def none(**_):
    raise ValueError("No output device matching")


NO_DEVICE = SimpleNamespace(PortAudioError=RuntimeError, query_devices=none)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "why"),
    [
        (None, "sounddevice is not installed"),
        (NO_DEVICE, "no audio device"),
        ("without PortAudio", "no PortAudio"),
        ("as it is", "Sound cannot be played"),  # on a machine of tests one of the three is absent
    ],
)
def test_what_is_absent_is_said_in_one_sentence(opened, module, why, monkeypatch):
    if module == "without PortAudio":
        monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
        monkeypatch.setattr(sys, "meta_path", [SimpleNamespace(find_spec=fails_to_load), *sys.meta_path])
    elif module != "as it is":
        monkeypatch.setitem(sys.modules, "sounddevice", module)
    reported = []
    opened.sound.failed.connect(reported.append)
    opened.playhead.seek(100)
    opened.sound.toggle()
    if module == "as it is" and opened.sound.playing:
        opened.sound.stop()
        return
    (sentence,) = reported
    assert why in sentence
    assert sentence.count(". ") == 0
    assert sentence.endswith(".")
    assert errors(opened) == reported
