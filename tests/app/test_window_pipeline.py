"""Settings and their form: generated from the tree, live where they can be, honest where not."""

import sys
from typing import Annotated, Literal

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel

from app.model.pipeline import Pipeline
from app.model.processes.command import DeviceProbe
from app.widgets import ChoiceBox, NumberBox, Switch
from app.window.form.fields import PathBox
from app.window.form.form import PipelineForm
from pipelines import config as settings
from pipelines.config import presets

SELECTION_KEY, METHOD_KEY = "gmm.selection.enabled", "gmm.selection.method"
SKIP_KEY, LAZY_KEY = "frames.skip", "dnn.senones"

KINDS = {"bool": Switch, "int": NumberBox, "float": NumberBox, "choice": ChoiceBox, "text": PathBox}


@pytest.fixture
def form(qtbot, pipeline):
    made = PipelineForm(pipeline)
    qtbot.addWidget(made)
    made.resize(262, 800)
    made.show()
    return made


def test_every_setting_has_the_field_of_its_type_in_the_order_of_the_data(form):
    known = settings.options()
    for option in known[::-1]:
        field = form.fields[option.key]
        assert isinstance(field.editor, KINDS[option.type])
        assert option.help in field.toolTip()
        value = form.pipeline.value(option.key)
        if option.type in ("int", "float"):
            assert (field.editor.minimum(), field.editor.maximum()) == (option.minimum, option.maximum)
            assert field.editor.value() == pytest.approx(value)
        elif option.type == "bool":
            assert field.editor.isChecked() == value
        elif option.type == "choice":
            assert field.editor.currentText() == str(value)
    for layer in form.layers.values():
        rows = [layer._rows.itemAt(at).widget() for at in range(layer._rows.count())]
        assert rows == [form.fields[key] for key in layer.options]
    chain = [form.nextInFocusChain()]
    while chain[-1] is not form:
        chain.append(chain[-1].nextInFocusChain())
    layers = [part.itemAt(at).widget() for part in (form._main, form._rest) for at in range(part.count())]
    editors = [form.fields[key].editor for layer in layers for key in layer.options]
    assert [widget for widget in chain if widget in editors] == editors, "Tab goes down the form"


def test_typing_a_number_sets_it_when_entered(qtbot, form, pipeline):
    box = form.fields["graph.vocabulary"].editor
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "1234")
    assert pipeline.value("graph.vocabulary") == 5000
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert pipeline.value("graph.vocabulary") == 1234
    assert "--set graph.vocabulary=1234" in form.fields["graph.vocabulary"].toolTip()
    assert box.text().replace("\u2009", "") == "1234 words"


@pytest.mark.parametrize("key", ["search.beam", "threads"])
def test_a_number_out_of_range_is_not_taken(qtbot, form, pipeline, key):
    box, before, shown = (form.fields[key].editor, pipeline.value(key), form.fields[key].editor.text())
    reported = []
    pipeline.refused.connect(lambda *refused: reported.append(refused))
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "99999")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert (pipeline.value(key), box.text()) == (before, shown)
    ((of, sentence),) = reported
    assert of == key
    assert sentence.endswith("; 99999 is not taken.")
    assert "must be a number from 1 to " in sentence


def test_during_a_run_live_settings_are_requested_and_others_wait(form, pipeline):
    asked = []
    pipeline.live_change.connect(lambda *change: asked.append(change))
    pipeline.run_started(pipeline.next)
    pipeline.set("search.beam", 9.0)
    pipeline.set("graph.vocabulary", 900)
    assert asked == [("search.beam", 9.0)]
    assert not form.fields["search.beam"].waiting.isVisible()
    assert form.fields["graph.vocabulary"].waiting.isVisible()
    assert form.fields["graph.vocabulary"].waiting.text() == "on next run"
    pipeline.run_ended()
    assert not form.fields["graph.vocabulary"].waiting.isVisible()
    assert pipeline.next.graph.vocabulary == 900


def test_a_change_that_the_worker_refuses_waits_for_the_next_run(form, pipeline):
    pipeline.run_started(pipeline.next)
    pipeline.set("search.beam", 9.0)
    pipeline.not_taken("search.beam")
    assert pipeline.running.search.beam == 13.0
    assert pipeline.waits("search.beam")
    assert form.fields["search.beam"].waiting.isVisible()


def test_the_toggle_of_frames_says_what_it_does_now(pipeline):
    pipeline.set(SKIP_KEY, 3)
    assert pipeline.toggles[SKIP_KEY].text() == "scores every 3rd, copy between"
    pipeline.set("frames.rule", "conditional")
    assert pipeline.toggles[SKIP_KEY].text() == "skips up to 2 in a row that are alike"
    for on, value in ((False, 1), (True, 3)):
        pipeline.toggles[SKIP_KEY].set(on)
        assert pipeline.value(SKIP_KEY) == value, "it goes back to the factor last used"


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_can_be_chosen_before_and_during_a_run(pipeline, name):
    pipeline.choose(name)
    assert pipeline.next == presets.load(name).config
    assert not pipeline.differs()
    pipeline.run_started(presets.load(presets.DEFAULT).config)
    pipeline.choose(presets.DEFAULT)
    pipeline.choose(name)
    assert pipeline.running == presets.load(presets.DEFAULT).config
    pipeline.run_ended()
    assert pipeline.next == presets.load(name).config


