"""Products of the weights that are not zero against float64; what they store and what they say they cost."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.scoring.dnn import products
from pipelines.scoring.dnn.products import Product
from profiler.arrays import Array
from profiler.errors import BadInput
from tests.each import each

SPARSE = ("blocks", "csr")
MAX_ROWS = 48
COUNTS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48)


def made(name: str, weight: Array, threads: int = 1) -> Product:
    return products.create(name, weight, threads, MAX_ROWS)


def cut(outputs: int, inputs: int, kept: float, seed: int = 0) -> Array:
    """Weights of which about `kept` are left; the biases in the last column stay."""
    rng = np.random.default_rng(seed)
    weight = rng.standard_normal((outputs, inputs + 1)).astype(np.float32)
    weight[:, :-1][rng.random((outputs, inputs)) >= kept] = 0
    return weight


def multiplied(product: Product, x: Array, turned: bool) -> Array:
    """Multiply x f32 [inputs + 1, n], laid out as the first layer's frames or, if `turned`, as those of the others."""
    x = np.ascontiguousarray(x.T).T if turned else np.ascontiguousarray(x)
    out = np.full((product.shape[0], x.shape[1]), np.nan, np.float32)
    product.multiply(x, out)
    return out


@each("name", SPARSE)
@each("outputs, inputs, kept", [(37, 29, 0.3), (64, 48, 1.0), (16, 100, 0.05), (3, 1, 0.5)])
def test_the_product_is_that_of_the_dense_weights_at_any_count(
    name: str, outputs: int, inputs: int, kept: float
) -> None:
    weight = cut(outputs, inputs, kept)
    product = made(name, weight)
    assert product.shape == weight.shape
    for n in COUNTS:
        x = np.random.default_rng(n).standard_normal((inputs + 1, n)).astype(np.float32)
        expected = weight.astype(np.float64) @ x.astype(np.float64)
        for turned in (False, True):
            np.testing.assert_allclose(multiplied(product, x, turned), expected, rtol=1e-5, atol=1e-5)


@each("name", SPARSE)
@each("n", [1, 6, 20])
def test_rows_without_a_weight_and_nothing_at_all_are_zero(name: str, n: int) -> None:
    weight = cut(40, 20, 0.5)
    weight[[0, 7, 39]] = 0
    weight[16:32] = 0  # a whole panel
    x = np.random.default_rng(1).standard_normal((21, n)).astype(np.float32)
    out = multiplied(made(name, weight), x, False)
    assert not out[[0, 7, 39]].any()
    assert not out[16:32].any()
    np.testing.assert_allclose(out, weight @ x, rtol=1e-4, atol=1e-5)
    assert not multiplied(made(name, np.zeros_like(weight)), x, True).any()


@pytest.mark.parametrize("name", SPARSE)
def test_frames_of_a_call_before_leave_nothing_behind(name: str) -> None:
    weight = cut(20, 30, 0.4)
    product = made(name, weight)
    rng = np.random.default_rng(2)
    for n in (40, 9, 48, 17):
        x = rng.standard_normal((31, n)).astype(np.float32) * 100
        expected = weight.astype(np.float64) @ x
        np.testing.assert_allclose(multiplied(product, x, False), expected, rtol=1e-5, atol=1e-3)


def test_the_weights_are_left_as_they_are() -> None:
    weight = cut(20, 20, 0.5)
    before = weight.copy()
    weight.setflags(write=False)
    for name in SPARSE:
        multiplied(made(name, weight), np.ones((21, 3), np.float32), False)
    np.testing.assert_array_equal(weight, before)


def test_only_what_is_there_is_stored_and_counted() -> None:
    weight = cut(40, 50, 0.2)
    weights = np.count_nonzero(weight)
    csr = made("csr", weight)
    assert csr.nbytes == weights * (4 + 2) + 41 * 8
    padded = np.concatenate([weight, np.zeros((8, 51), np.float32)])
    taken = int(padded.reshape(3, 16, 51).any(1).sum())
    blocks = made("blocks", weight)
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


@pytest.mark.parametrize("name", SPARSE)
def test_more_inputs_than_16_bits_tell_apart_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match=rf"65536 inputs; dnn\.product={name} takes at most 65535"):
        made(name, np.zeros((1, 65_537), np.float32))
    last = np.zeros((1, 65_536), np.float32)
    last[0, 65_535] = 2.0
    x = np.zeros((65_536, 2), np.float32)
    x[65_535] = 3.0
    assert multiplied(made(name, last), x, False).tolist() == [[6.0, 6.0]]
