"""Sound without a header: its rate, sample format and channels, as the setting `audio.raw` and `Part.raw` say them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

FORMATS: Final = {  # named as ffmpeg and arecord name them; by subtype and byte order of libsndfile
    "u8": ("PCM_U8", "FILE"),
    "s8": ("PCM_S8", "FILE"),
    "s16le": ("PCM_16", "LITTLE"),
    "s16be": ("PCM_16", "BIG"),
    "s24le": ("PCM_24", "LITTLE"),
    "s24be": ("PCM_24", "BIG"),
    "s32le": ("PCM_32", "LITTLE"),
    "s32be": ("PCM_32", "BIG"),
    "f32le": ("FLOAT", "LITTLE"),
    "f32be": ("FLOAT", "BIG"),
    "f64le": ("DOUBLE", "LITTLE"),
    "f64be": ("DOUBLE", "BIG"),
    "mulaw": ("ULAW", "FILE"),
    "alaw": ("ALAW", "FILE"),
}


class Format(NamedTuple):
    """How samples lie in a file, in the words of libsndfile."""

    rate: int
    subtype: str
    endian: str
    channels: int

    def described(self) -> dict[str, int | str]:
        """As `soundfile.SoundFile` wants it."""
        return {
            "samplerate": self.rate,
            "channels": self.channels,
            "subtype": self.subtype,
            "endian": self.endian,
            "format": "RAW",
        }


def format_of(text: str) -> Format | None:
    """The format that `rate:format` or `rate:format:channels` says; None if it says none."""
    said = re.fullmatch(r"([0-9]{1,6}):([a-z0-9]+)(?::([0-9]{1,3}))?", text.strip().lower())
    if said is None or said[2] not in FORMATS or said[3] == "0":
        return None
    return Format(int(said[1]), *FORMATS[said[2]], int(said[3] or 1))


WANTED: Final = f"rate:format or rate:format:channels, such as 16000:s16le; formats are {', '.join(FORMATS)}"
