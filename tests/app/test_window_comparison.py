"""Comparing two sessions in the window: the same figures as `asrscope compare`, as a chart and a table."""

import json
import sqlite3
import sys
from pathlib import Path

import msgspec
import pytest
from command_line import answer, printed
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot
from sample_session import write_sample
from test_documents import COMPARE

from app.cli import compare
from app.model.document import RatioRow
from app.model.processes.leaving import EXPLAINS, Leaving
from app.views.ratios import Ratios
from app.views.roofline_model import rate
from app.window.main_window import MainWindow
from app.window.tasks.compare import Comparison
from tests.app.text_geometry import faults


@pytest.fixture
def two(tmp_path):
    return [write_sample(tmp_path / f"{name}.asrs", frames=1024) for name in ("one", "two")]


def test_figures_are_those_of_the_verb(two, qtbot):
    tree = answer("compare", *two)
    parent = QWidget()
    qtbot.addWidget(parent)
    made = Comparison(two, parent)
    made.show()
    qtbot.waitUntil(lambda: not made.command.running)
    assert isinstance(made.body.charts[0], Ratios)
    assert [row.name for row in made.body.charts[0].rows[1:]] == [row["name"] for row in tree["stages"]]
    made.copy.click()
    copied = QGuiApplication.clipboard().text()
    for row in tree["stages"]:
        assert f"{row['name']}\t{row['a_s']:.3f} s\t{row['b_s']:.3f} s\t{row['ratio']:.3f}" in copied
    assert tree["overall"]["verdict"] in copied
    for warning in tree["warnings"]:
        assert warning in copied
    a, b = ({one["name"]: one for one in tree["roofline"][side]} for side in "ab")
    assert [point.name for point in made.roofline.stages] == list(b)
    for name in b:
        ends = f"{name}\t{b[name]['intensity']:.3g}", f"\t{a[name]['intensity']:.3g}\t{rate(a[name]['rate'])}"
        assert any(line.startswith(ends[0]) and line.endswith(ends[1]) for line in copied.split("\n"))
    last = list(b)[-1]
    made.roofline.chosen.emit(last)
    assert made.roofline.marked.name == last
    assert f" {last} in A: " in made.roofline.accessibleDescription()
    made.close()


def chosen(one: Path, other: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> tuple[MainWindow, Comparison]:
    """A window with a session, which its user compared with another one."""
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    window.open_session(one)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(other), ""))
    window.actions_["run.compare_sessions"].trigger()
    (made,) = window.findChildren(Comparison)
    qtbot.waitUntil(lambda: not made.command.running)
    return window, made


def test_an_a_b_is_compared_with_any_session_or_its_own_arms(two, qtbot, monkeypatch):
    with sqlite3.connect(two[0]) as file:
        arms = {"arms": [{"name": name, "epoch": epoch} for epoch, name in enumerate("AB")]}
        file.execute("INSERT INTO meta VALUES ('ab', ?)", (json.dumps(arms),))
    file.close()
    window, made = chosen(two[0], two[1], qtbot, monkeypatch)
    assert made.sessions == tuple(two)
    assert len(made.body.charts) == 1
    assert made.windowTitle() == "Compare one.asrs and two.asrs"
    window.actions_["run.compare_arms"].trigger()
    (_, arms_page) = window.findChildren(Comparison)
    assert arms_page.sessions == (two[0],)
    qtbot.waitUntil(lambda: not arms_page.command.running)
    window.open_session(two[1])
    assert window.actions_.unavailable_reason("run.compare_arms") == "No session of an A/B is shown."
    window.close()


TREE = COMPARE | {
    "frame_times": [
        {"name": name, "edges_ms": [0.0, 1.0, 2.0], "a": side | {"p50_ms": 0.5}, "b": side | {"p50_ms": middle}}
        for name, middle in (("whole frame", 1.5), ("score.gaussians", 0.75))
        for side in [{"frames": 5, "mean_ms": 0.6, "p90_ms": 1.2, "p99_ms": 1.9, "highest_ms": 2.0, "counts": [4, 1]}]
    ]
}


def compared(qtbot: QtBot, parent: QWidget, tree: dict, why: str | None = None) -> Comparison:
    printed = tree | {"document": msgspec.to_builtins(compare.document(tree))}
    command = (sys.executable, "-c", f"print({json.dumps(json.dumps(printed))})")
    made = Comparison([Path("one.asrs"), Path("two.asrs")], parent, command, unavailable_reason=lambda: why)
    made.show()
    qtbot.waitUntil(lambda: not made.command.running)
    return made


