"""The bytes of parameters as the cost of mixtures: rates over senones, Gaussians, dimensions and frames (note 0)."""

from functools import partial
from typing import Annotated, Final

import numpy as np

from pipelines.labs.chart import Axis, Chart, Line
from pipelines.labs.declaration import Lab, Parameters, Seconds, setting
from pipelines.labs.desk import Desk, cache_bytes, per_call
from pipelines.labs.figures import ci, counted, percent, saved, scaled, value
from pipelines.labs.sweep import Sweep, SweepResult, Work
from pipelines.labs.verdicts import FAILS, HOLDS, Finding, at_least
from profiler.costs import Cost

FLOAT: Final = 4
LANES: Final = 16  # Senones of a group, as the scorer packs them
FEW_GAUSSIANS, FEW_DIMENSIONS = 8, 13


class Params(Parameters, frozen=True, kw_only=True):
    """The reference workload of the note: thousands of mixtures, dozens of Gaussians, 40 floats."""

    senones: Annotated[int, setting("Senones", "They go in powers of two up to this number.", ge=16, le=1 << 20)] = 4096
    gaussians: Annotated[int, setting("Gaussians", "Gaussians of a senone's mixture.", ge=1, le=1024)] = 42
    dimensions: Annotated[int, setting("Dimensions", "Floats of a frame of features.", ge=1, le=1024)] = 40
    batch: Annotated[int, setting("Largest batch", "Frames scored together at most.", unit="frames", ge=2, le=256)] = 64
    seconds: Seconds = 25.0


def parameter_bytes(senones: int, gaussians: int, dimensions: int) -> int:
    return senones * gaussians * (2 * dimensions + 1) * FLOAT


def shapes(gaussians: int, dimensions: int) -> list[tuple[int, int]]:
    few = min(FEW_GAUSSIANS, gaussians), min(FEW_DIMENSIONS, dimensions)
    every = [(m, d) for m in (gaussians, few[0]) for d in (dimensions, few[1])]
    return list(dict.fromkeys(every))


def variant(gaussians: int, dimensions: int, batch: int) -> str:
    return f"{gaussians} × {dimensions}, batch {batch}"


