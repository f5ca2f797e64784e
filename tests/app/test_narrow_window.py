"""The window at its least size, and on a 4K screen at threefold scale: whole words, and nothing on top of another."""

from dataclasses import replace

import pytest

from app.model.effects import Effect
from app.model.recent import Memory
from app.pictures.writers import settle
from app.views.view import View
from app.window.first_window import MINIMUM
from app.window.main_window import MainWindow
from pipelines.audio.word_errors import ErrorCount
from tests.app.sample_session import write_sample
from tests.app.text_geometry import cut_short, faults

FASTER = Effect("faster", 3.5, 3.1, 3.9, ErrorCount(1, 30), ErrorCount(2, 30), "undecided", 41.5, 11.9)


@pytest.fixture
def opened(qtbot, tmp_path):
    window = MainWindow(memory=Memory(tmp_path / "settings.ini"))
    qtbot.addWidget(window)
    path = write_sample(tmp_path / "a-name-that-is-very-long.asrs", frames=2048)
    window.playhead.open(path)
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
    window.top.rtf.show_value("0.243", "whole run", "")
    window.top.wer.show_value("29.5 %", "105 words", "")
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
    assert transport.live.isHidden()
    assert transport.mark.isHidden()
    assert transport.speed.isVisible()
