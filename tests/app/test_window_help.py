"""The Help menu: what the words mean, which version this is, what works here, and where the sessions are."""

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMenu

from app.window.help_pages import Page
from profiler.analysis.categories import PART_NAMES
from profiler.files.paths import sessions_dir


@pytest.fixture
def page(window):
    w = window()
    opened: list[Page] = []

    def show(action: str) -> Page:
        w.actions_.trigger(action)
        opened.append(w.findChildren(Page)[-1])
        return opened[-1]

    yield show
    for each in opened:
        each.close()


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

    def note(url: QUrl) -> bool:
        opened.append(url.toLocalFile())
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", note)
    window().actions_.trigger("help.sessions")
    assert opened == [str(sessions_dir())]


def test_long_menus_have_parts(window):
    w = window()
    menus = {a.menu().title(): a.menu() for a in w.menuBar().actions()}
    for name, least in (("View", 5), ("File", 4), ("Help", 2)):
        menu = menus[name]
        assert isinstance(menu, QMenu)
        parts = [entry.isSeparator() for entry in menu.actions()]
        assert sum(parts) >= least, name
        assert not parts[0]
