"""The last spans of a lane, as its own thread reads them: wherever in the ring they lie."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profiler.lanes import Lane


def latest(lane: Lane, count: int) -> list[tuple[int, int, int]]:
    """(stage, start, end) of each."""
    found = lane.latest(count)
    return [(int(s["stage"]), int(s["start_ns"]), int(s["end_ns"])) for s in found]


def test_the_last_spans_come_in_order_and_as_far_as_there_are_any() -> None:
    lane = Lane(0, "decode", "cpu", True, capacity=8)
    assert latest(lane, 3) == []
    for i in range(5):
        lane.put(i, 10 * i, 10 * i + 7)
    assert latest(lane, 2) == [(3, 30, 37), (4, 40, 47)]
    assert [stage for stage, *_ in latest(lane, 100)] == [0, 1, 2, 3, 4]
    assert latest(lane, 0) == []
    kept = lane.latest(1)
    lane.put(9, 1, 2)
    assert kept["stage"].tolist() == [4], "it is a copy"


@given(
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12),
    st.integers(0, 15),
)
def test_round_the_ring_they_are_the_ones_recorded_last(
    capacity: int, rounds: list[tuple[int, int]], count: int
) -> None:
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
    found = [stage for stage, *_ in latest(lane, count)]
    # Taken or not, what is still in the ring is there.
    wanted = min(count, len(recorded), capacity)
    assert found == recorded[len(recorded) - wanted :]
