"""What exp takes of real scoring by Gaussian mixtures, by the number of frames that are scored together (note 0)."""

from typing import Annotated, Final, Literal

import numpy as np

from pipelines.config import Config, assign
from pipelines.labs.chart import Axis, Chart, Line, Mark
from pipelines.labs.declaration import Gaussians, Lab, Parameters, Seconds, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import Ratio, percent, ratio_columns, saved, scaled, value
from pipelines.labs.sweep import Sweep, SweepResult, Work, milliseconds, once
from pipelines.labs.verdicts import FAILS, HOLDS, Finding, all_of, at_most
from profiler.arrays import Array

LIBRARY_BATCHES: Final = (1, 4, 16)
SUM, BEST, LIBRARY_SUM, LIBRARY_BEST = "sum", "best", "library sum", "library best"
"""The variants: all Gaussians of a mixture summed, or the best one alone, by the program's scorer and by numpy."""

FEW: Final = 8  # Frames that a turn scores at least: the shorter it is, the less often other programs come in between


def frames_of(batch: int) -> int:
    """Frames that a call of the program's scorer scores, by frames at a time."""
    return max(batch, FEW)


class Params(Parameters, frozen=True, kw_only=True):
    model: Annotated[
        Literal["single-stream", "continuous"],
        setting("Model", "single-stream: one exp for 39 dimensions, as in textbooks. continuous: one for 13."),
    ] = "single-stream"
    components: Gaussians = 42
    largest: Annotated[
        int,
        setting("Largest batch", "Batches of real speech go in powers of two up to it.", unit="frames", ge=1, le=128),
    ] = 128
    seconds: Seconds = 12.0


def measure(params: Params, desk: Desk) -> SweepResult:
    from pipelines.labs._scoring import Scoring
    from pipelines.scoring.continuous import pack

    chosen = {"model": params.model, "gmm.components": params.components}
    scoring = Scoring(assign(Config(), chosen), desk, frames=max(params.largest, FEW))
    packed = pack(scoring.model)

    def variants(batch: int) -> dict[str, Work]:
        frames = frames_of(batch)
        made: dict[str, Work] = {
            SUM: scoring.work({"block": batch}, frames),
            BEST: scoring.work({"block": batch, "gmm.component": "max"}, frames),
        }
        if batch in LIBRARY_BATCHES:
            made |= library_variants(packed.gaussians, scoring.features[0][:batch])
        return made

    batches = [1 << k for k in range(8) if 1 << k <= params.largest]
    what = "scoring with and without exp"
    sweep = Sweep(variants, batches, what, label="{variant} {size}", together=True, calls=once)
    return SweepResult(
        timings=sweep.run(desk, params.seconds), counts={"gaussians": packed.n_gaussians}, texts={"model": params.model}
    )


def library_variants(gaussians: Array, features: Array) -> dict[str, Work]:
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

    return {LIBRARY_SUM: by_sum, LIBRARY_BEST: lambda: products().max(axis=3).sum(axis=0)}


def shares(result: SweepResult, whole: str, best: str) -> dict[int, Ratio | None]:
    timings = result.timings
    sizes = timings.sizes(whole) if whole in timings.seconds else []
    return {n: saved(timings.ratio(best, whole, n)) for n in sizes}


def judge(result: SweepResult) -> Finding:
    mine, library = shares(result, SUM, BEST), shares(result, LIBRARY_SUM, LIBRARY_BEST)
    numbers = {f"exp_share_at_{n}": value(share) for n, share in mine.items()}
    numbers |= result.timings.per_unit(frames_of).table(
        "ms_per_frame_at_{size}", milliseconds, [(SUM, n) for n in mine]
    )
    numbers |= {f"library_exp_share_at_{n}": value(share) for n, share in library.items()}
    first, last = min(mine), max(mine)
    why = (
        f"Without exponentials scoring saves {percent(mine[first])} of its time frame by frame and "
        f"{percent(mine[last])} in batches of {last}"
    )
    if library:
        most = max(library)
        why += f"; with numpy's own functions and their temporaries, {percent(library[most])} at {most}"
    return Finding(all_of(*(at_most(share, 0.5) for share in mine.values())), f"{why}.", numbers)


def picture(result: SweepResult) -> Chart:
    lines = [_share_line("the program's scorer", shares(result, SUM, BEST))]
    if library := shares(result, LIBRARY_SUM, LIBRARY_BEST):
        lines.append(_share_line("numpy, written plainly", library))
    per_frame = result.timings.per_unit(frames_of)
    times = (
        per_frame.line(SUM, "all Gaussians summed", milliseconds),
        per_frame.line(BEST, "the best Gaussian alone", milliseconds),
    )
    frames = Axis("frames scored together", log=True)
    by_time = Chart(frames, Axis("time per frame", "ms", log=True), times)
    half = Mark("half of the time", 50.0)
    return Chart(frames, Axis("share of exp in scoring", "%", low=0.0), (*lines, half), beside=(by_time,))


def _share_line(name: str, shares: dict[int, Ratio | None]) -> Line:
    return Line(name, tuple(map(float, shares)), *ratio_columns([scaled(share, 100) for share in shares.values()]))


LAB: Final = Lab(
    claim="exp is not what makes scoring by Gaussian mixtures slow.",
    source="note 0, the answer",
    group="scoring",
    measured="Real speech scored by a model of 5 126 senones × 42 Gaussians, exactly and with the best Gaussian "
    "of each mixture, which needs no exponentials. The difference is the cost of exponentials, logarithms and "
    "sums. The program's compiled scorer is compared with plain numpy, whose temporaries go through memory.",
    bound="It holds if exp takes less than half of the time at every number of frames. The claim gives no "
    "number; half is ours: what makes something slow takes most of its time.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: batch frames before you buy a faster exp; but once frames are batched, its share is worth a look.",
        FAILS: "So: a faster exp, or the best Gaussian instead of the sum, comes first here.",
    },
    bytes_needed=lambda params: 4 * 5126 * params.components * 81 * 3 + 4 * 16 * 5126 * params.components * 4,
)
