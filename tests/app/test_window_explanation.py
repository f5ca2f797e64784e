"""Explain this stage, from the window: the command runs in a child, can be cancelled, and says why it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest
import shiboken6
from PySide6.QtCore import QPoint
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.model.desk_snapshot import PartLine, StageLine
from app.model.processes import leaving
from app.model.recent import Memory
from app.views.table_twin import TableTwin
from app.window.main_window import MainWindow
from app.window.notices import Notices
from app.window.tasks import explain as explanations
from app.window.tasks.explain import Explanation
from app.window.tasks.strip import TaskStrip
from pipelines.labs.chart import Bars
from tests.app.sample_session import write_sample
from tests.waiting import PATIENCE_S

TREE = {
    "stage": "score.exp",
    "verdict": "undecided",
    "evidence": "C",
    "sentence": "Moves 9.4 MB per frame.",
    "us_per_frame": 21.6,
    "ways": [
        {"name": "in the run", "what": "the audio decoded", "us_per_frame": 20.0, "low": 19.0, "high": 22.0},
        {"name": "hot", "what": "at once again", "us_per_frame": 15.0, "low": 14.0, "high": 16.0},
    ],
    "parts": {"bandwidth_s": 0.6, "calls_s": 0.4},
    "parts_low": {"bandwidth_s": 0.5, "calls_s": 0.3},
    "parts_high": {"bandwidth_s": 0.7, "calls_s": 0.5},
    "conclusion": "A quarter of its time is waiting.",
    "audio": "4.0 s of audio",
    "rounds": 3,
    "blocks": 40,
    "notes": ["A note."],
}  # fmt: skip
SAYS = f"import sys; print('replaying', file=sys.stderr); print({json.dumps(TREE)!r})"


def concluding(what: str) -> str:
    """Code that prints what is found, with an expression as its conclusion."""
    return (
        f"import json, pathlib, tempfile; tree = json.loads({json.dumps(TREE)!r}); "
        f"tree['conclusion'] = {what}; print(json.dumps(tree))"
    )


SHARES = "import sys, time; print('replaying score.exp 50%', file=sys.stderr, flush=True); time.sleep(60)"
RECORDED = StageLine(
    "score.exp", "scoring", "decode", 0.0335, 0.1, "call-bound", "B", "",
    parts=(PartLine("calls", 0.4, 0.3, 0.5), PartLine("bandwidth", 0.2, 0.1, 0.3)),
)  # fmt: skip
FAILS = "import sys; print('asrscope: There is no stage.', file=sys.stderr); sys.exit(2)"
WAITS = "import time; time.sleep(60)"
SLOW = """
import pathlib, signal, sys, time
place = pathlib.Path({0!r})
signal.signal(signal.SIGTERM, lambda *_: (place / "told").touch())
print("ready", file=sys.stderr, flush=True)
while not (place / "told").exists() or not (place / "may end").exists():
    time.sleep(0.01)
