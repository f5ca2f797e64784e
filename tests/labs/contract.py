"""What every lab keeps to: the test module of its group has a `Contract` for it, which `test_labs_contract` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

import assets
from pipelines.labs.declaration import FAILS, HOLDS, IMPOSSIBLE, PART, UNDECIDED, Lab, Measured, Parameters, Verdict
from pipelines.labs.desk import Desk

Changes = Mapping[str, object]
"""Keyword arguments of `planted`."""


class NoDevice(Desk):
    """A machine without an accelerator, whatever this one has."""

    device = None


def with_speech(kind: type[Desk] = Desk) -> Desk:
    """A desk with one short utterance."""
    speech = assets.path("speech")
    return kind(audio=[str(speech / "08-kal16-short.flac")], transcripts=str(speech / "transcripts.tsv"))


def about(value: float, rel: float = 0.02) -> object:
    """A figure that follows from what was planted, but for its noise."""
    return pytest.approx(value, rel=rel)


@dataclass(frozen=True)
class Contract:
    """A lab with what is planted for it.

    `planted`: a result that makes the claim true, but for what its keyword arguments change. `true`, `in_part`,
    `false`, `noisy`, `impossible`: which changes make it so, for the rule to say. `figures`: figures of the unchanged
    result; `more`: of changed ones. `said`: words of the sentence. `drawn`: values of the picture's first layer.
    `small`: parameters of a run of seconds, at `desk`, with `patches` to the lab's module, and with workers as threads
    on planted data where `trains`; `check` looks at what it measured. `stops`: whether it is stopped as well.
    `memory`: parameters, of which the latter need more.
    """

    lab: Lab[Parameters, Measured]
    planted: Callable[..., Measured]
    false: Sequence[Changes]
    figures: Mapping[str, object]
    true: Sequence[Changes] = ({},)
    in_part: Sequence[Changes] = ()
    noisy: Sequence[Changes] = ()
    impossible: Sequence[Changes] = ()
    more: Sequence[tuple[Changes, Mapping[str, object]]] = ()
    said: Sequence[tuple[Changes, str]] = ()
    drawn: Sequence[object] | None = None
    small: Parameters | None = None
    desk: Callable[[], Desk] = Desk
    patches: Mapping[str, object] = field(default_factory=dict)
    trains: bool = False
    stops: bool = True
    check: Callable[..., None] = lambda result: None
    memory: tuple[Parameters, Parameters] | None = None

    @property
    def verdicts(self) -> dict[Verdict, Sequence[Changes]]:
        """What the rule has to say of which changes."""
        every: dict[Verdict, Sequence[Changes]] = {
            HOLDS: self.true,
            PART: self.in_part,
            FAILS: self.false,
            UNDECIDED: self.noisy,
            IMPOSSIBLE: self.impossible,
        }
        return {verdict: changes for verdict, changes in every.items() if changes}
