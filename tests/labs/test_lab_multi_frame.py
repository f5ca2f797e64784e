"""Lab `multi-frame`: its ways are settings of the program, its verdict on planted senones and times."""

from __future__ import annotations

import pytest

from pipelines.labs._nets import Decoded, NetResult
from pipelines.labs.desk import Desk
from pipelines.labs.multi_frame import LAB, OWN, RULES, STEPS, WHOLE, Params, variant
from tests.labs.contract import Contract, about
from tests.labs.planted import at_size

VARIANTS = [variant(rule, step) for rule in RULES for step in STEPS]


def planted(own=70, copied=50, uneven=0, time=0.8):
    """Of 100 frames in each of ten utterances so many keep their best senone; `uneven`: now more, now less."""
    kept = {WHOLE: 100, **{name: own if name.startswith(OWN) else copied for name in VARIANTS}}
    decoded = {}
    for name, count in kept.items():
        swing = [uneven, -uneven] * 5 if name.startswith(OWN) else [0] * 10
        decoded[name] = Decoded(
            frames=[100] * 10,
            same_best=[count + s for s in swing],
            words=[20] * 10,
            errors=[5] * 10,
        )
    ms = {name: 1.0 if name == WHOLE else 0.5 for name in kept}
    ms |= {variant(OWN, step): time for step in STEPS}
    return NetResult(timings=at_size(16, ms), decoded=decoded)


CONTRACT = Contract(
    LAB,
    planted,
    # What own outputs cost is said and not judged.
    true=[{}, {"time": 1.25}],
    false=[{"own": 45}],
    noisy=[{"own": 51, "uneven": 20}],
    figures={
        "own_less_copied_same_best_1_of_3": about(0.2),
        "own_over_copied_time": about(1.6),
        "copied_1_of_2_gain": about(2.0),
    },
)


def test_what_own_outputs_cost_is_said_and_not_judged():
    found = LAB.judge(planted(time=1.25))
    assert "times as fast as scoring every frame" in found.why
    assert found.figures["own_outputs_1_of_4_gain"] == pytest.approx(0.8, rel=0.02)


def test_the_picture_has_a_line_for_each_rule():
    chart = LAB.picture(planted())
    assert [line.name for line in chart.layers] == list(RULES)
    assert chart.layers[0].y == pytest.approx((50.0, 50.0, 50.0, 0.0))


def test_a_small_run_counts_every_frame_and_word(bundled_speech):
    folder = bundled_speech
    desk = Desk(
        audio=[str(folder / "08-kal16-short.flac")], transcripts=str(folder / "transcripts.tsv")
    )
    found = LAB.measure(Params(vocabulary=60, speech_s=0.1, frames=16, seconds=0.0), desk)
    assert set(found.decoded) == {WHOLE, *VARIANTS}
    frames = found.decoded[WHOLE].frames
    assert found.decoded[WHOLE].same_best == frames
    for name in VARIANTS:
        assert found.decoded[name].frames == frames
        assert found.decoded[name].words == [3]
        # The frames that go through the net themselves are scored as without any rule.
        step = int(name[-1])
        assert found.decoded[name].same_best[0] >= frames[0] // step
