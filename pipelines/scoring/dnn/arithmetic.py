"""Protocols of what computes a whole net, and of those that can stop after the hidden layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeGuard

from pipelines.scoring.blocks import Meter
from pipelines.scoring.strategy import FrameScorer, SomeSenones
from profiler.arrays import Array


class Arithmetic(FrameScorer, Protocol):
    """Weights and workspace of one net, in one number type. Scores are log posteriors, up to a constant per frame.

    `score` and `begin_some` take frames as `splice` gives them; `costs` include those of `splice`.
    """

    n_senones: int
    context: tuple[int, int]
    """Frames that `splice` wants before and after those of a block."""
    heads_used: int
    """Output layers that a call goes through: more than one where `score_by_heads` is called."""
    begun: int
    """Frames of the block that `begin_some` was last given."""
    stages: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]
    """Sentences on what was read differently from the file."""

    def reset(self) -> None:
        """An utterance begins."""

    def splice(self, padded: Array, meter: Meter) -> Array:
        """Each frame of `padded` f32 [left + n + right, features] with its context; valid until the next call."""


class Choosing(Arithmetic, SomeSenones, Protocol):
    """One that computes chosen senones after the hidden layers of a block (`begin_some`)."""


class WithHeads(Choosing, Protocol):
    """One that also computes several heads after the hidden layers of a block."""

    def score_by_heads(self, source: Array, since: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones] by the head for as many frames as each lies behind its source.

        `source` int [n]: its frame of the block begun, −1 for the last frame of the one before; `since` int [n].
        """


def can_choose(arithmetic: Arithmetic) -> TypeGuard[Choosing]:
    return hasattr(arithmetic, "begin_some")


def has_heads(arithmetic: Arithmetic) -> TypeGuard[WithHeads]:
    return hasattr(arithmetic, "score_by_heads")