def test_the_wheel_over_a_field_that_is_only_scrolled_past_changes_nothing(form, pipeline):
    box = form.fields["search.beam"].editor
    box.clearFocus()
    middle, none = box.rect().center(), Qt.MouseButton.NoButton
    at = QPointF(middle), QPointF(box.mapToGlobal(middle)), QPoint(), QPoint(0, 120)
    wheel = QWheelEvent(*at, none, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(box, wheel)
    assert pipeline.value("search.beam") == 13.0


def test_an_opened_session_shows_its_own_settings_and_finds_its_files(pipeline, tmp_path):
    (tmp_path / "own.gram").write_text("")
    with_grammar = settings.assign(presets.load("gmm").config, {"graph.grammar": "own.gram"})
    pipeline.adopt(settings.to_dict(with_grammar), "gmm", tmp_path / "s.asrs")
    assert pipeline.value("graph.grammar") == str(tmp_path / "own.gram")
    recorded = settings.assign(presets.load("gmm-quick").config, {"gmm.selection.top_n": 8})
    pipeline.adopt(settings.to_dict(recorded), "gmm-quick")
    assert pipeline.next == recorded
    assert pipeline.preset.name == "gmm-quick"
    assert pipeline.differs()
    pipeline.adopt({"a setting of": "another version"}, "gmm")
    assert pipeline.next == recorded
    pipeline.run_started(recorded)
    pipeline.adopt(settings.to_dict(settings.Config()), "gmm")
    assert pipeline.next == recorded


class Wine(settings.Config, frozen=True, forbid_unknown_fields=True):
    """A tree whose last settings stand in each other's way."""

    colour: Annotated[Literal["red", "white"], settings.setting("Colour", "Which.", layer="A")] = "red"
    depth: Annotated[int, settings.setting("Depth", "How deep.", layer="A", unit="m", ge=1, le=9, live=True)] = 3
    label: Annotated[str, settings.setting("Label", "Any text.", layer="A")] = "none"
    age: Annotated[
        int, settings.setting("Age", "How old.", layer="B", main=True, ge=1, le=99, when={"colour": ("red",)})
    ] = 3
    glass: Annotated[
        Literal["tulip", "flute"],
        settings.setting("Glass", "What from.", layer="B", main=True, choices_when={"flute": {"colour": ("white",)}}),
    ] = "tulip"


@pytest.fixture
def cellar(qtbot, monkeypatch):
    monkeypatch.setattr("pipelines.config.tree.Config", Wine)
    preset = presets.Preset("cellar", "Cellar", "All of it.", Wine())
    monkeypatch.setattr(presets, "load", lambda _: preset)
    form = PipelineForm(Pipeline())
    qtbot.addWidget(form)
    form.resize(262, 800)
    form.show()
    return form


def test_a_new_setting_in_the_tree_appears_with_no_edit_here(cellar):
    assert "A" in [w.text() for w in cellar.findChildren(QLabel, "form-layer")]
    assert isinstance(cellar.fields["colour"].editor, ChoiceBox)
    assert isinstance(cellar.fields["label"].editor, PathBox)
    depth = cellar.fields["depth"].editor
    assert (depth.value(), depth.minimum(), depth.maximum(), depth.suffix()) == (3, 1, 9, " m")
    depth.setValue(7)
    assert cellar.pipeline.value("depth") == 7


def test_what_cannot_act_is_folded_away_and_says_why(cellar):
    age, layer = cellar.fields["age"], cellar.layers["B"]
    assert age.isVisible()
    assert not layer.more.isVisible()
    cellar.pipeline.set("colour", "white")
    assert not age.isVisible()
    assert layer.more.text().startswith("1 more")
    assert "No effect with these settings: Age" in layer.more.toolTip()
    layer.more.click()
    assert age.isVisible()
    assert not age.editor.isEnabled()
    assert age.reason.text() == "with colour red"
    assert settings.unavailable_reason(cellar.pipeline.next, "age") in age.toolTip()
    cellar.pipeline.set("colour", "red")
    assert age.editor.isEnabled()
    assert not age.reason.isVisible()


def test_a_choice_that_cannot_be_made_is_grey_with_its_reason(cellar):
    pipeline, glass = cellar.pipeline, cellar.fields["glass"]
    item = glass.editor.model().item(1)
    assert not item.isEnabled()
    assert item.toolTip() == settings.unavailable_reason(pipeline.next, "glass", "flute")
    reported: list[str] = []
    pipeline.refused.connect(lambda _, text: reported.append(text))
    assert not pipeline.set("glass", "flute")
    assert reported == [item.toolTip()]
    pipeline.set("colour", "white")
    assert item.isEnabled()
    assert pipeline.set("glass", "flute")
    assert not pipeline.set("colour", "red"), "the glass that is chosen stands in the way"
    assert not cellar.fields["colour"].editor.model().item(0).isEnabled()
    assert pipeline.value("colour") == "white"


def test_devices_that_are_not_here_are_grey_with_the_reason(form, pipeline):
    pipeline.set_absent({"device": {"cuda": "no CUDA"}})
    choices = form.fields["device"].editor
    item = choices.model().item(choices.findText("cuda"))
    assert not item.isEnabled()
    assert "no CUDA" in item.toolTip()
    assert choices.model().item(choices.findText("cpu")).isEnabled()
    pipeline.set("device", "cuda")
    assert "no CUDA" in form.fields["device"].reason.text(), "a preset may ask for it"


def test_a_path_is_typed_chosen_or_dropped(qtbot, form, pipeline, tmp_path, monkeypatch):
    grammar = tmp_path / "a name that is far too long for the field.gram"
    grammar.write_text("")
    box = form.fields["graph.grammar"].editor
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(grammar), ""))
    entries = {action.text(): action for action in box.offered().actions()}
    assert {"digits", "cards", "robot"} < set(entries), "those that ship with the program"
    entries["A file…"].trigger()
    assert pipeline.value("graph.grammar") == box.path == str(grammar)
    box.clearFocus()
    assert box.text() != grammar.name
    assert box.text().endswith("gram")
    assert str(grammar) in box.toolTip()
    box.setFocus()
    assert box.text() == str(grammar)
    box.selectAll()
    (tmp_path / "other.gram").write_text("")
    monkeypatch.chdir(tmp_path)
    qtbot.keyClicks(box, "other.gram")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert pipeline.value("graph.grammar") == "other.gram"
    box.clear()
    box.clearFocus()
    for path, wanted in ((tmp_path, ""), (grammar, str(grammar))):
        what = QMimeData()
        what.setUrls([QUrl.fromLocalFile(str(path))])
        args = (what, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
        drag = QDragEnterEvent(box.rect().center(), Qt.DropAction.CopyAction, *args)
        box.dragEnterEvent(drag)
        assert drag.isAccepted() == bool(wanted)
        box.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, *args))
        assert box.path == wanted or not wanted
    assert pipeline.value("graph.grammar") == str(grammar)
    folder = form.fields["model_directory"].editor
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    qtbot.mouseClick(folder.button, Qt.MouseButton.LeftButton)
    assert pipeline.value("model_directory") == str(tmp_path)


