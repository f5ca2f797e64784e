"""The Gaussian mixtures behind the transition model in `final.mdl`: one `DiagGmm` for each pdf (Kaldi's gmm/).

A Gaussian is kept as 1/σ² and μ/σ² per dimension, and its constants besides, which are computed again and compared.
"""

import math
from dataclasses import dataclass

import numpy as np

from pipelines.models.kaldi.binary import Reader
from profiler.arrays import F32, F64

MAX_DIMENSION = 1024
MAX_PDFS = 65_536  # the limit of a model definition
TOLERANCE = 0.01
"""Of a constant, in nat and of its size: float32 sums over some 40 dimensions were within 4e-5 in a real model."""
SUM_TOLERANCE = 0.01  # of the weights of a mixture


@dataclass(frozen=True, eq=False)
class Mixture:
    """One pdf: `weights` f32 [n]; `means`, `variances` f32 [n, dim]."""

    weights: F32
    means: F32
    variances: F32


def read(reader: Reader) -> list[Mixture]:
    """Read an AmDiagGmm from where `reader` stands, to the end of the file; ModelError when it is unsound."""
    dimension, count = header(reader)
    mixtures = [mixture(reader, f"pdf {pdf}", dimension) for pdf in range(count)]
    reader.finished("the last pdf")
    return mixtures


def header(reader: Reader) -> tuple[int, int]:
    """Dimensions, and number of pdfs."""
    reader.expect("<DIMENSION>")
    dimension = reader.integer("dimension", 1, MAX_DIMENSION)
    reader.expect("<NUMPDFS>")
    # None is shorter than its two tokens.
    return dimension, reader.integer("number of pdfs", 1, min(MAX_PDFS, reader.left // 20 + 1))


def mixture(reader: Reader, name: str, dimension: int) -> Mixture:
    reader.expect("<DiagGMM>", "<DiagGMMBegin>")
    kept = None
    if reader.expect("<GCONSTS>", "<WEIGHTS>") == "<GCONSTS>":
        kept = reader.vector(f"constants of {name}")
        reader.expect("<WEIGHTS>")
    weights = reader.vector(f"weights of {name}")
    reader.expect("<MEANS_INVVARS>")
    scaled = reader.matrix(f"means of {name}")
    reader.expect("<INV_VARS>")
    inverse = reader.matrix(f"variances of {name}")
    reader.expect("</DiagGMM>", "<DiagGMMEnd>")
    shape = len(weights), dimension
    if not len(weights) or scaled.shape != shape or inverse.shape != shape:
        reader.wrong(
            f"{name} has {len(weights)} weights, means {scaled.shape} and variances {inverse.shape} "
            f"for {dimension} dimensions"
        )
    if (inverse <= 0).any() or (weights < 0).any() or abs(float(weights.sum()) - 1) > SUM_TOLERANCE:
        reader.wrong(f"{name} has a variance that is not positive, or weights that do not add up to 1")
    with np.errstate(over="ignore"):
        made = Mixture(weights, scaled / inverse, np.reciprocal(inverse))
        if not (np.isfinite(made.means).all() and np.isfinite(made.variances).all()):
            reader.wrong(f"{name} has a mean or variance that is no finite number")
    if kept is not None:
        wanted = constants(made)
        finite = np.isfinite(wanted)
        if kept.shape != wanted.shape or (np.abs(kept - wanted) > TOLERANCE * (1 + np.abs(wanted)))[finite].any():
            reader.wrong(f"the constants of {name} are not those of its weights, means and variances")
    return made


def constants(mixture: Mixture) -> F64:
    """What a Gaussian's log density and weight amount to at x = 0, f64 [n]: −inf without weight."""
    variances, means = mixture.variances.astype(np.float64), mixture.means.astype(np.float64)
    with np.errstate(divide="ignore"):
        made: F64 = np.log(mixture.weights.astype(np.float64))
    made -= 0.5 * (means.shape[1] * math.log(2 * math.pi) + (np.log(variances) + means**2 / variances).sum(1))
    return made
