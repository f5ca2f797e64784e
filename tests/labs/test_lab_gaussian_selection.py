"""Lab `gaussian-selection`: its settings, its figures against a reference, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.config import Config, assign
from pipelines.labs import _scoring, gaussian_selection
from pipelines.labs.desk import Desk
from pipelines.labs.gaussian_selection import EXACT, JUDGED, LAB, METHOD, Params, points
from pipelines.labs.sweep import SweepResult
from pipelines.models.opening import open_model
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, at_size
from tests.pipelines import selection_reference as reference


def test_every_point_is_a_configuration_and_the_judged_one_is_the_usual():
    base = assign(Config(), {"model": "continuous"})
    for some in points().values():
        assert settings.check(assign(base, some)).gmm.selection.enabled
    judged = assign(base, points()[JUDGED]).gmm.selection
    assert judged.threshold == Config().gmm.selection.threshold
    assert judged.method == "vq"


def test_shares_and_best_senones_are_those_of_a_reference(bundled_speech, monkeypatch):
    few = {METHOD: "vq", "gmm.selection.threshold": 0.8, "gmm.selection.codewords": 16}
    monkeypatch.setattr(gaussian_selection, "FAMILIES", {"shortlists (VQ)": {"radius 0.8": few}})
    desk = Desk(audio=[str(bundled_speech / "08-kal16-short.flac")])
    found = LAB.measure(Params(components=8, speech_s=1.0, frames=2, seconds=0.0), desk)
    base = assign(Config(), {"model": "continuous", "gmm.components": 8})
    model = open_model(base, lambda *_: None, lambda: False)
    family = reference.family_of(model)
    _, prepared = reference.configured(family, "vq")
    features = np.concatenate(_scoring.features_of(model, desk, 1.0))
    panels, centre = family.parameters.gaussians, family.parameters.centre
    g = reference.linear(panels, centre, features)
    lists = reference.lists_of(prepared)
    kept = reference.on_lists(family, lists, reference.nearest(lists.codebook, centre, features), g)
    facts = found.by_variant
    assert facts["gaussians"][JUDGED] == pytest.approx(np.isfinite(kept).mean(), rel=0.02)
    exact, selected = (reference.mixtures(family, each) for each in (g, kept))
    same = (exact.argmax(axis=1) == selected.argmax(axis=1)).mean()
    # A tie may fall the other way in 32 bits.
    assert facts["same_best"][JUDGED] == pytest.approx(same, abs=2 / len(features))
    assert facts["gaussians"][EXACT] == facts["same_best"][EXACT] == 1.0


def planted(gaussians=0.3, time=0.45, noise=NOISE):
    names = [EXACT, *points()]
    ms = dict.fromkeys(names, 10 * time) | {EXACT: 10.0}
    return SweepResult(
        timings=at_size(4, ms, noise),
        counts={"words": 50},
        by_variant={
            "gaussians": dict.fromkeys(names, gaussians) | {EXACT: 1.0},
            "same_best": dict.fromkeys(names, 0.8),
            "error": dict.fromkeys(names, 2.5),
            "word_errors": dict.fromkeys(names, 4) | {EXACT: 1},
        },
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"gaussians": 0.6}, {"time": 0.7}],
    noisy=[{"time": 0.57, "noise": LOUD}],
    figures={"time_share": about(0.45), "gaussians_fewer_times": about(1 / 0.3)},
    memory=(Params(components=8), Params(components=128)),
)


def test_words_are_counted_in_the_sentence():
    assert "of 50 words 4 are wrong instead of 1" in LAB.judge(planted()).why


def test_the_picture_has_a_line_for_each_strategy():
    chart = LAB.picture(planted())
    assert [line.name for line in chart.layers[:-1]][-1] == "time follows Gaussians"
    assert (chart.layers[-1].value, chart.layers[-1].until) == (21.0, 52.0)
    assert chart.layers[0].y == pytest.approx((45.0,) * 4, rel=0.02)
