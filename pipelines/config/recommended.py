"""What the folder of a Kaldi or Vosk model says of its decoder: defaults of the settings that it is chosen with.

Vosk's `conf/model.conf` and Kaldi's `decode.conf` are lists of `--name=value`; what Vosk's does not name has Kaldi's
defaults. An older Vosk folder has none, and gets what Vosk takes for it. A folder with Kaldi's file
`frame_subsampling_factor` has a chain model, which is decoded at acoustic scale 1. Kaldi's decoders know no word
insertion penalty, so that it is 0 with such options. A net scores by itself: the acoustic model is then `dnn`, and
settings of other nets do nothing, nor do those of other graphs where the folder has its own (`unavailable_reason`). A
folder with a CTC net needs `model` to be ctc; its scores are probabilities, which are not scaled down.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pipelines.config import options
from pipelines.config.dnn import Dnn
from pipelines.config.fitting import fitting, quoted, wanted
from pipelines.config.options import ConfigError, Value, assign, get, replace
from pipelines.config.tree import Config, option
from profiler.files import inputs
from profiler.plain import one_line

FOLDER: Final = "model_directory"
VOSK: Final = ("conf/model.conf", "model.conf")
FILES: Final = (*VOSK, "conf/decode.conf", "decode.conf", "conf/decode.config")
MODELS: Final = ("final.mdl", "am/final.mdl")
NET_MARK: Final = b"<Nnet3>"
HEAD: Final = 8 << 20  # bytes of a model's file in which its net begins, after the transition model
LARGEST_MODEL: Final = 200 << 20
ITS_NET: Final = {"model": "dnn", "dnn.net": Dnn().net, "dnn.shrink": Dnn().shrink}
"""What a model with a net of its own needs."""
GRAPHS: Final = (("HCLG.fst",), ("HCLr.fst", "Gr.fst"))  # The files of a graph, in the folder or in its folder graph
OF_GRAPHS: Final = ("vocabulary", "order", "bigrams", "trigrams", "pruning")
"""Settings of `graph` for one that is compiled."""
OWN: Final = ("grammar", "language_model", "dictionary")
"""Settings of `graph` that name files for another graph than the one in the folder."""
CHAIN: Final = "frame_subsampling_factor"
SETTINGS: Final = {
    "beam": "search.beam",
    "max-active": "search.max_active",
    "min-active": "search.min_active",
    "lattice-beam": "search.lattice_beam",
    "acoustic-scale": "search.acoustic_scale",
    "frames-per-chunk": "block",
    **{f"endpoint.rule{n}.min-trailing-silence": f"stream.rule{n}_silence_s" for n in (1, 2, 3, 4)},
    **{f"endpoint.rule{n}.max-relative-cost": f"stream.rule{n}_cost" for n in (2, 3)},
    "endpoint.rule5.min-utterance-length": "stream.rule5_length_s",
}
KALDI_CHUNK: Final = 20  # Kaldi's default of frames-per-chunk
SUBSAMPLING: Final = "frame-subsampling-factor"
MOST_SUBSAMPLING: Final = 16
PENALTY: Final = "search.insertion_penalty"
DECODER: Final = {"beam": "16.0", "min-active": "200", "lattice-beam": "10.0", "acoustic-scale": "0.1"}
"""Kaldi's defaults (decoder/lattice-faster-decoder, nnet3/decodable-simple-looped); it does not limit active states."""
VOSK_DECODER: Final = DECODER | {"frames-per-chunk": "24"}  # With that of the wheel vosk 0.3.45; Kaldi's default is 20
SILENCE: Final = "endpoint.silence-phones"
OLD_VOSK: Final = {
    "max-active": "7000",
    "beam": "13.0",
    "lattice-beam": "6.0",
    "acoustic-scale": "1.0",
    SUBSAMPLING: "3",
    SILENCE: "1:2:3:4:5:6:7:8:9:10",
}
"""What Vosk takes for a folder of its first layout (src/model.cc)."""
CTC_FILES: Final = (("model.onnx", "tokens.txt"), ("model.int8.onnx", "tokens.txt"), ("asr_waveform_fp16.onnx",))
"""What the folder of a CTC net has: one of these."""
CTC: Final[Mapping[str, Value]] = {"model": "ctc", "search.acoustic_scale": 1.0, PENALTY: 0.0}
OLD_VOSK_MARK: Final = "ivector/final.ie"
LARGEST: Final = 64 << 10  # bytes of a file of options


