"""Which settings of a session are held against which: after changes, and before, during and after an A/B."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.model import configurations
from app.model.configurations import Sides, going_on, settings_of_arm, sides
from pipelines import config as settings
from pipelines.config import Value, presets
from profiler.session.model import ConfigEpoch

SELECTION, BLOCK, PACE = "gmm.selection.enabled", "block", "pace"


class Made(SimpleNamespace):
    __hash__ = object.__hash__


def session(*changes: tuple[int, dict[str, Value]], **meta: Any) -> Any:
    """A session whose settings are those of a preset with what differs from a frame on; epochs count from 0."""
    plain = presets.load("demo").config
    trees = [settings.to_dict(settings.assign(plain, differs)) for _, differs in changes]
    rows = [ConfigEpoch(n, frame, trees[n], 0) for n, (frame, _) in enumerate(changes)]
    return Made(configs=rows, meta=meta)


ON: dict[str, Value] = {SELECTION: True}
LARGE: dict[str, Value] = {BLOCK: 16}


def test_settings_have_been_in_force_since_they_changed_the_work():
    made = session((0, {}), (100, {PACE: 4.0}), (200, ON | {PACE: 4.0}))
    assert [configurations.since(made, end) for end in (0, 150, 200, 300)] == [0, 0, 0, 200]
    assert [epochs for epochs, _ in configurations.every(made)] == [{0, 1}, {2}]


@pytest.mark.parametrize(
    ("keys", "before"),
    [({SELECTION}, {SELECTION: False}), ({SELECTION, BLOCK}, {SELECTION: False}), ({BLOCK}, None), ({PACE}, None)],
)
def test_the_last_settings_that_differ_in_nothing_else_are_those_before(keys, before):
    made = session((0, {}), (100, LARGE), (200, LARGE | ON))
    assert configurations.before(made, 300, keys) == before


def test_without_a_change_there_is_nothing_before():
    made = session((0, {}))
    assert configurations.before(made, 100, {SELECTION}) is None
    assert sides(made, 100, None) is None
    assert sides(Made(configs=[], meta={}), 100, None) is None


@pytest.fixture
def compared():
    """Selection switched on at frame 100; from 300 to 500 an A/B against off; at 600 larger blocks."""
    arms = [{"name": "A", "epoch": 2}, {"name": "B", "epoch": 3}]
    return session(
        (0, {}), (100, ON), (300, {}), (400, ON), (500, ON), (600, ON | LARGE),
        ab={"arms": arms, "measured_from": 300, "ended": 500},
    )  # fmt: skip


def test_an_ab_goes_on_from_its_first_frame_to_its_last(compared):
    assert [end for end in (299, 300, 301, 500, 501) if going_on(compared, end)] == [301, 500]
    shown = [settings_of_arm(compared, end).get(SELECTION) for end in (299, 350, 450, 501)]
    assert shown == [None, None, True, None], "what the other arm has is not known before its turn"
    compared.meta["ab"]["ended"] = None
    assert settings_of_arm(compared, 550) == {}
    assert going_on(compared, 9999) is not None
    compared.meta["ab"]["arms"].pop()
    assert going_on(compared, 400) is None


def test_an_ab_holds_its_arms_against_each_other_once_both_had_a_turn(compared):
    before = Sides(frozenset({0}), frozenset({1}), in_turn=False)
    assert sides(compared, 300, {SELECTION}) == before
    assert sides(compared, 350, {SELECTION}) == before, "the other had no turn yet"
    both = Sides(frozenset({0, 2}), frozenset({1, 3}), in_turn=True)
    assert sides(compared, 450, {SELECTION}) == both


def test_a_change_after_an_ab_has_no_turns_of_its_own(compared):
    assert sides(compared, 700, {BLOCK}) == Sides(frozenset({1, 3, 4}), frozenset({5}), in_turn=False)
    assert sides(compared, 700, {SELECTION}) is None, "with these blocks it was never off"
