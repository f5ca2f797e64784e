"""Lab `lazy-outputs`: what is asked for is what the search asked for, its verdict on planted counts and times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs.desk import Desk
from pipelines.labs.lazy_outputs import BLOCKS, LAB, WAYS, WHOLE, Found, Given, arm, share_asked
from tests.labs.planted import LOUD, arms


def test_the_share_is_that_of_all_frames_together():
    found = share_asked([[10, 30], [50], [20, 20, 20]], 100)
    assert found.ratio == pytest.approx(150 / 600)
    assert found.low <= found.ratio <= found.high
    assert share_asked([[10, 30]], 100).low is None


def planted(asked=300, alone=0.5, together=0.5, noise=0.01, spread=10):
    """Of 1 000 outputs so many; lazy ways take so much of the time of all."""
    draw = np.random.default_rng(0)
    counts = [(asked + draw.integers(-spread, spread + 1, 40)).tolist() for _ in range(8)]
    ms = {}
    for block, share in zip(BLOCKS, (alone, together), strict=True):
        ms |= {arm(way, block): (1.0 if way == WHOLE else share) / block for way in WAYS}
    return Found(outputs=1000, asked=counts, frames=1, seconds=arms(ms, noise))


def test_it_holds_where_a_third_is_asked_for_and_time_falls():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["asked_share"] == pytest.approx(0.3, abs=0.01)
    assert found.figures["frames_within_25_to_35_share"] == 1.0
    assert found.figures["gain_frame_by_frame"] == pytest.approx(2.0, rel=0.02)
    assert found.figures["best_all_over_best_lazy"] == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("change", [{"asked": 500}, {"together": 1.3}])
def test_it_does_not_where_more_is_asked_for_or_batches_are_better(change):
    assert LAB.judge(planted(**change)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(together=0.9, noise=LOUD)).verdict == "undecided"
    assert LAB.judge(planted(asked=350, spread=300)).verdict == "undecided"


def test_the_picture_is_the_distribution_and_the_times():
    chart = LAB.picture(planted())
    assert sum(chart.layers[0].y) == pytest.approx(100.0)
    assert [bars.name for bars in chart.beside[0].layers] == list(WAYS)


def test_a_real_decode_asks_for_some_of_the_outputs(bundled_speech):
    desk = Desk(audio=[str(bundled_speech / "08-kal16-short.flac")])
    found = LAB.measure(Given(vocabulary=60, speech_s=0.1, frames=16, seconds=0.0), desk)
    assert len(found.asked) == 1
    # At the first frame only those that begin a word.
    assert 0 < min(found.asked[0]) <= max(found.asked[0]) <= found.outputs
    assert found.asked[0][0] < np.mean(found.asked[0])
    assert LAB.judge(found).verdict in {"undecided", "does not hold here"}