@dataclass(frozen=True)
class Recommended:
    """`settings` by their keys; `subsampling`: frames for each output of the net; `notes`: what of it is left out.

    `silence`: numbers of the phones of silence.
    """

    settings: Mapping[str, Value]
    subsampling: int = 1
    notes: tuple[str, ...] = ()
    silence: tuple[int, ...] = ()

    @property
    def chunk(self) -> int:
        return -(-int(self.settings.get("block", KALDI_CHUNK)) // self.subsampling) * self.subsampling


def _has(folder: str, *names: str) -> bool:
    return all(inputs.there(os.path.join(folder, name)) for name in names)


def read(folder: str) -> Recommended:
    """What the model in `folder` recommends; ConfigError where its file of options is none."""
    if is_ctc(folder):
        return Recommended(CTC)
    if not folder or not any(_has(folder, name) for name in MODELS):
        return Recommended({})
    options: dict[str, str] = {}
    source = next((name for name in FILES if _has(folder, name)), "")
    if _has(folder, CHAIN):
        options |= {"acoustic-scale": "1.0", SUBSAMPLING: _text(Path(folder, CHAIN)).strip()}
    if source in VOSK:
        options |= VOSK_DECODER
    if source:
        options |= _parsed(_text(Path(folder, source)), f"{folder}/{source}")
    elif _has(folder, OLD_VOSK_MARK):
        options |= VOSK_DECODER | OLD_VOSK
    return _recommended(options, source or CHAIN, ITS_NET if is_net(folder) else {})


def unavailable_reason(config: Config, key: str, value: Value | None = None) -> str | None:
    """Why setting `key` (or its choice `value`) cannot act with the others, or with the model folder; else None."""
    why, folder = options.unavailable_reason(config, key, value), config.model_directory
    if why or value is not None or not folder:
        return why
    group, _, name = key.rpartition(".")
    if group == "graph" and name in OF_GRAPHS:
        if any(getattr(config.graph, other) for other in OWN) or not has_graph(folder):
            return None
        return f"{key} does nothing here: the model folder has its own graph."
    if group == "dnn" and key in ITS_NET and is_net(folder):
        return f"{key} does nothing here: the model folder has its own net."
    return None


def has_graph(folder: str) -> bool:
    """Whether the folder of a Kaldi or Vosk model has a graph of its own, so that no dictionary is needed."""
    places = (folder, os.path.join(folder, "graph")) if any(_has(folder, name) for name in MODELS) else ()
    return any(_has(place, *names) for place in places for names in GRAPHS)


def is_ctc(folder: str) -> bool:
    return bool(folder) and any(_has(folder, *names) for names in CTC_FILES)


def is_net(folder: str) -> bool:
    """Whether the model in `folder` is a net of Kaldi."""
    found = (os.path.join(folder, name) for name in MODELS)
    path = next(filter(inputs.there, found), None)
    try:
        return path is not None and _has_net(path, os.stat(path).st_mtime_ns)
    except OSError:
        return False


@cache
def _has_net(path: str, _written_ns: int) -> bool:
    """Looked up once for each state of the file: the window asks several times a second."""
    try:
        with inputs.open_input(path, "a file of an acoustic model", LARGEST_MODEL) as file:
            return NET_MARK in file.read(HEAD)
    except (inputs.InputError, OSError):
        return False


def _recommended(options: Mapping[str, str], source: str, its: Mapping[str, Value]) -> Recommended:
    """What the `options` in `source` say, and what the model itself asks for (`its`)."""
    settings: dict[str, Value] = {}
    notes: list[str] = []
    subsampling, silence = 1, tuple[int, ...]()
    unused: dict[str, None] = {}
    for name, text in options.items():
        if name == SUBSAMPLING:
            if not re.fullmatch("[0-9]{1,4}", text) or not 1 <= int(text) <= MOST_SUBSAMPLING:
                raise ConfigError(
                    f"{source}: the frame subsampling factor must be a whole number from 1 to {MOST_SUBSAMPLING}, not "
                    f"{quoted(text)}."
                )
            subsampling = int(text)
        elif name == SILENCE:
            if not re.fullmatch("[0-9]{1,6}([:,][0-9]{1,6})*", text):
                raise ConfigError(f"{source}: --{SILENCE} must be numbers of phones such as 1:2:3, not {quoted(text)}.")
            silence = tuple(map(int, re.split("[:,]", text)))
        elif name not in SETTINGS:
            group, dot, _ = name.partition(".")
            unused[f"--{group}.*" if dot else f"--{name}"] = None
        elif (value := fitting(target := option(SETTINGS[name]), text)) is not None:
            settings[target.key] = value
        else:
            notes.append(f"{source}: --{name} is left out: {target.key} is {wanted(target)}, not {quoted(text)}")
    if settings:
        settings[PENALTY] = 0.0
    if unused:
        notes.append(f"{source}: left out are {one_line(', '.join(unused), 300)}")
    return Recommended({**its, **settings}, subsampling, tuple(notes), silence)


def _parsed(text: str, source: str) -> dict[str, str]:
    """The options of a file: `--name=value`, or `name=value` as the shell reads it."""
    options: dict[str, str] = {}
    for line in text.splitlines():
        for word in line.split("#", 1)[0].split():
            name, equals, value = word.removeprefix("--").partition("=")
            if not name or not equals:
                raise ConfigError(f"{one_line(source)}: expected an option such as --beam=13, found {quoted(word)}.")
            options[name.lower().replace("_", "-")] = value
    return options


def _text(path: Path) -> str:
    try:
        return inputs.read_bytes(path, "a file of options", LARGEST).decode("utf-8", "replace")
    except inputs.InputError as error:
        raise ConfigError(str(error)) from None


def with_folder(config: Config, folder: str, base: Config) -> Config:
    """`config` with another model folder, and what that recommends where `config` is as `base`.

    What the folder before recommended, and nobody has changed since, is as in `base` again. ConfigError as for `read`.
    """
    new = read(folder).settings
    try:
        old = read(config.model_directory).settings
    except ConfigError:
        old = {}
    for key in {**old, **new}:
        if get(config, key) in (get(base, key), old.get(key)):
            config = replace(config, key, new.get(key, get(base, key)))
    return replace(config, FOLDER, folder)


def assign_with_folder(config: Config, assignments: Mapping[str, Value]) -> Config:
    """`assign`, where a model folder among the assignments brings what it recommends; explicit assignments win."""
    by_option = {option(key).key: value for key, value in assignments.items()}
    if FOLDER in by_option:
        config = with_folder(config, str(by_option[FOLDER]), config)
    return assign(config, by_option)
