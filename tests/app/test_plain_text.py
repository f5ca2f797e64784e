"""Text of strangers in widgets: shown as it is written, and nothing that it names is opened."""

import ast
import ctypes
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import Qt, QTextDocument
from PySide6.QtWidgets import QListWidgetItem, QMenu, QWidget

import app
from app.style import plain_text
from app.style.plain_text import Elided
from profiler.process import children
from tests.each import each
from tests.waiting import PATIENCE_S

PACKAGE = Path(app.__file__).parent
THE_ONE = PACKAGE / "style" / "plain_text.py"

NAMES = {
    # Guess HTML, or take it for granted; the last takes an ampersand for a mnemonic.
    "QLabel", "QMessageBox", "QErrorMessage", "QToolTip", "QTextDocument", "QTextBrowser", "QTextEdit",
    "QStaticText", "QGraphicsTextItem", "QWhatsThis", "QProgressDialog", "QInputDialog", "TextItem",
    "LabelItem", "LegendItem", "InfiniteLineLabel", "QPushButton",
}  # fmt: skip
CALLS = {
    "setToolTip", "setStatusTip", "setWhatsThis", "setTextFormat", "setHtml", "setMarkdown", "toHtml",
    "setAccessibleName", "setAccessibleDescription", "setWindowTitle", "drawText", "drawStaticText",
    "setLabel", "setLabels", "setTitle", "QAction", "QMenu", "addLegend", "mightBeRichText",
}  # fmt: skip
OF_FILES = {("setTitle", "writers.py")}  # The title of a PDF, which Qt escapes (see test_pictures)

HOSTILE = (
    "<table><tr><td><img src='{0}'><img src='file://{0}'><a href='file://{0}'>a</a>"
    "<img src='//host/share/x'><img src='{1}'>"
)


def test_text_reaches_widgets_in_one_place_only():
    paths = [path for path in PACKAGE.rglob("*.py") if path != THE_ONE]
    found = [fault for path in paths for fault in _faults(path)]
    assert not found, "go through app.style.plain_text"


def _faults(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = node.id if isinstance(node, ast.Name) else ""
        name = node.attr if isinstance(node, ast.Attribute) else name
        called = node.func if isinstance(node, ast.Call) else None
        call = getattr(called, "attr", None) or getattr(called, "id", "")
        if name in NAMES or (call in CALLS and (call, path.name) not in OF_FILES | QUIET):
            yield f"{path.name}:{node.lineno}: {name or call}"
        # A menu is given an action or a menu, and no text.
        texts = (ast.Constant, ast.Call, ast.JoinedStr, ast.BinOp)
        if call in ("addAction", "addMenu") and (len(node.args) != 1 or isinstance(node.args[0], texts)):
            yield f"{path.name}:{node.lineno}: {call} of a text"
        if isinstance(node, ast.keyword) and node.arg == "html":
            yield f"{path.name}:{node.value.lineno}: html="


QUIET = {("QMenu", "files.py"), ("QMenu", "fields.py"), ("QMenu", "topbar.py")}
"""Menus without a title, at the mouse or under a button."""


@each("text", ["<img src='x.png'>", "a <b>bold</b> name", "&lt;b&gt;", "<?xml?>", "&Save", "line\n<b>two</b>", "plain"])
def test_labels_and_tips_show_what_is_written(qtbot, text):
    label, elided, widget = plain_text.Label(text), Elided(text), QWidget()
    for one in (label, elided, widget):
        qtbot.addWidget(one)
    assert label.textFormat() == elided.textFormat() == Qt.TextFormat.PlainText
    assert label.text() == text
    item, action = QListWidgetItem(), plain_text.new_action(text, widget)
    for target in (widget, item, action):
        plain_text.set_tip(target, text)
        assert _read(target.toolTip()) == text
    plain_text.set_titled_tip(widget, "<i>T</i>", [text], "--set a=<b>")
    assert _read(widget.toolTip()) == f"<i>T</i>\n{text}\n--set a=<b>", "only the title is formatted"
    button = plain_text.Button(text)
    qtbot.addWidget(button)
    assert button.text() == plain_text.add_entry(QMenu(widget), text, lambda: None).text() == text.replace("&", "&&")


def _read(tip: str) -> str:
    """What Qt shows of a tip: QToolTip guesses as QLabel does."""
    if not Qt.mightBeRichText(tip):
        return tip
    document = QTextDocument()
    document.setHtml(tip)
    return document.toPlainText()


def test_what_does_not_show_is_written_out_and_bounded():
    assert plain_text.displayable("\u202egnp.exe\x1b[2J") == "\\u202egnp.exe\\x1b[2J"
    assert plain_text.displayable("one\ntwo") == "one\ntwo"
    assert len(plain_text.displayable("x" * 10**6)) <= plain_text.LONGEST_LINE
    assert plain_text.displayable("x\n" * 10**5).count("\n") <= plain_text.MAX_LINES


@pytest.fixture
def canary(tmp_path):
    """A picture, and whether it was opened since the last call, as the kernel reports."""
    path = tmp_path / "canary.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    opening = 0x20  # IN_OPEN
    if watch < 0 or libc.inotify_add_watch(watch, os.fsencode(path), opening) < 0:
        pytest.skip("this machine has no inotify watch left")

    def opened() -> bool:
        try:
            return bool(os.read(watch, 4096))
        except BlockingIOError:
            return False

    path.read_bytes()
    assert opened(), "the watch does not work"
    yield path, opened
    os.close(watch)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")
def test_nothing_that_a_session_names_is_opened_by_window_or_pictures(tmp_path, canary):
    """The canary would be opened; a pipe that nobody writes to would be waited for, for ever."""
    path, was_opened = canary
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    code = textwrap.dedent("""
        import sys
        from pathlib import Path
        from tests.bench.campaign import desk, sessions
        folder, text = Path(sys.argv[1]), sys.argv[2]
        (folder / sessions.SESSION).write_bytes(sessions.full())
        sessions.renamed(text, folder / sessions.SESSION)
        # Resources without a path are looked for in the current folder.
        path = (folder / sessions.SESSION).rename(folder / "<img src=canary.png>.asrs")
        print(desk.look_at(path))
    """)
    command = children.python("-c", code, str(tmp_path), HOSTILE.format(path, pipe))
    about = {"env": children.environment({"ASRSCOPE_SESSIONS": str(tmp_path)}), "cwd": tmp_path, "timeout": PATIENCE_S}
    done = subprocess.run(command, **about, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["None"]
    assert not was_opened()


def test_what_is_copied_is_what_is_shown(qapp):
    """A line may end within a long name; a name with such places in it would be no file's."""
    selectable = Qt.TextInteractionFlag.TextSelectableByMouse
    name = "a" * 80
    for text, can in ((f"no file {name}", False), ("no such file", True), (name, False)):
        label = plain_text.Wrapped("before")
        label.setText(text)
        assert label.text() == text
        assert bool(label.textInteractionFlags() & selectable) is can
        label.resize(100, 20)
        assert label.minimumSizeHint().width() <= 200
    accents = "e\u0301" * 40
    assert "\u200b\u0301" not in plain_text.breakable(accents)
