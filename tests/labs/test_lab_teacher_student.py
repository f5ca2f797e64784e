"""Lab `teacher-student`: differences against a plain count, its verdict on planted words."""

from __future__ import annotations

import pytest

from pipelines.labs import _nets
from pipelines.labs._nets import Decoded
from pipelines.labs.teacher_student import LAB, LABELS, NETS, TAUGHT, TEACHER
from pipelines.models import nets
from tests.labs.contract import Contract, about
from tests.labs.planted import at_size


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


def planted(taught=(3, 4), labels=(6, 5), bundled=False):
    """Of 20 words in each of ten utterances so many errors, in turns."""
    errors = {TEACHER: [2] * 10, TAUGHT: list(taught) * 5, LABELS: list(labels) * 5}
    return _nets.NetResult(
        timings=at_size(16, {TEACHER: 4.0, TAUGHT: 1.0, LABELS: 1.0}),
        decoded={name: counts(each) for name, each in errors.items()},
        counts={"bundled": float(bundled)},
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"taught": (6, 5), "labels": (3, 4)}],
    noisy=[{"taught": (2, 8), "labels": (8, 2)}],
    figures={"wer_change": about(-2 / 20), "teacher_over_taught_time": about(4.0)},
)


def test_it_is_said_that_the_voices_were_those_of_the_labels():
    assert "these very voices" in LAB.judge(planted(bundled=True)).why
    assert "these very voices" not in LAB.judge(planted()).why


def test_the_picture_has_a_bar_for_each_net():
    chart = LAB.picture(planted((4, 4), (5, 5)))
    assert chart.x.categories == (TEACHER, TAUGHT, LABELS)
    assert chart.layers[0].values == pytest.approx((10.0, 20.0, 25.0))
    assert chart.beside[0].layers[0].values == pytest.approx((0.25, 0.0625, 0.0625), rel=0.02)
