"""A CMUSphinx acoustic model directory put together and checked.

Phonetically tied mixtures (PTM): one codebook of Gaussians per CI phone and stream; every senone
of that phone mixes the same Gaussians with weights of its own. Semi-continuous: one codebook for
all. Continuous: one for each senone.
"""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.frontend.parameters import FEATURE_TYPE, STREAM_DIM, STREAM_SPEC, STREAMS
from pipelines.models.errors import ModelError
from pipelines.models.sphinx import mdef as mdef_file
from pipelines.models.sphinx import parameters, sendump
from pipelines.models.sphinx.binary import LARGEST_TEXT, read_file
from pipelines.models.sphinx.definition import STATES, ModelDefinition
from profiler.arrays import Array

ONE_STREAM = (STREAMS * STREAM_DIM,)  # the same features unparted, as continuous models have them
MAX_CODEBOOKS = 256  # pocketsphinx' own limit for PTM


@dataclass(frozen=True, eq=False)
class AcousticModel:
    """The parameters of one acoustic model, as probabilities and variances.

    `means`, `variances`: f32 [codebooks, streams, densities, dim], 3 streams of 13 or, where every
    senone has a codebook, also 1 of 39; `weights`: f32 [streams, densities, senones];
    `transitions`: f32 [matrices, 3, 4]; `senone_codebook`: int32 [senones]; `kind`: "ptm", "semi"
    or "continuous"; `feat_params`: the options of `feat.params` without their dash; `checksum`:
    SHA-256 over the files, the identity of the model for caches; `origin`: in words, what the
    parameters were derived from or estimated on; `notes`: a sentence for each thing in the folder that is ignored.
    """

    directory: Path
    kind: str
    mdef: ModelDefinition
    means: Array
    variances: Array
    weights: Array
    transitions: Array
    senone_codebook: Array
    feat_params: dict[str, str]
    checksum: str
    origin: str = ""
    notes: tuple[str, ...] = ()

    @property
    def n_codebooks(self) -> int:
        """Codebooks: CI phones in a PTM model, one in a semi-continuous one, else the senones."""
        return int(self.means.shape[0])

    @property
    def n_streams(self) -> int:
        """Feature streams: 3 of 13 dimensions, or 1 of 39."""
        return int(self.means.shape[1])

    @property
    def is_continuous(self) -> bool:
        """Whether every senone owns its Gaussians."""
        return self.kind == "continuous"

    @property
    def n_densities(self) -> int:
        """Gaussians per codebook and stream."""
        return int(self.means.shape[2])

    @property
    def n_senones(self) -> int:
        """Tied states."""
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
    feat_params = read_feat_params(directory / "feat.params")
    if (directory / "feature_transform").exists():
        raise ModelError(
            f"{directory / 'feature_transform'}: models with an LDA transform are not supported"
        )
    definition = mdef_file.read(directory / "mdef")
    means = parameters.read_gaussians(directory / "means", "means")
    variances = parameters.read_variances(directory / "variances")
    kind = _check_gaussians(directory, definition, means, variances)
    transitions = parameters.read_transitions(directory / "transition_matrices")
    if transitions.shape != (definition.n_tmat, STATES, STATES + 1):
        raise ModelError(
            f"{directory / 'transition_matrices'} has the shape {transitions.shape}, mdef asks for "
            f"{(definition.n_tmat, STATES, STATES + 1)}"
        )
    weights = _weights(directory, len(means.streams), means.shape[1], definition.n_senones)
    codebooks = {
        "ptm": definition.senone_phone,
        "semi": np.zeros(definition.n_senones, np.int32),
        "continuous": np.arange(definition.n_senones, dtype=np.int32),
    }
    return AcousticModel(
        directory=directory,
        kind=kind,
        mdef=definition,
        means=np.stack(means.streams, axis=1),
        variances=np.stack(variances.streams, axis=1),
        weights=weights,
        transitions=transitions,
        senone_codebook=codebooks[kind],
        feat_params=feat_params,
        checksum=_checksum(directory),
        origin=f"{kind} model {directory.name}",
    )


def read_feat_params(path: Path) -> dict[str, str]:
    """Options of `feat.params`, one `-name value` a line, names without the dash."""
    try:
        text = read_file(path, LARGEST_TEXT).decode("ascii")
    except UnicodeDecodeError:
        raise ModelError(f"{path}: must be plain ASCII text") from None
    options: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or not fields[0].startswith("-"):
            raise ModelError(f"{path}, line {number}: expected '-name value'")
        options[fields[0][1:]] = fields[1]
    feature = options.get("feat", FEATURE_TYPE)
    if feature != FEATURE_TYPE:
        raise ModelError(f"{path}: -feat is {feature}, the front end makes {FEATURE_TYPE}")
    if options.get("svspec", STREAM_SPEC) != STREAM_SPEC:
        raise ModelError(
            f"{path}: -svspec is {options['svspec']}, the front end makes {STREAM_SPEC}"
        )
    return options


def _check_gaussians(
    directory: Path,
    definition: ModelDefinition,
    means: parameters.GaussianTable,
    variances: parameters.GaussianTable,
) -> str:
    path = directory / "means"
    if variances.shape != means.shape:
        raise ModelError(
            f"{directory / 'variances'} has the shape {variances.shape}, means has {means.shape}"
        )
    codebooks, _, dimensions = means.shape
    continuous = codebooks == definition.n_senones and codebooks != definition.n_ci
    if continuous and dimensions == ONE_STREAM:
        return "continuous"
    if dimensions != (STREAM_DIM,) * STREAMS:
        raise ModelError(
            f"{path} has streams of {dimensions} dimensions, the front end makes "
            f"{(STREAM_DIM,) * STREAMS}"
            + (f" or, for a continuous model, {ONE_STREAM}" if continuous else "")
        )
    if continuous:
        return "continuous"
    if codebooks == 1:
        return "semi"
    if codebooks != definition.n_ci or codebooks > MAX_CODEBOOKS:
        raise ModelError(
            f"{path} has {codebooks} codebooks, mdef has {definition.n_ci} CI phones and "
            f"{definition.n_senones} senones; a phonetically tied model has one codebook per CI phone, a "
            "continuous one per senone"
        )
    return "ptm"


def _weights(directory: Path, streams: int, densities: int, senones: int) -> Array:
    # pocketsphinx takes the quantised file where both exist.
    if (directory / "sendump").exists():
        return sendump.read(directory / "sendump", streams, densities, senones)
    path = directory / "mixture_weights"
    if not path.exists():
        raise ModelError(f"{directory} has neither sendump nor mixture_weights")
    weights = parameters.read_mixture_weights(path)
    if weights.shape != (streams, densities, senones):
        raise ModelError(
            f"{path} has {weights.shape[2]} senones, {weights.shape[0]} streams and "
            f"{weights.shape[1]} densities; the other files say {senones}, {streams}, {densities}"
        )
    return weights


def _checksum(directory: Path) -> str:
    digest = hashlib.sha256()
    names = ("feat.params", "mdef", "means", "variances", "transition_matrices")
    weights = "sendump" if (directory / "sendump").exists() else "mixture_weights"
    for name in (*names, weights):
        data = read_file(directory / name)
        digest.update(f"{name} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()
