"""Every way of recording that `bench overhead` times does record."""

import importlib.util

import pytest

from profiler.recording import kernel_spans
from profiler.recording.lanes import Lane
from tests.bench import overhead


@pytest.mark.skipif(not kernel_spans.HAS_CLOCK, reason="compiled code has no clock on this system")
@pytest.mark.parametrize("record", [overhead.kernel_events, overhead.kernel_laps])
def test_a_compiled_way_records_its_spans(record):
    lane = Lane(0, "bench", "cpu", False)
    assert record(lane.lend(), 100) > 0
    lane.settle()
    assert len(lane.take()) // 42 == 100


@pytest.mark.skipif(importlib.util.find_spec("viztracer") is None, reason="viztracer is not installed")
def test_no_way_of_recording_loses_an_event(monkeypatch):
    monkeypatch.setattr(overhead, "EVENTS", 200)
    for name, variant in overhead.Events().variants.items():
        _, kept = variant()
        assert kept in (0, 200) if "profiler off" in name else kept == 200, name
