"""How many streams, from the window: what is entered, the command that it becomes, and what it printed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.cli import capacity as verb
from app.model.report import read_printed
from app.window.main_window import MainWindow
from app.window.tasks.capacity import CapacityPage, chart
from pipelines.labs.chart import Line, Mark
from tests.waiting import wait_until

LEFT = Qt.MouseButton.LeftButton


def row(n: int, p99: float, held: int = 1, measurements: int = 1) -> dict[str, object]:
    latency = {"p50": p99 / 2, "p90": p99 / 1.5, "p99": p99}
    names = ("first_shown", "without_emission", "stable", "chunk")
    return {
        "n": n, "rtfx": 40.0, "rtf": {"p50": 0.04, "p99": 0.1}, "queue_grows": p99 > 1, "memory_bytes": n * 165e6,
        "latency_s": {**dict.fromkeys(names, latency), "final": None}, "core_s_per_audio_hour": 129.0,
        "measurements": measurements, "held": held, "p99_range_s": [0.9 * p99, 1.1 * p99],
    }  # fmt: skip


TREE = {
    "schema": 1, "study": "calls.capacity", "finished": True, "cores": 2, "capacity": 12, "capacity_range": [12, 13],
    "bound_p99_s": 0.5, "why": "Waiting for a core grows most.", "bound_meaning": "until a word is first shown",
    "notes": [], "cpu_limit": None, "streams": [row(1, 0.2), row(12, 0.4, 3, 3), row(13, 2.0, 1, 3)],
}  # fmt: skip


def dialog_of(parent: QWidget, code: str) -> CapacityPage:
    made = CapacityPage((), "Use the machine for nothing else.", parent, (sys.executable, "-c", code))
    made.show()
    return made


def test_how_many_and_why_stand_above_chart_and_table(qtbot: QtBot, parent: QWidget) -> None:
    made = dialog_of(parent, f"print({json.dumps(json.dumps(TREE))})")
    assert not made.working
    qtbot.mouseClick(made.start, LEFT)
    qtbot.waitUntil(lambda: not made.working)
    assert made.state.text() == (
        "12 streams on 2 cores (by single measurements 12 to 13): p99 of the delay is at most 0.5 s, "
        "and no queue grows."
    )
    made.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert "Waiting for a core grows most." in copied
    assert "12\t0.200\t0.400\t0.400\t0.400\t–\t0.400\t0.040\t40.0\t1980\t129\tno\t3 of 3" in copied
    assert "13\t1.000\t2.000" in copied
    assert "calls.capacity" in copied
    assert made.chart is not None
    assert made.chart.accessibleDescription() == made.state.text()
    made.chart.grab()
    made.close()


def test_the_chart_has_bound_range_and_capacity() -> None:
    drawn = chart(read_printed(json.dumps(TREE).encode()))
    assert drawn.x.log
    assert drawn.y.log
    p99, p50, bound, capacity = drawn.layers
    assert isinstance(p99, Line)
    assert (p99.x, p99.y) == ((1.0, 12.0, 13.0), (0.2, 0.4, 2.0))
    assert p99.low == pytest.approx((0.18, 0.36, 1.8))
    assert p99.high == pytest.approx((0.22, 0.44, 2.2))
    assert isinstance(p50, Line)
    assert p50.y == (0.1, 0.2, 1.0)
    assert bound == Mark("bound 0.5 s", 0.5)
    assert capacity == Mark("12 streams", 12.0, on="x")


def test_a_stop_shows_what_was_measured(qtbot: QtBot, parent: QWidget, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    tree = {**TREE, "finished": False}
    made = dialog_of(
        parent,
        "import pathlib, signal, sys, time\n"
        f"def end(*_): print({json.dumps(json.dumps(tree))}); sys.exit(143)\n"
        f"signal.signal(signal.SIGTERM, end); pathlib.Path({str(begun)!r}).touch(); time.sleep(600)",
    )
    qtbot.mouseClick(made.start, LEFT)
    assert made.start.text() == "Stop"
    assert not made.form.isEnabled()
    wait_until(begun.exists)
    qtbot.mouseClick(made.start, LEFT)
    qtbot.waitUntil(lambda: not made.working)
    assert made.state.text().startswith("So far 12 streams on 2 cores")
    assert len(made.tables) == 1
    made.close()


def test_what_is_wrong_is_one_sentence(qtbot: QtBot, parent: QWidget) -> None:
    made = dialog_of(parent, "import sys; sys.exit('asrscope: threads must be 1.')")
    qtbot.mouseClick(made.start, LEFT)
    qtbot.waitUntil(lambda: not made.working)
    assert made.state.text() == "threads must be 1."
    assert not made.tables
    made.close()


def test_what_is_entered_becomes_the_command_of_the_form(
    window: Callable[..., MainWindow], monkeypatch: pytest.MonkeyPatch
) -> None:
    w = window()
    w.pipeline.choose("gmm-quick")
    assert w.pipeline.set("block", 8)
    w.actions_["run.capacity"].trigger()
    (made,) = w.findChildren(CapacityPage)
    begun: list[list[str]] = []
    monkeypatch.setattr(CapacityPage, "begin", lambda self, words: begun.append(list(words)))
    made.bound.setValue(0.4)
    made.most.setValue(20)
    made._begin()
    ((*_, first, second),) = begun
    assert first == "--out"
    assert second.endswith(".capacity")
    words = begun[0]
    parser = argparse.ArgumentParser()
    verb.arguments(parser)
    arguments = parser.parse_args(words[words.index("capacity") + 1 :])
    assert (arguments.streams, arguments.bound, arguments.json) == ((1, 20), 0.4, True)
    config = verb._preset(arguments).config
    assert (config.block, config.stream.chunk_ms, config.pace) == (8, 160, 1.0)
    made.close()
