"""Sessions in other programs' formats, those of `profiler.export` and those that know presets and words.

One file per format, declared as there.
"""

from __future__ import annotations

from typing import cast

from profiler.export import Writer
from profiler.export import writers as of_profiler


def writers() -> list[Writer]:
    from app.export import markdown

    return sorted([*of_profiler(), cast("Writer", markdown)], key=lambda writer: writer.FORMAT.place)
