"""The one typed tree of settings: each is defined once, as a field of a struct here or in the file of its layer.

The field gives its type and default, and `setting`, in front of the struct where it is long, bounds, title, help, unit,
pipeline layer, whether it can change during a run, and which other settings it depends on.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from pipelines.config.audio import Audio, Stream
from pipelines.config.conditions import DENSE, DEVICES, MIXTURES, NOT_CTC, NOT_DENSE
from pipelines.config.dnn import Ctc, Dnn
from pipelines.config.fitting import quoted
from pipelines.config.gmm import Gmm
from pipelines.config.graph import Graph
from pipelines.config.options import (
    ConfigError,
    Option,
    Toggle,
    Traits,
    Value,
    fitted,
    get,
    option_of,
    options_of,
    replace,
    setting,
)
from pipelines.config.search import Search
from profiler.files import paths
from profiler.session.facts import flatten

SKIP = setting(
    "Frame skipping",
    "1 scores every frame; k scores every k-th frame, and the rule below gives the others their scores.",
    main=True,
    words={1: "off", 2: "every 2nd", 3: "every 3rd", 4: "every 4th"},
    toggle=Toggle(
        "Frame skipping", "Score only every n-th frame", place=2, key="K", off=1, on=2, without="every frame scored"
    ),
    when=NOT_CTC,
    ge=1,
    le=4,
)
RULE = setting(
    "Skipped frames",
    "copy: skipped frames repeat the scores of the last scored frame. conditional: a frame is skipped only "
    "while the nearest codeword stays the same, at most k−1 in a row. multi-frame: a net with several output "
    "layers scores k frames at once (Vanhoucke 2013).",
    when=NOT_CTC,
    choices_when={"conditional": {"model": MIXTURES}, "multi-frame": {"model": ("dnn",), "dnn.senones": ("all",)}},
)
CODEWORDS = setting(
    "Frame codewords",
    "Size of the codebook that decides whether the sound has changed. With more codewords, fewer frames are skipped.",
    unit="codewords",
    ge=16,
    le=4096,
    when={"frames.rule": ("conditional",)},
)


class Frames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Frame layer: which frames are scored."""

    TRAITS: ClassVar = Traits(layer="Frame layer", live=True)

    skip: Annotated[int, SKIP] = 1
    rule: Annotated[Literal["copy", "conditional", "multi-frame"], RULE] = "copy"
    codewords: Annotated[int, CODEWORDS] = 256


WEIGHTS = setting(
    "Parameters",
    "resident: uploaded once. each-block: uploaded for every block, as in a program that keeps none of them.",
)
PINNED = setting(
    "Pinned memory",
    "Page-locked host buffers, which the device can copy to and from directly.",
    when={"device": ("cuda", "xpu")},
)
GRAPHS = setting(
    "Kernel graphs",
    "Each stage of a block is recorded once and given to the device with one launch, not kernel by kernel.",
    when={"device": ("cuda",)},
)


