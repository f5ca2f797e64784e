"""Pictures and data out of the window, and names for what has no text."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QComboBox, QSlider

from app.views import VIEWS
from app.window.actions import exporting
from app.window.actions.files import QFileDialog
from app.window.main_window import MainWindow
from profiler.export import writers


@pytest.fixture
def window(qtbot, finished):
    made = MainWindow((sys.executable, "-c", "pass"))
    qtbot.addWidget(made)
    made.show()
    assert made.open_session(finished)
    yield made
    made.close()


@pytest.fixture
def answer(monkeypatch, tmp_path):
    """Answer the next file dialog with a name in the test's folder."""

    def give(name: str) -> Path:
        target = tmp_path / name
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
        return target

    return give


def test_a_picture_of_the_desk_is_written(window, answer):
    target = answer("desk.png")
    window.actions_.trigger("export.desk")
    image = QImage(str(target))
    assert image.width() >= window.desk.width() * exporting.PICTURE_SCALE
    assert "Written" in window.notices.banners[-1].text


@pytest.mark.parametrize("view_id", list(VIEWS))
def test_a_picture_of_every_view_is_written(window, answer, view_id):
    target = answer(f"{view_id}.png")
    window.actions_.trigger(f"export.{view_id}")
    assert not QImage(str(target)).isNull()


def test_a_missing_suffix_is_added(window, answer, tmp_path):
    answer("picture")
    window.actions_.trigger("export.cost")
    assert (tmp_path / "picture.png").exists()


def test_the_stages_are_written_as_a_table(window, answer):
    target = answer("stages.csv")
    window.actions_.trigger("export.csv")
    rows = list(csv.reader(target.read_text(encoding="utf-8").splitlines()))
    assert any("score.gaussians" in cell for row in rows for cell in row)


@pytest.mark.parametrize(("kind", "key"), [("chrome", "traceEvents"), ("speedscope", "profiles")])
def test_the_spans_are_written_for_other_viewers(window, answer, kind, key):
    target = answer(f"{kind}.json")
    window.actions_.trigger(f"export.{kind}")
    assert json.loads(target.read_text(encoding="utf-8"))[key]


def test_the_menu_offers_every_format_there_is(window):
    data = [a for a in window.actions_ if a.id.startswith("export.")][-len(writers()) :]
    assert [a.id for a in data] == [f"export.{writer.FORMAT.name}" for writer in writers()]
    assert [a.text for a in data] == ["Stages as a table (CSV)…", "Chrome trace…", "Speedscope…"]


def test_where_nothing_can_be_written_the_banner_says_so(window, answer, tmp_path):
    answer("no/such/folder/desk.png")
    window.actions_.trigger("export.desk")
    assert window.notices.banners[-1].kind == "error"


def test_a_dialog_given_up_does_nothing(window, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    for action_id in ("export.desk", "export.csv", "file.copy"):
        window.actions_.trigger(action_id)
    assert window.notices.banners == []


def test_every_control_has_a_name_for_screen_readers(window):
    kinds = (QAbstractButton, QComboBox, QAbstractSpinBox, QSlider)
    for control in window.findChildren(kinds[0]) + [
        w for kind in kinds[1:] for w in window.findChildren(kind)
    ]:
        if control.isVisibleTo(window) and control.parentWidget() is not None:
            text = control.text() if isinstance(control, QAbstractButton) else ""
            inner = control.objectName().startswith("qt_")
            assert inner or text or control.accessibleName(), control


def test_every_view_tells_in_a_sentence_what_it_shows(window):
    for view in window.desk.views.values():
        assert view.accessibleName()
        assert view.accessibleDescription().strip()
