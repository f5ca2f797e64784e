"""Cost laws of the layers above: frames that are copied, senones that are due or backed off."""

from __future__ import annotations

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs import frame_calls, per
from profiler.costs import NUMPY_CALL, Cost

COPY_CALLS = 4.0
"""Calls of numpy for a block that say which frames are copied, besides one for each frame."""
NUMBER = 8.0
"""Bytes of a senone's number."""
BACKOFF = 12.0
"""Bytes of a senone's number, of its parent's and of a place in the list."""


def copied_frames(n_senones: int, block: int) -> Cost:
    """Law of `score.copy`: scores written for the copied frames; in fact every covered frame is read and written."""
    row = float(FLOAT * n_senones)
    return Cost(
        bytes_min=per(row),
        bytes_max=per(frame=2 * row),
        working_set_bytes=2 * row * block,
        calls={NUMPY_CALL: per(fixed=COPY_CALLS, frame=1.0)},
    )


def due(n_senones: int) -> Cost:
    """Law of `active.due`: for each requested senone a comparison, its last computed frame, its place on the list."""
    return Cost(
        operations={"scalar": per(1.0)},
        bytes_min=per(2.0 * NUMBER, 2.0 * NUMBER),
        bytes_max=per(3.0 * NUMBER, NUMBER),
        working_set_bytes=2.0 * NUMBER * n_senones,
        calls=frame_calls(),
    )


def backed_off(n_senones: int) -> Cost:
    """Law of `_backoff.passing` and `choose`: a comparison of each senone's parent, its score or its place written.

    At most with a line read for every score written, and another pass that counts for the cap.
    """
    return Cost(
        operations={"scalar": per(2.0)},
        bytes_min=per(BACKOFF, float(FLOAT)),
        bytes_max=per(3 * BACKOFF, 2.0 * FLOAT),
        working_set_bytes=n_senones * (BACKOFF + 2 * FLOAT),
        calls=frame_calls(2),
    )
