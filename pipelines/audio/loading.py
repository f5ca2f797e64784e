"""Reads sound files as one channel at a model's rate, mostly 16 kHz.

Everything that libsndfile reads is accepted (WAV, FLAC, OGG, MP3 …), at any rate and channel count, and joined files;
`Audio.notes` says what was changed or left out. A file that cannot be trusted (cut short,
without sound, with samples that are no numbers) is refused with one sentence rather than decoded.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import soundfile
import soxr
from msgspec import Meta

from pipelines.audio import containers, formats
from pipelines.audio.containers import MPEG_FRAME, TOLERATED_SAMPLES, Link
from pipelines.audio.level import FULL_SCALE, FULL_SCALE_16, Level
from pipelines.audio.link_file import Content, Fault, decoding, quiet
from pipelines.frontend.parameters import SAMPLE_RATE, WIDE_BAND, Target
from profiler.arrays import F32, I8
from profiler.clock import FRAME_S
from profiler.errors import BadInput
from profiler.files import inputs
from profiler.plain import one_line
from profiler.spans import Cost

STAGE = "frontend.audio"
COST = Cost(unmodelled="a library reads and decodes the file, and what that computes depends on its format")
"""Reading has no cost law: libsndfile and soxr do the work."""
SHORTEST_WINDOW_S = 0.0256  # one analysis window of the front end
LOWEST_RATE, HIGHEST_RATE = 1_000, 768_000  # Hz; beyond these a header is broken or hostile
FULL_SCALE_LIMIT = 32.0  # 30 dB above full scale no float recording reaches: integers as floats
BLOCK_SAMPLES = 1 << 17  # samples decoded per call: a few milliseconds
SMALL_BLOCK = 1 << 12  # where the decoder may fail, and the block is lost
UNKNOWN_FRAMES = 1 << 62  # libsndfile's length of a stream that does not tell its own
LONGEST_S = 3 * 3600
"""Seconds of one recording. The mean of its cepstra is of all of it, so samples and features are held whole:
1 GB for three hours. (A day of silence is a FLAC of 5 MB.)"""
MAX_FILE_BYTES = 64 << 30  # Three hours of sixteen channels at 192 kHz are 133 GB as floats, 66 GB as 16-bit integers
MAX_CHANNELS = 1024  # as libsndfile has it
MAX_LINKS = 12_000  # recordings joined in one file: three hours of pieces of a second are 10,800
ENDS_EARLY_S = 0.01  # a frame: a file that ends so much before the part asked for gets a note
SEEKABLE = ("PCM", "FLOAT", "DOUBLE", "ULAW", "ALAW")
"""Subtypes in which a place is found by its number; others are decoded from the start."""
GROWTH = 1.25  # of the sample array if the length in the header was too small


class AudioError(BadInput):
    """Sound or a transcript table that cannot be used; the message is one sentence."""


class Part(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which part of a sound file is one utterance.

    `channel`: from 0; None: all channels, mixed. `begin_s`, `end_s`: seconds from the start of the file, None: to its
    end. `raw`: rate and sample format of a file without a header, as in the setting `audio.raw`.
    """

    channel: Annotated[int, Meta(ge=0, lt=MAX_CHANNELS)] | None = None
    begin_s: Annotated[float, Meta(ge=0)] = 0.0
    end_s: Annotated[float, Meta(gt=0)] | None = None
    raw: str = ""


WHOLE = Part()


@dataclass(frozen=True)
class Audio:
    """One file's sound: float32 samples in -1…1, one channel at `sample_rate`."""

    path: Path
    samples: F32
    source_rate: int
    source_channels: int
    notes: list[str] = field(default_factory=list)
    sample_rate: int = SAMPLE_RATE

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.sample_rate


def load(path: str | Path, part: Part = WHOLE, target: Target = WIDE_BAND) -> Audio:
    """Read a part of one sound file, at the target's rate. Raises AudioError with one sentence that names the file."""
    path = Path(path)
    with _opened(path, part) as source:
        sound = _Sound(source, part, target)
        level = sound.level
        if part.channel is None and level.channels_cancel:
            del sound  # two hours of it are half a gigabyte
            sound = _Sound(source, msgspec.structs.replace(part, channel=level.loudest), target)
    notes, n = list(dict.fromkeys(source.notes)), sound.channels
    if n > 1 and part.channel is not None:
        notes.append(f"channel {part.channel + 1} of {n}")
    elif n > 1 and level.channels_cancel:
        alone = f"channel {level.loudest + 1} alone is decoded"
        notes.append(f"its {n} channels cancel each other (opposite polarity): {alone}")
    elif n > 1:
        notes.append(f"mixed down from {n} channels")
    notes += sound.notes
    return Audio(path, sound.samples, next(iter(sound.rates)), sound.channels, notes, target.rate)


