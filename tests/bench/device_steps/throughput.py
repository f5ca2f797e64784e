"""Steps that time scoring on the device: its work against torch's own profiler, and graphs of kernels."""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch

from pipelines import config as settings
from pipelines.config import Config
from pipelines.device import COMPUTE, DeviceWork, open_device
from pipelines.models.opening import open_model
from pipelines.scoring import build_scorer
from pipelines.scoring.device.arithmetic import Give, Placed
from pipelines.scoring.device.buffers import Parameters
from pipelines.scoring.device.gmm import mixtures_of
from profiler.arrays import Array
from profiler.spans import Recorder
from tests.bench._rounds import LANE, timed
from tests.bench.device_steps.result import Result, Task, verdict

BLOCK = 16
ROUNDS = 15
NEAR, NEAR_US = 0.15, 2.0
"""How near events must come to the kernels' own times: a part, and µs for each kernel between two of them."""


def busy(task: Task) -> Result:
    """Time between events, as issued and behind a gate, against the sums of torch's profiler, stage by stage."""
    config = settings.assign(Config(), {"device": task.device})
    work = DeviceWork(open_device(task.device), Recorder(), LANE)
    on, arithmetic = Placed(work, "fp32"), mixtures_of(open_model(config))
    parameters = Parameters(arithmetic, on, False)
    x = torch.empty(BLOCK, arithmetic.dim, device=work.device.where)
    work.device.run(COMPUTE, x.normal_)
    out = torch.empty(BLOCK, arithmetic.n_senones, device=work.device.where)
    score = partial(arithmetic.score, parameters.there, x, out, on)
    gate = _gate if task.device == "cuda" else None
    rounds = []
    for _ in range(ROUNDS):
        kernels, launched = of_kernels(on, score)
        rounds.append((between_events(on, score), between_events(on, score, gate), kernels))
    rows, off = [], []
    for stage in arithmetic.stages:
        # Before the third round, libraries choose their kernels.
        events, gated, own = (median(each[stage] for each in of[2:]) / 1e3 for of in zip(*rounds, strict=True))
        number = launched.get(stage)
        rows.append({"stage": stage, "kernels": number, "events, µs": events, "gated, µs": gated, "kernels, µs": own})
        off += [stage] if abs(gated - own) > NEAR * own + NEAR_US * (number or 0) else []
    unless = "" if gate else f"{task.device} has no gate that keeps Python out of its events"
    wrong = {f"events and kernels differ for {', '.join(off)}": off and gate}
    return verdict(wrong, "events are the kernels' time", {"rows": rows}, unless=unless)


def between_events(
    on: Placed, score: Callable[[Give], None], gate: Callable[[], object] | None = None
) -> dict[str, float]:
    """ns from the event before to the event behind each stage of one block; `gate` is given before all of them."""
    device = on.work.device
    pending: list[tuple[str, Any, Any]] = []

    def give(stage: str, step: Callable[[], object], *_: object) -> None:
        began = device.record(COMPUTE)
        device.run(COMPUTE, step)
        pending.append((stage, began, device.record(COMPUTE)))

    if gate is not None:
        device.run(COMPUTE, gate)
    score(give)
    device.wait(device.mark(COMPUTE))
    found: dict[str, float] = {}
    for stage, began, ended in pending:
        found[stage] = found.get(stage, 0.0) + float(device.time_ns(ended) - device.time_ns(began))
        device.recycle(began)
        device.recycle(ended)
    return found


def _gate() -> None:
    """Keeps the stream busy while Python gives it the whole block: some 10 ms."""
    torch.cuda._sleep(20_000_000)


def of_kernels(on: Placed, score: Callable[[Give], None]) -> tuple[dict[str, float], dict[str, int]]:
    """ns that torch's profiler counts for each stage of one block, and kernels (none of them on a processor)."""
    device, known = on.work.device, torch.profiler.ProfilerActivity
    kind = {"cuda": known.CUDA, "xpu": known.XPU}.get(device.where)
    activities = [known.CPU] if kind is None else [known.CPU, kind]
    spent: dict[str, float] = {}
    launched: dict[str, int] = {}

    def give(stage: str, step: Callable[[], object], *_: object) -> None:
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

    score(give)
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
