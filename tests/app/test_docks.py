"""The views as docks: moved, tabbed, floated, closed, found again; layouts kept, named and reset; what hides sleeps."""

from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QInputDialog, QScrollBar, QTabBar
from pytestqt.qtbot import QtBot

from app.model.recent import Memory, layout_key
from app.pictures.writers import settle
from app.style.theme import theme
from app.views import PAGES, VIEWS, title_of
from app.window import layouts
from app.window.docks import VERSION, Docks
from app.window.main_window import MainWindow
from tests.app.shown_windows import show

CONTROL = Qt.KeyboardModifier.ControlModifier
LEFT = Qt.MouseButton.LeftButton
FRONT = ("cost", "timeline", "words", "breakdown")  # What *explore* has in front, in the order of the registry

SAMPLE = Path(__file__).parents[2] / "assets/samples/mixtures-on-an-h100.asrs"

LEAST_HIGH = 60  # Pixels below which a chart is nothing but its axis


@pytest.fixture
def opened(window, finished):
    made = window()
    made.resize(1280, 800)
    made.open_session(finished)
    settle()
    return made


def again(qtbot: QtBot, window: MainWindow) -> MainWindow:
    """The window of the next start."""
    window.close()
    made = MainWindow(memory=Memory())
    show(qtbot, made)
    made.resize(1280, 800)
    made.show_desk()
    settle()
    return made


def places(docks: Docks) -> dict[str, QRect]:
    return {view_id: docks.docks[view_id].geometry() for view_id in docks.in_front()}


def are_at(docks: Docks, wanted: dict[str, QRect]) -> bool:
    """Whether the same views are in front at the same places, but for what Qt rounds when it shares room out."""
    now = places(docks)
    sides = [zip(now[name].getCoords(), wanted[name].getCoords(), strict=True) for name in now.keys() & wanted.keys()]
    return now.keys() == wanted.keys() and all(abs(a - b) <= 3 for pairs in sides for a, b in pairs)


@pytest.mark.slow
def test_a_low_window_has_two_rows(opened):
    docks = opened.desk.docks
    tall = places(docks)
    assert docks.in_front() == FRONT
    opened.resize(1280, 640)
    settle()
    assert docks.in_front() == ("cost", "words", "breakdown")
    opened.resize(1280, 800)
    settle()
    assert are_at(docks, tall)
    docks.splitDockWidget(docks.docks["timeline"], docks.docks["work"], Qt.Orientation.Horizontal)
    settle()
    opened.resize(1280, 640)
    settle()
    assert "timeline" in docks.in_front(), "what the user arranged stays"


@pytest.mark.parametrize("name", layouts.NAMES)
@pytest.mark.parametrize("known", [[*VIEWS, "new"], ["words", "breakdown", "cost"]])
def test_every_view_has_a_place_in_every_layout(name, known):
    """A new view, too; what the registry lacks has none."""
    rows = [row for column in layouts.columns(name, known) for row in column]
    placed = [view for row in rows for view in (*row.views, *row.closed)]
    assert sorted(placed) == sorted(known)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1280, 800), (1024, 640)], ids=str)
def test_nothing_scrolls_and_nothing_is_flat(opened, size):
    opened.resize(*size)
    settle()
    assert (opened.width(), opened.height()) == size
    desk, docks = opened.desk, opened.desk.docks
    assert set(docks.in_front()) >= {"cost", "words", "breakdown"}
    inside = docks.rect()
    for dock in docks.docks.values():
        if dock.view.asleep:
            continue
        assert inside.contains(dock.geometry())
        assert dock.view.height() >= LEAST_HIGH
        assert dock.view.height() >= dock.view.minimumSizeHint().height()
        assert dock.widget().geometry().top() >= dock.title.geometry().bottom()
    below = desk.transport.mapTo(desk, QPoint(0, 0)).y()
    assert docks.mapTo(desk, docks.rect().bottomLeft()).y() < below
    bars = [bar for bar in docks.findChildren(QScrollBar) if bar.isVisible()]
    assert all(desk.breakdown.isAncestorOf(bar) for bar in bars), "only the list of stages may"


