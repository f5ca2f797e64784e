"""Sound files in, 16 kHz mono out; which files a user means; the words that go with them.

Everything that libsndfile reads is taken (WAV, FLAC, OGG, MP3 …), at any rate and channel count;
what was changed on the way is said in `Audio.notes`. A file that cannot be trusted (cut short,
without sound, with samples that are no numbers) is refused with one sentence rather than decoded.
"""

from __future__ import annotations

import glob
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from pipelines import containers
from profiler.errors import BadInput
from profiler.spans import Cost

STAGE = "frontend.audio"
COST = Cost(
    unmodelled="a library reads and decodes the file, and what that computes depends on its format"
)
"""Reading has no cost law: libsndfile and soxr do the work."""

SAMPLE_RATE = 16_000
HOP_SAMPLES = SAMPLE_RATE // 100
SUFFIXES = frozenset({".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff"})
"""Files that folders and patterns pick up; a file named outright may have any suffix."""

MODEL_BAND = 6_800  # Hz, upper edge of the default model's mel filters
SHORTEST_WINDOW = 410  # one analysis window of the front end, 25.6 ms
LOWEST_RATE, HIGHEST_RATE = 1_000, 768_000  # Hz; beyond these a header is broken or hostile
FULL_SCALE_LIMIT = 32.0  # 30 dB above full scale no float recording reaches: integers as floats
BLOCK_SAMPLES = 1 << 17  # samples decoded per call: a few milliseconds
UNKNOWN_FRAMES = 1 << 62  # libsndfile's length of a stream that does not tell its own
TABLE_HEADER = ["file", "transcript"]


class AudioError(BadInput):
    """Sound or a transcript table that cannot be used; the message is one sentence."""


@dataclass(frozen=True)
class Audio:
    """One file's sound: float32 samples in -1…1, one channel at 16 kHz."""

    path: Path
    samples: NDArray[np.float32]
    source_rate: int
    source_channels: int
    notes: list[str] = field(default_factory=list)
    sample_rate: int = SAMPLE_RATE

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.sample_rate


def load(path: str | Path) -> Audio:
    """Read one sound file whole. Raises AudioError with one sentence that names the file."""
    path = Path(path)
    if path.is_dir():
        raise AudioError(f"{path} is a folder; a sound file is needed.")
    if not path.exists():
        raise AudioError(f"{path} does not exist.")
    try:
        if path.stat().st_size == 0:
            raise AudioError(f"{path} is empty (0 bytes); a sound file is needed.")
        missing = containers.shortfall(path)
        source = None if missing else containers.mp3_with_length(path)
    except OSError as error:
        raise AudioError(f"{path} cannot be read: {error.strerror or error}.") from None
    if missing:
        raise AudioError(f"{path} is cut short: {missing}.")
    try:
        with soundfile.SoundFile(path if source is None else io.BytesIO(source)) as file:
            return _read(path, file)
    except soundfile.LibsndfileError as error:
        reason = error.error_string.strip().rstrip(".").removeprefix("Error : ")
        if "does not exist" in reason:  # what libsndfile says of an MP3 that is none
            reason = "Format not recognised"
    except (TypeError, soundfile.SoundFileError) as error:  # TypeError: a headerless .raw file
        reason = str(error).rstrip(".")
    raise AudioError(
        f"{path} cannot be read as sound (WAV, FLAC, OGG or MP3 with a header, whole): {reason}."
    )


def _read(path: Path, file: soundfile.SoundFile) -> Audio:
    rate, channels, notes = file.samplerate, file.channels, []
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise AudioError(
            f"{path} claims a sample rate of {rate} Hz; {LOWEST_RATE} to {HIGHEST_RATE} Hz "
            "can be used."
        )
    if channels > 1:
        notes.append(f"mixed down from {channels} channels")
    resampler = None
    if rate != SAMPLE_RATE:
        resampler = soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32")
        empty = rate / 2 < MODEL_BAND
        notes.append(
            f"resampled from {rate} Hz"
            + f", with nothing above {rate // 2} Hz where the model listens up to {MODEL_BAND}"
            * empty
        )
    pieces, n_read = [], 0
    for block in _blocks(path, file):
        n_read += len(block)
        pieces.append(block if resampler is None else resampler.resample_chunk(block))
    # The length of an MP3 is an estimate of the decoder; its frames were counted before.
    if n_read < file.frames < UNKNOWN_FRAMES and file.format != "MP3":
        raise AudioError(
            f"{path} is cut short: its header promises {file.frames} samples per channel and "
            f"only {n_read} are there."
        )
    if n_read == 0:
        raise AudioError(f"{path} holds no sound: it has a header and no samples.")
    if resampler is not None:
        pieces.append(resampler.resample_chunk(np.empty(0, np.float32), last=True))
    samples = np.concatenate(pieces)
    if len(samples) == 0:
        raise AudioError(
            f"{path} holds no sound: {n_read} samples at {rate} Hz are less than one at 16 kHz."
        )
    if len(samples) < SHORTEST_WINDOW:
        notes.append("shorter than one analysis window: a single frame padded with silence")
    return Audio(path, samples, rate, channels, notes)


