"""The start of the window: what it must not import, where it opens, what is first in it, and its first minute."""

import json
import shutil
import sys
import threading
from pathlib import Path

import pytest
import text_geometry
from command_line import python
from figures_shown import KEPT
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QApplication, QMainWindow
from shown_windows import texts

from app.gui import caught
from app.model.current_run import SET_UP
from app.model.recent import Memory
from app.model.runs import RECORDED_DEMO
from app.model.setup_progress import PHASE_NAMES, USUAL_S, SetUp
from app.pictures.writers import settle
from app.style.theme import FONT_FAMILY
from app.window.first_window import FIRST_SIZE, MINIMUM, TITLE_BAR, fitted, place
from profiler.plain import rtf_text

HEAVY = ("torch", "numba", "llvmlite", "kaldifst", "pocketsphinx", "soundfile", "soxr", "jiwer", "scipy")


def test_an_open_window_and_its_lab_page_have_loaded_nothing_heavy(finished, tmp_path):
    """Torch in the window's process would stall it by 200 ms and cost seconds at the start."""
    loaded = python(
        f"""
        import sys
        from app.application import application
        from app.window.main_window import MainWindow
        app = application()
        window = MainWindow()
        window.show()
        window.open_session({str(finished)!r})
        for _ in range(20):
            app.processEvents()
        window.grab()
        print(" ".join(m for m in sys.modules if m.startswith("pipelines")))
        window.show_lab()
        app.processEvents()
        window.grab()
        window._lab.show_lab("matrix-orders")
        window.grab()
        window.close()
        print(" ".join(m for m in {HEAVY!r} if m in sys.modules))
        """,
        tmp_path,
    ).splitlines()
    assert loaded[1:] in ([], [""])
    audio = {"pipelines.audio", *(f"pipelines.audio.{name}" for name in ("word_errors", "edit_distance", "formats"))}
    reported = {name for name in loaded[0].split() if not name.startswith("pipelines.config")}
    assert reported <= {"pipelines"} | audio


def test_the_window_is_there_before_what_is_in_it_is_loaded(tmp_path):
    """The parts of the window took half of the time until something was seen, numpy a quarter."""
    loaded = python(
        """
        import sys
        from app.application import application
        from app.gui import MainWindow, set_theme
        app = application()
        set_theme("dark")
        window = MainWindow(bare=True)
        window.show_first(desk=True)
        later = ["numpy", "psutil", "profiler.session.reader"]
        later += ["app.window.desk", "app.window.palette"]
        parts = ["app.window.bars.topbar", "app.window.welcome", "app.model.runs", "msgspec", "json"]
        for _ in range(5):
            app.processEvents()
        print([name for name in later + parts if name in sys.modules])
        window.complete()
        window.pages.setCurrentWidget(window.skeleton)
        for _ in range(5):
            app.processEvents()
        print([name for name in later if name in sys.modules])
        window.close()
        """,
        tmp_path,
    )
    assert loaded.split() == ["[]", "[]"]


def test_a_window_that_is_closed_before_it_is_complete_ends_the_program(tmp_path):
    reported = python(
        """
        from PySide6.QtCore import QTimer
        from app import gui
        from app.window import first_window

        plain = first_window.FirstWindow.show_first

        def show_first(self, desk):
            picture = plain(self, desk)
            self.focusNextPrevChild(True)
            QTimer.singleShot(0, self.close)
            return picture

        def complete(self):
            print("completed")

        first_window.FirstWindow.show_first = show_first
        gui.MainWindow.complete = complete
        gui.AfterFirstPaint = lambda widget, call: QTimer.singleShot(10, widget, call)
        print(gui.open_window(None, False))
        """,
        tmp_path,
    ).split()
    assert reported == ["0"]


def test_a_window_that_cannot_be_completed_ends_the_program(tmp_path):
    reported = python(
        """
        from app import gui
        gui.MainWindow.complete = lambda self: 1 / 0
        print(gui.open_window(None, False))
        """,
        tmp_path,
    )
    assert reported.split() == ["1"]