(place / "ended").touch()
"""
"""It compiles: after a signal it ends only when it may."""


def explanation(parent: QWidget, code: str, recorded: StageLine | None = None) -> Explanation:
    command = (sys.executable, "-c", code)
    made = Explanation(Path("one.asrs"), "score.exp", parent, command, recorded)
    made.show()
    return made


def test_what_the_command_finds_is_shown_and_can_be_copied(qtbot, parent):
    made = explanation(parent, SAYS)
    assert made.working
    assert not made.copy.isEnabled()
    qtbot.waitUntil(lambda: not made.working)
    assert made.state.text() == "Measured on this machine, now: 3 rounds over 4.0 s of audio. A note."
    made.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert "hot\t15.00\t14.00 – 16.00\t0.75\tat once again" in copied
    assert copied.endswith("A quarter of its time is waiting.")
    assert made.chart is not None
    assert made.chart.each[0].chart.layers == (Bars("", (20.0, 15.0), (19.0, 14.0), (22.0, 16.0)),)
    made.close()


def cells(table: TableTwin) -> list[list[str]]:
    model = table.model()
    return [
        [str(model.index(row, column).data()) for column in range(model.columnCount())]
        for row in range(model.rowCount())
    ]


def test_the_figures_of_the_session_are_next_to_those_of_now(qtbot, parent):
    made = explanation(parent, SAYS, RECORDED)
    qtbot.waitUntil(lambda: not made.working)
    assert (
        made.sentences[0]
        .text()
        .startswith("Here 21.60 µs per frame (undecided · C); in the session 33.50 µs per frame (call-bound · B).")
    )
    assert cells(made.tables[1]) == [
        ["memory bandwidth", "60 %", "50 – 70 %", "20 %", "10 – 30 %"],
        ["call overhead", "40 %", "30 – 50 %", "40 %", "30 – 50 %"],
    ]
    assert [row[0] for row in cells(made.tables[0])] == ["in the run", "hot"]
    qtbot.waitUntil(made.tables[1].isVisible)  # laid out in the next turn of the event loop
    made.close()


def test_the_time_left_is_by_the_last_one_of_its_kind_and_never_starts_anew(qtbot, parent):
    made = explanation(parent, SHARES)
    strip = TaskStrip(Memory(), Notices(), QWidget(), lambda *_: True)
    qtbot.addWidget(strip)
    strip.place(made, False)
    assert made.row.parentWidget() is strip
    qtbot.waitUntil(lambda: made.state.text().startswith("replaying score.exp · "))
    assert "s so far" in made.progress.full
    assert made.bar.maximum() == 0, "nobody knows how long it takes"
    made.expected_s = 3600.0
    seen = [made.bar.value()]
    for line in ("replaying score.exp 50%", "compiling: kernel 10%", "replaying 90%"):
        made._show_progress(line)
        seen.append(made.bar.value())
        assert made.progress.full == made.state.text()
        assert made.state.text().endswith(" · about 3600 s left")
    assert seen == sorted(seen)
    assert made.bar.maximum() == 100
    number = made.command.process.processId()
    made.close()
    qtbot.waitUntil(lambda: not psutil.pid_exists(number))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ((sys.executable, "-c", FAILS), "There is no stage."),
        ((sys.executable, "-c", "print('no JSON')"), "What the command printed cannot be read."),
        (("/no/such/program",), "The command could not be started."),
    ],
)
def test_its_sentence_is_shown_when_it_fails(qtbot, parent, command, says):
    made = Explanation(Path("one.asrs"), "score.exp", parent, command)
    made.show()
    qtbot.waitUntil(lambda: not made.working)
    assert made.state.text() == says
    assert not made.tables
    assert not made.copy.isEnabled()
    made.close()


def test_cancelling_ends_the_command(qtbot, parent):
    made = explanation(parent, WAITS)
    process = made.command.process
    assert process.waitForStarted(20_000)
    number = process.processId()
    made.end.click()
    qtbot.waitUntil(lambda: not psutil.pid_exists(number))


def test_closing_waits_for_nothing(qtbot, parent, tmp_path):
    made = explanation(parent, SLOW.format(str(tmp_path)))
    qtbot.waitUntil(lambda: made.state.text().startswith("ready"))
    number = made.command.process.processId()
    made.close()
    assert psutil.pid_exists(number)
    qtbot.waitUntil(lambda: not shiboken6.isValid(made))
    (tmp_path / "may end").touch()
    qtbot.waitUntil(lambda: not psutil.pid_exists(number))
    assert (tmp_path / "ended").exists()


LITTERS = """
import pathlib, signal, sys, tempfile, time
from tests.waiting import PATIENCE_S
signal.signal(signal.SIGTERM, lambda *_: None)
print(tempfile.mkdtemp(), file=sys.stderr, flush=True)
while True:
    time.sleep(0.01)
