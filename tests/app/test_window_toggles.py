"""What is flipped on top: toggles that the settings declare, taking turns in their place; nets and presets chosen."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton
from shown_windows import errors, start_run, texts

from app.model.pipeline import Pipeline, missing_file
from app.window.bars.topbar import Figure, PresetButton
from app.window.form.fields import PathBox
from app.window.palette import RESULT_ROLE, Palette
from pipelines import config as settings
from pipelines.config import presets

SELECTION, LAZY, SKIP = "gmm.selection.enabled", "dnn.senones", "frames.skip"
BLANKS = "search.blank_skipping"


@pytest.fixture
def pipeline():
    return Pipeline()


def test_every_toggle_that_the_settings_declare_has_an_action_and_a_place(pipeline):
    declared = {o.key for o in settings.options() if o.toggle is not None}
    assert declared == {SELECTION, LAZY, SKIP, BLANKS}
    assert {toggle.key for toggle in pipeline.toggles} == declared
    for option in settings.options():
        if option.toggle is not None:
            assert option.live
            ends = (option.toggle.off, option.toggle.on)
            assert ends[0] != ends[1]
            for value in ends:
                assert settings.get(settings.replace(settings.Config(), option.key, value), option.key) == value


def test_the_one_that_acts_is_shown_and_the_others_give_a_reason(pipeline):
    first = [sharing[0].key for sharing in pipeline.places()]
    assert first == [SELECTION, SKIP]
    assert pipeline.toggle(SELECTION).unavailable_reason is None
    pipeline.set("model", "dnn")
    assert [sharing[0].key for sharing in pipeline.places()] == [LAZY, SKIP]
    why = pipeline.toggle(SELECTION).unavailable_reason
    assert why == settings.unavailable_reason(pipeline.next, SELECTION)
    assert "ptm" in why


def test_lazy_evaluation_goes_back_to_the_choice_last_made_and_selection_survives_it(pipeline):
    lazy = pipeline.toggle(LAZY)
    pipeline.toggle(SELECTION).set(True)
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
    assert pipeline.places()[0][0].on
    assert pipeline.toggle(SELECTION).text().startswith("top-n · 8")


def test_what_stands_in_the_way_of_switching_on_disables_the_switch(pipeline):
    pipeline.choose("dnn")
    pipeline.set("frames.rule", "multi-frame")
    why = pipeline.toggle(LAZY).unavailable_reason
    assert why is not None
    assert "multi-frame" in why
    assert pipeline.toggle(SKIP).unavailable_reason is None
    pipeline.set(SKIP, 2)
    assert pipeline.toggle(SKIP).text() == "one pass of the net for 2 frames"


def test_what_hangs_on_an_idle_setting_is_idle_too(pipeline):
    pipeline.set("gmm.selection.method", "clusters")
    pipeline.set("model", "dnn")
    for key in ("gmm.selection.method", "gmm.selection.codewords", "gmm.selection.expand"):
        option = pipeline.option(key)
        assert pipeline.unavailable_reason(key).startswith(f"{key} acts only with model = ptm")
        assert pipeline.condition(option).startswith("with acoustic model ptm")
    assert pipeline.unavailable_reason("dnn.share") is not None
    assert pipeline.condition(pipeline.option("dnn.share")).startswith("with compression")


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
    option = pipeline.option("dnn.net")
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
    assert len(submenus) == len(presets.groups())
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
