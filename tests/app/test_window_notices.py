"""Notices, which lie below the page and cover none of it, and the pages of the Help menu."""

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSize, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from shown_windows import press
from text_geometry import faults

from app.pictures.writers import settle
from app.window.help_pages import Page
from profiler.analysis.categories import PART_NAMES
from profiler.files.paths import sessions_dir


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


@pytest.fixture
def page(window):
    w = window()

    def show(action: str) -> Page:
        w.actions_.trigger(action)
        return w.findChildren(Page)[-1]

    return show


def rows(page: Page) -> dict[str, str]:
    model = page.table.model()
    last = model.columnCount() - 1
    return {model.index(row, 0).data(): model.index(row, last).data() for row in range(model.rowCount())}


def test_the_terms_are_explained_and_about_has_the_versions(page):
    found = rows(page("help.terms"))
    assert {"RTF", "WER", "frame", "senone", "grade A", "grade D", "verdict", *PART_NAMES.values()} <= set(found)
    made = page("help.about")
    assert "asrscope" in made.lead.text()
    assert {"numpy", "torch"} <= set(rows(made))


@pytest.mark.slow
def test_what_works_here_is_found_out(qtbot, page):
    made = page("help.doctor")
    qtbot.waitUntil(lambda: bool(rows(made)))
    assert "sessions folder" in rows(made)
    assert made.lead.text() in ("Everything required is available.", "Something required is missing.")


def test_the_folder_of_sessions_is_opened(window, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    window().actions_.trigger("help.sessions")
    assert opened == [str(sessions_dir())]


def test_long_menus_have_parts(window):
    w = window()
    menus = {a.menu().title(): a.menu() for a in w.menuBar().actions()}
    for name, least in (("View", 5), ("File", 4), ("Help", 2)):
        parts = [entry.isSeparator() for entry in menus[name].actions()]
        assert sum(parts) >= least, name
        assert not parts[0]
