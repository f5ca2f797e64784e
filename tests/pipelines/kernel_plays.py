"""What the kernels of scoring are called for: models, nets and products of odd sizes on all kinds of blocks."""

import dataclasses
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import net_files
import nnet3_nets
import numpy as np
import sphinx_writer as writer
from scoring_reference import METHODS, SOME, configured, family_of

from pipelines.config import Config, assign
from pipelines.models import sphinx
from pipelines.models.kaldi import nnet3
from pipelines.models.kaldi.binary import Reader
from pipelines.models.nets import Layer
from pipelines.scoring import selection, senones
from pipelines.scoring.blocks import Meter
from pipelines.scoring.clustering.quantiser import codewords_of
from pipelines.scoring.dnn import DenseNet, QuantisedNet, integers
from pipelines.scoring.dnn.nnet3.net import Nnet3Net
from pipelines.scoring.dnn.nnet3.plan import plan
from pipelines.scoring.dnn.products import PRODUCTS
from pipelines.scoring.selection import EXACT
from pipelines.scoring.strategy import never, quietly, warm_up
from profiler.arrays import Array

FRAMES = (0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64)
TIED = ((1, 1, 1), (1, 16, 16), (2, 15, 17), (3, 17, 33), (4, 40, 150))
"""Codebooks, densities and senones; 8, 2 and 1 panels of sixteen of them are done by tiles of their own."""
CONTINUOUS = ((1, 1, 1), (15, 3, 1), (17, 3, 17), (33, 1, 16), (40, 3, 5))  # Senones, streams and components
LAYERS = ((1, 1), (15, 40), (16, 17), (64, 64), (65, 33), (129, 65))  # Outputs and inputs of a product


def play() -> None:
    """All that scores, on models and blocks of odd sizes."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        tied = sphinx.load(writer.write_model(base / "tied", 4, 20))
        own = sphinx.load(writer.write_continuous(base / "own", 3, 4))
    for sizes in TIED:
        _play_model(_tied(tied, *sizes))
    for sizes in CONTINUOUS:
        _play_model(_continuous(own, *sizes))
    _play_nets()
    _play_graphs()
    _play_products()
    codewords_of(tied, 5, quietly, never).nearest(_features(7), Meter())


def _features(n: int) -> Array:
    return np.random.default_rng(n).normal(0, 3, (n, 39)).astype(np.float32)


def _scores(frames: int, senones: int) -> Array:
    return np.zeros((frames, senones), np.float32)


def _tied(model: Any, books: int, densities: int, count: int) -> Any:
    # A codebook of many may be nobody's.
    owner = np.random.default_rng(count).integers(max(1, books - 1), size=count)
    return _model(model, owner, (books, 3, densities, 13))


def _continuous(model: Any, count: int, streams: int, components: int) -> Any:
    return _model(model, np.arange(count), (count, streams, components, 39 // streams))


def _model(model: Any, owner: Array, shape: tuple[int, int, int, int]) -> Any:
    """As `model`, of other sizes: `owner` says which codebook is each senone's."""
    rng, count = np.random.default_rng(len(owner)), len(owner)
    weights = rng.uniform(0.1, 1, (*shape[1:3], count)).astype(np.float32)
    return dataclasses.replace(
        model,
        mdef=SimpleNamespace(n_senones=count),  # type: ignore[arg-type]
        means=rng.normal(0, 3, shape).astype(np.float32),
        variances=rng.uniform(0.5, 4, shape).astype(np.float32),
        weights=weights / weights.sum(1, keepdims=True),
        senone_codebook=owner.astype(np.int32),
    )


def _play_model(model: Any) -> None:
    for threads in (1, 3):
        family = family_of(model, threads)
        n = family.n_senones
        for method, changes in _variants(family.kind):
            strategy, _ = configured(family, method, **changes)
            for frames in FRAMES if threads == 1 else (1, 17):
                strategy.score(_features(frames), _scores(frames, n), Meter())
        small = family.small()
        for method in selection.METHODS[family.kind] if threads == 1 else ():
            # What compiles kernels for a run is a part of its model.
            quick = assign(Config(), SOME).gmm
            warm_up(selection.METHODS[family.kind][method](small), quick, _features(3), _scores(3, small.n_senones))
        strategy, _ = configured(family, EXACT)
        vq, _ = configured(family, "vq")
        for chosen, frames in itertools.product((strategy, vq), (1, 3, 17)):
            _play_rules(chosen, n, frames)


