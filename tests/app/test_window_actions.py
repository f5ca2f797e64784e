"""One registry of actions feeds menus, palette and key sheet; none of them knows what another lacks."""

import sys

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QLabel, QMenu, QWidget
from shown_windows import show

from app.model.conditions import Condition
from app.window.actions.actions import Action, Registry, key_text
from app.window.actions.search_results import score
from app.window.main_window import MainWindow
from app.window.palette import RESULT_ROLE, KeySheet, Palette

PROMISED = {
    "view.zoom_in": "W", "view.left": "A", "view.zoom_out": "S", "view.right": "D", "view.fit": "F",
    "view.previous": ",", "view.next": ".", "view.pause": "Space", "view.clear": "Esc", "run.mark": "M",
    "file.open": "Ctrl+O", "file.copy": "Ctrl+S", "help.palette": "Ctrl+Shift+P", "help.keys": "?",
}  # fmt: skip
"""Keys that were promised to people; the registry may hold more."""


@pytest.fixture
def window(qtbot):
    made = MainWindow((sys.executable, "-c", "pass"))
    show(qtbot, made)
    yield made
    made.close()


def test_the_promised_keys_are_there_and_no_key_does_two_things(window):
    keys = {action.id: action.keys for action in window.actions_}
    for action_id, key in PROMISED.items():
        assert key in keys[action_id]
    every = [QKeySequence(key) for of in keys.values() for key in of]
    assert not any(key.isEmpty() for key in every)
    assert len({key.toString() for key in every}) == len(every)


def test_every_action_stands_in_a_menu(window):
    def texts(menu: QMenu) -> set[str]:
        found = set()
        for action in menu.actions():
            submenu = action.menu()
            found |= texts(submenu) if isinstance(submenu, QMenu) else {action.text()}
        return found

    bar = window.menuBar()
    in_menus = set().union(*(texts(action.menu()) for action in bar.actions()))
    missing = {a.text for a in window.actions_} - in_menus - {"Export…"}  # a menu of its own
    assert missing == set()


@pytest.fixture
def registry(qtbot):
    widget = QWidget()
    qtbot.addWidget(widget)
    return Registry(widget)


def test_twice_the_same_id_or_key_is_an_error(registry):
    registry.add(Action("G", "one", "One", lambda: None, "X"))
    with pytest.raises(ValueError, match="twice"):
        registry.add(Action("G", "one", "One", lambda: None))
    with pytest.raises(ValueError, match="belongs to 'one'"):
        registry.add(Action("G", "two", "Two", lambda: None, "X"))


def test_what_cannot_be_used_is_not_done(registry):
    done, reasons = [], ["Not yet.", None]
    may = Condition(lambda: reasons[0])
    registry.add(Action("G", "a", "A", lambda: done.append(reasons[0]), enabled=may))
    for _ in range(2):
        registry.refresh()
        assert registry["a"].isEnabled() == registry.trigger("a") == (reasons[0] is None)
        reasons.reverse()
    assert done == [None]


@pytest.fixture
def palette(window):
    window.open_palette()
    made = window.findChild(Palette)
    yield made
    made.close()


def test_the_palette_lists_everything_finds_by_a_few_letters_and_runs(qtbot, window, palette):
    assert palette.list.count() == len(list(window.actions_))
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Up):
        qtbot.keyClick(palette.line, key)
    assert palette.list.currentRow() == 1
    qtbot.keyClicks(palette.line, "save a copy")
    assert palette.list.item(0).text().startswith("Save a copy")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert palette.isVisible(), "it cannot be done"
    palette.line.clear()
    qtbot.keyClicks(palette.line, "welc")
    assert palette.list.item(0).text() == "Welcome page"
    window.show_desk()
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert window.pages.currentWidget() is window.welcome
    assert not palette.isVisible()


@pytest.mark.slow
def test_the_palette_finds_every_setting_by_name_key_and_help(window, palette):
    def find_keys(query: str) -> list[str]:
        palette.line.setText(query)
        return [line.beside.partition("=")[0] for line in palette._results]

    palette.line.setText("gmm.selection.enabled")
    assert palette._results[0].beside == "gmm.selection.enabled=false", "as --set takes it"
    for option in window.pipeline.options:
        sentence = option.help.partition(".")[0]
        for query in (option.title, option.title.lower(), option.key, sentence):
            assert option.key in find_keys(query), (option.key, query)
    assert find_keys("beam")[0] == "search.beam"
    assert find_keys("search.max_active")[0] == "search.max_active"


def test_a_setting_found_is_brought_into_view(qtbot, window):
    for query, key in (("beam", "search.beam"), ("lattice", "search.lattice")):
        window.show_welcome()
        window.open_palette()
        palette = window.findChild(Palette)
        qtbot.keyClicks(palette.line, query)
        qtbot.keyClick(palette.line, Qt.Key.Key_Return)
        assert window.pages.currentWidget() is window.desk
        field = window.desk.form.fields[key]
        assert field.isVisible()
        place = field.mapTo(window.desk.form, field.rect().center())
        assert window.desk.form.rect().contains(place)
        assert field.editor.hasFocus()


def test_the_palette_says_that_nothing_was_found(qtbot, palette):
    palette.line.setText("zzz")
    assert [palette.list.item(row).text() for row in range(palette.list.count())] == ["nothing found"]
    assert palette.list.item(0).data(RESULT_ROLE) is None
    palette.grab()  # it was painted as None · not now … None
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Return):
        qtbot.keyClick(palette.line, key)
    assert palette.isVisible()


def test_words_beginnings_rank_first():
    for query, better, worse in (
        ("wp", "Welcome page", "Show everything"),
        ("dark", "Dark theme", "Bundled voices for the next run"),
    ):
        bad = score(query, worse)
        assert bad is None or score(query, better) < bad


def test_the_key_sheet_shows_every_key(qtbot, window):
    qtbot.keyClick(window, Qt.Key.Key_Question)
    sheet = window.findChild(KeySheet)
    shown = {label.text() for label in sheet.findChildren(QLabel)}
    for action in window.actions_:
        if action.keys:
            assert "  ".join(key_text(key) for key in action.keys) in shown
            assert action.text in shown
    assert sheet.sizeHint().boundedTo(QSize(1024, 640)) == sheet.sizeHint(), "it fits a small screen"
    sheet.accept()


def test_whatever_is_greyed_says_why(window):
    """Stop, "Set a marker" and Follow were greyed without a word."""
    desk = window.desk  # its actions and buttons
    for action in window.actions_:
        usable = window.actions_[action.id].isEnabled()
        assert usable == (window.actions_.unavailable_reason(action.id) is None), action.id
    for button in (window.top.stop, desk.transport.mark, desk.transport.follow):
        assert not button.isEnabled()
        said, why = button.toolTip().split("\n")
        assert said.startswith(button.action.text())
        assert why == button.accessibleDescription()
    assert desk.transport.mark.toolTip() == "Set a marker (M)\nNothing runs."
    assert "start a run or open one" in desk.transport.follow.toolTip()
    assert "\n" not in window.top.run.toolTip(), "what can be used has no reason"
    for menu in (action.menu() for action in window.menuBar().actions()):
        assert menu.toolTipsVisible() or all(entry.isEnabled() for entry in menu.actions())
