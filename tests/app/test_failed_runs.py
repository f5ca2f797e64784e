"""Runs that fail before their first frame: no file that nobody named is left, and a named one says why it failed."""

import os
from pathlib import Path

import pytest
from command_line import answer, here

from app.model.provenance import remove_if_empty
from app.window.main_window import MainWindow
from profiler.session.reader import Session


def errors(window: MainWindow) -> list[str]:
    return [banner.text for banner in window.notices.banners if banner.kind == "error"]


@pytest.mark.usefixtures("short_runs")
def test_a_command_leaves_only_the_session_that_it_was_given_a_name_for(tmp_path, bundled_speech, window):
    missing = tmp_path / "no-model"
    run = ("run", "--set", f"model_directory={missing}", "--audio", bundled_speech / "04-kal16-numbers.flac")
    failed = here(*run)
    assert failed.returncode == 2
    why = failed.stderr.strip().splitlines()[-1].removeprefix("asrscope: ")
    assert str(missing) in why
    folder = Path(os.environ["ASRSCOPE_SESSIONS"])
    assert list(folder.iterdir()) == []
    named = tmp_path / "named.asrs"
    assert here(*run, "--out", named).returncode == 2
    session = Session.open(named)
    assert (session.state, session.meta["problem"]) == ("failed", why)
    session.close()
    assert f"the run failed: {why}" in here("show", named).stdout
    assert answer("show", named)["problem"] == why
    assert "- the run failed: " in here("report", named).stdout
    w = window()
    w.open_session(named)
    assert errors(w) == [f"The run of this session failed: {why}"]


@pytest.mark.parametrize(
    ("mode", "says"),
    [("empty", "There is no such model."), ("dies", "The worker stopped (exit code 7) before the run began.")],
)
def test_the_window_leaves_no_session_without_a_frame(qtbot, window, tmp_path, mode, says):
    w = window(mode)
    w.use_bundled()
    w.runs.start()
    qtbot.waitUntil(lambda: bool(errors(w)))
    assert errors(w)[0].startswith(says)
    assert list((tmp_path / "sessions").iterdir()) == []
    assert (w.playhead.session, w.memory.sessions()) == (None, [])
    assert w.pages.currentWidget() is w.desk
    assert w.desk.form.isVisible(), "what was wrong can be set right"
    assert w.when.is_idle()


def test_only_sessions_without_a_frame_are_removed(recording, finished, tmp_path):
    live = recording("live.asrs")
    text = tmp_path / "text.asrs"
    text.write_text("no session")
    for kept in (finished, live.path, text, tmp_path / "nothing.asrs"):
        assert not remove_if_empty(kept)
    assert finished.exists()
    assert live.path.exists()
    assert text.exists()
    live.close("failed")
    assert remove_if_empty(live.path)
    assert not list(tmp_path.glob("live.asrs*"))
