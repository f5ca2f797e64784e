"""Senone scores by the definition, in double precision, one frame and stream after the other."""

from __future__ import annotations

import numpy as np


def brute_force(model, features, keep=None, floor=None):
    """float64 [n, senones]: Σ streams log Σ densities weight · N(x); only the `keep` best if given.

    `floor`: how far (nat) a density may lie below the best of all codebooks; worse ones are raised.
    """
    means, variances = model.means.astype(float), model.variances.astype(float)
    weights = model.weights.astype(float)
    scores = np.zeros((len(features), model.n_senones))
    _, streams, _, dim = model.means.shape
    for t, frame in enumerate(np.asarray(features, float).reshape(-1, streams, dim)):
        for s in range(streams):
            distance = ((frame[s] - means[:, s]) ** 2 / variances[:, s]).sum(2)
            g = -0.5 * (distance + np.log(2 * np.pi * variances[:, s]).sum(2))
            if keep is not None and keep < g.shape[1]:
                g[g < np.sort(g, axis=1)[:, -keep, None]] = -np.inf
            if floor is not None:
                g = np.where(g > -np.inf, np.maximum(g, g.max() - floor), g)
            best = g.max(1)
            density = np.exp(g - best[:, None])[model.senone_codebook]
            mixture = np.log((density * weights[s].T).sum(1))
            scores[t] += mixture + best[model.senone_codebook]
    return scores


def likely_features(model, n, seed=0):
    """f32 [n, 39] drawn from random Gaussians of the model, the same codebook in each stream."""
    rng = np.random.default_rng(seed)
    books = rng.integers(model.n_codebooks, size=n)
    streams = []
    for s in range(model.n_streams):
        densities = rng.integers(model.n_densities, size=n)
        spread = np.sqrt(model.variances[books, s, densities])
        streams.append(model.means[books, s, densities] + spread * rng.normal(size=spread.shape))
    return np.stack(streams, 1).reshape(n, 39).astype(np.float32)
