"""What kernels are bound to: parameters that do not belong to each other, or lead beyond themselves, are refused."""

import contextlib
import dataclasses
import gc
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from scoring_reference import KINDS, configured

from pipelines.config import Config
from pipelines.models import sphinx
from pipelines.scoring import cache, selection
from pipelines.scoring.blocks import Meter
from pipelines.scoring.simd.exponential import LOWEST_EXPONENT, exp_shifted
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, aligned, aligned_copy
from pipelines.scoring.strategy import warm_up
from pipelines.scoring.thread_pool import BlockPool, Range, ThreadPool
from pipelines.scoring.tied import packing
from profiler.arrays import Array, ArrayError
from tests.each import each
from tests.waiting import wait_until

HERE = Path(__file__).parent


@each("kind", KINDS)
@each("method", list(selection.METHODS["Tied"]))
def test_a_warm_up_that_fails_leaves_what_scores_as_it_was(families, kind, method):
    family = families[kind]
    strategy, _ = configured(family, method)
    features = np.random.default_rng(1).normal(0, 3, (5, 39)).astype(np.float32)
    before, after = (np.empty((5, family.n_senones), np.float32) for _ in range(2))
    strategy.score(features, before, Meter())
    held = dict(vars(strategy))
    for scores in (np.empty((5, family.small().n_senones), np.float32), np.empty((4, 1), "f")):
        with contextlib.suppress(ArrayError):
            warm_up(selection.METHODS[family.kind][method](family.small()), Config().gmm, features, scores)
        assert all(vars(strategy)[name] is value for name, value in held.items())
    strategy.score(features, after, Meter())
    np.testing.assert_array_equal(before, after)


def test_a_way_down_a_tree_ends_at_a_codeword(families):
    book = configured(families["tied"], "vq-tree")[1].codebook
    children = book.children.copy()
    children[0, 0, 0] = 0
    with pytest.raises(ArrayError, match="leads back"):
        dataclasses.replace(book, children=children)
    for value in (book.planes.shape[1], ~book.size):
        children[0, 0, 0] = value
        with pytest.raises(ArrayError, match="tree"):
            dataclasses.replace(book, children=children)


@each("threads", [1, 2, 3, 7, 64])
def test_every_thread_has_a_range_of_its_own(threads):
    for work in ([1], [1000, 1, 1], [1, 1, 1000], [1] * 5, [0, 5, 0, 5]):
        pool = BlockPool(threads, np.array(work))
        assert [a for a, _ in pool.ranges] == [0, *(b for _, b in pool.ranges[:-1])]
        assert pool.ranges[-1][1] == len(work)
        assert all(a < b for a, b in pool.ranges)
        assert pool.threads == len(pool.ranges)


RANGES: list[Range] = [(0, 2), (2, 5), (5, 9)]


def others() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "scoring"}


def test_each_range_is_done_once_and_by_a_thread_of_its_own():
    pool = ThreadPool(3)
    for n in (1, 2, 3) * 100:
        results: dict[int, tuple[Range, int]] = {}

        def part(i: int, first: int, last: int, results: dict[int, Any] = results) -> None:
            assert i not in results
            results[i] = (first, last), threading.get_ident()

        handed: list[int] = []
        pool.share(part, RANGES[:n], lambda handed=handed, results=results: handed.append(0 in results))
        assert [results[i][0] for i in range(n)] == RANGES[:n]
        assert results[0][1] == threading.get_ident()
        assert len({thread for _, thread in results.values()}) == n
        # The others have theirs before the caller begins with its own.
        assert handed == [False]


@each("bad", [0, 1, 2])
def test_what_one_raises_is_raised_when_all_are_done(bad):
    pool = ThreadPool(3)
    done: list[int] = []

    def part(i: int, first: int, last: int) -> None:
        if i == bad:
            raise KeyError(i)
        time.sleep(0.02)
        done.append(i)

    for _ in range(2):
        done.clear()
        with pytest.raises(KeyError, match=str(bad)):
            pool.share(part, RANGES)
        assert sorted(done) == [i for i in range(3) if i != bad]
    pool.share(lambda i, first, last: done.append(i), RANGES)


