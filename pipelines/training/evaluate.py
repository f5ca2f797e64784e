"""Compare word errors of nets with those of the mixtures that taught them, through the whole recogniser."""

from collections.abc import Mapping, Sequence

import msgspec

from pipelines.audio import word_errors as wer
from pipelines.audio.word_errors import Count
from pipelines.config import Config, assign
from pipelines.config.options import Value
from pipelines.models import nets
from pipelines.run import playlist
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.playlist import Item
from pipelines.run.recogniser import build
from pipelines.training.checkpoint import write_card
from pipelines.training.corpus.data import Progress
from profiler.session.writer import NullWriter
from profiler.spans import NullLane, Recorder

MIXTURES = "mixtures"


def word_errors(
    names: Sequence[str],
    audio: Sequence[str],
    transcripts: str | None,
    progress: Progress,
    settings: Mapping[str, Value] | None = None,
) -> dict[str, Count]:
    """Errors of each of `names`, nets (by `settings`) or MIXTURES; BadInput for what cannot be decoded."""
    items = [item for item in playlist.build(audio, transcripts).items if item.reference]
    found = {}
    for name in names:
        config = Config()
        if name != MIXTURES:
            config = assign(config, {"model": "dnn", "dnn.net": name, **(settings or {})})
        found[name] = _decoded(config, items, name, progress)
    return found


def _decoded(config: Config, items: Sequence[Item], name: str, progress: Progress) -> Count:
    recogniser = build(config, Recorder(), NullLane(), progress, lambda: False)
    decoder = Decoder(recogniser, Recorder(), NullLane(), NullWriter(), Control())
    pairs = []
    for i, item in enumerate(items):
        progress(name, i / len(items))
        (done,) = decoder.run([item]).utterances[-1:]
        pairs.append((item.reference or "", done.hypothesis))
    return wer.total(pairs)


def as_json(counts: Mapping[str, Count]) -> dict[str, object]:
    """Word errors, and of each net the size of its file (10⁶ bytes) and the frames that it was trained on."""
    rows = []
    for name, count in counts.items():
        row: dict[str, object] = {"net": name, "mb": None, "frames": None}
        if name != MIXTURES:
            path = nets.find(name)
            row["mb"] = path.stat().st_size / 1e6
            row["frames"] = nets.read_card(path.with_suffix(".json")).about.get("recipe", {}).get("frames")
        rows.append({**row, "errors": count.errors, "words": count.reference_words, "wer": count.rate})
    return {"schema": 1, "nets": rows}


def note(net: str, name: str, counts: Mapping[str, Count]) -> None:
    """Add the word errors of `net` and of the mixtures to its card as `name`."""
    path = nets.find(net).with_suffix(".json")
    card = nets.read_card(path)
    found = {who: [counts[who].errors, counts[who].reference_words] for who in (MIXTURES, net) if who in counts}
    errors = card.about.get("word_errors", {}) | {name: found}
    write_card(msgspec.structs.replace(card, about=card.about | {"word_errors": errors}), path)
