"""The i-vector extractor of a Kaldi net: the files of `ivector` (Vosk) or `ivector_extractor` (Kaldi).

`final.ie`: for each Gaussian g a matrix M, whose product with an i-vector is the mean, and the inverse Σ⁻¹ of its
covariance. `final.dubm`: the background model, a DiagGmm of as many Gaussians. `final.mat`: LDA of spliced cepstra.
`global_cmvn.stats`: statistics of the training data. The options are those of online2's `ivector_extractor.conf`,
`splice.conf` and `online_cmvn.conf`; files that the first names are looked for in the folder alone.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from pipelines.frontend import kaldi_parameters
from pipelines.frontend.ivector_parameters import VOSK_MAX_COUNT, IvectorModel, IvectorOptions
from pipelines.frontend.kaldi_parameters import WIDEST_CONTEXT
from pipelines.frontend.online_cmvn import LONGEST_WINDOW, CmvnOptions, OnlineCmvn
from pipelines.frontend.parameters import FeatureParameterError
from pipelines.models.errors import ModelError
from pipelines.models.kaldi import gmm
from pipelines.models.kaldi.binary import Reader, statistics, transform
from pipelines.models.sphinx.binary import LARGEST_TEXT, read_file
from profiler.arrays import F32
from profiler.files.inputs import there

FOLDERS: Final = ("ivector", "ivector_extractor")
FINAL: Final = "final.ie"
EXTRACTOR_CONF: Final = "ivector_extractor.conf"
CONFS: Final = (EXTRACTOR_CONF, "online_cmvn.conf", "splice.conf", "splice_opts")
STATISTICS: Final = "global_cmvn.stats"
FILES: Final = (
    *(f"{folder}/{name}" for folder in FOLDERS for name in (FINAL, "final.dubm", "final.mat", STATISTICS, *CONFS)),
    *(f"conf/{name}" for name in CONFS),
)
"""What decides the i-vectors."""
MOST_SELECTED: Final = 1000  # gaussians of a frame; Kaldi's default is 5
MAX_DIMENSION: Final = 1024  # of features and of i-vectors
MOST_VALUES: Final = 1 << 28  # of the tables that are computed from `final.ie`: a gigabyte
MOST_FILLED, FEW_VALUES = 16, 1 << 20
"""How many times the values of the file these may have, from a small model on; they take d / 2m times as many."""
WITHOUT_EFFECT: Final = frozenset(
    {
        *("lda-matrix", "global-cmvn-stats", "cmvn-config", "splice-config", "diag-ubm", "ivector-extractor"),
        *("max-remembered-frames", "use-most-recent-ivector", "print-args", "verbose"),
        *("ivector-period", "greedy-ivector-extractor"),
    }
)
"""Files; what is remembered of a speaker from one utterance to the next; when i-vectors are estimated."""
Options = TypeVar("Options")


@dataclass(frozen=True)
class Splice:
    """Frames that are spliced, with the defaults of Kaldi's OnlineSpliceOptions."""

    left_context: int = 4
    right_context: int = 4


def lies_in(directory: Path) -> bool:
    """Whether the model in `directory` has an i-vector extractor."""
    return any(there(directory / folder / FINAL) for folder in FOLDERS)


def read(directory: Path, cepstra: int) -> IvectorModel:
    """Read the extractor in `directory`, for frames of `cepstra` values; ModelError or FeatureParameterError."""
    folder = next(directory / name for name in FOLDERS if there(directory / name / FINAL))
    cmvn = online_cmvn(folder / STATISTICS, _options(directory, folder, CmvnOptions, "online_cmvn.conf"), cepstra)
    options = _options(directory, folder, IvectorOptions, EXTRACTOR_CONF)
    sound = 1 <= options.num_gselect <= MOST_SELECTED and 0 <= options.min_post < 0.5 and options.max_count >= 0
    if not (sound and 0 < options.posterior_scale <= 1):
        raise FeatureParameterError(
            f"{folder}: --num-gselect must lie within 1 and {MOST_SELECTED:,}, --min-post within 0 and 0.5, "
            "--posterior-scale within 0 and 1, and --max-count must not be negative."
        )
    splice = _options(directory, folder, Splice, "splice.conf", "splice_opts")
    left, right = splice.left_context, splice.right_context
    if not (0 <= left <= WIDEST_CONTEXT and 0 <= right <= WIDEST_CONTEXT):
        raise FeatureParameterError(f"{folder}: at most {WIDEST_CONTEXT} frames of context are spliced.")
    lda = transform(folder / "final.mat")
    m, columns = lda.shape
    spliced = cepstra * (left + 1 + right)
    if columns not in (spliced, spliced + 1):
        raise ModelError(
            f"{folder / 'final.mat'}: it takes {columns} values, {cepstra} cepstra spliced −{left} … +{right} are "
            f"{spliced}"
        )
    reader = Reader.of(folder / "final.dubm")
    background = gmm.mixture(reader, "the background model", m)
    reader.finished("the background model")
    projections, quadratics, offset = _extractor(folder / FINAL, len(background.weights), m)
    return IvectorModel(
        options=options,
        cmvn=cmvn,
        left_context=left,
        right_context=right,
        transform=lda,
        constants=gmm.constants(background).astype(np.float32),
        means_invvars=background.means / background.variances,
        inv_vars=np.reciprocal(background.variances),
        projections=projections,
        quadratics=quadratics,
        prior_offset=offset,
    )


