"""Reads sound files as 16 kHz mono, finds the files that a user means, and reads their transcripts.

Everything that libsndfile reads is accepted (WAV, FLAC, OGG, MP3 …), at any rate and channel count;
`Audio.notes` says what was changed. A file that cannot be trusted (cut short,
without sound, with samples that are no numbers) is refused with one sentence rather than decoded.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import soundfile
import soxr
from msgspec import Meta

from pipelines.audio import containers
from pipelines.frontend.parameters import SAMPLE_RATE, WIDE_BAND, Target
from profiler.arrays import F32, I8
from profiler.errors import BadInput
from profiler.files import inputs
from profiler.frames import FRAME_S
from profiler.plain import one_line
from profiler.spans import Cost

STAGE = "frontend.audio"
COST = Cost(
    unmodelled="a library reads and decodes the file, and what that computes depends on its format"
)
"""Reading has no cost law: libsndfile and soxr do the work."""

SUFFIXES = frozenset({".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff"})
"""Suffixes that folders and patterns match; a file given by name may have any suffix."""

SHORTEST_WINDOW_S = 0.0256  # one analysis window of the front end
LOWEST_RATE, HIGHEST_RATE = 1_000, 768_000  # Hz; beyond these a header is broken or hostile
FULL_SCALE_LIMIT = 32.0  # 30 dB above full scale no float recording reaches: integers as floats
BLOCK_SAMPLES = 1 << 17  # samples decoded per call: a few milliseconds
MAX_PARTS = 64  # of a pattern of files; deeper ones recurse deeper than Python does
UNKNOWN_FRAMES = 1 << 62  # libsndfile's length of a stream that does not tell its own
LONGEST_S = 3 * 3600
"""Seconds of one recording. The mean of its cepstra is of all of it, so samples and features are held whole:
1 GB for three hours. (A day of silence is a FLAC of 5 MB.)"""
MAX_FILE_BYTES = 64 << 30
"""Three hours of sixteen channels at 192 kHz are 133 GB as floats, 66 GB as 16-bit integers."""
MAX_CHANNELS = 1024  # as libsndfile has it
GROWTH = 1.25  # of the sample array if the length in the header was too small
TABLE_HEADER = ["file", "transcript"]
MAX_TABLE_BYTES = 64 << 20
"""The transcripts of the thousand hours of LibriSpeech have 60 MB."""
MAX_TABLE_LINES = 500_000
MAX_TRANSCRIPT = 400_000
"""Characters said in one file: three hours at four words a second are some 260 000."""


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
        """Length in seconds."""
        return len(self.samples) / self.sample_rate


def load(path: str | Path, target: Target = WIDE_BAND) -> Audio:
    """Read one sound file whole, at the target's rate. Raises AudioError with one sentence that names the file."""
    path = Path(path)
    with _opened(path) as file:
        return _read(path, file, target)


def look(path: str | Path) -> None:
    """Check the container, rate and length of a sound file without decoding it; AudioError as from `load`."""
    with _opened(Path(path)):
        pass


def shown(path: str | Path) -> str:
    """The path as sentences show it: names may hold control characters, or bytes that are no UTF-8."""
    return one_line(str(path))


@contextmanager
def _opened(path: Path) -> Iterator[soundfile.SoundFile]:
    """The sound file, ready to be read; AudioError for what cannot be used, while it is read as well."""
    name = shown(path)
    if os.path.isdir(path):
        raise AudioError(f"{name} is a folder; a sound file is needed.")
    if not os.path.exists(path):
        raise AudioError(f"{name} does not exist.")
    try:
        with inputs.open_input(path, "a sound file", MAX_FILE_BYTES) as content:
            if os.fstat(content.fileno()).st_size == 0:
                raise AudioError(f"{name} is empty (0 bytes); a sound file is needed.")
            if fault := containers.fault(content):
                raise AudioError(f"{name} {fault}.")
            source = containers.mp3_with_length(content)
            # By its bytes: soundfile refuses names that are no UTF-8.
            place = str(path) if sys.platform == "win32" else os.fsencode(path)
            with soundfile.SoundFile(place if source is None else source) as file:
                _check_header(name, file)
                yield file
            return
    except inputs.InputError as error:
        raise AudioError(str(error)) from None
    except soundfile.LibsndfileError as error:
        reason = error.error_string.strip().rstrip(".").removeprefix("Error : ")
        if "does not exist" in reason:  # what libsndfile says of an MP3 that is none
            reason = "Format not recognised"
    except (TypeError, soundfile.SoundFileError) as error:  # TypeError: a headerless .raw file
        reason = one_line(str(error)).rstrip(".")
    except OSError as error:
        raise AudioError(f"{name} cannot be read: {error.strerror or error}.") from None
    raise AudioError(
        f"{name} cannot be read as sound (WAV, FLAC, OGG or MP3 with a header, whole): {reason}."
    )


