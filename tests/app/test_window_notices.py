"""Notices lie over the page: nothing moves when they come; a written file can be opened, shown and copied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QPushButton

from app.pictures.layout import settle
from app.window.main_window import MainWindow
from app.window.notices import BESIDE, WIDEST, Banner


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


def test_a_written_file_is_opened_shown_and_copied(
    window: Callable[..., MainWindow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = window()
    opened: list[str] = []
    monkeypatch.setattr(
        QDesktopServices, "openUrl", lambda url: opened.append(QUrl(url).toLocalFile())
    )
    target = tmp_path / "stages.csv"
    assert made.files.write(target, lambda path: path.write_text("a,b\n"))
    (banner,) = made.notices.banners
    assert str(target) in banner.text
    press(banner, "Open")
    press(banner, "Show in folder")
    press(banner, "Copy")
    assert opened == [str(target), str(tmp_path)]
    assert QGuiApplication.clipboard().text() == str(target)
    press(banner, "Dismiss")
    assert made.notices.banners == []