def test_switching_selection_on_selects_whatever_the_method(pipeline):
    pipeline.set(METHOD_KEY, "vq")
    pipeline.set("gmm.selection.codewords", 256)
    pipeline.set("gmm.selection.threshold", 2.5)
    assert pipeline.toggles[SELECTION_KEY].text() == "off: all Gaussians"
    pipeline.toggles[SELECTION_KEY].set(True)
    assert pipeline.toggles[SELECTION_KEY].text() == "vq · 256 codewords · 2.5 shortlist radius"
    pipeline.set(METHOD_KEY, "none")
    assert pipeline.toggles[SELECTION_KEY].text() == "method none: all Gaussians"
    pipeline.toggles[SELECTION_KEY].set(False)
    pipeline.toggles[SELECTION_KEY].set(True)
    assert pipeline.value(METHOD_KEY) == "vq"


def test_the_probe_asks_a_process_once_and_bears_any_answer(qtbot):
    code = 'print(\'{"obstacles": {"device": {"mps": "no"}}}\')'
    probe = DeviceProbe((sys.executable, "-c", code))
    with qtbot.waitSignal(probe.found) as reported:
        probe.ask()
        probe.ask()
    assert reported.args == [{"device": {"mps": "no"}}]
    for command in ((sys.executable, "-c", "print('no')"), ("/no/such/program",)):
        silent = DeviceProbe(command)
        silent.found.connect(lambda *_: pytest.fail("it knows nothing"))
        silent.ask()
        qtbot.waitUntil(lambda probe=silent: not probe._command.running)
    late = DeviceProbe((sys.executable, "-c", "import time; time.sleep(60)"))
    late.ask()
    late.stop()


def test_the_arrows_of_pace_go_through_paces(qtbot, form, pipeline):
    box = form.fields["pace"].editor
    pipeline.set("pace", 1.0)
    box.setFocus()
    seen = []
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Down, *[Qt.Key.Key_Up] * 4):
        qtbot.keyClick(box, key)
        seen.append(pipeline.value("pace"))
    assert seen == [0.5, 0.0, 0.0, 0.5, 1.0, 2.0, 4.0]
    pipeline.set("pace", 0.0)
    assert box.text() == "full speed"
