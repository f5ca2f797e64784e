"""Open the window: on a session, or where you left off.

asrscope
    asrscope run.asrs
"""

from __future__ import annotations

import argparse

from app.cli._display import require_display, show_window


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("session", metavar="SESSION", nargs="?", help="a session file (.asrs)")


def run(arguments: argparse.Namespace) -> int:
    """Show the window until it is closed."""
    require_display()
    return show_window(arguments.session, demo=False)
