"""Recording from a microphone: the file, level and gaps, and what happens without a device."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.model import sound
from app.model.pipeline import Pipeline
from app.model.sound import Recording, SoundError, inputs
from app.window.main_window import MainWindow
from app.window.tasks.next_run import MicrophonePage
from pipelines.config import presets
from tests.each import each

RATE = 16_000
DEVICES = [
    {"name": "loudspeaker", "index": 0, "max_input_channels": 0, "default_samplerate": 48_000.0},
    {"name": "headset", "index": 1, "max_input_channels": 1, "default_samplerate": 44_100.0},
    {"name": "built in", "index": 2, "max_input_channels": 2, "default_samplerate": float(RATE)},
]


class Port:
    """Stands for sounddevice, since machines that test have no microphone; a test speaks into it."""

    PortAudioError = type("PortAudioError", (Exception,), {})

    def __init__(self) -> None:
        self.callback: Callable[..., None] | None = None
        self.closed = self.broken = False

    def query_devices(self, device: int | None = None, kind: str | None = None) -> Any:
        if kind is not None:
            return DEVICES[2]
        return DEVICES if device is None else DEVICES[device]

    def InputStream(self, *, callback: Callable[..., None], **params: Any) -> "Port":
        if self.broken:
            raise self.PortAudioError("Device unavailable")
        assert params["samplerate"] == DEVICES[params["device"]]["default_samplerate"]
        self.callback = callback
        return self

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None:
        self.closed = True

    def speak(self, samples: Any, lost: bool = False) -> None:
        """Deliver samples as PortAudio does: in a block that is used again."""
        assert self.callback is not None
        block = np.array(samples, np.float32)[:, None]
        self.callback(block, len(block), None, SimpleNamespace(input_overflow=lost))
        block[:] = 9.0


@pytest.fixture
def port(monkeypatch):
    made = Port()
    monkeypatch.setitem(sys.modules, "sounddevice", made)
    return made


def test_devices_that_record_are_listed_the_usual_one_first(port):
    assert inputs() == [("built in", 2), ("headset", 1)]


def test_a_recording_is_the_samples_in_order(port, tmp_path):
    recording = Recording(tmp_path / "a.wav", 2)
    port.speak(np.full(RATE, 0.25))
    assert recording.drain()
    assert (recording.seconds, recording.peak) == (1.0, 0.25)
    assert recording.drain()
    assert (recording.peak, recording.highest) == (0.0, 0.25)
    port.speak(np.full(100, -0.5), lost=True)
    recording.finish()
    assert recording.gaps == 1
    samples, rate = soundfile.read(tmp_path / "a.wav")
    assert rate == RATE
    np.testing.assert_allclose(samples, np.repeat([0.25, -0.5], [RATE, 100]), atol=1e-4)
    assert port.closed


def test_a_forgotten_recording_ends(port, tmp_path, monkeypatch):
    monkeypatch.setattr(sound, "LONGEST_RECORDING_S", 2.0)
    recording = Recording(tmp_path / "a.wav", 2)
    for _ in range(5):
        port.speak(np.zeros(RATE))
    assert not recording.drain()
    recording.finish()
    assert soundfile.info(tmp_path / "a.wav").duration == 2.0


def test_what_cannot_be_opened_leaves_no_file(port, tmp_path):
    port.broken = True
    with pytest.raises(SoundError, match="Sound cannot be recorded: Device unavailable"):
        Recording(tmp_path / "a.wav", 2)
    assert not list(tmp_path.iterdir())
    port.broken = False
    with pytest.raises(OSError, match=r"gone/a\.wav cannot be written"):
        Recording(tmp_path / "gone" / "a.wav", 2)
    assert port.closed


def open_dialog(qtbot: QtBot, decoded: list[Path]) -> MicrophonePage:
    dialog = MicrophonePage(inputs(), decoded.append, None)
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def test_a_recording_is_decoded(port, qtbot, tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_SESSIONS", str(tmp_path))
    decoded: list[Path] = []
    dialog = open_dialog(qtbot, decoded)
    qtbot.mouseClick(dialog.take, Qt.MouseButton.LeftButton)
    port.speak(np.full(2 * RATE, 1.0))
    qtbot.waitUntil(lambda: "0:02 · too loud: clipped" in dialog.state.text())
    assert dialog.level.value() == 0
    assert not dialog.device.isEnabled()
    qtbot.mouseClick(dialog.take, Qt.MouseButton.LeftButton)
    assert [soundfile.info(path).duration for path in decoded] == [2.0]
    assert decoded[0].parent == tmp_path / "recordings"


def test_a_recording_given_up_leaves_nothing(port, qtbot, tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_SESSIONS", str(tmp_path))
    decoded: list[Path] = []
    dialog = open_dialog(qtbot, decoded)
    qtbot.mouseClick(dialog.take, Qt.MouseButton.LeftButton)
    port.speak(np.zeros(2 * RATE))
    qtbot.waitUntil(lambda: "only silence so far" in dialog.state.text())
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not decoded
    assert not list((tmp_path / "recordings").iterdir())
    assert port.closed


@each(
    "preset, changed, hears",
    [("gmm", {}, True), ("demo", {"pace": 2.0}, True), ("gmm", {"search.beam": 9.0}, False), ("dnn", {}, False)],
)
def test_a_recording_is_decoded_by_what_hears_unless_somebody_chose(preset, changed, hears, monkeypatch):
    pipeline = Pipeline(preset)
    for key, value in changed.items():
        pipeline.set(key, value)
    monkeypatch.setattr(presets, "of_own_speech", lambda: "ctc")
    pipeline.hear()
    assert pipeline.preset.name == ("ctc" if hears else preset)


def test_without_a_microphone_the_window_says_so(port, qtbot, monkeypatch):
    def none(device: int | None = None, kind: str | None = None) -> Any:
        raise ValueError("No input device matching")

    monkeypatch.setattr(port, "query_devices", none)
    window = MainWindow()
    qtbot.addWidget(window)
    window.actions_["file.record"].trigger()
    assert "there is no microphone on this machine" in window.notices.banners[-1].text
