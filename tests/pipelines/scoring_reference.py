"""Senone scores by the definition, in double precision, one frame and stream after the other."""

import numpy as np

from pipelines.config import Config, assign
from pipelines.scoring import selection
from pipelines.scoring.blocks import Meter
from pipelines.scoring.continuous import ContinuousGmm, pack
from pipelines.scoring.strategy import never, quietly
from pipelines.scoring.tied import gmm, packing


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


NAT = 1e-3
SOME = {"gmm.selection.codewords": 16, "gmm.selection.threshold": 0.8, "gmm.selection.expand": 5}
METHODS = ("top-n", "last-top-n", "vq", "vq-tree", "vq-table", "clusters")
KINDS = ("tied", "three streams", "one stream", "untied")


def family_of(model, threads=1):
    if model.is_continuous:
        return ContinuousGmm(pack(model), threads)
    return gmm.Gmm(packing.pack(model), threads)


def configured(family, method, **changes):
    config = assign(Config(), SOME | {k.replace("__", "."): v for k, v in changes.items()})
    strategy = selection.METHODS[family.kind][method](family)
    need = strategy.needs(config.gmm)
    prepared = need and need.make(quietly, never)
    strategy.configure(config.gmm, prepared)
    return strategy, prepared


def lists_of(prepared):
    """The shortlists of what `vq` prepared."""
    return prepared[0] if type(prepared) is tuple else prepared


def scored(strategy, family, features, block=64):
    scores = np.empty((len(features), family.n_senones), np.float32)
    for at in range(0, len(features), block):
        strategy.score(features[at : at + block], scores[at : at + block], Meter())
    return scores


def linear(panels, centre, features):
    """Log densities f64 [n, groups, streams, slots, 16] of panels in the layout of both families."""
    streams, depth = panels.shape[-4], panels.shape[-2]
    x = (np.asarray(features, float) - centre).reshape(len(features), streams, depth // 2)
    x = np.concatenate([x**2, x, np.ones((*x.shape[:2], 1))], axis=2)
    return np.einsum("tsd,gsmdl->tgsml", x, panels.astype(float))


def mixtures(family, g):
    """Scores f64 [n, senones] from log densities [n, groups, streams, slots, 16]; −inf leaves one out."""
    p = family.parameters
    with np.errstate(divide="ignore"):
        if family.kind == "Continuous":
            best = g.max(axis=3, keepdims=True)
            sums = np.log(np.exp(g - best).sum(axis=3)) + best[:, :, :, 0]
            return sums.sum(axis=2).reshape(len(g), -1)[:, : p.n_senones]
        scores = np.zeros((len(g), p.n_senones))
        for senone in range(p.n_senones):
            book = p.book_of_senone[senone]
            for s in range(g.shape[2]):
                row = g[:, book, s].reshape(len(g), -1)
                best = row.max(axis=1)
                total = np.exp(row - best[:, None]) @ p.dots[senone, s].astype(float)
                scores[:, senone] += np.log(total) + best
    return scores


def nearest(book, centre, features):
    """int [n, streams]: the nearest codeword by the definition."""
    streams, _, dim = book.words.shape
    x = (np.asarray(features, float) - centre).reshape(len(features), streams, 1, dim)
    return (((x - book.words) ** 2) * book.scale[:, None]).sum(axis=3).argmin(axis=2)


def on_lists(family, lists, words, g):
    """`g` with −inf for what is on no list: float64 [n, groups, streams, slots, 16]."""
    chosen = np.zeros(g.shape, bool)
    for t, row in enumerate(words):
        for s, k in enumerate(row):
            for group in range(lists.start.shape[2] - 1):
                span = slice(lists.start[s, k, group], lists.start[s, k, group + 1])
                on = (lists.lanes[span, None] >> np.arange(16)) & 1 > 0
                chosen[t, group, s, lists.items[span]] = True if family.kind == "Continuous" else on
    return np.where(chosen, g, -np.inf)


def densities_in_bytes(eight, family, features):
    """Log densities f64 of 8-bit Gaussians, by the formula of `in_int8` in the shifts of 16-bit integers."""
    streams, dim = eight.steps.shape
    x = family.expand(features)
    steps = np.rint(x[:, :, dim : 2 * dim] * eight.steps).clip(-8192, 8192).astype(np.int64)
    groups, _, slots, size = eight.panels.shape
    values = eight.panels[..., : size - 128].reshape(groups, streams, slots, -1, 2, 16, 2)
    tails = eight.panels[..., size - 128 :].view(np.float32).reshape(groups, streams, slots, 2, 16)
    g = np.zeros((len(x), groups, streams, slots, 16))
    for d in range(dim):
        mean = values[..., d // 2, 0, :, d % 2].view(np.int8).astype(np.int64)
        level = values[..., d // 2, 1, :, d % 2].astype(np.int64)
        gap = steps[:, None, :, None, None, d] - 16 * mean
        g += ((gap * 128 * level) >> 16).astype(float) ** 2
    return tails[..., 0, :] - g * tails[..., 1, :].astype(float)
