"""Labs of kernels and arithmetic: what is planted for them, and what they time against plain computations."""

import math

import numpy as np
import pytest

from pipelines.config import Config, assign, presets
from pipelines.labs import _kernels as kernels
from pipelines.labs import batching, exp_cost, exp_share, figures, parameter_bytes, simd_int8, vq_lookup
from pipelines.labs.batching import COLUMNS, MIXTURES, NET, ROWS
from pipelines.labs.exp_cost import PYTHON
from pipelines.labs.exp_share import LIBRARY_BEST, LIBRARY_SUM
from pipelines.labs.simd_int8 import BATCHED, EIGHT, INTEGERS, LIBRARY, ONE_SUM, PLAIN, PRESETS, UNROLLED
from pipelines.labs.sweep import SweepResult
from pipelines.labs.vq_lookup import BEST, FULL
from pipelines.models import sphinx
from pipelines.scoring.continuous import ContinuousGmm, pack
from pipelines.scoring.selection import vq_table
from pipelines.scoring.strategy import never, quietly
from profiler.analysis.comparison.statistics import Ratio
from tests.each import each
from tests.labs.contract import LOUD, NOISE, Contract, about, at_size, near, timings
from tests.pipelines import sphinx_writer

FEW_PARAMETERS = parameter_bytes.Params(senones=64, gaussians=5, dimensions=3, batch=4, seconds=0.0)
SIZE = 64 * 5 * 7 * 4  # Bytes of these parameters


def planted_batches(gain=5.0, rows_at_2=3.0, noise=NOISE, mixtures=None):
    """A frame takes 1 ms alone and 1/`gain` in batches of 2 and 4; as rows, 2 take `rows_at_2` ms a frame.

    `mixtures`: the gain of the mixtures, where it is another. A turn of a scorer scores eight frames.
    """
    ms = {}
    for variant in (NET, MIXTURES, COLUMNS, ROWS):
        own = mixtures if variant == MIXTURES and mixtures else gain
        each = {1: 1.0, 2: rows_at_2 if variant == ROWS else 1 / own, 4: 1 / own}
        ms[variant] = {n: (n if variant in (COLUMNS, ROWS) else batching.FEW) * each[n] for n in each}
    return SweepResult(timings=timings(ms, noise), texts={"net": "base"})


def planted_operations(exp=3.0, zip_loop=0.6, noise=NOISE, in_numpy=None):
    """A millisecond for an addition, in Python and in numpy; exp and the loop over pairs as given.

    `in_numpy`: exp in numpy, where it takes another time.
    """
    python = {"nothing": 0.3, "nothing, in pairs": zip_loop, "add": 1.0 + zip_loop}
    python |= {"multiply": 1.0 + zip_loop, "compare": 0.9 + zip_loop, "exp": exp + 0.3}
    numpy = {"nothing": 0.01, "add": 1.01, "multiply": 1.01, "compare": 0.8, "exp": (in_numpy or exp) + 0.01}
    ways = {PYTHON: python, "numpy float32": numpy}
    ms = {f"{way}, {what}": t for way, some in ways.items() for what, t in some.items()}
    return SweepResult(timings=at_size(1000, ms, noise))


def planted_shares(share_at_1=0.05, share_at_64=0.2, noise=NOISE):
    best = {1: 20.0 * (1 - share_at_1), 64: 32.0 * (1 - share_at_64)}
    ms = {exp_share.SUM: {1: 20.0, 64: 32.0}, exp_share.BEST: best}
    return SweepResult(timings=timings(ms, noise), texts={"model": "single-stream"})


def planted_mixtures(waiting=0.6, noise=NOISE):
    """A Gaussian takes a unit in a cache and more where `waiting` is memory; batches of 4 share the reading."""
    ms = {}
    for m, d in parameter_bytes.shapes(FEW_PARAMETERS.gaussians, FEW_PARAMETERS.dimensions):
        slower = {16: 1.0, 64: 1 / (1 - waiting)}
        ms[parameter_bytes.variant(m, d, 1)] = {n: 0.01 * n * m * factor for n, factor in slower.items()}
        ms[parameter_bytes.variant(m, d, 4)] = {n: 0.01 * 4 * n * m for n in slower}
    counts = {"gaussians": FEW_PARAMETERS.gaussians, "dimensions": FEW_PARAMETERS.dimensions}
    return SweepResult(timings=timings(ms, noise), counts=counts, cache_bytes={1: 32768})


