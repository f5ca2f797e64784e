"""A corpus to measure on: sentences from public-domain books, spoken by flite's voices.

`python -m tests.bench.corpus --split test` prints the folder, which holds FLAC files and their `transcripts.tsv`. The
splits are fixed by a seed and share no sentence: figures are reported on `test`, constants are tuned on `development`,
nets are trained on `training`. Files are made once and kept in the user's cache folder.

Where speech that does not ship is missing, this and that of people next to the checkout, a bench stops in a sentence.
"""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import soundfile

from assets.speech.build import SAMPLE_RATE, VOICES, speak
from pipelines.audio import word_errors as wer
from pipelines.run import playlist
from pipelines.run.playlist import Item
from pipelines.training.corpus.data import SEED, SENTENCES, SPLITS, CorpusError, sentences
from profiler.errors import BadInput
from profiler.files.paths import cache_dir
from tests.bench._rounds import command_line

N_SENTENCES = 200
RECIPE = 1  # raise it when the same sentences would come out as other files


def flite_corpus(n_sentences: int = N_SENTENCES, split: str = "test") -> Path:
    """The folder with the first `n_sentences` of a split, spoken by all voices in turn. Raises CorpusError, or
    FliteMissing where flite is not installed."""
    chosen = sentences(SENTENCES, split, SEED)[:n_sentences]
    if n_sentences < 1 or len(chosen) < n_sentences:
        raise CorpusError(f"The split {split} has {len(chosen)} sentences for the {n_sentences} asked.")
    recipe = "\n".join([str(RECIPE), *VOICES, *chosen])
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:8]
    folder = cache_dir("speech") / f"flite-{split}-{n_sentences}-{digest}"
    if (folder / "transcripts.tsv").exists():
        return folder
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        made, lines = Path(unfinished) / folder.name, ["file\ttranscript"]
        made.mkdir()
        for number, sentence in enumerate(chosen):
            voice = VOICES[number % len(VOICES)]
            name = f"{number:04d}-{voice}.flac"
            soundfile.write(made / name, speak(sentence, voice), SAMPLE_RATE, subtype="PCM_16")
            lines.append(f"{name}\t{sentence}")
        (made / "transcripts.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    return folder


HUMAN = Path(__file__).parents[3] / "shared" / "audio"
"""Real human speech with transcripts.tsv, where it lies next to the checkout."""
WORDS = 1500  # least number of words on which word errors are counted, where there are as many
GIVE = "give speech of your own with --audio and --transcripts"


def human_speech() -> list[Item]:
    """The labelled files of HUMAN. BadInput where there is no such folder, or no labels in it."""
    table = HUMAN / "transcripts.tsv"
    if not table.is_file():
        raise BadInput(f"The bench needs human speech, and there is no {table}; {GIVE}.")
    if items := [item for item in playlist.build([str(HUMAN)], str(table)).items if item.reference]:
        return items
    raise BadInput(f"The bench needs to know what was said, and {table} says nothing; {GIVE}.")


def synthetic_corpus() -> Path:
    """The folder of the synthetic test corpus; BadInput where it is not there and cannot be made."""
    try:
        return flite_corpus(split="test")
    except OSError as error:
        why = str(error).rstrip(".")
        raise BadInput(f"The bench needs the synthetic test corpus: {why}; or {GIVE}.") from error


def speech_for_words(paths: Sequence[str], transcripts: str | None) -> list[Item]:
    """The files given, or as many sentences of the synthetic test corpus as hold WORDS words. BadInput where the corpus
    is not there and cannot be made."""
    if not paths:
        folder = synthetic_corpus()
        paths, transcripts = [str(folder)], str(folder / "transcripts.tsv")
    items = playlist.build(paths, transcripts).items
    before = accumulate((len(wer.words(item.reference or "")) for item in items), initial=0)
    return [item for item, words in zip(items, before, strict=False) if words < WORDS]


if __name__ == "__main__":
    parser = command_line("corpus", __doc__)
    parser.add_argument("--split", choices=SPLITS, default="test")
    parser.add_argument("--sentences", type=int, default=N_SENTENCES, metavar="N")
    given = parser.parse_args()
    try:
        print(flite_corpus(given.sentences, given.split))
    except (CorpusError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