def look(path: str | Path, part: Part = WHOLE) -> int:
    """Return the number of channels in a sound file's header, without decoding; raises AudioError as `load` does."""
    with _opened(Path(path), part) as source, source.open(source.link(0)) as (file, _):
        return int(file.channels)


def printable(path: str | Path) -> str:
    """Return the path as text for messages: names may hold control characters, or bytes that are no UTF-8."""
    return one_line(str(path))


@dataclass
class _Source:
    """A sound file that is open, and notes on what it consists of."""

    name: str
    content: Content
    raw: dict[str, int | str]
    notes: list[str]

    def link(self, at: int) -> Link:
        return Link(((0, self.content.size),)) if self.raw else containers.recording(self.content, at)

    @contextmanager
    def open(self, link: Link) -> Iterator[tuple[soundfile.SoundFile, Callable[[], int]]]:
        """Open a recording, with what says how far it was read.

        Raises AudioError, LibsndfileError or OSError if it cannot be used.
        """
        with decoding(self.content, link, self.raw) as (file, place):
            rate, promised = file.samplerate, _promised(file, link)
            if not LOWEST_RATE <= rate <= HIGHEST_RATE:
                raise AudioError(
                    f"{self.name} claims a sample rate of {rate} Hz; {LOWEST_RATE} to {HIGHEST_RATE} Hz can be used."
                )
            if promised > LONGEST_S * rate:
                raise _too_long(self.name, f"is {_clock(promised / rate)} long")
            yield file, place


def _promised(file: soundfile.SoundFile, link: Link) -> int:
    """Samples per channel that a recording should have; 0 where nobody knows."""
    if link.promised is not None:
        return link.promised
    return int(file.frames) if link.counted and file.frames < UNKNOWN_FRAMES else 0


@contextmanager
def _opened(path: Path, part: Part) -> Iterator[_Source]:
    """The sound file, ready to be read; AudioError for what cannot be used, while it is read as well."""
    name = printable(path)
    if os.path.isdir(path):
        raise AudioError(f"{name} is a folder; a sound file is needed.")
    if not os.path.exists(path):
        raise AudioError(f"{name} does not exist.")
    raw = formats.raw_format(part.raw)
    if part.raw and not raw:
        raise AudioError(f"audio.raw must be {formats.WANTED}; not {one_line(part.raw)!r}.")
    try:
        with inputs.open_input(path, "a sound file", MAX_FILE_BYTES) as content:
            if os.fstat(content.fileno()).st_size == 0:
                raise AudioError(f"{name} is empty (0 bytes); a sound file is needed.")
            source = _Source(name, Content(content), raw, [])
            if raw and containers.has_header(source.content):
                source.raw = {}
                source.notes.append("read by its header, not as audio.raw says")
            yield source
            return
    except Fault as fault:
        raise AudioError(f"{name} {fault}.") from None
    except inputs.InputError as error:
        raise AudioError(str(error)) from None
    except soundfile.LibsndfileError as error:
        reason = error.error_string.strip().rstrip(".").removeprefix("Error : ")
        if "does not exist" in reason:  # what libsndfile says of an MP3 that is none
            reason = "Format not recognised"
        if "Internal" in reason:  # its own words for what it did not expect
            reason = "Its structure makes no sense"
    except soundfile.SoundFileError as error:
        reason = one_line(str(error)).rstrip(".")
    except OSError as error:
        raise AudioError(f"{name} cannot be read: {error.strerror or error}.") from None
    if path.suffix.lower() in formats.RAW:
        raise AudioError(
            f"{name} cannot be read as sound: it has no header, and its rate and sample format are to be given, "
            "for example by --set audio.raw=16000:s16le."
        )
    raise AudioError(f"{name} cannot be read as sound (WAV, FLAC, OGG or MP3 with a header, whole): {reason}.")


