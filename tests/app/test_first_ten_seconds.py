"""The first ten seconds of a new user, by mouse and keys on the real window with the real recogniser.

Nothing is opened and nothing scrolled at 1280 × 800: the demo is started, what costs most is read, Gaussian selection
is flipped, the cost changes, and the same speech decoded both ways gives ratio and words. Then the A/B decides.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot
from shown_windows import show, wait_for_the_recogniser

from app.model import audio_choice
from app.model.audio_choice import AudioChoice
from app.model.effects import Effect, effects_of
from app.views.stage_tree import ROW
from app.window.main_window import MainWindow
from profiler.analysis.categories import CATEGORIES
from profiler.session.reader import Session
from tests.waiting import PATIENCE_MS

pytestmark = pytest.mark.slow

DECIDED_MS = 180_000  # An A/B goes on for up to forty rounds of five seconds of speech
SMALL = QSize(1280, 768)  # What a screen of 1280 × 800 leaves a window with a title bar
SPEECH = ("08-kal16-short.flac", "04-kal16-numbers.flac")
TOGGLE, SELECTION, BLOCK = 0, "gmm.selection.enabled", "block"


@pytest.fixture
def desk(qtbot: QtBot, bundled_speech: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MainWindow]:
    """A window as it is after `asrscope` on a new machine, whose demo decodes five seconds round and round."""
    files = tuple(str(bundled_speech / name) for name in SPEECH)
    voices = AudioChoice(files, str(bundled_speech / "transcripts.tsv"), bundled=True)
    monkeypatch.setattr(audio_choice, "bundled", lambda: voices)
    window = MainWindow()
    window.resize(SMALL)
    show(qtbot, window)
    yield window
    window.close()


def click(widget: QWidget) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=widget.rect().center())


def seen(window: MainWindow, widget: QWidget, area: QRect | None = None) -> bool:
    """Whether all of a widget (or of an area of it) can be seen: it is in the window and no scroll area cuts it off."""
    area = area or widget.rect()
    here = QRect(widget.mapTo(window, area.topLeft()), area.size())
    shown = widget.visibleRegion().boundingRect()
    return window.rect().contains(here) and shown.contains(area)


def effect(window: MainWindow) -> Effect | None:
    shown = window.playhead.snapshot()
    if shown is None:
        return None
    keys = window.top.toggles[TOGGLE].toggle.keys
    found = effects_of(shown.session)
    return found.last_change(shown.session, shown.track, shown.cursor_frame, keys)


def test_the_first_ten_seconds(qtbot: QtBot, desk: MainWindow) -> None:
    w = desk

    def until(condition: Callable[[], bool], timeout: int = PATIENCE_MS) -> None:
        qtbot.waitUntil(condition, timeout=timeout)

    # One click starts it.
    start = next(b for b in w.welcome.findChildren(QPushButton) if b.text() == "Run the demo")
    click(start)
    wait_for_the_recogniser(qtbot, w, 150)
    assert w.pipeline.preset.name == "demo"
    assert (w.pipeline.value(BLOCK), w.pipeline.value("pace")) == (1, 1.0)
    assert not [b for b in w.notices.banners if b.kind == "error"]

    # Everything that matters is on the window.
    bars = w.desk.breakdown
    for widget in (w.top.rtf, w.top.wer, w.top.toggles[TOGGLE], w.desk.transport, w.status.hint):
        # A figure that has just become wider stands over the edge until the window is laid out again.
        until(lambda widget=widget: seen(w, widget))
    assert seen(w, bars.bar)
    assert seen(w, bars.tree.viewport(), QRect(0, 0, bars.tree.viewport().width(), 4 * ROW))
    assert {"compute", "memory", "transfer", "search"} <= set(CATEGORIES)
    shown = w.playhead.snapshot()
    named = dict(shown.desk.categories)
    named.pop("other_programs")
    assert max(named, key=named.__getitem__) in ("memory", "compute", "unexplained")
    assert named["transfer"] == 0
    assert "transfer" in shown.desk.reasons, "a zero is given its reason"
    assert w.status.hint_text.full.startswith("Hint 1 of 3: switch Gaussian selection on")

    # Words are heard, and one file has been decoded to its end.
    until(lambda: len([u for u in w.playhead.session.utterances if u.done]) >= 2)
    assert w.top.wer.value != "–"

    # One click on the switch; it acts within a second of speech, for all was prepared.
    click(w.top.toggles[TOGGLE].switch)
    until(lambda: any(m.applied_frame is not None for m in w.playhead.session.markers))
    (marker,) = w.playhead.session.markers
    assert marker.key == SELECTION
    assert marker.applied_frame - marker.asked_frame < 100
    assert w.status.hint_text.full.startswith("Hint 2 of 3: set Block to 16")
    # What follows is not about time as it is heard: the recogniser need not wait for it.
    w.pipeline.set("pace", 0.0)
    until(lambda: w.playhead.n_frames > marker.applied_frame + 100)
    wall = w.playhead.track.wall_row[:]
    before, after = (float(np.median(part)) for part in (wall[: marker.asked_frame], wall[marker.applied_frame :]))
    assert after < before

    # The same speech comes again by itself, and then there are a ratio and words.
    until(lambda: (found := effect(w)) is not None and found.decided and bool(found.words))
    found = effect(w)
    assert found.kind == "faster"
    toggle = w.top.toggles[TOGGLE]
    until(lambda: toggle.effect.property("kind") == "faster" and "errors of" in toggle.subtitle.full)
    assert "× faster (" in toggle.effect.text()
    assert seen(w, toggle.effect)

    # One key: the same utterance in turn with both settings, until it is decided; the shorter takes less time.
    until(lambda: w.playhead.session.utterances[-1].path.endswith(SPEECH[0]))
    QTest.keyClick(w, Qt.Key.Key_B)
    assert w.side_by_side.active
    assert w.desk.transport.compare.isChecked()
    until(lambda: not w.side_by_side.active, DECIDED_MS)
    until(lambda: w.playhead.session.meta["ab"]["ended"] is not None)
    until(lambda: (now := effect(w)) is not None and now.turns >= 3 and now.decided)
    decided, at = effect(w), w.playhead.snapshot().cursor_frame
    assert decided.kind == "faster"

    # On to the next hint, which goes when it has been followed; the last is waved away.
    block = w.desk.form.fields[BLOCK].editor
    assert seen(w, block), "it is not scrolled to"
    QTest.mouseDClick(block.lineEdit(), Qt.MouseButton.LeftButton)
    QTest.keyClicks(block, "16")
    QTest.keyClick(block, Qt.Key.Key_Return)
    assert w.pipeline.next.block == 16
    assert w.status.hint_text.full.startswith("Hint 3 of 3")
    click(w.status.away)
    assert w.status.hint.isHidden()
    assert w.memory.texts("hints") == ["block", "ladder", "selection"]

    # What was recorded says the same again.
    click(w.top.stop)
    until(lambda: w.when.is_idle() and not w.playhead.live)
    path = w.playhead.path
    assert path is not None
    with_turns = [u for u in Session.open(path).utterances if u.epochs in ((2,), (3,))]
    assert len(with_turns) >= 6
    # Not the same figures: live, an utterance that ended just before may not have been counted yet.
    w.playhead.seek(at)
    until(lambda: w.playhead.snapshot().cursor_frame == at)
    again = effect(w)
    assert again.decided
    assert again.kind == "faster"
    assert again.turns >= 3
