"""Mixtures replaced by a look-up of the nearest codeword: what it saves, of what, and how wrong it is (note 0)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config import Config, assign
from pipelines.labs.chart import Axis, Chart, Line
from pipelines.labs.declaration import Compared, Gaussians, Lab, Parameters, Seconds, Singly, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import ci, percent, saved, scaled, value
from pipelines.labs.sweep import Sweep, SweepResult, key
from pipelines.labs.verdicts import FAILS, HOLDS, Finding, all_of, at_most
from profiler.arrays import Array

if TYPE_CHECKING:
    from pipelines.scoring.continuous import ContinuousGmm
    from pipelines.scoring.selection.vq_table import Table

FULL, BEST = "all Gaussians", "best Gaussian"
WAYS: Final = ("flat", "tree")  # Of finding a codeword; with the size of the codebook they are variants: "flat 16"
BLOCK: Final = 64  # Frames that are scored together where scores are compared


class Params(Parameters, frozen=True, kw_only=True):
    components: Gaussians = 42
    codewords: Annotated[int, setting("Codewords", "Codebooks go in powers of four up to it.", ge=16, le=4096)] = 1024
    speech_s: Compared = 7.0
    frames: Singly = 8
    seconds: Seconds = 15.0


def measure(params: Params, desk: Desk) -> SweepResult:
    """Exactly, by the best Gaussian, and by tables of several sizes; frame by frame, as in the note's time.

    By variant: `error`, mean |Δ| in nat near the best senone; `same_best`, a share; `bytes_read`, `exps` of a frame.
    """
    from pipelines.experiments.audit import NEAR_NAT
    from pipelines.labs._scoring import difference, features_of, middle
    from pipelines.models.opening import open_model
    from pipelines.scoring.continuous import ContinuousGmm, pack
    from pipelines.scoring.selection import vq_table

    config = assign(Config(), {"model": "continuous", "gmm.components": params.components})
    model = open_model(config, desk.progress, desk.stopping)
    features = features_of(model, desk, params.speech_s)
    family = ContinuousGmm(pack(model), 1)
    strategy = vq_table.Continuous(family)
    tables = {}
    for size in (4**k for k in range(2, 7) if 4**k <= params.codewords):
        gmm = assign(config, {"gmm.selection.codewords": size}).gmm
        tables[size] = strategy.needs(gmm).make(desk.progress, desk.stopping)
    scoring = scorers(family, tables)
    desk.progress("comparing the scores")
    speech = np.concatenate(features)
    exact, scores = (np.empty((len(speech), family.n_senones), np.float32) for _ in range(2))
    error, same = {}, {}
    for name, score in scoring.items():
        desk.check()
        into = exact if name == FULL else scores
        for at in range(0, len(speech), BLOCK):
            score(speech[at : at + BLOCK], into[at : at + BLOCK])
        error[name], same[name] = difference(into, exact, NEAR_NAT)
    few = middle(features, params.frames)
    row = np.empty((1, family.n_senones), np.float32)

    def one_by_one(score: Callable[[Array, Array], None]) -> None:
        for t in range(len(few)):
            score(few[t : t + 1], row)

    sweep = Sweep(
        lambda _: {name: partial(one_by_one, score) for name, score in scoring.items()},
        [params.frames],
        "look-ups in turns",
        label="{variant}",
        # One call of what is slow; of look-ups as many as last a millisecond or two.
        calls=lambda variant, frames: 1 if variant in (FULL, BEST) else 20,
    )
    gaussians = family.parameters.gaussians
    bytes_read = {name: float(gaussians.nbytes) for name in (FULL, BEST)}
    for size, table in tables.items():
        rows = float(table.scores[:, 0].nbytes)
        bytes_read[f"flat {size}"] = rows + table.codebook.panels.nbytes
        plane = table.codebook.planes[:, 0].nbytes + table.codebook.children[:, 0].nbytes
        bytes_read[f"tree {size}"] = rows + plane * float(np.log2(size))
    return SweepResult(
        timings=sweep.run(desk, params.seconds),
        by_variant={
            "codewords": {f"{variant} {size}": size for size in tables for variant in WAYS},
            "error": error,
            "same_best": same,
            "bytes_read": bytes_read,
            "exps": dict.fromkeys(scoring, 0.0) | {FULL: float(family.parameters.n_gaussians)},
        },
    )


def scorers(family: ContinuousGmm, tables: Mapping[int, Table]) -> dict[str, Callable[[Array, Array], None]]:
    """By variant, what fills scores f32 [n, senones] from features f32 [n, 39]."""
    from pipelines.scoring.blocks import Meter
    from pipelines.scoring.selection.vq_table import lookup

    def by_table(table: Table, variant: str, features: Array, scores: Array) -> None:
        words = np.empty((len(features), len(table.scores)), np.int32)
        find = table.codebook.descend if variant == "tree" else table.codebook.nearest
        find(family.expand(features), words)
        lookup(table.scores, words, scores)

    made: dict[str, Callable[[Array, Array], None]] = {
        FULL: lambda features, scores: family.score_all(features, scores, Meter()),
        BEST: lambda features, scores: family.score_all(features, scores, Meter(), best=True),
    }
    return made | {f"{variant} {size}": partial(by_table, tables[size], variant) for size in tables for variant in WAYS}


def codebooks(result: SweepResult) -> list[int]:
    return sorted({int(size) for size in result.by_variant["codewords"].values()})


def judge(result: SweepResult) -> Finding:
    timings, same_best = result.timings, result.by_variant["same_best"]
    size = codebooks(result)[-1]
    flat, tree = f"flat {size}", f"tree {size}"
    whole = timings.ratio(tree, FULL)
    by_exp = None  # Of what the look-up saves, the share that the best Gaussian alone saves too
    if whole is not None and whole.ratio < 1.0:
        by_exp = scaled(saved(timings.ratio(BEST, FULL)), 1 / (1.0 - whole.ratio))
    why = (
        f"Going down a tree of {size} codewords takes {ci(whole)} of the time of all Gaussians; exp makes up "
        f"{percent(by_exp)} of what that saves, the rest is Gaussians that are neither read nor computed. But only "
        f"{percent(same_best[tree])} of the frames keep their best senone (searched in full: "
        f"{percent(same_best[flat])}), and scores are off by {result.by_variant['error'][tree]:.2g} nat."
    )
    numbers: dict[str, float | None] = {"exp_share_of_saving": value(by_exp)}
    numbers |= timings.per_unit().table("{variant}_frame_s")
    for variant in timings.variants:
        name = key(variant)
        numbers[f"{name}_time_share"] = value(timings.ratio(variant, FULL))
        numbers[f"{name}_error_nat"] = result.by_variant["error"][variant]
        numbers[f"{name}_same_best"] = same_best[variant]
        numbers[f"{name}_bytes_per_frame"] = result.by_variant["bytes_read"][variant]
    return Finding(all_of(at_most(whole, 1.0), at_most(by_exp, 0.5)), why, numbers)


def picture(result: SweepResult) -> Chart:
    sizes, same_best = codebooks(result), result.by_variant["same_best"]
    size = sizes[-1]
    shown = [FULL, BEST, f"flat {size}", f"tree {size}"]
    times = result.timings.bars("time per frame", result.timings.cells(shown), lambda frames, s: 1e6 * s / frames)
    x = tuple(map(float, sizes))
    kept = [
        Line(name, x, tuple(100 * same_best[f"{variant} {k}"] for k in sizes))
        for variant, name in (("flat", "searched in full"), ("tree", "by the tree"))
    ]
    best = Line(BEST, x, (100 * same_best[BEST],) * len(sizes), dashed=True)
    names = (FULL, BEST, f"table, {size} words searched", f"table, tree of {size} words")
    right = Axis("frames with the same best senone", "%", low=0.0, high=100.0)
    by_size = Chart(Axis("codewords", log=True), right, (*kept, best))
    ways = Axis("way of scoring", categories=names)
    return Chart(ways, Axis("time per frame", "µs", log=True), (times,), beside=(by_size,))


LAB: Final = Lab(
    claim="Vector quantisation makes mixtures quick because it saves the Gaussians and their memory, not because it "
    "saves exp.",
    source="note 0, the answer (Saon, Povey & Zweig 2005)",
    group="scoring",
    measured="Frames scored one at a time with all Gaussians, with the best one of each mixture (no exp), and "
    "with a table of scores at the nearest codeword of each stream, found by full search and in a binary tree. "
    "The scores are compared with exact ones over real speech. The time to make the tables is left out.",
    bound="It holds if the look-up is faster and exp makes up less than half of what it saves. The claim gives "
    "no number; half is ours: the reason is what most of the saving comes from.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: save Gaussians by shortlists, which keep the scores; a table of scores alone is too coarse.",
        FAILS: "So: here the best Gaussian instead of the sum gains most of it, at little loss.",
    },
    bytes_needed=lambda params: 8 * 5126 * (params.components * 81 + 3 * params.codewords),
)