def test_a_fault_in_a_thread_is_reported_too(qtbot, window, capsys):
    w = window()
    with caught(w.notices):
        thread = threading.Thread(target=Path("gone").read_bytes)
        thread.start()
        thread.join()
        qtbot.waitUntil(lambda: bool(w.notices.banners))
    assert "No such file or directory: 'gone'" in w.notices.banners[0].text
    capsys.readouterr()


WORKER = Path(__file__).with_name("window_worker.py")
ROOM = QRect(0, 32, 1280, 768)


def test_a_window_is_made_no_larger_than_its_screen_and_moved_into_it():
    for wanted, result in (
        (QRect(0, 0, 1600, 1000), QRect(0, 32, 1280, 768)),
        (QRect(100, 100, 1000, 640), QRect(100, 100, 1000, 640)),
        (QRect(900, 700, 1000, 640), QRect(280, 160, 1000, 640)),
        (QRect(-2000, -50, 1000, 640), QRect(0, 32, 1000, 640)),
    ):
        assert fitted(wanted, ROOM) == result


def test_a_window_is_first_in_the_middle_then_where_it_was_unless_that_screen_is_gone(qtbot):
    window, before, again, elsewhere = (QMainWindow() for _ in range(4))
    for one in (window, before, again, elsewhere):
        qtbot.addWidget(one)
    place(window, None)
    assert window.size() == FIRST_SIZE
    room = QApplication.primaryScreen().availableGeometry().adjusted(0, TITLE_BAR, 0, 0)
    assert (window.geometry().center() - room.center()).manhattanLength() <= 2
    assert window.minimumSize() == MINIMUM
    before.setGeometry(120, 140, 1100, 700)
    place(again, before.saveGeometry())
    assert again.geometry() == QRect(120, 140, 1100, 700)
    before.setGeometry(5000, 3000, 1100, 700)
    place(elsewhere, before.saveGeometry())
    assert QApplication.primaryScreen().availableGeometry().contains(elsewhere.geometry())
    assert elsewhere.size() == QSize(1100, 700)


