"""Sentences to speak, parted once and for all into what is tested, tuned and trained on; and their voices.

The splits are fixed by a seed and share no sentence: figures are reported on `test`, constants are
tuned on `development`, models are trained on `training`. flite's voices speak them.
"""

from __future__ import annotations

import random
from pathlib import Path

from pipelines.audio import word_errors as wer
from profiler.errors import BadInput
from profiler.files import inputs

SENTENCES = Path(__file__).parents[4] / "shared" / "text" / "sentences.txt"
"""One sentence per line; used where no other file is named."""

SEED = 1
RESERVED = 300  # sentences set aside for `test`, and as many for `development`
SPLITS = ("test", "development", "training")


class CorpusError(BadInput):
    """The requested corpus cannot be made; the message is one sentence."""


def sentences(text: Path, split: str, seed: int = SEED) -> list[str]:
    """The sentences of `split` in a fixed random order, as plain words."""
    if split not in SPLITS:
        raise CorpusError(f"There is no split {split!r}; there are {', '.join(SPLITS)}.")
    try:
        lines = inputs.lines_of(text.read_text(encoding="utf-8"))
    except OSError as error:
        raise CorpusError(f"The text {text} cannot be read: {error.strerror or error}.") from None
    # A sentence that occurs twice must not fall into two splits.
    plain = sorted({" ".join(wer.words(line)) for line in lines} - {""})
    random.Random(seed).shuffle(plain)
    first = RESERVED * SPLITS.index(split)
    return plain[first:] if split == "training" else plain[first : first + RESERVED]
