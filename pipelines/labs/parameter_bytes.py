"""The bytes of parameters as the cost of mixtures: rates over senones, Gaussians, dimensions and frames (note 0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config.options import setting
from pipelines.labs import figures
from pipelines.labs._parameters import Rounds
from pipelines.labs.chart import Axis, Chart, Layer, Mark
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.figures import line, saved, value
from pipelines.labs.texts import percent, told
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, at_least

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk

FLOAT: Final = 4
LANES: Final = 16
"""Senones of a group, as the scorer packs them."""

FEW_GAUSSIANS: Final = 8
FEW_DIMENSIONS: Final = 13
MOST: Final = 0.5
"""Memory is the cost where waiting for it takes more than half of the time; the note gives no number."""


class Sizes(Parameters, frozen=True, kw_only=True):
    """The reference workload of the note: thousands of mixtures, dozens of Gaussians, 40 floats."""

    senones: Annotated[
        int,
        setting("Senones", "The sweep goes in powers of two up to so many.", ge=16, le=1 << 20),
    ] = 4096
    gaussians: Annotated[
        int, setting("Gaussians", "Gaussians of a senone's mixture.", ge=1, le=1024)
    ] = 42
    dimensions: Annotated[
        int, setting("Dimensions", "Floats of a frame of features.", ge=1, le=1024)
    ] = 40
    batch: Annotated[
        int,
        setting("Largest batch", "Frames scored together at most.", unit="frames", ge=2, le=256),
    ] = 64
    seconds: Rounds = 25.0


class Found(Measured, frozen=True, kw_only=True):
    """Seconds by arm "gaussians × dimensions, batch, senones" (`arm`)."""

    sizes: Sizes
    senones: list[int]
    batches: list[int]
    seconds: dict[str, list[float]]
    cache_bytes: dict[int, int]


def arm(gaussians: int, dimensions: int, batch: int, senones: int) -> str:
    """The name of an arm, which is also that of its stage."""
    return f"{gaussians} × {dimensions}, batch {batch}, {senones} senones"


def parameter_bytes(senones: int, gaussians: int, dimensions: int) -> int:
    """Of mixtures: two numbers a dimension and a constant for each Gaussian."""
    return senones * gaussians * (2 * dimensions + 1) * FLOAT


def shapes(sizes: Sizes) -> list[tuple[int, int]]:
    """(Gaussians, dimensions) of the sweep, the reference first."""
    few = min(FEW_GAUSSIANS, sizes.gaussians), min(FEW_DIMENSIONS, sizes.dimensions)
    every = [(m, d) for m in (sizes.gaussians, few[0]) for d in (sizes.dimensions, few[1])]
    return list(dict.fromkeys(every))


def measure(sizes: Sizes, desk: Desk) -> Found:
    """The scorer's own kernel over drawn parameters of every size."""
    from pipelines.labs.desk import per_call

    senones = [n for n in (1 << k for k in range(4, 21)) if n <= sizes.senones]
    batches = sorted({1, min(16, sizes.batch), sizes.batch})
    arms, costs = {}, {}
    for m, d in shapes(sizes):
        mixtures = Mixtures(senones[-1], m, d, sizes.batch)
        for n in senones:
            for batch in batches:
                name = arm(m, d, batch, n)
                arms[name] = mixtures.scoring(n, batch)
                moved = float(parameter_bytes(n, m, d))
                gemm = 2.0 * batch * moved / FLOAT
                costs[name] = per_call({"gemm": gemm}, moved, working_set_bytes=moved)
    seconds = desk.turns(arms, seconds=sizes.seconds, costs=costs, what="mixtures of every size")
    return Found(
        sizes=sizes,
        senones=senones,
        batches=batches,
        seconds=seconds,
        cache_bytes=desk.cache_bytes,
    )


