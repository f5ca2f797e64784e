"""One stage is chosen for all views: choosing it in any of them shows it in all the others that have it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QTreeWidget
from pytestqt.qtbot import QtBot
from rendered import views_of
from sample_session import Sample, write_sample
from views_desk import settle

from app.charts.still import StillPlot
from app.model.playhead import Playhead
from app.model.statistics import WHOLE
from app.model.time_axis import TimeAxis
from app.pictures.request import PictureRequest, extent_of
from app.views import create
from app.views.faster import WHAT
from profiler.costs import Cost, Linear
from tests.each import each


def click_row(qtbot: QtBot, tree: QTreeWidget, name: str) -> None:
    row = tree.findItems(name, Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive)[0]
    tree.scrollToItem(row)
    at = QPoint(30, tree.visualItemRect(row).center().y())
    qtbot.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, pos=at)


def click_spot(qtbot: QtBot, plot: StillPlot, name: str) -> None:
    plot.settle()
    at = next(spot.place.center().toPoint() for spot in plot.canvas.spots if spot.name == name)
    qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=at)


CHOOSE: dict[str, Callable[[Any, QtBot, str], None]] = {
    "breakdown": lambda view, qtbot, name: click_row(qtbot, view.tree, name),
    "statistics": lambda view, _, name: view.stage.setCurrentIndex(view.stage.findData(name)),
    "faster": lambda view, qtbot, name: click_row(qtbot, view.tree, name),
    "roofline": lambda view, qtbot, name: click_spot(qtbot, view.plot, name),
    "memory": lambda view, qtbot, name: click_spot(qtbot, view.plot, name),
}
"""How a stage is chosen in each of the views that show one."""
SHOWN: dict[str, Callable[[Any], str]] = {
    "breakdown": lambda view: view.tree.explained().name,
    "statistics": lambda view: view.model().name,
    "faster": lambda view: view.tree.currentItem().text(WHAT),
    "roofline": lambda view: view.plot.marked.name,
    "memory": lambda view: view.plot.marked.name,
}


class Views:
    """These views on one axis."""

    def __init__(self, qtbot: QtBot, path: Path) -> None:
        self.axis = TimeAxis()
        self.playhead = Playhead(self.axis)
        self.of = {name: create(name, self.axis) for name in CHOOSE}
        for view in self.of.values():
            qtbot.addWidget(view)
            view.resize(900, 700)
            view.show()
            self.playhead.changed.connect(view.update_snapshot)
            self.playhead.closed.connect(view.clear)
        self.playhead.open(path)
        for view in self.of.values():
            view.settle()

    def lines(self) -> dict[str, str]:
        """The stage that each view is about; the first one of the breakdown, without one that is chosen."""
        settle()
        return {name: SHOWN[name](view) for name, view in self.of.items()}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A session in which two stages have known operations, bytes and working sets."""
    made = Sample(tmp_path_factory.mktemp("stages") / "a.asrs", frames=256, utterance_frames=256)
    law = Linear(per_work=(100.0, 0.0, 0.0))
    for epoch in range(3):
        made.recorder.cost(made.prune, epoch, Cost({"fma": law}, law, law, working_set_bytes=1e6))
    made.write()
    return made.close()


@pytest.fixture
def views(qtbot, path):
    return Views(qtbot, path)


def test_a_stage_chosen_in_one_view_is_chosen_in_all(views, qtbot):
    default = views.lines()
    assert default["statistics"] == WHOLE
    for at, (view, choose) in enumerate(CHOOSE.items()):
        name = ("search.prune", "score.gaussians")[at % 2]
        choose(views.of[view], qtbot, name)
        assert views.lines() == dict.fromkeys(CHOOSE, name), view
        assert views.of["statistics"].stage.currentData() == name
        assert name in views.of["breakdown"].panel.text
    views.of["statistics"].stage.setCurrentIndex(0)
    assert views.axis.stage is None
    assert views.lines() == default


def test_a_view_without_the_stage_keeps_its_default_and_the_choice(views):
    default = views.lines()
    views.axis.choose_stage("scoring")
    assert views.lines() == default | {"breakdown": "scoring"}
    views.axis.choose_stage("no such stage")
    assert views.lines() == default
    for view in views.of.values():
        view.draw(views.playhead.snapshot())
        view.settle()
    assert views.axis.stage == "no such stage"


def test_another_session_has_no_stage_and_the_same_one_keeps_it(views, tmp_path):
    views.axis.choose_stage("search.prune")
    views.playhead.reopen()
    assert views.axis.stage == "search.prune"
    views.playhead.open(write_sample(tmp_path / "b.asrs", frames=256, utterance_frames=256))
    assert views.axis.stage is None
    assert views.lines()["statistics"] == WHOLE
    views.playhead.close()


def test_escape_clears_the_time_then_the_stage(qtbot, window, finished):
    w = window()
    w.open_session(finished)
    w.axis.select(1.0, 2.0)
    w.axis.choose_stage("search.emit")
    tree = w.desk.breakdown.tree
    tree.setFocus()
    qtbot.keyClick(tree, Qt.Key.Key_Escape)
    assert (w.axis.selected, w.axis.stage) == (None, "search.emit")
    qtbot.keyClick(tree, Qt.Key.Key_Escape)
    assert w.axis.stage is None


@each("name", ["search.prune", "scoring", "between the stages", "overhead"])
def test_a_picture_takes_whatever_can_be_chosen(views, name):
    assert extent_of(PictureRequest(select=(name,)), views.playhead.snapshot()).stage == name


def test_a_picture_has_the_stage_in_every_view(path, qapp, monkeypatch):
    wanted = PictureRequest(tuple(CHOOSE), (1600, 2400), 1.0, select=("search.prune",))
    made = views_of(path, wanted, monkeypatch)
    assert {name: view.axis.stage for name, view in made.items()} == dict.fromkeys(CHOOSE, "search.prune")
    assert SHOWN["faster"](made["faster"]) == "search.prune"


def test_a_low_picture_begins_with_the_first_group(path, qapp, monkeypatch):
    """The row of the stage was scrolled to, and the rows at both ends were cut off."""
    wanted = PictureRequest(("breakdown",), (420, 440), 1.0, select=("search.prune",))
    bar = views_of(path, wanted, monkeypatch)["breakdown"].tree.verticalScrollBar()
    assert bar.maximum() > bar.value() == 0
