"""The last spans of a lane, as its own thread reads them: wherever in the ring they lie."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profiler.recording.lanes import Lane


@given(st.integers(1, 9), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12), st.integers(0, 15))
def test_the_last_spans_of_a_ring(capacity: int, rounds: list[tuple[int, int]], count: int) -> None:
    lane = Lane(0, "decode", "cpu", True, capacity=capacity)
    recorded: list[int] = []
    number = 0
    for puts, takes in rounds:
        for _ in range(puts):
            dropped = lane.dropped
            lane.put(number, number, number + 1)
            if lane.dropped == dropped:
                recorded.append(number)
            number += 1
        if takes:
            lane.take(takes)
    found = lane.latest(count)
    # Taken or not, what is still in the ring is there.
    wanted = min(count, len(recorded), capacity)
    expected = recorded[len(recorded) - wanted :]
    lane.put(99, 1, 2)
    assert found["stage"].tolist() == found["start_ns"].tolist() == expected, "it is a copy"
