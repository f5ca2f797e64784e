"""Open the window: on a session, or where you left off.

asrscope
    asrscope run.asrs
    asrscope beams/
"""

from __future__ import annotations

import argparse

from app.cli._display import require_display, show_window


def arguments(parser: argparse.ArgumentParser) -> None:
    help = "a session file (.asrs), or the folder of a study that `asrscope sweep` has made"
    parser.add_argument("session", metavar="SESSION", nargs="?", help=help)


def run(arguments: argparse.Namespace) -> int:
    require_display()
    return show_window(arguments.session, demo=False)
