"""Word errors of a net beside those of the mixtures that taught it, through the whole recogniser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pipelines import playlist, wer
from pipelines.config import Config, assign
from pipelines.control import Control
from pipelines.decode import Decoder
from pipelines.models import nets
from pipelines.recogniser import build
from pipelines.training.data import Progress
from pipelines.training.export import write_card
from pipelines.unrecorded import Unrecorded
from pipelines.wer import Count
from profiler.spans import NullLane, Recorder


def word_errors(
    net: str, audio: Sequence[str], transcripts: str | None, progress: Progress
) -> dict[str, Count]:
    """Errors by "mixtures" and by the name of the net; BadInput (one sentence) for what cannot be decoded."""
    items = [item for item in playlist.build(audio, transcripts) if item.reference]
    base = Config()
    configs = {"mixtures": base, net: assign(base, {"model": "dnn", "dnn.net": net})}
    found = {}
    for name, config in configs.items():
        recogniser = build(config, Recorder(), NullLane(), progress, lambda: False)
        decoder = Decoder(recogniser, Recorder(), NullLane(), Unrecorded(), Control())
        pairs = []
        for i, item in enumerate(items):
            progress(name, i / len(items))
            (done,) = decoder.run([item]).utterances[-1:]
            pairs.append((item.reference or "", done.hypothesis))
        found[name] = wer.total(pairs)
    return found


def note(net: str, name: str, counts: Mapping[str, Count]) -> None:
    """Write the word errors into the card of `net`, beside those that it has, as `name`."""
    path = nets.find(net).with_suffix(".json")
    card = nets.read_card(path)
    found = {who: [count.errors, count.reference_words] for who, count in counts.items()}
    errors = card.about.get("word_errors", {}) | {name: found}
    write_card(msgspec.structs.replace(card, about=card.about | {"word_errors": errors}), path)