def test_words_and_times_of_both_sides_are_next_to_each_other(qtbot, parent):
    made = compared(qtbot, parent, TREE)
    made.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert "The host differs: here in A, there in B.\nThe recognised words differ in 3 of 500 utterances." in copied
    assert "3 of 500 utterances; the 2 worst are listed, 1 are left out." in copied
    assert "u7\t0\t2\tso it is\tso it is\tis" in copied
    assert "u8\t\t\t–\t–\twell" in copied
    assert "score.gaussians\t0.60\t0.60\t0.50\t0.75\t1.20\t1.20\t1.90\t1.90\t2.00\t2.00\t5\t5" in copied
    plot = made.times.plot
    assert plot.accessibleDescription().startswith("whole frame: median 0.50 ms per frame in A, 1.50 ms in B")
    made.times.stage.setCurrentIndex(1)
    assert plot.accessibleDescription().startswith("score.gaussians: median 0.50 ms per frame in A, 0.75 ms in B")
    made.body.pages.setCurrentIndex(2)
    assert not plot.grab().toImage().isNull()
    assert plot.canvas.area.width() > 200
    made.close()


def test_what_is_decided_needs_no_more_repeats(qtbot, parent):
    decided = TREE | {"overall": TREE["overall"] | {"verdict": "B faster"}}
    busy = "A run is under way."
    for tree, why, again, more, says in (
        (TREE, None, True, True, ""),
        (decided, None, True, False, "B faster"),
        (TREE, busy, False, False, busy),
    ):
        made = compared(qtbot, parent, tree, why)
        assert (made.again.isEnabled(), made.more.isEnabled()) == (again, more)
        assert says in made.more.toolTip()
        assert made.open_new.isHidden()
        made.close()


@pytest.fixture(scope="module")
def runs(bundled_speech, tmp_path_factory, short_runs):
    """Two sessions of one run each; the second has a search of fewer tokens, so that it is faster on any machine."""
    folder = tmp_path_factory.mktemp("runs")
    paths = []
    for name, beam in (("wide", 16), ("narrow", 5)):
        paths.append(folder / f"{name}.asrs")
        printed(
            "run", "--preset", "gmm-quick", "--set", f"search.beam={beam}",
            "--audio", bundled_speech / "04-kal16-numbers.flac", "--transcripts", bundled_speech / "transcripts.tsv",
            "--out", paths[-1],
        )  # fmt: skip
    return paths


@pytest.mark.slow
def test_sessions_are_recorded_again_in_turns_and_compared(runs, qtbot, monkeypatch, tmp_path):
    window, first = chosen(runs[0], runs[1], qtbot, monkeypatch)
    assert first.body.sentences[0].text().startswith("undecided")

    first.more.click()
    (_, again) = window.findChildren(Comparison)
    assert again.windowTitle() == "Compare wide.asrs and narrow.asrs again on this machine"
    qtbot.waitUntil(lambda: not again.command.running)
    assert again.body.sentences[0].text().startswith("B faster")
    assert "0 repeats in turns" in again.body.sentences[0].text()
    assert "search.beam: 16 in A, 5 in B" in again.state.text()
    assert not again.more.isEnabled(), "it is decided"
    (path,) = (tmp_path / "sessions").glob("*-ab-gmm-quick.asrs")
    assert again.sessions == (path,)
    assert window.memory.sessions()[0] == path

    again.again.click()
    third = next(one for one in window.findChildren(Comparison) if one.command.running)
    qtbot.waitUntil(lambda: third.state.text().startswith("decoding both arms"))
    third.end.click()
    qtbot.waitUntil(lambda: window.findChildren(Comparison) == [first, again])  # what was found stays
    again.open_new.click()
    assert window.playhead.path == path
    qtbot.waitUntil(lambda: Leaving.find(EXPLAINS) is None)
    window.close()


def test_every_row_lies_on_the_axis(qtbot):
    rows = (
        RatioRow("score.gaussians", 0.25, (0.24, 0.26), "B faster"),
        RatioRow("search.emit", 1.0, (0.99, 1.01), "no difference"),
        RatioRow("search.prune", 1.1, (0.9, 1.3), "undecided"),
        RatioRow("decode.end", 1.4, None, "A faster"),
    )
    chart = Ratios(rows)
    qtbot.addWidget(chart)
    chart.resize(500, 200)
    chart.show()
    assert chart.ends == pytest.approx((0.24 / 1.1, 1.4 * 1.1))
    for width in range(280, 500, 20):
        chart.resize(width, 200)
        assert faults(chart) == [], width
    Ratios(()).grab()
