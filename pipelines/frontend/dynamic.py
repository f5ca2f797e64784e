"""From cepstra to feature streams: which value or difference stands in which column (pocketsphinx' `feat.c`).

A stream is what one mixture of Gaussians is over. Streams of different widths are laid out at the widest one's,
with zeros behind the others, so that every stream begins at a multiple of one number.
"""

import re
from dataclasses import dataclass

import numpy as np

from pipelines.frontend.parameters import FeatureParameterError, FeatureParameters
from profiler.arrays import F32, I64, Array
from profiler.plain import one_line

VALUE, DIFFERENCE, SECOND, NOTHING = range(4)
"""Kinds of columns of a frame of features: a cepstrum, what it rises by, what that rises by, zero."""

TYPES = ("1s_c", "1s_c_d", "1s_c_d_dd", "1s_c_d_ld_dd", "1s_3c", "1s_4c", "s2_4x", "s3_1x39")
ALIASES = {"cep": "1s_c", "cep_dcep": "1s_c_d", "1s_12c_12d_3p_12dd": "s3_1x39"}
SHORT, LONG = 2, 4  # frames on either side that a difference is taken over
WIDEST_WINDOW = 10  # frames on either side of a list of widths such as 13:4
WIDEST = 1024  # columns of a frame, as of the means of a model
LONGEST = 4096  # characters of a specification

Column = tuple[int, int, int]  # What it is (one of these kinds), over how many frames, of which cepstrum


@dataclass(frozen=True, eq=False)
class Layout:
    """How a frame is made of cepstra.

    `columns` int64 [n, 3]: see Column. `matrix` f32 [outputs, n]: applied to them (LDA), or empty: columns are the
    outputs. `widths`: of each stream. Outputs are len(widths) × max(widths).
    """

    columns: I64
    matrix: F32
    widths: tuple[int, ...]

    @property
    def outputs(self) -> int:
        return len(self.widths) * max(self.widths)


def layout(p: FeatureParameters, transform: Array | None = None, source: str = "feat.params") -> Layout:
    """The layout of `-feat`, `-svspec` and `-ldadim`; FeatureParameterError when they do not fit each other.

    `transform` f32 [m, n]: what a model's `feature_transform` does to a frame of n values.
    """
    streams = _streams(p, source)
    columns, widths = [column for stream in streams for column in stream], list(map(len, streams))
    if transform is not None:
        rows, needed = transform.shape
        if len(streams) > 1 or needed != len(columns):
            made = " + ".join(map(str, widths))
            raise FeatureParameterError(
                f"{source}: feature_transform takes {needed} features in one stream, -feat {p.feat} makes {made}."
            )
        widths = [min(p.ldadim, rows) if p.ldadim else rows]
    places = [list(range(sum(widths[:i]), sum(widths[: i + 1]))) for i in range(len(widths))]
    if p.svspec:
        if len(streams) > 1:
            raise FeatureParameterError(
                f"{source}: -svspec parts features of one stream, and -feat {p.feat} has {len(streams)}."
            )
        places = _parted(p.svspec, widths[0], source)
    return _laid_out(columns, places, transform)


def _laid_out(columns: list[Column], places: list[list[int]], transform: Array | None) -> Layout:
    widest = max(map(len, places))
    if widest * len(places) > WIDEST:
        raise FeatureParameterError(f"More than {WIDEST} features a frame are not computed.")
    order = [at for place in places for at in (*place, *[-1] * (widest - len(place)))]
    widths = tuple(map(len, places))
    if transform is None:
        made = [columns[at] if at >= 0 else (NOTHING, 0, 0) for at in order]
        return Layout(np.array(made, np.int64), np.empty((0, 0), np.float32), widths)
    matrix = np.where(np.array(order)[:, None] >= 0, transform[order], 0.0).astype(np.float32)
    return Layout(np.array(columns, np.int64), matrix, widths)


