"""Lab `bandwidth-ladder`: its verdict on planted times, and that its rungs are those of the instrument."""

from __future__ import annotations

from pipelines.labs import bandwidth_ladder
from pipelines.labs.bandwidth_ladder import ALL, LAB, LEAST_ROUNDS, ONE, Params
from pipelines.labs.desk import Desk
from pipelines.labs.sweep import SweepResult
from profiler.machine.roofs.cpu import Step
from profiler.machine.roofs.table import BANDWIDTH, Key, Roof
from tests.labs.contract import Contract, about
from tests.labs.planted import NOISE, timings


def planted(share=0.05, noise=NOISE, threads=2):
    """200 GB/s from the first cache to each core, `share` of it from memory to all of them."""
    near, far = 16 << 10, 128 << 20
    every = 1e3 / (200e9 * threads)
    ms = {ONE: {near: 1e3 / 200e9, far: 1e3 / 30e9}, ALL: {near: every, far: every / share}}
    return SweepResult(
        timings=timings(ms, noise), counts={"threads": threads}, cache_bytes={1: 32768}
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"share": 0.2}],
    noisy=[{"share": 0.1, "noise": 1.0}],
    figures={
        "memory_share_of_first_cache": about(0.05),
        "first_cache_bytes_per_s": about(400e9),
        "first_cache_bytes_per_s_of_16_cores": about(3.2e12),
        "memory_bytes_per_s": about(20e9),
    },
)


def test_the_rungs_go_from_the_first_cache_to_beyond_the_last():
    found = [step.key for step in bandwidth_ladder.rungs(1)]
    assert found[0].bytes == 16 << 10
    assert found == sorted(found, key=lambda key: key.bytes)
    assert {(key.kind, key.name, key.threads) for key in found} == {(BANDWIDTH, "read", 1)}


def test_a_run_takes_every_rung_in_every_round(monkeypatch):
    taken = []

    def rungs(threads):
        def rung(size):
            key = Key(BANDWIDTH, "read", threads=threads, bytes=size)

            def take(effort):
                taken.append((threads, size))
                rate = 1e9 * threads
                return Roof(*key, rate, rate, rate, "B/s")

            return Step(key, take)

        return [rung(1 << 14), rung(1 << 20)]

    monkeypatch.setattr(bandwidth_ladder, "rungs", rungs)
    found = LAB.measure(Params(threads=2, seconds=0.0), Desk())
    assert len(taken) == 4 * LEAST_ROUNDS
    assert found.timings.seconds == {
        ONE: {1 << 14: [1e-9] * LEAST_ROUNDS, 1 << 20: [1e-9] * LEAST_ROUNDS},
        ALL: {1 << 14: [0.5e-9] * LEAST_ROUNDS, 1 << 20: [0.5e-9] * LEAST_ROUNDS},
    }
    names = [getattr(layer, "name", None) for layer in LAB.picture(found).layers]
    assert names[:2] == ["1 core", "2 cores"]
