"""The feature parameters of a CMUSphinx acoustic model: its `feat.params` file.

The file is a list of `-name value` pairs, the command-line options of the trainer. Names that are
absent take the default of pocketsphinx 5 (its `fe.h` and `feat.h`), so the same file yields the
same features in both programs. A value that would change the features and is not implemented here
is refused by name: a model that gets other features than it was trained on still yields words,
but wrong ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from profiler.errors import BadInput
from profiler.plain import one_line

SAMPLE_RATE = 16_000
"""The one sample rate of this front end, in Hz; `pipelines.audio.loading` resamples everything to it."""

LARGEST = 1e6
"""Of any number of the front end: hertz, samples, filters."""

NEUTRAL = frozenset(
    {
        "adcdev",
        "agcthresh",
        "cmninit",
        "hmm",
        "input_endian",
        "mdef",
        "mean",
        "mixw",
        "mllr",
        "model",
        "sendump",
        "seed",
        "tmat",
        "var",
        "verbose",
        "warp_type",
    }
)
"""Options seen in `feat.params` files that leave the features of a whole utterance as they are
(without `warp_params`, which is refused, every `warp_type` is the identity)."""

FEATURE_TYPE = "1s_c_d_dd"
"""What this front end computes: cepstra, deltas and delta-deltas."""
STREAMS = 3
STREAM_DIM = 13
STREAM_SPEC = "0-12/13-25/26-38"


@dataclass(frozen=True, slots=True)
class Target:
    """The sound that a model was trained on: its sample rate, and the upper edge of its mel filters, in Hz."""

    rate: int = SAMPLE_RATE
    band: float = 6_800.0


WIDE_BAND = Target()
"""The default model's."""


class FeatureParameterError(BadInput):
    """A `feat.params` that cannot be read or requires features that are not implemented."""


@dataclass(frozen=True)
class FeatureParameters:
    """The front end's parameters, named as pocketsphinx names them; defaults are pocketsphinx'."""

    lowerf: float = 133.33334  # lower edge of the mel filters, Hz
    upperf: float = 6855.4976  # upper edge of the mel filters, Hz
    nfilt: int = 40
    nfft: int = 512
    ncep: int = STREAM_DIM
    alpha: float = 0.97  # pre-emphasis
    wlen: float = 0.025625  # Hamming window, seconds
    frate: int = 100  # frames per second
    transform: str = "legacy"
    lifter: int = 0
    unit_area: bool = True
    round_filters: bool = True
    remove_dc: bool = False
    remove_noise: bool = False
    cmn: str = "batch"

    @property
    def target(self) -> Target:
        """The sound that these parameters are for."""
        return Target(SAMPLE_RATE, self.upperf)

    @property
    def window_samples(self) -> int:
        """Length of the analysis window in samples."""
        return int(self.wlen * SAMPLE_RATE + 0.5)

    @property
    def hop_samples(self) -> int:
        """Distance of two frames in samples."""
        return int(SAMPLE_RATE / self.frate + 0.5)

    @classmethod
    def from_text(cls, text: str, source: str = "feat.params") -> FeatureParameters:
        """Parse the text of a `feat.params` file; `source` names it in errors."""
        words = [w for line in text.splitlines() for w in line.split("#", 1)[0].split()]
        pairs: dict[str, str] = {}
        for i in range(0, len(words), 2):
            name = words[i]
            if not name.startswith("-") or len(name) < 2:
                raise FeatureParameterError(
                    f"{source}: expected an option such as -nfilt, found {name!r}."
                )
            if i + 1 == len(words):
                raise FeatureParameterError(f"{source}: option {name} has no value.")
            pairs[name[1:]] = words[i + 1]
        return cls.from_mapping(pairs, source)

    @classmethod
    def from_mapping(
        cls, pairs: Mapping[str, str], source: str = "feat.params"
    ) -> FeatureParameters:
        """Take already split options, with or without the leading dash of their names."""
        values: dict[str, Any] = {}
        for dashed, value in pairs.items():
            name = dashed.removeprefix("-")
            if name in _READERS:
                try:
                    values[name] = _READERS[name](str(value))
                except ValueError as error:
                    raise FeatureParameterError(
                        f"{source}: -{one_line(name)} {one_line(str(value))} cannot be used: {one_line(str(error))}."
                    ) from None
            elif name in _FIXED:
                if str(value).lower() not in _FIXED[name]:
                    raise FeatureParameterError(
                        f"{source}: -{name} {one_line(str(value))} requires features that are not implemented "
                        f"(only {' or '.join(_FIXED[name])})."
                    )
            elif name not in NEUTRAL:
                raise FeatureParameterError(
                    f"{source}: -{one_line(name)} is not an option of this front end, "
                    "so the features cannot be computed."
                )
        if values.get("nfft") == 0:  # pocketsphinx: "set automatically from the window"
            window = int(values.get("wlen", cls.wlen) * SAMPLE_RATE)
            values["nfft"] = 1 << max(window - 1, 1).bit_length()
        parameters = cls(**values)
        parameters._check(source)
        return parameters

    def _check(self, source: str) -> None:
        def demand(condition: bool, sentence: str) -> None:
            if not condition:
                raise FeatureParameterError(f"{source}: {sentence}.")

        demand(
            0 <= self.lowerf < self.upperf <= SAMPLE_RATE / 2,
            f"-lowerf {self.lowerf:g} and -upperf {self.upperf:g} must rise within "
            f"0 and {SAMPLE_RATE // 2} Hz",
        )
        demand(self.frate == 100, f"-frate {self.frate} is not implemented (only 100)")
        demand(
            self.hop_samples <= self.window_samples <= self.nfft <= 1 << 15,
            f"-wlen {self.wlen:g} s must hold one frame of {self.hop_samples} samples "
            f"and fit into -nfft {self.nfft}",
        )
        demand(self.nfft & (self.nfft - 1) == 0, f"-nfft {self.nfft} must be a power of two")
        demand(
            self.ncep == STREAM_DIM,
            f"-ncep {self.ncep} is not implemented (only {STREAM_DIM})",
        )
        demand(
            self.ncep <= self.nfilt <= self.nfft // 2,
            f"-nfilt {self.nfilt} must lie between -ncep {self.ncep} and half of -nfft",
        )
        demand(self.lifter >= 0, f"-lifter {self.lifter} must be 0 or more")
        demand(0 <= self.alpha < 1, f"-alpha {self.alpha:g} must lie in 0…1")


