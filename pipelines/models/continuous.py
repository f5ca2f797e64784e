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
from profiler.errors import Cancelled

RECIPE = 1  # raise it when the same files would give other parameters


def untied(
    base: AcousticModel,
    components: int,
    progress: Progress = lambda title, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> AcousticModel:
    """`base` with `components` Gaussians per senone and stream (or all it has), from the cache or made now.

    Takes about a second; raises Cancelled. Its arrays are mapped from the cache and cannot be written.
    """
    if base.is_continuous:
        return base
    m = min(components, base.n_densities)
    path = derived.folder() / f"untied-{m}-{derived.key(base, {'untied': m, 'recipe': RECIPE})}"
    dims = base.n_streams, base.means.shape[3]
    found = derived.find(path, base, m, dims)
    if found is None:
        with derived.unfinished(path) as work:
            arrays = derived.create(work, (base.n_senones, dims[0], m, dims[1]))
            kept = []
            for stream in range(dims[0]):
                progress("untying the codebooks", stream / dims[0])
                if cancelled():
                    raise Cancelled
                kept.append(_untie(base, stream, m, arrays))
            shares = " ".join(f"{share:.2f}" for share in kept)
            origin = (
                f"continuous, {m} Gaussians per senone and stream, untied from the {base.origin}; "
                f"share of the mixture weights kept in each stream: {shares}"
            )
            derived.finish(work, arrays, origin)
            del arrays
        found = derived.find(path, base, m, dims)
        assert found is not None
    return found


def _untie(base: AcousticModel, stream: int, m: int, arrays: dict[str, derived.Array]) -> float:
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
