"""Where the window opens and what it shows first: within its screen, an empty desk, and the charts after that."""

import json
import sys
from pathlib import Path

import pytest
from command_line import python
from figures_shown import KEPT
from PySide6.QtCore import QRect, QSize
from PySide6.QtWidgets import QApplication, QMainWindow
from text_geometry import faults, texts

from app.pictures.writers import settle
from app.style.theme import FONT_FAMILY
from app.window.first_window import FIRST_SIZE, MINIMUM, TITLE_BAR, fitted, place
from profiler.plain import rtf_text

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


def test_the_first_window_has_the_first_size_in_the_middle(qtbot):
    window = QMainWindow()
    qtbot.addWidget(window)
    place(window, None)
    assert window.size() == FIRST_SIZE
    room = QApplication.primaryScreen().availableGeometry().adjusted(0, TITLE_BAR, 0, 0)
    assert (window.geometry().center() - room.center()).manhattanLength() <= 2
    assert window.minimumSize() == MINIMUM


def test_the_place_of_a_window_is_remembered_unless_that_screen_is_gone(qtbot):
    before, again, elsewhere = (QMainWindow() for _ in range(3))
    for one in (before, again, elsewhere):
        qtbot.addWidget(one)
    before.setGeometry(120, 140, 1100, 700)
    place(again, before.saveGeometry())
    assert again.geometry() == QRect(120, 140, 1100, 700)
    before.setGeometry(5000, 3000, 1100, 700)
    place(elsewhere, before.saveGeometry())
    assert QApplication.primaryScreen().availableGeometry().contains(elsewhere.geometry())
    assert elsewhere.size() == QSize(1100, 700)


def run(code: str, tmp_path: Path, width: int, height: int) -> str:
    screen = {"name": "screen", "x": 0, "y": 0, "width": width, "height": height}
    screen |= {"logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}
    file = tmp_path / "screen.json"
    file.write_text(json.dumps({"screens": [screen]}))
    return python(code, tmp_path, QT_QPA_PLATFORM=f"offscreen:configfile={file}")


def test_on_a_small_screen_everything_of_the_window_is_on_the_screen(tmp_path):
    reported = run(
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
    reported = run(
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
    reported = run(
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
    path = tmp_path / "v1.asrs"
    path.write_bytes(KEPT["v1"].read_bytes())
    assert made.open_session(path)
    settle()
    shown = [text.text for text in texts(made)]
    assert "<0.001" in shown
    assert [text for text in shown if text.endswith("ms · RTF <0.001")]
    assert "RTF <0.001" in made.desk.views["cost"].summary()
    assert not [text for text in shown if "RTF 0.000" in text]
    assert faults(made) == []


@pytest.mark.parametrize(
    ("rtf", "text"),
    [(0.00047, "<0.001"), (0.0005, "0.001"), (0.0, "–"), (float("nan"), "–"), (None, "–"), (1.151, "1.15")],
)
def test_real_time_factors_as_people_read_them(rtf, text):
    assert rtf_text(rtf) == text
