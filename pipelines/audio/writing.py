"""Writes sound for runs of this program. libsndfile says of a full disk or a limit only "System error"."""

import io
import os

import soundfile

from profiler.arrays import F32
from profiler.files.outputs import writing


def write_wav(path: str | os.PathLike[str], samples: F32, rate: int, subtype: str) -> None:
    """Write f32 [n] or [n, channels] at `rate` Hz, whole or not at all; OutputError says why it cannot be."""
    made = io.BytesIO()
    soundfile.write(made, samples, rate, format="WAV", subtype=subtype)
    with writing(path, "the sound") as draft:
        draft.write_bytes(made.getbuffer())