def _too_long(name: str, how: str) -> AudioError:
    return AudioError(f"{name} {how}; recordings of at most {_clock(LONGEST_S)} can be decoded: cut it into parts.")


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds, as `2:00:00 h`."""
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes // 60:,}:{minutes % 60:02}:{left:02} h"


class _Sound:
    """What is read of a part of a sound file, at the target's rate: its recordings one behind the other."""

    def __init__(self, source: _Source, part: Part, target: Target) -> None:
        self.level, self.channels = Level(), 0
        self.rates: dict[int, None] = {}
        self._source, self._part, self._target = source, part, target
        self._at_s = 0.0
        """Seconds of the file, as far as it was read."""
        # Pieces that are joined at the end would take twice the memory.
        self._array, self._n = np.empty(0, np.float32), 0
        self._read()
        self._array.resize(self._n, refcheck=False)
        self.samples: F32 = self._array
        self.notes = self._noted()

    def _read(self) -> None:
        source, part = self._source, self._part
        n_links = 0
        at: int | None = 0
        while at is not None:
            link = source.link(at)
            try:
                with source.open(link) as (file, stands):
                    self.rates[file.samplerate] = None
                    self.channels = max(self.channels, file.channels)
                    self._at_s += self._read_one(link, file)
                    place = stands()
            except soundfile.LibsndfileError:
                if self._at_s == 0:
                    raise
                source.notes.append(_unreadable(self._at_s))
                break
            n_links += 1
            ended = source.raw or (part.end_s is not None and self._at_s >= part.end_s)
            at = None if ended else containers.following(source.content, link, place)
            source.notes += link.notes
            if n_links > MAX_LINKS:
                raise AudioError(f"{source.name} has more than {MAX_LINKS:,} recordings joined in it.")
        if n_links > 1:
            source.notes.insert(0, f"{n_links} recordings joined in one file")

    def _noted(self) -> list[str]:
        """Notes on what was read; AudioError where that is nothing."""
        name, part, rate = self._source.name, self._part, self._target.rate
        if part.channel is not None and part.channel >= self.channels:
            several = "s" * (self.channels > 1)
            raise AudioError(f"{name} has {self.channels} channel{several}; there is no channel {part.channel + 1}.")
        if self._at_s == 0:
            raise AudioError(f"{name} contains no sound: it has a header and no samples.")
        if not self._n and part.begin_s >= self._at_s:
            raise AudioError(f"{name} is {self._at_s:.2f} s long; there is nothing of it from {part.begin_s:.2f} s on.")
        if not self._n:
            raise AudioError(
                f"{name} contains no sound: {self.level.n} samples at {next(iter(self.rates))} Hz are less than one at "
                f"{rate} Hz."
            )
        notes = []
        for other in self.rates:
            lacking = f", with nothing above {other // 2} Hz where the model listens up to {self._target.band:.0f}"
            if other != rate:
                notes.append(f"resampled from {other} Hz{lacking if other / 2 < self._target.band else ''}")
        if part.end_s is not None and part.end_s - self._at_s > ENDS_EARLY_S:
            notes.append(f"ends {part.end_s - self._at_s:.2f} s before the end that is asked for")
        notes += self.level.notes()
        if self._n < SHORTEST_WINDOW_S * rate:
            notes.append("shorter than one analysis window: a single frame padded with silence")
        return notes

    def _read_one(self, link: Link, file: soundfile.SoundFile) -> float:
        """Add what lies within the part of the next recording; returns its seconds as far as read."""
        source, part, at_s, wanted_rate = self._source, self._part, self._at_s, self._target.rate
        rate, promised = file.samplerate, _promised(file, link)
        begin = max(round((part.begin_s - at_s) * rate), 0)
        end = UNKNOWN_FRAMES if part.end_s is None else round((part.end_s - at_s) * rate)
        resampler = None
        if rate != wanted_rate:
            resampler = soxr.ResampleStream(rate, wanted_rate, 1, dtype="float32")
        expected = max(min(promised or BLOCK_SAMPLES, end) - begin, 0) * wanted_rate // rate + BLOCK_SAMPLES
        if self._n == 0:
            self._array = np.empty(expected, np.float32)  # memory that is not written to costs nothing
        elif self._n + expected > len(self._array):
            self._array.resize(self._n + expected, refcheck=False)
        n_read = 0
        if 0 < begin < promised and file.subtype.startswith(SEEKABLE):
            n_read = file.seek(begin)
        for block in _blocks(source, link, file, n_read, promised):
            at, n_read = n_read, n_read + len(block)
            if at_s * rate + n_read > LONGEST_S * rate:
                raise _too_long(source.name, "goes on after that")
            block = block[max(begin - at, 0) : max(end - at, 0)]
            if len(block):
                mono = self.level.add(block, part.channel, FULL_SCALE.get(file.subtype, FULL_SCALE_16))
                self._add(mono if resampler is None else resampler.resample_chunk(mono))
            if n_read >= end:
                # Where a row names nothing but a duration, which may be rounded.
                if part.begin_s == 0 and part.channel is None and promised - end > ENDS_EARLY_S * rate:
                    source.notes.append(f"the first {part.end_s:.2f} s of {at_s + promised / rate:.2f} s are read")
                break
        else:
            source.notes += _compared(source.name, link, promised, n_read, rate)
        if resampler is not None:
            self._add(resampler.resample_chunk(np.empty(0, np.float32), last=True))
        return float(n_read / rate)

    def _add(self, piece: F32) -> None:
        end = self._n + len(piece)
        if end > len(self._array):
            self._array.resize(int(end * GROWTH), refcheck=False)
        self._array[self._n : end] = piece
        self._n = end


