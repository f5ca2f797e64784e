"""The attribution without one of its ingredients, for `tests.bench.attribution --without`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any
from unittest import mock

import numpy as np

from profiler.analysis import attribution, replays
from profiler.analysis.counts import Counts
from profiler.analysis.machine_costs import MachineCosts

Patch = Callable[[], Any]


def _traffic(changed: Callable[[Any], Any]) -> Patch:
    """The streams and accesses of a stage, changed."""
    plain = attribution._traffic
    return lambda: mock.patch.object(attribution, "_traffic", lambda *of: changed(plain(*of)))


def _counted(changed: Callable[[Counts], Counts]) -> Patch:
    """The counts of laws, changed."""
    plain = attribution.counted
    return lambda: mock.patch.object(attribution, "counted", lambda *of: changed(plain(*of)))


def _costs(method: str, replacement: Callable[..., Any]) -> Patch:
    return lambda: mock.patch.object(MachineCosts, method, replacement)


def _nothing(*_: object) -> Any:
    return np.zeros(1)


def _all_open(own: float, counts: Counts, machine: MachineCosts, far: float) -> Any:
    """All of it is not attributed."""
    rows = np.zeros((len(attribution.SHARES), 1))
    rows[-1] = 1.0
    return attribution._shares(rows, own, np.zeros(1), 0, machine, False)


def _by_numpy(self: MachineCosts, name: str, threads: int = 1) -> Any:
    """Every operation at the rate of multiply-adds, or of numpy's exponentials and logarithms."""
    family = name.partition(".")[0].partition(":")[0]
    roof = self._table.rate({"exp": "exp.numpy", "log": "log.numpy"}.get(family, "fma"), threads)
    return None if roof is None else 1e9 / (roof.high * np.ones_like(self._values(roof)))


def _in_order(values: Any, share: float) -> Any:
    return np.array([share * values[0], values[1]])


WITHOUT: MappingProxyType[str, Patch] = MappingProxyType(
    {
        "streams": _traffic(lambda t: t._replace(hot=np.zeros_like(t.hot))),
        "bandwidth": _traffic(lambda t: t._replace(later=_in_order(t.later, 0.0), whole=_in_order(t.whole, 0.0))),
        "calls": _counted(lambda c: c._replace(calls={}, first_calls=0.0)),
        "least-calls": _costs("least_call_ns", MachineCosts.call_ns),
        "first-calls": _costs("first_call_ns", _nothing),
        "peaks": _costs("operation_ns", _by_numpy),
        "law": lambda: mock.patch.object(attribution, "_by_law", _all_open),
        "replays": lambda: mock.patch.object(replays, "LATEST", 4),
    }
)
"""By ingredient: streams of hot data; bandwidth of waiting; calls, their least time, or the extra time of first ones;
the best rates of each class; the law where nothing was replayed; all replays but four."""


@contextmanager
def without(name: str | None) -> Iterator[None]:
    """Leave an ingredient out for as long."""
    if name is None:
        yield
        return
    with WITHOUT[name]():
        yield
