"""Cost laws of continuous-density models: kernels of `continuous.kernels` and `listed`.

Work counts: `gaussians` evaluated (one senone, stream and component), `exponentials`, `senones` given a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.scoring.blocks import FLOAT, MAX_FRAMES
from pipelines.scoring.costs import WAITING, calls, frame_calls, per
from pipelines.scoring.gaussians.product import PARTS
from pipelines.scoring.simd.vector import LANES
from profiler.costs import Cost, Linear

if TYPE_CHECKING:
    from pipelines.scoring.continuous.packing import PackedContinuous
    from pipelines.scoring.gaussians.int8 import Int8Gaussians

FRAME_CALLS = 6  # Calls of numpy by `Int8Gaussians.frames`


def all_senones(p: PackedContinuous, frames: int) -> dict[str, Cost]:
    """Laws of `kernels.dense` for blocks of `frames` frames.

    The parameters come from memory once per call, which is compulsory; the log densities stay in the second cache
    until log-sum-exp takes them, those of all streams where they fit the tile together. The last group of senones may
    not be full: lanes are computed that nobody uses.
    """
    padding, rows = p.n_groups * LANES / p.n_senones, min(frames, p.frames_per_call)
    together = p.n_streams if rows * p.n_streams <= MAX_FRAMES else 1
    parameters = float(p.gaussians.nbytes)
    tile = float(rows * together * p.n_components * LANES * FLOAT)
    once = per(fixed=parameters)
    return {
        "score.gaussians": Cost({"gemm": per(2.0 * p.expanded * padding)}, once, once, parameters, calls=calls(2)),
        "score.lse": _log_sum_exp(p, padding, tile),
        "score.wait": WAITING,
    }


def some_senones(p: PackedContinuous, frames: int) -> dict[str, Cost]:
    """Laws of `kernels.some`: the parameters of each senone once per call, or anew for each frame of `frames`."""
    panels = -(-p.n_components // LANES)
    padding = panels * LANES / p.n_components
    each = p.expanded * FLOAT * padding
    row = float(p.n_streams * panels * LANES * FLOAT)
    products = {"gemm": per(2.0 * p.expanded * padding)}
    return {
        "score.gaussians": Cost(products, per(each / frames), per(each), p.n_gaussians * each, calls=frame_calls()),
        "score.lse": _log_sum_exp(p, padding, MAX_FRAMES * row),
        "score.wait": WAITING,
    }


def _log_sum_exp(p: PackedContinuous, padding: float, tile: float) -> Cost:
    """A maximum, a subtraction, an exponential and a sum per Gaussian; a logarithm per senone.

    Each log density is read from the cache; the second pass over a senone's finds them in the first.
    """
    operations = {"exp": per(padding), "fma": per(3.0 * padding, 2.0 * p.n_streams), "log": per(0.0, 1.0)}
    return Cost(operations, per(FLOAT, FLOAT), per(FLOAT * padding, 2.0 * FLOAT), tile)


def with_best(laws: Mapping[str, Cost], per_senone: float) -> dict[str, Cost]:
    """`laws` where a senone takes the best of its `per_senone` Gaussians, not their sum.

    A comparison for each, then a logarithm (of one) and an addition: `score.lse` counts by senones.
    """
    operations = {"fma": per(0.0, per_senone + 2.0), "log": per(0.0, 1.0)}
    least, most = (per(0.0, FLOAT * (per_senone + more)) for more in (1.0, 2.0))
    return {**laws, "score.lse": Cost(operations, least, most, laws["score.lse"].working_set_bytes)}


def chosen(
    p: PackedContinuous, frames: int, share: float, called: Mapping[str, Linear], eight: Int8Gaussians | None = None
) -> dict[str, Cost]:
    """Laws of `listed.queued` and `queued_of_bytes` when a `share` of the Gaussians is computed.

    Compulsory: the parameters of what one frame keeps, once a call, should all frames keep the same; at most each
    frame's for itself. `called`: calls that the Gaussians take; `eight`: where they are in 8 bits.
    """
    each = float(p.expanded * FLOAT if eight is None else eight.panels.shape[3] / LANES)
    operations = {"fma": per(2.0 * p.expanded)} if eight is None else _in_bytes(eight)
    working_set = min(frames * share, 1.0) * p.n_gaussians * each
    gaussians = Cost(operations, per(each / frames), per(each), working_set, calls=called)
    return all_senones(p, frames) | {"score.gaussians": gaussians}


def best_of_senones(p: PackedContinuous, frames: int, keep: int) -> dict[str, Cost]:
    """Laws of `kernels.eliminate`: the `keep` best components of each senone and stream.

    Besides its product a Gaussian costs a look at the bound for each part of it, and up to two comparisons for each
    place among the best. A group's panels are read from memory once a call: they fit the second cache.
    """
    full, each = all_senones(p, frames), float(p.expanded * FLOAT)
    operations = {"fma": per(2.0 * p.expanded + (2.0 * PARTS + 2.0 * keep))}
    law = replace(full["score.gaussians"], operations=operations, bytes_min=per(each / frames), bytes_max=per(each))
    return full | {"score.gaussians": law}


def gaussians_in_bytes(eight: Int8Gaussians, stored: float = 0.0) -> Cost:
    """Law of 8-bit Gaussians, all of them: parameters once a call, `stored` bytes written per Gaussian."""
    traffic = per(stored, fixed=float(eight.panels.nbytes))
    return Cost(_in_bytes(eight), traffic, traffic, traffic.fixed, calls=calls(2, FRAME_CALLS))


def _in_bytes(eight: Int8Gaussians) -> dict[str, Linear]:
    """Some 6 operations of 32 shorts for a pair of dimensions of 16 Gaussians, as float operations of 16 lanes."""
    return {"fma": per(6.0 * eight.pairs + 2.0)}