def planted_ladder(vectors=0.2, eight=0.05, noise=NOISE):
    rungs = {PLAIN: 2.5, "vectors": vectors, "BLAS": 0.3, EIGHT: eight, BATCHED: 0.02}
    loops = {ONE_SUM: 3.0, UNROLLED: 1.0, LIBRARY: 0.1, INTEGERS: 2.0}
    return SweepResult(
        timings=at_size(1, rungs, noise),
        more={"loops": at_size(1, loops, noise)},
        counts={"outputs": 50, "inputs": 20},
        by_variant={"same_best": dict.fromkeys(rungs, 0.95)},
    )


def planted_lookups(by_exp=0.1, tree=0.01, noise=NOISE):
    """All Gaussians take 10 ms, the best one less by `by_exp` of that, a look-up `tree` of it."""
    ms = {FULL: 10.0, BEST: 10.0 * (1 - by_exp), "flat 16": 20 * tree, "tree 16": 10.0 * tree}
    facts = ("error", "same_best", "bytes_read", "exps")
    return SweepResult(
        timings=at_size(1, ms, noise),
        by_variant={"codewords": {"flat 16": 16, "tree 16": 16}} | {fact: dict.fromkeys(ms, 0.5) for fact in facts},
    )


def every_way_is_measured(result):
    ways = exp_cost.ways_of(result)
    assert ways[0] == PYTHON
    assert result.timings.size(f"{PYTHON}, add") == 10
    assert result.timings.size("numpy float32, add") == 64
    chart = exp_cost.LAB.picture(result)
    assert [layer.name for layer in chart.layers] == list(exp_cost.OPERATIONS)
    assert chart.x.categories == tuple(ways)


CONTRACTS = {
    "batching": Contract(
        batching.LAB,
        planted_batches,
        false=[{"gain": 0.5}, {"gain": 0.5, "mixtures": 5.0}, {"mixtures": 0.5}],
        noisy=[{"gain": 1.02, "noise": LOUD}],
        figures=near(net_gain=5.0, rows_two_over_one=3.0, added_latency_ms_at_4=30.0),
        drawn=about((1.0, 0.2, 0.2)),
    ),
    "exp-cost": Contract(
        exp_cost.LAB,
        planted_operations,
        # The loop is taken off.
        true=[{}, {"exp": 1.5, "zip_loop": 4.0}],
        false=[{"exp": 0.5}, {"in_numpy": 0.5}],
        noisy=[{"exp": 1.4, "zip_loop": 0.3, "noise": LOUD}],
        figures=near(numpy_float32_exp_over_slowest=3.0, numpy_float32_exp_ns=3000.0),
        more=[
            (
                {"exp": 1.5, "zip_loop": 4.0},
                near(flawed_add_over_exp=about(5.0 / 1.8, 0.05), repaired_add_over_exp=about(1.0 / 1.5, 0.1)),
            )
        ],
        small=exp_cost.Params(elements=64, items=10, seconds=0.0),
        check=every_way_is_measured,
    ),
    "exp-share": Contract(
        exp_share.LAB,
        planted_shares,
        false=[{"share_at_64": 0.7}],
        noisy=[{"share_at_1": 0.45, "share_at_64": 0.48, "noise": LOUD}],
        figures=near(
            exp_share_at_1=pytest.approx(0.05, abs=0.01),
            exp_share_at_64=pytest.approx(0.2, abs=0.01),
            ms_per_frame_at_1=20 / 8,
            ms_per_frame_at_64=0.5,
        ),
        drawn=pytest.approx((5.0, 20.0), abs=1.0),
    ),
    "parameter-bytes": Contract(
        parameter_bytes.LAB,
        planted_mixtures,
        false=[{"waiting": 0.2}],
        noisy=[{"waiting": 0.52, "noise": LOUD}],
        figures=near(
            waiting_share=pytest.approx(0.6, abs=0.01),
            batching_gain=2.5,
            bytes_per_frame=SIZE,
            dram_bytes_per_s=SIZE / 8e-3,
            flops_per_s_at_batch_4=2 * SIZE / 12.8e-3,
        ),
        small=FEW_PARAMETERS,
    ),
    "simd-int8": Contract(
        simd_int8.LAB,
        planted_ladder,
        false=[{"vectors": 5.0}, {"eight": 0.6}],
        noisy=[{"eight": 0.2, "noise": LOUD}],
        figures=near(
            vectors_over_plain=12.5, int8_over_best_float=4.0, int8_batched_over_plain=125.0, unrolled_over_plain=3.0
        ),
        drawn=about((2.5, 0.2, 0.3, 0.05, 0.02)),
    ),
    "vq-lookup": Contract(
        vq_lookup.LAB,
        planted_lookups,
        false=[{"by_exp": 0.8}, {"tree": 1.5}],
        noisy=[{"by_exp": 0.55, "noise": LOUD}],
        figures=near(exp_share_of_saving=pytest.approx(0.1 / 0.99, abs=0.01), tree_16_time_share=0.01),
        drawn=about((1e4, 9e3, 200.0, 100.0)),
    ),
}


