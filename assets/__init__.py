"""What ships beside the code: presets, sample speech, fonts. No logic beyond finding a file."""

from pathlib import Path

ROOT = Path(__file__).parent


def path(*parts: str) -> Path:
    """The path of a shipped file or folder, e.g. ``path("speech")``."""
    return ROOT.joinpath(*parts)
