"""The form at the smallest window to serve: what is changed most is in view, and nothing jumps."""

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication
from text_geometry import cut_short, faults
from views_desk import settle

from app.window.main_window import MainWindow
from pipelines.config import presets

SIZE = (1280, 800)
FIRST = ("pace", "block", "model", "frames.skip", "search.beam", "search.max_active")
TWO_LINES = "search.insertion_penalty"  # A setting whose title is wider than its place


@pytest.fixture
def opened(window):
    made = window()
    made.resize(*SIZE)
    made.show_desk()
    QApplication.processEvents()
    return made


def tops(window: MainWindow) -> dict[str, int]:
    """Where each setting in view begins."""
    fields = window.desk.form.fields
    return {key: field.mapTo(window, QPoint(0, 0)).y() for key, field in fields.items() if field.isVisible()}


def test_what_is_changed_most_is_above_the_fold(opened):
    for name in ("gmm", "dnn"):
        opened.pipeline.choose(name)
        QApplication.processEvents()
        assert (opened.width(), opened.height()) == SIZE
        view = opened.desk.form._scroll.viewport()
        for key in FIRST:
            field = opened.desk.form.fields[key]
            assert field.isVisible(), (name, key)
            place = field.mapTo(view, field.rect().topLeft()).y()
            assert 0 <= place <= view.height() - field.height(), (name, key)
            assert field.title.text() == field.title.full, f"the title of {key} is cut"
        assert all(toggle.isVisible() for toggle in opened.top.toggles), name


def test_rows_stay_where_they_are(qtbot, opened, tmp_path):
    before = tops(opened)
    form = opened.desk.form
    form.fields["block"].show_note("latency 210 ms: 160 ms block + 40 ms context + 9.6 ms scoring")
    QApplication.processEvents()
    assert tops(opened) == before
    note = form.fields["block"].note
    assert note.text().endswith("…")
    assert note.fontMetrics().horizontalAdvance(note.text()) <= note.width() - note.indent()
    opened.pipeline.run_started(presets.load(presets.DEFAULT).config)
    opened.pipeline.set("model", "single-stream")  # waits, and says so
    QApplication.processEvents()
    assert form.fields["model"].waiting.isVisible()
    after = tops(opened)
    assert {key: after[key] for key in before} == before


def test_what_waits_for_the_next_run_is_not_folded_away(opened):
    field = opened.desk.form.fields["threads"]
    assert not field.isVisible()
    opened.pipeline.run_started(opened.pipeline.next)
    opened.pipeline.set("threads", 2)
    assert field.isVisible()
    assert field.waiting.isVisible()
    opened.pipeline.run_ended()
    assert not field.isVisible()


def test_with_every_row_open_each_title_and_sentence_is_whole(qtbot, opened):
    form = opened.desk.form
    for name in ("demo", "dnn", "ctc"):
        opened.pipeline.choose(name)
        for layer in form.layers.values():
            layer.more.setChecked(True)
        rows = form._scroll.widget()
        settle()
        qtbot.waitUntil(lambda rows=rows: rows.height() >= rows.layout().totalHeightForWidth(rows.width()))
        settle()
        shown = [field for field in form.fields.values() if field.isVisible()]
        assert len(shown) == len(opened.pipeline.options)
        assert any(field.reason.isVisible() for field in shown)
        assert (name, cut_short(form), faults(form)) == (name, [], [])
        for field in shown:
            if field.reason.isVisible():
                assert field.reason.height() >= field.reason.heightForWidth(field.reason.width())
                assert field.rect().contains(field.reason.geometry())


def test_a_title_of_two_lines_makes_room_for_what_waits(opened):
    field = opened.desk.form.fields[TWO_LINES]
    opened.desk.form.layers[field.option.layer].more.setChecked(True)
    QApplication.processEvents()
    height = field.height()
    assert "\n" in field.title.text()
    field.show_waiting(True)
    QApplication.processEvents()
    assert (field.height(), "\n" in field.title.text()) == (height, False)
    assert faults(opened.desk.form) == []
    field.show_waiting(False)
    assert "\n" in field.title.text()


def test_a_search_finds_every_setting_and_the_other_sections_are_one_line(opened):
    form = opened.desk.form
    rest = [layer for layer in form.layers.values() if not layer.is_main]
    assert rest
    assert not any(layer.isVisible() for layer in rest)
    assert form.others.text() == f"{len(rest)} more ▾"
    form.others.click()
    assert all(layer.isVisible() for layer in form.layers.values())
    form.others.click()
    for option in opened.pipeline.options:
        form.search.setText(f"{option.key} {option.title}")
        assert form.fields[option.key].isVisible(), option.key
    form.search.setText("nothing of this name")
    assert not any(layer.isVisible() for layer in form.layers.values())
    form.reveal("stream.chunk_ms")
    assert form.search.text() == ""
    assert form.fields["stream.chunk_ms"].isVisible()
