"""A CMUSphinx acoustic model directory put together and checked.

Phonetically tied mixtures (PTM): one codebook of Gaussians per CI phone and stream; every senone of that phone mixes
the same Gaussians with weights of its own. Semi-continuous: one codebook for all. Continuous: one for each senone.
"""

import importlib.util
import math
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipelines.frontend.dynamic import in_order, layout, spec_of
from pipelines.frontend.ivector_parameters import PLAIN, IvectorModel, Pacing
from pipelines.frontend.kaldi_parameters import KaldiFeatures
from pipelines.frontend.online_cmvn import OnlineCmvn
from pipelines.frontend.parameters import FeatureParameters, notes_of, options_of
from pipelines.models.ctc.net import Ctc
from pipelines.models.errors import ModelError
from pipelines.models.nnet3 import Net
from pipelines.models.sphinx import definition as definitions
from pipelines.models.sphinx import parameters
from pipelines.models.sphinx.binary import LARGEST_TEXT, checksum, read_file
from pipelines.models.sphinx.definition import STATES, ModelDefinition
from profiler.arrays import I32, U8, Array, Bool
from profiler.files.inputs import there

MAX_CODEBOOKS = 256  # pocketsphinx' own limit for PTM
MAX_TIED_STREAMS = 4  # Of a model whose senones share Gaussians; s2_4x has as many, and no other form has more
NO_DENSITY = 1 / (2 * math.pi)
"""Variance of a dimension that only fills a stream up: with mean and feature 0 the log density there is 0."""


@dataclass(frozen=True, eq=False)
class Kaldi:
    """Of a Kaldi model: its `features`, and int32 [transition-ids + 1], the pdf of each, which its graph names.

    Of a net also what extracts `ivectors`, and online `cmvn` of its input, if it has them; the `net` itself, and in
    which steps (`pacing`). `silent` bool [pdfs]: those that only phones of silence have.
    """

    features: KaldiFeatures
    pdfs: I32
    ivectors: IvectorModel | None = None
    cmvn: OnlineCmvn | None = None
    net: Net | None = None
    pacing: Pacing = PLAIN
    silent: Bool | None = None

    def phones(self, pdfs: int) -> tuple[U8, Bool]:
        """What a graph of its own knows of phones: of each pdf 1 for silence, else 0; and that 1 is a filler."""
        silent = np.zeros(pdfs, bool) if self.silent is None else self.silent
        return silent.astype(np.uint8), np.array([False, True])


@dataclass(frozen=True, eq=False)
class AcousticModel:
    """The parameters of one acoustic model, as probabilities and variances.

    `means`, `variances`: f32 [codebooks, streams, densities, dim], of most models 3 streams of 13 or 1 of 39; where
    streams differ, narrow ones are filled up with dimensions that change no density; `widths`: what each has of its
    own; `weights`: f32 [streams, densities, senones]; `transitions`: f32 [matrices, 3, 4]; `senone_codebook`: int32
    [senones]; `kind`: "ptm", "semi" or "continuous"; `feat_params`: the options of `feat.params` without their dash;
    `transform`: f32 [m, n] of `feature_transform` (LDA), or None; `checksum`: SHA-256 over the files, for caches;
    `origin`: in words; `notes`: a sentence for each thing in the folder that is ignored. `kaldi`: what the features and
    the graph of a Kaldi model need. `ctc`: a CTC net, whose units take the place of senones, without parameters.
    """

    directory: Path
    kind: str
    mdef: ModelDefinition
    means: Array
    variances: Array
    weights: Array
    checksum: str
    transitions: Array = field(default_factory=lambda: np.empty((0, STATES, STATES + 1), np.float32))
    senone_codebook: Array = field(default_factory=lambda: np.empty(0, np.int32))
    feat_params: dict[str, str] = field(default_factory=dict)
    widths: tuple[int, ...] = ()
    transform: Array | None = None
    origin: str = ""
    notes: tuple[str, ...] = ()
    kaldi: Kaldi | None = None
    ctc: Ctc | None = None

    @property
    def n_codebooks(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_streams(self) -> int:
        return int(self.means.shape[1])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1] * self.means.shape[3])

    @property
    def is_continuous(self) -> bool:
        return self.kind == "continuous"

    @property
    def n_densities(self) -> int:
        return int(self.means.shape[2])

    @property
    def subsampling(self) -> int:
        if self.ctc is not None:
            return self.ctc.input.each
        return 1 if self.kaldi is None else self.kaldi.pacing.subsampling

    @property
    def n_senones(self) -> int:
        return self.mdef.n_senones


def default_directory() -> Path:
    """The US-English PTM model that the pocketsphinx package carries."""
    spec = importlib.util.find_spec("pocketsphinx")
    if spec is None or not spec.submodule_search_locations:
        raise ModelError("the package pocketsphinx, which carries the default model, is missing")
    return Path(next(iter(spec.submodule_search_locations))) / "model" / "en-us" / "en-us"


