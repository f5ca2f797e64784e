"""Products of 8-bit integers: every sum exact, whatever the shape, the way and the number of threads."""

import numpy as np
import pytest
from numba import config, njit

from pipelines.scoring import thread_pool
from pipelines.scoring.dnn.integers import FRAMES, GROUP, PANEL, Library, Panels, filled
from pipelines.scoring.simd.byte_products import BYTE_PRODUCTS, OFFSET, PAIR_PRODUCTS, make_byte_tile
from pipelines.scoring.simd.vector import LANES, has_feature
from tests.each import each

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
    tile = make_byte_tile(2, vectors, one_instruction, pairs)

    @njit
    def called(x, panel, excess, out):
        begin = panel.ctypes.data, panel.shape[0], excess.ctypes.data, out.ctypes.data
        tile(x.ctypes.data, x.strides[0], begin[0], begin[1], begin[2], begin[3])

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


def test_instructions_without_avx(monkeypatch):
    monkeypatch.setattr(config, "CPU_FEATURES", None)
    monkeypatch.setattr(config, "ENABLE_AVX", 0)
    assert not has_feature("avx2")
