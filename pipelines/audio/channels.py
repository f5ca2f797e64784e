"""Which parts of a sound file are utterances: all channels mixed, one of them, or each."""

from __future__ import annotations

from pathlib import Path

from pipelines.audio import loading, suffixes
from pipelines.audio.loading import AudioError, Part
from pipelines.config import Audio

SIDES = ("left", "right")


def parts_of(path: Path, choice: Audio) -> dict[str, Part]:
    """The parts of a file to decode, by what is appended to its name for each."""
    whole = Part(raw=choice.raw if path.suffix.lower() in suffixes.RAW else "")
    if choice.channel == "mix":
        return {"": whole}
    try:
        n = loading.look(path, whole)
    except AudioError:  # said when its turn comes
        return {"": whole}
    if n == 1:
        return {"": whole}
    if choice.channel != "each":
        return {"": Part(channel=SIDES.index(choice.channel), raw=whole.raw)}
    names = SIDES if n == len(SIDES) else tuple(map(str, range(1, n + 1)))
    return {f"-{name}": Part(channel=at, raw=whole.raw) for at, name in enumerate(names)}