def _unreadable(from_s: float) -> str:
    return f"what follows after {from_s:.2f} s cannot be read as sound"


def _compared(name: str, link: Link, promised: int, there: int, rate: int) -> list[str]:
    """Compare the samples that a header promises with those that were read."""
    missing = promised - there
    if promised and missing > (MPEG_FRAME if link.mpeg else TOLERATED_SAMPLES):
        raise AudioError(
            f"{name} is cut short: its header promises {promised} samples per channel and only {there} are there."
        )
    if not missing or (promised == 0 and link.promised is None):
        return []
    if promised == 0:
        return ["its header leaves its length open: it is read to its end"]
    more = f"{abs(missing)} samples ({abs(missing) / rate:.3f} s)"
    if missing > 0:
        return [f"its header promises {more} more than there are"]
    return [f"its header leaves {more} out, which are read, too"]


def _blocks(source: _Source, link: Link, file: soundfile.SoundFile, position: int, promised: int) -> Iterator[F32]:
    """The sound of a recording from a sample on in blocks f32[n, channels], checked.

    Beyond what was promised the decoder of FLAC may come to what is no sound; a block in which it does is lost.
    """
    while True:
        left = promised - position
        n = min(left, BLOCK_SAMPLES // file.channels) if left > 0 else SMALL_BLOCK
        if promised and left <= 0 and link.promised is None:
            return
        try:
            with quiet(link):
                block = file.read(n, dtype="float32", always_2d=True)
        except soundfile.LibsndfileError:
            if left > 0 and position:
                raise AudioError(
                    f"{source.name} is cut short or damaged: it cannot be decoded to the end that its header promises, "
                    f"{promised / file.samplerate:.2f} s."
                ) from None
            if not position:
                raise
            if not promised:
                source.notes.append(_unreadable(position / file.samplerate))
            return
        if len(block) == 0:
            return
        peak = float(np.abs(block).max())
        if not np.isfinite(peak):
            bad = position + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
            raise AudioError(
                f"{source.name} holds a sample that is not a finite number, {bad / file.samplerate:.3f} s "
                "from its start."
            )
        if peak > FULL_SCALE_LIMIT:
            raise AudioError(
                f"{source.name} holds float samples up to {peak:.0f} where 1 is full scale; "
                "write them as integers or scale them to -1…1."
            )
        position += len(block)
        yield block


def peaks(samples: F32, n_frames: int, rate: int = SAMPLE_RATE) -> I8:
    """Lowest and highest sample of each 10 ms frame, int8[n_frames, 2], ±127 at full scale.

    The last frame also covers what lies beyond it; frames beyond the sound are silent.
    """
    out = np.zeros((n_frames, 2), np.int8)
    hop = round(rate * FRAME_S)
    starts = np.arange(0, min(n_frames * hop, len(samples)), hop)
    if len(starts):
        for column, extreme in enumerate((np.minimum, np.maximum)):
            level = np.rint(extreme.reduceat(samples, starts) * 127.0)
            out[: len(starts), column] = np.clip(level, -127, 127)
    return out
