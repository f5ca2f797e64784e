"""Bookmarks lie in a file next to the session, are marked on the time axis, and are selected by their notes."""

import json
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot
from shown_windows import answer, errors
from views_desk import amount, pixels, settle

from app.model.bookmarks import Bookmark, read, sidecar
from app.model.playhead import Playhead
from app.model.time_axis import TimeAxis
from app.pictures.request import PictureError, PictureRequest, extent_of
from app.style.theme import theme
from app.window.main_window import MainWindow
from profiler.session.reader import Session


def bookmark(qtbot: QtBot, window: MainWindow, first_s: float, last_s: float, note: str) -> str:
    """Bookmark a range by keys; return the note that was offered."""
    window.axis.select(first_s, last_s)
    window.activateWindow()  # after the dialog of the one before
    settle()
    qtbot.keyClick(window, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
    return answer(window, note)


def texts(window: MainWindow) -> list[str]:
    """Of the actions that go to a bookmark."""
    return [action.text for action in window.actions_ if action.id.startswith("bookmarks.go.")]


@pytest.mark.slow
def test_a_selection_is_bookmarked_found_again_renamed_and_deleted(qtbot, opened, finished):
    before = finished.read_bytes()
    assert not opened.actions_.trigger("bookmark.add"), "nothing is selected"
    assert bookmark(qtbot, opened, 7.0, 8.0, "slow  search") == ""
    bookmark(qtbot, opened, 1.0, 2.5, "noise & <b>")
    assert finished.read_bytes() == before, "nothing is written into the session"
    assert json.loads(sidecar(finished).read_bytes())["bookmarks"] == [
        {"first_frame": 700, "last_frame": 800, "note": "slow  search"},
        {"first_frame": 100, "last_frame": 250, "note": "noise & <b>"},
    ]
    assert texts(opened) == ["Go to bookmark: noise & <b>", "Go to bookmark: slow  search"], "in order of time"
    opened.axis.set_visible(0.0, 3.0)
    assert opened.actions_.trigger("bookmarks.go.2")
    assert opened.axis.selected == (7.0, 8.0)
    assert opened.axis.visible == pytest.approx((6.0, 9.0))
    assert bookmark(qtbot, opened, 7.0, 8.0, "search") == "slow  search"
    assert texts(opened)[1:] == ["Go to bookmark: search"]
    assert opened.actions_.trigger("bookmarks.delete")
    assert texts(opened) == ["Go to bookmark: noise & <b>"]
    assert not opened.actions_.trigger("bookmarks.delete"), "what is selected has no bookmark now"
    opened.close_session()
    assert texts(opened) == []
    opened.open_session(finished)
    assert texts(opened) == ["Go to bookmark: noise & <b>"]
    assert errors(opened) == []


def listed(session: str, *rows: tuple[int, int, str]) -> str:
    """A file of bookmarks."""
    keys = ("first_frame", "last_frame", "note")
    known = [dict(zip(keys, row, strict=True)) for row in rows]
    return json.dumps({"format": "asrscope bookmarks 1", "session": session, "bookmarks": known})


@pytest.mark.slow
def test_a_file_that_is_no_list_of_its_bookmarks_is_reported_and_left(qtbot, window, finished):
    with Session.open(finished) as session:
        number = str(session.meta["session_id"])
    opened = window()
    for written, says in (
        ("{", "this is not JSON"),
        ('{"theme": "dark"}', "these are not bookmarks of asrscope"),
        (listed("another"), "these are the bookmarks of another session"),
        (listed(number, (9, 9, "none")), "last_frame must be above first_frame"),
    ):
        sidecar(finished).write_text(written)
        opened.open_session(finished)
        (sentence,) = errors(opened)
        assert says in sentence
        assert str(sidecar(finished)) in sentence
        opened.notices.banners[-1].dismiss()
        settle()
        bookmark(qtbot, opened, 1.0, 2.0, "more")
        assert errors(opened) == [sentence]
        assert sidecar(finished).read_text() == written
        assert opened.bookmarks.all == ()
        opened.notices.clear()


def test_where_no_file_can_be_written_one_sentence_says_so(qtbot, window, finished):
    path = finished.rename(finished.with_name("s" * 240 + ".asrs"))  # the name of the other file is too long
    opened = window()
    opened.open_session(path)
    assert errors(opened) == []
    bookmark(qtbot, opened, 1.0, 2.0, "note")
    (sentence,) = errors(opened)
    assert "the list of bookmarks cannot be written there" in sentence
    assert opened.bookmarks.all == ()


def test_bookmarks_are_copied_and_moved_to_the_bin_with_the_session(qtbot, opened, finished, tmp_path, monkeypatch):
    bookmark(qtbot, opened, 1.0, 2.0, "kept")
    copy = tmp_path / "copy.asrs"
    opened.session_files.copy_to(finished, copy)
    with Session.open(copy) as session:
        assert read(session) == [Bookmark(100, 200, "kept")]
    binned: list[str] = []
    bin = SimpleNamespace(moveToTrash=lambda path: binned.append(path) or True)
    monkeypatch.setattr("app.window.actions.files.QFile", bin)
    opened.session_files.delete(finished)
    assert binned == [str(finished), str(sidecar(finished))]


def test_a_picture_selects_a_bookmark_by_its_note(finished, qapp):
    playhead = Playhead(TimeAxis())
    playhead.open(finished)
    sentence = "--select takes FROM..TO in seconds, an utterance, a stage or a bookmark"
    with pytest.raises(PictureError, match=sentence):
        extent_of(PictureRequest(select=("slow part",)), playhead.snapshot())
    rows = (100, 250, "slow part"), (7, 9, "voice-600"), (1000, 5000, "too long")
    sidecar(finished).write_text(listed(playhead.session.meta["session_id"], *rows))

    def selected(what: str) -> tuple[int, int] | None:
        return extent_of(PictureRequest(select=(what,)), playhead.snapshot()).selected

    assert selected("slow part") == selected("bookmark:slow part") == (100, 250)
    assert selected("voice-600") == (600, 1200), "the utterance of that name"
    assert selected("bookmark:voice-600") == (7, 9)
    with pytest.raises(PictureError, match=r"--select 10\.\.50 is not within the session"):
        selected("too long")
    with pytest.raises(PictureError, match=r"there are .*slow part"):
        selected("fast part")
    sidecar(finished).write_text("[]")
    assert selected("voice-600") == (600, 1200)
    with pytest.raises(PictureError, match="these are not bookmarks of asrscope"):
        selected("slow part")
    playhead.close()


@pytest.mark.slow
def test_bookmarks_are_bars_with_their_notes_on_the_row_of_times(qtbot, opened):
    plot = opened.desk.views["cost"].plot
    row = plot.bottom

    def bar() -> int:
        return amount(pixels(plot)[round(row.geometry().top()) :], theme().accent)

    opened.axis.select(3.0, 6.0)
    settle()
    ends = bar()  # of the cursor's line
    assert ends < 10
    bookmark(qtbot, opened, 3.0, 6.0, "noise")
    opened.axis.clear()
    settle()
    wide = plot.columns * 3.0 / 12.0
    assert bar() - ends == pytest.approx(3 * wide + 6, rel=0.05), "and a small tick where it begins"
    x = plot.columns * 4.0 / 12.0
    assert row.names_at(x) == "noise"
    assert row.names_at(x - wide) == ""
    at = plot.mapFromScene(row.mapToScene(x, 10.0))
    QApplication.sendEvent(plot.viewport(), QHelpEvent(QEvent.Type.ToolTip, at, plot.viewport().mapToGlobal(at)))
    assert QToolTip.text() == "noise"
    QToolTip.hideText()
    timeline = opened.desk.views["timeline"]
    opened.desk.docks.open("timeline")
    timeline.run_time.setChecked(True)
    settle()
    (there,) = timeline.wall.named_ranges()
    assert (there.first, there.last) == pytest.approx((timeline.wall.seconds_at(3.0), timeline.wall.seconds_at(6.0)))
