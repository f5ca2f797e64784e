"""What exp takes of real scoring by Gaussian mixtures, by the number of frames that are scored together (note 0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final, Literal

import numpy as np

from pipelines.config.options import setting
from pipelines.labs import figures
from pipelines.labs._parameters import Gaussians, Rounds
from pipelines.labs.chart import Axis, Chart, Line, Mark
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.figures import line, ratio, saved, value
from pipelines.labs.texts import percent
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, all_of, at_most
from profiler.analysis.comparison.statistics import Ratio
from profiler.arrays import Array

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk

BATCHES: Final = (1, 2, 4, 8, 16, 32, 64, 128)
LIBRARY_BATCHES: Final = (1, 4, 16)
HALF: Final = 0.5
"""What takes most of the time takes more than half of it; the note gives no number."""


FEW: Final = 8
"""Frames that a turn scores at least: the shorter it is, the less often other programs come in between."""


def frames_of(batch: int) -> int:
    """Frames that a call scores, by frames at a time."""
    return max(batch, FEW)


class Given(Parameters, frozen=True, kw_only=True):
    """Which model, and for how long."""

    model: Annotated[
        Literal["single-stream", "continuous"],
        setting(
            "Model",
            "single-stream: one exp for 39 dimensions, as in textbooks. continuous: one for 13.",
        ),
    ] = "single-stream"
    components: Gaussians = 42
    largest: Annotated[
        int,
        setting(
            "Largest batch",
            "Batches go in powers of two up to so many frames of real speech.",
            unit="frames",
            ge=1,
            le=128,
        ),
    ] = 128
    seconds: Rounds = 12.0


class Found(Measured, frozen=True, kw_only=True):
    """Seconds by arm: "sum N", "best N" for N frames at a time, and "library sum N", "library best N"."""

    model: str
    gaussians: int
    batches: list[int]
    seconds: dict[str, list[float]]


def measure(given: Given, desk: Desk) -> Found:
    """Exact scoring and scoring by the best Gaussian, whose difference is what exponentials cost."""
    from pipelines.config import Config, assign
    from pipelines.labs._scoring import Scoring
    from pipelines.scoring.continuous import pack

    chosen = {"model": given.model, "gmm.components": given.components}
    scoring = Scoring(assign(Config(), chosen), desk, frames=max(given.largest, FEW))
    batches = [n for n in BATCHES if n <= given.largest]
    arms = {}
    for n in batches:
        arms[f"sum {n}"] = scoring.arm({"block": n}, frames_of(n))
        arms[f"best {n}"] = scoring.arm({"block": n, "gmm.component": "max"}, frames_of(n))
    packed = pack(scoring.model)
    for n in (n for n in LIBRARY_BATCHES if n <= given.largest):
        arms |= library_arms(packed.gaussians, scoring.features[0][:n])
    inner = dict.fromkeys(arms, 1)
    seconds = desk.turns(
        arms, seconds=given.seconds, inner=inner, what="scoring with and without exp"
    )
    return Found(
        model=given.model,
        gaussians=packed.n_gaussians,
        batches=batches,
        seconds=seconds,
    )


def library_arms(gaussians: Array, features: Array) -> dict[str, Callable[[], object]]:
    """The same mixtures as one writes them in numpy: a product, then log-sum-exp with its temporaries.

    `gaussians` f32 [groups, streams, M, K, 16] (`continuous.packing`), `features` f32 [n, streams · D].
    """
    groups, streams, components, expanded, lanes = gaussians.shape
    n, dim = len(features), expanded // 2
    # [streams, K, senones · M]: the components of a senone side by side.
    weights = gaussians.transpose(1, 3, 0, 4, 2).reshape(streams, expanded, -1)
    x = features.reshape(n, streams, dim).swapaxes(0, 1)
    x = np.concatenate([x**2, x, np.ones((streams, n, 1), np.float32)], axis=2)

    def products() -> Array:
        return (x @ weights).reshape(streams, n, groups * lanes, components)

    def by_sum() -> Array:
        g = products()
        best = g.max(axis=3)
        sums: Array = (np.log(np.exp(g - best[..., None]).sum(axis=3)) + best).sum(axis=0)
        return sums

    return {
        f"library sum {n}": by_sum,
        f"library best {n}": lambda: products().max(axis=3).sum(axis=0),
    }


def shares(found: Found, prefix: str = "") -> dict[int, Ratio | None]:
    """The share of the time that goes away with the exponentials, by frames at a time."""
    sums = [name for name in found.seconds if name.startswith(f"{prefix}sum ")]
    batches = [int(name.rpartition(" ")[2]) for name in sums]
    return {
        n: saved(ratio(found.seconds[f"{prefix}best {n}"], found.seconds[f"{prefix}sum {n}"]))
        for n in batches
    }


def judge(found: Found) -> Finding:
    """It holds where exp takes less than half of the time at every number of frames."""
    mine, library = shares(found), shares(found, "library ")
    verdict = all_of(*(at_most(share, HALF) for share in mine.values()))
    numbers: dict[str, float | None] = {}
    for n, share in mine.items():
        numbers[f"exp_share_at_{n}"] = value(share)
        numbers[f"ms_per_frame_at_{n}"] = (
            1e3 * figures.seconds(found.seconds[f"sum {n}"]) / frames_of(n)
        )
    for n, share in library.items():
        numbers[f"library_exp_share_at_{n}"] = value(share)
    first, last = found.batches[0], found.batches[-1]
    why = (
        f"Without exponentials scoring saves {percent(mine[first])} of its time frame by frame and "
        f"{percent(mine[last])} in batches of {last}"
    )
    if library:
        most = max(library)
        why += f"; with numpy's own functions and their temporaries, {percent(library[most])} at {most}"
    return Finding(verdict, f"{why}.", numbers)


def picture(found: Found) -> Chart:
    """The share by frames at a time; beside it the time per frame with and without exponentials."""
    lines = [_share_line("the program's scorer", shares(found))]
    if library := shares(found, "library "):
        lines.append(_share_line("numpy, written plainly", library))
    batches = found.batches
    times = [
        line(
            name,
            batches,
            [found.seconds[f"{arm} {n}"] for n in batches],
            lambda i, s: 1e3 * s / frames_of(batches[i]),
        )
        for arm, name in (("sum", "all Gaussians summed"), ("best", "the best Gaussian alone"))
    ]
    frames = Axis("frames scored together", log=True)
    return Chart(
        frames,
        Axis("share of exp in scoring", "%", low=0.0),
        (*lines, Mark("half of the time", 100 * HALF)),
        beside=(Chart(frames, Axis("time per frame", "ms", log=True), tuple(times)),),
    )


def _share_line(name: str, found: dict[int, Ratio | None]) -> Line:
    known = {n: share for n, share in found.items() if share is not None}
    return Line(
        name,
        tuple(map(float, known)),
        tuple(100 * share.ratio for share in known.values()),
        tuple(100 * (share.ratio if share.low is None else share.low) for share in known.values()),
        tuple(
            100 * (share.ratio if share.high is None else share.high) for share in known.values()
        ),
    )


LAB: Final = Lab(
    claim="exp is not what makes scoring by Gaussian mixtures slow.",
    source="note 0, the answer",
    group="scoring",
    measured="Real speech scored by a model of 5 126 senones × 42 Gaussians, exactly and with the best Gaussian "
    "of each mixture, which needs no exponentials. The difference is the cost of exponentials, logarithms and "
    "sums. The program's compiled scorer is compared with plain numpy, whose temporaries go through memory.",
    bound="It holds if exp takes less than half of the time at every number of frames. The claim gives no "
    "number; half is ours: what makes something slow takes most of its time.",
    parameters=Given(),
    stored=Found,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: batch frames before you buy a faster exp; but once frames are batched, its share is worth a look.",
        FAILS: "So: a faster exp, or the best Gaussian instead of the sum, comes first here.",
        UNDECIDED: "So: take more rounds (--set seconds=60), with nothing else running.",
    },
    bytes_needed=lambda given: (
        4 * 5126 * given.components * 81 * 3 + 4 * 16 * 5126 * given.components * 4
    ),
)
