"""Frames scored together: time per frame and added waiting, for a net, for mixtures and for bare products (note 1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config.options import setting
from pipelines.labs import figures
from pipelines.labs._parameters import NetName, Rounds
from pipelines.labs.chart import Axis, Chart, Line
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.figures import line, ratio, value
from pipelines.labs.texts import told
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, all_of, at_least

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk

NET, MIXTURES = "net", "mixtures"
COLUMNS, ROWS = "numpy, frames as columns", "numpy, frames as rows"
FRAME_MS: Final = 10.0
FEW: Final = 8
"""Frames that a turn scores at least."""


class Given(Parameters, frozen=True, kw_only=True):
    """What is batched, and how far."""

    largest: Annotated[
        int,
        setting(
            "Largest batch", "Batches go in powers of two up to it.", unit="frames", ge=2, le=128
        ),
    ] = 128
    net: NetName = "base"
    gaussians: Annotated[
        int,
        setting(
            "Gaussians",
            "Gaussians of the bare product in numpy, 81 numbers each.",
            ge=1,
            le=1 << 22,
        ),
    ] = 168_000
    seconds: Rounds = 12.0


class Found(Measured, frozen=True, kw_only=True):
    """Seconds by "what, N frames"; `frames` of a call by the same names; `net`: which."""

    net: str
    batches: list[int]
    seconds: dict[str, list[float]]
    frames: dict[str, int]


def measure(given: Given, desk: Desk) -> Found:
    """The scorers of the program in blocks of every size, and bare products in both layouts."""
    from pipelines.config import Config, assign
    from pipelines.labs._scoring import Scoring

    batches = [1 << k for k in range(8) if 1 << k <= given.largest]
    most = max(FEW, batches[-1])
    net = Scoring(assign(Config(), {"model": "dnn", "dnn.net": given.net}), desk, frames=most)
    mixtures = Scoring(assign(Config(), {"model": "continuous"}), desk, frames=most)
    arms: dict[str, Callable[[], object]] = {}
    frames: dict[str, int] = {}
    bare = products(given.gaussians, batches)
    for n in batches:
        count = max(FEW, n)
        arms[f"{NET}, {n} frames"] = net.arm({"block": n}, count)
        arms[f"{MIXTURES}, {n} frames"] = mixtures.arm({"block": n}, count)
        frames |= {f"{what}, {n} frames": count for what in (NET, MIXTURES)}
        for what in (COLUMNS, ROWS):
            arms[f"{what}, {n} frames"] = bare[what, n]
            frames[f"{what}, {n} frames"] = n
    inner = dict.fromkeys(arms, 1)
    seconds = desk.turns(arms, seconds=given.seconds, inner=inner, what="batches in turns")
    return Found(net=given.net, batches=batches, seconds=seconds, frames=frames)


def products(gaussians: int, batches: list[int]) -> dict[tuple[str, int], Callable[[], object]]:
    """Parameters [gaussians, 81] times frames, in the two layouts: the library finds one of them harder.

    Small batches as rows are the trap: a few rows by a transposed matrix, for which libraries have no kernel.
    """
    draw = np.random.default_rng(0)
    weights = draw.standard_normal((gaussians, 81), np.float32)
    made: dict[tuple[str, int], Callable[[], object]] = {}
    room = np.empty(max(batches) * gaussians, np.float32)
    for n in batches:
        x = draw.standard_normal((n, 81), np.float32)
        columns, out = np.ascontiguousarray(x.T), room[: n * gaussians]
        by_column, by_row = out.reshape(gaussians, n), out.reshape(n, gaussians)
        made[COLUMNS, n] = partial(np.matmul, weights, columns, out=by_column)
        made[ROWS, n] = partial(np.matmul, x, weights.T, out=by_row)
    return made


def bytes_needed(given: Given) -> int:
    """The bare product's weights and results, and the continuous model twice while it is packed."""
    return 4 * given.gaussians * (81 + given.largest) + 200_000_000


