"""Steps that time the device: its work against torch's own profiler, graphs of kernels, and many utterances at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.availability import SEARCH_OBSTACLES
from pipelines.config import Config, presets
from pipelines.device import COMPUTE, DeviceWork, open_device
from pipelines.frontend.mfcc import Mfcc
from pipelines.models.opening import open_model
from pipelines.scoring import build_scorer
from pipelines.scoring.device.arithmetic import Placed, Stages
from pipelines.scoring.device.batch import Batch
from pipelines.scoring.device.buffers import Parameters
from pipelines.scoring.device.gmm import mixtures_of
from pipelines.search.device.search import DeviceSearch
from pipelines.search.graph import compile as graphs_of
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.clock import FRAME_S
from profiler.spans import Recorder
from tests.bench._rounds import LANE, scored
from tests.bench.device_steps import rules
from tests.bench.device_steps.result import Result, Task
from tests.bench.device_steps.runs import SMALL

BLOCK = 16
SEARCHED = 64
"""Frames that a search gets at once."""
ROUNDS = 15
AT_ONCE = (1, 4, 16, 64)
FRAMES, FRAMES_HERE = 300, 60
"""Of each utterance, on a device and on the processor in its place."""
KALDI = (16_500, 24_900)
"""Times real time of Kaldi's CUDA decoder on one V100 (Braun et al. 2020): for whom to compare with, no aim."""


def busy(task: Task) -> Result:
    """Time between events, as issued and behind a gate, against the sums of torch's profiler, stage by stage."""
    import torch

    config = settings.assign(Config(), {"device": task.device})
    work = DeviceWork(open_device(task.device), Recorder(), LANE)
    on, arithmetic = Placed(work, "fp32"), mixtures_of(open_model(config))
    parameters = Parameters(arithmetic, on, False)
    x = torch.empty(BLOCK, arithmetic.dim, device=work.device.where)
    work.device.run(COMPUTE, x.normal_)
    out = torch.empty(BLOCK, arithmetic.n_senones, device=work.device.where)
    score = partial(arithmetic.score, parameters.there, x, out)
    gated = task.device == "cuda"
    found: dict[str, dict[str, list[float]]] = {"events": {}, "events behind a gate": {}}
    found["kernels"] = {}
    launched: dict[str, int] = {}
    for turn in range(ROUNDS):
        kernels, launched = of_kernels(on, score)
        once = {
            "events": between_events(on, score),
            "events behind a gate": between_events(on, score, _gate if gated else None),
            "kernels": kernels,
        }
        if turn < 2:  # libraries choose their kernels
            continue
        for mode, stages in once.items():
            for stage, ns in stages.items():
                found[mode].setdefault(stage, []).append(ns)
    rows = [
        {
            "stage": stage,
            "kernels": launched.get(stage),
            **{f"{mode}, µs": median(times[stage]) / 1e3 for mode, times in found.items()},
        }
        for stage in arithmetic.stages
    ]
    return rules.busy(rows, task.device)


class _Handing:
    """Hands each stage of a block to a function."""

    def __init__(self, on: Placed, give: Callable[[str, Callable[[], object]], None]) -> None:
        self.on, self._give = on, give

    def give(self, stage: str, step: Callable[[], object], frames: int, work: int, more: int = 0) -> None:
        self._give(stage, step)


def between_events(
    on: Placed, score: Callable[[Stages], None], gate: Callable[[], object] | None = None
) -> dict[str, float]:
    """ns from the event before to the event behind each stage of one block; `gate` is given before all of them."""
    device = on.work.device
    pending: list[tuple[str, Any, Any]] = []

    def give(stage: str, step: Callable[[], object]) -> None:
        began = device.record(COMPUTE)
        device.run(COMPUTE, step)
        pending.append((stage, began, device.record(COMPUTE)))

    if gate is not None:
        device.run(COMPUTE, gate)
    score(_Handing(on, give))
    device.wait(device.mark(COMPUTE))
    found: dict[str, float] = {}
    for stage, began, ended in pending:
        spent = float(device.time_ns(ended) - device.time_ns(began))
        found[stage] = found.get(stage, 0.0) + spent
        device.recycle(began)
        device.recycle(ended)
    return found


