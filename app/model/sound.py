"""Plays decoded audio, and records from a microphone; both need the extra package sounddevice, errors are one sentence.

What is played is the selection, or the utterance at the cursor, which follows the playback. An utterance is read again
from where the session says that it came from: path, channel and stretch of time (the session's `part`). What a
microphone delivers is queued by the thread of PortAudio and written by the thread that calls `drain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from app.model.playhead import Playhead
from profiler.clock import FRAME_S
from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.arrays import F32
    from profiler.session.model import Utterance


FOLLOW_MS: Final = 30  # Between two looks at what is being heard
LONGEST_S: Final = 600.0  # Of sound that is read at once: ten minutes at 48 kHz are 115 MB


class SoundError(Exception):
    """Why playback is not possible, in one sentence."""


TOO_LONG: Final = f"At most {LONGEST_S / 60:.0f} minutes are played at once; select less."


class Piece(NamedTuple):
    """A part of the playback: its start and its frames [first, last)."""

    begin_s: float
    first: int
    last: int


def pieces_of(utterances: Iterable[Utterance], first: int, last: int) -> Iterator[tuple[Utterance, int, int]]:
    """The frames of [first, last) by utterance, each counted from the utterance's own first frame."""
    for utterance in utterances:
        begin, end = max(first - utterance.first_frame, 0), min(last - utterance.first_frame, utterance.n_frames)
        if begin < end:
            yield utterance, begin, end


def read(utterance: Utterance, begin: int, end: int) -> tuple[F32, int]:
    """Samples and rate of the frames [begin, end) of an utterance; SoundError says why there are none."""
    import numpy as np
    import soundfile

    part = utterance.part
    start_s, length_s = float(part.get("begin_s") or 0.0) + begin * FRAME_S, (end - begin) * FRAME_S
    if end == utterance.n_frames:  # the last 10 to 25 ms make no frame
        length_s = max(utterance.audio_s - begin * FRAME_S, length_s)
    if length_s > LONGEST_S:
        raise SoundError(TOO_LONG)
    path = Path(utterance.path)
    name = one_line(str(path))
    if part.get("raw"):
        raise SoundError(f"{name} has no header; sound without one cannot be played.")
    try:
        with soundfile.SoundFile(path) as file:
            rate = int(file.samplerate)
            file.seek(min(round(start_s * rate), max(file.frames, 0)))
            samples = file.read(round(length_s * rate), dtype="float32", always_2d=True)
    except (OSError, RuntimeError) as error:
        why = f"cannot be played: {one_line(str(error), 200).rstrip('.')}"
        raise SoundError(f"{name} {why if path.exists() else 'is not there any more'}.") from None
    channel = part.get("channel")
    mono = samples.mean(axis=1)
    if isinstance(channel, int) and not isinstance(channel, bool):
        if not 0 <= channel < samples.shape[1]:
            raise SoundError(f"{name} has no channel {channel}.")
        mono = samples[:, channel]
    if not len(mono):
        raise SoundError(f"{name} has no sound there any more.")
    return np.ascontiguousarray(np.nan_to_num(mono).clip(-1.0, 1.0)), rate


def together(utterances: Iterable[Utterance], first: int, last: int) -> tuple[F32, int, list[Piece]]:
    """The sound of frames [first, last) in one, at the rate of its beginning, and which frames are when."""
    import numpy as np

    parts: list[F32] = []
    places: list[Piece] = []
    rate = samples = 0
    for utterance, begin, end in pieces_of(utterances, first, last):
        sound, of_it = read(utterance, begin, end)
        rate = rate or of_it
        if of_it != rate:
            import soxr

            sound = np.asarray(soxr.resample(sound, of_it, rate), np.float32)
        at = utterance.first_frame
        places.append(Piece(samples / rate, at + begin, at + end))
        parts.append(sound)
        samples += len(sound)
        if samples > LONGEST_S * rate:
            raise SoundError(TOO_LONG)
    if not parts:
        raise SoundError("There is no utterance at the cursor to play.")
    return np.concatenate(parts), rate, places


def frame_at(places: list[Piece], played_s: float) -> int:
    """Return the frame that plays at this second of the sound."""
    here = next((piece for piece in reversed(places) if piece.begin_s <= played_s), places[0])
    return min(here.first + int((played_s - here.begin_s) / FRAME_S), here.last)


class Playback:
    """A stream of sounddevice that plays mono samples once, at once; SoundError where none can."""

    def __init__(self, samples: F32, rate: int) -> None:
        sounddevice = sounddevice_for("output")
        self._samples, self._rate, self._at = samples, rate, 0
        self._zero_s: float | None = None
        try:
            self._stream = sounddevice.OutputStream(samplerate=rate, channels=1, dtype="float32", callback=self._fill)
            self._stream.start()
        except (OSError, ValueError, RuntimeError, sounddevice.PortAudioError) as error:
            raise SoundError(f"Sound cannot be played: {one_line(str(error), 200)}.") from None

    def _fill(self, out: F32, frames: int, clock: object, _status: object) -> None:
        if self._zero_s is None:
            self._zero_s = float(getattr(clock, "outputBufferDacTime", 0.0))
        given = self._samples[self._at : self._at + frames]
        out[: len(given), 0] = given
        out[len(given) :] = 0.0
        self._at += frames

    @property
    def played_s(self) -> float:
        return 0.0 if self._zero_s is None else max(float(self._stream.time) - self._zero_s, 0.0)

    def stop(self) -> None:
        self._stream.abort()
        self._stream.close()


