"""Toggles that the settings declare, nets, and presets chosen before and during a run."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton
from shown_windows import NOT_READ, errors, press, start_run, texts

from app.model.pipeline import missing_file
from app.window.bars.topbar import Figure, PresetButton
from app.window.form.fields import PathBox
from app.window.main_window import MainWindow
from app.window.notices import Banner
from app.window.palette import RESULT_ROLE, Palette
from pipelines import config as settings
from pipelines.config import presets

SELECTION, LAZY, SKIP = "gmm.selection.enabled", "dnn.senones", "frames.skip"
BLANKS = "search.blank_skipping"


def test_every_toggle_that_the_settings_declare_has_an_action_and_a_place(pipeline):
    declared = {o.key for o in settings.options() if o.toggle is not None}
    assert declared == {SELECTION, LAZY, SKIP, BLANKS}
    assert {toggle.key for toggle in pipeline.toggles} == declared


def test_the_one_that_acts_is_shown_and_the_others_give_a_reason(pipeline):
    first = [sharing[0].key for sharing in pipeline.toggles.places()]
    assert first == [SELECTION, SKIP]
    assert pipeline.toggles[SELECTION].unavailable_reason is None
    pipeline.set("model", "dnn")
    assert [sharing[0].key for sharing in pipeline.toggles.places()] == [LAZY, SKIP]
    why = pipeline.toggles[SELECTION].unavailable_reason
    assert why == settings.unavailable_reason(pipeline.next, SELECTION)
    assert "ptm" in why


def test_lazy_evaluation_goes_back_to_the_choice_last_made_and_selection_survives_it(pipeline):
    lazy = pipeline.toggles[LAZY]
    pipeline.toggles[SELECTION].set(True)
    pipeline.set("gmm.selection.top_n", 8)
    pipeline.set("model", "dnn")
    assert lazy.text() == "off: all outputs"
    lazy.flip()
    assert pipeline.value(LAZY) == "active"
    assert lazy.text() == "only active senones"
    pipeline.set(LAZY, "active-ahead")
    lazy.flip()
    assert pipeline.value(LAZY) == "all"
    lazy.flip()
    assert pipeline.value(LAZY) == "active-ahead"
    pipeline.set("model", "ptm")
    assert pipeline.toggles.places()[0][0].on
    assert pipeline.toggles[SELECTION].text().startswith("top-n · 8")


def test_what_stands_in_the_way_of_switching_on_disables_the_switch(pipeline):
    pipeline.choose("dnn")
    pipeline.set("frames.rule", "multi-frame")
    why = pipeline.toggles[LAZY].unavailable_reason
    assert why is not None
    assert "multi-frame" in why
    assert pipeline.toggles[SKIP].unavailable_reason is None
    pipeline.set(SKIP, 2)
    assert pipeline.toggles[SKIP].text() == "one pass of the net for 2 frames"


def test_the_bar_the_menu_the_palette_and_the_keys_follow_the_model(qtbot, window):
    w = window()
    first = w.top.toggles[0]
    assert first.title.text() == "Gaussian selection"
    w.pipeline.choose("dnn")
    assert first.title.text() == first.switch.accessibleName() == "Lazy evaluation"
    assert "Gaussian selection: gmm.selection.enabled acts only" in first.toolTip()
    idle = w.actions_[f"toggle.{SELECTION}"]
    assert not idle.isEnabled()
    assert not idle.isChecked()
    assert "acts only with model" in idle.toolTip()
    qtbot.keyClick(w, Qt.Key.Key_G)
    assert not w.pipeline.next.gmm.selection.enabled
    qtbot.keyClick(w, Qt.Key.Key_E)
    assert w.pipeline.value(LAZY) == "active"
    assert first.switch.isChecked()
    assert w.actions_[f"toggle.{LAZY}"].isChecked()
    palette = Palette(w.actions_, w)
    qtbot.addWidget(palette)
    palette._filter("gaussian selection")
    assert "acts only with model" in palette.list.item(0).data(RESULT_ROLE).why
    palette._filter("lazy evaluation")
    assert palette.list.item(0).text() == "Lazy evaluation"
    assert palette.list.item(0).data(RESULT_ROLE).why is None


def test_a_change_given_up_while_running_is_reported_once_and_waits(qtbot, window, tmp_path):
    w = window("giveup")
    w.pipeline.choose("dnn")
    start_run(qtbot, w, tmp_path)
    w.pipeline.set("dnn.shrink", "low-rank")
    qtbot.waitUntil(lambda: bool(errors(w)))
    assert errors(w) == ["dnn.shrink=low-rank could not be made ready: there is no such net."]
    assert "Decoding goes on: compiling kernels in another process for dnn.shrink." in texts(w, "info")
    assert w.when.is_running()
    assert w.pipeline.waits("dnn.shrink")
    assert w.pipeline.next.dnn.shrink == "low-rank"
    before = w.playhead.n_frames
    w.notices.clear()
    qtbot.waitUntil(lambda: w.playhead.n_frames > before + 60)
    assert errors(w) == []


def test_a_net_that_is_not_there_is_refused_in_a_sentence_and_the_old_one_kept(qtbot, window):
    w = window()
    w.pipeline.choose("dnn")
    w.show_desk()
    box = w.desk.form.fields["dnn.net"].editor
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "nosuch.safetensors")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    (sentence,) = errors(w)
    assert sentence.startswith("dnn.net: there is no file 'nosuch.safetensors'; base")
    assert w.pipeline.value("dnn.net") == box.path == "base"


def test_a_net_is_named_or_a_file_of_either_kind(qtbot, pipeline, tmp_path):
    option = settings.option("dnn.net")
    assert "base" in option.shipped()
    for name in ("mine.safetensors", "mine.onnx", "mine.txt"):
        (tmp_path / name).write_bytes(b"")
        assert pipeline.set("dnn.net", str(tmp_path / name)) == (name != "mine.txt")
    assert missing_file(pipeline.next) is None
    (tmp_path / "mine.onnx").unlink()
    assert missing_file(pipeline.next) is None, "mixtures score, so it does not matter"
    pipeline.set("model", "dnn")
    assert "mine.onnx" in missing_file(pipeline.next)
    box = PathBox(False, "Net", option.shipped(), option.suffixes)
    qtbot.addWidget(box)
    box.set_path("base")
    menu = box.offered()
    entries = {action.text(): action for action in menu.actions() if action.text()}
    assert list(entries) == [*option.shipped(), "A file…"]
    assert entries["base"].isChecked()
    reported: list[str] = []
    box.chosen.connect(reported.append)
    box.set_path("other.onnx")
    entries["base"].trigger()
    assert reported == ["base"]


def test_presets_of_a_group_lie_in_a_submenu_and_fold_on_the_first_page(qtbot, window):
    button = PresetButton()
    qtbot.addWidget(button)
    titles = [a.text() for a in button.choices.actions() if a.menu() is None]
    assert titles == [presets.load(name).title for name in presets.names("")]
    submenus = [a.menu() for a in button.choices.actions() if a.menu() is not None]
    for group, submenu in zip(presets.groups(), submenus, strict=True):
        members = presets.names(group)
        assert [a.text() for a in submenu.actions()] == [presets.load(n).title for n in members]
        for name, action in zip(members, submenu.actions(), strict=True):
            assert action.isEnabled() == (missing_file(presets.load(name).config) is None)
    reported: list[str] = []
    button.chosen.connect(reported.append)
    button.choices.actions()[1].trigger()
    assert reported == [presets.names("")[1]]
    w = window()
    for group in presets.groups():
        member = w.welcome.findChild(QPushButton, f"preset-{presets.names(group)[0]}")
        assert member is None or not member.isVisible()
    for more in w.welcome.findChildren(QPushButton, "presets-more"):
        more.click()
    QApplication.processEvents()
    for name in presets.names():
        assert w.welcome.findChild(QPushButton, f"preset-{name}").isVisible()


def test_a_figure_keeps_its_width(qtbot):
    """Its neighbours moved whenever WER was unknown for a moment, or had another digit."""
    figure = Figure("WER")
    qtbot.addWidget(figure)
    figure.show_value("29.5 %", "105 words", "")
    wide = figure.minimumSizeHint().width()
    figure.show_value("–", "", "")
    assert max(figure.minimumWidth(), figure.minimumSizeHint().width()) >= wide


def choose(window: MainWindow, name: str) -> Banner:
    """Choose a preset at the top; return the question that this brings up."""
    title = presets.load(name).title
    entry = next(a for a in window.top.preset.choices.actions() if a.text() == title)
    entry.trigger()
    (question,) = [b for b in window.notices.banners if b.kind == "question"]
    assert title in question.text
    return question


def requested_changes(window: MainWindow) -> list[str]:
    return [m.text for m in window.playhead.session.markers]


@pytest.mark.slow
def test_for_the_next_run_it_waits_and_this_one_is_unchanged(qtbot, live):
    before = live.pipeline.next
    press(choose(live, "dnn"), "For the next run")
    assert live.pipeline.next == before
    assert live.top.preset.text().startswith("next: ")
    assert live.top.toggles[0].title.text() == "Gaussian selection"
    qtbot.wait(200)
    assert requested_changes(live) == []
    live.runs.stop()
    qtbot.waitUntil(live.when.is_idle)
    assert live.pipeline.next == presets.load("dnn").config
    assert live.pipeline.preset.name == "dnn"
    assert live.pipeline.waiting is None


@pytest.mark.slow
def test_a_run_goes_on_as_it_is_until_the_question_is_answered_by_keys(qtbot, live):
    before, session = live.pipeline.next, live.playhead.path
    choose(live, "dnn")
    assert live.pipeline.running == live.pipeline.next == before
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Space)
    assert not live.playhead.following
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert texts(live, "question") == []
    assert live.pipeline.waiting is None
    assert requested_changes(live) == []
    assert live.playhead.path == session
    question = choose(live, "dnn")
    first = question.findChildren(QPushButton)[0]
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is first
    qtbot.keyClick(first, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: live.when.is_running() and live.playhead.path not in (None, session))
    assert live.runs.control.request.preset == "dnn"
    assert live.runs.control.request.config == settings.to_dict(presets.load("dnn").config)
    assert live.pipeline.running == presets.load("dnn").config


@pytest.mark.slow
def test_another_model_for_the_next_run_leaves_the_toggles_to_this_one(qtbot, live):
    """A net's toggle over the data of mixtures would write a marker for nothing."""
    live.pipeline.set("model", "dnn")
    assert live.pipeline.waits("model")
    assert live.top.toggles[0].title.text() == "Gaussian selection"
    assert live.top.toggles[0].switch.isEnabled()
    lazy = live.actions_[f"toggle.{LAZY}"]
    assert not lazy.isEnabled()
    assert "acts only with model = dnn" in lazy.toolTip()
    assert "next run" in lazy.toolTip()
    qtbot.keyClick(live, Qt.Key.Key_E)
    assert live.pipeline.value(LAZY) == "all"
    field = live.desk.form.fields[LAZY]
    assert not field.editor.isEnabled()
    assert field.unavailable_reason is not None
    assert not live.pipeline.set(LAZY, "active")
    qtbot.keyClick(live, Qt.Key.Key_G)
    assert live.pipeline.running.gmm.selection.enabled
    qtbot.waitUntil(lambda: bool(requested_changes(live)))
    assert requested_changes(live) == [f"{SELECTION}=True"]


