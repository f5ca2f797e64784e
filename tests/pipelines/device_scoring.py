"""Scorers on a device, with the processor in its place, and what they record."""

import time
from pathlib import Path

import numpy as np

from pipelines import config as settings
from pipelines.config import Config
from pipelines.device import COMPUTE, DeviceWork, open_device
from pipelines.scoring import build_scorer, with_context
from pipelines.scoring.device.scorer import DeviceScorer
from profiler.session.writer import SessionWriter
from profiler.spans import SPAN, NullLane, Recorder

LANE = NullLane()


def placed(config: Config, **placement) -> Config:
    return settings.assign(config, {f"placement.{name}": v for name, v in placement.items()})


def on_processor(config: Config) -> Config:
    return settings.replace(config, "device", "cpu")


def make(config: Config, model, recorder=None, lane=LANE, keep=False) -> DeviceScorer:
    work = DeviceWork(open_device(config.device), recorder or Recorder(), lane)
    spare = on_processor(config)
    scorer = DeviceScorer(config, model, work, lambda: build_scorer(spare, model), keep)
    if recorder is not None:
        scorer.stages(recorder)
    return scorer


def scored(scorer, features, block: int = 8, lane=LANE, ahead: bool = True):
    """A whole utterance, each block announced while the one before is searched."""
    padded, beyond = with_context(features, scorer.context), sum(scorer.context)
    blocks = [padded[at : at + block + beyond] for at in range(0, len(features), block)]
    found = []
    for i, part in enumerate(blocks):
        scores = scorer.score(part, i * block, lane)
        if ahead and i + 1 < len(blocks):
            scorer.ahead(blocks[i + 1], (i + 1) * block, lane)
        if not isinstance(scores, np.ndarray):
            # On their own stream: the next block waits for no other before it writes them anew.
            kept: list = []
            scorer._work.device.run(COMPUTE, lambda there=scores, kept=kept: kept.append(there.cpu().clone()))
            scorer._work.wait_for(scorer._work.mark(COMPUTE), COMPUTE)
            scores = kept[0].numpy()
        found.append(scores.copy())
    return np.concatenate(found)


def record(path: Path, config: Config, model, features, search_s: float = 0.0) -> Path:
    """A session of blocks of eight, each followed by `search_s` of the host's own work."""
    recorder = Recorder()
    with SessionWriter(path, recorder, {}):
        lane = recorder.lane("decode", decode=True)
        scorer = make(config, model, recorder, lane)
        scorer.warm_up()
        tile = recorder.stage("decode.block", "decode")
        searched = recorder.stage("search.emit", "search")
        for name, cost in scorer.costs().items():
            recorder.cost(recorder.stage_id(name), 0, cost)
        padded, beyond = with_context(features, scorer.context), sum(scorer.context)
        blocks = [padded[at : at + 8 + beyond] for at in range(0, len(features), 8)]
        for i, block in enumerate(blocks):
            begin = recorder.clock()
            scorer.score(block, 8 * i, lane)
            if i + 1 < len(blocks):
                scorer.ahead(blocks[i + 1], 8 * i + 8, lane)
            start = recorder.clock()
            if search_s:
                # Another thread may run meanwhile, as beside a compiled kernel.
                time.sleep(search_s)
            lane.put(searched, start, recorder.clock(), 8 * i, len(block) - beyond)
            lane.put(tile, begin, recorder.clock(), 8 * i, len(block) - beyond)
    return path


def check_laws(config: Config, model, features) -> set[str]:
    """Names of the stages that a block records; each has a law or a reason why there is none."""
    recorder = Recorder()
    lane = recorder.lane("decode", decode=True)
    scorer = make(config, model, recorder, lane)
    scorer.score(with_context(features, scorer.context), 0, lane)
    seen = set()
    for each in recorder.lanes:
        spans = np.frombuffer(each.take(), SPAN)
        seen |= {recorder.stages[int(number)].name for number in np.unique(spans["stage"])}
    recorded = {recorder.stages[number].name: cost for number, _, cost in recorder.costs}
    for name in seen - {"device.latency"}:
        cost = scorer.costs().get(name) or recorded.get(name)
        assert cost is not None, name
        assert cost.unmodelled or not cost.is_empty, name
    return seen