def _variants(kind: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for method in ("none", *METHODS):
        yield method, {}
    for component in ("int8", "max"):
        yield "none", {"gmm__component": component}
        if kind == "Continuous":
            yield "vq", {"gmm__component": component}
    for top_n in (1, 7, 16, 64):
        yield "top-n", {"gmm__selection__top_n": top_n}
        yield ("top-n", {"gmm__selection__top_n": top_n, "gmm__component": "partial-distance"})


def _play_rules(source: Any, n: int, frames: int) -> None:
    own = np.arange(0, n, 3)
    parents = senones.Parents(own, (np.arange(n) // 3).astype(np.int32))
    features, scores = _features(frames), _scores(frames, n)
    for name, cap in itertools.product(senones.RULES, (0, 4)):
        rule = senones.RULES[name](n, parents)
        rule.configure(assign(Config(), {"gmm.ci_cap": cap}).gmm, source)
        rule.score(features, scores, Meter())
        if rule.lazy:
            rule.begin(features, Meter(), ahead=True)
            for t in range(frames):
                active = np.random.default_rng(t).permutation(n)[: max(1, n - 2 * t)]
                rule.frame(t, active, scores, Meter())


def _play_nets() -> None:
    for count, layers in ((1, ()), (17, (Layer(16),)), (65, (Layer(33), Layer(15, relu=False)))):
        made = net_files.net(net_files.card(*layers, senones=count, left=0, right=1, heads=2))
        for kind, frames in itertools.product((DenseNet, QuantisedNet), FRAMES[1:]):
            net = kind(made, 1, 64)
            spliced = net.splice(_features(frames + 1), Meter())
            scores = _scores(frames, count)
            net.score(spliced, scores, Meter())
            net.begin_some(spliced, Meter())
            for some in {0, 1, min(5, count), count}:
                net.score_some(0, frames, np.arange(some), scores, Meter())
            net.score_by_heads(np.zeros(frames, np.int64), np.arange(frames) % 2, scores, Meter())


def _play_graphs() -> None:
    """Nets of Kaldi, with blocks that follow each other and others."""
    for w in (nnet3_nets.tdnnf(), nnet3_nets.mixed(4), nnet3_nets.mixed(5)):
        net = nnet3.read(Reader(b"\0B" + w.net(), Path("net")))
        for int8, frames in itertools.product((False, True), (3, 6, 63)):
            made = Nnet3Net(plan(net, 3), 1, "simd", int8=int8, looped=True)
            features = np.random.default_rng(frames).normal(0, 3, (2 * frames + sum(net.context), net.width))
            for at in (0, frames, 0):
                made.begin = at
                x = made.splice(features.astype(np.float32)[at : at + frames + sum(net.context)], Meter())
                scores = _scores(len(x), net.pdfs)
                made.score(x, scores, Meter())
                made.begin_some(x, Meter())
                made.score_some(0, len(x), np.arange(3), scores, Meter())


def weights(outputs: int, inputs: int) -> Array:
    rng = np.random.default_rng(outputs)
    weight = rng.standard_normal((outputs, inputs)).astype(np.float32)
    weight[rng.random(weight.shape) < 0.5] = 0
    return weight


def blocks(inputs: int, outputs: int) -> Iterator[tuple[Array, Array]]:
    """(x, room for the product), in the orders that a product may be given them."""
    for n in FRAMES[1:]:
        x = np.random.default_rng(n).standard_normal((inputs, n)).astype(np.float32)
        yield x, np.zeros((outputs, n), np.float32)
        yield np.asfortranarray(x), np.zeros((outputs, n), np.float32)


def _play_products() -> None:
    for outputs, inputs in LAYERS:
        for name, threads in itertools.product(PRODUCTS, (1, 3)):
            product = PRODUCTS[name](weights(outputs, inputs), threads, 64)
            for x, out in blocks(inputs, outputs):
                product.multiply(x, out)
                if product.into_rows:
                    product.multiply(x, np.zeros(out.shape[::-1], np.float32).T)
        for threads in (1, 3):
            panels = integers.Panels(weights(outputs, inputs).astype(np.int8), threads, 64)
            for n in FRAMES[1:]:
                panels.sums(np.ones((n, integers.filled(inputs)), np.int8))
