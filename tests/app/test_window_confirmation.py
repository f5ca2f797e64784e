"""Confirming a verdict in the window: each change with what was predicted and measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from sample_session import write_sample

from app.window.main_window import MainWindow
from app.window.tasks.confirm import Confirmation

MATCH = Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive
PRINTED = {
    "stage": "score.gaussians", "verdict": "bandwidth-bound", "evidence": "B", "sentence": "Moves much.",
    "verdict_now": "bandwidth-bound", "survives": True, "why": "Three of three.", "audio": "4.0 s of audio",
    "rounds": 3, "notes": [],
    "perturbations": [
        {"name": "batch", "change": "block 16", "predicted": 0.3, "measured_ratio": 0.32,
         "ci95": [0.31, 0.33], "agrees": True, "why": "within the band", "unavailable": None},
        {"name": "threads", "change": None, "predicted": None, "measured_ratio": None, "ci95": None,
         "agrees": None, "why": None, "unavailable": "there is one processor"},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("survives", "sentence"),
    [(True, "survives."), (False, "does not survive."), (None, "neither confirmed nor refuted.")],
)
def test_predicted_and_measured_are_next_to_each_other(qtbot: QtBot, survives: bool | None, sentence: str) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    printed = json.dumps(json.dumps(PRINTED | {"survives": survives}))
    command = (sys.executable, "-c", f"print({printed})")
    made = Confirmation(Path("one.asrs"), "score.gaussians", parent, command)
    made.show()
    qtbot.waitUntil(lambda: not made.working)
    made.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert sentence in copied
    assert "batch\tblock 16\t0.300\t0.320\t0.310 – 0.330\tyes\twithin the band" in copied
    assert copied.rstrip().endswith("there is one processor")
    assert made.chart is not None
    drawn = [(row.name, row.predicted, row.ratio, row.text) for row in made.chart.rows]
    assert drawn == [("block 16", 0.3, 0.32, "as predicted")], "what was not measured has no row"
    made.close()


def test_a_stage_of_the_breakdown_is_confirmed_from_its_menu(tmp_path: Path, qtbot: QtBot) -> None:
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    window.open_session(write_sample(tmp_path / "one.asrs", frames=1024))
    view = window.desk.breakdown
    qtbot.waitUntil(lambda: bool(view.tree.stages))
    line = next(line for line in view.tree.stages if line.group == "scoring")
    row = view.tree.findItems(line.name, MATCH)[0]
    menu = view.menu_at(view.tree.visualItemRect(row).center())
    assert menu is not None
    entry = next(action for action in menu.actions() if action.text() == "Confirm its verdict")
    entry.trigger()
    (made,) = window.findChildren(Confirmation)
    assert line.name in made.windowTitle()
    made.close()
    window.close()
