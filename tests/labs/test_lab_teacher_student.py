"""Lab `teacher-student`: differences against a plain count, its verdict on planted words."""

from __future__ import annotations

import pytest

from pipelines.labs import _nets
from pipelines.labs._nets import Decoded
from pipelines.labs.teacher_student import LAB, LABELS, NETS, TAUGHT, TEACHER, Found
from pipelines.models import nets
from tests.labs.planted import arms


def test_both_students_have_the_same_shape():
    taught, labels = (
        nets.read_card(nets.find(NETS[name]).with_suffix(".json")) for name in (TAUGHT, LABELS)
    )
    assert taught.shapes == labels.shapes


def counts(errors):
    return Decoded(
        frames=[100] * len(errors),
        same_best=[50] * len(errors),
        words=[20] * len(errors),
        errors=errors,
    )


def test_differences_are_those_of_all_words_together():
    one, other = counts([3, 1, 4, 1]), counts([2, 7, 1, 8])
    change = _nets.word_change(one, other)
    assert change.ratio == pytest.approx((9 - 18) / 80)
    assert change.low < change.ratio < change.high
    assert _nets.best_change(one, other).ratio == 0.0
    silent = Decoded(frames=[9], same_best=[9], words=[0], errors=[0])
    assert _nets.word_change(silent, silent) is None
    assert _nets.word_error_rate(silent) is None
    assert _nets.points(change).startswith("−11.2 points (")


def planted(taught, labels, bundled=False):
    return Found(
        frames=16,
        bundled=bundled,
        decoded={TEACHER: counts([2] * 10), TAUGHT: counts(taught), LABELS: counts(labels)},
        seconds=arms({TEACHER: 4.0, TAUGHT: 1.0, LABELS: 1.0}),
    )


def test_it_holds_where_the_taught_net_makes_fewer_errors():
    found = LAB.judge(planted([3, 4] * 5, [6, 5] * 5))
    assert found.verdict == "holds here"
    assert found.figures["wer_change"] == pytest.approx(-2 / 20)
    assert found.figures["teacher_over_taught_time"] == pytest.approx(4.0, rel=0.02)


def test_it_does_not_where_labels_do_better_and_says_whose_voices_they_were():
    found = LAB.judge(planted([6, 5] * 5, [3, 4] * 5, bundled=True))
    assert found.verdict == "does not hold here"
    assert "these very voices" in found.why


def test_errors_that_go_either_way_decide_nothing():
    assert LAB.judge(planted([2, 8] * 5, [8, 2] * 5)).verdict == "undecided"


def test_the_picture_has_a_bar_for_each_net():
    chart = LAB.picture(planted([4] * 10, [5] * 10))
    assert chart.x.categories == (TEACHER, TAUGHT, LABELS)
    assert chart.layers[0].values == pytest.approx((10.0, 20.0, 25.0))
    assert chart.beside[0].layers[0].values == pytest.approx((0.25, 0.0625, 0.0625), rel=0.02)
