"""The feature parameters of a CMUSphinx acoustic model: its `feat.params` file, a list of `-name value` pairs.

Names that are absent take the default of pocketsphinx 5 (its `fe.h` and `feat.h`). A value that would change the
features and is not implemented is refused by name; what is read otherwise, or has no effect here, is a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from profiler.errors import BadInput
from profiler.plain import one_line

SAMPLE_RATE = 16_000
"""In Hz, of a model that does not say otherwise; `pipelines.audio.loading` resamples to what a model needs."""
LOWEST_RATE, HIGHEST_RATE = 4_000, 96_000  # Of a model, in Hz
NARROW_BAND = 4_000.0  # Filters that end here or below are those of telephone speech, in Hz
LARGEST = 1e6  # Of any number of the front end: hertz, samples, filters

# fmt: off
NEUTRAL = frozenset({
    "adcdev", "hmm", "input_endian", "lda", "mdef", "mean", "mixw", "model", "sendump", "seed", "tmat", "var",
    "verbose", "warp_type",
})
# fmt: on
"""Options seen in `feat.params` files that leave the features of a whole utterance as they are
(without `warp_params`, which is refused, every `warp_type` is the identity)."""

# fmt: off
SEARCH = frozenset({
    "ascale", "aw", "beam", "bestpath", "compallsen", "ds", "fillprob", "fwdflat", "fwdtree", "kws_threshold",
    "logbase", "lpbeam", "lponlybeam", "lw", "maxhmmpf", "maxwpf", "mixwfloor", "mllr", "pbeam", "pip", "pl_window",
    "senmgau", "silprob", "tmatfloor", "topn", "topn_beam", "uw", "varfloor", "wbeam", "wip",
})
# fmt: on
"""Options of pocketsphinx that say how to search or score and are no features: the settings of a run say that here."""
SILENCE = ("remove_silence", "vad_")
"""Options, or how they begin, that cut silence out of live sound: pocketsphinx 5 has none of them any more."""

OFF = ("doublebw", "logspec", "smoothspec")  # Options of features that are not implemented

STREAM_DIM = 13


@dataclass(frozen=True, slots=True)
class Target:
    """The sound that a model was trained on: its sample rate, and the upper edge of its mel filters, in Hz."""

    rate: int = SAMPLE_RATE
    band: float = 6_800.0


WIDE_BAND = Target()  # The default model's


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
    samprate: int = SAMPLE_RATE
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
    cmninit: tuple[float, ...] = (40.0, 3.0, -1.0)  # the mean that a stream starts from; further cepstra: 0
    varnorm: bool = False
    agc: str = "none"
    agcthresh: float = 2.0  # nat above the quietest frame that still count as noise (agc noise)
    feat: str = "1s_c_d_dd"
    svspec: str = ""  # dimensions of each stream, such as 0-12/13-25/26-38; empty: as `feat` has them
    ldadim: int = 0  # rows of a model's `feature_transform` that are used; 0: all

    @property
    def target(self) -> Target:
        return Target(self.samprate, self.upperf)

    @property
    def window_samples(self) -> int:
        return int(self.wlen * self.samprate + 0.5)

    @property
    def hop_samples(self) -> int:
        """Distance of two frames in samples."""
        return int(self.samprate / self.frate + 0.5)

    @classmethod
    def from_mapping(cls, pairs: Mapping[str, str], source: str = "feat.params") -> FeatureParameters:
        """Take already split options, with or without the leading dash of their names."""
        values: dict[str, Any] = {}
        for dashed, text in pairs.items():
            name, value = dashed.removeprefix("-"), str(text)
            if name in OFF and value.lower() not in ("no", "false", "0"):
                raise FeatureParameterError(
                    f"{source}: -{name} {one_line(value)} requires features that are not implemented (only no)."
                )
            if name in _READERS:
                try:
                    values[name] = _READERS[name](value)
                except ValueError as error:
                    raise FeatureParameterError(
                        f"{source}: -{one_line(name)} {one_line(value)} cannot be used: {one_line(str(error))}."
                    ) from None
            elif name not in NEUTRAL and name not in OFF and not _ignored(name):
                raise FeatureParameterError(
                    f"{source}: -{one_line(name)} is not an option of this front end, "
                    "so the features cannot be computed."
                )
        values.pop("dither", None)  # noise of half a bit, other noise every time
        ceplen = values.pop("ceplen", STREAM_DIM)
        if values.get("nfft", 0) == 0:  # pocketsphinx: "set automatically from the window"
            window = int(values.get("wlen", cls.wlen) * values.get("samprate", cls.samprate))
            values["nfft"] = 1 << max(window - 1, 1).bit_length()
        parameters = cls(**values)
        parameters._check(source, ceplen)
        return parameters

    def _check(self, source: str, ceplen: int) -> None:
        rules = (
            (self.ncep == ceplen, f"-ncep {self.ncep} and -ceplen {ceplen} must be the same number"),
            (
                LOWEST_RATE <= self.samprate <= HIGHEST_RATE,
                f"-samprate {self.samprate} must lie between {LOWEST_RATE} and {HIGHEST_RATE} Hz",
            ),
            (
                0 <= self.lowerf < self.upperf <= self.samprate / 2,
                f"-lowerf {self.lowerf:g} and -upperf {self.upperf:g} must rise within "
                f"0 and {self.samprate // 2} Hz, half of -samprate {self.samprate}",
            ),
            (self.frate == 100, f"-frate {self.frate} is not implemented (only 100)"),
            (
                self.hop_samples <= self.window_samples <= self.nfft <= 1 << 15,
                f"-wlen {self.wlen:g} s must hold a frame of {self.hop_samples} samples and fit into -nfft {self.nfft}",
            ),
            (self.nfft & (self.nfft - 1) == 0, f"-nfft {self.nfft} must be a power of two"),
            (
                1 <= self.ncep <= self.nfilt <= self.nfft // 2,
                f"-nfilt {self.nfilt} must lie between -ncep {self.ncep} and half of -nfft",
            ),
            (self.lifter >= 0, f"-lifter {self.lifter} must be 0 or more"),
            (0 <= self.alpha < 1, f"-alpha {self.alpha:g} must lie in 0…1"),
            (self.ldadim >= 0, f"-ldadim {self.ldadim} must be 0 or more"),
        )
        demand(rules, source)


def demand(rules: Iterable[tuple[bool, str]], source: str) -> None:
    """Raise FeatureParameterError with the sentence of the first rule that does not hold."""
    for holds, sentence in rules:
        if not holds:
            raise FeatureParameterError(f"{source}: {sentence}.")


def options_of(text: str, source: str = "feat.params") -> dict[str, str]:
    """The options of a `feat.params`, names without the dash: any number a line, `#` begins a comment."""
    words = [w for line in text.splitlines() for w in line.split("#", 1)[0].split()]
    pairs: dict[str, str] = {}
    for i in range(0, len(words), 2):
        name = words[i]
        if not name.startswith("-") or len(name) < 2:
            raise FeatureParameterError(f"{source}: expected an option such as -nfilt, found {one_line(name)!r}.")
        if i + 1 == len(words):
            raise FeatureParameterError(f"{source}: option {one_line(name)} has no value.")
        pairs[name[1:]] = words[i + 1]
    return pairs


def notes_of(pairs: Mapping[str, str]) -> list[str]:
    """Return notes on options (checked, names without a dash) that are left out or interpreted differently."""
    notes = []
    if pairs.get("cmn", "").lower() in ("live", "prior"):
        notes.append(f"-cmn {pairs['cmn']} is computed as batch: the mean of the whole utterance")
    if pairs.get("agc", "").lower() == "emax":
        notes.append("-agc emax begins anew in every utterance")
    if boolean(pairs.get("dither", "no")):
        notes.append("-dither is left out")
    if ignored := [f"-{name}" for name in pairs if _ignored(name)]:
        notes.append(f"{', '.join(ignored)} {'is' if len(ignored) == 1 else 'are'} ignored")
    if "samprate" not in pairs and float(pairs.get("upperf", SAMPLE_RATE)) <= NARROW_BAND:
        notes.append(
            f"no -samprate, though the filters end at {float(pairs['upperf']):g} Hz: taken as {SAMPLE_RATE} Hz, "
            "as pocketsphinx does"
        )
    return notes


def _ignored(name: str) -> bool:
    return name in SEARCH or name.startswith(SILENCE)


def finite(text: str) -> float:
    value = float(text)
    if not abs(value) < LARGEST:
        raise ValueError(f"a number below {LARGEST:g} is needed")
    return value


def integer(text: str) -> int:
    value = finite(text)  # pocketsphinx prints 1.600000e+04
    if value != int(value):
        raise ValueError("a whole number is needed")
    return int(value)


def boolean(text: str) -> bool:
    if text.lower() in ("yes", "true", "1", "y", "t"):
        return True
    if text.lower() in ("no", "false", "0", "n", "f"):
        return False
    raise ValueError("yes or no is needed")


def _choice(*names: str, **meanings: str) -> Callable[[str], str]:
    known = {name: name for name in names} | meanings

    def read(text: str) -> str:
        if text.lower() not in known:
            raise ValueError(f"implemented are {', '.join(known)}")
        return known[text.lower()]

    return read


READERS: Mapping[object, Callable[[str], Any]] = {
    bool: boolean,
    float: finite,
    int: integer,
    str: str,
    tuple[float, ...]: lambda text: tuple(map(finite, text.split(","))),
}
"""By the type of a field."""

_READERS = {name: READERS[kind] for name, kind in get_type_hints(FeatureParameters).items()} | {
    "transform": _choice("legacy", "dct", "htk"),
    "cmn": _choice("batch", "none", current="batch", live="batch", prior="batch"),
    "agc": _choice("none", "max", "emax", "noise"),
    "ceplen": integer,
    "dither": boolean,
}
