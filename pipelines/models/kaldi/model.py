"""A folder with a Kaldi model put together and checked: `final.mdl`, features, `tree`, `phones.txt`.

GMM: each pdf is a senone with Gaussians of its own; smaller mixtures are filled up with Gaussians of weight 0. A
speaker-independent `final.alimdl` is scored instead of `final.mdl`, which was trained for fMLLR. Net (nnet3): each pdf
is an output; Vosk keeps its file in `am`.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipelines.config import recommended
from pipelines.frontend.ivector_parameters import SILENCE_WEIGHT, Pacing
from pipelines.models.errors import ModelError
from pipelines.models.kaldi import contexts, gmm, nnet3, transitions, tree
from pipelines.models.kaldi import features as feature_files
from pipelines.models.kaldi.binary import Reader
from pipelines.models.kaldi.gmm import Mixture
from pipelines.models.kaldi.transitions import TransitionModel
from pipelines.models.kaldi.tree import NONE, Tree
from pipelines.models.nnet3 import Net
from pipelines.models.sphinx import AcousticModel, ModelDefinition
from pipelines.models.sphinx.binary import checksum, first_there
from pipelines.models.sphinx.model import Kaldi
from profiler.arrays import F32, Bool
from profiler.files.inputs import there
from profiler.plain import one_line

FINAL = "final.mdl"
SPEAKER_INDEPENDENT = "final.alimdl"
GRAPHS = ("HCLG.fst", "graph/HCLG.fst")
LOOKAHEAD = ("HCLr.fst", "Gr.fst")
MOST_VALUES = 1 << 28  # of means, mixtures filled up: a gigabyte
MOST_FILLED, FEW_VALUES = 16, 1 << 20
"""How many times the values of the file that may be, from a small model on; those of Kaldi's recipes are below 8."""
MODELS = (FINAL, f"am/{FINAL}")


def lies_in(directory: Path) -> bool:
    return first_there(directory, *MODELS) is not None


def load(directory: Path) -> AcousticModel:
    """Read a folder and check that its files agree; ModelError or FeatureParameterError says what does not."""
    independent = there(directory / SPEAKER_INDEPENDENT)
    path = first_there(directory, SPEAKER_INDEPENDENT, *MODELS)
    assert path is not None
    reader = Reader.of(path)
    model = transitions.read(reader)
    kind = reader.peek()
    if kind == "<Nnet>":
        raise ModelError(f"{path} is a neural net of Kaldi's nnet2 ({kind}), which is not read; one of nnet3 is")
    if kind == nnet3.MARK:
        return _net(directory, path, model, nnet3.read(reader))
    mixtures = gmm.read(reader)
    if model.n_pdfs > len(mixtures):
        raise ModelError(f"{path}: its transitions name {model.n_pdfs} pdfs, it has {len(mixtures)}")
    dimension = mixtures[0].means.shape[1]
    made = feature_files.read(directory, dimension)
    means, variances, weights = _filled_up(path, mixtures)
    decisions = _tree(directory, len(mixtures))
    names = _phones(directory, model)
    gaussians = sum(len(mixture.weights) for mixture in mixtures)
    notes = [
        f"Kaldi GMM {path.name}: {len(model.phones)} phones, {len(mixtures):,} pdfs, {gaussians:,} "
        f"Gaussians of {dimension} dimensions; {made.parameters.rate:,} Hz, {made.text}; {_graph(directory)}",
        *made.notes,
    ]
    if independent or any(directory.glob("trans.*")):
        notes.append("fMLLR (trans.*) is left out: the features are those of any speaker")
    if gaussians < weights.size:
        notes.append(f"mixtures are filled up to {weights.shape[1]} Gaussians each, {weights.size:,} in all")
    stand_ins = _stand_ins(decisions, model)
    if stand_ins:
        notes.append("gmm.senones=ci: a phone's pdf without neighbours stands for its context-independent one")
    return AcousticModel(
        directory=directory,
        kind="continuous",
        mdef=_definition(model, names, len(mixtures), decisions, stand_ins),
        means=means,
        variances=variances,
        weights=weights,
        senone_codebook=np.arange(len(mixtures), dtype=np.int32),
        checksum=_checksum(directory, path, feature_files.FILES),
        widths=(dimension,),
        transform=made.transform,
        origin=f"Kaldi GMM {directory.name}",
        notes=tuple(f"{directory.name}: {note}" for note in notes),
        kaldi=Kaldi(made.parameters, model.pdf),
    )


