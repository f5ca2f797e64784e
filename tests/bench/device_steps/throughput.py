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
from pipelines.scoring.device.buffers import Parameters
from pipelines.scoring.device.gmm import mixtures_of
from pipelines.search.device.search import DeviceSearch
from pipelines.search.graph import compile as graphs_of
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.clock import FRAME_S
from profiler.spans import Recorder
from tests.bench._rounds import LANE, scored, timed
from tests.bench.device_steps.batch import Batch
from tests.bench.device_steps.result import SAME_NAT, Result, Task, verdict
from tests.bench.device_steps.runs import SMALL

BLOCK = 16
SEARCHED = 64
"""Frames that a search gets at once."""
ROUNDS = 15
AT_ONCE = (1, 4, 16, 64)
FRAMES, FRAMES_HERE = 300, 60
"""Of each utterance, on a device and on the processor in its place."""
NEAR, NEAR_US = 0.15, 2.0
"""How near events must come to the kernels' own times: a part, and µs for each kernel between two of them."""
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
    gate = _gate if task.device == "cuda" else None
    found: dict[str, dict[str, list[float]]] = {"events": {}, "events behind a gate": {}, "kernels": {}}
    launched: dict[str, int] = {}
    for turn in range(ROUNDS):
        kernels, launched = of_kernels(on, score)
        once = zip(found, (between_events(on, score), between_events(on, score, gate), kernels), strict=True)
        for mode, stages in once:
            for stage, ns in stages.items() if turn > 1 else ():  # before, libraries choose their kernels
                found[mode].setdefault(stage, []).append(ns)
    rows, off = [], []
    for stage in arithmetic.stages:
        events, gated, kernels = (median(times[stage]) / 1e3 for times in found.values())
        number = launched.get(stage)
        rows.append(
            {"stage": stage, "kernels": number, "events, µs": events, "gated, µs": gated, "kernels, µs": kernels}
        )
        off += [stage] if abs(gated - kernels) > NEAR * kernels + NEAR_US * (number or 0) else []
    unless = "" if gate else f"{task.device} has no gate that keeps Python out of its events"
    wrong = {f"events and kernels differ for {', '.join(off)}": off and gate}
    return verdict(wrong, "events are the kernels' time", {"rows": rows}, unless=unless)


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
    """A block of scoring kernel by kernel, and held as graphs: a launch a stage, with the same scores."""
    figures: dict[str, Any] = {}
    scores: list[Array] = []
    features = np.random.default_rng(2).normal(0, 1, (BLOCK, 39)).astype(np.float32)
    for name, held in (("kernel by kernel", False), ("as graphs", True)):
        config = settings.assign(Config(), {"device": task.device, "block": BLOCK, "placement.graphs": held})
        work = DeviceWork(open_device(task.device), Recorder(), LANE)
        scorer = build_scorer(config, open_model(config), work=work)
        scorer.warm_up()
        times = []
        for _ in range(ROUNDS):
            made, seconds = timed(lambda s=scorer: np.array(s.score(features, 0, LANE)))
            times.append(seconds)
        scores.append(made)
        stages = scorer._arithmetic.stages
        figures[f"block {name}, µs"] = median(times) * 1e6
        figures[f"launches {name}"] = sum(scorer.launches(each) for each in stages)
    unless = "" if work.device.can_capture else f"{task.device} cannot hold kernels as a graph: both ways are the same"
    said = " ".join(scorer.take_notices())
    wrong = {
        f"kernels were not held as graphs: {said}": not unless and figures["launches as graphs"] > len(stages),
        "other scores from graphs": not np.array_equal(*scores),
    }
    return verdict(wrong, "the same scores", figures, unless=unless)