"""
"""It has temporary files, and does not end."""


def test_what_is_killed_leaves_no_temporary_files(qtbot, parent, monkeypatch):
    monkeypatch.setattr(leaving, "PATIENCE_MS", 50)
    made = explanation(parent, LITTERS)
    qtbot.waitUntil(lambda: Path(made.state.text().partition(" · ")[0]).is_dir())
    folder = Path(made.state.text().partition(" · ")[0])
    made.close()
    qtbot.waitUntil(lambda: not folder.exists())
    assert not folder.parent.exists()


@pytest.mark.parametrize("waits", [True, False])
def test_the_next_begins_when_the_one_before_has_ended(qtbot, parent, tmp_path, waits):
    first = explanation(parent, SLOW.format(str(tmp_path)))
    qtbot.waitUntil(lambda: first.state.text().startswith("ready"))
    first.close()
    begun = concluding(f"str(pathlib.Path({str(tmp_path / 'ended')!r}).exists())")
    second = explanation(parent, begun)
    qtbot.waitUntil((tmp_path / "told").exists)
    assert second.working
    assert second.state.text() == "Waits for the measurement before …"
    if not waits:
        second.close()
        qtbot.waitUntil(lambda: not shiboken6.isValid(second))
    (tmp_path / "may end").touch()
    qtbot.waitUntil((tmp_path / "ended").exists)
    if waits:
        qtbot.waitUntil(lambda: not second.working)
        assert second.sentences[-1].text() == "True"
        second.close()
    qtbot.waitUntil(lambda: leaving.Leaving.find("explain") is None)


@pytest.mark.parametrize("closed", [True, False])
def test_the_end_of_the_program_waits_for_a_command_to_end_in_its_own_way(tmp_path, closed):
    """Also where the dialog is still open: what lies in the folder for temporary files is the command's to remove."""
    (tmp_path / "may end").touch()
    code = (
        "import sys; from pathlib import Path; from PySide6.QtCore import QTimer;"
        "from PySide6.QtWidgets import QApplication, QWidget;"
        "from app.window.tasks.explain import Explanation;"
        "app = QApplication([]); parent = QWidget();"
        "made = Explanation(Path('a'), 'b', parent, (sys.executable, '-c', sys.argv[1]));"
        "made.show(); look = QTimer(interval=20);"
        f"go = lambda: (look.stop(), made.close() if {closed} else None, app.exit());"
        "look.timeout.connect(lambda: go() if made.state.text().startswith('ready') else None);"
        "look.start(); app.exec()"
    )
    command = [sys.executable, "-c", code, SLOW.format(str(tmp_path))]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    assert (tmp_path / "ended").exists()


@pytest.fixture
def window(qtbot, tmp_path):
    made = MainWindow((sys.executable, "-c", "pass"))
    qtbot.addWidget(made)
    made.show()
    yield made
    made.close()


def test_without_a_finished_session_the_action_says_why(window):
    assert not window.actions_["run.explain"].isEnabled()
    assert "finished session" in (window.actions_.unavailable_reason("run.explain") or "")
    before = len(window.notices.banners)
    window.bench.begin("explain", "score.exp")
    assert len(window.notices.banners) == before + 1


def test_stages_of_scoring_and_search_have_the_entry_and_others_have_it_greyed(qtbot, window, tmp_path):
    write_sample(tmp_path / "s.asrs")
    window.files.open_session(tmp_path / "s.asrs")
    view = window.desk.breakdown
    qtbot.waitUntil(lambda: bool(view.tree.stages))
    asked = []
    view.explain.disconnect()
    view.explain.connect(asked.append)
    found, can = {}, {line.name for line in view.tree.stages if line.group in ("scoring", "search")}
    for y in range(view.tree.viewport().height()):
        line = view.tree.stage_at(QPoint(40, y))
        if line in view.tree.stages and line.name not in found:
            menu = view.menu_at(QPoint(40, y))
            entry, confirm = menu.actions()
            assert confirm.isEnabled() == entry.isEnabled()
            assert entry.isEnabled() or "scoring and search" in entry.toolTip()
            assert entry.isEnabled() or menu.toolTipsVisible()
            found[line.name] = entry.isEnabled() == (line.name in can)
            if line.name in can:
                entry.trigger()
    assert found
    assert all(found.values())
    assert asked
    assert set(asked) == can & set(found)
    assert view.menu_at(QPoint(10, -5)) is None


def test_no_run_begins_while_a_closed_explanation_still_computes(qtbot, window, tmp_path, monkeypatch):
    slow = (sys.executable, "-c", SLOW.format(str(tmp_path)))
    monkeypatch.setattr(explanations, "Explanation", partial(Explanation, command=slow))
    write_sample(tmp_path / "s.asrs")
    window.files.open_session(tmp_path / "s.asrs")
    assert window.when.can_start()
    window.bench.begin("explain", "score.exp")
    (made,) = window.findChildren(Explanation)
    qtbot.waitUntil(lambda: made.state.text().startswith("ready"))
    made.close()
    assert not window.top.run.isEnabled()
    window.runs.start()
    assert window.when.is_idle()
    assert window.notices.banners[-1].text.startswith("The measurement before is still ending")
    window.show_lab()
    reported = []
    window._lab.runs.failed.connect(reported.append)
    window._lab.runs.start("call-costs", {})
    assert reported == [leaving.unavailable_reason()]
    assert window.bench.session_reason() is None, "the next explanation waits by itself"
    (tmp_path / "may end").touch()
    qtbot.waitUntil(window.top.run.isEnabled)
