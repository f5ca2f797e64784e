"""Settings of the sound that is decoded."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pipelines.config.options import setting


class Audio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which sound of a file is decoded."""

    channel: Annotated[
        Literal["mix", "left", "right", "each"],
        setting(
            "Channel",
            "Of files with several channels: mix decodes their mean, left and right the first or second alone, each "
            "decodes every channel as an utterance of its own (calls with one speaker on each).",
        ),
    ] = "mix"
    raw: Annotated[
        str,
        setting(
            "Raw sound",
            "How sound lies in .raw and .pcm files, which have no header: rate:format or rate:format:channels, with "
            "formats u8, s8, s16le, s16be, s24le, s24be, s32le, s32be, f32le, f32be, f64le, f64be, mulaw and alaw. "
            "Folders and patterns then match these files as well.",
            like="16000:s16le",
        ),
    ] = ""


SOUND = ("audio.channel", "audio.raw")
"""Settings that decide what is decoded, and not how."""