def _blocks(path: Path, file: soundfile.SoundFile) -> Iterator[NDArray[np.float32]]:
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
                f"{path} holds a sample that is no finite number, {bad / file.samplerate:.3f} s "
                "from its start."
            )
        if peak > FULL_SCALE_LIMIT:
            raise AudioError(
                f"{path} holds float samples up to {peak:.0f} where 1 is full scale; "
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
        path = Path(given).expanduser()
        if path.is_dir():
            inside = [p for p in path.iterdir() if _is_sound(p)]
            if not inside:
                raise AudioError(
                    f"The folder {path} has no sound files directly in it "
                    f"({', '.join(sorted(SUFFIXES))})."
                )
        elif path.exists():
            inside = [path]
        elif glob.has_magic(str(path)):
            inside = [p for p in map(Path, glob.glob(str(path), recursive=True)) if _is_sound(p)]
            if not inside:
                raise AudioError(f"No sound file matches {path}.")
        else:
            raise AudioError(f"{path} does not exist.")
        found |= dict.fromkeys(sorted(inside))
    if not found:
        raise AudioError("No sound files were given.")
    by_place = {path.resolve(): path for path in reversed(found)}
    return [path for path in found if by_place[path.resolve()] is path]


def _is_sound(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()


def read_transcripts(table: str | Path) -> dict[Path, str]:
    """What is said in each file: resolved path to transcript, in the table's order.

    The table is UTF-8, tab-separated, with the header `file<TAB>transcript`; paths are relative to
    it. An empty transcript means: decode, but do not score. Files that do not exist are left in
    (a table may describe more than what lies here), unless none of them exists.
    """
    table = Path(table)
    try:
        lines = table.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise AudioError(
            f"The transcripts {table} cannot be read: {error.strerror or error}."
        ) from None
    except UnicodeDecodeError:
        raise AudioError(f"The transcripts {table} are not UTF-8 text.") from None
    if not lines or lines[0].split("\t") != TABLE_HEADER:
        found = repr(lines[0][:60]) if lines else "an empty file"
        raise AudioError(
            f"The transcripts {table} must begin with the line file<TAB>transcript, found {found}."
        )
    transcripts: dict[Path, str] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 2 or not columns[0].strip():
            raise AudioError(
                f"The transcripts {table}, line {number}: a file and its transcript separated by "
                f"one tab are needed, found {len(columns)} column{'s' * (len(columns) != 1)}."
            )
        path = (table.parent / columns[0].strip()).resolve()
        text = columns[1].strip()
        if transcripts.setdefault(path, text) != text:
            raise AudioError(
                f"The transcripts {table}, line {number}: {columns[0].strip()} has two "
                "different transcripts."
            )
    if not transcripts:
        raise AudioError(f"The transcripts {table} name no file below their header.")
    if not any(path.exists() for path in transcripts):
        raise AudioError(
            f"The transcripts {table} name {len(transcripts)} file(s) of which none exists; "
            "paths are relative to the table."
        )
    return transcripts


def peaks(samples: NDArray[np.float32], n_frames: int) -> NDArray[np.int8]:
    """Lowest and highest sample of each 10 ms frame, int8[n_frames, 2], ±127 at full scale.

    The last frame also covers what lies beyond it; frames beyond the sound are silent.
    """
    out = np.zeros((n_frames, 2), np.int8)
    starts = np.arange(0, min(n_frames * HOP_SAMPLES, len(samples)), HOP_SAMPLES)
    if len(starts):
        for column, extreme in enumerate((np.minimum, np.maximum)):
            level = np.rint(extreme.reduceat(samples, starts) * 127.0)
            out[: len(starts), column] = np.clip(level, -127, 127)
    return out