def _check_header(name: str, file: soundfile.SoundFile) -> None:
    rate = file.samplerate
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise AudioError(
            f"{name} claims a sample rate of {rate} Hz; {LOWEST_RATE} to {HIGHEST_RATE} Hz "
            "can be used."
        )
    if LONGEST_S * rate < file.frames < UNKNOWN_FRAMES:
        raise _too_long(name, f"is {_clock(file.frames / rate)} long")


def _too_long(name: str, how: str) -> AudioError:
    return AudioError(
        f"{name} {how}; recordings of at most {_clock(LONGEST_S)} can be decoded: cut it into parts."
    )


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds, as `2:00:00 h`."""
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes // 60:,}:{minutes % 60:02}:{left:02} h"


def _read(path: Path, file: soundfile.SoundFile, target: Target) -> Audio:
    rate, channels, notes = file.samplerate, file.channels, []
    if channels > 1:
        notes.append(f"mixed down from {channels} channels")
    resampler = None
    if rate != target.rate:
        resampler = soxr.ResampleStream(rate, target.rate, 1, dtype="float32")
        empty = rate / 2 < target.band
        notes.append(
            f"resampled from {rate} Hz"
            + f", with nothing above {rate // 2} Hz where the model listens up to {target.band:.0f}"
            * empty
        )
    known = file.frames if file.frames < UNKNOWN_FRAMES else 0
    samples = _Samples(known * target.rate // rate + BLOCK_SAMPLES)
    n_read = 0
    for block in _blocks(path, file):
        n_read += len(block)
        if n_read > LONGEST_S * rate:
            raise _too_long(shown(path), "goes on after that")
        samples.add(block if resampler is None else resampler.resample_chunk(block))
    # The length of an MP3 is an estimate of the decoder; its frames were counted before.
    if n_read < file.frames < UNKNOWN_FRAMES and file.format != "MP3":
        raise AudioError(
            f"{shown(path)} is cut short: its header promises {file.frames} samples per channel and "
            f"only {n_read} are there."
        )
    if n_read == 0:
        raise AudioError(f"{shown(path)} contains no sound: it has a header and no samples.")
    if resampler is not None:
        samples.add(resampler.resample_chunk(np.empty(0, np.float32), last=True))
    sound = samples.taken()
    if len(sound) == 0:
        raise AudioError(
            f"{shown(path)} contains no sound: {n_read} samples at {rate} Hz are less than one at {target.rate} Hz."
        )
    if len(sound) < SHORTEST_WINDOW_S * target.rate:
        notes.append("shorter than one analysis window: a single frame padded with silence")
    return Audio(path, sound, rate, channels, notes, target.rate)


class _Samples:
    """Samples put one behind the other into one array: joining pieces at the end would take twice the memory."""

    def __init__(self, expected: int) -> None:
        self._array = np.empty(expected, np.float32)  # memory that is not written to costs nothing
        self._n = 0

    def add(self, piece: F32) -> None:
        """Append f32[n]."""
        end = self._n + len(piece)
        if end > len(self._array):
            self._array.resize(int(end * GROWTH), refcheck=False)
        self._array[self._n : end] = piece
        self._n = end

    def taken(self) -> F32:
        """All of them, f32[n], and no more memory than that; nothing can be added afterwards."""
        self._array.resize(self._n, refcheck=False)
        return self._array


def _blocks(path: Path, file: soundfile.SoundFile) -> Iterator[F32]:
    """The file's sound in blocks, mixed to one channel and checked."""
    position = 0
    while True:
        block = file.read(BLOCK_SAMPLES // file.channels, dtype="float32", always_2d=True)
        if len(block) == 0:
            return
        mono = block[:, 0] if block.shape[1] == 1 else block.mean(axis=1, dtype=np.float32)
        peak = float(np.abs(mono).max())
        if not np.isfinite(peak):
            bad = position + int(np.flatnonzero(~np.isfinite(mono))[0])
            raise AudioError(
                f"{shown(path)} holds a sample that is not a finite number, {bad / file.samplerate:.3f} s "
                "from its start."
            )
        if peak > FULL_SCALE_LIMIT:
            raise AudioError(
                f"{shown(path)} holds float samples up to {peak:.0f} where 1 is full scale; "
                "write them as integers or scale them to -1…1."
            )
        position += len(mono)
        yield np.ascontiguousarray(mono)


def collect(paths: Iterable[str | Path]) -> list[Path]:
    """The sound files that files, folders and glob patterns name, each once.

    Arguments keep their order; what a folder (directly in it) or a pattern holds is sorted by
    name. AudioError when an argument names nothing, or there is no argument at all.
    """
    found: dict[Path, None] = {}
    for given in paths:
        path = Path(os.path.expanduser(given))
        if "\0" in str(path):
            raise AudioError(f"{shown(path)}: no file has a name with a NUL character in it.")
        if os.path.isdir(path):
            try:
                inside = [p for p in path.iterdir() if _is_sound(p)]
            except OSError as error:
                raise AudioError(
                    f"The folder {shown(path)} cannot be read: {error.strerror or error}."
                ) from None
            if not inside:
                raise AudioError(
                    f"The folder {shown(path)} has no sound files directly in it "
                    f"({', '.join(sorted(SUFFIXES))})."
                )
        elif inputs.regular(path):
            inside = [path]
        elif os.path.exists(path):
            raise AudioError(f"{shown(path)} is a pipe or a device; a sound file is needed.")
        elif glob.has_magic(str(path)):
            inside = [p for p in _matching(path) if _is_sound(p)]
            if not inside:
                raise AudioError(f"No sound file matches {shown(path)}.")
        else:
            raise AudioError(f"{shown(path)} does not exist.")
        found |= dict.fromkeys(sorted(inside))
    if not found:
        raise AudioError("No sound files were given.")
    by_place = {os.path.realpath(path): path for path in reversed(found)}
    return [path for path in found if by_place[os.path.realpath(path)] is path]


def _matching(pattern: Path) -> list[Path]:
    """What a glob pattern names; `**` follows no linked folders, which could lead in circles."""
    parts = list(pattern.parts)
    parts = [p for p, before in zip(parts, ["", *parts], strict=False) if p != "**" or before != p]
    if len(parts) > MAX_PARTS:
        raise AudioError(
            f"{shown(pattern)} has {len(parts)} parts; a pattern of at most {MAX_PARTS} is looked for."
        )
    first = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    wild = [part if part == "**" else part.replace("**", "*") for part in parts[first:]]
    base = Path(*parts[:first])
    found = list(base.glob("/".join(wild)))
    if any(part.startswith(".") for part in wild):
        return found
    # As the shell does: a wildcard names nothing hidden.
    return [p for p in found if not any(n.startswith(".") for n in p.relative_to(base).parts)]


def _is_sound(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and path.name[:1] != "." and inputs.regular(path)


def read_transcripts(table: str | Path) -> dict[Path, str]:
    """What is said in each file: resolved path to transcript, in the table's order.

    The table is UTF-8, tab-separated, with the header `file<TAB>transcript`; paths are relative to
    it. An empty transcript means: decode, but do not score. Files that do not exist are left in
    (a table may describe more than what lies here), unless none of them exists.
    """
    name = shown(table)
    try:
        lines = inputs.read_text(table, "a table of transcripts", MAX_TABLE_BYTES).splitlines()
    except inputs.InputError as error:
        raise AudioError(f"The transcripts cannot be read: {error}") from None
    if not lines or lines[0].split("\t") != TABLE_HEADER:
        found = repr(lines[0][:60]) if lines else "an empty file"
        raise AudioError(
            f"The transcripts {name} must begin with the line file<TAB>transcript, found {found}."
        )
    if len(lines) > MAX_TABLE_LINES:
        raise AudioError(
            f"The transcripts {name} have {len(lines):,} lines; more than {MAX_TABLE_LINES:,} are not read."
        )
    transcripts: dict[Path, str] = {}
    place = _Places(table)
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        where = f"The transcripts {name}, line {number}"
        columns = line.split("\t")
        if len(columns) != 2 or not columns[0].strip():
            raise AudioError(
                f"{where}: a file and its transcript separated by "
                f"one tab are needed, found {len(columns)} column{'s' * (len(columns) != 1)}."
            )
        file, text = columns[0].strip(), columns[1].strip()
        if "\0" in line:
            raise AudioError(f"{where}: a NUL character stands there.")
        if len(text) > MAX_TRANSCRIPT:
            raise AudioError(
                f"{where}: a transcript of {len(text):,} characters; one file says at most {MAX_TRANSCRIPT:,}."
            )
        if transcripts.setdefault(place.of(file), text) != text:
            raise AudioError(f"{where}: {shown(file)} has two different transcripts.")
    if not transcripts:
        raise AudioError(f"The transcripts {name} name no file below their header.")
    if not any(os.path.exists(path) for path in transcripts):
        raise AudioError(
            f"The transcripts {name} name {len(transcripts)} file(s) of which none exists; "
            "paths are relative to the table."
        )
    return transcripts


class _Places:
    """Where the files that a table names are: each folder's real path is found out once."""

    def __init__(self, table: str | Path) -> None:
        self._folder = os.path.dirname(os.path.abspath(table))
        self._real: dict[str, str] = {}

    def of(self, file: str) -> Path:
        """The resolved path of `file`, which is relative to the table."""
        folder, name = os.path.split(os.path.join(self._folder, file))
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)
        path = os.path.join(self._real[folder], name)
        direct = name not in ("", os.curdir, os.pardir) and not os.path.islink(path)
        return Path(path if direct else os.path.realpath(path))


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