def search(task: Task) -> Result:
    """The search of 1, 4, 16 and 64 utterances at once: each has the words that it has alone, and on the processor."""
    if obstacle := SEARCH_OBSTACLES.get(task.device):
        return Result(None, obstacle)
    ready = Prepared(task)
    compiled = Viterbi(ready.graph, ready.config.search)
    here = [_alone(compiled, each) for each in ready.scores]
    expected = [words for each in ready.scores for words in together(ready.search(1), ready.graph, [each])]
    rows, others = [], 0
    for size in AT_ONCE:
        batch, finder = ready.some(ready.scores, size), ready.search(size)
        together(finder, ready.graph, batch)
        words, seconds = timed(lambda f=finder, b=batch: together(f, ready.graph, b))
        others += sum(one != expected[i % len(expected)] for i, one in enumerate(words))
        rows.append(_row(size, batch, seconds))
    apart = sum(device != processor for device, processor in zip(expected, here, strict=True))
    wrong = {
        f"{others} utterances have other words in company": others,
        f"{apart} other ones than on the processor": apart,
    }
    why = f"each of {len(here)} utterances has the words that it has alone, and that the processor finds"
    return verdict(wrong, why, {"rows": rows, "Kaldi on one V100, × real time": KALDI})


def scoring(task: Task) -> Result:
    """Scoring and search of several utterances at once, all on the device; scores are those of the processor."""
    if obstacle := SEARCH_OBSTACLES.get(task.device):
        return Result(None, obstacle)
    ready = Prepared(task)
    rows, worst = [], 0.0
    for size in AT_ONCE:
        batch, finder = ready.some(ready.features, size), ready.search(size)
        together = Batch(ready.config, ready.model, ready.work, size)
        # Compared the first time, which warms everything, and timed the second.
        for compared in (True, False):
            begin, alone = time.perf_counter(), 0.0
            finder.begin()
            for at in range(0, max(map(len, batch)), BLOCK):
                parts = [one[at : at + BLOCK] for one in batch]
                since = time.perf_counter()
                scores = together.score(parts, at)
                ready.work.wait_for(ready.work.mark(COMPUTE), COMPUTE)
                alone += time.perf_counter() - since
                for b, part in enumerate(parts) if compared else ():
                    there, here = scores[: len(part), b].cpu().numpy(), ready.scores[b % len(ready.scores)]
                    off = np.abs(there - here[at : at + len(part)]).max(initial=0.0)
                    worst = float(np.maximum(worst, off))  # what is no number stays
                finder.advance(scores, [len(part) for part in parts], at, LANE)
            spent = time.perf_counter() - begin
        rows.append(_row(size, batch, spent) | {"scoring alone, × real time": _row(size, batch, alone)["× real time"]})
    wrong = {f"scores are {worst:.2g} nat off": not worst < SAME_NAT}
    why = f"the scores of {len(ready.features)} utterances are those of the processor"
    return verdict(wrong, why, {"rows": rows, "largest difference, nat": worst})


class Prepared:
    """Model and graph of a small vocabulary on the device, and utterances: features, and scores by the processor."""

    def __init__(self, task: Task) -> None:
        self.config = settings.assign(presets.load("gmm").config, {**SMALL, "device": task.device})
        self.model = open_model(self.config)
        self.graph = graphs_of.load_or_build(self.config.graph, self.model)
        self.work = DeviceWork(open_device(task.device), Recorder(), LANE)
        frontend, most = Mfcc(self.model.feat_params), FRAMES if task.accelerator else FRAMES_HERE
        items = task.speech(AT_ONCE[-1] if task.accelerator else 4)
        self.features = [frontend.features(audio.load(item.path).samples)[:most] for item in items]
        scorer = build_scorer(settings.replace(self.config, "device", "cpu"), self.model)
        self.scores = [scored(scorer, one, BLOCK) for one in self.features]

    def search(self, size: int) -> DeviceSearch:
        return DeviceSearch(self.graph, self.config.search, self.work, size)

    def some(self, of: list[Array], size: int) -> list[Array]:
        """So many of them, from the first one on again where there are fewer."""
        return [of[i % len(of)] for i in range(size)]


def _row(size: int, batch: list[Array], seconds: float) -> dict[str, Any]:
    speech = sum(map(len, batch)) * FRAME_S
    return {"at once": size, "rtf": seconds / speech, "× real time": speech / seconds}


def _alone(decoder: Viterbi, scores: Array) -> list[str]:
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
