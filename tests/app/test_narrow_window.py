"""The form at the smallest window to serve, the window at its least size, and on a 4K screen: whole words in view."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication

from app.model.effects import Effect
from app.pictures.writers import settle
from app.views.view import View
from app.window.first_window import MINIMUM
from app.window.main_window import MainWindow
from pipelines.audio.word_errors import ErrorCount
from pipelines.config import presets
from tests.app.sample_session import write_sample
from tests.app.text_geometry import cut_short, faults

FASTER = Effect("faster", 3.5, 3.1, 3.9, ErrorCount(1, 30), ErrorCount(2, 30), "undecided", 41.5, 11.9)


@pytest.fixture
def opened(qtbot, tmp_path):
    window = MainWindow()
    qtbot.addWidget(window)
    window.playhead.open(write_sample(tmp_path / "a-name-that-is-very-long.asrs", frames=2048))
    window.show_desk()
    window.show()
    return window


def settled(window: MainWindow, width: int, height: int) -> MainWindow:
    window.resize(width, height)
    settle()
    for view in window.findChildren(View):
        view.settle()
    return window


def show_figures(window: MainWindow, scope: str = "whole run") -> None:
    """What a run with a baseline and references shows above."""
    for toggle in window.top.toggles:
        toggle.show_effect(FASTER)
    window.top.rtf.show_value("0.243", scope, "")
    window.top.wer.show_value("29.5 %", "105 words", "")


@pytest.mark.slow
def test_at_its_least_size_all_is_said_in_whole_words(opened):
    window = settled(opened, MINIMUM.width(), MINIMUM.height())
    show_figures(window)
    settle()
    assert (faults(window), cut_short(window)) == ([], [])
    assert [t.subtitle.text() for t in window.top.toggles] == [""] * 2


@pytest.mark.slow
def test_in_less_room_the_form_waits_and_figures_stand_alone(opened):
    window = settled(opened, 1280, 800)
    assert not window.desk.form.isHidden()
    settled(window, 1024, 640)
    assert window.desk.form.isHidden()
    window.setMinimumSize(600, 500)
    settled(window, 853, 640)
    show_figures(window)
    settle()
    assert window.desk.form.isHidden()
    assert (faults(window), cut_short(window)) == ([], [])
    window.desk.form.show()
    settled(window, 700, 640)
    assert not window.desk.form.isHidden(), "asked for in a narrow window, it stays"
    window.desk.form.hide()
    settled(window, 1280, 800)
    assert not window.desk.form.isHidden(), "it is back where there is room"


@pytest.mark.slow
def test_on_a_small_laptop_an_effect_has_its_interval(opened):
    """A rate of errors above 100 % is wider than any other, and took its room."""
    top = settled(opened, 1280, 768).top
    top.show_recording(66.0)
    show_figures(opened)
    top.wer.show_value("114.0 %", "186 words", "")
    settle()
    assert [t.effect.text() for t in top.toggles] == [FASTER.brief] * 2
    assert (faults(opened), cut_short(opened)) == ([], [])


def test_the_arms_of_an_ab_are_whole_words_at_every_width(opened):
    effect = replace(FASTER, factor=1.61, low=1.1, high=2.36, turns=4)
    toggle = opened.top.toggles[0]
    shown = set()
    for width in range(120, 320, 5):
        toggle.setFixedWidth(width)
        toggle.show_effect(effect)
        settle()
        shown.add(toggle.effect.text())
        assert toggle.effect.text() == effect.brief or toggle.effect.width() >= toggle.effect.sizeHint().width()
    assert shown == {effect.brief, effect.headline}


@pytest.mark.slow
def test_at_its_least_size_a_run_that_is_followed_has_whole_words(live):
    """The buttons below it were squeezed until their words were cut, and so was the name of a toggle."""
    window = settled(live, MINIMUM.width(), MINIMUM.height())
    show_figures(window, "last 3 s")
    while window.notices.banners:
        window.notices.remove(window.notices.banners[0])
    for follows in (True, False):
        assert window.playhead.following is follows
        settled(window, MINIMUM.width(), MINIMUM.height())
        assert (faults(window), cut_short(window)) == ([], [])
        transport = window.desk.transport
        assert all(w.isVisible() for w in (transport.live, transport.toggle, transport.export))
        window.playhead.toggle()
        settle()
    settled(window, 1600, 900)
    assert all(w.isVisible() for w in (transport.mark, transport.speed, transport.follow))
    window.playhead.close()
    assert [w.isHidden() for w in (transport.live, transport.mark, transport.speed)] == [True, True, False]


@pytest.fixture
def wide(window):
    made = window()
    made.resize(1280, 800)
    made.show_desk()
    QApplication.processEvents()
    return made


def tops(window: MainWindow) -> dict[str, int]:
    """Where each setting in view begins."""
    fields = window.desk.form.fields
    return {key: field.mapTo(window, QPoint(0, 0)).y() for key, field in fields.items() if field.isVisible()}


def test_what_is_changed_most_is_above_the_fold(wide):
    for name in ("gmm", "dnn"):
        wide.pipeline.choose(name)
        QApplication.processEvents()
        assert (wide.width(), wide.height()) == (1280, 800)
        view = wide.desk.form._scroll.viewport()
        for key in ("pace", "block", "model", "frames.skip", "search.beam", "search.max_active"):
            field = wide.desk.form.fields[key]
            assert field.isVisible(), (name, key)
            place = field.mapTo(view, field.rect().topLeft()).y()
            assert 0 <= place <= view.height() - field.height(), (name, key)
            assert field.title.text() == field.title.full, f"the title of {key} is cut"
        assert all(toggle.isVisible() for toggle in wide.top.toggles), name


def test_rows_stay_where_they_are_and_what_waits_for_the_next_run_is_not_folded_away(wide):
    before = tops(wide)
    form = wide.desk.form
    form.fields["block"].show_note("latency 210 ms: 160 ms block + 40 ms context + 9.6 ms scoring")
    QApplication.processEvents()
    assert tops(wide) == before
    note = form.fields["block"].note
    assert note.text().endswith("…")
    assert note.fontMetrics().horizontalAdvance(note.text()) <= note.width() - note.indent()
    wide.pipeline.run_started(presets.load(presets.DEFAULT).config)
    wide.pipeline.set("model", "single-stream")  # waits, and says so
    QApplication.processEvents()
    assert form.fields["model"].waiting.isVisible()
    after = tops(wide)
    assert {key: after[key] for key in before} == before
    field = form.fields["threads"]
    assert not field.isVisible()
    wide.pipeline.set("threads", 2)
    assert field.isVisible()
    assert field.waiting.isVisible()
    wide.pipeline.run_ended()
    assert not field.isVisible()


def test_with_every_row_open_each_title_and_sentence_is_whole(qtbot, wide):
    form = wide.desk.form
    for name in ("demo", "dnn", "ctc"):
        wide.pipeline.choose(name)
        for layer in form.layers.values():
            layer.more.setChecked(True)
        rows = form._scroll.widget()
        settle()
        qtbot.waitUntil(lambda rows=rows: rows.height() >= rows.layout().totalHeightForWidth(rows.width()))
        settle()
        shown = [field for field in form.fields.values() if field.isVisible()]
        assert len(shown) == len(wide.pipeline.options)
        assert any(field.reason.isVisible() for field in shown)
        assert (name, cut_short(form), faults(form)) == (name, [], [])
        for field in shown:
            if field.reason.isVisible():
                assert field.reason.height() >= field.reason.heightForWidth(field.reason.width())
                assert field.rect().contains(field.reason.geometry())


def test_a_title_of_two_lines_makes_room_for_what_waits(wide):
    field = wide.desk.form.fields["search.insertion_penalty"]  # whose title is wider than its place
    wide.desk.form.layers[field.option.layer].more.setChecked(True)
    QApplication.processEvents()
    height = field.height()
    assert "\n" in field.title.text()
    field.show_waiting(True)
    QApplication.processEvents()
    assert (field.height(), "\n" in field.title.text()) == (height, False)
    assert faults(wide.desk.form) == []
    field.show_waiting(False)
    assert "\n" in field.title.text()


def test_a_search_finds_every_setting_and_the_other_sections_are_one_line(wide):
    form = wide.desk.form
    rest = [layer for layer in form.layers.values() if not layer.is_main]
    assert rest
    assert not any(layer.isVisible() for layer in rest)
    assert form.others.text() == f"{len(rest)} more ▾"
    form.others.click()
    assert all(layer.isVisible() for layer in form.layers.values())
    form.others.click()
    for option in wide.pipeline.options:
        form.search.setText(f"{option.key} {option.title}")
        assert form.fields[option.key].isVisible(), option.key
    form.search.setText("nothing of this name")
    assert not any(layer.isVisible() for layer in form.layers.values())
    form.reveal("stream.chunk_ms")
    assert form.search.text() == ""
    assert form.fields["stream.chunk_ms"].isVisible()
