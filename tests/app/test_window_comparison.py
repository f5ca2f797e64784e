"""Comparing two sessions in the window: the same figures as `asrscope compare`, as a chart and a table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import here
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot
from sample_session import write_sample

from app.views.ratios import RatioRow, Ratios
from app.window.comparison import Comparison
from app.window.main_window import MainWindow
from tests.waiting import COMPILING_MS

ROWS = (
    RatioRow("whole run", 0.5, (0.49, 0.51), "B faster"),
    RatioRow("score.gaussians", 0.25, (0.24, 0.26), "B faster"),
    RatioRow("search.emit", 1.0, (0.99, 1.01), "no difference"),
    RatioRow("search.prune", 1.1, (0.9, 1.3), "undecided"),
    RatioRow("decode.end", 1.4, None, "A faster"),
)


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    return [write_sample(tmp_path / f"{name}.asrs", frames=1024) for name in ("one", "two")]


def test_figures_are_those_of_the_verb(two: list[Path], qtbot: QtBot) -> None:
    tree = json.loads(here("compare", *two, "--json").stdout)
    parent = QWidget()
    qtbot.addWidget(parent)
    printed = json.dumps(json.dumps(tree))
    made = Comparison(two, parent, (sys.executable, "-c", f"print({printed})"))
    made.show()
    qtbot.waitUntil(lambda: not made.working, timeout=COMPILING_MS)
    assert made.chart is not None
    assert [row.name for row in made.chart.rows[1:]] == [row["name"] for row in tree["stages"]]
    made.copy.click()
    copied = QGuiApplication.clipboard().text()
    for row in tree["stages"]:
        assert f"{row['name']}\t{row['a_s']:.3f}\t{row['b_s']:.3f}\t{row['ratio']:.3f}" in copied
    assert tree["overall"]["verdict"] in copied
    for warning in tree["warnings"]:
        assert warning in copied
    made.close()


def test_the_window_asks_for_the_other_session(two: list[Path], qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    window.open_session(two[0])
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(two[1]), ""))
    window.actions_["run.compare_sessions"].trigger()
    (made,) = window.findChildren(Comparison)
    qtbot.waitUntil(lambda: not made.working, timeout=COMPILING_MS)
    assert made.chart is not None
    assert made.windowTitle() == "Compare one.asrs and two.asrs"
    made.close()
    window.close()


def test_every_row_lies_on_the_axis(qtbot: QtBot) -> None:
    chart = Ratios(ROWS)
    qtbot.addWidget(chart)
    chart.resize(500, 200)
    chart.show()
    assert chart.ends == pytest.approx((0.24 / 1.1, 1.4 * 1.1))
    picture = chart.grab().toImage()
    assert not picture.isNull()
    assert chart.area.width() > 200
    Ratios(()).grab()