def test_every_view_is_one_key_away(qtbot, opened):
    docks = opened.desk.docks
    docks.open("words", False)
    for number, view_id in enumerate(VIEWS, start=1):
        digit, held = (number, CONTROL) if number <= 9 else ((number - 9) % 10, Qt.KeyboardModifier.AltModifier)
        qtbot.keyClick(opened, Qt.Key(Qt.Key.Key_0 + digit), held)
        settle()
        assert view_id in docks.in_front()
        assert docks.current == view_id
        assert docks.docks[view_id].isAncestorOf(QApplication.focusWidget()), view_id
    assert {"system", "results", "transfers"} & {*docks.in_front()}
    assert "cost" not in docks.in_front(), "it is a tab behind another"
    for name, (view_id, _) in PAGES.items():
        opened.actions_[f"go.{name}"].trigger()
        assert opened.desk.views[view_id].page == name


def test_views_that_few_sessions_concern_are_there_for_those(opened):
    docks, front = opened.desk.docks, opened.desk.docks.in_front()
    apart = ("transfers", "latency")
    assert not any(docks.is_open(view) for view in apart)
    assert opened.open_session(SAMPLE)
    settle()
    assert docks.is_open("transfers"), "it ran on a GPU"
    assert not docks.is_open("latency")
    assert docks.in_front() == front, "behind the others"
    docks.go_to("latency")
    assert opened.open_session(SAMPLE)
    settle()
    assert "latency" in docks.in_front(), "what is looked at stays"


def test_latency_comes_as_soon_as_a_run_says_that_it_is_a_stream(qtbot, opened, recording):
    made, docks = recording("stream.asrs"), opened.desk.docks
    made.write(100)
    assert opened.open_session(made.path)
    settle()
    assert not docks.is_open("latency")
    made.writer.config(1, 100, {"stream": {"chunk_ms": 160}})
    made.write(100)
    qtbot.waitUntil(lambda: docks.is_open("latency"))
    assert "latency" not in docks.in_front()


@pytest.mark.slow
def test_what_is_behind_or_closed_sleeps_and_is_right_as_soon_as_it_is_seen(opened):
    desk, docks = opened.desk, opened.desk.docks
    work, words = desk.views["work"], desk.views["words"]
    drawn: list[str] = []
    for view in (work, words):
        view.draw = lambda snapshot, plain=view.draw, name=view.id: (drawn.append(name), plain(snapshot))
    docks.open("words", False)
    settle()
    drawn.clear()
    opened.playhead.seek(700)
    opened.axis.set_visible(2.0, 8.0)
    settle()
    assert drawn == []
    assert not work.isVisible()
    docks.open("work")
    docks.open("words")
    assert set(drawn) == {"work", "words"}, "before the event loop comes round"
    settle()
    assert work.snapshot.cursor_frame == 700
    assert work.model().first_s == pytest.approx(2.0, abs=0.05)
    opened.show_welcome()
    settle()
    drawn.clear()
    opened.playhead.seek(300)
    settle()
    assert drawn == [], "nothing is drawn on a page that is not shown"
    opened.show_desk()
    settle()
    assert words.snapshot.cursor_frame == 300


@pytest.mark.slow
def test_a_dock_is_closed_by_its_button_and_comes_back_from_the_menu(qtbot, opened):
    docks, entry = opened.desk.docks, opened.actions_["go.timeline"]
    before = places(docks)
    qtbot.mouseClick(docks.docks["timeline"].title.close_button, LEFT)
    settle()
    assert not docks.is_open("timeline")
    assert not entry.isChecked(), "the menu knows"
    assert places(docks)["cost"].height() > before["cost"].height(), "its room is used"
    entry.trigger()
    settle()
    assert entry.isChecked()
    assert places(docks) == before


def test_the_title_is_said_once_by_the_tab_or_by_the_header(opened):
    docks = opened.desk.docks
    bars = docks.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
    assert all(bar.accessibleName() for bar in bars if bar.isVisible())
    titles = {name: dock.title.findChild(object, "card-title") for name, dock in docks.docks.items()}
    assert not titles["cost"].isVisible()
    assert titles["timeline"].isVisible()
    docks.float_or_dock("cost")
    settle()
    assert titles["cost"].isVisible()
    for dock in docks.docks.values():
        assert dock.objectName().startswith("dock-")
        assert dock.accessibleName()
        for button in (dock.title.float_button, dock.title.close_button):
            assert dock.accessibleName() in button.accessibleName()


