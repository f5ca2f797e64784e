"""Steps that time the device: its work against torch's own profiler, graphs of kernels, and many utterances at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.config import Config, presets
from pipelines.device import COMPUTE, DeviceWork, open_device
from pipelines.frontend.mfcc import Mfcc
from pipelines.models.opening import open_model
from pipelines.scoring import build_scorer
from pipelines.scoring.device.arithmetic import Placed
from pipelines.scoring.device.batch import Batch
from pipelines.scoring.device.gmm import mixtures_of
from pipelines.scoring.device.parameters import Parameters
from pipelines.search.device.search import DeviceSearch
from pipelines.search.graph import compile as graphs_of
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.frames import FRAME_S
from profiler.spans import NullLane, Recorder
from tests.bench.device_search import _alone, _together
from tests.bench.device_steps.found import Found, Task
from tests.bench.device_steps.runs import SMALL

LANE = NullLane()
BLOCK = 16
ROUNDS = 15
AT_ONCE = (1, 4, 16, 64)
FRAMES, FRAMES_HERE = 300, 60
"""Of each utterance, on a device and on the processor in its place."""
NEAR = 0.15
"""How near events must come to the kernels' own times …"""
NEAR_NS = 2_000
"""… beside so much a kernel between two of them."""
MOST_NAT = 0.05
"""Of log densities of some hundred nat: products of float32 are summed in another order there."""
KALDI = (16_500, 24_900)
"""Times real time of Kaldi's CUDA decoder on one V100 (Braun et al. 2020): for whom to compare with, no aim."""


def busy(task: Task) -> Found:
    """Time between events, as issued and behind a gate, against the sums of torch's profiler, stage by stage."""
    import torch

    config = settings.assign(Config(), {"device": task.device})
    work = DeviceWork(open_device(task.device), Recorder(), LANE)
    device, on = work.device, Placed(work, "fp32")
    arithmetic = mixtures_of(open_model(config))
    parameters = Parameters(arithmetic, on, False)
    x = torch.empty(BLOCK, arithmetic.dim, device=device.where)
    device.run(COMPUTE, x.normal_)
    out = torch.empty(BLOCK, arithmetic.n_senones, device=device.where)
    modes: dict[str, Callable[[str, Callable[[], object]], float]] = {}
    kernels: dict[str, int] = {}
    pending: list[tuple[str, Any, Any]] = []

    def events(stage: str, step: Callable[[], object]) -> float:
        began = device.record(COMPUTE)
        device.run(COMPUTE, step)
        pending.append((stage, began, device.record(COMPUTE)))
        return 0.0

    def profiled(stage: str, step: Callable[[], object]) -> float:
        spent = []

        def watched() -> None:
            known = torch.profiler.ProfilerActivity
            kind = {"cuda": known.CUDA, "xpu": known.XPU}.get(device.where)
            asked = [known.CPU] if kind is None else [known.CPU, kind]
            with torch.profiler.profile(activities=asked) as profile:
                step()
                if task.accelerator:
                    torch.accelerator.synchronize()
            if kind is None:
                spent.append(sum(e.self_cpu_time_total for e in profile.key_averages()))
                return
            launched = [e for e in profile.events() if str(e.device_type).endswith(kind.name)]
            kernels[stage] = len(launched)
            spent.append(sum(e.time_range.elapsed_us() for e in launched))

        device.run(COMPUTE, watched)
        device.wait(device.mark(COMPUTE))
        return float(spent[0]) * 1e3

    modes = {"events": events, "events behind a gate": events, "kernels": profiled}
    found: dict[str, dict[str, list[float]]] = {name: {} for name in modes}

    class Stages:
        """Gives each stage as a mode says."""

        def __init__(self, mode: str) -> None:
            self.on, self.mode = on, mode

        def give(
            self, stage: str, step: Callable[[], object], frames: int, amount: int, more: int = 0
        ) -> None:
            ns = modes[self.mode](stage, step)
            if ns:
                found[self.mode].setdefault(stage, []).append(ns)

    for turn in range(ROUNDS):
        for mode in modes:
            if mode == "events behind a gate" and task.device == "cuda":
                device.run(COMPUTE, lambda: torch.cuda._sleep(20_000_000))
            arithmetic.score(parameters.there, x, out, Stages(mode))
            device.wait(device.mark(COMPUTE))
            for stage, began, ended in pending:
                ns = float(device.time_ns(ended) - device.time_ns(began))
                found[mode].setdefault(stage, []).append(ns)
            pending.clear()
        if turn < 2:  # libraries choose their kernels
            for each in found.values():
                each.clear()
    rows = [
        {
            "stage": stage,
            "kernels": kernels.get(stage),
            **{f"{mode}, µs": median(found[mode][stage]) / 1e3 for mode in modes},
        }
        for stage in arithmetic.stages
    ]
    if task.device != "cuda":
        why = f"{task.device} has no gate that keeps Python out of its events; its operations stand beside them"
        return Found(None, why, {"rows": rows})
    off = [
        row["stage"]
        for row in rows
        if abs(row["events behind a gate, µs"] - row["kernels, µs"]) * 1e3
        > NEAR * row["kernels, µs"] * 1e3 + NEAR_NS * (row["kernels"] or 0)
    ]
    why = (
        f"events and kernels differ for {', '.join(off)}" if off else "events are the kernels' time"
    )
    return Found(not off, why, {"rows": rows})


