"""The folder of a model, dropped on the window or chosen: taken for the next run, and what stands in it is shown."""

import pytest
from PySide6.QtWidgets import QFileDialog
from shown_windows import press, texts

from tests.pipelines.kaldi_writer import write_model


@pytest.mark.slow
def test_a_dropped_folder_of_a_model_is_used_by_the_next_run(qtbot, window, tmp_path):
    folder = write_model(tmp_path / "tri1")
    w = window()
    before = w.runs.next.audio
    w.files.drop([folder])
    assert w.pipeline.next.model_directory == str(folder)
    assert w.pages.currentWidget() is w.desk
    qtbot.waitUntil(lambda: bool(w.notices.banners))
    (text,) = texts(w, "info")
    assert text.startswith("The next run uses tri1: Kaldi GMM final.mdl: ")
    assert w.runs.next.audio is before
    # The form says it as long as the folder is used, and what it lacks.
    card = w.desk.form.model
    assert card.isVisible()
    assert card.text().startswith("tri1: Kaldi GMM final.mdl: ")
    assert "with phones that the acoustic model lacks" in card.text()
    w.pipeline.set("model_directory", "")
    assert not card.isVisible()


def test_an_error_that_names_a_setting_leads_to_it(window):
    w = window()
    w.runs.current.failed.emit("It pronounces 'the' with phones that the model lacks (graph.dictionary).", "")
    (banner,) = w.notices.banners
    press(banner, "Dictionary…")
    assert w.pages.currentWidget() is w.desk
    assert w.desk.form.fields["graph.dictionary"].isVisible()


def test_a_broken_model_is_reported_in_one_sentence(qtbot, window, tmp_path):
    (tmp_path / "final.mdl").write_bytes(b"\0Bnothing")
    w = window()
    w.files.drop([tmp_path])
    qtbot.waitUntil(lambda: bool(w.notices.banners))
    (text,) = texts(w, "error")
    assert text == f"{tmp_path / 'final.mdl'} is cut short or corrupt: there is no token at byte 2"


def test_open_model_asks_for_a_folder(qtbot, window, tmp_path, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    w = window()
    w.actions_["file.model"].trigger()
    assert w.pipeline.next.model_directory == ""
    assert texts(w, "error") == [f"{tmp_path} holds no acoustic model: none of final.mdl, am/final.mdl, mdef is there."]
    write_model(tmp_path)
    w.actions_["file.model"].trigger()
    assert w.pipeline.next.model_directory == str(tmp_path)
