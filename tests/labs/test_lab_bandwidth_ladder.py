"""Lab `bandwidth-ladder`: its verdict on planted times, and that its rungs are those of the instrument."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import bandwidth_ladder
from pipelines.labs.bandwidth_ladder import LAB, LEAST_ROUNDS, Effort, Ladder
from pipelines.labs.desk import Desk
from profiler.machine.roofs.cpu import Step
from profiler.machine.roofs.table import BANDWIDTH, Key, Roof

ROUNDS = 12


def planted(share, noise=0.01, threads=2):
    """200 GB/s from the first cache to each core, `share` of it from memory."""
    draw = np.random.default_rng(3)

    def times(rate):
        return (1 / rate * (1 + noise * draw.random(ROUNDS))).tolist()

    all_cores = [times(200e9 * threads), times(200e9 * threads * share)]
    return Ladder(
        threads=threads,
        sizes=[16 << 10, 128 << 20],
        one=[times(200e9), times(30e9)],
        all_cores=all_cores,
        cache_bytes={1: 32768},
    )


@pytest.mark.parametrize(
    ("share", "noise", "verdict"),
    [
        (0.05, 0.01, "holds here"),
        (0.2, 0.01, "does not hold here"),
        (0.1, 1.0, "undecided"),
    ],
)
def test_a_tenth_decides(share, noise, verdict):
    found = LAB.judge(planted(share, noise))
    assert found.verdict == verdict
    assert found.figures["memory_share_of_first_cache"] == pytest.approx(
        share, rel=0.01 + noise / 2
    )


def test_figures_are_rates():
    figures = LAB.judge(planted(0.1)).figures
    assert figures["first_cache_bytes_per_s"] == pytest.approx(400e9, rel=0.02)
    assert figures["first_cache_bytes_per_s_of_16_cores"] == pytest.approx(3.2e12, rel=0.02)
    assert figures["memory_bytes_per_s"] == pytest.approx(40e9, rel=0.02)


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
    found = LAB.measure(Effort(threads=2, seconds=0.0), Desk())
    assert len(taken) == 4 * LEAST_ROUNDS
    assert found.one == [[1e-9] * LEAST_ROUNDS] * 2
    assert found.all_cores == [[0.5e-9] * LEAST_ROUNDS] * 2
    names = [getattr(layer, "name", None) for layer in LAB.picture(found).layers]
    assert names[:2] == ["1 core", "2 cores"]
