"""What a run decodes: audio files in order, each with what was said where that is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import assets
from pipelines import audio


@dataclass(frozen=True, slots=True)
class Item:
    """One file to decode; `reference` is None where nothing is known of what was said."""

    name: str
    path: Path
    reference: str | None


def bundled_speech() -> tuple[list[str], str]:
    """The shipped synthetic voices: folder to decode, and its transcripts."""
    folder = assets.path("speech")
    return [str(folder)], str(folder / "transcripts.tsv")


def build(paths: Sequence[str], transcripts: str | None) -> list[Item]:
    """The files that `paths` (files, folders, globs) name, matched with a transcript table.

    Without any path the bundled synthetic voices are taken. Raises `audio.AudioError`.
    """
    if not paths:
        paths, bundled = bundled_speech()
        transcripts = transcripts or bundled
    files = audio.collect(paths)
    said = audio.read_transcripts(transcripts) if transcripts else {}
    if said and not any(file.resolve() in said for file in files):
        raise audio.AudioError(
            f"{transcripts} names none of the {len(files)} audio files given; "
            "its paths are read relative to the table itself."
        )
    return [Item(file.stem, file, said.get(file.resolve()) or None) for file in files]


def passes(items: Sequence[Item], repeat: int, again: Callable[[], bool]) -> Iterator[Item]:
    """`items` `repeat` times over, then once more for as long as `again` says so."""
    done = 0
    while done < repeat or again():
        yield from items
        done += 1