@pytest.mark.slow
def test_a_floating_dock_follows_theme_keys_and_playhead(qtbot, opened):
    docks = opened.desk.docks
    dock = docks.docks["work"]
    docks.float_or_dock("work")
    settle()
    assert dock.isWindow()
    assert len(docks.in_front()) == len(FRONT) + 1, "another view of the row is seen"
    dock.activateWindow()
    dark = dock.grab().toImage().pixelColor(20, 40)
    qtbot.keyClick(dock.view, Qt.Key.Key_T, CONTROL)
    settle()
    assert not theme().is_dark
    assert dock.grab().toImage().pixelColor(20, 40) != dark
    opened.playhead.seek(400)
    assert dock.view.snapshot.cursor_frame == 400
    qtbot.mouseDClick(dock.title, LEFT)
    settle()
    assert not dock.isFloating()
    docks.float_or_dock("work")
    settle()
    for show_page, shown in ((opened.show_welcome, False), (opened.show_desk, True), (opened.close, False)):
        show_page()
        assert dock.isVisible() == shown


def test_a_dock_is_dragged_by_its_title(qtbot, opened):
    dock = opened.desk.docks.docks["words"]
    at = QPoint(40, 10)
    QTest.mousePress(dock.title, LEFT, Qt.KeyboardModifier.NoModifier, at)
    for step in (10, 40, 90):
        QTest.mouseMove(dock.title, at + QPoint(step, step))
        QApplication.processEvents()
    assert dock.isFloating()
    QTest.mouseRelease(dock.title, LEFT, Qt.KeyboardModifier.NoModifier, at)
    settle()


@pytest.mark.slow
def test_one_view_takes_all_the_room_until_escape(qtbot, opened):
    docks = opened.desk.docks
    before = places(docks)
    qtbot.mouseDClick(docks.docks["words"].title, LEFT)
    settle()
    assert docks.in_front() == ("words",)
    assert docks.docks["words"].geometry() == docks.rect()
    assert opened.actions_["view.alone"].isChecked()
    qtbot.keyClick(opened, Qt.Key.Key_1, CONTROL)
    settle()
    assert docks.in_front() == ("cost",)
    qtbot.keyClick(opened, Qt.Key.Key_Escape)
    settle()
    assert places(docks) == before
    docks.go_to("words")
    qtbot.keyClick(opened, Qt.Key.Key_Return, CONTROL)
    settle()
    assert docks.in_front() == ("words",)
    made = again(qtbot, opened)
    assert made.desk.docks.in_front() == FRONT, "the next start has all"


@pytest.mark.slow
def test_what_was_moved_closed_and_resized_is_so_at_the_next_start(qtbot, opened):
    docks = opened.desk.docks
    docks.splitDockWidget(docks.docks["timeline"], docks.docks["work"], Qt.Orientation.Horizontal)
    docks.open("breakdown", False)
    settle()
    docks.resizeDocks([docks.docks["cost"]], [150], Qt.Orientation.Vertical)
    opened.desk.columns.moveSplitter(301, 1)
    settle()
    before, form = places(docks), opened.desk.form.width()
    made = again(qtbot, opened)
    assert made.desk.form.width() == form
    assert not made.desk.docks.is_open("breakdown")
    assert places(made.desk.docks) == before


