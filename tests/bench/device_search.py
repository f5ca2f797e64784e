"""What a device does for the search: the compiled decoder and the device's, for 1, 4 and 16 utterances at once.

    asrscope bench device_search

Scores are made beforehand, by the exact model; only the search is timed. Both follow the same graph, the one
utterance after utterance on one thread of the processor, the other all utterances of a batch together on the
first accelerator that is here, or on the processor where there is none (torch-cpu).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np

from pipelines import availability
from pipelines.audio import loading as audio
from pipelines.config import presets
from pipelines.device import DeviceWork, open_device
from pipelines.frontend.mfcc import Mfcc
from pipelines.models.opening import open_model
from pipelines.run import playlist
from pipelines.scoring import build_scorer
from pipelines.search.device.search import DeviceSearch
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.frames import FRAME_S
from profiler.spans import Recorder
from tests.bench._rounds import (
    LANE,
    Progress,
    Side,
    interleave,
    paired,
    result,
    scored,
    spread,
    timed,
)

BATCHES = (1, 4, 16)
MAX_FRAMES = 200
"""Of each utterance: batches of like lengths, and an end on the processor alone."""
BLOCK = 64

Scores = Array
Batch = list[Scores]


class Batched(Side):
    """A decoder of a batch, and the words that it finds."""

    def __init__(self, name: str, decode: Callable[[Batch], list[list[str]]]) -> None:
        self.words: list[list[str]] = []

        def take(batch: Batch) -> float:
            self.words, seconds = timed(lambda: decode(batch))
            return seconds

        super().__init__(name, take)


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    """Decode the first utterances of `paths` (default: the bundled voices) `repeat` times on both sides."""
    items = playlist.build(paths, transcripts).items
    here = {probed.name for probed in availability.probe() if probed.available}
    here -= set(availability.unavailable_choices("search.device"))
    usable = [name for name in ("cuda", "xpu", "torch-cpu") if name in here]
    if not usable:
        raise BadInput("The bench needs a device to search on, and none works here; see asrscope doctor.")
    config = presets.load("gmm").config
    model = open_model(config)
    graph = graphs.load_or_build(config.graph, model)
    progress("scoring", None)
    frontend, scorer = Mfcc(model.feat_params), build_scorer(config, model)
    utterances = [
        scored(scorer, frontend.features(audio.load(item.path).samples)[:MAX_FRAMES], 16)
        for item in items[: BATCHES[-1]]
    ]
    work = DeviceWork(open_device(usable[0], config.threads), Recorder(), LANE)
    compiled = Viterbi(graph, config.search)
    compiled.warm_up()
    rows, same = [], True
    for size in BATCHES:
        batch = [utterances[i % len(utterances)] for i in range(size)]
        audio_s = sum(map(len, batch)) * FRAME_S
        search = DeviceSearch(graph, config.search, work, size)
        device = Batched("device", lambda batch, search=search: together(search, graph, batch))
        host = Batched("compiled", lambda batch: [alone(compiled, one) for one in batch])
        at_once = f"{size} at once"
        interleave([device, host], [batch], repeat, lambda share, t=at_once: progress(t, share))
        same &= host.words == device.words
        ratios = paired(host, device)
        rows.append(
            {
                "at once": size,
                "device": work.device.name,
                "rtf": median(device.seconds) / audio_s,
                "rtf of the compiled decoder": median(host.seconds) / audio_s,
                **spread(ratios),
            }
        )
    agreement = {
        "same words": same,
        "vocabulary": config.graph.vocabulary,
        "arcs": len(graph.arcs),
        "beam": config.search.beam,
        "max_active": config.search.max_active,
    }
    peer = f"the compiled decoder on one thread ({BATCHES[-1]} utterances, one after the other)"
    meaning = f"peer time / time on {work.device.name}, all at once, median of paired runs"
    return result(peer, ratios, meaning, agreement, rows)


def alone(decoder: Viterbi, scores: Scores) -> list[str]:
    """The words of one utterance by the compiled decoder."""
    decoder.start(0)
    for first in range(0, len(scores), BLOCK):
        decoder.advance(scores[first : first + BLOCK], first)
    return [word for word, _, _ in decoder.finish()]


def together(search: DeviceSearch, graph: Graph, batch: Batch) -> list[list[str]]:
    """The words of each utterance of a batch, searched at once."""
    search.begin()
    block = np.zeros((BLOCK, len(batch), graph.n_senones), np.float32)
    for first in range(0, max(len(one) for one in batch), BLOCK):
        lengths = [min(max(len(one) - first, 0), BLOCK) for one in batch]
        for b, (one, n) in enumerate(zip(batch, lengths, strict=True)):
            block[:n, b] = one[first : first + n]
        search.advance(block[: max(lengths)], lengths, first, LANE)
    return [[word for word, _, _ in one.words(True)[0]] for one in search.utterances]