def per_frame(found: Found, what: str, n: int) -> list[float]:
    """Seconds per frame by round."""
    name = f"{what}, {n} frames"
    return [t / found.frames[name] for t in found.seconds[name]]


def best_batch(found: Found, what: str) -> int:
    """The batch of more than one frame in which a frame takes least."""
    return min(found.batches[1:], key=lambda n: figures.seconds(per_frame(found, what, n)))


def judge(found: Found) -> Finding:
    """Both scorers are quicker by their best batch than frame by frame."""
    numbers: dict[str, float | None] = {}
    gains = {}
    best = {}
    for what in (NET, MIXTURES, COLUMNS, ROWS):
        best[what] = best_batch(found, what)
        times = {"one": per_frame(found, what, 1), "best": per_frame(found, what, best[what])}
        gains[what] = ratio(times["one"], times["best"])
        key = what.replace(", ", "_").replace(" ", "_")
        numbers[f"{key}_gain"] = value(gains[what])
        numbers[f"{key}_best_batch"] = float(best[what])
        for n in found.batches:
            numbers[f"{key}_ms_per_frame_at_{n}"] = 1e3 * figures.seconds(per_frame(found, what, n))
    for n in found.batches:
        numbers[f"added_latency_ms_at_{n}"] = FRAME_MS * (n - 1)
    verdict = all_of(at_least(gains[NET], 1.0), at_least(gains[MIXTURES], 1.0))
    if 2 in found.batches:
        trap = ratio(per_frame(found, ROWS, 2), per_frame(found, ROWS, 1))
        numbers["rows_two_over_one"] = value(trap)
    why = (
        f"The net is {told(gains[NET])} times as fast in batches of {best[NET]} as frame by frame, the mixtures "
        f"{told(gains[MIXTURES])} times in batches of {best[MIXTURES]}; the first frame of such a batch waits "
        f"{FRAME_MS * (best[NET] - 1):.0f} and {FRAME_MS * (best[MIXTURES] - 1):.0f} ms for the last."
    )
    return Finding(verdict, why, numbers)


def picture(found: Found) -> Chart:
    """Time per frame by batch; beside it how long the first frame waits."""
    lines = [
        line(
            name,
            found.batches,
            [per_frame(found, what, n) for n in found.batches],
            lambda _, s: 1e3 * s,
        )
        for what, name in (
            (NET, f"net {found.net}"),
            (MIXTURES, "continuous mixtures"),
            (COLUMNS, COLUMNS),
            (ROWS, ROWS),
        )
    ]
    x = Axis("frames scored together", log=True)
    waits = Line(
        "until the last frame is there",
        tuple(map(float, found.batches)),
        tuple(FRAME_MS * (n - 1) for n in found.batches),
    )
    return Chart(
        x,
        Axis("time per frame", "ms", log=True),
        tuple(lines),
        beside=(Chart(x, Axis("the first frame waits", "ms", low=0.0), (waits,)),),
    )


LAB: Final = Lab(
    claim="Scoring several frames together turns vector × matrix into matrix × matrix and makes scoring faster.",
    source="note 1 (Vanhoucke, Senior & Mao 2011)",
    group="scoring",
    measured="Real speech scored by a net and by continuous mixtures in blocks of 1 to 128 frames, on one "
    "thread. For comparison, bare products of 168 000 × 81 parameters in numpy in both layouts; with frames as "
    "rows, two together can be slower than one alone. The latency of a block is computed, not measured: 10 ms "
    "per frame.",
    bound="It holds if the best batch is faster than one frame at a time, as the claim says. The claim gives no "
    "factor.",
    parameters=Given(),
    stored=Found,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: score in blocks as large as the latency allows; 8 to 16 frames bring most of it.",
        FAILS: "So: score frame by frame here, and save the latency.",
        UNDECIDED: "So: take more rounds (--set seconds=60), with nothing else running.",
    },
    bytes_needed=bytes_needed,
)
