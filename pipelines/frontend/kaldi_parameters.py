"""The feature options of Kaldi: `mfcc.conf`, `splice_opts`, `cmvn_opts` and `delta_opts`, lists of `--name=value`.

Names and defaults are those of Kaldi's compute-mfcc-feats, splice-feats, apply-cmvn and add-deltas. What would change
the features and is not computed is refused by name.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_type_hints

from pipelines.frontend.parameters import HIGHEST_RATE, LOWEST_RATE, READERS, FeatureParameterError, Target, demand
from profiler.arrays import F32
from profiler.plain import one_line

if TYPE_CHECKING:
    import kaldi_native_fbank

FRAME_SHIFT = 10.0  # In milliseconds: the only one, as everywhere in this program
PACKAGE = "kaldi-native-fbank"
MISSING = f"The features of a Kaldi model are computed by the package {PACKAGE}: pip install 'asrscope[kaldi]'."
WINDOWS = ("povey", "hamming", "hanning", "rectangular", "blackman")
MOST_COEFFICIENTS = 128
WIDEST_CONTEXT = 20  # Frames on either side that are spliced

WITHOUT_EFFECT = frozenset(
    {
        *("allow-downsample", "allow-upsample", "channel", "debug-mel", "dither", "max-feature-vectors"),
        *("min-duration", "output-format", "print-args", "raw-energy", "verbose", "vtln-high", "vtln-low"),
        *("reverse", "skip-dims", "subtract-mean", "truncate"),
    }
)
"""Options that leave the cepstra of a whole utterance as they are: those of VTLN without its warp factors. `raw-energy`
acts with `use-energy` alone, and is read there; dither is noise of half a bit, other noise every time."""


OF_FILES = {
    "cmvn_opts": frozenset({"norm-means", "norm-vars", "reverse", "skip-dims"}),
    "delta_opts": frozenset({"delta-order", "delta-window", "truncate"}),
    "splice_opts": frozenset({"left-context", "right-context"}),
}
"""The options of programs that change cepstra, by the files that have them; `mfcc.conf` has the others."""


@dataclass(frozen=True)
class KaldiFeatures:
    """How a frame of features is made, named as Kaldi's options; lengths in ms, frequencies in Hz.

    `left_context`, `right_context`: frames that are spliced; a model has them or differences (`delta_order`).
    """

    sample_frequency: float = 16_000.0
    frame_shift: float = FRAME_SHIFT
    frame_length: float = 25.0
    preemphasis_coefficient: float = 0.97
    remove_dc_offset: bool = True
    window_type: str = "povey"
    round_to_power_of_two: bool = True
    blackman_coeff: float = 0.42
    snip_edges: bool = True
    num_mel_bins: int = 23
    low_freq: float = 20.0
    high_freq: float = 0.0
    num_ceps: int = 13
    use_energy: bool = True
    energy_floor: float = 0.0
    raw_energy: bool = True
    cepstral_lifter: float = 22.0
    htk_compat: bool = False
    norm_means: bool = True
    norm_vars: bool = False
    delta_order: int = 0
    delta_window: int = 2
    left_context: int = 0
    right_context: int = 0

    @property
    def rate(self) -> int:
        return int(self.sample_frequency)

    @property
    def target(self) -> Target:
        return Target(self.rate, self.high_freq if self.high_freq > 0 else self.rate / 2 + self.high_freq)

    @property
    def window_samples(self) -> int:
        return int(self.sample_frequency * 0.001 * self.frame_length)

    @property
    def hop_samples(self) -> int:
        """Distance of two frames in samples."""
        return int(self.sample_frequency * 0.001 * self.frame_shift)

    @property
    def fft_samples(self) -> int:
        length = self.window_samples
        return 1 << (length - 1).bit_length() if self.round_to_power_of_two else length

    @property
    def spliced(self) -> int:
        return self.num_ceps * (self.delta_order + 1) * (self.left_context + 1 + self.right_context)

    def check(self, source: str) -> None:
        """Raise FeatureParameterError if these features cannot be computed."""
        rules = (
            (
                LOWEST_RATE <= self.sample_frequency <= HIGHEST_RATE and self.sample_frequency == self.rate,
                f"--sample-frequency {self.sample_frequency:g} must be a whole number within {LOWEST_RATE} and "
                f"{HIGHEST_RATE} Hz",
            ),
            (self.frame_shift == FRAME_SHIFT, f"--frame-shift {self.frame_shift:g} is not computed (only 10 ms)"),
            (10 <= self.frame_length <= 100, f"--frame-length {self.frame_length:g} must lie within 10 and 100 ms"),
            (
                0 <= self.low_freq < self.target.band <= self.rate / 2,
                f"--low-freq {self.low_freq:g} and --high-freq {self.high_freq:g} must rise within 0 and "
                f"{self.rate // 2} Hz",
            ),
            (
                1 <= self.num_ceps <= self.num_mel_bins <= MOST_COEFFICIENTS and self.num_mel_bins >= 3,
                f"--num-ceps {self.num_ceps} must not exceed --num-mel-bins {self.num_mel_bins}, which lie within 3 "
                f"and {MOST_COEFFICIENTS}",
            ),
            (0 <= self.preemphasis_coefficient <= 1, "--preemphasis-coefficient must lie within 0 and 1"),
            (self.window_type in WINDOWS, f"--window-type must be one of {', '.join(WINDOWS)}"),
            (self.cepstral_lifter >= 0 and self.energy_floor >= 0, "lifter and energy floor must not be negative"),
            (
                0 <= self.delta_order <= 3 and 1 <= self.delta_window <= WIDEST_CONTEXT,
                "--delta-order must lie within 0 and 3, --delta-window within 1 and 20",
            ),
            (not (self.delta_order and self.left_context + self.right_context), "differences are not spliced"),
            (
                0 <= self.left_context <= WIDEST_CONTEXT and 0 <= self.right_context <= WIDEST_CONTEXT,
                f"at most {WIDEST_CONTEXT} frames of context are spliced",
            ),
        )
        demand(rules, source)


def take_frames(source: kaldi_native_fbank.OnlineMfcc | kaldi_native_fbank.OnlineFbank, into: F32, made: int) -> int:
    """Put the frames of `source` from number `made` on into f32 [n, values]; return how many there are then."""
    ready: int = min(source.num_frames_ready, len(into))
    for t in range(made, ready):
        into[t] = source.get_frame(t)
    source.pop(ready - made)
    return ready


def require_package() -> None:
    """Raise FeatureParameterError where the package that computes the features is missing."""
    if importlib.util.find_spec(PACKAGE.replace("-", "_")) is None:
        raise FeatureParameterError(MISSING)


def options_of(text: str, source: str) -> dict[str, str]:
    """The options of a file or line: `--name=value` or `--name`, which means true; `#` begins a comment."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        for word in line.split("#", 1)[0].split():
            name, equals, value = word.removeprefix("--").partition("=")
            if not word.startswith("--") or not name:
                raise FeatureParameterError(
                    f"{source}: expected an option such as --num-ceps=13, found {one_line(word[:80])!r}."
                )
            found[name.lower().replace("_", "-")] = value if equals else "true"
    return found


def read(options: Mapping[str, str], source: str) -> dict[str, float | str]:
    """The values of `options` by the names of KaldiFeatures; FeatureParameterError for one that is not computed."""
    if options.get("subtract-mean", "false").lower() not in ("false", "f", "0"):
        raise FeatureParameterError(
            f"{source}: --subtract-mean (a mean before that of the utterance) requires features that are not computed."
        )
    return values_of(KaldiFeatures, options, source, WITHOUT_EFFECT)


def values_of(
    kind: type, options: Mapping[str, str], source: str, without_effect: Collection[str]
) -> dict[str, float | str]:
    """The values of `options` by the fields of the dataclass `kind`; FeatureParameterError for an unknown one."""
    types = get_type_hints(kind)
    values: dict[str, float | str] = {}
    for name, text in options.items():
        key = name.replace("-", "_")
        if key in types:
            try:
                values[key] = READERS[types[key]](text)
            except ValueError:
                raise FeatureParameterError(
                    f"{source}: --{one_line(name[:80])}={one_line(text[:80])} cannot be used as a value."
                ) from None
        elif name not in without_effect:
            raise FeatureParameterError(f"{source}: --{one_line(name[:80])} requires features that are not computed.")
    return values
