"""Threads that share a piece of work: each range once, failures reported, no thread left behind."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import pytest

from pipelines.scoring.thread_pool import Range, ThreadPool
from tests.each import each
from tests.waiting import wait_until

RANGES: list[Range] = [(0, 2), (2, 5), (5, 9)]


def others() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "scoring"}


def test_each_range_is_done_once_and_by_a_thread_of_its_own() -> None:
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
def test_what_one_raises_is_raised_when_all_are_done(bad: int) -> None:
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


def test_who_finds_the_others_at_work_does_it_all() -> None:
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


def test_a_caller_who_was_interrupted_finds_things_as_they_should_be() -> None:
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


def test_the_threads_of_a_pool_end_with_it() -> None:
    before = others()
    holder = Holder()
    # What was done no longer holds on to its caller.
    holder.pool.share(holder.part, RANGES)
    own = others() - before
    assert len(own) == 2
    del holder
    gc.collect()
    wait_until(lambda: not own & others())