class Mixtures:
    """Drawn mixtures in the layout of the scorer, and frames to score by them."""

    def __init__(self, senones: int, gaussians: int, dimensions: int, frames: int) -> None:
        from pipelines.scoring.simd.vector import aligned

        draw = np.random.default_rng(0)
        rows = 2 * dimensions + 1
        self.parameters = aligned((senones // LANES, 1, gaussians, rows, LANES))
        # Precisions, means and constants of real models have such sizes; no result is out of range.
        self.parameters[...] = draw.random((gaussians, rows, LANES), np.float32) - np.float32(0.5)
        self.parameters[..., :dimensions, :] -= np.float32(0.6)
        self.x = np.ones((frames, 1, rows), np.float32)
        values = draw.standard_normal((frames, dimensions), np.float32)
        self.x[:, 0, :dimensions], self.x[:, 0, dimensions:-1] = values**2, values
        self._tile = aligned((frames, gaussians * LANES))
        self._sums = aligned((2, frames, LANES))
        self.scores = np.zeros((frames, senones), np.float32)

    def scoring(self, senones: int, frames: int) -> Callable[[], object]:
        """Fill the scores of the first so many senones for so many frames."""
        from pipelines.scoring.continuous import kernels

        groups = senones // LANES
        some, x = self.parameters[:groups], self.x[:frames]
        # Rows of the scores lie as far apart as the kernel is told: each size has scores of its own.
        into = self.scores.ravel()[: frames * senones].reshape(frames, senones)
        return lambda: kernels.dense(x, some, self._tile, self._sums, into, 0, groups)


def bytes_needed(sizes: Sizes) -> int:
    """The parameters of all shapes at the largest size, and the scores."""
    parameters = sum(parameter_bytes(sizes.senones, m, d) for m, d in shapes(sizes))
    return 2 * parameters + 4 * FLOAT * sizes.batch * sizes.senones


def per_gaussian(found: Found, batch: int, senones: int) -> list[float]:
    """Seconds per Gaussian and frame of the reference's shape, by round."""
    m, d = found.sizes.gaussians, found.sizes.dimensions
    return [t / (senones * m * batch) for t in found.seconds[arm(m, d, batch, senones)]]


def judge(found: Found) -> Finding:
    """Frame by frame: a Gaussian at the full size against one where the parameters stay in the quickest cache."""
    m, d, most = found.sizes.gaussians, found.sizes.dimensions, found.senones[-1]
    quickest = min(found.senones, key=lambda n: figures.seconds(per_gaussian(found, 1, n)))
    slower = figures.ratio(per_gaussian(found, 1, most), per_gaussian(found, 1, quickest))
    waiting = saved(figures.ratio(per_gaussian(found, 1, quickest), per_gaussian(found, 1, most)))
    last = found.batches[-1]
    batched = figures.ratio(per_gaussian(found, 1, most), per_gaussian(found, last, most))
    size = parameter_bytes(most, m, d)
    one = figures.seconds(found.seconds[arm(m, d, 1, most)])
    rate = {
        batch: 2.0 * batch * size / FLOAT / figures.seconds(found.seconds[arm(m, d, batch, most)])
        for batch in found.batches
    }
    why = (
        f"With {size / 1e6:.1f} MB of parameters a Gaussian takes {told(slower)} times as long as with "
        f"{parameter_bytes(quickest, m, d) / 1e6:.2g} MB that stay in a cache: {percent(waiting)} of the time is "
        f"waiting for memory, which supplies {size / one / 1e9:.3g} GB/s. In batches of {last} a frame is "
        f"{told(batched)} times as fast."
    )
    numbers: dict[str, float | None] = {
        "waiting_share": value(waiting),
        "slower_than_in_cache": value(slower),
        "batching_gain": value(batched),
        "bytes_per_frame": float(size),
        "bytes_per_s_for_real_time": 100.0 * size,
        "dram_bytes_per_s": size / one,
        "frame_s": one,
    }
    numbers |= {f"flops_per_s_at_batch_{batch}": r for batch, r in rate.items()}
    return Finding(at_least(waiting, MOST), why, numbers)


def picture(found: Found) -> Chart:
    """Parameters read per second frame by frame; beside it operations per second by batch."""
    sizes = found.sizes
    caches: list[Layer] = [
        Mark(f"L{level}", float(size), on="x") for level, size in found.cache_bytes.items()
    ]
    read = [
        line(
            f"{m} Gaussians × {d}",
            [parameter_bytes(n, m, d) for n in found.senones],
            [found.seconds[arm(m, d, 1, n)] for n in found.senones],
            lambda i, s, m=m, d=d: parameter_bytes(found.senones[i], m, d) / s / 1e9,  # type: ignore[misc]
        )
        for m, d in shapes(sizes)
    ]
    m, d = sizes.gaussians, sizes.dimensions
    bytes_of = [parameter_bytes(n, m, d) for n in found.senones]
    rates = [
        line(
            f"{batch} frame{'s' if batch > 1 else ''} together",
            bytes_of,
            [found.seconds[arm(m, d, batch, n)] for n in found.senones],
            lambda i, s, b=batch: 2.0 * b * bytes_of[i] / FLOAT / s / 1e9,  # type: ignore[misc]
        )
        for batch in found.batches
    ]
    x = Axis("parameters", "B", log=True)
    return Chart(
        x,
        Axis("parameters read, frame by frame", "GB/s", low=0.0),
        (*read, *caches),
        title="frame by frame",
        beside=(
            Chart(
                x,
                Axis("arithmetic", "GFLOP/s", log=True),
                (*rates, *caches),
                title=f"{m} Gaussians × {d}",
            ),
        ),
    )


LAB: Final = Lab(
    claim="Mixtures are dear because thousands of them must be read from memory for every frame.",
    source="note 0, the answer",
    group="scoring",
    measured="The scorer's own kernel (product and log-sum-exp) over random parameters, from a size that fits "
    "the first cache to the claim's workload, frame by frame and in batches. The cost of memory is how much "
    "slower a Gaussian gets when the parameters no longer fit a cache. At small sizes the cost of the call shows.",
    bound="It holds if waiting for memory takes more than half of the time. The claim gives no number; half is "
    "ours: the cost is what takes most of the time.",
    parameters=Sizes(),
    stored=Found,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: make the model smaller, read it for several frames at once, or read fewer Gaussians.",
        FAILS: "So: here the arithmetic of mixtures counts, not the memory that they lie in.",
        UNDECIDED: "So: take more rounds (--set seconds=60), with nothing else running.",
    },
    bytes_needed=bytes_needed,
)
