"""What an export of spans shows: the lanes, set-up, what was recognised; and spans in order as a hierarchy.

Set-up takes seconds before decoding, which would be a sliver at the end of it: time counts from the first span that
is none. An utterance lasts from its first to its last block; a word while the frames were decoded in which it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from profiler.arrays import Array
from profiler.recording.layout import SPAN

if TYPE_CHECKING:
    from profiler.session.reader import Session

SETUP: Final = "set-up"  # The lane of what is done for the run and not for the recogniser
RECOGNISED: Final = "utterances and words"  # The lane of what was recognised, by the time in which it was decoded

Detail = dict[str, str | int | float | None]


@dataclass(frozen=True)
class Timeline:
    """Spans by what they belong to: masks [spans]. `origin_ns`: when the first span began that is not set-up.

    `before`: set-up until then. `between`: set-up after that, on the decode lane. `lanes`: the others, by lane.
    """

    origin_ns: int
    before: Array
    between: Array
    lanes: dict[int, Array]


@dataclass(frozen=True)
class Recognised:
    """Utterances and words as spans: each has the place of its name and of its details as its first frame."""

    spans: Array
    names: list[str]
    details: list[Detail]


def timeline(session: Session) -> Timeline:
    """Sort the spans of `session`; a session of set-up alone begins with that."""
    spans = session.spans
    groups = {stage.id: stage.group for stage in session.stages.values()}
    setup = np.isin(spans["stage"], [n for n, group in groups.items() if group == "setup"])
    starts = spans["start_ns"]
    decoded = starts[~setup]
    origin = int(decoded.min() if len(decoded) else starts.min() if len(starts) else 0)
    before = setup & (starts < origin)
    decode = [lane.id for lane in session.lanes.values() if lane.decode]
    between = setup & ~before & np.isin(spans["lane"], decode)
    # What the run is about comes first: speedscope shows the first profile.
    ordered = sorted(session.lanes, key=lambda lane: (lane not in decode, lane))
    rest = ~(before | between)
    return Timeline(origin, before, between, {lane: rest & (spans["lane"] == lane) for lane in ordered})


def recognised(session: Session) -> Recognised:
    """What was recognised in `session`, as far as it was decoded."""
    clock = _Clock(session)
    names: list[str] = []
    details: list[Detail] = []
    times: list[tuple[int, int]] = []
    for one in session.utterances.in_time:
        end_frame = min(one.first_frame + one.n_frames, clock.end_frame)
        if end_frame <= one.first_frame or not clock.knows(one.first_frame):
            continue
        begin = clock.begun_ns(one.first_frame)
        end = max(clock.at_ns(end_frame), begin)
        names.append(one.name)
        details.append({key: getattr(one, key) for key in ("audio_s", "hypothesis", "reference", "errors")})
        times.append((begin, end))
        for word, first, frames in one.words:
            start, stop = (min(max(clock.at_ns(frame), begin), end) for frame in (first, first + frames))
            names.append(word)
            details.append({"first_frame": first, "frames": frames})
            times.append((start, max(stop, start)))
    spans = np.zeros(len(names), SPAN)
    if times:
        starts, ends = np.array(times, np.int64).T
        spans["start_ns"], spans["duration_ns"] = starts, ends - starts
    spans["first_frame"] = np.arange(len(names))
    return Recognised(spans, names, details)


class _Clock:
    """When frames were decoded, by the blocks of the decode lane."""

    def __init__(self, session: Session) -> None:
        spans = session.spans
        blocks, ahead = (
            spans[np.isin(spans["stage"], [stage.id for stage in session.stages.values() if stage.group == group])]
            for group in ("decode", "prepare")
        )
        blocks = blocks[blocks["frames"] > 0]
        blocks = blocks[np.argsort(blocks["first_frame"], kind="stable")]
        self._first, self._frames, self._start, self._ns = (
            blocks[name].astype(np.int64) for name in ("first_frame", "frames", "start_ns", "duration_ns")
        )
        pairs = zip(ahead["first_frame"].tolist(), ahead["start_ns"].tolist(), strict=True)
        self._prepared = dict(sorted(pairs, reverse=True))
        self.end_frame = int((self._first + self._frames).max()) if len(blocks) else 0

    def knows(self, frame: int) -> bool:
        return len(self._first) > 0 and frame >= self._first[0]

    def begun_ns(self, frame: int) -> int:
        start = int(self._start[self._block(frame)])
        return min(int(self._prepared.get(frame, start)), start)

    def at_ns(self, frame: int) -> int:
        """When decoding had come as far as the beginning of `frame`."""
        block = self._block(frame - 1)
        done = min(max((frame - self._first[block]) / self._frames[block], 0.0), 1.0)
        return int(self._start[block] + done * self._ns[block])

    def _block(self, frame: int) -> int:
        return max(int(np.searchsorted(self._first, frame, side="right")) - 1, 0)


PIECE = 1 << 15
"""Spans copied and turned into Python numbers at once: an export of any length takes the same memory,
but for the order (8 bytes per span)."""


def in_order(spans: Array, chosen: Array | None = None) -> Iterator[Array]:
    """Give the spans `chosen` (a mask; None: all) by start, in pieces; of those that start together the longest first.

    Spans that overlap without nesting, which no sound recording has, are shortened to fit: a viewer
    would otherwise drop them or put them on another track.
    """
    ends: list[int] = []
    places = np.arange(len(spans)) if chosen is None else np.flatnonzero(chosen)
    # The enclosing ones first.
    order = places[np.lexsort((-spans["duration_ns"][places], spans["start_ns"][places]))]
    for begin in range(0, len(order), PIECE):
        piece = spans[order[begin : begin + PIECE]]
        durations = piece["duration_ns"]
        pairs = zip(piece["start_ns"].tolist(), durations.tolist(), strict=True)
        for i, (start, duration) in enumerate(pairs):
            while ends and ends[-1] <= start:
                ends.pop()
            end = start + duration
            if ends and end > ends[-1]:
                end = ends[-1]
                durations[i] = end - start
            # A span without length encloses nothing.
            if end > start:
                ends.append(end)
        yield piece