def _net(directory: Path, path: Path, model: TransitionModel, net: Net) -> AcousticModel:
    """The model of a net, whose frames are cepstra and the i-vector after them."""
    if model.n_pdfs > net.pdfs:
        raise ModelError(f"{path}: its transitions name {model.n_pdfs} pdfs, it has {net.pdfs}")
    made, says = feature_files.of_net(directory), recommended.read(str(directory))
    if made.parameters.num_ceps != net.input_dim:
        raise ModelError(
            f"{directory}: the net takes {net.input_dim} values of a frame, mfcc.conf makes {made.parameters.num_ceps}"
        )
    there = 0 if made.ivectors is None else made.ivectors.dimension
    if net.ivector_dim and there != net.ivector_dim:
        raise ModelError(
            f"{directory}: the net takes i-vectors of {net.ivector_dim} values, "
            + (f"the folder's extractor makes {there}" if there else "and the folder has no extractor (ivector)")
        )
    decisions = _tree(directory, net.pdfs)
    before, after = net.context
    text = f"{made.parameters.rate:,} Hz, {made.parameters.num_ceps} MFCCs"
    text += f" and i-vectors of {net.ivector_dim}" if net.ivector_dim else ", no i-vectors"
    notes = [
        f"Kaldi net (nnet3) {path.name}: {len(model.phones)} phones, {net.pdfs:,} pdfs, {net.parameters:,} parameters; "
        f"{text}; context −{before} … +{after} frames, one output for {says.subsampling}; {_graph(directory)}",
        *(note for note in made.notes if net.ivector_dim or not note.startswith("i-vectors")),
        *says.notes,
    ]
    if net.left_out:
        notes.append(f"what only training needs is not computed: {one_line(', '.join(net.left_out), 200)}")
    if net.has_priors:
        notes.append("scores are divided by the priors of the pdfs")
    stand_ins = _stand_ins(decisions, model)
    none = np.empty((0, 1, 0, net.width), np.float32)
    return AcousticModel(
        directory=directory,
        kind="nnet3",
        mdef=_definition(model, _phones(directory, model), net.pdfs, decisions, stand_ins),
        means=none,
        variances=none,
        weights=np.empty((1, 0, net.pdfs), np.float32),
        checksum=_checksum(directory, path, feature_files.NET_FILES),
        widths=(net.width,),
        origin=f"Kaldi net {directory.name}",
        notes=tuple(f"{directory.name}: {note}" for note in notes),
        kaldi=Kaldi(
            made.parameters,
            model.pdf,
            made.ivectors if net.ivector_dim else None,
            made.cmvn,
            net,
            Pacing(says.chunk, says.subsampling, SILENCE_WEIGHT if says.silence else 1.0),
            _silent(model, net.pdfs, says.silence),
        ),
    )


def _silent(model: TransitionModel, pdfs: int, phones: Sequence[int]) -> Bool:
    """Bool [pdfs]: those that these phones have and no other."""
    found = np.zeros(pdfs, bool)
    silent = np.isin(model.phone, phones)
    found[model.pdf[1:][silent[1:]]] = True
    found[model.pdf[1:][~silent[1:]]] = False
    return found


def _graph(directory: Path) -> str:
    if graph_file(directory) is not None:
        return "graph HCLG.fst"
    if any(all(there(directory / place / name) for name in LOOKAHEAD) for place in ("", "graph")):
        return f"graph of {' and '.join(LOOKAHEAD)}"
    compiled = all(there(directory / name) for name in contexts.FILES)
    return f"no HCLG.fst{', a graph is compiled from the tree' if compiled else ' and no tree with phones.txt'}"


