"""How many streams, from the window: what is entered, the command that it becomes, and what it printed."""

import argparse
import json
import sys

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from test_documents import CAPACITY

from app.cli import capacity as verb
from app.window.tasks.replays import CapacityPage
from tests.waiting import wait_until

LEFT = Qt.MouseButton.LeftButton


def printed(tree: dict[str, object]) -> str:
    return json.dumps(json.dumps({"document": msgspec.to_builtins(verb.document(tree))}))


def dialog_of(parent: QWidget, code: str) -> CapacityPage:
    made = CapacityPage((), "Use the machine for nothing else.", parent, (sys.executable, "-c", code))
    made.show()
    return made


def test_how_many_and_why_stand_above_chart_and_table(qtbot, parent):
    made = dialog_of(parent, f"print({printed(CAPACITY)})")
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
    assert "12\t0.200\t0.267\t0.400\t0.400\t0.400\t–\t0.400\t0.040\t0.100\t40.0\t1980\t129\t400\tno\t3 of 3" in copied
    assert "calls.capacity" in copied
    (chart,) = made.charts
    assert chart.accessibleDescription() == made.state.text()
    chart.grab()
    assert not made.form.isVisible()
    made.close()


def test_a_stop_shows_what_was_measured(qtbot, parent, tmp_path):
    begun = tmp_path / "begun"
    made = dialog_of(
        parent,
        "import pathlib, signal, sys, time\n"
        f"def end(*_): print({printed(CAPACITY | {'finished': False})}); sys.exit(143)\n"
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


def test_what_is_wrong_is_one_sentence(qtbot, parent):
    made = dialog_of(parent, "import sys; sys.exit('asrscope: threads must be 1.')")
    qtbot.mouseClick(made.start, LEFT)
    qtbot.waitUntil(lambda: not made.working)
    assert made.state.text() == "threads must be 1."
    assert not made.tables
    made.close()


def test_what_is_entered_becomes_the_command_of_the_form(window, monkeypatch):
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
