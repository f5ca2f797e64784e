"""Products of weights and frames, and the nets made of them, against float64; what they count; what they compile to."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from numba import config, njit
from torch.utils.flop_counter import FlopCounterMode

from pipelines.config.dnn import Dnn
from pipelines.models.nets import Layer, Net
from pipelines.scoring import dnn, thread_pool
from pipelines.scoring.blocks import Meter
from pipelines.scoring.dnn import QuantisedNet, integers
from pipelines.scoring.dnn.dense import OUTPUT_STAGE, Splicer, layer_stage
from pipelines.scoring.dnn.integers import FRAMES, GROUP, PANEL, Library, Panels, filled
from pipelines.scoring.dnn.products import PRODUCTS
from pipelines.scoring.simd.byte_products import BYTE_PRODUCTS, OFFSET, PAIR_PRODUCTS, Bytes, make_byte_tile
from pipelines.scoring.simd.vector import LANES, has_feature
from profiler.arrays import Array
from profiler.errors import BadInput
from tests.each import each
from tests.pipelines.net_files import SHAPES as NET_SHAPES
from tests.pipelines.net_files import card, forward, net, padded, utterance

ROUNDING = 2.0**-24
DENSE = ("blas", "scalar", "simd")
SHAPES = [(1, 2), (7, 14), (16, 17), (50, 5), (49, 197), (137, 141)]
NETS = {
    "odd widths": card(Layer(37), Layer(53), senones=101, heads=2),
    "bottleneck": card(Layer(33), Layer(5, relu=False), Layer(19), senones=50, left=0, right=0),
    "one layer": card(Layer(1), senones=17, heads=3),
    "none": card(senones=49, heads=2),
}
KINDS = {**{product: {"product": product} for product in PRODUCTS}, "int8": {"dtype": "int8"}}


def made(kind: str, of: Net, threads: int = 1, max_frames: int = 32) -> Any:
    return dnn.create(Dnn(**{"product": "blas"} | KINDS[kind]), of, threads, max_frames)


@each("name", PRODUCTS)
@each("shape", SHAPES)
def test_a_product_is_exact_but_for_the_rounding_of_its_sums(name, shape):
    for kept in (1.0, 0.3, 0.05, 0.0):
        check_product(name, shape, kept)


def check_product(name: str, shape: tuple[int, int], kept: float) -> None:
    """`kept`: share of the weights that are not zero; where some are, whole rows are, and a panel of them."""
    rng = np.random.default_rng(3)
    weight = rng.standard_normal(shape).astype(np.float32)
    weight[rng.random(shape) >= kept] = 0
    if kept < 1:
        weight[[0, -1]] = weight[16:32] = 0
    weight.setflags(write=False)
    product = PRODUCTS[name](weight, 1, 32)
    assert product.shape == shape
    assert product.nbytes > 0 or not kept
    for n in (*range(1, 18), 23, 32, 9, 1):
        x = rng.standard_normal((shape[1], n)).astype(np.float32)
        x[-1] = 1.0
        exact = weight.astype(np.float64) @ x
        # Of a sum of k products in any order (Higham 2002, 3.5).
        bound = 1.01 * shape[1] * ROUNDING * (np.abs(weight).astype(np.float64) @ np.abs(x))
        for order in "CF":
            out = np.full((shape[0], n), np.nan, np.float32, order if product.into_rows else "C")
            product.multiply(np.asarray(x, order=order), out)
            assert (np.abs(out - exact) <= bound).all()


@each("name", PRODUCTS)
def test_threads_share_the_rows_and_change_nothing(name, monkeypatch):
    monkeypatch.setattr(thread_pool, "SHARE_SECONDS", 1e-12)
    rng = np.random.default_rng(4)
    weight = rng.standard_normal((149, 61)).astype(np.float32)
    x = rng.standard_normal((61, 9)).astype(np.float32)
    alone, shared = (np.empty((149, 9), np.float32) for _ in range(2))
    PRODUCTS[name](weight, 1, 16).multiply(x, alone)
    product = PRODUCTS[name](weight, 3, 16)
    assert product.threads(9) == 3
    product.multiply(x, shared)
    np.testing.assert_allclose(shared, alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["simd", "int8"])
def test_only_a_layer_that_is_worth_waking_a_thread_for_is_shared(kind, monkeypatch):
    # Where a processor has no instruction for tiles, the library decides; laws are made without it.
    monkeypatch.setattr(integers, "TILES", True)
    # On one thread some 90 µs and 3 ms, in 8 bits a quarter of it.
    wide = card(Layer(64), Layer(1024), senones=2000)
    for threads, shared in ((1, 1), (2, 2)):
        laws = made(kind, net(wide), threads, 64).costs(64)
        counts = [laws[stage].threads for stage in (layer_stage(2), OUTPUT_STAGE)]
        assert counts == [1, shared]


@each("kind", PRODUCTS)
@each("n", [1, 3, 17])
def test_a_product_bound_to_arrays_takes_what_they_hold_and_keeps_them(kind, n):
    rng = np.random.default_rng(n)
    weight = rng.integers(-9, 10, (20, 8)).astype(np.float32)
    product = PRODUCTS[kind](weight, 1, 17)
    x, out = np.zeros((8, n), np.float32), np.zeros((20, n), np.float32)
    once = product.bind(x, out)
    for _ in range(3):
        x[:] = rng.integers(-9, 10, x.shape)
        once()
        assert (out == weight @ x).all()
    alive = [weakref.ref(array) for array in (x, out)]
    del x, out
    gc.collect()
    assert all(each() is not None for each in alive), "kernels have their addresses"
    del once
    gc.collect()
    assert not any(each() is not None for each in alive)


@each("kind", DENSE)
def test_blocks_of_any_size_after_one_another_are_scored_alike(kind):
    of = net(NETS["odd widths"])
    features = np.random.default_rng(5).normal(0, 3, (17, 39)).astype(np.float32)
    arithmetic, exact = made(kind, of), forward(of, features)
    left, right = arithmetic.context
    padded = np.pad(features, ((left, right), (0, 0)), mode="edge")
    for n in (17, 1, 5, 17, 2, 1):
        spliced = arithmetic.splice(padded[: n + left + right], Meter())
        # Also from an array of the caller's own.
        for given in (spliced, spliced.copy(), spliced):
            scores = np.full((n, of.card.senones), np.nan, np.float32)
            arithmetic.score(given, scores, Meter())
            close(scores, exact[:n], kind)


@each("shape", NETS)
@each("kind", KINDS)
def test_every_arithmetic_computes_the_net(kind, shape):
    of = net(NETS[shape])
    features = np.random.default_rng(5).normal(0, 3, (17, 39)).astype(np.float32)
    arithmetic = made(kind, of)
    left, right = arithmetic.context
    exact = forward(of, features)
    padded = np.pad(features, ((left, right), (0, 0)), mode="edge")
    for n in (1, 2, 17):
        spliced = arithmetic.splice(padded[: n + left + right], Meter())
        scores = np.full((n, of.card.senones), np.nan, np.float32)
        arithmetic.score(spliced, scores, Meter())
        close(scores, exact[:n], kind)
    if not arithmetic.can_choose:
        return
    active = np.array([16, 0, 3], np.int64)
    arithmetic.begin_some(arithmetic.splice(padded, Meter()), Meter())
    scores = np.full(exact.shape, np.nan, np.float32)
    arithmetic.score_some(5, 12, active, scores, Meter())
    close(scores[5:12, active], exact[5:12, active], kind, np.abs(exact).max())
    assert np.isfinite(scores).sum() == 7 * 3
    since = np.arange(17) % of.card.heads
    source = np.arange(17) - since
    scores = np.full(exact.shape, np.nan, np.float32)
    arithmetic.score_by_heads(source, since, scores, Meter())
    heads = [forward(of, features, head) for head in range(of.card.heads)]
    expected = np.array([heads[h][s] for h, s in zip(since, source, strict=True)])
    close(scores, expected, kind)


def close(scores: Array, exact: Array, kind: str, size: float | None = None) -> None:
    """float32 to 1e-5 of the largest score; 8 bits to 5 % of it and 1.5 % on average."""
    size = size or float(np.abs(exact).max())
    largest, mean = (0.05, 0.015) if kind == "int8" else (1e-5, 1e-5)
    error = np.abs(scores - exact)
    assert error.max() <= largest * size
    assert error.mean() <= mean * size


@each("kind", [*DENSE, "int8"])
def test_each_stage_counts_the_operations_that_torch_counts(kind):
    of, frames = net(NETS["odd widths"]), 9
    arithmetic: Splicer = made(kind, of)
    laws = arithmetic.costs(frames)  # type: ignore[attr-defined]
    matrices = [*(weight for weight, _, _ in of.matrices()), of.head(0)[0]]
    stages = [*(layer_stage(i + 1) for i in range(len(matrices) - 1)), OUTPUT_STAGE]
    names = {"scalar": "scalar", "int8": "gemm:int8"}
    for stage, weight in zip(stages, matrices, strict=True):
        with FlopCounterMode(display=False) as counter:
            torch.zeros(frames, weight.shape[1]) @ torch.from_numpy(weight).T
        work = frames * (len(weight) if stage == OUTPUT_STAGE else 1)
        counted = laws[stage].operations[names.get(kind, "gemm")].total(1, frames, (work, 0, 0))
        # The column of biases is one more input; in integers the bias is added to the restored sums.
        biases = 0 if kind == "int8" else 2 * frames * len(weight)
        assert counted - biases == pytest.approx(counter.get_total_flops(), rel=1e-12)


@each("layers", NET_SHAPES)
def test_a_net_in_integers_is_the_formula_rounded_twice(layers):
    made, features = net(card(*layers)), utterance()
    quantised = QuantisedNet(made, 1, 32)
    spliced = quantised.splice(padded(features, quantised), Meter()).copy()
    scores = np.empty((len(features), 50), np.float32)
    quantised.score(spliced, scores, Meter())
    expected = rounded(made, spliced[:, :-1])
    # The same roundings but for a few values that lie between two integers.
    assert np.median(np.abs(scores - expected)) < 1e-3
    assert np.abs(scores - expected).max() < 0.05 * np.abs(expected).max()
    exact = forward(made, features)
    assert np.abs(scores - exact).mean() < 0.03 * np.abs(exact).mean()
    quantised.begin_some(spliced, Meter())
    active, some = np.array([49, 3], np.int64), np.zeros_like(scores)
    quantised.score_some(2, 9, active, some, Meter())
    np.testing.assert_allclose(some[2:9, active], scores[2:9, active], rtol=1e-5, atol=1e-5)
    some[2:9, active] = 0
    assert not some.any()


def rounded(made: Any, x: Array) -> Array:
    """The net with weights and activations rounded to 255 steps, in float64."""

    def steps(values: Array) -> Array:
        scale = np.abs(values).max(1, keepdims=True).astype(np.float32) / np.float32(127)
        whole: Array = np.rint(values / scale) * scale
        return whole

    for weight, bias, relu in [*made.matrices(), (*made.head(0), False)]:
        x = steps(x).astype(np.float64) @ steps(weight).T.astype(np.float64) + bias
        x = np.maximum(x, 0) if relu else x
    return x


MAX_ROWS = 2 * FRAMES + 5


def frames_of(rng, n, inputs):
    """Frames as a net keeps them: rows filled up with zeros, in wider ones."""
    room = np.zeros((n, filled(inputs) + 3 * GROUP), np.int8)
    x = room[:, : filled(inputs)]
    x[:, :inputs] = rng.integers(-127, 128, (n, inputs))
    return x


@each("kind", [Panels, Library])
@each("outputs, inputs", [(1, 1), (PANEL, 64), (PANEL + 1, 63), (3 * PANEL - 5, 130), (300, 2)])
@each("threads", [1, 2])
def test_sums_are_exact(kind, outputs, inputs, threads, monkeypatch):
    monkeypatch.setattr(thread_pool, "SHARE_SECONDS", 1e-12)
    rng = np.random.default_rng(outputs)
    weight = rng.integers(-127, 128, (outputs, inputs)).astype(np.int8)
    made = kind(weight, threads, MAX_ROWS)
    for n in (*range(1, FRAMES + 2), MAX_ROWS):
        x = frames_of(rng, n, inputs)
        wanted = x[:, :inputs].astype(np.int64) @ weight.T.astype(np.int64)
        assert np.array_equal(made.sums(x), wanted)


@each("kind", [Panels, Library])
@each("sign", [-127, 127])
def test_the_largest_values_overflow_nothing(kind, sign):
    inputs = 4096
    made = kind(np.full((3, inputs), sign, np.int8), 1, 2)
    x = np.full((2, inputs), 127, np.int8)
    assert np.array_equal(made.sums(x), np.full((2, 3), 127 * sign * inputs))


def where(has, what):
    return pytest.mark.skipif(not has, reason=f"this processor has no products of {what}")


@pytest.mark.parametrize(
    ("one_instruction", "pairs"),
    [
        (False, False),
        pytest.param(False, True, marks=where(PAIR_PRODUCTS, "pairs")),
        pytest.param(True, False, marks=where(BYTE_PRODUCTS, "bytes")),
    ],
)
@pytest.mark.parametrize("vectors", [1, 2])
def test_a_tile_is_exact_by_every_way_of_the_processor(one_instruction, pairs, vectors):
    tile = make_byte_tile([2], vectors, Bytes(one_instruction, pairs))

    @njit
    def called(x, panel, excess, out):
        begin = panel.ctypes.data, panel.shape[0], excess.ctypes.data, out.ctypes.data
        tile(2, x.ctypes.data, x.strides[0], begin[0], begin[1], begin[2], begin[3])

    rng, groups, outputs = np.random.default_rng(0), 9, vectors * LANES
    weight = rng.integers(-127, 128, (groups, outputs, GROUP)).astype(np.int16)
    x = rng.integers(-128, 128, (2, groups * GROUP)).astype(np.int8)
    # The largest that there are, side by side: two of their products exceed 16 bits.
    weight[:, 0], weight[:, 1], x[0] = 127, -127, 127
    x[1, : 4 * GROUP] = -128
    excess = (OFFSET * x.sum(axis=1, dtype=np.int32)).astype(np.int32)
    out = np.zeros((2, outputs), np.int32)
    called(x, (weight + OFFSET).astype(np.uint8), excess, out)
    wanted = x.astype(np.int64) @ weight.swapaxes(1, 2).reshape(-1, outputs).astype(np.int64)
    assert np.array_equal(out, wanted)


@each("features, wanted", [("", False), ("+avx2,+fma", True), ("-avx2,+fma", False), ("+avx2x", False)])
def test_instructions_are_those_of_the_chosen_processor(features, wanted, monkeypatch):
    """Of NUMBA_CPU_NAME and NUMBA_CPU_FEATURES: LLVM ends the process at an instruction that the target lacks."""
    monkeypatch.setattr(config, "CPU_FEATURES", features)
    assert has_feature("avx2") == wanted


def test_only_what_is_there_is_stored_and_counted():
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((40, 51)).astype(np.float32)
    weight[:, :-1][rng.random((40, 50)) >= 0.2] = 0
    weights = np.count_nonzero(weight)
    csr = PRODUCTS["csr"](weight, 1, 48)
    assert csr.nbytes == weights * (4 + 2) + 41 * 8
    padded = np.concatenate([weight, np.zeros((8, 51), np.float32)])
    taken = int(padded.reshape(3, 16, 51).any(1).sum())
    blocks = PRODUCTS["blocks"](weight, 1, 48)
    assert blocks.nbytes == taken * (16 * 4 + 2) + 4 * 8
    assert 0 < taken < 3 * 51
    for product, multiplied in ((csr, weights), (blocks, 16 * taken)):
        law = product.cost(1.0, 1.0)
        assert law.operations["gemm"].total(1, 0, (7, 0, 0)) == 2 * multiplied * 7
        for times in (1.0, 3.0):
            law = product.cost(1.0, times)
            for n in (1.0, 16.0, 64.0):
                least, most = (b.total(1, n, (n, 0, 0)) for b in (law.bytes_min, law.bytes_max))
                assert times * product.nbytes < least <= most


@pytest.mark.parametrize("name", ["blocks", "csr"])
def test_more_inputs_than_16_bits_tell_apart_are_refused(name):
    with pytest.raises(BadInput, match=rf"65536 inputs; dnn\.product={name} takes at most 65535"):
        PRODUCTS[name](np.zeros((1, 65_537), np.float32), 1, 48)
    last = np.zeros((1, 65_536), np.float32)
    last[0, 65_535] = 2.0
    x = np.zeros((65_536, 2), np.float32)
    x[65_535] = 3.0
    out = np.zeros((1, 2), np.float32)
    PRODUCTS[name](last, 1, 48).multiply(x, out)
    assert out.tolist() == [[6.0, 6.0]]
