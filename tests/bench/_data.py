"""Speech that benches need and that does not ship. Where it is missing, one sentence says so and the bench stops."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipelines.audio import word_errors as wer
from pipelines.run import playlist
from pipelines.run.playlist import Item
from profiler.errors import BadInput
from tests.bench.corpus import flite_corpus

HUMAN = Path(__file__).parents[3] / "shared" / "audio"
"""Real human speech with transcripts.tsv, where it lies next to the checkout."""

WORDS = 1500
"""Least number of words on which word errors are counted, where there are as many."""

GIVE = "give speech of your own with --audio and --transcripts"


def human_speech(folder: Path | None = None) -> list[Item]:
    """The labelled files of `folder` (HUMAN). BadInput where there is no such folder, or no labels in it."""
    folder = folder or HUMAN
    table = folder / "transcripts.tsv"
    if not table.is_file():
        raise BadInput(f"The bench needs human speech, and there is no {table}; {GIVE}.")
    items = [item for item in playlist.build([str(folder)], str(table)).items if item.reference]
    if not items:
        raise BadInput(f"The bench needs to know what was said, and {table} says nothing; {GIVE}.")
    return items


def synthetic_corpus() -> Path:
    """The folder of the synthetic test corpus; BadInput where it is not there and cannot be made."""
    try:
        return flite_corpus(split="test")
    except OSError as error:
        why = str(error).rstrip(".")
        raise BadInput(f"The bench needs the synthetic test corpus: {why}; or {GIVE}.") from error


def speech_for_words(paths: Sequence[str], transcripts: str | None) -> list[Item]:
    """The files given, or as many sentences of the synthetic test corpus as hold WORDS words.

    BadInput where the corpus is not there and cannot be made.
    """
    if not paths:
        folder = synthetic_corpus()
        paths, transcripts = [str(folder)], str(folder / "transcripts.tsv")
    enough: list[Item] = []
    words = 0
    for item in playlist.build(paths, transcripts).items:
        if words >= WORDS:
            break
        enough.append(item)
        words += len(wer.words(item.reference or ""))
    return enough


def needs_words(items: Sequence[Item]) -> list[Item]:
    """`items`, some of which have references; BadInput otherwise."""
    if not any(wer.words(item.reference or "") for item in items):
        raise BadInput("The bench counts word errors; say with --transcripts what was said.")
    return list(items)