def test_who_finds_the_others_at_work_does_it_all():
    """From within a part, in the caller's thread and in the other: nobody waits for anybody."""
    pool = ThreadPool(2)
    inner: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
    threads: dict[int, int] = {}

    def part(i: int, first: int, last: int) -> None:
        threads[i] = threading.get_ident()
        pool.share(lambda j, *_: inner[i].append((j, threading.get_ident())), RANGES[:2])

    pool.share(part, RANGES[:2])
    assert len(set(threads.values())) == 2
    for i, thread in threads.items():
        assert inner[i] == [(0, thread), (1, thread)]


def test_a_caller_who_was_interrupted_finds_things_as_they_should_be():
    pool = ThreadPool(2)
    (other,) = pool._others
    seen: list[object] = []
    # What was handed over last is not waited for, as after a signal.
    other.hand(lambda: seen.append("before"))
    wait_until(lambda: other._finished == 1)

    def part(i: int, first: int, last: int) -> None:
        if i:
            time.sleep(0.02)
        seen.append(i)

    for n in range(1, 4):
        pool.share(part, RANGES[:2])
        assert seen == ["before", *[0, 1] * n]


class Holder:
    """A caller that has the threads, and a part of its own."""

    def __init__(self) -> None:
        self.pool = ThreadPool(3)

    def part(self, i: int, first: int, last: int) -> None:
        pass


def test_the_threads_of_a_pool_end_with_it():
    before = others()
    holder = Holder()
    # What was done no longer holds on to its caller.
    holder.pool.share(holder.part, RANGES)
    own = others() - before
    assert len(own) == 2
    del holder
    gc.collect()
    wait_until(lambda: not own & others())


TRIES = 8  # By chance one array of four begins with a line

MADE: Mapping[str, Callable[[], Array]] = {
    "zeros": lambda: aligned((3, 5)),
    "a copy": lambda: aligned_copy(np.arange(33, dtype=np.int16)[3:]),
    "prepared": lambda: cache.prepared("a", 1, lambda: {"rows": np.ones((3, 7), np.float32)[:, 1:]})["rows"],
}


def _begins_with_a_line(array: Array) -> bool:
    return array.ctypes.data % VECTOR_BYTES == 0 and array.flags.c_contiguous and array.flags.writeable


@each("make", MADE.values())
def test_what_is_made_for_kernels_begins_with_a_line(make):
    kept = [make() for _ in range(TRIES)]
    assert all(map(_begins_with_a_line, kept))


SIZE = 2048


@njit(nogil=True)
def exponentials(x: Array) -> Array:
    """exp of `x` f32 [SIZE] by the kernel."""
    found = np.empty_like(x)
    exp_shifted(address(x, np.float32), address(found, np.float32), x.size // LANES, np.float32(0))
    return found


def test_it_is_the_exponential_down_to_the_lowest_exponent():
    x = np.linspace(LOWEST_EXPONENT, 0.0, SIZE, dtype=np.float32)
    expected = np.exp(x.astype(np.float64))
    # An exponent of 60 has a spacing of 4e-6 in float32.
    assert np.abs(exponentials(x) / expected - 1).max() < 4e-6


def test_what_lies_below_is_nothing_next_to_the_best_and_a_normal_number_times_any_weight():
    x = np.full(SIZE, -1e30, np.float32)
    x[::2] = LOWEST_EXPONENT - 0.5
    found = exponentials(x)
    assert (found == found[0]).all()
    # All densities of a codebook together, beside the smallest weight of the best one.
    weights = packing.pack(sphinx.load(sphinx.default_directory())).weights
    assert 3 * 128 * float(found[0]) / float(weights.min()) < np.finfo(np.float32).eps
    assert weights.min() > 0
    assert found[0] * weights.min() >= np.finfo(np.float32).tiny
