"""What sound files are called. The window's process loads this module, before there is numpy."""

from __future__ import annotations

from typing import Final

SUFFIXES: Final = frozenset(
    {
        *(".wav", ".wave", ".bwf", ".rf64", ".w64"),
        *(".flac", ".ogg", ".oga", ".opus", ".mp3", ".mp2"),
        *(".aif", ".aiff", ".aifc", ".caf", ".au", ".snd", ".sph", ".voc"),
    }
)
"""Suffixes that folders and patterns match; a file given by name may have any suffix."""

RAW: Final = frozenset({".raw", ".pcm"})
"""Suffixes of sound without a header, which is read if the setting `audio.raw` says how it lies there."""

CONVERTIBLE: Final = frozenset(
    {
        *(".m4a", ".m4b", ".mp4", ".mov", ".3gp", ".aac", ".ac3", ".wma", ".asf", ".webm", ".mkv"),
        *(".mka", ".amr", ".awb", ".wv", ".ape", ".tta", ".mpc", ".spx", ".ra", ".dsf", ".g722"),
    }
)
"""Suffixes of sound that is not read and that ffmpeg converts."""

READ: Final = "WAV, FLAC, OGG, Opus, MP3, AIFF, AU, CAF, W64 and SPH"
"""The formats that are read, in words; more are (`soundfile.available_formats`)."""
