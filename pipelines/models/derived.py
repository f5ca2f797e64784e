"""Acoustic models derived from another one, kept in the cache: means, variances, weights and where they come from.

One with tied codebooks becomes one of continuous density by untying: each senone gets, per stream, copies of the M
Gaussians of its codebook that weigh most in its mixture, and their weights, renormalised.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.sphinx import AcousticModel
from profiler.arrays import Array
from profiler.errors import Cancelled
from profiler.files import cache

ARRAYS = ("means", "variances", "weights")
Progress = Callable[[str, float | None], None]


def key(model: AcousticModel, recipe: dict[str, Any]) -> str:
    """Hash of a model's files and of how another one is made from it."""
    text = json.dumps([model.checksum, recipe], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def create(shape: tuple[int, int, int, int]) -> dict[str, Array]:
    """Means, variances [senones, streams, components, dim] and weights to be filled."""
    return {name: np.empty(size, np.float32) for name, size in _shapes(shape).items()}


def kept_or_made(
    name: str, base: AcousticModel, shape: tuple[int, ...], make: Callable[[], tuple[dict[str, Array], str]]
) -> AcousticModel:
    """The model whose means have that `shape`, from the cache if it is there and whole; its arrays cannot be written.

    Else `make` gives its arrays and where they come from; they are kept under `name` where there is a cache.
    """

    def find() -> AcousticModel | None:
        found = cache.find(cache.MODELS, name)
        with suppress(ModelError):
            return None if found is None else of_kept(name, base, found, shape)
        return None

    if (model := find()) is not None:
        return model
    arrays, origin = make()
    cache.keep(cache.MODELS, name, arrays, {"origin": origin})
    if (model := find()) is not None:
        return model
    for array in arrays.values():  # it could not be kept
        array.flags.writeable = False
    return made(name, base, arrays, origin)


def of_kept(name: str, base: AcousticModel, kept: cache.Kept, shape: tuple[int, ...]) -> AcousticModel:
    """The model that is kept; ModelError unless it has the arrays of one with means of that shape."""
    arrays = kept.arrays
    if {n: (a.shape, a.dtype.str) for n, a in arrays.items()} != {n: (s, "<f4") for n, s in _shapes(shape).items()}:
        raise ModelError(f"What the cache keeps as {name} is no model of this size.")
    return made(name, base, arrays, str(kept.about.get("origin", "")))


def made(name: str, base: AcousticModel, arrays: Mapping[str, Array], origin: str) -> AcousticModel:
    """`base` with other parameters; `name` and what it was made from identify it."""
    return replace(
        base,
        kind="continuous",
        means=arrays["means"],
        variances=arrays["variances"],
        weights=arrays["weights"],
        senone_codebook=np.arange(base.n_senones, dtype=np.int32),
        checksum=hashlib.sha256(f"{base.checksum} {name}".encode()).hexdigest(),
        origin=origin,
    )


def _shapes(shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    senones, streams, components, _ = shape
    return dict(zip(ARRAYS, (shape, shape, (streams, components, senones)), strict=True))


def untied(
    base: AcousticModel,
    components: int,
    progress: Progress = lambda title, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> AcousticModel:
    """`base` with `components` Gaussians per senone and stream (or all it has), from the cache or made now.

    Takes about a second; raises Cancelled. Its arrays are mapped from the cache if there is one, and cannot be written.
    """
    if base.is_continuous:
        return base
    m = min(components, base.n_densities)
    # `recipe`: to be raised when untying the same files would give other parameters.
    name = f"untied-{m}-{key(base, {'untied': m, 'recipe': 1})}"
    shape = (base.n_senones, base.n_streams, m, base.means.shape[3])

    def make() -> tuple[dict[str, Array], str]:
        arrays, kept = create(shape), []
        for stream in range(base.n_streams):
            progress("untying the codebooks", stream / base.n_streams)
            if cancelled():
                raise Cancelled
            kept.append(f"{_untie(base, stream, m, arrays):.2f}")
        return arrays, (
            f"continuous, {m} Gaussians per senone and stream, untied from the {base.origin}; "
            f"share of the mixture weights kept in each stream: {' '.join(kept)}"
        )

    return kept_or_made(name, base, shape, make)


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
