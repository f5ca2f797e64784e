"""The speech that benches need beyond what ships: it is there, or one sentence says what is missing and they stop.

A table with fewer rows, or of other speech than it says, would be read as the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipelines.audio import word_errors as wer
from pipelines.run import playlist
from pipelines.run.playlist import Item
from profiler.errors import BadInput
from tests.bench.corpus import flite_corpus

HUMAN = Path(__file__).parents[3] / "shared" / "audio"
"""Real human speech with transcripts.tsv, where it lies beside the checkout."""

WORDS = 1500
"""Word errors are counted on at least so many words, where there are as many."""

GIVE = "give speech of your own with --audio and --transcripts"


def human_speech(folder: Path | None = None) -> list[Item]:
    """The labelled files of `folder` (HUMAN). BadInput where there is no such folder, or no labels in it."""
    folder = folder or HUMAN
    table = folder / "transcripts.tsv"
    if not table.is_file():
        raise BadInput(f"The bench needs human speech, and there is no {table}; {GIVE}.")
    found = [item for item in playlist.build([str(folder)], str(table)).items if item.reference]
    if not found:
        raise BadInput(f"The bench needs to know what was said, and {table} says nothing; {GIVE}.")
    return found


def spoken_digits() -> list[Path]:
    """The recordings of single digits beside the human speech; BadInput where they are not there."""
    folder = HUMAN / "digits8k"
    found = sorted(folder.glob("*.flac"))
    if not found:
        raise BadInput(f"The bench needs spoken digits, and there are none in {folder}; {GIVE}.")
    return found


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
    """`items`, of some of which is known what was said; BadInput otherwise."""
    if not any(wer.words(item.reference or "") for item in items):
        raise BadInput("The bench counts word errors; say with --transcripts what was said.")
    return list(items)
