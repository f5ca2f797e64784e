"""Sparse nets: how small most weights are, and when leaving them out is quicker than multiplying by zero (note 1)."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config import Config, assign
from pipelines.labs.chart import Axis, Chart, Line, Mark
from pipelines.labs.declaration import Lab, NetName, Parameters, PublishedValue, Seconds, Words, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import SHARE, ci, counted, percent, value
from pipelines.labs.sweep import Cell, Sweep, SweepResult, Timings, Work
from pipelines.labs.verdicts import FAILS, HOLDS, Finding, Verdict, all_of, at_least
from profiler.arrays import F32

if TYPE_CHECKING:
    from pipelines.models.nets import Net

SMALL, SMALL_SHARE = 0.1, 0.7  # The note: 70 % of the weights are below 0.1
KEPT: Final = (2, 5, 10, 20, 30, 50, 70, 100)
"""Weights that are left, in %: the sizes of the sweep; a dense product has all of them."""

JUDGED: Final = 30  # What is left when 70 % are cut
DENSE: Final = ("simd", "blas")
SPARSE: Final = {"csr": "single weights (CSR)", "blocks": "blocks of 16"}
FRAMES: Final = (1, 16)
LIMITS: Final = tuple(float(v) for v in np.round(np.geomspace(0.001, 3.0, 36), 4))
"""Sizes of weights at which the distribution is recorded."""


class Params(Parameters, frozen=True, kw_only=True):
    net: NetName = "base"
    retrained: Annotated[str, setting("Retrained net", "The net that was pruned and then trained on.")] = "sparse"
    speech_s: Words = 30.0
    seconds: Seconds = 16.0


class SparseResult(SweepResult, frozen=True, kw_only=True):
    """Products by the share of weights left. `below`: share of each layer's weights smaller than LIMITS."""

    below: dict[str, list[float]]


def measure(params: Params, desk: Desk) -> SparseResult:
    from pipelines.experiments.audit import audits
    from pipelines.experiments.scoring_replay import spoken
    from pipelines.models import nets

    net = nets.load(nets.find(params.net))
    base = assign(Config(), {"model": "dnn", "dnn.net": params.net})
    configs = [
        assign(base, {"dnn.shrink": "sparse", "dnn.share": JUDGED / 100}),
        assign(base, {"dnn.net": params.retrained}),
    ]
    items = [item for item, _ in spoken(desk.speech(), params.speech_s)]
    with desk.part(0.0, 0.4):
        pruned, retrained = audits(configs, items, desk.progress, desk.stopping)
    what, label = "dense and sparse in turns", "{variant}, {size} % kept"
    sweep = Sweep(lambda kept: products_of(net, kept), KEPT, what, label, together=True)
    with desk.part(0.4, 1.0):
        timings = sweep.run(desk, params.seconds)
    whole = matrices(net)
    every = np.concatenate([weight.ravel() for weight in whole.values()])
    counts = {"whole": pruned.exact_count, "pruned": pruned.count, "retrained": retrained.count}
    return SparseResult(
        timings=timings,
        below={name: below(weight) for name, weight in whole.items()},
        counts={"small": float((np.abs(every) < SMALL).mean()), "words": pruned.exact_count.reference_words},
        by_variant={"word_errors": {name: count.errors for name, count in counts.items()}},
    )


def matrices(net: Net) -> dict[str, F32]:
    layers = {f"layer {i + 1}": net.tensors[f"layers.{i}.weight"] for i in range(len(net.card.layers))}
    return layers | {"output": net.tensors["heads.0.weight"]}


def below(weights: F32) -> list[float]:
    """Share of the weights whose size is below each of LIMITS."""
    ordered = np.sort(np.abs(weights), axis=None)
    return [float(n) / ordered.size for n in np.searchsorted(ordered, LIMITS)]


def variant(product: str, frames: int) -> str:
    """The name of a variant; its size is the share of the weights that is kept, in %."""
    return f"{product}, {frames} frames"


def products_of(net: Net, kept: int) -> dict[str, Work]:
    """The output layer with each share of its weights by every product, into arrays of their own; dense with all."""
    from pipelines.models import shrink
    from pipelines.scoring.dnn.products import PRODUCTS

    share = kept / 100
    nets = {"csr": shrink.sparse(net, share), "blocks": shrink.blocks(net, share)}
    if kept == max(KEPT):
        nets |= dict.fromkeys(DENSE, net)
    made: dict[str, Work] = {}
    draw = np.random.default_rng(0)
    for product, some in nets.items():
        weight, bias = some.head(0)
        whole = np.ascontiguousarray(np.column_stack([weight, bias]), np.float32)
        weights = PRODUCTS[product](whole, 1, max(FRAMES))
        for frames in FRAMES:
            x = draw.random((whole.shape[1], frames), np.float32)
            out = np.empty((len(whole), frames), np.float32)
            made[variant(product, frames)] = partial(weights.multiply, x, out)
    return made