def graphs(task: Task) -> Found:
    """A block of scoring kernel by kernel, and held as graphs."""
    figures: dict[str, Any] = {}
    scores = {}
    rng = np.random.default_rng(2)
    features = rng.normal(0, 1, (BLOCK, 39)).astype(np.float32)
    can = False
    for name, held in (("kernel by kernel", False), ("as graphs", True)):
        config = settings.assign(
            Config(), {"device": task.device, "block": BLOCK, "placement.graphs": held}
        )
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
        told = scorer.take_notices()
        stages = scorer._arithmetic.stages  # type: ignore[union-attr]
        figures[f"block {name}, µs"] = median(times) / 1e3
        figures[f"launches {name}"] = sum(scorer.launches(each) for each in stages)  # type: ignore[union-attr]
    first, second = scores.values()
    if not can:
        return Found(
            None, f"{task.device} cannot hold kernels as a graph: both ways are the same", figures
        )
    if figures["launches as graphs"] > len(stages):
        return Found(False, "kernels were not held as graphs: " + " ".join(told), figures)
    same = bool(np.array_equal(first, second))
    return Found(same, "the same scores" if same else "other scores from graphs", figures)


def search(task: Task) -> Found:
    """The search of 1, 4, 16 and 64 utterances at once, each as if it were alone."""
    if task.device == "mps":
        return Found(
            None, "torch has no 64-bit scatter-minimum on MPS, which the device search needs"
        )
    config, model, graph, features = _prepared(task)
    scorer = build_scorer(settings.replace(config, "device", "cpu"), model)
    utterances = [_scored(scorer, one) for one in features]
    work = DeviceWork(open_device(task.device), Recorder(), LANE)
    one = DeviceSearch(graph, config.search, work)
    alone = [_together(one, graph, [each])[0] for each in utterances]
    compiled = Viterbi(graph, config.search)
    here = [_alone(compiled, each) for each in utterances]
    rows, others = [], 0
    for size in AT_ONCE:
        batch = [utterances[i % len(utterances)] for i in range(size)]
        finder = DeviceSearch(graph, config.search, work, size)
        _together(finder, graph, batch)
        begin = time.perf_counter()
        words = _together(finder, graph, batch)
        spent = time.perf_counter() - begin
        others += sum(said != alone[i % len(utterances)] for i, said in enumerate(words))
        rows.append(_row(size, batch, spent))
    apart = sum(device != processor for device, processor in zip(alone, here, strict=True))
    same = not others and not apart
    why = (
        f"each of {len(utterances)} utterances has the words that it has alone, and that the processor finds"
        if same
        else f"{others} utterances have other words in company, and {apart} other ones than on the processor"
    )
    return Found(same, why, {"rows": rows, "Kaldi on one V100, × real time": KALDI})


def scoring(task: Task) -> Found:
    """Scoring and search of several utterances at once, all on the device."""
    if task.device == "mps":
        return Found(None, "the search beside it cannot be on MPS")
    config, model, graph, features = _prepared(task)
    scorer = build_scorer(settings.replace(config, "device", "cpu"), model)
    expected = [_scored(scorer, one) for one in features]
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
                    worst = max(worst, _furthest(scores.cpu().numpy(), parts, expected, at))
                finder.advance(scores, [len(part) for part in parts], at, LANE)
            spent = time.perf_counter() - begin
        frames = sum(map(len, batch))
        row = _row(size, batch, spent)
        row["scoring alone, × real time"] = frames * FRAME_S / apart
        rows.append(row)
    proved = worst < MOST_NAT
    why = (
        f"the scores of {len(features)} utterances are those of the processor"
        if proved
        else f"scores are {worst:.2g} nat off"
    )
    return Found(proved, why, {"rows": rows, "largest difference, nat": worst})


def _furthest(scores: Array, parts: list[Array], expected: list[Array], at: int) -> float:
    """How far scores [frames, utterances, senones] of a block are from those expected of each utterance, in nat."""
    away = [
        np.abs(scores[: len(part), b] - expected[b % len(expected)][at : at + len(part)]).max()
        for b, part in enumerate(parts)
        if len(part)
    ]
    return float(max(away))


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


def _scored(scorer: Any, features: Array) -> Array:
    scorer.reset()
    parts = [
        np.array(scorer.score(features[at : at + BLOCK], at, LANE))
        for at in range(0, len(features), BLOCK)
    ]
    return np.concatenate(parts)
