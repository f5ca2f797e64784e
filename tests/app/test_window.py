"""The window driven as a person would: clicks, keys, drags, drops, wrong files, a killed worker, ways out."""

import os
import re
import signal
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, QStandardPaths, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication
from shown_windows import NOT_READ, errors, press, texts, wait_for_frames

from app.model.recent import Memory
from app.window.main_window import MainWindow
from profiler.session.reader import Session
from tests.app.worker_process import process_id


@pytest.fixture
def audio(tmp_path):
    files = [tmp_path / "audio" / name for name in ("one.wav", "two.flac")]
    files[0].parent.mkdir()
    for file in files:
        file.write_bytes(NOT_READ)
    return files


def running(qtbot, window: MainWindow, audio: list[Path]) -> Path:
    window.files.take_audio(audio)
    qtbot.mouseClick(window.top.run, Qt.MouseButton.LeftButton)
    wait_for_frames(qtbot, window)
    return Path(window.runs.control.session)


def drop(window: MainWindow, *paths: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    both = Qt.DropAction.MoveAction | Qt.DropAction.CopyAction
    how = (both, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier)
    for event in (QDragEnterEvent(QPoint(200, 200), *how), QDropEvent(QPointF(200, 200), *how)):
        assert event.proposedAction() == Qt.DropAction.MoveAction
        QApplication.sendEvent(window, event)
        assert event.isAccepted()
        assert event.dropAction() == Qt.DropAction.CopyAction, "the file stays where it is"


def test_a_run_is_started_followed_marked_and_stopped_by_hand(qtbot, window, audio):
    w = window()
    path = running(qtbot, w, audio)
    assert w.pages.currentWidget() is w.desk
    assert w.playhead.path == path
    assert w.playhead.following
    assert "REC" in w.top.recording.text()
    assert not w.top.run.isEnabled()
    assert w.desk.transport.live.isChecked()
    assert w.desk.transport.live.text() == "Live"
    w.actions_.trigger("run.mark")
    qtbot.waitUntil(lambda: bool(w.playhead.session.markers))
    qtbot.mouseClick(w.top.stop, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: w.when.is_idle() and not w.playhead.live)
    assert w.top.recording.text() == ""
    assert w.desk.transport.live.isHidden()
    assert Session.open(path).state == "stopped"
    assert errors(w) == []
    assert Memory().sessions() == [path]


@pytest.mark.slow
def test_live_is_lit_while_the_charts_are_of_the_newest_frame_and_else_leads_back(qtbot, window, audio):
    w = window()
    running(qtbot, w, audio)
    live = w.desk.transport.live
    w.actions_.trigger("view.left")
    w.actions_.trigger("view.left")
    assert w.playhead.following
    assert (live.isChecked(), live.text()) == (False, "Back to live")
    live.click()
    assert (live.isChecked(), live.text()) == (True, "Live")
    assert w.axis.following
    w.actions_.trigger("view.pause")
    assert (live.isChecked(), live.text()) == (False, "Back to live")
    qtbot.waitUntil(lambda: w.desk.transport.clock.text().startswith("Paused "))
    live.click()
    assert live.text() == "Live"


def test_a_session_has_the_name_of_ones_own_audio(qtbot, window, audio):
    w = window()
    w.pipeline.set("search.beam", 9.0)
    path = running(qtbot, w, audio[:1])
    assert path.stem.endswith("-one")
    assert not w.runs.control.request.chosen, "nobody chose transcripts"


def test_closing_the_session_of_a_run_asks_and_leaves_no_empty_desk(qtbot, window, audio, finished):
    w = window()
    running(qtbot, w, audio)
    own = w.playhead.path
    w.open_session(finished)
    assert w.top.recording.text() == "REC", "a clock that stands still would say that nothing goes on"
    qtbot.keyClick(w, Qt.Key.Key_W, Qt.KeyboardModifier.ControlModifier)
    assert w.playhead.path == own, "behind another session is that of the run"
    for answer in ("Cancel", "Stop and close"):
        qtbot.keyClick(w, Qt.Key.Key_W, Qt.KeyboardModifier.ControlModifier)
        (question,) = w.notices.banners
        assert (question.kind, w.playhead.path) == ("question", own)
        press(question, answer)
    qtbot.waitUntil(lambda: w.playhead.path is None)
    assert w.pages.currentWidget() is w.welcome
    assert Session.open(own).state == "stopped"


def test_a_session_that_another_process_records_says_so_and_shows_its_settings(qtbot, window, recording):
    made = recording("other.asrs")
    made.write(600)
    w = window()
    w.pipeline.set("search.beam", 9.0)
    w.pipeline.choose("ctc")
    assert w.open_session(made.path)
    assert w.windowTitle() == "other – recorded by another process – asrscope"
    assert "REC" in w.top.recording.text()
    qtbot.waitUntil(lambda: w.pipeline.preset_shown.name == "gmm")
    assert w.pipeline.locked
    assert not w.desk.form.which.recorded.isHidden()
    w.desk.form.which.next.click()
    assert w.pipeline.locked is None


def test_the_figures_are_those_of_the_session(qtbot, opened):
    assert opened.top.rtf.value == "0.100"
    assert opened.top.wer.value == f"{100 * 2 / 12:.1f} %"
    opened.playhead.seek(600)
    assert opened.top.wer.value == f"{100 * 1 / 6:.1f} %"
    opened.playhead.seek(300)
    assert opened.top.wer.value == "–"
    assert "480 spans" in opened.status.cost.full


def test_a_killed_worker_leaves_a_replayable_session_and_a_way_on(qtbot, window, audio):
    w = window()
    path = running(qtbot, w, audio)
    qtbot.wait(400)
    os.kill(process_id(w.runs.control), signal.SIGKILL)
    qtbot.waitUntil(lambda: bool(errors(w)))
    (text,) = errors(w)
    assert re.match(r"The worker stopped \(killed by signal 9, SIGKILL\) at \d:\d\d\. ", text)
    assert text.endswith(f"The session up to then is saved: {path}")
    assert w.playhead.session.state == "crashed"
    frames = w.playhead.n_frames
    assert frames > 0
    w.playhead.seek(10)
    w.playhead.play()
    qtbot.waitUntil(lambda: w.playhead.cursor_frame > 12)
    w.playhead.pause()
    press(w.notices.banners[-1], "Restart")
    qtbot.waitUntil(lambda: w.when.is_running() and w.playhead.path != path)
    assert errors(w) == []


@pytest.mark.slow
def test_building_shows_progress_and_can_be_cancelled(qtbot, window, audio):
    w = window("slow")
    w.files.take_audio(audio)
    w.top.run.click()
    qtbot.waitUntil(lambda: "Building the search graph" in "".join(texts(w, "progress")))
    (banner,) = w.notices.banners
    assert 0 <= banner.bar.value() < banner.bar.maximum()
    assert banner.parentWidget().geometry().top() > w.pages.height() / 2, "no title is covered"
    press(banner, "Cancel")
    qtbot.waitUntil(w.when.is_idle)
    assert texts(w, "progress") == []


def test_keys_zoom_pan_and_fit(qtbot, opened):
    opened.desk.setFocus()
    assert opened.axis.visible == (0.0, 12.0)
    qtbot.keyClick(opened, Qt.Key.Key_W)
    before = opened.axis.visible
    assert before[1] - before[0] < 12.0
    qtbot.keyClick(opened, Qt.Key.Key_A)
    assert opened.axis.visible[0] < before[0]
    qtbot.keyClick(opened, Qt.Key.Key_F)
    assert opened.axis.visible == (0.0, 12.0)


def test_the_scrub_bar_goes_where_it_is_clicked_and_dragged(qtbot, opened):
    bar = opened.desk.transport.bar
    middle = bar.rect().center().y()
    half = QPoint(round(bar.x_of(600)), middle)
    qtbot.mousePress(bar, Qt.MouseButton.LeftButton, pos=half)
    assert abs(opened.playhead.cursor_frame - 600) <= 3
    qtbot.mouseRelease(bar, Qt.MouseButton.LeftButton, pos=half)
    assert [m.frame for m in bar.marks] == [600]
    assert bar.starts == (0, 600)
    bar.setFocus()
    at = opened.playhead.cursor_frame
    qtbot.keyClick(bar, Qt.Key.Key_Right)
    assert opened.playhead.cursor_frame == at + 100


def test_wrong_files_are_refused_in_a_sentence(qtbot, opened, finished, tmp_path):
    for content in (b"", bytes(range(256)) * 40, b"hello\n" * 500, finished.read_bytes()[:9000]):
        bad = tmp_path / "bad.asrs"
        bad.write_bytes(content)
        drop(opened, bad)
        (sentence,) = errors(opened)
        assert "bad.asrs" in sentence
        assert opened.playhead.path == finished
        assert Memory().sessions() == [finished]
        opened.notices.clear()


def test_audio_is_dropped_for_the_next_run_and_sessions_are_opened(window, audio, finished, tmp_path):
    w = window()
    drop(w, *audio)
    assert w.runs.next.audio.paths == tuple(str(p) for p in audio)
    drop(w, audio[0].parent)
    assert w.runs.next.audio.files == 2
    drop(w, finished)
    assert w.playhead.path == finished
    assert errors(w) == []
    before = w.runs.next.audio
    (tmp_path / "notes.pdf").write_bytes(b"%PDF")
    (tmp_path / "empty-folder").mkdir()
    for name in ("notes.pdf", "empty-folder", "gone.wav"):
        drop(w, tmp_path / name)
        assert name in errors(w)[-1]
        assert w.runs.next.audio == before


def test_a_copy_is_a_session_like_the_first(qtbot, opened, finished, tmp_path):
    opened.session_files.copy_to(finished, tmp_path / "copy")
    assert (tmp_path / "copy.asrs").read_bytes() == finished.read_bytes()
    opened.session_files.copy_to(finished, finished)
    opened.session_files.copy_to(finished, tmp_path / "no" / "folder" / "x.asrs")
    assert len(errors(opened)) == 2


def test_a_session_removed_while_open_is_no_crash(opened, finished):
    finished.unlink()
    opened.playhead.seek(100)
    opened.playhead.step(1)
    assert opened.playhead.cursor_frame == 600


def test_where_sessions_cannot_be_written_the_banner_says_so(qtbot, window, audio, tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("ASRSCOPE_SESSIONS", str(blocked / "sessions"))
    w = window()
    w.files.take_audio(audio)
    w.top.run.click()
    assert errors(w)[0].startswith("Sessions cannot be written")
    assert w.when.is_idle()


@pytest.mark.slow
def test_choices_survive_a_restart(window):
    w = window()
    w.choose_theme("light")
    w.pipeline.choose("gmm-selected")
    w.close()
    again = window()
    assert again.pipeline.preset.name == "gmm-selected"
    assert again.memory.text("theme") == "light"


def test_a_run_cancelled_before_its_first_frame_leaves_no_session(qtbot, window, audio):
    w = window("late")
    w.files.take_audio(audio)
    w.top.run.click()
    qtbot.waitUntil(lambda: w.when.is_running() and w.playhead.path is not None)
    path = w.playhead.path
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    if w.playhead.n_frames:
        return  # it was quicker
    assert not path.exists()
    assert Memory().sessions() == []
    assert w.pages.currentWidget() is w.welcome


def test_a_session_goes_to_the_bin_when_confirmed(window, finished, tmp_path):
    (tmp_path / "data").mkdir()
    QStandardPaths.setTestModeEnabled(False)  # in which Qt has no bin
    w = window()
    w.open_session(finished)
    w.actions_.trigger("file.delete")
    (banner,) = w.notices.banners
    assert banner.text == f"Move {finished.name} to the bin?"
    press(banner, "Keep")
    assert finished.exists()
    w.actions_.trigger("file.delete")
    press(w.notices.banners[0], "Move to the bin")
    assert not finished.exists()
    assert Memory().sessions() == []
    assert w.pages.currentWidget() is w.welcome
