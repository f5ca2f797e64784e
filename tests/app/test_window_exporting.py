"""Pictures and data out of the window, and names for what has no text."""

import json
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication, QImageReader
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QApplication, QComboBox, QSlider

from app.cli import main
from app.pictures.process import Job
from app.pictures.request import PictureRequest
from app.views import VIEWS
from app.window.actions import exporting
from app.window.actions.files import QFileDialog
from app.window.pictures.dialog import PictureDialog
from app.window.pictures.drawing import PROCESS, Drawing


@pytest.fixture
def window(opened):
    return opened


@pytest.fixture
def answer(monkeypatch, tmp_path):
    """Answer the next file dialog with a name in the test's folder; its arguments are in `dialogs`."""

    def give(name, kind=""):
        def dialog(*words):
            give.dialogs = [str(word) for word in words[1:]]
            return str(tmp_path / name), kind

        monkeypatch.setattr(QFileDialog, "getSaveFileName", dialog)
        return tmp_path / name

    return give


@pytest.fixture
def picture(qtbot, window):
    """Open the dialog of a picture and wait for its preview."""

    def begin(*view, drawn=True):
        if view:
            window.desk.docks.go_to(view[0])
        window.actions_.trigger("export.view" if view else "export.desk")
        (dialog,) = (w for w in QApplication.topLevelWidgets() if w.isVisible() and isinstance(w, PictureDialog))
        if drawn:
            qtbot.waitUntil(lambda: dialog.preview.image is not None)
        return dialog

    return begin


@pytest.mark.slow
def test_the_picture_is_that_of_the_command(qtbot, window, picture, answer, tmp_path, finished, monkeypatch):
    """Range in view, cursor, selection, stage and theme; and the command in the file makes the same bytes."""
    window.axis.set_visible(2.0, 10.0)
    window.axis.select(3.0, 4.5)
    window.playhead.seek(900)
    window.axis.choose_stage("search.emit")
    dialog = picture()
    assert dialog.choices.wanted() == PictureRequest(
        views=("cost", "timeline", "words", "breakdown"), theme="dark", range_s=(2.0, 10.0), at_s=9.0,
        select=("3..4.5", "search.emit"),
    )  # fmt: skip
    dialog.choices.size_box.setCurrentIndex(1)
    dialog.choices.theme_box.setCurrentIndex(dialog.choices.theme_box.findData("light"))
    first = answer("desk.png")
    with qtbot.waitSignal(dialog.written):
        dialog.save.click()
    command = json.loads(QImageReader(str(first)).text("asrscope"))["drawn by"].split()
    assert command[:5] == ["asrscope", "export", "finished.asrs", "--png", "OUT"]
    monkeypatch.chdir(finished.parent)
    again = tmp_path / "again.png"
    assert main.main([str(again) if w == "OUT" else w for w in command[1:]]) == 0
    assert again.read_bytes() == first.read_bytes()


def test_names_say_what_stretch_it_is():
    session = Path("a.asrs")
    assert exporting.file_name(session, PictureRequest()) == "a-desk"
    assert exporting.file_name(session, PictureRequest(range_s=(2.0, 10.5))) == "a-desk-2-10.5s"
    assert exporting.file_name(session, PictureRequest(("cost", "words"), at_s=3.0)) == "a-cost-words-at-3s"


@pytest.mark.slow
def test_the_folder_used_last_is_offered_and_no_hidden_one(window, answer, tmp_path):
    answer("pictures")
    exporting.ask_picture(window, PictureRequest())
    folder = Path(answer.dialogs[1]).parent
    assert not any(part.startswith(".") for part in folder.relative_to(Path.home()).parts)
    (tmp_path / "mine").mkdir()
    for kind, name in (("", "a.png"), ("SVG (*.svg)", "a.svg")):
        answer("mine/a", kind)
        assert exporting.ask_picture(window, PictureRequest()) == tmp_path / "mine" / name
    for trigger in ("export.csv", "file.copy"):
        answer("mine/b.csv")
        window.actions_.trigger(trigger)
        assert Path(answer.dialogs[1]).parent == tmp_path / "mine"


@pytest.mark.slow
def test_choices_are_drawn_and_the_dialog_stays_for_another_format(qtbot, picture, answer):
    dialog = picture("cost")
    before = dialog.preview.image
    dialog.choices.views["words"].setChecked(True)
    dialog.choices.width_box.setValue(900)
    dialog.choices.height_box.setValue(700)
    dialog.choices.scale_box.setCurrentIndex(0)
    dialog.choices.range_box.setText("1..5")
    assert dialog.command.full == (
        "asrscope export finished.asrs --png OUT --view cost --view words --size 900x700 --scale 1 "
        "--theme dark --range 1..5"
    )
    assert dialog.choices.size_box.currentText() == "other"
    qtbot.waitUntil(lambda: dialog.preview.image is not before)
    image = dialog.preview.image
    assert image.width() / image.height() == pytest.approx(900 / 700, abs=0.01)
    dialog.copy_command.click()
    assert QGuiApplication.clipboard().text() == dialog.command.full
    dialog.copy.click()
    qtbot.waitUntil(lambda: QGuiApplication.clipboard().image().width() == 900)
    target = answer("a.png")
    with qtbot.waitSignal(dialog.written):
        dialog.save.click()
    assert dialog.isVisible()
    assert dialog.saved.full == f"Saved: {target}"
    assert [dialog.choices.format_box.itemText(at) for at in range(3)] == ["PNG", "SVG", "PDF"]
    dialog.choices.format_box.setCurrentIndex(1)
    assert not dialog.choices.scale_box.isEnabled()
    assert " --svg OUT" in dialog.command.full
    target = answer("b.svg")
    with qtbot.waitSignal(dialog.written):
        dialog.save.click()
    assert answer.dialogs[1].endswith(".svg")
    assert answer.dialogs[2].startswith("SVG (*.svg)")
    assert target.read_bytes().startswith(b"<?xml")
    dialog.close()