def online_cmvn(path: Path, options: CmvnOptions, cepstra: int) -> OnlineCmvn:
    """Online CMVN with the global statistics in `path`; ModelError or FeatureParameterError where they do not fit."""
    found = statistics(path, "statistics")
    if found.shape != (2, cepstra + 1) or not found[0, -1] >= 1:
        raise ModelError(
            f"{path}: statistics of {cepstra} cepstra have 2 rows of {cepstra + 1} values and a count, found "
            f"{found.shape[0]} × {found.shape[1]}"
        )
    try:
        skipped = options.skipped
    except ValueError:
        skipped = [-1]
    sound = 1 <= options.cmn_window <= LONGEST_WINDOW and 0 <= options.global_frames <= options.cmn_window
    if not sound or not all(0 <= column < cepstra for column in skipped):
        raise FeatureParameterError(
            f"{path}: --cmn-window must lie within 1 and {LONGEST_WINDOW:,}, --global-frames must not exceed it, and "
            f"--skip-dims must be numbers below {cepstra} such as 0:1."
        )
    if options.norm_vars and not options.norm_means:
        raise FeatureParameterError(f"{path}: --norm-vars needs --norm-means.")
    return OnlineCmvn(found, options)


def _extractor(path: Path, gaussians: int, m: int) -> tuple[F32, F32, float]:
    """Σ⁻¹M f32 [gaussians, m, d], lower triangles of MᵀΣ⁻¹M f32 [gaussians, d(d+1)/2], offset of the prior."""
    reader = Reader.of(path)
    reader.expect("<IvectorExtractor>")
    reader.expect("<w>")
    if reader.matrix("projections of the weights").size:
        reader.wrong("its weights depend on the i-vector, which Kaldi's online extraction does not have either")
    reader.expect("<w_vec>")
    reader.vector("weights")
    reader.expect("<M>")
    reader.integer("number of Gaussians", gaussians, gaussians)
    matrices = [reader.matrix(f"matrix of Gaussian {g}") for g in range(gaussians)]
    d = matrices[0].shape[1]
    if not 1 <= d <= MAX_DIMENSION or m > MAX_DIMENSION or any(each.shape != (m, d) for each in matrices):
        reader.wrong(f"a matrix is not {m} × {d}, or larger than {MAX_DIMENSION:,}")
    triangle = d * (d + 1) // 2
    given, made = (gaussians * count for count in (m * d, m * d + triangle))
    if made > min(MOST_VALUES, max(MOST_FILLED * given, FEW_VALUES)):
        reader.wrong(
            f"{gaussians:,} Gaussians of {m} dimensions and i-vectors of {d} values give tables of {made:,} values, "
            f"over {MOST_FILLED} times those of the file or over {MOST_VALUES:,}"
        )
    reader.expect("<SigmaInv>")
    projections = np.empty((gaussians, m, d), np.float32)
    quadratics = np.empty((gaussians, triangle), np.float32)
    lower = np.tril_indices(d)
    for g, means in enumerate(matrices):
        inverse = reader.symmetric(f"inverse covariance of Gaussian {g}", MAX_DIMENSION).astype(np.float64)
        if inverse.shape != (m, m):
            reader.wrong(f"the inverse covariance of Gaussian {g} has {len(inverse)} rows, its mean has {m}")
        scaled = inverse @ means
        with np.errstate(over="ignore"):
            projections[g] = scaled
            quadratics[g] = (means.T.astype(np.float64) @ scaled)[lower]
    if not (np.isfinite(projections).all() and np.isfinite(quadratics).all()):
        reader.wrong("a matrix has values that are too large")
    reader.expect("<IvectorOffset>")
    offset = reader.real("offset of the prior")
    reader.expect("</IvectorExtractor>")
    reader.finished("the extractor")
    return projections, quadratics, offset


def _options(directory: Path, folder: Path, kind: type[Options], *names: str) -> Options:
    """The options of the first file of these names that there is; of i-vectors without one, Vosk's."""
    path = next((path for name in names for path in (folder / name, directory / "conf" / name) if there(path)), None)
    if path is None:
        made = kind()
        return replace(made, max_count=VOSK_MAX_COUNT) if isinstance(made, IvectorOptions) else made
    # Often there is nothing in it but a comment.
    text = read_file(path, LARGEST_TEXT, may_be_empty=True).decode("utf-8", "replace")
    options = kaldi_parameters.options_of(text, str(path))
    return kind(**kaldi_parameters.values_of(kind, options, str(path), WITHOUT_EFFECT))
