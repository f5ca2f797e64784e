"""Strangers' sessions in the real window, in pictures and through the commands: a share of the campaign's."""

import itertools
import os
import random

import pytest
from PySide6.QtWidgets import QApplication

from app.cli.main import main
from app.views import VIEWS
from tests.bench.campaign import _use, sessions

pytestmark = pytest.mark.skipif("sys.platform != 'linux'")

SHOWN = (
    "all in frame 0",
    "first frames at random",
    "spans of no time",
    "work without end",
    "no audio",
    "no settings",
    "markers out of the world",
    "great laws",
)
"""Purpose-made ones that open."""


@pytest.mark.slow
def test_the_window_shows_them(qtbot, window, tmp_path, monkeypatch):
    desk = window()
    for name in SHOWN:
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        sessions.spoiled(name, folder)
        assert desk.open_session(folder / sessions.SESSION), name
        for view in map(desk.desk.views.__getitem__, VIEWS):
            view.grab()
            assert view.summary() or view is desk.desk.views["results"]  # results of tasks alone
            view.table()
        desk.grab()
        desk.playhead.axis.select(0.03, 0.07)
        desk.grab()
        QApplication.processEvents()


@pytest.mark.parametrize("name", ["spans of no time", "no audio"])
def test_it_can_be_drawn(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sessions.spoiled(name, tmp_path)
    assert main(list(sessions.PICTURE)) == 0
    assert (tmp_path / "d.png").stat().st_size > 10_000


def test_commands_succeed_or_say_one_sentence(tmp_path, monkeypatch):
    """In the attack's own folder, as the campaign gives them; what they write stays in it."""
    drawn = random.Random(random.randrange(1 << 32))
    made = (attack for attack in sessions.SESSIONS.attacks("sessions", drawn) if " by " in attack.name)
    for number, attack in enumerate(itertools.islice(made, 8)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        attack.make(folder)
        for command in attack.commands:
            _use.say(list(command))
    assert {path.name for path in tmp_path.iterdir()} == {str(number) for number in range(8)}
    assert os.getcwd() == str(folder)
