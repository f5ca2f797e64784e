"""A continuous model with one full-width (39-dimensional) mixture per senone, the textbook form.

The density of a model of three streams is a product, so each senone's is resampled and a mixture fitted to the samples
by EM. That makes a poor model; `pipelines.training.single_stream` re-estimates it on aligned speech.
"""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pipelines.models import derived, estimation
from pipelines.models.derived import Progress
from pipelines.models.errors import ModelError
from pipelines.models.estimation import Densities, Frames, Mixtures
from pipelines.models.sphinx import AcousticModel
from profiler.arrays import Array
from profiler.errors import Cancelled
from profiler.files import cache
from profiler.files.paths import cache_path

RECIPE = 1  # raise it when the same files would give other parameters
SAMPLES = 1000  # draws per senone: some 24 per Gaussian
STEPS = 6  # of EM: more improve the samples' likelihood by less than 0.1 nat
SEED = 20_260_000
AT_ONCE = 64  # senones per compiled call: some 0.3 s, so that cancelling is quick


def no_frames(model: AcousticModel) -> Frames:
    features, first = np.empty((0, model.n_features), np.float32), np.zeros(model.n_senones + 1, np.int64)
    return Frames(features, np.empty(0, np.int32), features[:, 0], first)


def name_of(base: AcousticModel, components: int, kind: str) -> str:
    """Return the name of a single-stream model of `base`; `kind` is "resampled" or "trained"."""
    recipe = {"single-stream": components, "recipe": RECIPE}
    return f"single-stream-{components}-{kind}-{derived.key(base, recipe)}"


def trained_file(base: AcousticModel, components: int) -> Path:
    """Path of a trained model: with training's other output, where nothing is removed to save space."""
    return cache_path("training", f"{name_of(base, components, 'trained')}{cache.SUFFIX}")


def best(
    base: AcousticModel,
    components: int,
    progress: Progress = lambda title, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> AcousticModel:
    """The model re-estimated on speech where there is one, else the resampled one, made now if need be.

    A `base` that is one already is given back; raises Cancelled, or ModelError when the former is damaged.
    """
    if base.is_continuous and base.n_streams == 1:
        return base
    if len(set(base.widths)) > 1:
        raise ModelError(
            f"{base.directory} has streams of {base.widths} features; model=single-stream can be made where all "
            "are of one width, model=continuous of any."
        )
    return trained(base, components) or resampled(base, components, progress, cancelled)


def trained(base: AcousticModel, components: int) -> AcousticModel | None:
    """The model that was re-estimated on speech, if there is one.

    ModelError when it is damaged: it takes hours to make again, and another would give other words.
    """
    name, path = name_of(base, components, "trained"), trained_file(base, components)
    if not os.path.lexists(path):
        return None
    try:
        return derived.of_kept(name, base, cache.read(path), shape_of(base, components))
    except (cache.CacheError, ModelError) as error:
        raise ModelError(
            f"The single-stream model that was re-estimated on speech cannot be used ({str(error).rstrip('.')}); "
            "train it again, or remove the file for the resampled model."
        ) from error


def shape_of(base: AcousticModel, components: int) -> tuple[int, int, int, int]:
    """Return the shape of the means: [senones, 1, components, dimensions of all streams]."""
    return base.n_senones, 1, components, base.n_features


def resampled(
    base: AcousticModel,
    components: int,
    progress: Progress = lambda title, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> AcousticModel:
    """The model fitted to samples of `base`, from the cache or made now; takes up to a minute."""

    def make() -> tuple[dict[str, Array], str]:
        arrays = derived.create(shape_of(base, components))
        fit(base, arrays, "resampling the mixtures", progress=progress, cancelled=cancelled)
        return arrays, (
            f"single-stream, {components} Gaussians per senone, resampled from the {base.origin}; "
            "not re-estimated on speech"
        )

    return derived.kept_or_made(name_of(base, components, "resampled"), base, shape_of(base, components), make)


def fit(
    base: AcousticModel,
    arrays: dict[str, Array],
    title: str,
    frames: Frames | None = None,
    prior: float = 1.0,
    samples: int = SAMPLES,
    progress: Progress = lambda title, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Fill `arrays` with mixtures fitted to samples of `base` and, if given, to real frames.

    A senone's samples count as `prior` frames. `title` is passed to `progress`.
    """
    frames = frames or no_frames(base)
    cumulative = np.cumsum(base.weights, axis=1)
    old = Densities(base.means, np.sqrt(base.variances), cumulative, base.senone_codebook)
    new = Mixtures(arrays["means"], arrays["variances"], arrays["weights"])
    for first in range(0, base.n_senones, AT_ONCE):
        progress(title, first / base.n_senones)
        if cancelled():
            raise Cancelled
        last, rng = min(first + AT_ONCE, base.n_senones), np.random.default_rng([SEED, first])
        estimation.fit(old, frames, new, first, last, samples=samples, prior=prior, steps=STEPS, rng=rng)
