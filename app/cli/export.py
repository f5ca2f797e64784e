"""Export pictures and data of a session, without a display.

asrscope export run.asrs --png desk.png --size 1600x1000 --theme light
asrscope export run.asrs --svg cost.svg --view cost --view words --range 10..20
asrscope export run.asrs --pdf then.pdf --at 1:02.5 --select score.gaussians
asrscope export run.asrs --markdown report.md
asrscope export run.asrs --csv stages.csv --chrome-trace trace.json --speedscope run.speedscope.json
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import _recorded
from app.export import formats
from profiler.errors import BadInput
from profiler.files.outputs import STANDARD_OUTPUT
from profiler.plain import one_line

if TYPE_CHECKING:
    from app.pictures.request import PictureRequest

PICTURES = ("png", "svg", "pdf")
OF_PICTURES = ("view", "size", "scale", "range", "at", "select", "spectrogram")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="a session file (.asrs)")
    for kind in PICTURES:
        parser.add_argument(f"--{kind}", metavar="F", help=f"write a picture as {kind.upper()}")
    for form in formats():
        parser.add_argument(f"--{form.option}", metavar="F", help=form.help)
    parser.add_argument("--view", metavar="NAME", action="append", help="only this view; may be given several times")
    parser.add_argument("--size", metavar="WxH", help="of the picture, in points (1600x1000)")
    parser.add_argument("--scale", metavar="N", help="pixels per point of a PNG (2)")
    parser.add_argument("--range", metavar="FROM..TO", help="show and count this stretch, in seconds or m:ss")
    parser.add_argument("--at", metavar="T", help="the cursor: nothing after it is shown or counted")
    _recorded.add_select(parser)
    help = "under the waveform, of at most 2 minutes of speech"
    parser.add_argument("--spectrogram", action="store_true", default=None, help=help)
    parser.add_argument("--theme", choices=("light", "dark"), default="dark")


def run(arguments: argparse.Namespace) -> None:
    """Write the requested files."""
    from profiler.session.reader import Session

    given: dict[str, str | None] = vars(arguments)
    pictures = [Path(name) for kind in PICTURES if (name := given[kind]) is not None]
    tables = [(form, Path(name)) for form in formats() if (name := given[form.option.replace("-", "_")]) is not None]
    if not pictures and not tables:
        known = [*PICTURES, *(form.option for form in formats())]
        raise BadInput(f"export needs at least one of {', '.join(f'--{option}' for option in known)}.")
    names = [os.fspath(path) for path in [*pictures, *(path for _, path in tables)]]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(f"{one_line(twice)}: only one export can be written there; give each its own file.")
    request = _request(arguments) if pictures else None
    # The list of written files goes to the stream without data.
    streamed = Path(STANDARD_OUTPUT)
    news = sys.stderr if any(path == streamed for _, path in tables) else sys.stdout
    with Session.open(arguments.session) as session:
        for form, path in tables:
            form.write(session, path)
            if path != streamed:
                print(path, file=news)
    if idle := [f"--{name}" for name in OF_PICTURES if not pictures and given[name] is not None]:
        print(f"{', '.join(idle)}: for pictures alone; everything else is of the whole session.", file=sys.stderr)
    if request is not None:
        from app.pictures.session import SessionPictures

        with closing(SessionPictures(arguments.session)) as maker:
            for path in pictures:
                maker.write(request, path)
                print(path, file=news)


def _request(arguments: argparse.Namespace) -> PictureRequest:
    from app.pictures import request

    return request.PictureRequest(
        views=tuple(arguments.view or ()),
        size=request.SIZE if arguments.size is None else request.read_size(arguments.size),
        scale=request.SCALE if arguments.scale is None else request.read_scale(arguments.scale),
        theme=arguments.theme,
        range_s=None if arguments.range is None else request.read_range(arguments.range),
        at_s=None if arguments.at is None else request.read_seconds(arguments.at, "--at"),
        select=tuple(arguments.select or ()),
        spectrogram=bool(arguments.spectrogram),
    ).checked()
