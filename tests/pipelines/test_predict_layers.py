"""What counting on noise cannot predict is said, not guessed: layers whose work depends on the speech."""

from __future__ import annotations

import pytest

from pipelines.config import Config, assign
from pipelines.experiments import predict
from profiler.analysis.whatif import Prediction
from profiler.machine.roofs.table import RoofTable

START = Prediction(1.0, (), ())


@pytest.mark.parametrize(
    ("before", "change", "named"),
    [
        ({}, {"gmm.senones": "active"}, ["gmm.senones"]),
        ({}, {"gmm.senones": "ci", "gmm.ci_beam": 5.0}, ["gmm.senones", "gmm.ci_beam"]),
        (
            {},
            {"frames.rule": "conditional", "frames.skip": 2},
            ["frames.skip", "frames.rule"],
        ),
        # A session that ran so gives no counts to start from either.
        ({"gmm.senones": "active"}, {"block": 32}, ["block"]),
        ({"model": "dnn"}, {"dnn.senones": "active-ahead"}, ["dnn.senones"]),
        ({"model": "dnn", "dnn.senones": "active"}, {"dnn.dtype": "int8"}, ["dnn.dtype"]),
    ],
)
def test_layers_that_depend_on_what_is_said_have_no_model(
    before: dict[str, object], change: dict[str, object], named: list[str]
) -> None:
    old = assign(Config(), before)  # type: ignore[arg-type]
    prediction, without = predict.Predictor(old, assign(old, change), RoofTable()).changed(START)  # type: ignore[arg-type]
    assert sorted(sentence.split()[5].rstrip(":") for sentence in without) == sorted(named)
    assert all("depends on what is said" in sentence for sentence in without)
    assert prediction.lines == ()


def test_a_conditional_rule_that_does_not_act_hinders_nothing() -> None:
    old = assign(Config(), {"frames.rule": "conditional"})
    _, without = predict.Predictor(old, assign(old, {"pace": 1.0}), RoofTable()).changed(START)
    assert without == []
