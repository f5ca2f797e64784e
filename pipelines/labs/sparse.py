"""Sparse nets: how small most weights are, and when leaving them out is quicker than multiplying by zero (note 1)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config.options import setting
from pipelines.labs import figures
from pipelines.labs._parameters import NetName, Rounds, Words
from pipelines.labs.chart import Axis, Chart, Line, Mark
from pipelines.labs.declaration import Lab, Measured, Parameters, Said
from pipelines.labs.figures import ratio, value
from pipelines.labs.texts import SHARE, counted, percent, told
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, Verdict, all_of, at_least
from profiler.arrays import F32

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk
    from pipelines.models.nets import Net

SMALL: Final = 0.1
SMALL_SHARE: Final = 0.7
"""The note: 70 % of the weights are below 0.1."""

KEPT: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
JUDGED: Final = 0.3
"""What is left when 70 % are cut."""

DENSE: Final = ("simd", "blas")
SPARSE: Final = {"csr": "single weights (CSR)", "blocks": "blocks of 16"}
FRAMES: Final = (1, 16)
LIMITS: Final = tuple(float(v) for v in np.round(np.geomspace(0.001, 3.0, 36), 4))
"""Sizes of weights at which the distribution is told."""


class Given(Parameters, frozen=True, kw_only=True):
    """The net, and for how long."""

    net: NetName = "base"
    retrained: Annotated[
        str, setting("Retrained net", "The net that was pruned and then trained on.")
    ] = "sparse"
    speech_s: Words = 30.0
    seconds: Rounds = 16.0


class Found(Measured, frozen=True, kw_only=True):
    """`below`: share of each layer's weights smaller than LIMITS; seconds of the output layer by "product, N frames"
    and "product, kept, N frames"; word errors of the net, pruned and retrained, of `words`."""

    below: dict[str, list[float]]
    small: float
    seconds: dict[str, list[float]]
    word_errors: dict[str, int]
    words: int


def measure(given: Given, desk: Desk) -> Found:
    """Weights, words, and products of the output layer in turns."""
    from pipelines.config import Config, assign
    from pipelines.experiments.audit import audits
    from pipelines.experiments.scoring_replay import spoken
    from pipelines.models import nets

    net = nets.load(nets.find(given.net))
    base = assign(Config(), {"model": "dnn", "dnn.net": given.net})
    configs = [
        assign(base, {"dnn.shrink": "sparse", "dnn.share": JUDGED}),
        assign(base, {"dnn.net": given.retrained}),
    ]
    items = [item for item, _ in spoken(desk.speech(), given.speech_s)]
    with desk.part(0.0, 0.4):
        pruned, retrained = audits(configs, items, desk.progress, desk.stopping)
    with desk.part(0.4, 1.0):
        arms = products_of(net)
        seconds = desk.turns(arms, seconds=given.seconds, what="dense and sparse in turns")
    return Found(
        below={name: below(weight) for name, weight in matrices(net).items()},
        small=share_below(np.concatenate([w.ravel() for w in matrices(net).values()]), SMALL),
        seconds=seconds,
        word_errors={
            "whole": pruned.exact_count.errors,
            "pruned": pruned.count.errors,
            "retrained": retrained.count.errors,
        },
        words=pruned.exact_count.reference_words,
    )


def matrices(net: Net) -> dict[str, F32]:
    """The weights of a net layer by layer, from the input on, as they were trained; of its heads the first."""
    layers = {
        f"layer {i + 1}": net.tensors[f"layers.{i}.weight"] for i in range(len(net.card.layers))
    }
    return layers | {"output": net.tensors["heads.0.weight"]}


def share_below(weights: F32, limit: float) -> float:
    """Share of the weights whose size is below `limit`."""
    return float((np.abs(weights) < limit).mean())


def below(weights: F32) -> list[float]:
    """Share of the weights below each of LIMITS."""
    ordered = np.sort(np.abs(weights), axis=None)
    found: list[float] = (np.searchsorted(ordered, LIMITS) / ordered.size).tolist()
    return found


def arm(product: str, frames: int, kept: float = 1.0) -> str:
    """The name of an arm."""
    share = "" if product in DENSE else f"{kept:.0%} kept, "
    return f"{product}, {share}{frames} frames"


def products_of(net: Net) -> dict[str, partial[None]]:
    """The output layer by every product, at every share that is kept, into arrays of their own."""
    from pipelines.models import shrink
    from pipelines.scoring.dnn import products

    most = max(FRAMES)
    arms = {}
    draw = np.random.default_rng(0)

    def put(product: str, some: Net, kept: float) -> None:
        weight, bias = some.head(0)
        whole = np.ascontiguousarray(np.column_stack([weight, bias]), np.float32)
        made = products.create(product, whole, 1, most)
        for frames in FRAMES:
            x = draw.random((whole.shape[1], frames), np.float32)
            out = np.empty((len(whole), frames), np.float32)
            arms[arm(product, frames, kept)] = partial(made.multiply, x, out)

    for product in DENSE:
        put(product, net, 1.0)
    for kept in KEPT:
        put("csr", shrink.sparse(net, kept), kept)
        put("blocks", shrink.blocks(net, kept), kept)
    return arms


def bytes_needed(given: Given) -> int:
    """The net some times over, whatever its size: the products of each share that is kept."""
    from pipelines.models import nets

    card = nets.read_card(nets.find(given.net).with_suffix(".json"))
    return 4 * card.n_parameters * (4 + 2 * len(KEPT))


def dense_best(found: Found, frames: int) -> str:
    """The quicker of the dense products."""
    return min((arm(p, frames) for p in DENSE), key=lambda n: figures.seconds(found.seconds[n]))


def judge(found: Found) -> Finding:
    """70 % of the weights are below 0.1, and with 30 % left CSR is quicker than dense in blocks of 16."""
    frames = FRAMES[-1]
    gains = {
        (product, n): ratio(
            found.seconds[dense_best(found, n)], found.seconds[arm(product, n, JUDGED)]
        )
        for product in SPARSE
        for n in FRAMES
    }
    are_small: Verdict = HOLDS if found.small >= SMALL_SHARE else FAILS
    verdict = all_of(are_small, at_least(gains["csr", frames], 1.0))
    errors = found.word_errors
    why = (
        f"{percent(found.small)} of the weights are below {SMALL}. With {percent(JUDGED)} of them left, "
        f"single weights are {told(gains['csr', frames])} times as fast as dense in blocks of {frames} "
        f"and {told(gains['csr', 1])} times frame by frame; blocks of 16 {told(gains['blocks', frames])} "
        f"and {told(gains['blocks', 1])} times. Of {found.words} words "
        f"{counted(errors['whole'], 'is', 'are')} wrong before pruning, {errors['pruned']} "
        f"after it and {errors['retrained']} retrained."
    )
    numbers: dict[str, float | None] = {
        "below_0_1_share": found.small,
        "words": float(found.words),
        **{f"{name}_word_errors": float(count) for name, count in errors.items()},
    }
    for (product, n), gain in gains.items():
        numbers[f"{product}_gain_at_30_percent_{n}_frames"] = value(gain)
        numbers[f"{product}_break_even_kept_{n}_frames"] = break_even(found, product, n)
    return Finding(verdict, why, numbers)


def break_even(found: Found, product: str, frames: int) -> float | None:
    """The largest share kept at which the sparse product is quicker than dense; None if it never is."""
    dense = figures.seconds(found.seconds[dense_best(found, frames)])
    quicker = [k for k in KEPT if figures.seconds(found.seconds[arm(product, frames, k)]) < dense]
    return max(quicker, default=None)


def picture(found: Found) -> Chart:
    """Speed beside dense by the share that is kept; beside it the distribution of the weights."""
    lines = []
    for product, name in SPARSE.items():
        for n in FRAMES:
            dense = figures.seconds(found.seconds[dense_best(found, n)])
            rows = [
                figures.between(found.seconds[arm(product, n, k)], lambda s, d=dense: d / s)  # type: ignore[misc]
                for k in KEPT
            ]
            label = f"{name}, {n} frame{'s' if n > 1 else ''}"
            lines.append(Line(label, tuple(100 * k for k in KEPT), *figures.columns(rows)))
    weights = [
        Line(name, LIMITS, tuple(100 * v for v in shares)) for name, shares in found.below.items()
    ]
    return Chart(
        Axis("weights kept", "%", log=True),
        Axis("speed beside the best dense product", "×", log=True),
        (*lines, Mark("dense", 1.0)),
        title="output layer",
        beside=(
            Chart(
                Axis("size of a weight", log=True),
                Axis("weights that are smaller", "%", low=0.0, high=100.0),
                (*weights, Mark(f"{SMALL}", SMALL, on="x"), Mark("claimed: 70 %", 70.0)),
                title="weights of each layer",
            ),
        ),
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
    parameters=Given(),
    stored=Found,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: prune and retrain, and cut in blocks where you can: they pay at any share.",
        FAILS: "So: zeros alone save nothing; cut in blocks that fill a vector, or use a smaller net.",
        UNDECIDED: "So: take more rounds (--set seconds=60), with nothing else running.",
    },
    said=(Said("weights below 0.1", SMALL_SHARE, SHARE, "below_0_1_share"),),
    bytes_needed=bytes_needed,
)