def sounddevice_for(direction: Literal["output", "input"]) -> ModuleType:
    """The package, with a device to play on or to record from; SoundError says what is absent."""
    done, device = ("played", "audio device") if direction == "output" else ("recorded", "microphone")

    def refused(why: str) -> SoundError:
        return SoundError(f"Sound cannot be {done}: {why}.")

    try:
        import sounddevice
    except ImportError:
        raise refused("the package sounddevice is not installed (pip install 'asrscope[sound]')") from None
    except OSError:
        raise refused("the system has no PortAudio (on Debian: apt-get install libportaudio2)") from None
    try:
        sounddevice.query_devices(kind=direction)
    except (ValueError, sounddevice.PortAudioError):
        raise refused(f"there is no {device} on this machine") from None
    found: ModuleType = sounddevice
    return found


class Sound(QObject):
    """Plays audio for a playhead, whose cursor follows the playback."""

    failed = Signal(str)  # Why playback is not possible
    changed = Signal()

    def __init__(self, playhead: Playhead, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._playhead = playhead
        self._playing: Playback | None = None
        self._places: list[Piece] = []
        self._length_s = 0.0
        self._timer = QTimer(self, interval=FOLLOW_MS)
        self._timer.timeout.connect(self._follow)
        playhead.closed.connect(self.stop)
        playhead.mode_changed.connect(self._mode_changed)

    @property
    def playing(self) -> bool:
        return self._playing is not None

    def toggle(self) -> None:
        """Play the place marked, the selection, or else the utterance at the cursor; stop what is played."""
        if self.playing:
            self.stop()
            return
        session = self._playhead.session
        if session is None:
            return
        axis = self._playhead.axis
        stretch = axis.pointed_frames or axis.selected_frames or self._playhead.utterance_frames()
        try:
            samples, rate, self._places = together(session.utterances, *(stretch or (0, 0)))
            self._playing = Playback(samples, rate)
        except SoundError as error:
            self.failed.emit(str(error))
            return
        self._length_s = len(samples) / rate
        self._playhead.pause()
        self._timer.start()
        self.changed.emit()

    def _mode_changed(self) -> None:
        if self._playhead.playing or self._playhead.following:
            self.stop()

    def _follow(self) -> None:
        if self._playing is None:
            return
        heard = self._playing.played_s
        self._playhead.seek(frame_at(self._places, min(heard, self._length_s)))
        if heard >= self._length_s:
            self.stop()

    def stop(self) -> None:
        """Be silent."""
        playing, self._playing = self._playing, None
        self._timer.stop()
        if playing is not None:
            playing.stop()
            self.changed.emit()


LONGEST_RECORDING_S: Final = 600.0  # It ends by itself then: a forgotten one must not fill the disk
SILENCE: Final = 1e-4  # Peak below which a recording counts as silent (−80 dB of full scale)


def inputs() -> list[tuple[str, int]]:
    """Name and number of each device that records, the system's choice first; SoundError where there is none."""
    sounddevice = sounddevice_for("input")
    usual = sounddevice.query_devices(kind="input")["index"]
    found = [
        (one_line(str(device["name"]), 60), int(device["index"]))
        for device in sounddevice.query_devices()
        if device["max_input_channels"] > 0
    ]
    return sorted(found, key=lambda one: one[1] != usual)


class MicrophoneRecording:
    """A recording under way into a WAV file: mono, 16 bits, at the rate of the device."""

    def __init__(self, path: Path, device: int) -> None:
        """Begin at once. SoundError where the device cannot be opened, OSError where the file cannot be written."""
        import soundfile

        sounddevice = sounddevice_for("input")
        self.path = path
        self.seconds = self.peak = self.highest = 0.0  # Length so far, highest sample of what came last, of all
        self.gaps = 0  # How often the device delivered more than was taken in time, and sound was lost
        self._queue: SimpleQueue[F32] = SimpleQueue()
        try:
            self.rate = int(sounddevice.query_devices(device)["default_samplerate"])
            self._stream = sounddevice.InputStream(
                samplerate=self.rate, device=device, channels=1, dtype="float32", callback=self._take
            )
        except (OSError, ValueError, RuntimeError, sounddevice.PortAudioError) as error:
            raise SoundError(f"Sound cannot be recorded: {one_line(str(error), 200)}.") from None
        try:
            self._file = soundfile.SoundFile(path, "w", self.rate, 1, "PCM_16")
        except RuntimeError as error:
            self._stream.close()
            raise OSError(f"{path} cannot be written: {one_line(str(error), 200)}") from None
        try:
            self._stream.start()
        except sounddevice.PortAudioError as error:
            self.give_up()
            raise SoundError(f"Sound cannot be recorded: {one_line(str(error), 200)}.") from None

    def _take(self, block: F32, _frames: int, _clock: object, status: object) -> None:
        """Called by PortAudio's thread: `block` is [frames, 1] and its own only until this returns."""
        self.gaps += bool(getattr(status, "input_overflow", False))
        self._queue.put(block[:, 0].copy())

    def drain(self) -> bool:
        """Write what has been recorded; whether the recording may go on."""
        import numpy as np

        self.peak = 0.0
        while self.seconds < LONGEST_RECORDING_S and not self._queue.empty():
            block = self._queue.get()
            self._file.write(block)
            self.seconds += len(block) / self.rate
            self.peak = max(self.peak, float(np.abs(block).max(initial=0.0)))
        self.highest = max(self.highest, self.peak)
        return self.seconds < LONGEST_RECORDING_S

    def finish(self) -> None:
        """Stop recording, and complete the file."""
        self._stream.stop()
        self.drain()
        self._stream.close()
        self._file.close()

    def give_up(self) -> None:
        """Stop recording, and remove the file."""
        self._stream.abort()
        self._stream.close()
        self._file.close()
        self.path.unlink(missing_ok=True)
