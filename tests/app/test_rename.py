"""Renaming a session: its file, what lies next to it, the list of recent sessions, and what is refused."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QInputDialog
from shown_windows import answer, errors

from app.model.bookmarks import sidecar
from app.window.welcome import SessionRow


@pytest.mark.slow
def test_f2_renames_the_session_shown_with_its_bookmarks(qtbot, opened, finished):
    opened.bookmarks.add((100, 200), "slow")
    opened.axis.select(3.0, 4.0)
    opened.playhead.seek(500)
    settings = opened.pipeline.next
    qtbot.keyClick(opened, Qt.Key.Key_F2)
    assert answer(opened, " call 7 ") == finished.stem
    renamed = finished.with_name("call 7.asrs")
    assert opened.windowTitle() == "call 7 – asrscope"
    assert sorted(path.name for path in finished.parent.glob("*.asrs*")) == [renamed.name, sidecar(renamed).name]
    assert opened.memory.sessions() == [renamed]
    # Nothing else has changed, and the session can still be worked with.
    assert (opened.axis.selected, opened.playhead.cursor_frame) == ((3.0, 4.0), 500)
    assert opened.pipeline.next is settings
    opened.bookmarks.add((300, 400), "noise")
    assert [one.note for one in opened.bookmarks.all] == ["slow", "noise"]
    opened.playhead.reopen()
    assert opened.playhead.path == renamed
    assert errors(opened) == []


CHOOSE = "A name of a file has no slashes and no control characters; choose another."
REFUSED = {
    "taken": "taken.asrs exists already; choose another name.",
    "marked.asrs": "marked.asrs.bookmarks.json exists already; choose another name.",
    "../away": CHOOSE,
    "two\nlines": CHOOSE,
    "n" * 300: "finished.asrs cannot be renamed: File name too long.",
    "": None,
    "finished.asrs": None,
}


@pytest.mark.slow
def test_what_is_no_free_name_is_refused_in_a_sentence(opened, finished):
    (finished.parent / "taken.asrs").write_bytes(b"another")
    (finished.parent / "marked.asrs.bookmarks.json").write_bytes(b"{}")
    before = sorted(finished.parent.glob("*.asrs*"))
    for name, says in REFUSED.items():
        opened.notices.clear()
        opened.files.rename(finished, name)
        assert errors(opened) == ([] if says is None else [says])
        assert sorted(finished.parent.glob("*.asrs*")) == before
    assert (finished.parent / "taken.asrs").read_bytes() == b"another"


def test_bookmarks_that_cannot_follow_leave_the_session_where_it_was(opened, finished, monkeypatch):
    opened.bookmarks.add((100, 200), "slow")
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if path == sidecar(finished):
            raise PermissionError(13, "Permission denied")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    opened.files.rename(finished, "new")
    assert errors(opened) == ["finished.asrs cannot be renamed: Permission denied."]
    assert sorted(path.name for path in finished.parent.glob("*.asrs*")) == [finished.name, sidecar(finished).name]
    assert opened.playhead.path == finished


def test_a_session_that_is_being_recorded_is_refused(window, recording):
    made = recording("live.asrs")
    made.write(100)
    w = window()
    w.files.rename(made.path, "other")
    assert errors(w) == ["live.asrs is still being recorded; stop the run first."]
    w.open_session(made.path)
    assert not w.actions_.trigger("file.rename")
    assert w.actions_.unavailable_reason("file.rename") == (
        "The session shown is still being recorded; stop the run first."
    )
    assert made.path.exists()


@pytest.mark.slow
def test_a_recent_session_is_renamed_by_key_and_menu(qtbot, opened, finished):
    opened.show_welcome()
    rows = [row for row in opened.welcome.findChildren(SessionRow) if row.objectName() == "recent-session"]
    row = rows[-1]
    row.setFocus(Qt.FocusReason.TabFocusReason)
    override = QKeyEvent(QKeyEvent.Type.ShortcutOverride, Qt.Key.Key_F2, Qt.KeyboardModifier.NoModifier)
    override.ignore()
    row.event(override)
    assert override.isAccepted(), "the action of the window leaves the key to the row"
    qtbot.keyClick(row, Qt.Key.Key_F2)
    assert answer(opened, "first") == "finished"
    (row,) = (row for row in opened.welcome.findChildren(SessionRow) if row.isVisible() and row._renames)
    assert row.accessibleName() == "Open first.asrs"
    menu = row.menu()
    menu.actions()[1].trigger()
    assert [entry.text() for entry in menu.actions()] == ["Open", "Rename…"]
    answer(opened, "second")
    assert opened.memory.sessions() == [finished.with_name("second.asrs")]
    menu.close()
    # What ships with the program keeps its name.
    sample = next(row for row in opened.welcome.findChildren(SessionRow) if row.objectName() == "sample-session")
    qtbot.keyClick(sample, Qt.Key.Key_F2)
    assert not [one for one in opened.findChildren(QInputDialog) if one.isVisible()]
