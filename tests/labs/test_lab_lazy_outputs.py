"""Lab `lazy-outputs`: what is asked for is what the search asked for, its verdict on planted counts and times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs.desk import Desk
from pipelines.labs.lazy_outputs import BLOCKS, LAB, VARIANTS, WHOLE, Params, Result, share_asked
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, timings


def test_the_share_is_that_of_all_frames_together():
    found = share_asked([[10, 30], [50], [20, 20, 20]], 100)
    assert found.ratio == pytest.approx(150 / 600)
    assert found.low <= found.ratio <= found.high
    assert share_asked([[10, 30]], 100).low is None


def planted(asked=300, alone=0.5, together=0.5, noise=NOISE, spread=10):
    """Of 1 000 outputs so many; lazy ways take so much of the time of all."""
    draw = np.random.default_rng(0)
    counts = [(asked + draw.integers(-spread, spread + 1, 40)).tolist() for _ in range(8)]
    shares = dict(zip(BLOCKS, (alone, together), strict=True))
    ms = {
        variant: {n: (1.0 if variant == WHOLE else share) / n for n, share in shares.items()}
        for variant in VARIANTS
    }
    return Result(timings=timings(ms, noise), outputs=1000, asked=counts, frames=1)


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"asked": 500}, {"together": 1.3}],
    noisy=[{"together": 0.9, "noise": LOUD}, {"asked": 350, "spread": 300}],
    figures={
        "asked_share": pytest.approx(0.3, abs=0.01),
        "frames_within_25_to_35_share": 1.0,
        "gain_frame_by_frame": about(2.0),
        "best_all_over_best_lazy": about(2.0),
    },
)


def test_the_picture_is_the_distribution_and_the_times():
    chart = LAB.picture(planted())
    assert sum(chart.layers[0].y) == pytest.approx(100.0)
    assert [bars.name for bars in chart.beside[0].layers] == list(VARIANTS)


def test_a_real_decode_asks_for_some_of_the_outputs(bundled_speech):
    desk = Desk(audio=[str(bundled_speech / "08-kal16-short.flac")])
    found = LAB.measure(Params(vocabulary=60, speech_s=0.1, frames=16, seconds=0.0), desk)
    assert len(found.asked) == 1
    # At the first frame only those that begin a word.
    assert 0 < min(found.asked[0]) <= max(found.asked[0]) <= found.outputs
    assert found.asked[0][0] < np.mean(found.asked[0])
    assert LAB.judge(found).verdict in {"undecided", "does not hold here"}
