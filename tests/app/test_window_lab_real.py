"""The Lab page with a real lab in small size: run to its verdict, and left by a window that closes."""

from contextlib import closing

import psutil
import pytest

from profiler.session.reader import Session
from tests.app.worker_process import process_id

NAME = "access-orders"
SMALL = {"largest_mib": 1, "seconds": 0.0}
LONG = {"largest_mib": 1, "seconds": 600.0}


@pytest.fixture
def lab(qtbot, window):
    """The Lab page of a window, with that lab open."""
    made = window()
    made.show_lab()
    page = made._lab
    qtbot.waitUntil(lambda: not page._to_read)
    page.show_lab(NAME)
    return page


def begun(lab, sizes):
    """Run it with these parameters from its page; its process."""
    for key, value in sizes.items():
        lab.detail.fields[key].editor.setValue(value)
    lab.detail.run.click()
    return psutil.Process(process_id(lab.runs.control))


@pytest.mark.slow
def test_a_lab_shows_its_picture_and_verdict_and_leaves_no_process(qtbot, lab):
    empty = lab.detail.card.grab().toImage()
    with qtbot.waitSignal(lab.runs.ended):
        process = begun(lab, SMALL)
    qtbot.waitUntil(lambda: not process.is_running())
    past = lab.gallery.tiles[NAME].past
    assert past.record.finding.verdict in lab.gallery.tiles[NAME].state_text()
    assert past.record.parameters.largest_mib == 1
    assert past.record.finding.why in lab.detail.card.accessibleDescription()
    assert lab.detail.card.grab().toImage() != empty
    with closing(Session.open(past.path)) as session:
        assert session.state == "closed"


def test_a_window_that_closes_ends_its_lab(qtbot, lab):
    process = begun(lab, LONG)
    qtbot.waitUntil(lambda: lab.detail.bar.value() > 0)
    lab.window().close()
    qtbot.waitUntil(lambda: not process.is_running())
