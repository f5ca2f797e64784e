"""What a run decodes: audio files in order, each with what was said where that is known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import assets
from pipelines.audio import loading as audio
from pipelines.audio import suffixes
from pipelines.audio.channels import parts_of
from pipelines.config import Audio

ALL = Audio()


@dataclass(frozen=True, slots=True)
class Item:
    """A file, or part of it, to decode; `reference` is None where nothing is known of what was said."""

    name: str
    path: Path
    reference: str | None
    part: audio.Part = audio.WHOLE
    notes: tuple[str, ...] = ()
    """Of how the file was found."""


def bundled_speech() -> tuple[list[str], str]:
    """The shipped synthetic voices: folder to decode, and its transcripts."""
    folder = assets.path("speech")
    return [str(folder)], str(folder / "transcripts.tsv")


def build(paths: Sequence[str], transcripts: str | None, choice: Audio = ALL) -> list[Item]:
    """The files that `paths` (files, folders, globs) name, matched with a transcript table, in the parts of `choice`.

    Without any path the bundled synthetic voices are taken. Raises `audio.AudioError`, also when none of
    the files can be decoded; those among others that cannot be are named when their turn comes.
    """
    if not paths:
        paths, bundled = bundled_speech()
        transcripts = transcripts or bundled
    files = audio.collected(paths, suffixes.SUFFIXES | (suffixes.RAW if choice.raw else set()))
    said = audio.read_transcripts(transcripts) if transcripts else {}
    places = [Path(os.path.realpath(file)) for file in files]
    if said and not any(place in said for place in places):
        raise audio.AudioError(
            f"{audio.shown(transcripts or '')} names none of the {len(files)} audio files given; "
            "its paths are read relative to the table itself."
        )
    _look(list(files), choice)
    return [
        # What was said on one channel alone is not known.
        Item(
            file.stem + ending,
            file,
            (ending == "" and said.get(place)) or None,
            part,
            _links(times),
        )
        for (file, times), place in zip(files.items(), places, strict=True)
        for ending, part in parts_of(file, choice).items()
    ]


def _links(times: int) -> tuple[str, ...]:
    return (f"{times:,} links to the same file are decoded once",) * (times > 1)


def _look(files: Sequence[Path], choice: Audio) -> None:
    """AudioError when none of `files` can be decoded, as their headers say."""
    refused = []
    for file in files:
        try:
            for part in parts_of(file, choice).values():
                audio.look(file, part)
            return
        except audio.AudioError as error:
            refused.append(error)
    if len(refused) == 1:
        raise refused[0]
    raise audio.AudioError(
        f"None of the {len(refused)} files can be decoded; the first: {refused[0]}"
    )


def passes(items: Sequence[Item], repeat: int, again: Callable[[], bool]) -> Iterator[Item]:
    """`items` `repeat` times over, then once more for as long as `again` says so."""
    done = 0
    while done < repeat or again():
        yield from items
        done += 1
