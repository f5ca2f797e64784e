"""Notices lie over the page: nothing moves when they come; a written file can be opened, shown and copied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QPushButton
from text_geometry import faults

from app.pictures.layout import settle
from app.window.main_window import MainWindow
from app.window.notices import BESIDE, FROM_EDGE, WIDEST, Banner


def press(banner: Banner, text: str) -> None:
    next(b for b in banner.findChildren(QPushButton) if b.text() == text).click()


def test_a_notice_pushes_nothing_down(window: Callable[..., MainWindow], finished: Path) -> None:
    made = window()
    assert made.open_session(finished)
    settle()
    desk, cost = made.desk.geometry(), made.desk.views["cost"].geometry()
    for text in ("short", "a sentence that does not fit into one line " * 8):
        made.notices.info(text)
    made.notices.error("it went wrong", "a report")
    settle()
    assert (made.desk.geometry(), made.desk.views["cost"].geometry()) == (desk, cost)
    notices = made.notices
    assert notices.parentWidget() is made.pages
    assert made.pages.rect().contains(notices.geometry())
    assert notices.width() <= WIDEST
    for banner in notices.banners:
        assert notices.rect().contains(banner.geometry())
        assert banner.height() >= banner.heightForWidth(banner.width())
    # What is not under a notice takes the mouse as before.
    beside = QPoint(notices.geometry().center().x(), notices.geometry().bottom() + 3)
    assert not notices.isAncestorOf(made.pages.childAt(beside))
    made.resize(1000, 700)
    settle()
    assert made.pages.rect().adjusted(BESIDE, 0, -BESIDE, 0).contains(notices.geometry())
    notices.clear()
    assert notices.isHidden()


LONG = "recording_of_the_whole_evening_without_any_break_" * 4


def test_a_name_without_spaces_is_shown_whole(window: Callable[..., MainWindow]) -> None:
    made = window()
    made.resize(640, 480)
    path = Path("/tmp") / f"{LONG}.asrs"
    said = f"The format of {LONG}.wav is not supported; WAV, FLAC, OGG and MP3 can be read."
    made.notices.written(path)
    made.notices.error(said, "a report")
    made.notices.progress("", print).set_progress(LONG, 0.4)
    settle()
    assert faults(made.notices) == []
    assert [banner.text for banner in made.notices.banners] == [f"Written: {path}", said, LONG]
    for banner in made.notices.banners:
        assert banner.height() >= banner.heightForWidth(banner.width())
        assert LONG in banner.accessibleName()


def test_notices_leave_the_first_clicks_of_the_welcome_page_free(
    window: Callable[..., MainWindow], finished: Path
) -> None:
    made = window()
    made.resize(640, 480)
    for text in ("One.", "Two."):
        made.notices.info(text)
    settle()
    place, page = made.notices.geometry(), made.pages.rect()
    assert page.contains(place)
    names = ("start-run.demo", "start-file.new", "start-file.open", "start-page.lab")
    for name in names:
        start = made.welcome.findChild(QPushButton, name)
        assert place.top() > start.mapTo(made.pages, start.rect().bottomLeft()).y()
    made.open_session(finished)
    settle()
    assert made.notices.y() == FROM_EDGE, "over the desk they begin at the upper end"
    assert made.pages.childAt(made.notices.geometry().center()) is not None
    assert made.notices.isAncestorOf(made.pages.childAt(made.notices.geometry().center()))


def test_a_written_file_is_opened_shown_and_copied(
    window: Callable[..., MainWindow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = window()
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(QUrl(url).toLocalFile()))
    target = tmp_path / "stages.csv"
    target.write_text("a,b\n")
    made.notices.written(target)
    (banner,) = made.notices.banners
    assert str(target) in banner.text
    press(banner, "Open")
    press(banner, "Show in folder")
    press(banner, "Copy")
    assert opened == [str(target), str(tmp_path)]
    assert QGuiApplication.clipboard().text() == str(target)
    press(banner, "Dismiss")
    assert made.notices.banners == []