def spec_of(widths: tuple[int, ...]) -> str:
    """The `-svspec` of neighbouring features in streams of these widths."""
    ends = np.cumsum(widths)
    return "/".join(f"{end - width}-{end - 1}" for width, end in zip(widths, ends, strict=True))


def in_order(p: FeatureParameters) -> bool:
    """Whether the streams are neighbouring features, so that they may be parted in another way."""
    whole = len(_streams(p, "")) == 1
    if not (whole and p.svspec):
        return whole
    numbers = [int(number) for number in re.findall(r"\d+", p.svspec)]
    return p.svspec == spec_of(tuple(b - a + 1 for a, b in zip(numbers[::2], numbers[1::2], strict=False)))


def _streams(p: FeatureParameters, source: str) -> list[list[Column]]:
    feat, every = ALIASES.get(p.feat, p.feat), range(p.ncep)
    values = [(VALUE, 0, i) for i in every]
    short = [(DIFFERENCE, SHORT, i) for i in every]
    long = [(DIFFERENCE, LONG, i) for i in every]
    second = [(SECOND, SHORT, i) for i in every]
    if feat in ("s2_4x", "s3_1x39"):
        if p.ncep != 13:
            raise FeatureParameterError(f"{source}: -feat {p.feat} needs -ncep 13.")
        power = [values[0], short[0], second[0]]
        if feat == "s2_4x":
            return [values[1:], short[1:] + long[1:], power, second[1:]]
        return [values[1:] + short[1:] + power + second[1:]]
    if feat in ("1s_3c", "1s_4c"):
        return _windows([p.ncep], int(feat[3]))
    if feat in TYPES:
        parts = {"c": values, "d": short, "ld": long, "dd": second}
        return [[column for name in feat.split("_")[1:] for column in parts[name]]]
    listed = len(feat) < LONGEST and re.fullmatch(r"(\d{1,4}(?:,\d{1,4})*)(?::(\d{1,2}))?", feat)
    if not listed:
        raise FeatureParameterError(
            f"{source}: -feat {one_line(p.feat[:80])} is not known; computed are {', '.join(TYPES)} and widths of "
            "streams such as 13:2."
        )
    widths, window = [int(width) for width in listed[1].split(",")], int(listed[2] or 0)
    if min(widths) < 1 or sum(widths) != p.ncep or window > WIDEST_WINDOW:
        raise FeatureParameterError(
            f"{source}: -feat {one_line(p.feat[:80])} must be widths that add up to -ncep {p.ncep}, and a window of "
            f"{WIDEST_WINDOW} frames at most."
        )
    return _windows(widths, window)


def _windows(widths: list[int], window: int) -> list[list[Column]]:
    """Streams made of these numbers of cepstra, each with those of the frames around it."""
    around = range(-window, window + 1)
    firsts = [sum(widths[:i]) for i in range(len(widths))]
    return [
        [(VALUE, at, first + i) for at in around for i in range(width)]
        for first, width in zip(firsts, widths, strict=True)
    ]


def _parted(spec: str, width: int, source: str) -> list[list[int]]:
    """The features of each stream that a specification such as 24,0-11/25,12-23/26-38 names."""
    wrong = FeatureParameterError(
        f"{source}: -svspec {one_line(spec[:80])} must name features 0 to {width - 1} as in 0-12/13-25, each once "
        f"in a stream, {width} at most."
    )
    if len(spec) > LONGEST or not re.fullmatch(r"\d+(-\d+)?([,/]\d+(-\d+)?)*", spec):
        raise wrong
    streams: list[list[int]] = []
    for part in spec.split("/"):
        stream: list[int] = []
        for piece in part.split(","):
            first, _, last = piece.partition("-")
            begin, end = int(first[:9]), int((last or first)[:9])
            if not begin <= end < width:
                raise wrong
            stream += range(begin, end + 1)
        streams.append(stream)
    if sum(map(len, streams)) > width or any(len(set(stream)) != len(stream) for stream in streams):
        raise wrong
    return streams