def _gate() -> None:
    """Keeps the stream busy while Python gives it the whole block: some 10 ms."""
    import torch

    torch.cuda._sleep(20_000_000)


def of_kernels(on: Placed, score: Callable[[Stages], None]) -> tuple[dict[str, float], dict[str, int]]:
    """ns that torch's profiler counts for each stage of one block, and kernels (none of them on a processor)."""
    import torch

    device, known = on.work.device, torch.profiler.ProfilerActivity
    kind = {"cuda": known.CUDA, "xpu": known.XPU}.get(device.where)
    activities = [known.CPU] if kind is None else [known.CPU, kind]
    spent: dict[str, float] = {}
    launched: dict[str, int] = {}

    def give(stage: str, step: Callable[[], object]) -> None:
        def watched() -> None:
            with torch.profiler.profile(activities=activities) as profile:
                step()
                if kind is not None:
                    torch.accelerator.synchronize()
            if kind is None:
                us = sum(e.self_cpu_time_total for e in profile.key_averages())
            else:
                kernels = [e for e in profile.events() if str(e.device_type).endswith(kind.name)]
                launched[stage] = launched.get(stage, 0) + len(kernels)
                us = sum(e.time_range.elapsed_us() for e in kernels)
            spent[stage] = spent.get(stage, 0.0) + us * 1e3

        device.run(COMPUTE, watched)
        device.wait(device.mark(COMPUTE))

    score(_Handing(on, give))
    return spent, launched


def graphs(task: Task) -> Result:
    """A block of scoring kernel by kernel, and held as graphs."""
    figures: dict[str, Any] = {}
    scores = {}
    rng = np.random.default_rng(2)
    features = rng.normal(0, 1, (BLOCK, 39)).astype(np.float32)
    can = False
    for name, held in (("kernel by kernel", False), ("as graphs", True)):
        config = settings.assign(Config(), {"device": task.device, "block": BLOCK, "placement.graphs": held})
        work = DeviceWork(open_device(task.device), Recorder(), LANE)
        can = work.device.can_capture
        model = open_model(config)
        scorer = build_scorer(config, model, work=work)
        scorer.warm_up()
        times = []
        for _ in range(ROUNDS):
            begin = time.perf_counter_ns()
            scores[name] = np.array(scorer.score(features, 0, LANE))
            times.append(time.perf_counter_ns() - begin)
        notices = scorer.take_notices()
        stages = scorer._arithmetic.stages
        figures[f"block {name}, µs"] = median(times) / 1e3
        figures[f"launches {name}"] = sum(scorer.launches(each) for each in stages)
    first, second = scores.values()
    same = bool(np.array_equal(first, second))
    return rules.graphs(figures, len(stages), can, same, notices, task.device)


def search(task: Task) -> Result:
    """The search of 1, 4, 16 and 64 utterances at once, each as if it were alone."""
    if obstacle := SEARCH_OBSTACLES.get(task.device):
        return Result(None, obstacle)
    config, model, graph, features = _prepared(task)
    scorer = build_scorer(settings.replace(config, "device", "cpu"), model)
    utterances = [scored(scorer, one, BLOCK) for one in features]
    work = DeviceWork(open_device(task.device), Recorder(), LANE)
    one = DeviceSearch(graph, config.search, work)
    expected = [together(one, graph, [each])[0] for each in utterances]
    compiled = Viterbi(graph, config.search)
    here = [alone(compiled, each) for each in utterances]
    rows, others = [], 0
    for size in AT_ONCE:
        batch = [utterances[i % len(utterances)] for i in range(size)]
        finder = DeviceSearch(graph, config.search, work, size)
        together(finder, graph, batch)
        begin = time.perf_counter()
        words = together(finder, graph, batch)
        spent = time.perf_counter() - begin
        others += sum(one != expected[i % len(utterances)] for i, one in enumerate(words))
        rows.append(_row(size, batch, spent))
    apart = sum(device != processor for device, processor in zip(expected, here, strict=True))
    figures = {"rows": rows, "Kaldi on one V100, × real time": KALDI}
    return rules.search(len(utterances), others, apart, figures)


