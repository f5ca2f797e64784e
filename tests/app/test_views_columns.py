"""Level of detail against brute force, and the same bits however the frames arrive."""

from itertools import pairwise

import numpy as np
from frame_rows import add, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.analysis.lod.columns import FACTOR, TOUCHED, Extremes, column_edges, means
from profiler.analysis.lod.series import BlockQuantiles
from profiler.analysis.per_frame import PerFrame

pieces = st.lists(st.integers(1, 400), min_size=1, max_size=8)


def values(count: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.exponential(1e6, count) * np.where(random.random(count) < 0.01, 30.0, 1.0)


def extremes_of(series: np.ndarray) -> Extremes:
    made = Extremes()
    made.follow([series])
    return made


def brute_mean(series: np.ndarray, left: float, right: float, end: int) -> float:
    left, right = min(max(left, 0.0), end), min(max(right, 0.0), end)
    if right - left <= TOUCHED:
        return float("nan")
    area = sum(series[i] * (min(right, i + 1) - max(left, i)) for i in range(int(left), min(int(np.ceil(right)), end)))
    return area / (right - left)


@given(pieces, st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_sums_have_the_same_bits_in_pieces_and_at_once(cuts, seed):
    series = np.stack([values(sum(cuts), seed + k) for k in range(3)])
    at, store = 0, PerFrame(3)
    edges = column_edges(-3.0, series.shape[1] + 5.0, 37)
    for cut in cuts:
        parts = means(add(store, at, *series[:, at : at + cut]), edges)
        at += cut
    assert np.array_equal(means(rows_of(*series), edges), parts, equal_nan=True)


@given(st.integers(1, 700), st.integers(0, 99), st.floats(-50, 700), st.floats(0.5, 900), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_mean_of_a_column_is_the_mean_of_its_frames(count, seed, first, span, columns):
    series = values(count, seed)
    end = count - seed % 5 if count > 5 else count
    edges = column_edges(first, first + span, columns)
    got = means(rows_of(series), edges, end)[:, 0]
    wanted = [brute_mean(series, a, b, end) for a, b in pairwise(edges)]
    assert np.allclose(got, wanted, rtol=1e-6, atol=1.0, equal_nan=True)


@given(pieces, st.integers(0, 99), st.integers(1, 50), st.floats(0, 1), st.floats(0.01, 1))
@settings(max_examples=80, deadline=None)
def test_extremes_hold_every_frame_of_a_column(cuts, seed, columns, start, share):
    series = values(sum(cuts), seed)
    extremes = Extremes()
    for at in np.cumsum(cuts):
        extremes.follow([series[:at].copy()])
    count = len(series)
    end = max(1, count - seed % 7)
    edges = column_edges(start * count, start * count + share * count + 1, columns)
    low, high = extremes.columns(edges, end)
    width = (edges[-1] - edges[0]) / columns
    for i in range(columns):
        left, right = int(max(edges[i], 0)), int(np.ceil(min(edges[i + 1], end)))
        if edges[i] >= end or right <= left:
            assert np.isnan(high[i])
            continue
        inside = series[left:right]
        assert low[i] <= inside.min()
        assert high[i] >= inside.max()
        # No further than the blocks that the edges cut: never from another part of the picture.
        reach = int(np.ceil(width)) if width >= 2 * FACTOR else 0
        near = series[max(0, left - reach) : min(right + reach, end)]
        assert near.min() <= low[i]
        assert high[i] <= near.max()


@given(st.integers(1, 3000), st.integers(0, 3000), st.integers(1, 3000), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_what_was_there_may_change_from_a_frame_on(count, same, then, seed):
    same = min(same, count, then)
    old, new = values(count, seed), values(then, seed + 1)
    new[:same] = old[:same]
    edges = column_edges(0, then, 11)
    extremes = extremes_of(old)
    extremes.follow([new], same=same)
    assert np.array_equal(extremes.columns(edges), extremes_of(new).columns(edges))


@given(st.integers(1, 3000), st.integers(0, 99), st.data())
@settings(max_examples=40, deadline=None)
def test_quantiles_of_blocks_are_those_of_their_frames_in_any_order_of_queries(count, seed, data):
    series = values(count, seed)
    quantiles = BlockQuantiles()
    known = data.draw(st.integers(0, count))
    quantiles.follow(series[:known].copy())
    for step in range(6):
        if step == 3:
            quantiles.follow(series, known)
            known = count
        size = data.draw(st.sampled_from([1, 8, 64, 256]))
        first = data.draw(st.integers(-2, count // size))
        last = first + data.draw(st.integers(1, 50))
        end = data.draw(st.integers(0, known))
        found = quantiles.blocks(size, first, last, end)
        for block, value in zip(range(first, last), found, strict=True):
            frames = np.sort(series[max(0, block * size) : min((block + 1) * size, end)])
            there = block >= 0 and len(frames)
            wanted = frames[int(np.ceil(0.95 * len(frames))) - 1] if there else np.nan
            assert np.array_equal(value, wanted, equal_nan=True)
