"""A continuous-density model derived from one with tied codebooks, by untying.

Each senone gets, per stream, copies of the M Gaussians of its codebook that weigh most in its mixture, and
their weights, renormalised. Exact in the limit of all densities; at M = 42 of 128 some 0.95, 0.96 and 0.89 of
the weight of the three streams is kept (US-English PTM model). 5 126 senones × 42 × 39 dimensions are 67 MB of
means and variances, the textbook workload of Gaussian mixture scoring.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipelines.models import derived
from pipelines.models.derived import Progress
from pipelines.models.sphinx import AcousticModel
from profiler.arrays import Array
from profiler.errors import Cancelled

RECIPE = 1  # raise it when the same files would give other parameters


def untied(
    base: AcousticModel,
    components: int,
    progress: Progress = lambda title, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> AcousticModel:
    """`base` with `components` Gaussians per senone and stream (or all it has), from the cache or made now.

    Takes about a second; raises Cancelled. Its arrays are mapped from the cache where there is one, and cannot
    be written.
    """
    if base.is_continuous:
        return base
    m = min(components, base.n_densities)
    name = f"untied-{m}-{derived.key(base, {'untied': m, 'recipe': RECIPE})}"
    shape = (base.n_senones, base.n_streams, m, base.means.shape[3])
    found = derived.find(name, base, shape)
    if found is not None:
        return found
    arrays = derived.create(shape)
    kept = []
    for stream in range(base.n_streams):
        progress("untying the codebooks", stream / base.n_streams)
        if cancelled():
            raise Cancelled
        kept.append(_untie(base, stream, m, arrays))
    shares = " ".join(f"{share:.2f}" for share in kept)
    origin = (
        f"continuous, {m} Gaussians per senone and stream, untied from the {base.origin}; "
        f"share of the mixture weights kept in each stream: {shares}"
    )
    return derived.keep(name, base, arrays, origin)


def _untie(base: AcousticModel, stream: int, m: int, arrays: dict[str, Array]) -> float:
    """Fill one stream of `arrays`; returns the share of the weights kept, the mean over senones."""
    weights = base.weights[stream]
    # Ties broken by number, so that every machine derives the same model.
    best = np.argsort(-weights, axis=0, kind="stable")[:m]
    chosen = np.take_along_axis(weights, best, axis=0)
    sums = chosen.sum(axis=0, dtype=np.float64)
    arrays["weights"][stream] = chosen / sums
    rows = base.senone_codebook[:, None], stream, best.T
    arrays["means"][:, stream] = base.means[rows]
    arrays["variances"][:, stream] = base.variances[rows]
    return float((sums / weights.sum(axis=0, dtype=np.float64)).mean())
