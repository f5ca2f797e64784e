"""The option --select, which is the same for every verb that has it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.model.report import Selected
    from profiler.session.reader import Session


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Add --select."""
    parser.add_argument(
        "--select",
        metavar="WHAT",
        action="append",
        help="a stretch FROM..TO, an utterance, a stage, or the note of a bookmark (bookmark:NOTE)",
    )


def selected(arguments: argparse.Namespace, session: Session) -> Selected:
    """What is selected in a session; BadInput for what is not there."""
    from app.model.report import ALL

    if not arguments.select:
        return ALL
    from app.pictures.extent import selected_of
    from profiler.analysis.track import CostTrack

    track = CostTrack()
    track.update(session)
    return selected_of(arguments.select, session, int(track.n_frames))