def test_shares_and_inverses_keep_their_intervals_in_order():
    found = Ratio(0.5, 0.4, 0.8, 0.01)
    assert figures.saved(found) == Ratio(0.5, pytest.approx(0.2), pytest.approx(0.6), 0.01)
    assert figures.inverse(found) == Ratio(2.0, 1.25, 2.5, 0.01)
    assert figures.percent(figures.saved(found)) == "50 % (20 to 60)"
    assert figures.saved(Ratio(0.5)) == Ratio(0.5)
    assert figures.scaled(Ratio(0.5), 100) == Ratio(50.0)
    assert figures.saved(None) is figures.scaled(None, 100) is None


def test_both_layouts_give_the_product():
    made = batching.products(30, [1, 2, 5])
    draw = np.random.default_rng(0)
    weights = draw.standard_normal((30, 81), np.float32).astype(float)
    for n in (1, 2, 5):
        right = weights @ draw.standard_normal((n, 81), np.float32).astype(float).T
        np.testing.assert_allclose(made[COLUMNS, n](), right, atol=1e-4)
        np.testing.assert_allclose(made[ROWS, n](), right.T, atol=1e-4)


def test_lists_hold_what_the_operations_make_of_the_values():
    calls = exp_cost.in_python(50)
    values, pairs = (calls[name]() for name in ("nothing", "nothing, in pairs"))
    assert values == pairs
    assert calls["exp"]() == [math.exp(x) for x in values]
    others = [s - x for s, x in zip(calls["add"](), values, strict=True)]
    product = [x * y for x, y in zip(values, others, strict=True)]
    assert calls["multiply"]() == pytest.approx(product)
    assert calls["compare"]() == [x < y for x, y in zip(values, others, strict=True)]


@each("make", [exp_cost.in_numpy, exp_cost.in_numba, exp_cost.in_torch])
@each("dtype", ["float32", "float64"])
def test_every_way_computes_the_same(make, dtype):
    x, y = np.random.default_rng(0).uniform(-5, 5, (2, 70)).astype(dtype)
    right = {"add": x + y, "multiply": x * y, "compare": x < y, "exp": np.exp(x.astype(float))}
    for what, call in make(x, y).items():
        if what in right:
            np.testing.assert_allclose(np.asarray(call()), right[what], rtol=1e-5)


