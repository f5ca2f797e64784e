"""The audio of the next run as a list: added to, reordered, removed from, and refused with a reason."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog
from shown_windows import NOT_READ

from app.window.main_window import MainWindow
from app.window.tasks.next_run import PlaylistPage


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


def window_of(dialog: PlaylistPage) -> MainWindow:
    made = dialog.window()
    assert isinstance(made, MainWindow)
    return made


def test_the_list_is_changed_by_keys_and_feeds_the_next_run(qtbot, dialog, files, monkeypatch):
    runs = window_of(dialog).runs
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


def test_several_are_moved_together_and_a_folder_is_one_entry(dialog, files):
    dialog.add([files[2], files[0].parent])
    assert names(dialog)[3] == "speech/"
    for row in (2, 3):
        dialog.list.item(row).setSelected(True)
    dialog.list.item(0).setSelected(False)
    dialog.up.click()
    assert names(dialog) == ["b.wav", "c.wav", "speech/", "a.wav"]
    dialog.list.selectAll()
    assert not dialog.up.isEnabled()
    dialog.remove.click()
    assert names(dialog) == []
    assert not dialog.take.isEnabled()


@pytest.mark.slow
def test_a_file_that_is_gone_is_reported_in_the_dialog(dialog, files):
    runs = window_of(dialog).runs
    before = runs.next.audio
    files[1].unlink()
    dialog.take.click()
    assert dialog.isVisible()
    assert dialog.about.text() == f"{files[1]} does not exist."
    assert runs.next.audio is before


def test_transcripts_go_with_the_last_of_their_files(dialog, files, tmp_path):
    other = tmp_path / "other" / "d.wav"
    other.parent.mkdir()
    other.write_bytes(NOT_READ)
    dialog.list.selectAll()
    dialog.remove.click()
    dialog.add([other])
    dialog.take.click()
    audio = window_of(dialog).runs.next.audio
    assert audio is not None
    assert (audio.paths, audio.transcripts) == ((str(other),), None)
