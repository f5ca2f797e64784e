"""A run's set-up as one bar: plain words, never backwards, time left."""

import pytest

from app.model.setup_progress import PHASE_NAMES, USUAL_S, SetUp

STEPS = (
    ("reading the acoustic model", None),
    ("untying the codebooks", 0.0),
    ("untying the codebooks", 0.66),
    ("finding the search graph", None),
    ("building graph: determinise", 0.55),
    ("building graph: checking the graph", 0.95),
    ("compiling the kernels", None),
    ("clustering the Gaussians", 0.0),
    ("clustering the Gaussians", 0.9),
    ("listing the Gaussians", 0.1),
    ("measuring the machine: call/3", 0.0),
    ("measuring the machine: tile", 0.5),
)


def test_it_is_one_bar_in_plain_words_that_never_goes_back():
    made, shares, texts = SetUp(0.0), [], []
    for number, (step, share) in enumerate(STEPS):
        made.update(step, share, now=4.0 * number)
        texts.append(made.steps(4.0 * number)[-1][0])
        shares.append(made.share(4.0 * number))
        shares.append(made.share(4.0 * number + 2.0))
    assert shares == sorted(shares)
    assert shares[0] >= 0.0
    assert shares[-1] < 1.0
    assert list(dict.fromkeys(texts)) == list(PHASE_NAMES)
    assert not any(name in text for text in texts for name in ("/", "kernel", ":"))


def test_the_time_left_becomes_less():
    made = SetUp(0.0, (1.0, 1.0, 40.0, 1.0))
    made.update("compiling the kernels", None, 1.0)
    left = [made.left_s(1.0 + seconds) for seconds in range(0, 60, 5)]
    assert left == sorted(left, reverse=True)
    assert made.left_to_show(1.5) is None, "it has just begun"
    assert made.left_to_show(6.0) in (35, 40)
    assert made.left_to_show(80.0) is None, "it is late, and nobody knows"
    assert made.steps(80.0) == [("Reading the acoustic model", 1), ("Preparing scoring and search", 79)]


def test_what_phases_took_is_what_they_take_next_time():
    made = SetUp(0.0)
    for now, (step, share) in enumerate(STEPS):
        made.update(step, share, float(now))
    took = made.durations(float(len(STEPS)))
    assert sum(took) == pytest.approx(len(STEPS))
    again = SetUp(0.0, took)
    again.update(*STEPS[0], 0.0)
    assert again.left_s(0.0) < sum(USUAL_S)


@pytest.mark.parametrize("usual", [(), (1.0,), (float("nan"),) * 4, (-1.0,) * 4])
def test_what_was_remembered_wrongly_is_forgotten(usual):
    assert SetUp(0.0, usual).left_s(0.0) == pytest.approx(sum(USUAL_S))
