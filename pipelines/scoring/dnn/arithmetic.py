"""What computes a whole net: what every arithmetic offers, and what only those do that stop after the hidden layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeGuard

from pipelines.models.nets import Card
from pipelines.scoring.meter import Meter
from profiler.arrays import Array
from profiler.spans import Cost


class Arithmetic(Protocol):
    """Weights and workspace of one net, in one number type."""

    card: Card
    n_senones: int
    context: tuple[int, int]
    """Frames that `splice` wants before and after those of a block."""
    heads_used: int
    """Output layers that a call goes through: more than one where `score_by_heads` is called."""
    begun: int
    """Frames of the block that `begin_some` was last given."""
    stages: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]
    """What is read otherwise than the file has it, a sentence each."""

    def splice(self, padded: Array, meter: Meter) -> Array:
        """Each frame of `padded` f32 [left + n + right, features] with its context; valid until the next call."""

    def score(self, spliced: Array, scores: Array, meter: Meter) -> None:
        """Log posteriors, up to a constant per frame, f32 [n, senones], of frames as `splice` gives them."""

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `splice` and `score` for calls of about `frames` frames."""


class Choosing(Arithmetic, Protocol):
    """One that computes chosen senones, and several heads, after the hidden layers: a `senones.Source`."""

    def begin_some(self, features: Array, meter: Meter) -> None:
        """The hidden layers of a block, for `score_some` and `score_by_heads`."""

    def score_some(
        self, first: int, last: int, senones: Array, scores: Array, meter: Meter
    ) -> None:
        """Fill scores[first:last, senones] for frames of the block begun; `senones` int64, distinct."""

    def score_by_heads(self, source: Array, since: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones] by the head for as many frames as each lies behind its source.

        `source` int [n]: its frame of the block begun, −1 for the last frame of the one before; `since` int [n].
        """

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `splice`, `begin_some` and `score_some`."""


def can_choose(arithmetic: Arithmetic) -> TypeGuard[Choosing]:
    """Whether it computes chosen senones, and several heads, after the hidden layers."""
    return hasattr(arithmetic, "begin_some")