@pytest.mark.parametrize("streams", [1, 3])
def test_mixtures_in_numpy_are_those_of_float64(streams):
    draw = np.random.default_rng(0)
    gaussians = draw.standard_normal((2, streams, 5, 9, 16)).astype(np.float32)
    features = draw.standard_normal((3, streams * 4)).astype(np.float32)
    made = exp_share.library_variants(gaussians, features)
    x = features.astype(float).reshape(3, streams, 4)
    x = np.concatenate([x**2, x, np.ones((3, streams, 1))], axis=2)
    g = np.einsum("tsk,gsmkl->tsglm", x, gaussians.astype(float)).reshape(3, streams, 32, 5)
    sums, best = np.log(np.exp(g).sum(axis=3)).sum(axis=1), g.max(axis=3).sum(axis=1)
    np.testing.assert_allclose(made[LIBRARY_SUM](), sums, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(made[LIBRARY_BEST](), best, rtol=1e-4, atol=1e-4)


@each("senones, frames", [(16, 1), (48, 3), (64, 4)])
def test_what_is_timed_is_the_mixtures_scores(senones, frames):
    made = parameter_bytes.Mixtures(64, 5, 3, 4)
    made.scoring(senones, frames)()
    scores = made.scores.ravel()[: frames * senones].reshape(frames, senones)
    parameters = made.parameters[: senones // 16, 0].astype(float)
    g = np.einsum("tk,gmkl->tglm", made.x[:frames, 0].astype(float), parameters)
    right = np.log(np.exp(g).sum(axis=3)).reshape(frames, senones)
    np.testing.assert_allclose(scores, right, rtol=1e-4, atol=1e-4)


@each("shape", [(1, 1), (3, 7), (5, 8), (4, 29)])
@each("loop", [kernels.plain, kernels.unrolled])
def test_loops_give_the_product(shape, loop):
    draw = np.random.default_rng(0)
    weight, x = draw.standard_normal(shape, np.float32), draw.random(shape[1], np.float32)
    out = np.full(shape[0], np.nan, np.float32)
    loop(weight, x, out)
    np.testing.assert_allclose(out, weight.astype(float) @ x, atol=1e-5)


def test_every_loop_of_the_ladder_runs_and_rungs_are_its_presets_in_order():
    weight = np.random.default_rng(1).standard_normal((20, 9), np.float32)
    assert list(simd_int8.loops_of(weight)) == [ONE_SUM, UNROLLED, LIBRARY, INTEGERS]
    for call in simd_int8.loops_of(weight).values():
        call()
    steps = [presets.load(name).step for name in PRESETS.values()]
    assert steps == sorted(steps)
    assert presets.load(PRESETS[EIGHT]).config.dnn.dtype == "int8"


def test_each_lookup_scores_as_brute_force_does(tmp_path):
    model = sphinx.load(sphinx_writer.write_continuous(tmp_path, 1, 20))
    family = ContinuousGmm(pack(model), 1)
    gmm = assign(Config(), {"gmm.selection.codewords": 16}).gmm
    table = vq_table.Continuous(family).needs(gmm).make(quietly, never)
    scorers, p = vq_lookup.scorers(family, {16: table}), family.parameters
    features = (10 * np.random.default_rng(0).standard_normal((7, p.dim))).astype(np.float32)
    x = family.expand(features).astype(float).copy()
    g = np.einsum("tsk,gsmkl->tsglm", x, p.gaussians.astype(float))
    g = g.reshape(len(x), p.n_streams, -1, p.n_components)[:, :, : p.n_senones]
    best = g.max(axis=3)
    full = (np.log(np.exp(g - best[..., None]).sum(axis=3)) + best).sum(axis=1)
    nearest = table.codebook
    found = {name: np.empty((7, p.n_senones), np.float32) for name in scorers}
    for name, score in scorers.items():
        score(features, found[name])
    np.testing.assert_allclose(found[FULL], full, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(found[BEST], best.sum(axis=1), rtol=1e-3, atol=1e-2)
    values = x[:, 0, p.dim : 2 * p.dim]
    distance = ((values[:, None] - nearest.words[0]) ** 2 * nearest.scale[0]).sum(axis=2)
    right = table.scores[0, distance.argmin(axis=1)]
    np.testing.assert_allclose(found["flat 16"], right, rtol=1e-5)
    # Down the tree another codeword may be found, but it is one of them.
    rows = table.scores[0]
    assert all((np.abs(rows - row).max(axis=1) < 1e-3).any() for row in found["tree 16"])
