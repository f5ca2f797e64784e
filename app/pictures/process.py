"""The process that draws pictures for the window: one session, one job a line, one answer a line.

    python -m app.pictures.process SESSION

It draws as the command line does (offscreen, in its own theme), so a picture does not depend on the window's
platform, resolution or theme, and the window is not held up. An answer has the number of its job and either the file
(base64), the path written, or a sentence.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from app.pictures.request import PictureRequest
from profiler.errors import BadInput
from profiler.plain import one_line
from profiler.process.children import read_arguments

if TYPE_CHECKING:
    from app.pictures.session import SessionPictures


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


YIELDING: Final = 10
"""Added to the niceness of the process (POSIX)."""


def serve(session: str, jobs: Iterable[bytes], answers: BinaryIO) -> None:
    """Answer every job; ends with them. Raises SessionError where the session cannot be read."""
    from app.pictures.session import SessionPictures  # the window, which asks, need not load all views

    pictures = SessionPictures(session)
    try:
        for asked in jobs:
            answers.write(line(_answer(pictures, msgspec.json.decode(asked, type=Job))))
            answers.flush()
    finally:
        pictures.close()


def _answer(pictures: SessionPictures, job: Job) -> Answer:
    try:
        if job.out is not None:
            pictures.write(job.wanted, job.out)
            return Answer(job.number, written=job.out)
        drawn = pictures.draw(job.wanted, "png", scale=job.scale)
    except (BadInput, OSError) as error:
        return Answer(job.number, error=one_line(str(error), 1000))
    return Answer(job.number, png=base64.b64encode(drawn).decode())


def main(session: str) -> int:
    """Serve on the standard streams, behind a run under way: that one is being measured."""
    if hasattr(os, "nice"):
        os.nice(YIELDING)
    try:
        serve(session, sys.stdin.buffer, sys.stdout.buffer)
    except (BadInput, OSError) as error:
        sys.stdout.buffer.write(line(Answer(0, error=one_line(str(error), 1000))))
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*read_arguments("app.pictures.process", __doc__, "SESSION")))
