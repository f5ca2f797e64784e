"""Frames scored together: time per frame and added waiting, for a net, for mixtures and for bare products (note 1)."""

from functools import partial
from typing import Annotated, Final

import numpy as np

from pipelines.config import Config, assign
from pipelines.labs.chart import Axis, Chart, Line
from pipelines.labs.declaration import Lab, NetName, Parameters, Seconds, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import ci, value
from pipelines.labs.sweep import Sweep, SweepResult, Timings, Work, key, milliseconds, once
from pipelines.labs.verdicts import FAILS, HOLDS, Finding, all_of, at_least

NET, MIXTURES = "net", "mixtures"
COLUMNS, ROWS = "numpy, frames as columns", "numpy, frames as rows"
VARIANTS: Final = (NET, MIXTURES, COLUMNS, ROWS)
FRAME_MS: Final = 10.0
FEW: Final = 8  # Frames that a turn of a scorer scores at least


class Params(Parameters, frozen=True, kw_only=True):
    largest: Annotated[
        int, setting("Largest batch", "Batches go in powers of two up to it.", unit="frames", ge=2, le=128)
    ] = 128
    net: NetName = "base"
    gaussians: Annotated[
        int, setting("Gaussians", "Gaussians of the bare product in numpy, 81 numbers each.", ge=1, le=1 << 22)
    ] = 168_000
    seconds: Seconds = 12.0


def measure(params: Params, desk: Desk) -> SweepResult:
    from pipelines.labs._scoring import Scoring

    batches = [1 << k for k in range(8) if 1 << k <= params.largest]
    most = max(FEW, batches[-1])
    net = Scoring(assign(Config(), {"model": "dnn", "dnn.net": params.net}), desk, frames=most)
    mixtures = Scoring(assign(Config(), {"model": "continuous"}), desk, frames=most)
    bare = products(params.gaussians, batches)

    def variants(batch: int) -> dict[str, Work]:
        return {
            NET: net.work({"block": batch}, max(FEW, batch)),
            MIXTURES: mixtures.work({"block": batch}, max(FEW, batch)),
            COLUMNS: bare[COLUMNS, batch],
            ROWS: bare[ROWS, batch],
        }

    sweep = Sweep(variants, batches, "batches in turns", label="{variant}, {size} frames", together=True, calls=once)
    return SweepResult(timings=sweep.run(desk, params.seconds), texts={"net": params.net})


def products(gaussians: int, batches: list[int]) -> dict[tuple[str, int], Work]:
    """Parameters [gaussians, 81] times frames, also with frames as rows: of a few libraries have no kernel for that."""
    draw = np.random.default_rng(0)
    weights = draw.standard_normal((gaussians, 81), np.float32)
    made: dict[tuple[str, int], Work] = {}
    room = np.empty(max(batches) * gaussians, np.float32)
    for n in batches:
        x = draw.standard_normal((n, 81), np.float32)
        columns, out = np.ascontiguousarray(x.T), room[: n * gaussians]
        by_column, by_row = out.reshape(gaussians, n), out.reshape(n, gaussians)
        made[COLUMNS, n] = partial(np.matmul, weights, columns, out=by_column)
        made[ROWS, n] = partial(np.matmul, x, weights.T, out=by_row)
    return made


def per_frame(result: SweepResult) -> Timings:
    few = result.timings.per_unit(lambda batch: max(FEW, batch)).seconds
    batch = result.timings.per_unit().seconds
    return Timings(seconds={v: few[v] if v in (NET, MIXTURES) else batch[v] for v in VARIANTS})


def waiting_ms(batch: int) -> float:
    """Return how long the first frame of a batch waits for the last, ms."""
    return FRAME_MS * (batch - 1)


def judge(result: SweepResult) -> Finding:
    frame = per_frame(result)
    batches = frame.sizes()
    best = {v: frame.fastest((v, n) for n in batches[1:])[1] for v in VARIANTS}
    gains = {v: frame.ratio(v, v, 1, best[v]) for v in VARIANTS}
    numbers = frame.table("{variant}_ms_per_frame_at_{size}", milliseconds)
    numbers |= {f"{key(variant)}_gain": value(gain) for variant, gain in gains.items()}
    numbers |= {f"{key(variant)}_best_batch": float(batch) for variant, batch in best.items()}
    numbers |= {f"added_latency_ms_at_{n}": waiting_ms(n) for n in batches}
    if 2 in batches:
        numbers["rows_two_over_one"] = value(frame.ratio(ROWS, ROWS, 2, 1))
    why = (
        f"The net is {ci(gains[NET])} times as fast in batches of {best[NET]} as frame by frame, the mixtures "
        f"{ci(gains[MIXTURES])} times in batches of {best[MIXTURES]}; the first frame of such a batch waits "
        f"{waiting_ms(best[NET]):.0f} and {waiting_ms(best[MIXTURES]):.0f} ms for the last."
    )
    verdict = all_of(at_least(gains[NET], 1.0), at_least(gains[MIXTURES], 1.0))
    return Finding(verdict, why, numbers)


def picture(result: SweepResult) -> Chart:
    frame = per_frame(result)
    names = {NET: f"net {result.texts['net']}", MIXTURES: "continuous mixtures"}
    lines = tuple(frame.line(v, names.get(v, v), milliseconds) for v in VARIANTS)
    batches = frame.sizes()
    waits = Line("until the last frame is there", tuple(map(float, batches)), tuple(waiting_ms(n) for n in batches))
    x = Axis("frames scored together", log=True)
    waiting = Chart(x, Axis("the first frame waits", "ms", low=0.0), (waits,))
    return Chart(x, Axis("time per frame", "ms", log=True), lines, beside=(waiting,))


LAB: Final = Lab(
    claim="Scoring several frames together turns vector × matrix into matrix × matrix and makes scoring faster.",
    source="note 1 (Vanhoucke, Senior & Mao 2011)",
    group="scoring",
    measured="Real speech scored by a net and by continuous mixtures in blocks of 1 to 128 frames, on one thread. For "
    "comparison, bare products of 168 000 × 81 parameters in numpy in both layouts; with frames as rows, two together "
    "can be slower than one alone. The latency of a block is computed, not measured: 10 ms per frame.",
    bound="It holds if the best batch is faster than one frame at a time, as the claim says. The claim gives no "
    "factor.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: score in blocks as large as the latency allows; 8 to 16 frames bring most of it.",
        FAILS: "So: score frame by frame here, and save the latency.",
    },
    # The bare product's weights and results, and the continuous model twice while it is packed.
    bytes_needed=lambda params: 4 * params.gaussians * (81 + params.largest) + 200_000_000,
)
