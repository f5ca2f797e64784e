"""Notices lie below the page and cover none of it; a written file can be opened, shown and copied."""

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSize, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from shown_windows import press
from text_geometry import faults

from app.pictures.writers import settle


@pytest.mark.parametrize("size", [QSize(1600, 1000), QSize(1000, 640)])
def test_notices_cover_nothing_and_leave_when_the_page_has_its_room_again(window, finished, size):
    made = window()
    made.resize(size)
    assert made.open_session(finished)
    settle()
    desk, cost = made.desk.size(), made.desk.views["cost"].mapTo(made, QPoint())
    for text in ("short", "a sentence that does not fit into one line " * 8):
        made.notices.info(text)
    made.notices.error("it went wrong", "a report")
    settle()
    notices = made.notices
    below = notices.mapTo(made, QPoint()).y()
    for part in (made.pages, made.desk.transport, *made.desk.docks.docks.values()):
        if part.isVisible():
            assert part.mapTo(made, part.rect().bottomLeft()).y() < below
    assert made.desk.views["cost"].mapTo(made, QPoint()) == cost, "nothing is pushed down"
    for banner in notices.banners:
        assert notices.rect().contains(banner.geometry())
        assert banner.height() >= banner.heightForWidth(banner.width())
    assert made.rect().contains(notices.mapTo(made, notices.rect().bottomRight()))
    notices.clear()
    settle()
    assert notices.isHidden()
    assert made.desk.size() == desk


LONG = "recording_of_the_whole_evening_without_any_break_" * 4


def test_a_name_without_spaces_is_shown_whole(window):
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


def test_a_written_file_is_opened_shown_and_copied(window, tmp_path, monkeypatch):
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
