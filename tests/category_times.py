"""The times of a track's frames as one array."""

import numpy as np

from profiler.analysis.track import CostTrack


def categories_ns(track: CostTrack) -> np.ndarray:
    """Time per frame and category, float64 [frames, categories] in ns."""
    return np.stack([row[:] for row in track.category_rows]).T
