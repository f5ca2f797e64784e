"""Sessions that ship with the program: what a person without such a machine can look at."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton

from app.model.provenance import provenance_of
from app.model.runs import RECORDED_DEMO
from app.window.welcome import sample_sessions
from profiler.analysis.breakdown import breakdown
from profiler.session.reader import Session

MOST_BYTES = 2_000_000


@pytest.mark.parametrize("path", sample_sessions(), ids=lambda path: path.stem)
def test_each_is_small_complete_and_names_its_device(path: Path) -> None:
    assert path.stat().st_size <= MOST_BYTES
    # What tells of the person's folders has no place in it.
    assert b"/work" not in path.read_bytes()
    assert b"/home" not in path.read_bytes()
    with Session.open(path) as session:
        assert session.state == "closed"
        parts = breakdown(session)
        assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns, rel=1e-6)
        assert [row.name for row in parts.stages if row.defect] == []
        if path == RECORDED_DEMO:
            # What it is to show: memory is most of it, and both settings have the whole utterance.
            assert max(parts.categories, key=parts.categories.__getitem__) == "memory"
            assert parts.categories["other_programs"] < 0.01 * parts.wall_ns
            assert [one.done for one in session.utterances][:3] == [True] * 3
            return
        (device,) = session.meta["devices"].values()
        assert "H100" in device["name"]
        on_device = {row.lane for row in parts.stages if row.group in ("scoring", "search")}
        assert "cuda compute" in on_device
        assert len(session.utterances) == 3


def test_there_are_those_that_are_named() -> None:
    assert {path.stem for path in sample_sessions()} == {"demo", "mixtures-on-an-h100"}
    assert RECORDED_DEMO in sample_sessions()


def test_the_first_page_opens_it(qtbot, window):
    w = window()
    rows = w.welcome.findChildren(QAbstractButton, "sample-session")
    assert len(rows) == len(sample_sessions())
    (at,) = [at for at, path in enumerate(sample_sessions()) if "h100" in path.name]
    rows[at].click()
    qtbot.waitUntil(lambda: w.playhead.path == sample_sessions()[at])
    assert w.status.machine.full.startswith("NVIDIA H100")
    assert w.pages.currentWidget() is not w.welcome


def test_a_session_of_a_device_names_it_in_pictures() -> None:
    (path,) = [p for p in sample_sessions() if "h100" in p.name]
    with Session.open(path) as session:
        assert "NVIDIA H100" in provenance_of(session)["machine"]