def load(directory: Path | str) -> AcousticModel:
    """Read a model directory and check that its files agree; ModelError says what does not."""
    directory = Path(directory)
    if not directory.is_dir():
        raise ModelError(f"{directory} is not a directory; an acoustic model is a directory")
    if not os.path.lexists(directory / "feat.params"):
        within = sorted(found.parent for found in directory.glob("*/feat.params"))
        hint = f"did you mean {within[0]}?" if within else "the model directory needs it"
        raise ModelError(f"{directory / 'feat.params'} is missing; {hint}")
    feat_params = read_feat_params(directory / "feat.params")
    path = directory / "feature_transform"
    transform = parameters.read_transform(path) if there(path) else None
    if transform is None and "lda" in feat_params:
        raise ModelError(f"{path} is missing; -lda in feat.params says that the features are transformed by it")
    definition = definitions.read(directory / "mdef")
    means = parameters.read_gaussians(directory / "means", "means")
    variances = parameters.read_variances(directory / "variances")
    feat_params = _as_parted(directory, feat_params, transform, means.shape[2])
    if variances.shape != means.shape:
        raise ModelError(f"{directory / 'variances'} has the shape {variances.shape}, means has {means.shape}")
    kind, senones = _kind(directory / "means", definition, means), definition.n_senones
    transitions = parameters.read_transitions(directory / "transition_matrices")
    if transitions.shape != (definition.n_tmat, STATES, STATES + 1):
        raise ModelError(
            f"{directory / 'transition_matrices'} has the shape {transitions.shape}, mdef asks for "
            f"{(definition.n_tmat, STATES, STATES + 1)}"
        )
    codebooks = {
        "ptm": definition.senone_phone,
        "semi": np.zeros(senones, np.int32),
        "continuous": np.arange(senones, dtype=np.int32),
    }
    return AcousticModel(
        directory=directory,
        kind=kind,
        mdef=definition,
        means=_stacked(means, 0.0),
        variances=_stacked(variances, NO_DENSITY),
        weights=_weights(directory, len(means.streams), means.shape[1], senones),
        transitions=transitions,
        senone_codebook=codebooks[kind],
        feat_params=feat_params,
        checksum=_checksum(directory),
        widths=means.shape[2],
        transform=transform,
        origin=f"{kind} model {directory.name}",
        notes=tuple(f"{directory.name}/feat.params: {note}" for note in notes_of(feat_params)),
    )


def read_feat_params(path: Path) -> dict[str, str]:
    """Options of `feat.params`, names without the dash; FeatureParameterError when one cannot be computed."""
    lines = read_file(path, LARGEST_TEXT).decode("utf-8-sig", "replace").splitlines()
    text = "".join(line.partition("#")[0] + "\n" for line in lines)  # comments may be in any script
    if not text.isascii():
        raise ModelError(f"{path}: must be plain ASCII text")
    options = options_of(text, str(path))
    FeatureParameters.from_mapping(options, str(path))
    return options


def _as_parted(
    directory: Path, options: dict[str, str], transform: Array | None, widths: tuple[int, ...]
) -> dict[str, str]:
    """The options, with the streams that `means` has where `feat.params` leaves that open; ModelError."""
    source = str(directory / "feat.params")
    p = FeatureParameters.from_mapping(options, source)
    made = layout(p, transform, source).widths
    if widths == made:
        return options
    if sum(widths) == sum(made) and in_order(p):
        return options | {"svspec": spec_of(widths)}
    raise ModelError(
        f"{directory / 'means'} has streams of {widths} dimensions, the front end makes {made} from feat.params"
    )


def _stacked(table: parameters.GaussianTable, filling: float) -> Array:
    """f32 [codebooks, streams, densities, dim], narrow streams filled up."""
    codebooks, densities, widths = table.shape
    result = np.full((codebooks, len(widths), densities, max(widths)), filling, np.float32)
    for s, (width, stream) in enumerate(zip(widths, table.streams, strict=True)):
        result[:, s, :, :width] = stream
    return result


def _kind(path: Path, definition: ModelDefinition, means: parameters.GaussianTable) -> str:
    codebooks, _, widths = means.shape
    if codebooks == definition.n_senones and codebooks != definition.n_ci:
        return "continuous"
    if len(widths) > MAX_TIED_STREAMS:
        raise ModelError(
            f"{path} has {len(widths)} streams; of a model whose senones share Gaussians {MAX_TIED_STREAMS} "
            "at most are read"
        )
    if codebooks == 1:
        return "semi"
    if codebooks == definition.n_ci and codebooks <= MAX_CODEBOOKS:
        return "ptm"
    raise ModelError(
        f"{path} has {codebooks} codebooks, mdef has {definition.n_ci} CI phones and {definition.n_senones} senones; a "
        "phonetically tied model has one codebook per CI phone, a continuous one per senone"
    )


def _weights(directory: Path, streams: int, densities: int, senones: int) -> Array:
    # pocketsphinx takes the quantised file where both exist.
    if there(directory / "sendump"):
        return parameters.read_sendump(directory / "sendump", streams, densities, senones)
    path = directory / "mixture_weights"
    if not there(path):
        raise ModelError(f"{directory} has neither sendump nor mixture_weights")
    weights = parameters.read_mixture_weights(path)
    if weights.shape != (streams, densities, senones):
        raise ModelError(
            f"{path} has {weights.shape[2]} senones, {weights.shape[0]} streams and "
            f"{weights.shape[1]} densities; the other files say {senones}, {streams}, {densities}"
        )
    return weights


def _checksum(directory: Path) -> str:
    names = ["feat.params", "mdef", "means", "variances", "transition_matrices"]
    names += ["sendump" if there(directory / "sendump") else "mixture_weights"]
    names += ["feature_transform"] * there(directory / "feature_transform")
    return checksum(*(directory / name for name in names))