def on_screen(code: str, tmp_path: Path, width: int, height: int) -> str:
    screen = {"name": "screen", "x": 0, "y": 0, "width": width, "height": height}
    file = tmp_path / "screen.json"
    file.write_text(json.dumps({"screens": [screen | {"logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}]}))
    return python(code, tmp_path, QT_QPA_PLATFORM=f"offscreen:configfile={file}")


def test_on_a_small_screen_everything_of_the_window_is_on_the_screen(tmp_path):
    reported = on_screen(
        """
        from app.application import application
        from app.window.main_window import MainWindow
        app = application()
        window = MainWindow()
        window.show()
        window.show_desk()
        app.processEvents()
        place = window.geometry()
        # The offscreen platform gives windows a frame of two pixels, and moves them by it.
        screen = app.primaryScreen().availableGeometry().adjusted(-2, -2, 2, 2)
        print(screen.contains(place), place.width(), place.height())
        for part in (window.top.rtf, window.top.wer, window.desk.breakdown, window.desk.transport):
            corner = part.mapTo(window, part.rect().bottomRight())
            print(window.rect().contains(corner))
        window.close()
        """,
        tmp_path,
        1280,
        800,
    ).split()
    assert reported == ["True", "1280", "768", *["True"] * 4]


@pytest.mark.slow
def test_an_empty_desk_is_painted_in_its_own_face_before_any_chart_is_loaded(tmp_path):
    reported = on_screen(
        f"""
        import sys
        from PySide6.QtCore import QTimer
        from PySide6.QtWidgets import QWidget
        from app import gui
        from app.pictures.writers import settle
        from app.style.theme import theme
        from app.window import first_window

        painted = []
        plain = first_window.Skeleton.paintEvent

        def paint(self, event):
            plain(self, event)
            painted.append("app.views.cost" in sys.modules)

        first_window.Skeleton.paintEvent = paint
        first = gui._first_page

        def page(window, *rest):
            print("skeleton painted:", len(painted) > 0, "with charts:", any(painted))
            first(window, *rest)
            print("charts loaded:", "app.views.cost" in sys.modules)
            shown = [w for w in window.findChildren(QWidget) if w.isVisible()]
            print("faces:", *set(w.font().family() for w in shown))
            settle()
            before = window.top.preset.grab().toImage()
            window.choose_theme("light" if theme().name == "dark" else "dark")
            window.choose_theme("light" if theme().name == "dark" else "dark")
            print("as after a change of the theme:", window.top.preset.grab().toImage() == before)
            QTimer.singleShot(0, window.close)

        gui._first_page = page
        gui.open_window(None, True, ({sys.executable!r}, {str(WORKER)!r}))
        """,
        tmp_path,
        1600,
        1000,
    )
    assert reported.splitlines()[:4] == [
        "skeleton painted: True with charts: False",
        "charts loaded: True",
        f"faces: {FONT_FAMILY}",
        "as after a change of the theme: True",
    ]


def test_the_first_picture_has_its_bars_where_those_of_the_window_are(tmp_path):
    reported = on_screen(
        """
        from PySide6.QtCore import QPoint
        from app.application import application
        from app.style.theme import set_theme
        from app.window.main_window import MainWindow
        from app.window.first_window import BARS
        app = application()
        for name in ("dark", "light"):
            set_theme(name)
            window = MainWindow(bare=True)
            window.show_first(desk=True)
            app.processEvents()
            before = window.grab().toImage()
            window.complete()
            window.pages.setCurrentWidget(window.skeleton)
            app.processEvents()
            after = window.grab().toImage()
            heights = window.menuBar().height(), window.top.height(), window.status.height()
            print(heights == tuple(BARS.values()))
            # The cards and the lines between bars are where they were: all that differs is text and buttons.
            x = window.width() - 4
            print(all(before.pixel(x, y) == after.pixel(x, y) for y in range(before.height())))
            pages = window.pages.rect().translated(window.pages.mapTo(window, QPoint(0, 0)))
            print(before.copy(pages) == after.copy(pages))
            window.close()
        """,
        tmp_path,
        1600,
        1000,
    ).split()
    assert reported == ["True"] * 6


def test_a_session_of_almost_no_time_is_not_one_of_none(window, tmp_path):
    """0.000 would be a factor that nothing has; the breakdown says its milliseconds the same way."""
    made = window()
    assert made.open_session(shutil.copy(KEPT["v1"], tmp_path / "v1.asrs"))
    settle()
    shown = [text.text for text in text_geometry.texts(made)]
    assert "<0.001" in shown
    assert [text for text in shown if text.endswith("ms · RTF <0.001")]
    assert "RTF <0.001" in made.desk.views["cost"].summary()
    assert not [text for text in shown if "RTF 0.000" in text]
    assert text_geometry.faults(made) == []


def test_real_time_factors_as_people_read_them():
    factors = (0.00047, 0.0005, 0.0, float("nan"), None, 1.151)
    assert [rtf_text(rtf) for rtf in factors] == ["<0.001", "0.001", "–", "–", "–", "1.15"]


@pytest.fixture
def waiting(qtbot, window):
    """A window whose demo is being set up, for the first time."""
    w = window("late")
    w.runs.demo()
    qtbot.waitUntil(w.when.is_running)
    return w


def test_a_recorded_demo_stands_in_until_the_run_has_its_first_block(qtbot, waiting):
    w = waiting
    assert w.playhead.path == RECORDED_DEMO
    assert w.pages.currentWidget() is w.desk
    assert w.top.rtf.value != "–"
    said, steps = texts(w, "progress")[0].split("\n")
    assert said.startswith("Recorded on 20")
    assert "your machine is being measured" in said
    assert " s" in steps
    # The form is that of the run; its switches wait, and no hint asks for them.
    assert w.pipeline.locked is None
    assert not w.desk.form.which.recorded.isVisible()
    toggle = w.top.toggles[0]
    assert not toggle.switch.isEnabled()
    assert "ready" in toggle.subtitle.full
    qtbot.keyClick(w, Qt.Key.Key_G)
    assert not w.pipeline.next.gmm.selection.enabled
    assert w.hints.current is None
    own = w.runs.control.session
    qtbot.waitUntil(lambda: str(w.playhead.path) == own and w.playhead.n_frames > 0)
    qtbot.waitUntil(lambda: not texts(w, "progress"))
    assert w.playhead.live
    assert toggle.switch.isEnabled()
    assert "ready" not in toggle.subtitle.full
    assert w.hints.current is not None
    qtbot.keyClick(w, Qt.Key.Key_G)
    assert w.pipeline.running.gmm.selection.enabled
    assert [str(path) for path in Memory().sessions()] == [own], "the recorded one is none of the user's"


def test_a_demo_that_is_cancelled_meanwhile_leaves_neither_session(qtbot, waiting):
    w = waiting
    path = w.runs.control.session
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    assert w.playhead.path is None
    assert w.pages.currentWidget() is w.welcome
    assert Memory().sessions() == []
    assert path is not None
    assert w.pipeline.toggles.ready_in == ""


def test_another_session_that_is_opened_meanwhile_stays(qtbot, waiting, finished):
    w = waiting
    assert w.open_session(finished)
    qtbot.waitUntil(lambda: not texts(w, "progress"))
    assert w.playhead.path == finished
    assert w.actions_["run.show"].isEnabled()


def test_where_a_set_up_is_short_the_run_is_shown_at_once(qtbot, window):
    w = window("late")
    w.memory.remember(SET_UP, ["0.5"] * 4)
    w.runs.demo()
    qtbot.waitUntil(lambda: w.playhead.path is not None)
    assert w.playhead.path != RECORDED_DEMO


STEPS = (
    ("reading the acoustic model", None),
    ("untying the codebooks", 0.66),
    ("finding the search graph", None),
    ("building graph: determinise", 0.55),
    ("building graph: checking the graph", 0.95),
    ("compiling the kernels", None),
    ("clustering the Gaussians", 0.9),
    ("listing the Gaussians", 0.1),
    ("measuring the machine: call/3", 0.0),
    ("measuring the machine: tile", 0.5),
)


def test_it_is_one_bar_in_plain_words_that_never_goes_back():
    made, shares, texts = SetUp(0.0), [], []
    for number, (step, share) in enumerate(STEPS):
        made.update(step, share, now=4.0 * number)
        texts.append(made.steps(4.0 * number)[-1][0])
        shares.append(made.share(4.0 * number))
        shares.append(made.share(4.0 * number + 2.0))
    assert shares == sorted(shares)
    assert shares[0] >= 0.0
    assert shares[-1] < 1.0
    assert list(dict.fromkeys(texts)) == list(PHASE_NAMES)
    assert not any(name in text for text in texts for name in ("/", "kernel", ":"))


def test_the_time_left_becomes_less():
    made = SetUp(0.0, (1.0, 1.0, 40.0, 1.0))
    made.update("compiling the kernels", None, 1.0)
    left = [made.left_s(1.0 + seconds) for seconds in range(0, 60, 5)]
    assert left == sorted(left, reverse=True)
    assert made.left_to_show(1.5) is None, "it has just begun"
    assert made.left_to_show(6.0) in (35, 40)
    assert made.left_to_show(80.0) is None, "it is late, and nobody knows"
    assert made.steps(80.0) == [("Reading the acoustic model", 1), ("Preparing scoring and search", 79)]


def test_what_phases_took_is_what_they_take_next_time():
    made = SetUp(0.0)
    for now, (step, share) in enumerate(STEPS):
        made.update(step, share, float(now))
    took = made.durations(float(len(STEPS)))
    assert sum(took) == pytest.approx(len(STEPS))
    again = SetUp(0.0, took)
    again.update(*STEPS[0], 0.0)
    assert again.left_s(0.0) < sum(USUAL_S)
    for wrong in ((), (1.0,), (float("nan"),) * 4, (-1.0,) * 4):
        assert SetUp(0.0, wrong).left_s(0.0) == pytest.approx(sum(USUAL_S))
