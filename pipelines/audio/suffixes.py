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

READ: Final = "WAV, FLAC, OGG, Opus, MP3, AIFF, AU, CAF, W64 and SPH"
"""The formats that are read, in words; more are (`soundfile.available_formats`)."""