def bytes_needed(params: Params) -> int:
    """The net some times over, whatever its size: the products of each share that is kept."""
    from pipelines.models import nets

    card = nets.read_card(nets.find(params.net).with_suffix(".json"))
    return 4 * card.n_parameters * (4 + 2 * len(KEPT))


def dense_best(timings: Timings, frames: int) -> Cell:
    return timings.fastest(timings.cells(variant(product, frames) for product in DENSE))


def judge(result: SparseResult) -> Finding:
    timings, small, frames = result.timings, result.counts["small"], FRAMES[-1]
    gains = {}
    for product, n in itertools.product(SPARSE, FRAMES):
        dense, whole = dense_best(timings, n)
        gains[product, n] = timings.ratio(dense, variant(product, n), whole, JUDGED)
    are_small: Verdict = HOLDS if small >= SMALL_SHARE else FAILS
    errors = {name: round(count) for name, count in result.by_variant["word_errors"].items()}
    why = (
        f"{percent(small)} of the weights are below {SMALL}. With {JUDGED} % of them left, single weights are "
        f"{ci(gains['csr', frames])} times as fast as dense in blocks of {frames} and {ci(gains['csr', 1])} times "
        f"frame by frame; blocks of 16 {ci(gains['blocks', frames])} and {ci(gains['blocks', 1])} times. Of "
        f"{result.counts['words']:.0f} words {counted(errors['whole'], 'is', 'are')} wrong before pruning, "
        f"{errors['pruned']} after it and {errors['retrained']} retrained."
    )
    numbers: dict[str, float | None] = {"below_0_1_share": small, "words": result.counts["words"]}
    numbers |= {f"{name}_word_errors": float(count) for name, count in errors.items()}
    for (product, n), gain in gains.items():
        numbers[f"{product}_gain_at_30_percent_{n}_frames"] = value(gain)
        numbers[f"{product}_break_even_kept_{n}_frames"] = break_even(timings, product, n)
    return Finding(all_of(are_small, at_least(gains["csr", frames], 1.0)), why, numbers)


def break_even(timings: Timings, product: str, frames: int) -> float | None:
    """The largest share kept at which the sparse product is quicker than dense; None if it never is."""
    dense = timings.time(*dense_best(timings, frames))
    name = variant(product, frames)
    quicker = [kept / 100 for kept in timings.sizes(name) if timings.time(name, kept) < dense]
    return max(quicker, default=None)


def picture(result: SparseResult) -> Chart:
    timings = result.timings

    def speed(product: str, n: int) -> Line:
        dense = timings.time(*dense_best(timings, n))
        name = f"{SPARSE[product]}, {counted(n, 'frame', 'frames')}"
        return timings.line(variant(product, n), name, lambda _, s: dense / s)

    lines = itertools.starmap(speed, itertools.product(SPARSE, FRAMES))
    weights = [Line(name, LIMITS, tuple(100 * v for v in shares)) for name, shares in result.below.items()]
    distribution = Chart(
        Axis("size of a weight", log=True),
        Axis("weights that are smaller", "%", low=0.0, high=100.0),
        (*weights, Mark(f"{SMALL}", SMALL, on="x"), Mark("claimed: 70 %", 70.0)),
        title="weights of each layer",
    )
    return Chart(
        Axis("weights kept", "%", log=True),
        Axis("speed beside the best dense product", "×", log=True),
        (*lines, Mark("dense", 1.0)),
        title="output layer",
        beside=(distribution,),
    )


LAB: Final = Lab(
    claim="Most weights of a net are small, 70 % of them below 0.1: cut these, retrain, and the net is faster.",
    source="note 1 (Yu, Seide, Li & Deng 2012)",
    group="scoring",
    measured="The distribution of a shipped net's weights; the time of its output layer dense, without the "
    "smallest single weights (CSR) and without the smallest blocks of 16, at every share that is kept; word "
    "errors of the net, of the pruned net and of the retrained one. The size of weights depends on the scale of "
    "the inputs; here features have unit variance. Training is the subject of another lab.",
    bound="Both parts must hold: 70 % of the weights are below 0.1, the claim's number, and with 30 % of them "
    "left the product is faster than a dense one in blocks of 16 frames.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: prune and retrain, and cut in blocks where you can: they pay at any share.",
        FAILS: "So: zeros alone save nothing; cut in blocks that fill a vector, or use a smaller net.",
    },
    published=(PublishedValue("weights below 0.1", SMALL_SHARE, SHARE, "below_0_1_share"),),
    bytes_needed=bytes_needed,
)
