"""What the window and the process that draws its pictures tell each other: one JSON object a line."""

from __future__ import annotations

import msgspec

from app.pictures.request import PictureRequest


class Job(msgspec.Struct, frozen=True):
    """A picture to draw as PNG, or to write to `out` (whose suffix decides the kind).

    `scale`: pixels per point of a preview, where they are not those wanted.
    """

    number: int
    wanted: PictureRequest
    out: str | None = None
    scale: float | None = None


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a job: the file (base64), the path written, or a sentence; number 0: of no job."""

    number: int
    png: str | None = None
    written: str | None = None
    error: str | None = None


def line(message: Job | Answer) -> bytes:
    return msgspec.json.encode(message) + b"\n"
