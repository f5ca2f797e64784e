"""CTC nets as people have them: output units, and what goes in, from the metadata of the ONNX file and its inputs.

Those of sherpa-onnx differ by `model_type`: zipformer2_ctc (icefall), zipformer2 with states (streaming),
EncDecCTCModel… (NeMo), wenet_ctc and t-one. Metadata and features are as its csrc/…-ctc-model.cc read and make them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

from pipelines.frontend.fbank import Fbank
from pipelines.models.errors import ModelError
from profiler.clock import FRAME_S
from profiler.plain import one_line

MOST_EACH: Final = 16  # frames for an output; citrinets have 8
LONGEST_CHUNK: Final = 4_096
MOST_BINS: Final = 256
ZIPFORMER_EACH: Final = 4  # frames for an output of every zipformer (sherpa-onnx' SubsamplingFactor)
T_ONE_EACH: Final = 3  # ten outputs for its 300 ms
NEMO: Final = ("EncDecCTCModel", "EncDecCTCModelBPE", "EncDecHybridRNNTCTCBPEModel")
LAYOUTS: Final = ("zipformer2_ctc", "zipformer2", *NEMO, "wenet_ctc", "t-one")  # By the `model_type` of the metadata
Shape = Sequence[int | str | None]


@dataclass(frozen=True)
class Input:
    """How speech goes into a net: `rate` Hz, and an output for `each` frames of 10 ms.

    `arrangement` of the first input: f32 [1, samples] (wave), int32 [1, samples, 1] (samples), f32 [1, frames, bins] or
    [1, bins, frames] of `fbank`. A net with `chunk` takes that many frames at a time, `shift` apart, and all its other
    inputs are states; without, it takes the whole utterance, and its second input, if there is one, is the length.
    """

    arrangement: Literal["wave", "samples", "frames", "bins"]
    each: int
    rate: int = 16_000
    fbank: Fbank | None = None
    chunk: int = 0
    shift: int = 0
    layout: str = ""

    @property
    def hop(self) -> int:
        """Samples of a frame."""
        return round(self.rate * FRAME_S)

    def n_frames(self, n_samples: int) -> int:
        if self.fbank is not None:
            return self.fbank.n_frames(n_samples)
        return n_samples // self.hop + 1 if n_samples > 0 else 0


def input_of(path: Path, entries: Mapping[str, str], shapes: Sequence[Shape]) -> Input:
    """What the net in `path` takes; ModelError if its metadata do not say it.

    `shapes`: of its inputs, names or None where they are free.
    """
    kind = entries.get("model_type", "")
    if kind not in LAYOUTS:
        known = ", ".join(LAYOUTS)
        if not kind:
            raise ModelError(f"{path} has no model_type in its metadata, which tells the layouts apart ({known}).")
        raise ModelError(f"{path} is of the model_type {one_line(kind, 60)!r}; CTC nets of these are read: {known}.")
    found = _input_of(kind, path, entries, shapes)
    if found.shift % found.each or found.chunk < found.shift:
        raise ModelError(
            f"{path}: its chunks of {found.chunk} frames, {found.shift} apart, do not fit one output for {found.each}."
        )
    if not found.chunk and len(shapes) > 2:
        raise ModelError(f"{path} has {len(shapes)} inputs; a {kind} for whole utterances has two.")
    return found


def _input_of(kind: str, path: Path, entries: Mapping[str, str], shapes: Sequence[Shape]) -> Input:
    number = partial(_number, path, entries)
    if kind == "t-one":
        rate, frames = number("sample_rate", 48_000), number("frame_length_ms", 10 * LONGEST_CHUNK) // 10
        if rate < 4_000 or rate % 100 or not frames:
            raise ModelError(f"{path}: a sample_rate of {rate} Hz in chunks of {frames} × 10 ms is not computed.")
        return Input("samples", T_ONE_EACH, rate, chunk=frames, shift=frames, layout="T-one")
    if len(shapes[0]) != 3:
        raise ModelError(f"{path}: its first input has {len(shapes[0])} axes; features have 3.")
    bins = shapes[0][1 if kind in NEMO else 2]
    if isinstance(bins, int) and not 1 <= bins <= MOST_BINS:
        raise ModelError(f"{path} takes {bins} values of a frame; at most {MOST_BINS} are computed.")
    features = Fbank(bins=bins) if isinstance(bins, int) else Fbank()
    if kind == "zipformer2_ctc":
        return Input("frames", ZIPFORMER_EACH, fbank=features, layout="zipformer2_ctc (icefall)")
    if kind == "zipformer2":
        chunk, shift = number("T", LONGEST_CHUNK), number("decode_chunk_len", LONGEST_CHUNK)
        layout = "zipformer2 with states (icefall)"
        return Input("frames", ZIPFORMER_EACH, fbank=features, chunk=chunk, shift=shift, layout=layout)
    if kind == "wenet_ctc":
        features = replace(features, full_scale=32_768.0)
        return Input("frames", number("subsampling_factor", MOST_EACH), fbank=features, layout="wenet")
    if entries.get("is_giga_am", "") not in ("", "0"):
        raise ModelError(f"{path} is a GigaAM, whose features are not computed.")
    normalise = entries.get("normalize_type", "")
    if normalise not in ("", "per_feature"):
        raise ModelError(f"{path}: the normalize_type {one_line(normalise, 60)!r} is not computed; per_feature is.")
    plain = Fbank(low=0.0, high=0.0, window="hann", remove_offset=False, librosa=True, normalise=bool(normalise))
    features = replace(plain, bins=features.bins)
    return Input("bins", number("subsampling_factor", MOST_EACH), fbank=features, layout="NeMo")


def _number(path: Path, entries: Mapping[str, str], name: str, most: int) -> int:
    text = entries.get(name)
    if text is None:
        raise ModelError(f"{path} does not say its {name} in its metadata; sherpa-onnx needs it as well.")
    if not re.fullmatch("[0-9]{1,8}", text) or not 1 <= int(text) <= most:
        raise ModelError(f"{path}: {name} must be a whole number from 1 to {most:,}, not {one_line(text, 60)!r}.")
    return int(text)


@dataclass(frozen=True)
class Units:
    """`symbols`: by output index. `blank`: its index. `boundary`: index of the unit between words, if there is one."""

    symbols: tuple[str, ...]
    blank: int
    boundary: int | None = None
