"""Presets that belong together: their order, what each changes of the one before, and heads that are refused."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pipelines import config as settings
from pipelines.config import ConfigError, presets
from pipelines.config.presets import Preset
from tests.each import each

LADDER, SMALLER = "The ladder", "Compressed nets"


def differing(preset: Preset) -> list[settings.Option]:
    """Settings in which a preset differs from the one that it comes after."""
    before = presets.load(preset.after).config
    return [
        option
        for option in settings.options()
        if settings.get(preset.config, option.key) != settings.get(before, option.key)
    ]


def test_groups_come_after_what_stands_alone_and_by_their_steps() -> None:
    alone = presets.names("")
    assert alone == ["demo", presets.DEFAULT, "gmm-selected", "gmm-continuous", "dnn", "ctc"]
    assert presets.names() == [*alone, *(name for group in presets.groups() for name in presets.names(group))]
    for group in presets.groups():
        steps = [presets.load(name).step for name in presets.names(group)]
        assert steps == list(range(1, len(steps) + 1))
    assert presets.groups() == ["More mixtures", "Words and grammars", "CTC nets", SMALLER, LADDER]
    assert len(presets.names(LADDER)) == 7


@each("name", presets.names(LADDER) + presets.names(SMALLER))
def test_a_step_can_be_run_and_says_what_it_changes(name: str) -> None:
    preset = presets.load(name)
    assert settings.check(preset.config) is preset.config
    if preset.after:
        changed = differing(preset)
        assert changed
        # A change that does nothing beside the other settings is no step.
        assert all(settings.unavailable_reason(preset.config, option.key) is None for option in changed)


def test_each_rung_of_the_ladder_is_one_switch_thrown_while_running() -> None:
    rungs = [presets.load(name) for name in presets.names(LADDER) if name.startswith("ladder-")]
    assert [rung.name.split("-")[1] for rung in rungs] == list("1234567")
    assert rungs[0].after == ""
    for before, rung in itertools.pairwise(rungs):
        assert rung.after == before.name
        (changed,) = differing(rung)
        assert changed.live


@each("head", ['step = "first"', "step = true", "grupe = 'x'"])
def test_a_head_that_cannot_be_read_is_refused_by_name(tmp_path: Path, head: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f"{head}\n[config]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=head.split(maxsplit=1)[0]) as refusal:
        presets.from_file(file)
    assert str(file) in str(refusal.value)


def test_a_file_of_ones_own_may_belong_to_a_group(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('group = "Mine"\nstep = 2\nafter = "gmm"\n[config]\nblock = 4\n')
    preset = presets.from_file(file)
    assert (preset.group, preset.step, preset.after) == ("Mine", 2, "gmm")
    assert preset.config.block == 4
    assert "mine" not in presets.names()