def test_without_a_run_settings_are_judged_by_the_next_one(pipeline):
    pipeline.set("model", "dnn")
    assert pipeline.unavailable_reason(LAZY) is None
    assert pipeline.set(LAZY, "active")
    pipeline.run_started(presets.load(presets.DEFAULT).config)
    assert pipeline.unavailable_reason(LAZY) is not None
    assert pipeline.unavailable_reason("dnn.net") is not None
    assert pipeline.unavailable_reason("graph.vocabulary") is None
    pipeline.run_ended()
    assert pipeline.unavailable_reason(LAZY) is None


def chosen_own(w: MainWindow, folder: Path) -> list[str]:
    (folder / "own.wav").write_bytes(NOT_READ)
    w.files.take_audio([folder / "own.wav"])
    return [banner.text for banner in w.notices.banners if banner.text.startswith("The next run")]


@pytest.mark.slow
def test_files_of_ones_own_do_not_inherit_loop_and_pace_of_the_demo(qtbot, window, tmp_path):
    w = window()
    w.runs.demo()
    qtbot.waitUntil(w.when.is_running)
    (said,) = chosen_own(w, tmp_path)
    assert said == ("The next run decodes 1 file, once and at full speed: loop and pace were the demo's.")
    assert w.pipeline.running.loop, "the demo goes on as it is"
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    assert (w.pipeline.next.loop, w.pipeline.next.pace) == (False, 0.0)
    w.runs.start()
    qtbot.waitUntil(w.when.is_running)
    assert not w.runs.control.request.config["loop"]


def test_a_loop_that_a_person_chose_stays_and_is_said_until_the_run_begins(window, tmp_path):
    w = window()
    w.pipeline.set("loop", True)
    assert chosen_own(w, tmp_path) == ["The next run decodes 1 file."]
    assert w.pipeline.next.loop
    (banner,) = w.notices.banners
    press(banner, "Run")
    assert w.runs.control.busy
    assert banner not in w.notices.banners


def test_a_title_says_that_settings_differ_from_the_preset_and_the_file_does(qtbot, window, tmp_path):
    w = window()
    w.runs.choose_preset("gmm")
    title = presets.load("gmm").title
    w.pipeline.set("loop", True)
    w.pipeline.set("pace", 4.0)
    assert w.top.preset.full == title, "that is the course of a run, and no other work"
    w.pipeline.set("search.beam", 9.0)
    assert w.top.preset.full == f"{title} (modified)"
    w.runs.start()
    assert "-gmm-modified" in str(w.runs.control.request.out)
    checked = [name for name, entry in w.top.preset._entries.items() if entry.isChecked()]
    assert checked == ["gmm"]
