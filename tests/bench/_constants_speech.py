"""Constants of `tests.bench.constants` about what a search and a selection of densities meet in speech."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from time import perf_counter_ns
from typing import Any

import numpy as np
from msgspec import structs

from pipelines.audio import loading
from pipelines.config import Config, presets
from pipelines.models import opening
from pipelines.run.recogniser import Recogniser, build
from pipelines.scoring.strategy import never, quietly
from pipelines.search import adaptive_beam
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.spans import NullLane, Recorder
from tests.bench import _data
from tests.bench._constants_products import row

FILES = ("librivox-0870", "cards-001")
WIDE, NARROW = 13.0, 10.0
TIMES = 5


def speech() -> Iterator[dict[str, Any]]:
    """What a frame wants, and how the time of the search grows with the beam."""
    paths = [_data.HUMAN / f"{name}.flac" for name in FILES]
    for path in paths:
        if not path.is_file():
            raise BadInput(f"The bench needs human speech, and there is no {path}.")
    config = presets.load("gmm").config
    recorder = Recorder()
    recogniser = build(config, recorder, NullLane(), quietly, never)
    recogniser.register(recorder)
    recogniser.search.warm_up()
    scores = []
    for path in paths:
        features = recogniser.frontend.features(loading.load(path).samples, 0, NullLane())
        recogniser.scorer.reset()
        whole = [
            recogniser.scorer.score(features[at : at + config.block], at, NullLane()).copy()
            for at in range(0, len(features), config.block)
        ]
        scores.append(np.concatenate(whole))
    yield from _searched(recogniser, config, scores)
    yield from _beams(recogniser, config, scores)


def _searched(
    recogniser: Recogniser, config: Config, scores: list[Array]
) -> Iterator[dict[str, Any]]:
    """Of how many codebooks a frame of the search wants senones, in the mean."""
    model = opening.open_model(config)
    search = recogniser.search
    assert isinstance(search, Viterbi)
    wanted = frames = 0
    for told in scores:
        search.start(0)
        for frame in range(len(told)):
            if frame:
                wanted += len(np.unique(model.senone_codebook[search.active_senones()]))
                frames += 1
            search.advance(told[frame : frame + 1], frame)
    what = f"codebooks with a senone that is wanted, of {len(model.means)}"
    yield row("scoring/tied/lazy.py", what, "", wanted / frames, "")


def _beams(recogniser: Recogniser, config: Config, scores: list[Array]) -> Iterator[dict[str, Any]]:
    """How the search's time grows with its beam; the least of TIMES, at each beam in turn."""
    least = dict.fromkeys((WIDE, NARROW), np.inf)
    for _ in range(TIMES):
        for beam in least:
            recogniser.search.configure(structs.replace(config.search, beam=beam))
            start = perf_counter_ns()
            for told in scores:
                recogniser.search.start(0)
                for at in range(0, len(told), config.block):
                    recogniser.search.advance(told[at : at + config.block], at)
            least[beam] = min(least[beam], perf_counter_ns() - start)
    growth = log(least[WIDE] / least[NARROW]) / (WIDE - NARROW)
    where, what = "search/adaptive_beam.py GROWTH", "d ln(time of the search) / d beam, 10 to 13"
    yield row(where, what, adaptive_beam.GROWTH, growth, "")