def measure(params: Params, desk: Desk) -> SweepResult:
    senones = [n for n in (1 << k for k in range(4, 21)) if n <= params.senones]
    batches = sorted({1, min(16, params.batch), params.batch})
    made = {(m, d): Mixtures(senones[-1], m, d, params.batch) for m, d in shapes(params.gaussians, params.dimensions)}
    kinds = {variant(m, d, batch): (m, d, batch) for m, d in made for batch in batches}

    def cost(name: str, size: int) -> Cost:
        m, d, batch = kinds[name]
        moved = float(parameter_bytes(size, m, d))
        return per_call({"gemm": 2.0 * batch * moved / FLOAT}, moved, working_set_bytes=moved)

    def variants(size: int) -> dict[str, Work]:
        return {name: made[m, d].scoring(size, batch) for name, (m, d, batch) in kinds.items()}

    label = "{variant}, {size} senones"
    sweep = Sweep(variants, senones, "mixtures of every size", label=label, together=True, cost=cost)
    return SweepResult(
        timings=sweep.run(desk, params.seconds),
        counts={"gaussians": params.gaussians, "dimensions": params.dimensions},
        cache_bytes=cache_bytes(),
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

    def scoring(self, senones: int, frames: int) -> Work:
        """Fill the scores of the first `senones` senones for `frames` frames."""
        from pipelines.scoring.continuous import kernels

        groups = senones // LANES
        some, x = self.parameters[:groups], self.x[:frames]
        # Rows of the scores are as far apart as the argument of the kernel says: each size has scores of its own.
        into = self.scores.ravel()[: frames * senones].reshape(frames, senones)
        return lambda: kernels.dense(x, some, self._tile, self._sums, into, 0, groups)


def bytes_needed(params: Params) -> int:
    parameters = sum(parameter_bytes(params.senones, m, d) for m, d in shapes(params.gaussians, params.dimensions))
    return 2 * parameters + 4 * FLOAT * params.batch * params.senones


class Workload:
    """The reference workload in a result: its times per Gaussian and frame, its bytes and its operations."""

    def __init__(self, result: SweepResult) -> None:
        self.gaussians = round(result.counts["gaussians"])
        self.dimensions = round(result.counts["dimensions"])
        self.timings = result.timings
        self.per_gaussian = result.timings.per_unit(lambda senones: senones * self.gaussians)
        self.senones = result.timings.sizes(self.variant(1))
        of_shape = self.variant(1).removesuffix("1")
        names = [name for name in result.timings.variants if name.startswith(of_shape)]
        self.batches = [int(name.removeprefix(of_shape)) for name in names]

    def variant(self, batch: int) -> str:
        return variant(self.gaussians, self.dimensions, batch)

    def bytes(self, senones: int) -> int:
        return parameter_bytes(senones, self.gaussians, self.dimensions)

    def gflops_per_s(self, batch: int, senones: int, seconds: float) -> float:
        """10⁹ operations a second of a call that scores a batch in that time."""
        return 2e-9 * batch * self.bytes(senones) / FLOAT / seconds


def judge(result: SweepResult) -> Finding:
    work = Workload(result)
    one, last, most = work.variant(1), work.batches[-1], work.senones[-1]
    quickest = work.per_gaussian.fastest((one, n) for n in work.senones)[1]
    slower = work.per_gaussian.ratio(one, one, most, quickest)
    waiting = saved(work.per_gaussian.ratio(one, one, quickest, most))
    batched = scaled(work.timings.ratio(one, work.variant(last), most), last)
    size, frame_s = work.bytes(most), work.timings.time(one, most)
    why = (
        f"With {size / 1e6:.1f} MB of parameters a Gaussian takes {ci(slower)} times as long as with "
        f"{work.bytes(quickest) / 1e6:.2g} MB that stay in a cache: {percent(waiting)} of the time is "
        f"waiting for memory, which supplies {size / frame_s / 1e9:.3g} GB/s. In batches of {last} a frame is "
        f"{ci(batched)} times as fast."
    )
    numbers: dict[str, float | None] = {
        "waiting_share": value(waiting),
        "slower_than_in_cache": value(slower),
        "batching_gain": value(batched),
        "bytes_per_frame": float(size),
        "bytes_per_s_for_real_time": 100.0 * size,
        "dram_bytes_per_s": size / frame_s,
        "frame_s": frame_s,
    }
    for batch in work.batches:
        seconds = work.timings.time(work.variant(batch), most)
        numbers[f"flops_per_s_at_batch_{batch}"] = 1e9 * work.gflops_per_s(batch, most, seconds)
    return Finding(at_least(waiting, 0.5), why, numbers)


def picture(result: SweepResult) -> Chart:
    work, timings, caches = Workload(result), result.timings, result.cache_marks()

    def reading(m: int, d: int) -> Line:
        def size(senones: int) -> int:
            return parameter_bytes(senones, m, d)

        return timings.line(variant(m, d, 1), f"{m} Gaussians × {d}", lambda n, s: size(n) / s / 1e9, size)

    read = [reading(m, d) for m, d in shapes(work.gaussians, work.dimensions)]
    rates = [
        timings.line(
            work.variant(batch),
            counted(batch, "frame", "frames together"),
            partial(work.gflops_per_s, batch),
            work.bytes,
        )
        for batch in work.batches
    ]
    x = Axis("parameters", "B", log=True)
    shape = f"{work.gaussians} Gaussians × {work.dimensions}"
    return Chart(
        x,
        Axis("parameters read, frame by frame", "GB/s", low=0.0),
        (*read, *caches),
        title="frame by frame",
        beside=(Chart(x, Axis("arithmetic", "GFLOP/s", log=True), (*rates, *caches), title=shape),),
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
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: make the model smaller, read it for several frames at once, or read fewer Gaussians.",
        FAILS: "So: here the arithmetic of mixtures counts, not the memory that they lie in.",
    },
    bytes_needed=bytes_needed,
)
