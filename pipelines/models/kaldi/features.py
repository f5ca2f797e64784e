"""Which features a Kaldi model takes: from the options and transforms in its folder, or the aligner's meta file.

`mfcc.conf`, `delta_opts`, `splice_opts` and `cmvn_opts` are looked for in the folder and in its `conf`; `final.mat` or
`lda.mat` is the transform. Sizes must fit the model; what is not said is as in Kaldi's recipes, and said in a note.
A net takes plain cepstra of `mfcc.conf`, and i-vectors where the folder has an extractor.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.frontend import kaldi_parameters
from pipelines.frontend.ivector_parameters import IvectorModel
from pipelines.frontend.kaldi_parameters import KaldiFeatures
from pipelines.frontend.online_cmvn import CmvnOptions, OnlineCmvn
from pipelines.frontend.parameters import FeatureParameterError
from pipelines.models.errors import ModelError
from pipelines.models.kaldi import binary, ivector
from pipelines.models.sphinx.binary import LARGEST_TEXT, first_there, read_file
from profiler.arrays import F32
from profiler.files import inputs
from profiler.plain import one_line

TRANSFORMS = ("final.mat", "lda.mat")
OPTIONS = ("mfcc.conf", "delta_opts", "splice_opts", "cmvn_opts")
META = ("meta.json", "meta.yaml")  # what the Montreal Forced Aligner writes next to a model, now and once
FILES = (*TRANSFORMS, *META, *OPTIONS, *(f"conf/{name}" for name in OPTIONS))  # what decides the features
NET_CMVN = ("am/global_cmvn.stats", "global_cmvn.stats")
"""Where Vosk looks for statistics of online CMVN of a net's input."""
PITCH = "pitch.conf"
OTHER_FEATURES = (PITCH, "fbank.conf", "plp.conf")
NET_FILES = (*NET_CMVN, "mfcc.conf", "conf/mfcc.conf", *ivector.FILES)  # what decides the input of a net
CONTEXT = 3  # Frames that are spliced on either side before LDA where nothing says how many, as in Kaldi's recipes
LARGEST_META = 4 << 20  # Bytes; with statistics of a dictionary of a hundred thousand words some have a megabyte
ALIGNER = {
    name: name.replace("_", "-")
    for name in (
        *("sample_frequency", "frame_shift", "frame_length", "snip_edges", "energy_floor", "num_mel_bins"),
        *("cepstral_lifter", "preemphasis_coefficient", "use_energy", "raw_energy"),
    )
}
ALIGNER |= {"low_frequency": "low-freq", "high_frequency": "high-freq", "num_coefficients": "num-ceps"}
ALIGNER |= {"splice_left_context": "left-context", "splice_right_context": "right-context"}
"""The aligner's names of Kaldi's options."""
ALIGNER_DEFAULTS = {"low-freq": "20", "high-freq": "7800", "use-energy": "false"}
"""Its own (2.0), for a meta file that does not have them."""


@dataclass(frozen=True)
class Features:
    """`parameters` and the `transform` f32 [m, n] of spliced frames or None; `text`: what they are, `notes` besides.

    Of a net `ivectors` and online `cmvn` of its input, if its folder has them.
    """

    parameters: KaldiFeatures
    transform: F32 | None
    text: str
    notes: tuple[str, ...]
    ivectors: IvectorModel | None = None
    cmvn: OnlineCmvn | None = None


