"""What a run decodes: audio files in order, each with what was said where that is known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import assets
from pipelines.audio import loading as audio


@dataclass(frozen=True, slots=True)
class Item:
    """A file, or part of it, to decode; `reference` is None where nothing is known of what was said."""

    name: str
    path: Path
    reference: str | None
    part: audio.Part = audio.WHOLE


def bundled_speech() -> tuple[list[str], str]:
    """The shipped synthetic voices: folder to decode, and its transcripts."""
    folder = assets.path("speech")
    return [str(folder)], str(folder / "transcripts.tsv")


def build(paths: Sequence[str], transcripts: str | None) -> list[Item]:
    """The files that `paths` (files, folders, globs) name, matched with a transcript table.

    Without any path the bundled synthetic voices are taken. Raises `audio.AudioError`, also when none of
    the files can be decoded; those among others that cannot be are named when their turn comes.
    """
    if not paths:
        paths, bundled = bundled_speech()
        transcripts = transcripts or bundled
    files = audio.collect(paths)
    said = audio.read_transcripts(transcripts) if transcripts else {}
    places = [Path(os.path.realpath(file)) for file in files]
    if said and not any(place in said for place in places):
        raise audio.AudioError(
            f"{audio.shown(transcripts or '')} names none of the {len(files)} audio files given; "
            "its paths are read relative to the table itself."
        )
    _look(files)
    return [
        Item(file.stem, file, said.get(place) or None)
        for file, place in zip(files, places, strict=True)
    ]


def _look(files: Sequence[Path]) -> None:
    """AudioError when none of `files` can be decoded, as their headers say."""
    refused = []
    for file in files:
        try:
            audio.look(file)
            return
        except audio.AudioError as error:
            refused.append(error)
    if len(refused) == 1:
        raise refused[0]
    raise audio.AudioError(
        f"None of the {len(refused)} files can be decoded; the first: {refused[0]}"
    )


def passes(
    items: Sequence[Item], repeat: int, again: Callable[[], bool], frame: Callable[[], int]
) -> Iterator[Item]:
    """`items` `repeat` times over, then once more for as long as `again` says so.

    They end after a pass in which `frame`, the number of frames decoded so far, has not grown: none can be read.
    """
    done = 0
    while done < repeat or again():
        before = frame()
        yield from items
        if frame() == before:
            return
        done += 1