@pytest.mark.slow
def test_what_cannot_be_is_said_and_not_saved(qtbot, picture):
    dialog = picture("cost")
    dialog.choices.range_box.setText("5..1")
    assert "must end after it begins" in dialog.preview.text
    assert not dialog.save.isEnabled()
    dialog.choices.range_box.setText("5..99")
    qtbot.waitUntil(lambda: "not within the session" in dialog.preview.text)
    assert dialog.preview.text.startswith("The stretch 5..99 is")
    assert not dialog.save.isEnabled()
    dialog.choices.range_box.clear()
    qtbot.waitUntil(lambda: not dialog.preview.text)
    assert dialog.save.isEnabled()
    dialog.choices.views["cost"].setChecked(False)
    assert dialog.preview.text == "Choose at least one view."
    dialog.close()


@pytest.mark.slow
def test_a_session_being_recorded_is_pictured_up_to_now(qtbot, recording, window, picture):
    made = recording("live.asrs")
    made.write(600)
    assert window.open_session(made.path)
    # The playhead glides to what has arrived: it may still stand at the start.
    qtbot.waitUntil(lambda: window.playhead.cursor_frame > 0)
    dialog = picture("cost", drawn=False)
    assert 0 < dialog.choices.wanted().at_s <= 6.0
    dialog.close()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("/no/such/program",), "could not be started"),
        ((sys.executable, "-c", "pass"), "has ended"),
        (PROCESS, "none.asrs"),
    ],
)
def test_a_process_that_fails_is_said(qtbot, tmp_path, command, says):
    drawing = Drawing(tmp_path / "none.asrs", command=command)
    said: list[str] = []
    drawing.failed.connect(said.append)
    drawing.ask(Job(PictureRequest(), scale=1.0), print)
    qtbot.waitUntil(lambda: bool(said))
    assert says in said[0]
    assert command is PROCESS or not drawing.busy
    drawing.stop()


def exported(qtbot, window) -> str:
    """Wait for the export under way; what the window says of it."""
    assert [b.kind for b in window.notices.banners] == ["progress"]
    qtbot.waitUntil(lambda: window.notices.banners[-1].kind != "progress")
    (banner,) = window.notices.banners
    return banner.text


@pytest.mark.slow
def test_stages_and_spans_are_written_by_a_process_of_their_own(qtbot, window, answer):
    """The window is served meanwhile, and says what is under way."""
    for kind, name, inside in (("csv", "stages.csv", "score.gaussians"), ("chrome", "chrome.json", "traceEvents")):
        target = answer(name)
        window.actions_.trigger(f"export.{kind}")
        assert not target.exists()
        assert window.notices.banners[-1].text == f"Writing {name} …"
        assert exported(qtbot, window) == f"Written: {target}"
        text = target.read_text(encoding="utf-8")
        assert inside in (text if kind == "csv" else json.loads(text))
        window.notices.clear()


@pytest.mark.slow
def test_what_is_being_written_is_whole_when_the_window_is_closed(window, answer):
    target = answer("spans.json")
    window.actions_.trigger("export.speedscope")
    window.close()
    assert json.loads(target.read_text(encoding="utf-8"))["profiles"]


def test_a_command_that_fails_is_said(qtbot, window, finished, tmp_path):
    for command, why in (
        (("/no/such/program",), "The command could not be started."),
        ((sys.executable, "-c", "raise SystemExit(3)"), "The command ended without saying why."),
    ):
        window.session_files.export(finished, "csv", tmp_path / "stages.csv", command)
        assert exported(qtbot, window) == why
        assert window.notices.banners[-1].kind == "error"
        window.notices.clear()


def test_a_dialog_given_up_does_nothing(window, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    for action_id in ("export.csv", "file.copy"):
        window.actions_.trigger(action_id)
    assert exporting.ask_picture(window, PictureRequest()) is None
    assert window.notices.banners == []


@pytest.mark.slow
def test_every_control_has_a_name_for_screen_readers(window, picture):
    kinds = (QAbstractButton, QComboBox, QAbstractSpinBox, QSlider)
    dialog = picture(drawn=False)
    for place in (window, dialog):
        for control in [w for kind in kinds for w in place.findChildren(kind)]:
            if control.isVisibleTo(place) and control.parentWidget() is not None:
                text = control.text() if isinstance(control, QAbstractButton) else ""
                inner = control.objectName().startswith("qt_")
                assert inner or text or control.accessibleName(), control
    dialog.close()


@pytest.mark.slow
def test_every_view_tells_in_a_sentence_what_it_shows(window):
    for view_id in VIEWS:
        window.desk.docks.open(view_id)
        view = window.desk.views[view_id]
        QApplication.processEvents()
        assert view.accessibleName()
        assert view.accessibleDescription().strip()
