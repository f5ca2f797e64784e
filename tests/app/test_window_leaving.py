"""Ways out of a session: a run cancelled early, closing, the bin."""

from PySide6.QtCore import QStandardPaths
from shown_windows import NOT_READ, press

from app.model.recent import Memory


def test_a_run_cancelled_before_its_first_frame_leaves_no_session(qtbot, window, tmp_path):
    audio = tmp_path / "one.wav"
    audio.write_bytes(NOT_READ)
    w = window("late")
    w.files.take_audio([audio])
    w.top.run.click()
    qtbot.waitUntil(lambda: w.when.is_running() and w.playhead.path is not None)
    path = w.playhead.path
    assert w.playhead.n_frames == 0
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    if w.playhead.n_frames:
        return  # it was quicker
    assert not path.exists()
    assert Memory().sessions() == []
    assert w.pages.currentWidget() is w.welcome


def test_a_session_goes_to_the_bin_when_confirmed(qtbot, window, finished, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
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
    (banner,) = w.notices.banners
    press(banner, "Move to the bin")
    assert not finished.exists()
    assert Memory().sessions() == []
    assert w.pages.currentWidget() is w.welcome
