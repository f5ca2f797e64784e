"""What the next run decodes and where: a list of audio, a recording, the folder of a model, another machine."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog
from shown_windows import NOT_READ, press, start_run, texts, wait_for_frames

from app.model import audio_choice, runs, sound
from app.model.audio_choice import chosen
from app.model.pipeline import Pipeline
from app.model.runs import Elsewhere
from app.model.sound import MicrophoneRecording, SoundError, inputs
from app.window.tasks.next_run import MicrophonePage, PlaylistPage, RunOnPage
from pipelines.audio import tables, transcripts
from pipelines.config import presets
from tests.each import each
from tests.pipelines.kaldi_writer import write_model


@pytest.fixture
def files(tmp_path):
    made = [tmp_path / "speech" / name for name in ("b.wav", "a.wav", "c.wav")]
    made[0].parent.mkdir()
    for path in made:
        path.write_bytes(NOT_READ)
    (made[0].parent / "t.tsv").write_text("file\ttext\n")
    return made


@pytest.fixture
def dialog(window, files):
    w = window()
    w.files.take_audio(files[:2])
    assert w.actions_.trigger("file.playlist")
    (made,) = w.findChildren(PlaylistPage)
    return made


def names(dialog: PlaylistPage) -> list[str]:
    return [dialog.list.item(row).text() for row in range(dialog.list.count())]


def test_the_list_is_changed_by_keys_and_feeds_the_next_run(qtbot, dialog, files, monkeypatch):
    runs = dialog._w.runs
    assert names(dialog) == ["b.wav", "a.wav"]
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(files[2]), str(files[0])], ""))
    dialog.add(dialog._w.files.pick_audio())
    assert names(dialog) == ["b.wav", "a.wav", "c.wav"], "each file once"
    dialog.list.setFocus()
    assert not dialog.up.isEnabled()
    qtbot.keyClick(dialog.list, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    qtbot.keyClick(dialog.list, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert names(dialog) == ["a.wav", "c.wav", "b.wav"]
    assert not dialog.down.isEnabled()
    dialog.list.setCurrentRow(0)
    qtbot.keyClick(dialog.list, Qt.Key.Key_Delete)
    assert names(dialog) == ["c.wav", "b.wav"]
    dialog.take.click()
    assert runs.next.audio is not None
    assert runs.next.audio.paths == (str(files[2]), str(files[0]))
    assert runs.next.audio.transcripts == str(files[0].parent / "t.tsv")


def test_several_are_moved_together_and_a_folder_is_one_entry(dialog, files, tmp_path):
    dialog.add([files[2], files[0].parent])
    assert names(dialog)[3] == "speech/"
    for row in (0, 2, 3):
        dialog.list.item(row).setSelected(row > 0)
    dialog.up.click()
    assert names(dialog) == ["b.wav", "c.wav", "speech/", "a.wav"]
    dialog.list.selectAll()
    assert not dialog.up.isEnabled()
    dialog.remove.click()
    assert names(dialog) == []
    assert not dialog.take.isEnabled()
    other = tmp_path / "other.wav"
    other.write_bytes(NOT_READ)
    dialog.add([other])
    dialog.take.click()
    audio = dialog._w.runs.next.audio
    assert (audio.paths, audio.transcripts) == ((str(other),), None), "transcripts go with the last of their files"


RATE = 16_000
DEVICES = [
    {"name": "loudspeaker", "index": 0, "max_input_channels": 0, "default_samplerate": 48_000.0},
    {"name": "headset", "index": 1, "max_input_channels": 1, "default_samplerate": 44_100.0},
    {"name": "built in", "index": 2, "max_input_channels": 2, "default_samplerate": float(RATE)},
]


class Port:
    """Stands for sounddevice, since machines that test have no microphone; a test speaks into it."""

    PortAudioError = type("PortAudioError", (Exception,), {})
    closed = broken = False

    def query_devices(self, device: int | None = None, kind: str | None = None) -> Any:
        if kind is not None:
            return DEVICES[2]
        return DEVICES if device is None else DEVICES[device]

    def InputStream(self, *, callback: Any, **params: Any) -> "Port":
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
        block = np.array(samples, np.float32)[:, None]
        self.callback(block, len(block), None, SimpleNamespace(input_overflow=lost))
        block[:] = 9.0


@pytest.fixture
def port(monkeypatch):
    made = Port()
    monkeypatch.setitem(sys.modules, "sounddevice", made)
    return made


def test_a_recording_is_the_samples_in_order(port, tmp_path):
    assert inputs() == [("built in", 2), ("headset", 1)], "devices that record, the usual one first"
    recording = MicrophoneRecording(tmp_path / "a.wav", 2)
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
    recording = MicrophoneRecording(tmp_path / "a.wav", 2)
    for _ in range(5):
        port.speak(np.zeros(RATE))
    assert not recording.drain()
    recording.finish()
    assert soundfile.info(tmp_path / "a.wav").duration == 2.0


def test_what_cannot_be_opened_leaves_no_file(port, tmp_path):
    port.broken = True
    with pytest.raises(SoundError, match="Sound cannot be recorded: Device unavailable"):
        MicrophoneRecording(tmp_path / "a.wav", 2)
    assert not list(tmp_path.iterdir())
    port.broken = False
    with pytest.raises(OSError, match=r"gone/a\.wav cannot be written"):
        MicrophoneRecording(tmp_path / "gone" / "a.wav", 2)
    assert port.closed


@pytest.mark.parametrize(("level", "says"), [(1.0, "0:02 · too loud: clipped"), (0.0, "only silence so far")])
def test_a_recording_is_decoded_or_given_up(port, qtbot, tmp_path, level, says):
    decoded: list[Path] = []
    dialog = MicrophonePage(inputs(), decoded.append, None)
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.mouseClick(dialog.take, Qt.MouseButton.LeftButton)
    port.speak(np.full(2 * RATE, level))
    qtbot.waitUntil(lambda: says in dialog.state.text())
    assert not dialog.device.isEnabled()
    if level:
        qtbot.mouseClick(dialog.take, Qt.MouseButton.LeftButton)
    else:
        qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert [soundfile.info(path).duration for path in decoded] == [2.0] * bool(level)
    assert list((tmp_path / "sessions" / "recordings").iterdir()) == decoded
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


def test_without_a_microphone_the_window_says_so(port, window, monkeypatch):
    def none(**_: object) -> Any:
        raise ValueError("No input device matching")

    monkeypatch.setattr(port, "query_devices", none)
    w = window()
    w.actions_["file.record"].trigger()
    assert "there is no microphone on this machine" in w.notices.banners[-1].text


WORKER = Path(__file__).with_name("window_worker.py")


@pytest.fixture
def opened(window, monkeypatch):
    # A scripted worker in place of the one that reaches another machine: its last argument is no mode.
    monkeypatch.setattr(runs, "ON_HOST", (sys.executable, str(WORKER)))
    w = window()
    w.actions_["run.on"].trigger()
    (dialog,) = w.findChildren(RunOnPage)
    return w, dialog


def test_a_machine_is_needed(opened):
    _, dialog = opened
    assert not dialog.take.isEnabled()
    for name in ("-oProxyCommand=x", "a b", " "):
        dialog.host.setEditText(name)
        assert not dialog.take.isEnabled()
        assert "Enter a name that ssh knows" in dialog.remark.text()
    dialog.host.setEditText(" me@gpu ")
    assert dialog.take.isEnabled()
    assert dialog.elsewhere == Elsewhere("me@gpu")


@pytest.mark.slow
def test_what_is_entered_runs_there_and_toggles_act(qtbot, opened, tmp_path):
    w, dialog = opened
    dialog.host.setEditText("gpu")
    dialog.audio.setText("/data/talk.wav")
    dialog.transcripts.setText("/data/t.tsv")
    dialog.take.click()
    wait_for_frames(qtbot, w)
    assert w.runs.control._process is not None
    assert w.runs.control._process.arguments()[-1] == "gpu"
    request = w.runs.control.request
    assert request is not None
    assert (request.audio, request.transcripts) == (("/data/talk.wav",), "/data/t.tsv")
    assert w.runs.current.is_shown
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    assert w.runs.next.hosts() == ["gpu"]
    # Again on that machine; the next run of this one is here.
    w.runs.restart()
    wait_for_frames(qtbot, w)
    assert w.runs.control._process.arguments()[-1] == "gpu"
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    start_run(qtbot, w, tmp_path)
    assert w.runs.control._process.arguments()[-1] != "gpu"


def test_the_machines_are_remembered_the_last_one_first(qtbot, opened):
    w, dialog = opened
    dialog.close()
    for name in ("again", *map(str, range(10)), "again"):
        w.runs.start(elsewhere=Elsewhere(name))  # all but the first find a run under way
    qtbot.waitUntil(w.when.is_running)
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    w.actions_["run.on"].trigger()
    dialog = w.findChildren(RunOnPage)[-1]
    assert [dialog.host.itemText(row) for row in range(dialog.host.count())] == ["again", *"9876543"]
    assert dialog.host.currentText() == "again"


@pytest.mark.slow
def test_a_dropped_folder_of_a_model_is_used_by_the_next_run(qtbot, window, tmp_path):
    folder = write_model(tmp_path / "tri1")
    w = window()
    before = w.runs.next.audio
    w.files.drop([folder])
    assert w.pipeline.next.model_directory == str(folder)
    assert w.pages.currentWidget() is w.desk
    qtbot.waitUntil(lambda: bool(w.notices.banners))
    (text,) = texts(w, "info")
    assert text.startswith("The next run uses tri1: Kaldi GMM final.mdl: ")
    assert w.runs.next.audio is before
    # The form says it as long as the folder is used, and what it lacks.
    card = w.desk.form.model
    assert card.isVisible()
    assert card.text().startswith("tri1: Kaldi GMM final.mdl: ")
    assert "with phones that the acoustic model lacks" in card.text()
    w.pipeline.set("model_directory", "")
    assert not card.isVisible()


def test_an_error_that_names_a_setting_leads_to_it(window):
    w = window()
    w.runs.current.failed.emit("It pronounces 'the' with phones that the model lacks (graph.dictionary).", "")
    (banner,) = w.notices.banners
    press(banner, "Dictionary…")
    assert w.pages.currentWidget() is w.desk
    assert w.desk.form.fields["graph.dictionary"].isVisible()


def test_open_model_asks_for_a_folder(qtbot, window, tmp_path, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    w = window()
    w.actions_["file.model"].trigger()
    assert w.pipeline.next.model_directory == ""
    assert texts(w, "error") == [f"{tmp_path} holds no acoustic model: none of final.mdl, am/final.mdl, mdef is there."]
    w.notices.clear()
    (tmp_path / "final.mdl").write_bytes(b"\0Bnothing")
    w.files.drop([tmp_path])
    qtbot.waitUntil(lambda: bool(w.notices.banners))
    assert texts(w, "error") == [f"{tmp_path / 'final.mdl'} is cut short or corrupt: there is no token at byte 2"]
    write_model(tmp_path)
    w.actions_["file.model"].trigger()
    assert w.pipeline.next.model_directory == str(tmp_path)


HEADER = "file\ttranscript\n"


def folder_with(folder: Path, *names: str, text: str = HEADER) -> Path:
    (folder / "a.wav").write_bytes(b"RIFF\0\0\0\0WAVE\xff")
    for name in names:
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    "name", [f"t{suffix}" for suffix in sorted(transcripts.SUFFIXES)] + ["text", "84-121.trans.txt"]
)
def test_the_only_transcripts_next_to_the_audio_are_used(name, tmp_path):
    folder_with(tmp_path, name)
    for one in (chosen([tmp_path]), chosen([tmp_path / "a.wav"])):
        assert (one.transcripts, one.found) == (str(tmp_path / name), True)


def test_of_several_kinds_the_likeliest_is_taken_and_of_two_of_a_kind_none(tmp_path):
    assert set(audio_choice.WORDS) == set(tables.TEXT)
    folder_with(tmp_path, "t.tsv", "t.csv", "hypotheses.ctm", "text")
    assert chosen([tmp_path]).transcripts == str(tmp_path / "t.tsv")
    (tmp_path / "u.tsv").write_text(HEADER)
    assert chosen([tmp_path]).transcripts is None
    assert chosen([tmp_path, tmp_path / "t.csv"]).transcripts == str(tmp_path / "t.csv")


def test_other_tables_and_texts_are_taken_only_if_they_are_chosen(tmp_path):
    folder_with(tmp_path, "pitch.csv", text="file,pitch\na.wav,120\n")
    folder_with(tmp_path, "words.txt", text="a two nine\n")
    assert chosen([tmp_path]).transcripts is None
    table = str(tmp_path / "words.txt")
    one = chosen([tmp_path / "a.wav", table])
    assert (one.transcripts, one.found) == (table, False)
    with pytest.raises(ValueError, match="Transcripts alone"):
        chosen([table])
