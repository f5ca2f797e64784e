"""What every lab has to keep to: its test module says in a `Contract` what `test_labs_contract` plants and runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pytest

from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.desk import Desk
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, PART, UNDECIDED, Verdict

Changes = Mapping[str, object]
"""Keyword arguments of `planted`."""


class NoDevice(Desk):
    """A machine without an accelerator, whatever this one has."""

    device = None


def about(value: float, rel: float = 0.02) -> object:
    """A figure that follows from what was planted, but for its noise."""
    return pytest.approx(value, rel=rel)


@dataclass(frozen=True)
class Contract:
    """A lab with what is planted for it.

    `planted`: a result that makes the claim true, but for what its keyword arguments change. `true`, `in_part`,
    `false`, `noisy`, `impossible`: which changes make it so, for the rule to say. `figures`: what it has to find in the
    unchanged result. `small`: parameters of a run of seconds, at `desk`. `memory`: parameters, of which the latter need
    more.
    """

    lab: Lab[Parameters, Measured]
    planted: Callable[..., Measured]
    false: Sequence[Changes]
    figures: Mapping[str, object]
    true: Sequence[Changes] = ({},)
    in_part: Sequence[Changes] = ()
    noisy: Sequence[Changes] = ()
    impossible: Sequence[Changes] = ()
    small: Parameters | None = None
    desk: Callable[[], Desk] = Desk
    memory: tuple[Parameters, Parameters] | None = None

    @cached_property
    def measured(self) -> Measured:
        """What the small run measures, once."""
        assert self.small is not None
        return self.lab.measure(self.small, self.desk())

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
