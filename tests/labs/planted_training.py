"""Curves of trainings that never were, for the verdict rules of labs."""

from __future__ import annotations

import numpy as np

from pipelines.labs._training import Curve, Delayed

ROUNDS, SEGMENTS = 8, 24


def times(seconds: float, noise: float = 0.01, seed: int = 1) -> list[float]:
    """Seconds of each round, with a relative spread."""
    draw = np.random.default_rng([seed, round(1e6 * seconds)])
    return (seconds * (1 + noise * draw.random(ROUNDS))).tolist()


def losses(middle: float, noise: float = 0.02, seed: int = 1) -> list[float]:
    """Of each segment of speech; hard ones are hard for every net, chance differs."""
    hard = np.random.default_rng(0).uniform(0.8, 1.2, SEGMENTS)
    chance = np.random.default_rng([seed, round(1e6 * middle)]).normal(0, noise, SEGMENTS)
    each = hard * np.maximum(1 + chance, 0.05)
    return (middle * each / each.mean()).tolist()


def curve(
    name: str,
    seconds: float = 1.0,
    loss: float = 2.0,
    workers: int = 2,
    noise: float = 0.01,
    sent: int = 1000,
    waiting: float = 0.1,
    delays: dict[int, int] | None = None,
    ranks: int | None = None,
    residuals: list[tuple[float, float]] | None = None,
) -> Curve:
    """One of 100 examples a round, its loss falling to `loss`; of their time workers wait the share `waiting`."""
    each = Delayed(
        seconds={"gradient": 1.0 - waiting, "wait": waiting, "update": 0.001},
        delays=delays or {0: 10},
    )
    return Curve(
        name=name,
        workers=workers,
        seconds=times(seconds, noise),
        examples=[100] * ROUNDS,
        updates=[10] * ROUNDS,
        bytes=[sent] * ROUNDS,
        segments=[losses(loss * (1 + 0.1 * left), noise) for left in reversed(range(ROUNDS))],
        residuals=residuals or [],
        by_worker=[each] * (ranks or workers),
    )
