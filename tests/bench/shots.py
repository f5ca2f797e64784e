"""Pictures of the desk and of every view, light and dark: for the README, and for looking at.

    python -m tests.bench.shots --folder build/shots

Decodes the bundled voices with the tricks switched on and off on the way, so that there is something to see.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

SWITCHES = (  # share of the run after which a setting changes
    (0.30, "gmm.selection.enabled", True),
    (0.55, "frames.skip", 2),
    (0.80, "gmm.selection.enabled", False),
)


def record(session: Path, vocabulary: int) -> None:
    """Decode the bundled voices into `session`, flipping the toggles on the way."""
    from pipelines import config
    from pipelines.audio import loading as audio
    from pipelines.config import presets
    from pipelines.run import playlist
    from pipelines.run.control import Control
    from pipelines.run.session_run import Request, execute

    chosen = config.assign(presets.load("gmm").config, {"graph.vocabulary": vocabulary})
    paths, transcripts = playlist.bundled_speech()
    total = sum(audio.load(path).duration_s for path in audio.collect(paths)) * 100

    class Script(Control):
        """Asks for the next switch once the decode loop has come far enough."""

        def __init__(self) -> None:
            super().__init__()
            self.left = list(SWITCHES)

        @property
        def stopping(self) -> bool:
            while self.left and self.frame >= self.left[0][0] * total:
                _, key, value = self.left.pop(0)
                self.ask(key, value)
            return super().stopping

    request = Request(chosen, "gmm", tuple(paths), transcripts, session, replace=True)
    execute(request, Script(), lambda stage, fraction: None)


def main() -> int:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/shots"))
    parser.add_argument("--vocabulary", type=int, default=5000)
    arguments = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    session = folder / "shots.asrs"
    record(session, arguments.vocabulary)

    from app.pictures.studio import Studio
    from app.pictures.wanted import Wanted
    from app.views import VIEWS

    studio = Studio(session)
    for theme in ("dark", "light"):
        studio.write(Wanted(theme=theme), folder / f"desk-{theme}.png")
        small = Wanted(size=(1000, 680), theme=theme)
        studio.write(small, folder / f"desk-small-{theme}.png")
        for view in VIEWS:
            studio.write(Wanted((view,), (1000, 560), theme=theme), folder / f"{view}-{theme}.png")
    studio.close()
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
