"""Short-time spectra of decoded audio, one per frame, read again from the files that the session names. No Qt.

Hann windows of 25 ms every 10 ms (a frame), in bands of equal width up to 8 kHz. They are computed in chunks of some
seconds as they come into view; those used last are kept.
"""

from collections import OrderedDict
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from app.model.sound import SoundError, pieces_of, read
from profiler.arrays import F32, F64, Array
from profiler.clock import FRAME_S
from profiler.plain import one_line
from profiler.session.model import Utterance

BANDS: Final = 128
TOP_HZ: Final = 8000.0
WINDOW_S: Final = 0.025
SILENT_DB: Final = -120  # Least level; also that of bands above half of the sampling rate
ABSENT_DB: Final = -128  # Where nothing was read
CHUNK_FRAMES: Final = 512
KEPT: Final = 512  # Chunks that are kept, and drawn at once: 32 MB at most


def spectra(samples: F32, rate: int, frames: int) -> Array:
    """Levels in dB of full scale, int8 [frames, BANDS], of samples −1…1; a sine of full scale has 0 in its band."""
    hop, window = rate * FRAME_S, max(2, round(WINDOW_S * rate))
    size = 1 << (window - 1).bit_length()
    starts = np.round(np.arange(frames) * hop).astype(np.int64)
    padded = np.zeros(int(starts[-1]) + window if frames else 0, np.float32)
    padded[: len(samples)] = samples[: len(padded)]
    shape = np.hanning(window + 1)[:-1].astype(np.float32)
    pieces = padded[starts[:, None] + np.arange(window)] * shape
    power = np.abs(np.fft.rfft(pieces, size, axis=1)) ** 2 / (float(shape.sum()) / 2) ** 2
    edges = np.arange(BANDS) * (TOP_HZ / BANDS)
    there = int(np.searchsorted(edges, rate / 2))
    loudest = np.maximum.reduceat(power, np.round(edges[:there] * size / rate).astype(np.int64), axis=1)
    found = np.full((frames, BANDS), SILENT_DB, np.int8)
    found[:, :there] = np.clip(10 * np.log10(np.maximum(loudest, 1e-12)), SILENT_DB, 0)
    return found


@dataclass(frozen=True)
class Chunk:
    """Frames [begin, end) of an utterance, counted from its own first one."""

    utterance: Utterance
    begin: int
    end: int

    @property
    def key(self) -> tuple[int, int, int]:
        return self.utterance.id, self.begin, self.end

    @property
    def first(self) -> int:
        return self.utterance.first_frame + self.begin


def chunks_of(utterances: Iterable[Utterance], first: int, last: int) -> Iterator[Chunk]:
    """The chunks that have frames of [first, last)."""
    for one, begin, end in pieces_of(utterances, first, last):
        for at in range(begin // CHUNK_FRAMES * CHUNK_FRAMES, end, CHUNK_FRAMES):
            yield Chunk(one, at, min(at + CHUNK_FRAMES, one.n_frames))


class Spectra:
    """The chunks that were read, those used last; or why they could not be."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, int, int], Array | str] = OrderedDict()

    def forget(self) -> None:
        self._known.clear()

    def missing(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        return [chunk for chunk in chunks if chunk.key not in self._known]

    def read(self, chunks: Iterable[Chunk]) -> Generator[None, None, None]:
        """Read chunks, with a rest after each."""
        for chunk in chunks:
            frames = chunk.end - chunk.begin
            name = one_line(chunk.utterance.path)
            try:
                # Not a pipe or a device, whose reading would hold up the window.
                if not Path(chunk.utterance.path).is_file():
                    raise SoundError(f"{name} is not there any more.")
                samples, rate = read(chunk.utterance, chunk.begin, chunk.end)
                self._known[chunk.key] = spectra(samples, rate, frames)
            except SoundError as error:
                self._known[chunk.key] = str(error)
            except (TypeError, ValueError, OverflowError):
                self._known[chunk.key] = f"The session does not say where in {name} the sound is."
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
            yield

    def levels(self, chunks: Iterable[Chunk], edges: F64) -> Array:
        """Loudest level per column between `edges` (frames, rising) and band, int8 [columns, BANDS], or ABSENT_DB."""
        begin, end = int(np.floor(edges[0])), int(np.ceil(edges[-1]))
        frames = np.full((end - begin, BANDS), ABSENT_DB, np.int8)
        for chunk in chunks:
            found = self._known.get(chunk.key)
            if isinstance(found, np.ndarray):
                self._known.move_to_end(chunk.key)
                left, right = max(chunk.first, begin), min(chunk.first + len(found), end)
                if left < right:
                    frames[left - begin : right - begin] = found[left - chunk.first : right - chunk.first]
        return loudest_of(frames, np.floor(edges[:-1]).astype(np.int64) - begin)

    def reason(self, chunks: Iterable[Chunk]) -> str:
        found = [self._known.get(chunk.key) for chunk in chunks]
        texts = [one for one in found if isinstance(one, str)]
        return texts[0] if texts and not any(isinstance(one, np.ndarray) for one in found) else ""


def loudest_of(values: Array, starts: Array) -> Array:
    """The greatest of the rows of `values` from each of `starts` (rising) to the next; one row where they are equal."""
    found: Array = np.maximum.reduceat(values, starts, axis=0)
    return found
