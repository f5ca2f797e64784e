"""What the window remembers: nothing in a file of settings is run, whoever has written it."""

import json
import os
import re

import pytest
from command_line import python
from PySide6.QtCore import QByteArray

from app.application import APPLICATION
from app.model.recent import FILE, SCHEMA, Memory, layout_key
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
    memory, other = Memory(), Memory()
    memory.remember("theme", "dark")
    other.remember("hosts", ["gpu", "caf\udce9"])
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
    for value in (*others, [seal, text]):
        file.write_text(json.dumps(tree | {"values": {"geometry": value}}))
        assert Memory().state("geometry") is None, value
    file.write_text(json.dumps(tree | {"values": {"layout/now": f"{seal} {text}"}}))  # of another key
    assert Memory().state("layout/now") is None
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
    kept = kind in ("nowhere", "huge", "deep", "list", "older")
    assert (Memory().text("theme") == "dark") == kept
    assert SCHEMA > 1
