"""What a device does for the search: the compiled decoder beside the device's, for 1, 4 and 16 utterances at once.

    asrscope bench device_search

Scores are made beforehand, by the exact model; only the search is timed. Both follow the same graph, the one
utterance after utterance on one thread of the processor, the other all utterances of a batch together on the
first accelerator that is here, or on the processor where there is none (torch-cpu).
"""

from __future__ import annotations

import time
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
from pipelines.run.interleave import turns
from pipelines.scoring import build_scorer
from pipelines.search.device.search import DeviceSearch
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.frames import FRAME_S
from profiler.spans import NullLane, Recorder

BATCHES = (1, 4, 16)
MAX_FRAMES = 200
"""Of each utterance: batches of like lengths, and an end on the processor alone."""
BLOCK = 64

Scores = Array


def run(
    paths: Sequence[str],
    transcripts: str | None,
    repeat: int,
    progress: Callable[[str, float | None], None],
) -> dict[str, Any]:
    """Decode the first utterances of `paths` (default: the bundled voices) `repeat` times on both sides."""
    items = playlist.build(paths, transcripts).items
    here = {found.name for found in availability.probe() if found.available}
    here -= set(availability.obstacles("search.device"))
    usable = [name for name in ("cuda", "xpu", "torch-cpu") if name in here]
    if not usable:
        raise BadInput(
            "The bench needs a device to search on, and none works here; see asrscope doctor."
        )
    config = presets.load("gmm").config
    model = open_model(config)
    graph = graphs.load_or_build(config.graph, model)
    utterances = _scores(config, model, items, progress)
    work = DeviceWork(open_device(usable[0], config.threads), Recorder(), NullLane())
    compiled = Viterbi(graph, config.search)
    compiled.warm_up()
    rows, same = [], True
    for size in BATCHES:
        batch = [utterances[i % len(utterances)] for i in range(size)]
        frames = sum(len(one) for one in batch)
        search = DeviceSearch(graph, config.search, work, size)
        _together(search, graph, batch)
        times: dict[str, list[float]] = {"compiled": [], "device": []}
        for turn, _, side in turns(2, 1, range(repeat)):
            progress(f"{size} at once, round {turn + 1} of {repeat}", turn / repeat)
            start = time.perf_counter()
            if side:
                alone = [_alone(compiled, one) for one in batch]
            else:
                together = _together(search, graph, batch)
            times["compiled" if side else "device"].append(time.perf_counter() - start)
        same &= alone == together
        ratios = [c / d for c, d in zip(times["compiled"], times["device"], strict=True)]
        rows.append(
            {
                "at once": size,
                "device": work.device.name,
                "rtf": median(times["device"]) / (frames * FRAME_S),
                "rtf of the compiled decoder": median(times["compiled"]) / (frames * FRAME_S),
                "ratio": median(ratios),
                "ratio_min": min(ratios),
                "ratio_max": max(ratios),
            }
        )
    last = rows[-1]
    return {
        "peer": f"the compiled decoder on one thread ({BATCHES[-1]} utterances, one after the other)",
        "ratio": last["ratio"],
        "ratio_min": last["ratio_min"],
        "ratio_max": last["ratio_max"],
        "ratio_meaning": f"peer time / time on {work.device.name}, all at once, median of paired runs",
        "agreement": {
            "same words": same,
            "vocabulary": config.graph.vocabulary,
            "arcs": len(graph.arcs),
            "beam": config.search.beam,
            "max_active": config.search.max_active,
        },
        "rows": rows,
    }


def _scores(config: Any, model: Any, items: Any, progress: Any) -> list[Scores]:
    front_end, scorer = Mfcc(model.feat_params), build_scorer(config, model)
    found = []
    for item in items[: BATCHES[-1]]:
        progress("scoring", len(found) / BATCHES[-1])
        features = front_end.features(audio.load(item.path).samples)[:MAX_FRAMES]
        scorer.reset()
        parts = [
            scorer.score(features[at : at + 16], at, NullLane()).copy()
            for at in range(0, len(features), 16)
        ]
        found.append(np.concatenate(parts))
    return found


def _alone(decoder: Viterbi, scores: Scores) -> list[str]:
    decoder.start(0)
    for at in range(0, len(scores), BLOCK):
        decoder.advance(scores[at : at + BLOCK], at)
    return [word for word, _, _ in decoder.finish()]


def _together(search: DeviceSearch, graph: Graph, batch: list[Scores]) -> list[list[str]]:
    search.begin()
    block = np.zeros((BLOCK, len(batch), graph.n_senones), np.float32)
    for at in range(0, max(len(one) for one in batch), BLOCK):
        lengths = [min(max(len(one) - at, 0), BLOCK) for one in batch]
        for b, (one, n) in enumerate(zip(batch, lengths, strict=True)):
            block[:n, b] = one[at : at + n]
        search.advance(block[: max(lengths)], lengths, at, NullLane())
    return [[word for word, _, _ in one.words(True)[0]] for one in search.utterances]