def graph_file(directory: Path) -> Path | None:
    """The compiled graph in a folder; None if there is none."""
    return first_there(directory, *GRAPHS)


def _filled_up(path: Path, mixtures: Sequence[Mixture]) -> tuple[F32, F32, F32]:
    """Means and variances f32 [pdfs, 1, M, dim], weights f32 [1, M, pdfs]; M as in the largest mixture."""
    most, dimension = max(len(mixture.weights) for mixture in mixtures), mixtures[0].means.shape[1]
    shape = len(mixtures), 1, most, dimension
    given, filled = (count * dimension for count in (sum(len(m.weights) for m in mixtures), len(mixtures) * most))
    if filled > min(MOST_VALUES, max(MOST_FILLED * given, FEW_VALUES)):
        raise ModelError(
            f"{path}: a mixture has {most:,} Gaussians; with all {len(mixtures):,} mixtures filled up to as many, "
            f"{given:,} values become {filled:,}. At most {MOST_FILLED} times as many are computed, {MOST_VALUES:,} in "
            "all"
        )
    means, variances = np.empty(shape, np.float32), np.empty(shape, np.float32)
    weights = np.zeros((1, most, len(mixtures)), np.float32)
    for pdf, mixture in enumerate(mixtures):
        count = len(mixture.weights)
        means[pdf, 0], variances[pdf, 0] = mixture.means[0], mixture.variances[0]
        means[pdf, 0, :count], variances[pdf, 0, :count] = mixture.means, mixture.variances
        weights[0, :count, pdf] = mixture.weights
    return means, variances, weights


def _tree(directory: Path, pdfs: int) -> Tree | None:
    path = directory / "tree"
    if not there(path):
        return None
    found = tree.read(Reader.of(path))
    if found.n_pdfs > pdfs:
        raise ModelError(f"{path} has {found.n_pdfs} pdfs, {FINAL} has {pdfs}")
    return found


def _phones(directory: Path, model: TransitionModel) -> list[str]:
    """Names of the phones by their numbers, which are their names where there is no `phones.txt`."""
    path = first_there(directory, "phones.txt", "graph/phones.txt")
    names = [] if path is None else contexts.read_symbols(path)
    lacking = [phone for phone in model.phones if phone >= len(names) or not names[phone]]
    if path is not None and lacking:
        raise ModelError(f"{path}: it does not name phone {lacking[0]} of {FINAL}")
    return [names[phone] if names else str(phone) for phone in model.phones]


def _stand_ins(decisions: Tree | None, model: TransitionModel) -> tuple[int, ...]:
    """The pdfs of each phone and state that the tree gives without neighbours; none of monophones or without a tree."""
    if decisions is None or decisions.width == 1:
        return ()
    windows = np.zeros((len(model.topologies), decisions.width), np.int32)
    windows[:, decisions.centre] = list(model.topologies)
    states = [(row, s.forward) for row, each in enumerate(model.topologies.values()) for s in each if s.forward >= 0]
    by_class = {pdf_class: decisions.pdfs(windows, pdf_class) for _, pdf_class in states}
    found = (int(by_class[pdf_class][row]) for row, pdf_class in states)
    return tuple(pdf for pdf in dict.fromkeys(found) if pdf != NONE)


def _definition(
    model: TransitionModel, names: list[str], pdfs: int, decisions: Tree | None, stand_ins: tuple[int, ...]
) -> ModelDefinition:
    """Phones and states of the pdfs; one that several phones share belongs to the first."""
    owners = model.owners(pdfs, {phone: at for at, phone in enumerate(model.phones)})
    alone = pdfs if decisions is not None and decisions.width == 1 else 0
    no_filler = np.zeros(len(names), bool)
    return ModelDefinition(names, pdfs, *owners, no_filler, n_ci_senones=alone, stand_ins=stand_ins)


def _checksum(directory: Path, path: Path, features: Sequence[str]) -> str:
    """Of the model and of `features`, the files that decide those."""
    return checksum(path, *(directory / name for name in (*features, "tree") if there(directory / name)))