@pytest.mark.slow
def test_layouts_are_taken_named_kept_and_deleted(qtbot, opened):
    desk, docks, actions = opened.desk, opened.desk.docks, opened.actions_
    default = places(docks)
    actions["layout.present"].trigger()
    settle()
    assert desk.form.isHidden()
    assert docks.in_front() == ("cost", "words", "breakdown")
    assert not docks.is_open("work")
    assert places(docks)["cost"].height() > default["cost"].height()
    docks.open("words", False)
    actions["layout.save"].trigger()
    dialog = opened.findChild(QInputDialog)
    dialog.setTextValue("Talk / <b>1</b>")
    dialog.accept()
    settle()
    own = "layout.own.Talk / <b>1</b>"
    assert actions[own].isChecked()
    actions["layout.explore"].trigger()
    settle()
    assert are_at(docks, default)
    assert not desk.form.isHidden()
    made = again(qtbot, opened)
    assert made.layouts.name == "explore"
    made.actions_[own].trigger()
    settle()
    assert made.desk.docks.in_front() == ("cost", "breakdown")
    assert made.desk.form.isHidden()
    made.desk.docks.open("words")
    made.actions_["layout.reset"].trigger()
    settle()
    assert made.desk.docks.in_front() == ("cost", "breakdown"), "that of the layout taken last"
    made.actions_["layout.delete.Talk / <b>1</b>"].trigger()
    assert made.layouts.own() == []
    assert own not in {action.id for action in made.actions_}


def test_names_of_layouts_are_not_taken_twice_and_the_menu_has_every_dock_and_layout(opened):
    for name in ("Explore", " present "):
        opened.layouts.save(name)
        assert "comes with the program" in opened.notices.banners[-1].text
    for name in ("   ", "mine", "mine"):
        opened.layouts.save(name)
    assert opened.layouts.own() == ["mine"]
    bar = {entry.text(): entry.menu() for entry in opened.menuBar().actions()}
    assert list(bar) == ["File", "Run", "View", "Help"]
    assert [entry.text() for entry in bar["File"].actions() if entry.menu()] == ["Recent sessions", "Export"]
    inside = {entry.text(): entry.menu() for entry in bar["View"].actions() if entry.menu()}
    assert list(inside) == ["Selection", "Views", "Layouts"]
    titles = [title_of(name) for name in (*VIEWS, *PAGES)]
    assert [a.text() for a in inside["Views"].actions()][: len(titles) + 1] == ["Pipeline", *titles]
    entries = [a.text() for a in inside["Layouts"].actions() if not a.isSeparator()]
    assert entries == ["Explore", "Present", "mine", "Save the layout as…", "Reset the layout", "Delete"]


def test_a_saved_layout_of_no_use_leaves_the_default(opened):
    docks = opened.desk.docks
    before, good = places(docks), bytes(docks.save().data())
    newer = b"f" + bytes(docks.saveState(VERSION + 1).data())
    for state in (b"f", b"?" + good, b"f" + good[: len(good) // 2], good[:40] + b"\xff" * 40 + good[80:], newer):
        assert not opened.desk.restore_layout(QByteArray(state))
        settle()
        assert places(docks) == before
    opened.memory.remember_state(layout_key("old"), QByteArray(newer))
    opened.layouts.take("old")
    assert "cannot be read" in opened.notices.banners[-1].text
    assert opened.layouts.name == "explore"


@pytest.mark.slow
def test_a_view_that_a_saved_layout_does_not_know_is_there(opened):
    """As after an update that brings another view."""
    from app.views import create

    older = Docks(lambda name: create(name, opened.axis), views=("cost", "words", "breakdown"))
    older.arrange("explore")
    older.resize(opened.desk.docks.size())
    older.show()
    settle()
    state = older.save()
    older.close()
    older.deleteLater()
    docks = opened.desk.docks
    assert docks.restore(state)
    settle()
    assert docks.in_front() == ("cost", "words", "breakdown")
    assert docks.is_open("work")
    docks.go_to("work")
    settle()
    assert "work" in docks.in_front()


def test_tab_goes_through_the_views_in_their_order_whenever_they_were_made(opened):
    desk = opened.desk
    for name in [*VIEWS][::-1]:
        assert desk.views[name]
    chain = [desk.nextInFocusChain()]
    while chain[-1] is not desk:
        chain.append(chain[-1].nextInFocusChain())
    stops = [one for one in chain if one.focusPolicy() & Qt.FocusPolicy.TabFocus]
    parts = (desk.form, *desk.docks.docks.values(), desk.transport)
    places = [at for part in parts for at, stop in enumerate(stops) if part.isAncestorOf(stop)]
    assert len(places) > 30
    assert places == sorted(places)