def scoring(task: Task) -> Result:
    """Scoring and search of several utterances at once, all on the device."""
    if obstacle := SEARCH_OBSTACLES.get(task.device):
        return Result(None, obstacle)
    config, model, graph, features = _prepared(task)
    scorer = build_scorer(settings.replace(config, "device", "cpu"), model)
    expected = [scored(scorer, one, BLOCK) for one in features]
    rows, worst = [], 0.0
    for size in AT_ONCE:
        batch = [features[i % len(features)] for i in range(size)]
        work = DeviceWork(open_device(task.device), Recorder(), LANE)
        together = Batch(config, model, work, size)
        finder = DeviceSearch(graph, config.search, work, size)
        # Compared the first time, which warms everything, and timed the second.
        for compared in (True, False):
            begin = time.perf_counter()
            finder.begin()
            apart = 0.0
            for at in range(0, max(map(len, batch)), BLOCK):
                parts = [one[at : at + BLOCK] for one in batch]
                since = time.perf_counter()
                scores = together.score(parts, at)
                work.wait_for(work.mark(COMPUTE), COMPUTE)
                apart += time.perf_counter() - since
                if compared:
                    apart_by = _furthest(scores.cpu().numpy(), parts, expected, at)
                    worst = float(np.maximum(worst, apart_by))  # what is no number stays
                finder.advance(scores, [len(part) for part in parts], at, LANE)
            spent = time.perf_counter() - begin
        frames = sum(map(len, batch))
        row = _row(size, batch, spent)
        row["scoring alone, × real time"] = frames * FRAME_S / apart
        rows.append(row)
    return rules.scoring(len(features), worst, rows)


def _furthest(scores: Array, parts: list[Array], expected: list[Array], at: int) -> float:
    """How far scores [frames, utterances, senones] of a block are from those expected of each utterance, in nat."""
    away = [
        np.abs(scores[: len(part), b] - expected[b % len(expected)][at : at + len(part)]).max()
        for b, part in enumerate(parts)
        if len(part)
    ]
    return float(np.max(away))


def _row(size: int, batch: list[Array], seconds: float) -> dict[str, Any]:
    speech = sum(map(len, batch)) * FRAME_S
    return {"at once": size, "rtf": seconds / speech, "× real time": speech / seconds}


def _prepared(task: Task) -> tuple[Config, Any, Any, list[Array]]:
    config = settings.assign(presets.load("gmm").config, {**SMALL, "device": task.device})
    model = open_model(config)
    graph = graphs_of.load_or_build(config.graph, model)
    front_end = Mfcc(model.feat_params)
    most = FRAMES if task.accelerator else FRAMES_HERE
    items = task.speech(AT_ONCE[-1] if task.accelerator else 4)
    features = [front_end.features(audio.load(item.path).samples)[:most] for item in items]
    return config, model, graph, features


def alone(decoder: Viterbi, scores: Array) -> list[str]:
    """The words of one utterance by the compiled decoder."""
    decoder.start(0)
    for first in range(0, len(scores), SEARCHED):
        decoder.advance(scores[first : first + SEARCHED], first)
    return [word for word, _, _ in decoder.finish()]


def together(search: DeviceSearch, graph: Graph, batch: list[Array]) -> list[list[str]]:
    """The words of each utterance of a batch, searched at once."""
    search.begin()
    block = np.zeros((SEARCHED, len(batch), graph.n_senones), np.float32)
    for first in range(0, max(len(one) for one in batch), SEARCHED):
        lengths = [min(max(len(one) - first, 0), SEARCHED) for one in batch]
        for b, (one, n) in enumerate(zip(batch, lengths, strict=True)):
            block[:n, b] = one[first : first + n]
        search.advance(block[: max(lengths)], lengths, first, LANE)
    return [[word for word, _, _ in one.words(True)[0]] for one in search.utterances]
