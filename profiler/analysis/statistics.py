"""Small statistics that the other modules share."""

import numpy as np


def percentiles(values: np.ndarray, wanted: tuple[float, ...] = (50.0, 95.0)) -> tuple[float, ...]:
    """Return the wanted percentiles (0…100) by linear interpolation; NaN where there are no values."""
    if not len(values):
        return tuple(float("nan") for _ in wanted)
    return tuple(float(v) for v in np.percentile(values, wanted))
