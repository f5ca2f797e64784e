"""Export pictures and data of a session, without a display.

asrscope export run.asrs --png desk.png --size 1600x1000 --theme light
asrscope export run.asrs --png cost.png --view cost
asrscope export run.asrs --csv stages.csv --chrome-trace trace.json --speedscope run.speedscope.json
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from contextlib import closing
from pathlib import Path

from profiler.errors import BadInput
from profiler.export import writers
from profiler.files.outputs import STANDARD_OUTPUT
from profiler.plain import one_line

PICTURES = ("png", "svg", "pdf")
DEFAULT_SIZE = "1600x1000"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("session", metavar="SESSION", help="a session file (.asrs)")
    for kind in PICTURES:
        parser.add_argument(f"--{kind}", metavar="F", help=f"write a picture as {kind.upper()}")
    for writer in writers():
        parser.add_argument(f"--{writer.FORMAT.option}", metavar="F", help=writer.FORMAT.help)
    parser.add_argument("--view", metavar="NAME", help="one view instead of the whole desk")
    parser.add_argument("--size", metavar="WxH", default=DEFAULT_SIZE, help="points, not pixels")
    parser.add_argument("--theme", choices=("light", "dark"), default="dark")


def run(arguments: argparse.Namespace) -> int:
    """Write the requested files."""
    from profiler.session.reader import Session

    given: dict[str, str | None] = vars(arguments)
    pictures = [Path(name) for kind in PICTURES if (name := given[kind]) is not None]
    tables = [
        (writer, Path(name))
        for writer in writers()
        if (name := given[writer.FORMAT.option.replace("-", "_")]) is not None
    ]
    if not pictures and not tables:
        known = [*PICTURES, *(writer.FORMAT.option for writer in writers())]
        raise BadInput(
            f"export needs at least one of {', '.join(f'--{option}' for option in known)}."
        )
    _check_names([os.fspath(path) for path in [*pictures, *(path for _, path in tables)]])
    size = parse_size(arguments.size)
    # The list of written files goes to the stream without data.
    news = sys.stderr if any(_streamed(path) for _, path in tables) else sys.stdout
    with closing(Session.open(arguments.session)) as session:
        for writer, path in tables:
            writer.write(session, path)
            if not _streamed(path):
                print(path, file=news)
    if pictures:
        from app.desk_picture import desk_picture

        for path in pictures:
            desk_picture(
                arguments.session, path, view=arguments.view, size=size, theme=arguments.theme
            )
            print(path, file=news)
    return 0


def _streamed(path: Path) -> bool:
    return os.fspath(path) == STANDARD_OUTPUT


def _check_names(names: list[str]) -> None:
    """BadInput if one output would overwrite another."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(
            f"{one_line(twice)}: only one export can be written there; give each its own file."
        )


def parse_size(text: str) -> tuple[int, int]:
    """Read ``1600x1000``; BadInput otherwise."""
    sides = re.fullmatch(r"([0-9]{1,9})[xX×]([0-9]{1,9})", text.strip())
    if sides is None:
        raise BadInput(
            f"--size must be WIDTHxHEIGHT, for example {DEFAULT_SIZE}, not {one_line(text)!r}."
        )
    return int(sides[1]), int(sides[2])
