"""What the window remembers, which nobody can make it run; and sessions renamed, with what lies next to them."""

import json
import os
import re
from pathlib import Path

import pytest
from command_line import python
from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QInputDialog
from shown_windows import answer, errors

from app.application import APPLICATION
from app.model.bookmarks import sidecar
from app.model.recent import FILE, SCHEMA, Memory, layout_key
from app.window.welcome import SessionRow
from profiler.process.children import ROOT

OF_QT = re.compile(r"QSettings|QDataStream|readQVariant|pickle\.|import pickle|restoreState\(|restoreGeometry\(")
ALLOWED = {
    "app/application.py": "has PySide restore nothing",
    "app/model/recent.py": "says why there is none",
    "app/window/desk.py": "bytes with a seal",
    "app/window/docks.py": "bytes with a seal",
    "app/window/first_window.py": "bytes with a seal",
}

HOSTILE = (
    rb"[General]" + b"\n"
    rb"recent=@Variant(\0\0\0\x7f\0\0\0\x18PySide::PyObjectWrapper\0\0\0\0\x32\x80\x4\x95\x27\0\0\0\0\0\0\0\x8c\x5posix"
    rb"\x94\x8c\x6system\x94\x93\x94\x8c\ftouch PICKLE\x94\x85\x94R\x94.)" + b"\n"
)


def test_nothing_else_reads_what_qt_has_written():
    files = [*(ROOT / "app").rglob("*.py"), *(ROOT / "pipelines").rglob("*.py"), *(ROOT / "profiler").rglob("*.py")]
    found = {file.relative_to(ROOT).as_posix() for file in files if OF_QT.search(file.read_text(encoding="utf-8"))}
    assert found == ALLOWED.keys()


def test_a_python_object_in_settings_is_not_made(tmp_path):
    """Neither in those of the program nor in those that Qt reads itself, the user's or the system's."""
    for folder in ("home", "system"):
        for name in ("asrscope/asrscope.conf", "QtProject.conf", "Trolltech.conf"):
            place = tmp_path / folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(HOSTILE)
    read = f"""
    import os
    from PySide6.QtCore import QSettings
    os.chdir({str(tmp_path)!r})
    for name in ("home/QtProject.conf", "home/asrscope/asrscope.conf"):
        QSettings(name, QSettings.Format.IniFormat).value("recent")
    """
    python(read, tmp_path / "home")
    assert (tmp_path / "PICKLE").exists()  # so the files are what they should be
    (tmp_path / "PICKLE").unlink()
    ours = """
    from app.application import application
    from app.model.recent import Memory
    application()
    assert Memory().sessions() == []
    """
    system = {"XDG_CONFIG_DIRS": str(tmp_path / "system"), "QT_QPA_PLATFORM": "offscreen"}
    python(ours + read, tmp_path / "home", **system)
    assert not (tmp_path / "PICKLE").exists()


def test_texts_lists_and_layouts_are_there_again(own_settings, tmp_path):
    memory = Memory()
    memory.remember("theme", "dark")
    Memory().remember("hosts", ["gpu", "caf\udce9"])
    memory.remember_state(layout_key("a/b ü"), QByteArray(b"f\0\xff"))
    memory.remember_state("geometry", QByteArray(b"x" * 3000))
    again = Memory()
    assert (again.text("theme"), again.texts("hosts"), again.layouts()) == ("dark", ["gpu", "caf\udce9"], ["a/b ü"])
    assert again.state(layout_key("a/b ü")) == QByteArray(b"f\0\xff")
    assert again.state("geometry") == QByteArray(b"x" * 3000)
    again.remember(layout_key("a/b ü"), None)
    assert Memory().layouts() == []


def test_qt_gets_only_bytes_that_were_remembered_here(own_settings, tmp_path):
    memory = Memory()
    memory.remember_state("geometry", QByteArray(b"good"))
    file = own_settings / APPLICATION / FILE
    tree = json.loads(file.read_text())
    seal, text = tree["values"]["geometry"].split(" ")
    nearly = seal[:-1] + ("1" if seal.endswith("0") else "0")
    others = [f"{seal} AAAA", f"{seal} {text}=", f" {text}", text, f"{nearly} {text}", "", f"é {text}", seal]
    of_another_key = {"layout/now": f"{seal} {text}"}
    for values in (*({"geometry": value} for value in (*others, [seal, text])), of_another_key):
        file.write_text(json.dumps(tree | {"values": values}))
        assert [Memory().state(key) for key in values] == [None], values
    file.write_text(json.dumps(tree))
    assert Memory().state("geometry") == QByteArray(b"good")
    (key,) = (tmp_path / "data").rglob("window.key")
    assert key.stat().st_mode & 0o077 == 0
    key.unlink()
    assert Memory().state("geometry") is None


@pytest.mark.parametrize("kind", ["fifo", "folder", "zero", "nowhere", "huge", "deep", "list", "older"])
def test_a_file_that_is_none_is_forgotten_and_left(own_settings, kind):
    file = own_settings / APPLICATION / FILE
    file.parent.mkdir(parents=True)
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind in ("zero", "nowhere"):
        file.symlink_to({"zero": "/dev/zero", "nowhere": own_settings / "no/where"}[kind])
    else:
        file.write_text({"huge": " " * (2 << 20), "deep": "[" * 100_000, "list": "[]", "older": '{"schema": 1}'}[kind])
    memory = Memory()
    assert memory.text("theme", "system") == "system"
    memory.remember("theme", "dark")
    assert memory.text("theme") == "dark"
    assert (Memory().text("theme") == "dark") == (kind not in ("fifo", "folder", "zero"))
    assert SCHEMA > 1


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
        opened.session_files.rename(finished, name)
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
    opened.session_files.rename(finished, "new")
    assert errors(opened) == ["finished.asrs cannot be renamed: Permission denied."]
    assert sorted(path.name for path in finished.parent.glob("*.asrs*")) == [finished.name, sidecar(finished).name]
    assert opened.playhead.path == finished


def test_a_session_that_is_being_recorded_is_refused(window, recording):
    made = recording("live.asrs")
    made.write(100)
    w = window()
    w.session_files.rename(made.path, "other")
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
    (row,) = (row for row in opened.welcome.findChildren(SessionRow) if row.accessibleName() == "Open first.asrs")
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
