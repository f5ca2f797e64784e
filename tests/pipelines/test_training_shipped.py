"""The nets that ship: they load, are as large as promised, and their cards say how they were made and how they do."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import assets
from pipelines.models import nets
from pipelines.training import recipes
from pipelines.training.recipes import as_dict
from tests.each import each

LIMIT_BYTES = 35_000_000
SENONES, FEATURES = 5126, 39
SETS = {"human": 63, "200 test sentences": 2682}
"""What each is evaluated on, and how many words that has."""


def test_every_recipe_is_shipped_and_all_fit_into_the_limit() -> None:
    assert set(nets.shipped()) == set(recipes.RECIPES)
    assert sum(file.stat().st_size for file in assets.path("nets").iterdir()) <= LIMIT_BYTES


@each("name", recipes.RECIPES)
def test_a_card_says_how_its_net_was_made_and_how_it_does(name: str) -> None:
    net = nets.load(nets.find(name), SENONES, FEATURES)
    about, recipe = net.card.about, recipes.find(name)
    then: dict[str, Any] = about["recipe"]
    # What recipes did not have yet when it was made was off then.
    assert {key: value for key, value in as_dict(recipe).items() if key in then} == then
    assert not any(value for key, value in as_dict(recipe).items() if key not in then)
    assert about["command"] == f"python -m pipelines.training train {name}"
    assert about["frames"] >= recipe.frames
    assert about["hours"] > 0
    assert about["parameters"] == net.card.n_parameters
    assert about["data"]["human"][-1] == "cats.flac"  # held out
    assert about["date"].startswith("2026-")
    for where, words in SETS.items():
        errors = about["word_errors"][where]
        assert errors["mixtures"][1] == errors[name][1] == words
    log = nets.find(name).with_suffix(".log.jsonl").read_text(encoding="utf-8").splitlines()
    reports = [json.loads(line) for line in log]
    assert reports[-1]["held_out"] == about["divergence_held_out"]
    assert reports[-1]["loss"] < reports[0]["loss"]
    kept = recipe.kept or recipe.kept_blocks
    if kept:
        weights = [values for key, values in net.tensors.items() if key.endswith("weight")]
        share = sum(map(np.count_nonzero, weights)) / sum(values.size for values in weights)
        assert share == pytest.approx(kept, abs=0.005)
