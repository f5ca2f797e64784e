"""Pictures and data of a session, without a display.

asrscope export run.asrs --png desk.png --size 1600x1000 --theme light
asrscope export run.asrs --png cost.png --view cost
asrscope export run.asrs --csv stages.csv --chrome-trace trace.json --speedscope run.speedscope.json
"""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path

from profiler.errors import BadInput

PICTURES = ("png", "svg", "pdf")
DEFAULT_SIZE = "1600x1000"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("session", metavar="SESSION", help="a session file (.asrs)")
    for kind in PICTURES:
        parser.add_argument(f"--{kind}", metavar="F", help=f"write a picture as {kind.upper()}")
    parser.add_argument("--csv", metavar="F", help="write the stages as a table")
    parser.add_argument("--chrome-trace", metavar="F", help="write spans for Perfetto")
    parser.add_argument("--speedscope", metavar="F", help="write spans for speedscope")
    parser.add_argument("--view", metavar="NAME", help="one view instead of the whole desk")
    parser.add_argument("--size", metavar="WxH", default=DEFAULT_SIZE, help="points, not pixels")
    parser.add_argument("--theme", choices=("light", "dark"), default="dark")


def run(arguments: argparse.Namespace) -> int:
    """Write what was asked for."""
    from profiler.export import chrome_trace, speedscope, table
    from profiler.session.reader import Session

    pictures = [Path(p) for kind in PICTURES if (p := getattr(arguments, kind))]
    tables = [
        (module, Path(path))
        for module, path in (
            (table, arguments.csv),
            (chrome_trace, arguments.chrome_trace),
            (speedscope, arguments.speedscope),
        )
        if path
    ]
    if not pictures and not tables:
        raise BadInput(
            "export wants at least one of --png, --svg, --pdf, --csv, --chrome-trace, --speedscope."
        )
    size = parse_size(arguments.size)
    with closing(Session.open(arguments.session)) as session:
        for module, path in tables:
            module.write(session, path)
            print(path)
    if pictures:
        from app.pictures import desk_picture

        for path in pictures:
            desk_picture(
                arguments.session, path, view=arguments.view, size=size, theme=arguments.theme
            )
            print(path)
    return 0


def parse_size(text: str) -> tuple[int, int]:
    """Read ``1600x1000``; BadInput otherwise."""
    width, times, height = text.lower().partition("x")
    if not (times and width.isdigit() and height.isdigit()):
        raise BadInput(f"--size wants WIDTHxHEIGHT, for example {DEFAULT_SIZE}, and not {text!r}.")
    return int(width), int(height)
