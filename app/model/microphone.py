"""Records from a microphone into a sound file; needs the extra package sounddevice.

What the device delivers is queued by the thread of PortAudio and written by the thread that calls `drain`.
"""

from __future__ import annotations

from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from app.model.sound import SoundError, sounddevice_for
from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.arrays import F32

LONGEST_S: Final = 600.0
"""A recording ends by itself after this time: one that was forgotten must not fill the disk."""

SILENCE: Final = 1e-4
"""Peak below which a recording counts as silent (−80 dB of full scale)."""


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


class Recording:
    """A recording under way: mono, 16 bits, at the rate of the device.

    Attributes:
        path: the WAV file being written.
        rate: samples per second.
        seconds: length so far.
        peak: highest sample of what came last, 0…1.
        highest: highest sample of all.
        gaps: how often the device delivered more than was taken in time, and sound was lost.
    """

    def __init__(self, path: Path, device: int) -> None:
        """Begin at once. SoundError where the device cannot be opened, OSError where the file cannot be written."""
        import soundfile

        sounddevice = sounddevice_for("input")
        self.path = path
        self.seconds = self.peak = self.highest = 0.0
        self.gaps = 0
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
        try:
            while self.seconds < LONGEST_S:
                block = self._queue.get_nowait()
                self._file.write(block)
                self.seconds += len(block) / self.rate
                self.peak = max(self.peak, float(np.abs(block).max(initial=0.0)))
        except Empty:
            pass
        self.highest = max(self.highest, self.peak)
        return self.seconds < LONGEST_S

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