class Placement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where data is held and how it is transferred when scoring runs on a device."""

    TRAITS: ClassVar = Traits(layer="Device", live=True, when={"device": DEVICES})

    weights: Annotated[Literal["resident", "each-block"], WEIGHTS] = "resident"
    transfer: Annotated[
        Literal["block", "frame"],
        setting("Transfer per", "Features are uploaded and scores downloaded once per block, or frame by frame."),
    ] = "block"
    pinned: Annotated[bool, PINNED] = True
    overlapped: Annotated[
        bool, setting("Overlap copies", "Score the next block while the search processes this one.")
    ] = False
    graphs: Annotated[bool, GRAPHS] = False
    dtype: Annotated[
        Literal["fp32", "fp16", "bf16"], setting("Data type", "Data type of the parameters and products on the device.")
    ] = "fp32"


PACE = setting(
    "Pace",
    "0 decodes as fast as possible; 1, 2 or 4 feeds the audio at that multiple of real time.",
    layer="Audio",
    unit="× real time",
    live=True,
    main=True,
    words={0.0: "full speed", 1.0: "real time"},
    steps=(0.0, 0.5, 1.0, 2.0, 4.0, 8.0),
    ge=0.0,
    le=100.0,
)
REPEAT_ON_CHANGE = setting(
    "Repeat on change",
    "After a live change, decode the last complete utterance (or a few short ones) again before going on, so "
    "that both settings have decoded the same words.",
    layer="Audio",
    live=True,
)
BLOCK = setting(
    "Block",
    "Frames scored together and searched in one call. Larger blocks reuse what is in cache but add latency.",
    layer="Audio",
    unit="frames",
    live=True,
    main=True,
    ge=1,
    le=256,
)
MODEL = setting(
    "Acoustic model",
    "ptm: the phonetically tied mixture model that ships with the program. continuous: derived from it; each senone "
    "has its own Gaussians. single-stream: one mixture of 39-dimensional Gaussians per senone. dnn: a neural net "
    "trained on the output of the mixtures. ctc: a net with a CTC output, of the package hama or in a model folder.",
    layer="Scoring",
    main=True,
)
MODEL_DIRECTORY = setting(
    "Model folder",
    "The acoustic model to use instead of the shipped one: CMUSphinx (ptm, semi-continuous or continuous), a "
    "Kaldi GMM or net (nnet3, Vosk) with its graph, or with model=ctc a CTC net (model.onnx, tokens.txt). The "
    "files in the folder say which it is. Decoder options of Kaldi (conf/model.conf, decode.conf) become "
    "defaults of the search settings.",
    layer="Scoring",
)
DEVICE = setting(
    "Scoring device",
    "cpu: compiled code. The others use torch on that device; torch-cpu runs the device code on the processor.",
    layer="Scoring",
    choices_when=dict.fromkeys(DEVICES, DENSE),
    reasons=NOT_DENSE,
)
THREADS = setting(
    "Threads",
    "Number of threads in the scoring kernels; the search is serial.",
    layer="Scoring",
    unit="threads",
    ge=1,
    le=64,
)
REPLAY = setting(
    "Hot replay",
    "Share of the time that goes into doing a block once more with its data hot, which measures how long "
    "it waits for caches and memory, outside the real-time factor. The first sixteen come early and may take "
    "a tenth of the time. 0 is off.",
    layer="Instrument",
    words={0.0: "off"},
    ge=0.0,
    le=0.1,
    when={"stream.chunk_ms": (0,)},
)
COUNTERS = setting(
    "Event counters",
    "Read counters of the processor and the kernel after every stage (cycles, cache misses, page faults …). "
    "`asrscope doctor` shows which of them this machine has. Every span "
    "then takes longer, which the cost of the recorder includes.",
    layer="Instrument",
)


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of a run."""

    pace: Annotated[float, PACE] = 0.0
    loop: Annotated[
        bool, setting("Loop", "Start again with the first file after the last.", layer="Audio", live=True)
    ] = False
    repeat_on_change: Annotated[bool, REPEAT_ON_CHANGE] = False
    block: Annotated[int, BLOCK] = 16
    audio: Audio = Audio()
    stream: Stream = Stream()
    model: Annotated[Literal["ptm", "continuous", "single-stream", "dnn", "ctc"], MODEL] = "ptm"
    model_directory: Annotated[str, MODEL_DIRECTORY] = ""
    device: Annotated[Literal["cpu", "torch-cpu", "cuda", "mps", "xpu"], DEVICE] = "cpu"
    placement: Placement = Placement()
    threads: Annotated[int, THREADS] = 1
    frames: Frames = Frames()
    gmm: Gmm = Gmm()
    dnn: Dnn = Dnn()
    ctc: Ctc = Ctc()
    graph: Graph = Graph()
    search: Search = Search()
    replay: Annotated[float, REPLAY] = 0.01
    counters: Annotated[bool, COUNTERS] = False


COURSE = ("pace", "loop", "repeat_on_change")
"""Settings that decide when a run waits, what it decodes next and when it ends: they change neither work nor words."""


def options() -> tuple[Option, ...]:
    return options_of(Config)


def option(key: str) -> Option:
    """The setting called `key`; ConfigError when there is none, with the nearest name."""
    return option_of(Config, key)


def parse_assignment(text: str, option_name: str = "--set") -> tuple[str, Value]:
    """Read ``key=value`` as written after `option_name`; ConfigError with one sentence otherwise."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ConfigError(f"{option_name} must be key=value, for example search.beam=13, not {quoted(text)}.")
    target = option(key)
    return target.key, fitted(target, value.strip())


def from_dict(tree: Mapping[str, Any], where: str = "configuration", base: Config | None = None) -> Config:
    """Build a configuration; settings left out are those of `base`, or the defaults. ConfigError says what is wrong.

    `tree` may be anything that an untrusted file contains; `where` begins the sentence.
    """
    if not isinstance(tree, Mapping):
        raise ConfigError(f"{where}: settings must be a table of names and values.")
    config = base or Config()
    groups = {o.key.rpartition(".")[0] for o in options()}
    for key, value in flatten(tree):
        try:
            config = config if value == {} and key in groups else replace(config, key, value)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
    return config


def of_files() -> list[Option]:
    return [option for option in options() if option.type == "text" and not option.like]


def kept(config: Config) -> Config:
    """`config` as a session keeps it: files by their whole path, what ships with the program by its name."""
    return _with_places(config, paths.kept)


def found_again(config: Config, session: Path) -> Config:
    """`config` with the files that it named when `session` was recorded, which may have named them from elsewhere."""
    return _with_places(config, lambda path: paths.locate(path, session))


def _with_places(config: Config, place: Callable[[str], str]) -> Config:
    for option in of_files():
        path = str(get(config, option.key))
        if path and path not in option.shipped():
            config = replace(config, option.key, place(path))
    return config
