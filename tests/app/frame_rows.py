"""Rows of a `PerFrame` from arrays."""

import numpy as np

from profiler.analysis.per_frame import FrameRow, PerFrame, Spread
from profiler.spans import SPAN


def add(store: PerFrame, first: int, *series: np.ndarray) -> list[FrameRow]:
    """Add to the rows of `store` one array [frames] each, from frame `first` on; the rows as far as it goes then."""
    spans = np.zeros(len(series[0]), SPAN)
    spans["first_frame"], spans["frames"] = first + np.arange(len(spans)), 1
    spread = Spread(spans)
    for number, values in enumerate(series):
        spread.give(number, values)
    store.add(spread)
    return [store.row(number, store.frames) for number in range(len(series))]


def rows_of(*series: np.ndarray) -> list[FrameRow]:
    """Rows of a new store, one per array [frames]."""
    return add(PerFrame(len(series)), 0, *series)
