"""The window's process: what it must not import, what it must not lose."""

import sys
from pathlib import Path

import pytest
from command_line import python
from PySide6.QtCore import QObject, QPointF
from PySide6.QtGui import QImage, QPainter, QPainterPath, QPolygonF
from PySide6.QtWidgets import QLabel

from profiler.session.reader import Session

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
    reported = {name for name in loaded[0].split() if not name.startswith("pipelines.config.")}
    assert reported <= {
        "pipelines",
        "pipelines.config",
        "pipelines.config.presets",
        "pipelines.audio",
        "pipelines.audio.word_errors",
        "pipelines.audio.edit_distance",
        "pipelines.audio.formats",
    }


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

        def fail(self):
            raise RuntimeError("no room")

        gui.MainWindow.complete = fail
        print(gui.open_window(None, False))
        """,
        tmp_path,
    ).split()
    assert reported == ["1"]


def test_the_demo_starts_with_the_window_and_ends_with_it(tmp_path):
    worker = Path(__file__).with_name("window_worker.py")
    reported = python(
        f"""
        import sys
        from PySide6.QtCore import QTimer
        from app import gui

        application = gui.application()
        polling = QTimer()

        def look():
            windows = [w for w in application.topLevelWidgets() if isinstance(w, gui.MainWindow)]
            if windows and windows[0].playhead.live and windows[0].playhead.n_frames > 100:
                print(windows[0].pages.currentWidget() is windows[0].desk)
                polling.stop()
                windows[0].close()

        polling.timeout.connect(look)
        polling.start(50)
        print(gui.open_window(None, True, (sys.executable, {str(worker)!r})))
        """,
        tmp_path,
    ).split()
    assert reported == ["True", "0"]
    (session,) = (tmp_path / "sessions").glob("*.asrs")
    assert Session.open(session).state == "stopped"
    assert list((tmp_path / "data").rglob("crash.log"))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal from Python 3.12 on")
def test_qt_does_not_lose_references_to_none(qtbot):
    """PySide6 6.12.0 lost one per call that returns None, and the interpreter died of it."""
    thing, path, polygon = QObject(), QPainterPath(), QPolygonF()
    label, image = QLabel(), QImage(8, 8, QImage.Format.Format_ARGB32)
    qtbot.addWidget(label)
    rounds = 400
    before = sys.getrefcount(None)
    for number in range(rounds):
        thing.setObjectName("thing")
        thing.parent()
        path.lineTo(1.0, 2.0)
        polygon.append(QPointF(0, 0))
        label.setText("a" if number % 2 else "b")
        label.parentWidget()
        painter = QPainter(image)
        painter.setPen(0xFF)
        painter.drawRect(0, 0, 3, 3)
        painter.end()
    drift = sys.getrefcount(None) - before
    assert abs(drift) < rounds / 4, f"None lost {-drift} references in {rounds} rounds"


def test_a_fault_in_a_thread_is_reported_too(qtbot, capsys):
    import threading

    from app.gui import caught
    from app.window.main_window import MainWindow

    window = MainWindow((sys.executable, "-c", "pass"))
    qtbot.addWidget(window)

    def fault() -> None:
        raise OSError("the disk is gone")

    with caught(window.notices):
        thread = threading.Thread(target=fault)
        thread.start()
        thread.join()
        qtbot.waitUntil(lambda: bool(window.notices.banners))
    assert "the disk is gone" in window.notices.banners[0].text
    capsys.readouterr()
    window.close()
