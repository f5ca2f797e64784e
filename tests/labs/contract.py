"""What every lab keeps to: the test module of its group has a `Contract` for it, which `test_labs_contract` runs."""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

import assets
from pipelines.labs._training import Curve, Delayed
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.desk import Desk
from pipelines.labs.sweep import Timings
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, PART, UNDECIDED, Verdict

Changes = Mapping[str, object]  # Keyword arguments of `contract`


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


def near(**figures: object) -> dict[str, object]:
    """Figures that follow from what was planted: exactly, or but for its noise where they are fractions."""
    return {name: about(value) if isinstance(value, float) else value for name, value in figures.items()}


@dataclass(frozen=True)
class Contract:
    lab: Lab[Parameters, Measured]
    planted: Callable[..., Measured]  # a result that makes the claim true, but for what its keyword arguments change
    false: Sequence[Changes]  # changes that make it so, for the rule to say; the four below likewise
    figures: Mapping[str, object]  # of the unchanged result
    true: Sequence[Changes] = ({},)
    in_part: Sequence[Changes] = ()
    noisy: Sequence[Changes] = ()
    impossible: Sequence[Changes] = ()
    more: Sequence[tuple[Changes, Mapping[str, object]]] = ()  # figures of changed results
    said: Sequence[tuple[Changes, str]] = ()  # words of the sentence
    drawn: Sequence[object] | None = None  # values of the picture's first layer
    small: Parameters | None = None  # of a run of seconds
    desk: Callable[[], Desk] = Desk
    patches: Mapping[str, object] = field(default_factory=dict)  # to the lab's module
    trains: bool = False  # workers are threads then, on planted data
    stops: bool = True
    check: Callable[..., None] = lambda result: None  # looks at what the small run measured

    @property
    def verdicts(self) -> Iterator[tuple[Verdict, Changes]]:
        yield from ((HOLDS, changes) for changes in self.true)
        yield from ((PART, changes) for changes in self.in_part)
        yield from ((FAILS, changes) for changes in self.false)
        yield from ((UNDECIDED, changes) for changes in self.noisy)
        yield from ((IMPOSSIBLE, changes) for changes in self.impossible)


ROUNDS, SEGMENTS = 12, 24
NOISE = 0.01
LOUD = 1.5  # A spread as large as the times: no difference of some percent is seen in it


def times(milliseconds: float, noise: float = NOISE, seed: int = 0, rounds: int = ROUNDS) -> list[float]:
    """Seconds by round: never below what they are, `noise` of it above at most."""
    draw = np.random.default_rng(seed)
    return (1e-3 * milliseconds * (1 + noise * draw.random(rounds))).tolist()


def timings(milliseconds: Mapping[str, Mapping[int, float]], noise: float = NOISE) -> Timings:
    return Timings(
        seconds={
            variant: {
                size: times(middle, noise, zlib.crc32(f"{variant} {size}".encode())) for size, middle in row.items()
            }
            for variant, row in milliseconds.items()
        }
    )


def at_size(size: int, milliseconds: Mapping[str, float], noise: float = NOISE) -> Timings:
    return timings({variant: {size: middle} for variant, middle in milliseconds.items()}, noise)


PIECES = 8  # Rounds of a training


def rounds(seconds: float, noise: float = NOISE) -> list[float]:
    return times(1e3 * seconds, noise, round(1e6 * seconds), PIECES)


def losses(middle: float, noise: float = 0.02, seed: int = 1) -> list[float]:
    """Of each segment of speech; hard ones are hard for every net, chance differs."""
    hard = np.random.default_rng(0).uniform(0.8, 1.2, SEGMENTS)
    chance = np.random.default_rng([seed, round(1e6 * middle)]).normal(0, noise, SEGMENTS)
    each = hard * np.maximum(1 + chance, 0.05)
    return (middle * each / each.mean()).tolist()


def falling(loss: float, noise: float, seed: int = 1) -> list[list[float]]:
    """Losses after each round, down to `loss`."""
    return [losses(loss * (1 + 0.1 * left), noise, seed) for left in reversed(range(PIECES))]


def curve(
    name: str,
    seconds: float = 1.0,
    loss: float = 2.0,
    workers: int = 2,
    noise: float = NOISE,
    sent: int = 1000,
    waiting: float = 0.1,
    delays: dict[int, int] | None = None,
    ranks: int | None = None,
    residuals: list[tuple[float, float]] | None = None,
) -> Curve:
    """One of 100 examples a round, its loss falling to `loss`; of their time workers wait the share `waiting`."""
    each = Delayed(seconds={"gradient": 1.0 - waiting, "wait": waiting, "update": 0.001}, delays=delays or {0: 10})
    return Curve(
        name=name,
        workers=workers,
        seconds=rounds(seconds, noise),
        examples=[100] * PIECES,
        updates=[10] * PIECES,
        bytes=[sent] * PIECES,
        segments=falling(loss, noise),
        residuals=residuals or [],
        by_worker=[each] * (ranks or workers),
    )
