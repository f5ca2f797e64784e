"""Formats of sound: what files are called, samples without a header, and what is not read and what converts it.

The window's process loads this module, before there is numpy.
"""

import re
from typing import Final

SUFFIXES: Final = frozenset((
    *(".wav", ".wave", ".bwf", ".rf64", ".w64", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".mp2"),
    *(".aif", ".aiff", ".aifc", ".caf", ".au", ".snd", ".sph", ".voc"),
))  # fmt: skip
"""Suffixes that folders and patterns match; a file given by name may have any suffix."""
RAW: Final = frozenset({".raw", ".pcm"})
"""Suffixes of sound without a header, which is read if the setting `audio.raw` says how it lies there."""
CONVERTIBLE: Final = frozenset((
    *(".m4a", ".m4b", ".mp4", ".mov", ".3gp", ".aac", ".ac3", ".wma", ".asf", ".webm", ".mkv"),
    *(".mka", ".amr", ".awb", ".wv", ".ape", ".tta", ".mpc", ".spx", ".ra", ".dsf", ".g722"),
))  # fmt: skip
"""Suffixes of sound that is not read and that ffmpeg converts."""
READ: Final = "WAV, FLAC, OGG, Opus, MP3, AIFF, AU, CAF, W64, RF64, VOC and SPH"
"""The formats that are read, in words; more are (`soundfile.available_formats`)."""
_WORDS: Final = {"s16": "PCM_16", "s24": "PCM_24", "s32": "PCM_32", "f32": "FLOAT", "f64": "DOUBLE"}
FORMATS: Final = {  # named as ffmpeg and arecord name them; by subtype and byte order of libsndfile
    "u8": ("PCM_U8", "FILE"),
    "s8": ("PCM_S8", "FILE"),
    **{f"{n}{end}": (kind, order) for n, kind in _WORDS.items() for end, order in (("le", "LITTLE"), ("be", "BIG"))},
    "mulaw": ("ULAW", "FILE"),
    "alaw": ("ALAW", "FILE"),
}


def raw_format(text: str) -> dict[str, int | str]:
    """How samples lie in a file, as `soundfile.SoundFile` wants it, by `rate:format` or `rate:format:channels`.

    Empty if `text` says none.
    """
    said = re.fullmatch(r"([0-9]{1,6}):([a-z0-9]+)(?::([0-9]{1,3}))?", text.strip().lower())
    if said is None or said[2] not in FORMATS or said[3] == "0":
        return {}
    subtype, endian = FORMATS[said[2]]
    numbers = {"samplerate": int(said[1]), "channels": int(said[3] or 1)}
    return {**numbers, "subtype": subtype, "endian": endian, "format": "RAW"}


WANTED: Final = f"rate:format or rate:format:channels, such as 16000:s16le; formats are {', '.join(FORMATS)}"
NIST: Final = b"NIST_1A\n"  # how the sound files of NIST's corpora (TIMIT, WSJ) begin, which end in .wav too
SHORTEN: Final = "is compressed by shorten, which is not read; sph2pipe -f wav FILE FILE.wav decompresses it"
MP3_IN_WAV: Final = 0x55
_CONVERT: Final = "which is not read; ffmpeg converts it: ffmpeg -i FILE FILE.wav"
_FORMATS: Final = (  # place, bytes there, name; all at most 40 bytes from the beginning
    (4, b"ftyp", "an MPEG-4 file (m4a, mp4, mov, 3gp)"),
    (4, b"moov", "a QuickTime file"),
    (0, b"\x1a\x45\xdf\xa3", "a Matroska or WebM file"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "a Windows Media file (wma, asf)"),
    (0, b"wvpk", "a WavPack file"),
    (0, b"#!AMR", "an AMR file"),
    (0, b"MAC ", "a Monkey's Audio file"),
    (0, b"ajkg", "a file compressed by shorten"),
    (0, b"TTA1", "a True Audio file"),
    (0, b"tBaK", "a TAK file"),
    (0, b"MP+", "a Musepack file"),
    (0, b"MPCK", "a Musepack file"),
    (0, b"DSD ", "a DSD file"),
    (0, b"FRM8", "a DSD file"),
    (0, b"ADIF", "an AAC file"),
    (0, b"FLV\1", "a Flash video"),
    (8, b"AVI ", "an AVI file"),
    (0, b"\x0b\x77", "an AC-3 file"),
    (0, b".RMF", "a RealMedia file"),
    (0, b".ra\xfd", "a RealAudio file"),
)
_READ_IN_WAV: Final = frozenset({0x01, 0x02, 0x03, 0x06, 0x07, 0x11, 0x31, 0x38, 0x40, MP3_IN_WAV, 0xFFFE})
"""Codecs by their numbers in WAV (RFC 2361) that libsndfile reads."""
_IN_WAV: Final = {
    tag: name
    for name, tags in (
        ("ADPCM of OKI, Dialogic or Yamaha", (0x10, 0x17, 0x20)),
        ("G.723", (0x14, 0x42)),
        ("MPEG layer 1 or 2", (0x50,)),
        ("AMR", (0x57, 0x58)),
        ("G.726", (0x45, 0x64, 0x140)),
        ("G.722", (0x65, 0x28F)),
        ("G.729", (0x83,)),
        ("AAC", (0xFF, 0x1600, 0x1602, 0x1610, 0xA106)),
        ("Windows Media Audio", (0x160, 0x161, 0x162, 0x163)),
        ("AC-3 or DTS", (0x2000, 0x2001)),
        ("Vorbis, Opus or Speex", (0x674F, 0x704F, 0xA109)),
        ("FLAC", (0xF1AC,)),
    )
    for tag in tags
}


def format_of(head: bytes) -> str | None:
    """Name the unsupported format of a file by its beginning, as the rest of a sentence; None if it is unknown."""
    for at, mark, name in _FORMATS:
        if head[at : at + len(mark)] == mark:
            return f"is {name}, {_CONVERT}"
    if head[:1] == b"\xff" and len(head) > 1 and head[1] & 0xF6 == 0xF0:
        return f"is an AAC file, {_CONVERT}"
    if head.lstrip()[:9].lower() in (b"<!doctype", b"<html>") or b"<html" in head.lower():
        return "is a web page, not sound; download the file itself"
    return None


def codec_of_wav(tag: int) -> str | None:
    """Return why a WAV of this codec cannot be read, as the rest of a sentence; None if it can."""
    name = _IN_WAV.get(tag, f"sound of the codec 0x{tag:04X}")
    return None if tag in _READ_IN_WAV else f"is a WAV file that holds {name}, {_CONVERT}"
