"""Lab `low-rank`: which layer suffers, against float64, its verdict on planted words and times."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from pipelines.labs import low_rank
from pipelines.labs._nets import Decoded
from pipelines.labs._scoring import features_of
from pipelines.labs.desk import Desk
from pipelines.labs.low_rank import LAB, RETRAINED, SHARES, WHOLE, Params, Result
from pipelines.models import nets, shrink, sphinx
from pipelines.models.nets import Layer
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, at_size
from tests.pipelines.net_files import card, forward, net

NAMES = [WHOLE, *(f"{share:g}" for share in SHARES), RETRAINED]


def test_one_layer_at_a_time_keeps_the_best_senones_that_float64_says():
    made = net(card(Layer(24), Layer(16), senones=40))
    features = np.random.default_rng(0).normal(0, 3, (30, 39)).astype(np.float32)
    kept = low_rank.kept_by_layer(made, features)
    exact = forward(made, features).argmax(axis=1)
    some = [shrink.low_rank(made, 0.3, only=i) for i in range(3)]
    right = [(forward(one, features).argmax(axis=1) == exact).mean() for one in some]
    assert kept == pytest.approx(right)


def test_one_stretch_alone_is_factored():
    made = net(card(Layer(24), Layer(16), senones=40))
    lowest, last = (shrink.low_rank(made, 0.3, only=i) for i in (0, -1))
    assert len(lowest.card.layers) == len(last.card.layers) == len(made.card.layers) + 1
    np.testing.assert_array_equal(lowest.tensors["heads.0.weight"], made.tensors["heads.0.weight"])
    np.testing.assert_array_equal(last.tensors["layers.0.weight"], made.tensors["layers.0.weight"])


def test_frames_are_counted_over_speech_and_its_copies(bundled_speech):
    """A net agrees with itself everywhere; without copies another one as often as float64 says."""
    desk = Desk(audio=[str(bundled_speech / "08-kal16-short.flac")])
    params = Params(net="base", retrained="small", reference="base", speech_s=0.1, copies=0)
    once = low_rank.of_changed(params, desk)
    features = features_of(sphinx.load(sphinx.default_directory()), desk, 0.1)[0]
    base, small = (
        forward(nets.load(nets.find(name)), features).argmax(axis=1) for name in ("base", "small")
    )
    assert once[WHOLE].same_best == once[WHOLE].frames == [len(features)]
    assert once[RETRAINED].same_best[0] == pytest.approx((base == small).sum(), abs=1)
    again = low_rank.of_changed(msgspec.structs.replace(params, copies=2), desk)
    assert again[WHOLE].same_best == again[WHOLE].frames
    assert again[WHOLE].frames[0] > 2.5 * once[WHOLE].frames[0]


def planted(lost=0, gain=3.0, noise=NOISE, frames=0, uneven=0):
    """Twenty utterances of 50 words and 100 frames; the retrained net loses so many in each, now more, now less."""
    turns = np.array([uneven, -uneven] * 10)
    decoded = {}
    for name in NAMES:
        trained = name == RETRAINED
        same = 60 - (frames + turns if trained else 0 * turns)
        decoded[name] = Decoded(
            frames=[100] * 20,
            same_best=same.tolist(),
            words=[50] * 20,
            errors=[10 + lost * trained] * 20,
        )
    ms = {name: 1.0 if name == WHOLE else 1.0 / gain for name in NAMES}
    return Result(
        timings=at_size(16, ms, noise),
        by_variant={"weights": dict.fromkeys(NAMES, 300) | {WHOLE: 1000}},
        decoded=decoded,
        changed={name: decoded[name] for name in (WHOLE, RETRAINED)},
        layers=[0.7, 0.8, 0.9],
    )


CONTRACT = Contract(
    LAB,
    planted,
    true=[{}, {"frames": 1}],
    false=[{"lost": 2}, {"gain": 0.7}, {"frames": 3}],
    noisy=[{"gain": 1.03, "noise": LOUD}, {"frames": 2, "uneven": 8}],
    figures={
        "retrained_size_share": about(0.3),
        "retrained_gain": about(3.0),
        "retrained_wer": about(0.2),
    },
)


def test_the_picture_has_words_times_and_layers():
    chart = LAB.picture(planted())
    assert [layer.name for layer in chart.layers[:2]] == ["factored", RETRAINED]
    assert chart.beside[1].x.categories == ("input", "hidden 1", "output")
    assert chart.beside[1].layers[0].values == pytest.approx((70.0, 80.0, 90.0))
