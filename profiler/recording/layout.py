"""How a span lies in memory: as a session's file has it, and as it waits in a lane's ring.

Also what a compiled kernel gets of a ring, with the places of its counters.
"""

from typing import Final

import numpy as np

from profiler.arrays import Array

LAYOUT: Final = "<qqHHHIIIII"  # One span of a session as `struct` sees it; little-endian and packed, 42 bytes

_COUNTED: Final = [(name, "<u4") for name in ("frames", "first_frame", "work0", "work1", "work2")]
_PLACED: Final = [("stage", "<u2"), ("lane", "<u2"), ("epoch", "<u2")]
SPAN: Final = np.dtype([("start_ns", "<i8"), ("duration_ns", "<i8"), *_PLACED, *_COUNTED])
"""The same as numpy sees it. `first_frame` is run-global; a frame is a 10 ms hop."""

RECORD_BYTES: Final = SPAN.itemsize

SLOT: Final = np.dtype([("start_ns", "<i8"), ("end_ns", "<i8"), *_COUNTED, ("stage", "<u2"), ("unused", "<u2")])
"""A span while it waits in the ring: every field at a multiple of its size, 40 bytes."""

SLOT_BYTES: Final = 40
_COUNTS: Final = np.dtype((np.void, 20))
SPAN_COUNTS: Final = np.dtype({"names": ["c"], "formats": [_COUNTS], "offsets": [22], "itemsize": 42})
SLOT_COUNTS: Final = np.dtype({"names": ["c"], "formats": [_COUNTS], "offsets": [16], "itemsize": 40})
"""The five counts from `frames` to `work2` as one piece: one copy instead of five."""

AT, LEFT, DROPPED, OPEN, N_LENT = range(5)
"""Of a lent ring (int64): the next slot, the slots left, the spans dropped for want of one, the slot of a span that the
kernel left open (-1: none)."""

Lent = tuple[Array, Array]  # Ring SLOT [slots] and counters int64 [N_LENT], as a kernel gets them
