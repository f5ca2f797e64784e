"""The process that draws pictures for the window: one session, one job a line, one answer a line, in that order.

    python -m app.pictures.process SESSION

It draws as the command line does (offscreen, in its own theme), so a picture does not depend on the window's platform,
resolution or theme, and the window is not held up.
"""

import os
import sys
from typing import Final

import msgspec

from app.pictures.request import PictureRequest
from profiler.errors import BadInput
from profiler.plain import one_line
from profiler.process.children import read_arguments


class Job(msgspec.Struct, frozen=True):
    """A picture as PNG, or for the file `out`; `scale`: pixels per point of a preview, where not those wanted."""

    wanted: PictureRequest
    out: str | None = None
    scale: float | None = None


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a job: the PNG, nothing more where a file was written, or why there is none."""

    png: bytes = b""
    error: str = ""


def line(message: Job | Answer) -> bytes:
    return msgspec.json.encode(message) + b"\n"


YIELDING: Final = 10  # Added to the niceness of the process (POSIX): a run under way is being measured


def main(session: str) -> int:
    """Answer every job on the standard streams; a session that cannot be read is the one answer."""
    from app.pictures.session import SessionPictures  # the window, which asks, need not load all views

    if hasattr(os, "nice"):
        os.nice(YIELDING)
    try:
        pictures = SessionPictures(session)
    except (BadInput, OSError) as error:
        _answer(Answer(error=one_line(str(error), 1000)))
        return 2
    for asked in sys.stdin.buffer:
        job = msgspec.json.decode(asked, type=Job)
        try:
            if job.out is None:
                answer = Answer(pictures.draw(job.wanted, "png", scale=job.scale))
            else:
                pictures.write(job.wanted, job.out)
                answer = Answer()
        except (BadInput, OSError) as error:
            answer = Answer(error=one_line(str(error), 1000))
        _answer(answer)
    pictures.close()
    return 0


def _answer(answer: Answer) -> None:
    sys.stdout.buffer.write(line(answer))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    raise SystemExit(main(*read_arguments("app.pictures.process", __doc__, "SESSION")))