def read(directory: Path, dimension: int) -> Features:
    """Read what makes frames of `dimension` values; ModelError or FeatureParameterError if nothing does."""
    kaldi_parameters.require_package()
    options, source, notes = _options(directory)
    matrix = first_there(directory, *TRANSFORMS)
    transform = None if matrix is None else binary.transform(matrix)
    p = KaldiFeatures(**options)  # type: ignore[arg-type]
    base = p.num_ceps
    if transform is None:
        if p.spliced != dimension and dimension % base == 0:
            p = replace(p, delta_order=dimension // base - 1, left_context=0, right_context=0)
        columns = dimension
    else:
        p = replace(p, delta_order=0)
        if not {"left_context", "right_context"} & options.keys():
            p = replace(p, left_context=CONTEXT, right_context=CONTEXT)
        rows, columns = transform.shape
        if rows != dimension:
            raise ModelError(f"{directory}: the transform makes {rows} features, the model takes {dimension}")
    p.check(source)
    if columns not in {p.spliced, p.spliced + (transform is not None)}:
        wanted = "the model takes" if transform is None else "its transform takes"
        raise ModelError(
            f"{directory}: {wanted} {columns} values, and {base} MFCCs make {p.spliced} ({_made(p)}); mfcc.conf, "
            "splice_opts or the transform (final.mat) is missing or another model's"
        )
    text = _made(p) + (", LDA or MLLT" if transform is not None else "")
    if p.norm_means:
        what = "mean and variance are those" if p.norm_vars else "the mean is that"
        notes.append(f"CMVN: {what} of the utterance, where Kaldi takes the speaker's")
    return Features(p, transform, text, tuple(notes))


def of_net(directory: Path) -> Features:
    """Read what makes the input of a net: `parameters.num_ceps` cepstra, then the i-vector; raises as `read`."""
    kaldi_parameters.require_package()
    conf = _file(directory, "mfcc.conf")
    others = [name for name in OTHER_FEATURES if _file(directory, name) is not None]
    if others and (conf is None or PITCH in others):
        raise FeatureParameterError(
            f"{directory}: the features of {others[0]} are not computed; those of mfcc.conf are."
        )
    if conf is None:
        raise ModelError(f"{directory}: mfcc.conf is missing; it says which features the net takes")
    options = _options_in(conf)
    p = KaldiFeatures(norm_means=False, **kaldi_parameters.read(options, str(conf)))  # type: ignore[arg-type]
    p.check(str(conf))
    text, notes, ivectors = f"{p.num_ceps} MFCCs", [], None
    if ivector.lies_in(directory):
        ivectors = ivector.read(directory, p.num_ceps)
        text += f", i-vectors of {ivectors.dimension}"
        notes.append("i-vectors: estimated anew for each utterance")
    statistics = first_there(directory, *NET_CMVN)
    cmvn = None if statistics is None else ivector.online_cmvn(statistics, CmvnOptions(), p.num_ceps)
    return Features(p, None, text, tuple(notes), ivectors, cmvn)


def _made(p: KaldiFeatures) -> str:
    text = f"{p.num_ceps} MFCCs"
    if p.left_context or p.right_context:
        return f"{text} spliced −{p.left_context} … +{p.right_context}"
    return f"{text} with {p.delta_order} orders of differences" if p.delta_order else text


def _options(directory: Path) -> tuple[Mapping[str, float | str], str, list[str]]:
    """The values by the names of KaldiFeatures, the file that says most of them, and notes."""
    found: dict[str, str] = {"use-energy": "false"}
    source, notes = str(directory), []
    meta, conf = first_there(directory, *META), _file(directory, "mfcc.conf")
    if meta is not None:
        source = str(meta)
        found |= ALIGNER_DEFAULTS | _aligner(meta)
    if conf is not None:
        source = str(conf)
        found |= _options_in(conf)
    elif meta is None:
        notes.append("no mfcc.conf: MFCCs with Kaldi's defaults, without energy as in its recipes")
    for path in filter(None, (_file(directory, name) for name in OPTIONS[1:])):
        found |= _options_in(path)
    return kaldi_parameters.read(found, source), source, notes


def _aligner(path: Path) -> dict[str, str]:
    features = read_meta(path)
    kind = features.get("type", "mfcc")
    pitch = [name for name in ("pitch", "use_pitch", "use_voicing") if features.get(name) == "true"]
    if kind != "mfcc" or pitch:
        raise FeatureParameterError(f"{path}: features of type {kind} with {pitch or 'no pitch'} are not computed.")
    return {option: features[name] for name, option in ALIGNER.items() if name in features}


def read_meta(path: Path) -> dict[str, str]:
    """The settings of the features as texts, without those that have no value; ModelError if it is not the aligner's.

    Of the YAML only what the aligner writes of the features is read: a table of plain values.
    """
    text = read_file(path, LARGEST_META).decode("utf-8-sig", "replace")
    try:
        tree = inputs.json_tree(text, str(path)) if path.suffix == ".json" else _yaml(text)
    except inputs.InputError as error:
        raise ModelError(str(error)) from None
    features = tree.get("features") if isinstance(tree, dict) else None
    if not isinstance(features, dict):
        raise ModelError(f"{path}: it has no table of features, as the Montreal Forced Aligner writes it")
    plain = {str(key): value for key, value in features.items() if isinstance(value, str | int | float)}
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in plain.items()}


def _yaml(text: str) -> dict[str, dict[str, str]]:
    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    for line in inputs.lines_of(text):
        key, _, value = line.strip().partition(":")
        value = value.strip().strip("'\"")
        if key.startswith(("#", "- ")):
            continue
        if line[:1].isspace():
            if value not in ("", "null", "~"):
                table[key] = value
        elif not value:
            table = tables[key] = {}
    return tables


def _file(directory: Path, name: str) -> Path | None:
    return first_there(directory, name, f"conf/{name}")


def _options_in(path: Path) -> dict[str, str]:
    options = kaldi_parameters.options_of(read_file(path, LARGEST_TEXT).decode("utf-8", "replace"), str(path))
    for option in options:
        home = next((file for file, names in kaldi_parameters.OF_FILES.items() if option in names), "mfcc.conf")
        if path.name != home and option not in ("print-args", "verbose"):
            raise FeatureParameterError(f"{path}: --{one_line(option, 80)} is an option of {home}, not of {path.name}.")
    return options
