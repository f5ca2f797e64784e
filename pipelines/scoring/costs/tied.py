"""Cost laws of tied mixtures: kernels of `tied.kernels`, `top_n_kernels`, `listed`.

Work counts, each on the one stage where it arises: `gaussians` evaluated (one codebook, stream and density),
`exponentials`, mixture `components` summed (a weight times a density, per senone and stream), `senones` given a score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs import calls, frame_calls, per
from pipelines.scoring.gaussians.product import PARTS
from pipelines.scoring.simd.dot_products import ROWS
from pipelines.scoring.simd.vector import LANES
from profiler.costs import Cost

if TYPE_CHECKING:
    from pipelines.scoring.tied.packing import PackedGmm

LIST_CALLS, MIX_CALLS = 8, 3  # Calls of numpy that count a block's shortlists, and that count what they hold


def block_bytes(p: PackedGmm, frames: int) -> float:
    """Bytes that scoring a block goes through: Gaussians, weights, the densities between them.

    The parameters of a stage are read again only after all of it, so this is the working set, not the parameters alone.
    """
    densities = frames * p.n_codebooks * p.n_streams * p.padded_densities * FLOAT
    return float(p.gaussians.nbytes + p.weights.nbytes + densities)


def gaussians(p: PackedGmm, frames: int) -> Cost:
    """Law of `kernels.evaluate`: one product [n, 27] × [27, densities] per codebook and stream.

    Compulsory: the parameters once per call, each log density written. A codebook's parameters of one stream (14 kB)
    stay in the first cache for all frames, so the tiling only adds that a line is read before it is overwritten.
    """
    parameters, expanded = float(p.gaussians.nbytes), p.n_streams * p.expanded * FLOAT / p.n_gaussians
    operations = {"gemm": per(2.0 * p.expanded), "fma": per(2.0 * len(p.centre) / p.n_gaussians)}
    least, most = (per(times * FLOAT + expanded, fixed=parameters) for times in (1, 2))
    return Cost(operations, least, most, block_bytes(p, frames), calls=calls(2))


def bounded_gaussians(p: PackedGmm, frames: int) -> Cost:
    """Law of `top_n_kernels.bounded`: a sum and PARTS looks at the bound per panel; parameters anew for each frame."""
    each = p.expanded * FLOAT
    operations = {"fma": per(2.0 * p.expanded + 2.0 * PARTS)}
    least, most = per(each / frames), per(each + 2.0 * FLOAT, frame=2.0 * FLOAT * p.n_gaussians)
    return Cost(operations, least, most, block_bytes(p, frames), calls=calls(2))


def exponentials(p: PackedGmm, frames: int) -> Cost:
    """Law of `kernels.exponentiate`: a comparison, a subtraction and an exponential per density, in place.

    The second pass over a stream's 128 densities finds them in the first cache.
    """
    moved, densities = per(2.0 * FLOAT), float(frames * p.n_gaussians * FLOAT)
    return Cost({"exp": per(1.0), "fma": per(2.0)}, moved, moved, densities, calls=calls(1))


def mixtures(p: PackedGmm, frames: int) -> Cost:
    """Law of `kernels.mix`: one product [n, densities] × [densities, senones] per codebook and stream.

    Compulsory: the weights once per call, the exponentials and the likelihoods. The tiling streams the padded weights
    once per call: 32 senones' weights and likelihoods stay in the nearest caches for all frames, a codebook's
    exponentials for all its senones. A line of results is read before it is overwritten.
    """
    weights = float(p.n_streams * p.n_densities * p.n_senones * FLOAT)
    densities, results, written = p.n_gaussians * FLOAT, p.n_senones * FLOAT, 2 * p.columns * FLOAT
    operations = {"gemm": per(2.0), "fma": per((p.n_streams - 1) * p.n_senones / p.n_weights)}
    least = per((densities + results) / p.n_weights, fixed=weights)
    most = per((densities + written) / p.n_weights, fixed=float(p.weights.nbytes))
    return Cost(operations, least, most, block_bytes(p, frames), calls=calls(1))


def logarithms(p: PackedGmm, frames: int) -> Cost:
    """Law of `kernels.logarithms`: one logarithm and one addition per senone; likelihood read, score written.

    The kernel writes the logarithms back before it puts them into senone order: twice the traffic.
    """
    least, most = per(2.0 * FLOAT), per(4.0 * FLOAT)
    return Cost({"log": per(1.0), "fma": per(1.0)}, least, most, 2.0 * FLOAT * frames * p.n_senones, calls=calls(1))


def best_mixtures(p: PackedGmm) -> Cost:
    """Law of `kernels.mix_best`: an addition and a comparison per component.

    Compulsory: the weights once per call; at most they are read anew for every frame.
    """
    weights = float(p.n_weights * FLOAT)
    results = 3.0 * FLOAT / (p.n_streams * p.n_densities)
    padding = p.columns / p.n_senones
    least, most = per(results, fixed=weights), per((FLOAT + results) * padding, fixed=weights * padding)
    return Cost({"fma": per(2.0)}, least, most, weights * padding, calls=calls(1))


def lazy_mixtures(p: PackedGmm, frames: int) -> Cost:
    """Law of `kernels.mix_some`, by components, senones and weights read.

    A multiply-add per component; three products and a logarithm, whole vectors of them, per senone. Compulsory: a
    senone's weights once a call, the score written. At most also the exponentials once for every four senones, which
    lie in the first cache, and a line read for every score.
    """
    operations = {"fma": per(2.0, p.n_streams + 1.0), "log": per(0.0, 1.0)}
    least, most = per(0.0, FLOAT, FLOAT), per(FLOAT / ROWS, 64.0, FLOAT)
    working_set = float(p.dots.nbytes) + frames * p.n_gaussians * FLOAT
    return Cost(operations, least, most, working_set, calls=frame_calls())


def top_n(p: PackedGmm, keep: int, frames: int, kept_floats: int) -> dict[str, Cost]:
    """Laws of `top_n_kernels`, by stage: `keep` densities of each codebook and stream, `kept_floats` with padding.

    `select`: two comparisons per density (lane maxima, threshold), and the survivors one by one. `exponentiate_kept`:
    in place. `mix_kept`: a weighted sum of `keep` rows of weights per codebook and stream, each weight used once;
    compulsory are the rows of one frame, should all frames of the call keep the same densities.
    """
    selected, components = p.n_codebooks * p.n_streams * keep, p.n_senones * p.n_streams * keep
    per_selected, results = p.n_gaussians / selected, FLOAT * p.n_senones / components
    least, most = (per(FLOAT * (per_selected + times)) for times in (2, 4))
    operations = {"fma": per(2.0 * per_selected), "scalar": per(2.0)}
    select = Cost(operations, least, most, float(frames * p.n_gaussians * FLOAT), calls=calls(1))
    least, most = per(2.0 * FLOAT), per(2.0 * FLOAT * kept_floats / selected)
    exp = Cost({"exp": per(1.0)}, least, most, float(frames * kept_floats * FLOAT), calls=calls(1))
    least, most = per(results, fixed=float(components * FLOAT)), per((FLOAT + 2 * results) * p.columns / p.n_senones)
    operations = {"fma": per(2.0 + (p.n_streams - 1) * p.n_senones / components)}
    mixture = Cost(operations, least, most, block_bytes(p, frames), calls=calls(1))
    return {"score.select": select, "score.exp": exp, "score.mixture": mixture}


def listed(p: PackedGmm, mean_listed: float, frames: int) -> dict[str, Cost]:
    """Laws of the kernels of `listed`, by stage; `mean_listed`: densities on a shortlist, on average.

    Compulsory: what one frame needs, should all frames of a call need the same; at most each for itself. Lists are
    padded to sixteen.
    """
    each, densities = p.expanded * FLOAT, mean_listed * p.n_streams * p.n_codebooks
    senones = densities / p.n_codebooks * p.n_senones
    results = 2.0 * FLOAT * p.n_streams * p.columns / max(1.0, densities * p.n_senones / p.n_codebooks)
    least, most = per(each / frames), per(each + 2.0 * FLOAT)
    gaussians = Cost({"fma": per(2.0 * p.expanded)}, least, most, block_bytes(p, frames), calls=calls(1, LIST_CALLS))
    operations, working_set = {"exp": per(1.0), "fma": per(2.0)}, float(frames * densities * FLOAT)
    exp = Cost(operations, per(2.0 * FLOAT), per(2.0 * FLOAT * LANES), working_set, calls=calls(1, MIX_CALLS))
    least, most = per(FLOAT / frames), per(FLOAT * p.columns / p.n_senones + results)
    working_set = min(frames * senones * FLOAT, float(p.rows.nbytes))
    mixture = Cost({"fma": per(2.0)}, least, most, working_set, calls=calls(1, MIX_CALLS))
    return {"score.gaussians": gaussians, "score.exp": exp, "score.mixture": mixture}


def expanded_gaussians(p: PackedGmm, share: float, frames: int) -> Cost:
    """Law of `listed.evaluate_expanded`, a `share` of the panels expanded."""
    each = float(p.expanded * FLOAT)
    least, most = per(each / frames), per(each, frame=2.0 * FLOAT * p.n_gaussians)
    return Cost({"fma": per(2.0 * p.expanded)}, least, most, share * p.n_gaussians * each, calls=calls(1))
