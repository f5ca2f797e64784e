"""Copies between host and device: sums, rates and roofs that were planted, and what is said without any."""

import pytest
from PySide6.QtCore import QPointF
from views_desk import select, view_on

from app.views.transfers import DOWN, UP, TransfersView
from app.window.welcome import sample_sessions
from profiler.device.time import DEVICE, TRANSFER_COST, TRANSFER_WORK
from profiler.machine.roofs.table import Roof, RoofTable
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.fake_clock import FakeClock

MB = 1_000_000
ROOFS = RoofTable(
    tuple(
        Roof("bandwidth", f"{way}_device.pinned@cuda", "float32", 1, size, rate, rate, rate, "B/s")
        for way, rates in (("to", (1e9, 10e9)), ("from", (2e9, 20e9)))
        for size, rate in zip((4096, MB), rates, strict=True)
    )
)


@pytest.fixture
def path(tmp_path):
    """Two blocks of 10 ms for 8 frames each: in the first two copies up and one down, in the second one down."""
    clock = FakeClock(1_000_000)
    recorder = Recorder(clock)
    decode, copy = recorder.lane("decode", decode=True), recorder.lane("cuda copy", kind=DEVICE)
    block = recorder.stage("decode", "decode", ())
    ways = [recorder.stage(f"transfer.{name}", "transfer", TRANSFER_WORK) for name in ("to device", "to host")]
    for way in ways:
        recorder.cost(way, 0, TRANSFER_COST)
    writer = SessionWriter(tmp_path / "a.asrs", recorder, {"asrscope_version": "0.1.0"})
    writer.calibration(ROOFS.rows())
    writer.config(0, 0, {"device": "cuda"})
    for first, copies in ((0, (0, 0, 1)), (8, (1,))):
        start = clock()
        decode.put(block, start, clock.advance(10_000_000), first, 8)
        for way in copies:
            # 1 MB in 0.2 ms up, all of it overlapped; in 0.1 ms down, all of it waited for.
            length = (200_000, 100_000)[way]
            copy.put(ways[way], start, start + length, first, 8, MB, MB, length * (1 - way))
    writer.close("closed")
    return tmp_path / "a.asrs"


def test_copies_by_direction_with_rates_and_roofs(path, qapp, qtbot):
    with view_on(TransfersView, path, qtbot) as (view, playhead):
        up, down = view.model()
        assert [(one.kind, one.of.copies, one.of.bytes) for one in (up, down)] == [(UP, 2, 2 * MB), (DOWN, 2, 2 * MB)]
        assert up.rates == pytest.approx((5e9, 10e9, 10e9))
        assert down.rates == pytest.approx((10e9, 20e9, 20e9))
        assert "a copy of 4 KiB takes 2.05 µs" in view.plot.rates(down)[0]
        assert (up.share, down.share) == pytest.approx((0.4 / 20, 0.2 / 20))
        assert (up.of.overlapped, down.of.overlapped) == (1.0, 0.0)
        assert view.note == "waited for 1.0 % of the wall time"
        _, rows = view.table()
        assert rows[1][:4] == [DOWN, 2, 2 * MB, str(MB)]
        assert rows[1][6:9] == ["10", "20", "20"]
        assert "10 GB/s, 50 % of what copies of these sizes reach (20 GB/s)" in view.summary()
        tip = view.plot.spot_at(QPointF(200, view.plot.height() / 2)).tip
        assert tip.startswith((UP, DOWN))
        select(playhead.axis, 0.08, 0.16)
        (one,) = view.model()
        assert (one.kind, one.of.copies, one.share) == (DOWN, 1, pytest.approx(0.1 / 10))


def test_of_a_run_on_the_cpu_it_is_said_that_nothing_was_copied(sample, qapp, qtbot):
    with view_on(TransfersView, sample, qtbot) as (view, _):
        assert view.summary() == "This session ran on the CPU alone: nothing was copied."
        assert view.table()[1] == []
        assert view.note == ""


def test_the_bundled_run_on_a_device_has_both_directions(qapp, qtbot):
    with view_on(TransfersView, sample_sessions()[-1], qtbot, (420, 240)) as (view, _):
        assert [one.kind for one in view.model()] == [UP, DOWN]
        for one in view.model():
            rate, reach, link = one.rates
            assert rate < reach < link
