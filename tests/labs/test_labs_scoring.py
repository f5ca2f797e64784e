"""What the labs of scoring share: speech, scores by any settings, what is timed, and how scores differ."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.config import Config, assign
from pipelines.labs import _scoring, figures, texts
from pipelines.labs.desk import Desk
from profiler.analysis.comparison.statistics import Ratio


@pytest.fixture(scope="module")
def scoring(bundled_speech):
    desk = Desk(audio=[str(bundled_speech / "08-kal16-short.flac")])
    return _scoring.Scoring(assign(Config(), {"model": "ptm"}), desk, frames=20)


def test_scores_are_the_same_in_blocks_of_any_size(scoring):
    whole = scoring.scores({"block": 20})
    assert whole.shape == (20, scoring.scorer.n_senones)
    np.testing.assert_allclose(scoring.scores({"block": 3}), whole, atol=1e-3)
    assert not np.allclose(scoring.scores({"gmm.selection.method": "top-n"}), whole, atol=1e-3)


def test_an_arm_scores_by_its_own_settings_whatever_acted_before(scoring):
    first, second = scoring.work({"block": 2}, 5), scoring.work({"block": 7})
    second()
    first()
    scored = scoring.scorer.score(scoring.features[0][:3], 0, _lane())
    np.testing.assert_allclose(scored, scoring.scores({"block": 20})[:3], atol=1e-3)


def _lane():
    from profiler.spans import NullLane

    return NullLane()


def test_the_middle_of_an_utterance():
    first = np.arange(20, dtype=np.float32).reshape(10, 2)
    assert _scoring.middle([first], 4).tolist() == first[3:7].tolist()
    assert _scoring.middle([first], 10).tolist() == first.tolist()
    # Where it is too short it comes again.
    assert _scoring.middle([first], 12).tolist() == [*first.tolist(), *first[:2].tolist()]


def test_scores_differ_by_what_is_near_the_best():
    exact = np.array([[0.0, -5.0, -50.0], [-3.0, -1.0, -90.0]])
    scores = exact + np.array([[1.0, -2.0, 30.0], [4.0, 1.0, 0.0]])
    error, same = _scoring.difference(scores, exact, 20.0)
    assert error == pytest.approx((1 + 2 + 4 + 1) / 4)
    assert same == 0.5


def test_shares_and_inverses_keep_their_intervals_in_order():
    found = Ratio(0.5, 0.4, 0.8, 0.01)
    assert figures.saved(found) == Ratio(0.5, pytest.approx(0.2), pytest.approx(0.6), 0.01)
    assert figures.inverse(found) == Ratio(2.0, 1.25, 2.5, 0.01)
    assert texts.percent(figures.saved(found)) == "50 % (20 to 60)"
    assert figures.saved(Ratio(0.5)) == Ratio(0.5)
    assert figures.saved(None) is None
