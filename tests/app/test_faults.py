"""What goes wrong around the window: crashes of the worker, faults, signals, odd files dropped, odd settings."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QApplication
from shown_windows import NOT_READ, errors, press, show

from app.application import APPLICATION
from app.crash_report import LONGEST_LINE, MAX_LINES, LastWords
from app.gui import caught
from app.model import recent
from app.model.audio_choice import audio_in, chosen
from app.model.processes.run_control import WORKER
from app.window.main_window import MainWindow
from pipelines import config as settings
from pipelines.config import presets
from profiler.process import children
from profiler.session.reader import Session
from tests.app.worker_process import process_id
from tests.each import each
from tests.waiting import PATIENCE_S, wait_for_frames, wait_until

needs_signals = pytest.mark.skipif(os.name != "posix", reason="signals of Unix")


@pytest.fixture
def real(qtbot) -> Iterator[MainWindow]:
    """A window with the real worker."""
    window = MainWindow(WORKER)
    show(qtbot, window)
    yield window
    window.close()


def copied(window: MainWindow) -> str:
    press(window.notices.banners[-1], "Copy report")
    return QGuiApplication.clipboard().text()


@pytest.mark.slow
@needs_signals
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL], ids=lambda n: n.name)
def test_a_crash_of_the_real_worker_is_reported(qtbot, real, number) -> None:
    """With the stack of the interpreter, where the system leaves it the time to write one."""
    real.pipeline.choose("gmm")
    real.runs.start()
    control = real.runs.control
    reported: list[str] = []
    control.progress.connect(lambda stage, _: reported.append(stage))
    qtbot.waitUntil(lambda: bool(reported))  # it is up, and has begun
    os.kill(process_id(control), number)
    qtbot.waitUntil(lambda: bool(errors(real)))
    (text,) = errors(real)
    assert f"killed by signal {number.value}, {number.name}" in text
    report = copied(real)
    assert report.startswith(text)
    assert f"Python {sys.version_info[0]}.{sys.version_info[1]}" in report
    if number == signal.SIGSEGV:
        assert "Fatal Python error: Segmentation fault" in report
        assert "worker.py" in report


def test_last_words_are_whole_lines_and_bounded() -> None:
    words = LastWords()
    for piece in (b"one\ntw", b"o\n\x1b[31mthr", b"ee\nrest"):
        words.add(piece)
    assert words.text.splitlines() == ["one", "two", "\\x1b[31mthree", "rest"]
    words.add(b"x" * 10**7)
    words.add(b"\n" + b"y\n" * 10**5)
    assert len(words.text) < (MAX_LINES + 1) * (LONGEST_LINE + 1)
    words.add(b"Fatal Python error: Aborted\n" + b"  File\n" * 10**5)
    lines = words.text.splitlines()
    assert "Fatal Python error: Aborted" in lines
    assert len(lines) <= MAX_LINES


def test_a_repeated_fault_is_reported_once_and_the_window_goes_on(qtbot, window, tmp_path, capsys) -> None:
    w = window()
    times = []

    def fault() -> None:
        times.append(1)
        raise ValueError(f"{len(times)} <img src='x'>" + "y" * 10**5)

    log = tmp_path / "crash.log"
    with log.open("w", encoding="utf-8") as file, caught(w.notices, file):
        with qtbot.captureExceptions() as raised:
            timer = QTimer(w)
            timer.timeout.connect(fault)
            timer.start(0)
            qtbot.waitUntil(lambda: len(times) > 20)
            timer.stop()
        for kind, value, trace in raised:  # pytest-qt stands before the hook; hand it on
            sys.excepthook(kind, value, trace)
        qtbot.waitUntil(lambda: bool(errors(w)))
        (text,) = errors(w)
        assert text.startswith("A fault of the program: ValueError: 1 <img src='x'>yyy")
        assert text.endswith(f"Details: {log}")
        assert len(text) < 600
        assert "in fault" in copied(w)
    assert log.read_text(encoding="utf-8").count("Traceback") == 1
    capsys.readouterr()
    w.show_desk()
    assert w.pages.currentWidget() is w.desk


@pytest.mark.slow
@needs_signals
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_a_signal_closes_window_and_session(tmp_path: Path, number: signal.Signals) -> None:
    worker = Path(__file__).with_name("window_worker.py")
    code = textwrap.dedent(f"""
        from app.gui import open_window
        import sys
        print("closed", open_window(None, True, (sys.executable, {str(worker)!r})))
    """)
    folder = tmp_path / "sessions"
    own = {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "ASRSCOPE_SESSIONS": str(folder)}
    about = {"env": children.environment(own), "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(children.python("-c", code), **about)
    try:
        wait_until(lambda: process.poll() is not None or any(folder.glob("*.asrs")))
        assert process.poll() is None, process.stderr.read()
        (session,) = folder.glob("*.asrs")
        wait_for_frames(session)
        process.send_signal(number)
        out, complaints = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert out.split() == ["closed", "0"], complaints
    assert "Traceback" not in complaints
    with Session.open(session) as read:
        assert read.state == "stopped"


def drop(window: MainWindow, *paths: Path | str) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    copy = Qt.DropAction.CopyAction
    QApplication.sendEvent(window, QDragEnterEvent(QPoint(200, 200), copy, data, left, none))
    QApplication.sendEvent(window, QDropEvent(QPointF(200, 200), copy, data, left, none))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_dropped_is_taken_or_refused_in_one_sentence(window, tmp_path: Path) -> None:
    w = window()
    os.mkfifo(tmp_path / "pipe.wav")
    (tmp_path / "link.asrs").symlink_to("/dev/zero")
    (tmp_path / "net.onnx").write_bytes(b"\x08\x01")
    (tmp_path / "talk.m4a").write_bytes(NOT_READ)
    (tmp_path / "empty.asrs").mkdir()
    (tmp_path / "notes.wav").write_text("Töne: none.\n" * 1000)
    (tmp_path / "notes.asrs").write_text("hello")
    (tmp_path / "fine.wav").write_bytes(NOT_READ)
    (tmp_path / "empty.wav").touch()
    before = w.runs.next.audio
    for names, says in (
        (["pipe.wav"], "is a pipe or a device; choose an audio file."),
        (["link.asrs"], "is a pipe or a device"),
        (["net.onnx"], "The format of net.onnx is not supported"),
        (["talk.m4a"], "talk.m4a is not read; ffmpeg converts it: ffmpeg -i talk.m4a talk.wav."),
        (["empty.asrs"], "is a folder"),
        (["n" * 300 + ".wav"], "does not exist."),
        (["notes.wav"], "notes.wav is text, not sound; WAV, FLAC, OGG, Opus, MP3,"),
        (["fine.wav", "empty.wav"], "empty.wav is empty (0 bytes); WAV, FLAC, OGG, Opus, MP3,"),
        (["notes.asrs"], "notes.asrs: this is not a session file"),
    ):
        drop(w, *(tmp_path / name for name in names))
        (notice,) = w.notices.banners
        assert notice.kind == "error"
        assert says in notice.text, names
        assert w.runs.next.audio is before
        w.notices.clear()


@each("suffix", ["flac", "wav", "mp3", "ogg", "aiff", "au", "caf", "w64", "rf64"])
def test_sound_is_taken_for_sound(tmp_path: Path, suffix: str) -> None:
    sound = tmp_path / f"voice.{suffix}"
    soundfile.write(sound, np.zeros(1600, np.float32), 16_000)
    assert chosen([sound]).paths == (str(sound),)
    assert chosen([tmp_path]).files == 1


def test_sound_without_a_header_is_taken_where_it_is_named_or_alone(tmp_path: Path) -> None:
    (tmp_path / "a.raw").write_bytes(bytes(1600))
    assert chosen([tmp_path / "a.raw"]).files == chosen([tmp_path]).files == 1
    soundfile.write(tmp_path / "a.wav", np.zeros(1600, np.float32), 16_000)
    assert audio_in(tmp_path) == [tmp_path / "a.wav"]
    nist = tmp_path / "sa1.wav"
    nist.write_bytes(b"NIST_1A\n   1024\nchannel_count -i 1\nend_head\n".ljust(1024) + b"aa" * 4000)
    assert chosen([nist]).files == 1


def test_a_folder_without_sound_is_refused_when_it_is_chosen(window, tmp_path: Path) -> None:
    """It was accepted, and the run that followed ended at once."""
    w = window()
    before = w.runs.next.audio
    (tmp_path / "b.wav").write_text("no sound\n" * 100)
    (tmp_path / "a.flac").touch()
    drop(w, tmp_path)
    assert errors(w) == [f"No file in the folder {tmp_path} is sound: a.flac is empty (0 bytes)."]
    assert w.runs.next.audio is before
    (tmp_path / "c.wav").write_bytes(NOT_READ)
    assert chosen([tmp_path]).files == 3, "one that may be sound is enough"


HOSTILE: tuple[object, ...] = (
    "\0", "x" * 5000, "/dev/zero", "<img src='/dev/zero'>", "../../etc", 10**18, -1, 2.5, [], ["\0", 5, "x" * 5000],
    "0" * 64 + " " + "/////w==" * 100, "/////w==" * 100, {"a": 1}, True, None, "\ud800",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:16])
def test_settings_of_no_sense_are_ignored(qtbot, own_settings, finished, value: object) -> None:
    layout = ("layout/now", "layout/name", "layout/form", "layouts/mine")
    values = dict.fromkeys(("recent", "audio", "theme", "preset", "geometry", *layout), value)
    recent.Memory().remember("nothing", None)  # so that there is a file
    place = own_settings / APPLICATION / recent.FILE
    place.write_text(json.dumps({"schema": recent.SCHEMA, "values": values}))
    w = MainWindow((sys.executable, "-c", "pass"))
    qtbot.addWidget(w)
    w.show()
    w.show_desk()
    assert w.memory.sessions() == []
    assert w.memory.text("theme", "system", known=("system",)) == "system"
    assert w.pipeline.preset.name == presets.DEFAULT
    assert w.open_session(finished)
    assert w.size().width() < 10_000
    w.close()


def test_a_setting_takes_any_path_that_is_typed(qtbot, window) -> None:
    w = window()
    w.show_desk()
    for text in ("\0", "x" * 5000, "/dev/zero"):
        for option in w.pipeline.options:
            if option.type == "text":
                w.desk.form.fields[option.key].edited.emit(option.key, text)
    w.refresh()
    assert settings.to_dict(w.pipeline.next)
