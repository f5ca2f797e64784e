"""Word errors of nets: settings are the nets' alone, and a card remembers what was counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import assets
from pipelines.audio.word_errors import Count, count
from pipelines.config import Config
from pipelines.models import nets
from pipelines.models.nets import Layer
from pipelines.run import playlist
from pipelines.run.playlist import Item
from pipelines.training import __main__ as command
from pipelines.training import evaluate, recipes
from pipelines.training.corpus.data import Progress
from pipelines.training.recipes import as_dict
from tests.each import each
from tests.pipelines.net_files import card, net, write


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The requested configurations; mixtures recognise all words, and nets all but one."""
    seen: list[Config] = []

    def hears(config: Config, items: Sequence[Item], name: str, progress: Progress) -> Count:
        seen.append(config)
        return count("one two three", "one two three" if config.model == "ptm" else "one two")

    monkeypatch.setattr(evaluate, "_decoded", hears)
    monkeypatch.setattr(playlist, "build", lambda audio, transcripts: playlist.Playlist([]))
    return seen


def test_settings_are_for_the_nets_and_the_card_keeps_every_count(
    decoded: list[Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, net(card(Layer(8), about={"date": "today"})))
    arguments = ["evaluate", str(path), "--audio", "somewhere", "--note"]
    assert command.main([*arguments, "plain"]) == 0
    assert command.main([*arguments, "skipping", "--set", "frames.skip=2"]) == 0
    assert [config.model for config in decoded] == ["ptm", "dnn"] * 2
    assert [config.frames.skip for config in decoded] == [1, 1, 1, 2]
    assert decoded[1].dnn.net == str(path)
    assert f"{path}: 1 error in 3 words (0.333)" in capsys.readouterr().out
    about = nets.load(path).card.about
    both = {"mixtures": [0, 3], str(path): [1, 3]}
    assert about == {"date": "today", "word_errors": {"plain": both, "skipping": both}}
    assert command.main([*arguments, "x", "--set", "frames.skip"]) == 2
    assert "must be key=value" in capsys.readouterr().err


def test_errors_as_json(decoded: list[Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, net(card(Layer(8), about={"recipe": {"frames": 7}})))
    assert command.main(["evaluate", str(path), "--audio", "somewhere", "--json"]) == 0
    taught, made = json.loads(capsys.readouterr().out)["nets"]
    assert taught == {"net": "mixtures", "mb": None, "frames": None, "errors": 0, "words": 3, "wer": 0.0}
    assert (made["net"], made["frames"], made["errors"]) == (str(path), 7, 1)
    assert made["mb"] == path.stat().st_size / 1e6


# -- the nets that ship ----------------------------------------------------------------------------


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
