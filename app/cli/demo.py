"""Open the window and run the demo; without a display, run it headless.

    asrscope demo
    asrscope demo --folder build/demo

The demo decodes the bundled synthetic voices with the preset `demo`, in real time and again and again. Headless, it
decodes them once, writes a session and a picture of the desk to the folder and prints where.
"""

import argparse
from pathlib import Path

from app.cli.open import has_display, show_window


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder", default="asrscope-demo", help="folder for session and picture if there is no display"
    )


def run(arguments: argparse.Namespace) -> int:
    """Show the demo."""
    if has_display():
        return show_window(None, demo=True)
    from app.cli.main import main

    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    session, picture = folder / "demo.asrs", folder / "demo.png"
    print("No display answers, so the demo runs without a window.")
    status = main(["run", "--preset", "demo", "--set", "pace=0", "--out", str(session)])
    if status == 0:
        status = main(["export", str(session), "--png", str(picture)])
    if status == 0:
        print(f"session: {session}\npicture: {picture}")
    return status