def _finite(text: str) -> float:
    value = float(text)
    if not abs(value) < LARGEST:
        raise ValueError(f"a number below {LARGEST:g} is needed")
    return value


def _whole(text: str) -> int:
    # int() alone would also take thousands of digits.
    value = int(text) if len(text) <= 12 else LARGEST
    if not abs(value) < LARGEST:
        raise ValueError(f"a whole number below {LARGEST:g} is needed")
    return int(value)


def _boolean(text: str) -> bool:
    if text.lower() in ("yes", "true", "1", "y", "t"):
        return True
    if text.lower() in ("no", "false", "0", "n", "f"):
        return False
    raise ValueError("yes or no is needed")


def _choice(**meanings: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in meanings:
            raise ValueError(f"implemented are {', '.join(meanings)}")
        return meanings[text.lower()]

    return read


_READERS: dict[str, Callable[[str], Any]] = {
    "lowerf": _finite,
    "upperf": _finite,
    "nfilt": _whole,
    "nfft": _whole,
    "ncep": _whole,
    "alpha": _finite,
    "wlen": _finite,
    "frate": _whole,
    "transform": _choice(legacy="legacy", dct="dct", htk="htk"),
    "lifter": _whole,
    "unit_area": _boolean,
    "round_filters": _boolean,
    "remove_dc": _boolean,
    "remove_noise": _boolean,
    "cmn": _choice(batch="batch", current="batch", none="none"),
}

_FIXED: dict[str, tuple[str, ...]] = {
    "samprate": ("16000", "16000.0", "16000.000000"),
    "feat": (FEATURE_TYPE,),
    "ceplen": (str(STREAM_DIM),),
    "svspec": (STREAM_SPEC,),
    "agc": ("none",),
    "varnorm": ("no", "false", "0"),
    "dither": ("no", "false", "0"),
    "doublebw": ("no", "false", "0"),
    "logspec": ("no", "false", "0"),
    "smoothspec": ("no", "false", "0"),
    "remove_silence": ("no", "false", "0"),
    "ldadim": ("0",),
}
