"""The fair baseline: only the same seconds of the same files count, and nothing that was being prepared."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
import pytest

from profiler.analysis.comparison.arms import arms_of
from profiler.analysis.comparison.compare import B_FASTER, NO_DIFFERENCE, UNDECIDED
from profiler.analysis.comparison.same_speech import UNIT, in_turn, same_speech
from profiler.session.model import ConfigEpoch, LaneInfo, Marker, Utterance
from profiler.session.reader import Session
from profiler.spans import SPAN, Stage

OFF, ON = 0, 1


@dataclass
class Run:
    """What a session says of a run, made utterance by utterance; `wall`: ns of every frame."""

    configs: list[ConfigEpoch] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    utterances: list[Utterance] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    path: str = "made up"
    wall: list[float] = field(default_factory=list)
    stages: ClassVar = {0: Stage(0, "decode.block", "decode", ())}
    lanes: ClassVar = {0: LaneInfo(0, "decode", "cpu", True, 0, 0)}

    def decode(self, name: str, seconds: int, epochs: list[int], cost: float, errors: int = 1) -> None:
        """One utterance; `epochs`: that of every second of it."""
        first = len(self.wall)
        for second, epoch in enumerate(epochs):
            self.config(epoch, first + second * UNIT)
        self.wall += [cost] * (seconds * UNIT)
        met = tuple(dict.fromkeys(epochs))
        self.utterances.append(
            Utterance(
                len(self.utterances), name, f"/{name}.wav", first, seconds * UNIT, float(seconds),
                "a b c d", "a b c", (), 1, met, errors, 4, True, np.zeros((0, 2), np.int8),
            )
        )  # fmt: skip

    def config(self, epoch: int, frame: int) -> None:
        if not self.configs or self.configs[-1].epoch != epoch:
            self.configs.append(ConfigEpoch(epoch, frame, {}, 0))

    def marker(self, requested_frame: int, applied: int | None) -> None:
        number = len(self.markers)
        self.markers.append(Marker(number, "option", "on", 0, requested_frame, applied, None, "key", True))

    @property
    def spans(self) -> np.ndarray:
        """A tile per frame."""
        tiles = np.zeros(len(self.wall), SPAN)
        tiles["duration_ns"], tiles["frames"] = self.wall, 1
        tiles["first_frame"] = np.arange(len(tiles))
        tiles["start_ns"] = np.cumsum(tiles["duration_ns"]) - tiles["duration_ns"]
        return tiles

    @property
    def session(self) -> Session:
        return cast("Session", self)

    def compared(self, end: int | None = None):
        wall = np.array(self.wall)
        return same_speech(self.session, wall, len(wall) if end is None else end, {OFF}, {ON})


def test_only_the_same_seconds_count():
    """Speech that costs more before the change must not make the change look good."""
    run = Run()
    run.decode("hard", 6, [OFF] * 6, 40e6)
    run.decode("one", 6, [OFF] * 6, 4e6)
    run.decode("easy", 6, [ON] * 6, 0.1e6)
    other = run.compared()
    assert (other.ratio, other.verdict, other.seconds, other.decoded) == (None, UNDECIDED, 0, ())
    run.decode("one", 6, [ON] * 6, 2e6)
    found = run.compared()
    assert found.ratio.ratio == pytest.approx(0.5)
    assert (found.seconds, found.verdict, found.of_a[0]) == (6, B_FASTER, (600, 700))
    # What lies beyond the cursor is not known yet.
    early = run.compared(1850)
    assert (early.seconds, early.decoded) == (0, ())
    assert run.compared(1950).seconds == 1


def test_seconds_in_which_a_change_was_prepared_are_left_out():
    run = Run()
    run.decode("one", 6, [OFF] * 6, 4e6)
    run.decode("two", 6, [OFF] * 6, 4e6)
    # Asked for in the second utterance, acting from the third on: preparing slowed four seconds down.
    run.wall[800:1200] = [20e6] * 400
    run.marker(800, 1200)
    run.decode("two", 6, [ON] * 6, 2e6)
    found = run.compared()
    assert (found.seconds, found.ratio.ratio) == (2, pytest.approx(0.5))


def test_of_changes_the_second_in_which_they_acted_or_were_given_up_belongs_to_neither():
    run = Run()
    run.decode("one", 6, [OFF] * 6, 4e6)
    run.marker(100, None)
    run.markers.append(Marker(9, "error", "key=1 could not be made", 0, 200, None, None, None, None))
    run.decode("one", 6, [ON] * 6, 2e6)
    assert run.compared().seconds == 5
    run = Run()
    run.decode("one", 5, [OFF] * 5, 4e6)
    run.decode("one", 5, [OFF, OFF, ON, ON, ON], 2e6)
    run.configs[-1] = ConfigEpoch(ON, 750, {}, 0)
    run.marker(745, 750)
    assert run.compared().seconds == 2


def test_noise_decides_nothing_and_equal_times_are_no_difference():
    equal, noisy = Run(), Run()
    for run in (equal, noisy):
        run.decode("one", 8, [OFF] * 8, 4e6)
        run.decode("one", 8, [ON] * 8, 4e6)
    assert equal.compared().verdict == NO_DIFFERENCE
    draw = np.random.default_rng(4)
    for second in range(16):
        noisy.wall[second * UNIT : (second + 1) * UNIT] = [4e6 * draw.lognormal(0, 0.5)] * UNIT
    assert noisy.compared().verdict == UNDECIDED


def test_as_many_takes_of_either_side_count():
    """The fastest of ten is faster than the only one, though nothing changed."""
    run = Run()
    for cost in (9e6, 1e6, 5e6, 4e6):
        run.decode("one", 4, [OFF] * 4, cost)
    run.decode("one", 4, [ON] * 4, 4e6)
    assert run.compared().ratio.ratio == pytest.approx(1.0)


def test_words_are_those_of_utterances_that_both_decoded_whole():
    run = Run()
    run.decode("one", 5, [OFF] * 5, 4e6, errors=1)
    run.decode("two", 5, [OFF, OFF, ON, ON, ON], 4e6)
    run.decode("one", 5, [ON] * 5, 2e6, errors=3)
    run.decode("two", 5, [ON] * 5, 2e6)
    ((before, after),) = run.compared().decoded
    assert (before.name, before.errors, after.errors) == ("one", 1, 3)


def turns(pairs: int, draw: np.random.Generator) -> Run:
    run = Run()
    run.meta["ab"] = {"arms": [{"name": "A", "epoch": 5}, {"name": "B", "epoch": 6}], "measured_from": 0, "ended": None}
    for number in range(pairs):
        for epoch in (5, 6) if number % 2 == 0 else (6, 5):
            run.decode("one", 4, [epoch] * 4, {5: 4e6, 6: 2e6}[epoch] * draw.lognormal(0, 0.02))
    return run


def test_turns_decide_once_there_are_enough():
    draw = np.random.default_rng(1)
    for pairs, verdict in ((2, UNDECIDED), (6, B_FASTER)):
        run = turns(pairs, draw)
        found = in_turn(arms_of(run.session), len(run.wall))
        assert found.repeats == pairs
        assert found.verdict == verdict
        assert found.ratio.ratio == pytest.approx(0.5, rel=0.05)
    # An arm without a turn before the cursor has nothing to say.
    assert in_turn(arms_of(run.session), 500) is None
