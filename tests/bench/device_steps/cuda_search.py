"""Steps of the CUDA search: the words of the compiled search, how fast it is, and what its stamps cost.

With the processor in a device's place they run in numba's simulator (NUMBA_ENABLE_CUDASIM=1), on a few frames.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.config import Config, presets
from pipelines.device import COMPUTE, DeviceWork, open_device
from pipelines.frontend.mfcc import Mfcc
from pipelines.models.opening import open_model
from pipelines.scoring.layered import with_context
from pipelines.search.device import choice
from pipelines.search.graph import compile as graphs_of
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.clock import FRAME_S
from profiler.spans import Recorder
from tests.bench._rounds import LANE
from tests.bench.device_steps.batch import Batch
from tests.bench.device_steps.result import Result, Task, verdict
from tests.bench.device_steps.runs import SMALL

if TYPE_CHECKING:
    from torch import Tensor

    from pipelines.search.device.cuda.search import CudaSearch

AT_ONCE, AT_ONCE_HERE = (1, 16, 64, 256), (1, 2)
FRAMES, FRAMES_HERE = 300, 4
"""Of each utterance, on a device and in the simulator."""
UTTERANCES = 10
BLOCK = 64
ROUNDS = 3
THREADS_HERE = 2
PRESETS = ("gmm", "dnn")
SEARCH_GOALS = {1: 250.0, 256: 20_000.0}
"""Times real time by utterances at once, of the search alone: Kaldi's CUDA decoder does 16 500 to 24 900 on a V100."""
DECODING_GOALS = {1: 200.0, 256: 10_000.0}
"""The same of scoring and search."""
SAME_COST_NAT = 1e-3
"""Of paths over some hundred frames: the last bits of costs that are summed in the same order."""
MOST_STAMPS = 0.02
"""Of the search's time, that its stamps may take."""
NO_SPEED = "a simulator says nothing of speed"


@dataclass
class Prepared:
    """What a preset needs on the device, and some utterances: their features with context at both ends, and scores
    [frames, utterances, senones]."""

    config: Config
    graph: Graph
    work: DeviceWork
    features: list[Array]
    scores: Tensor
    batch: Callable[[int], Batch]

    def search(self, size: int) -> CudaSearch:
        """The search of as many utterances."""
        from pipelines.search.device.cuda.search import CudaSearch

        threads = None if self.work.device.where == "cuda" else THREADS_HERE
        return CudaSearch(self.graph, self.config.search, self.work, size, threads)

    def repeated(self, size: int) -> Tensor:
        """The scores of as many utterances, one after another and then from the first one on again."""
        import torch

        which = torch.arange(size, device=self.scores.device) % self.scores.shape[1]
        return self.scores[:, which].contiguous()


def prepare(task: Task, preset: str) -> Prepared:
    """Open the model and graph of a preset, and score the first utterances on the device."""
    import torch

    base = presets.load(preset).config
    small = {} if task.accelerator else SMALL
    chosen = {"device": task.device, "dnn.senones": "all", "gmm.selection.enabled": False, **small}
    config = settings.assign(base, chosen)
    model = open_model(config)
    graph = graphs_of.load_or_build(config.graph, model)
    front_end = Mfcc(model.feat_params)
    frames = FRAMES if task.accelerator else FRAMES_HERE
    items = task.speech(UTTERANCES if task.accelerator else AT_ONCE_HERE[-1])
    features = [front_end.features(audio.load(item.path).samples) for item in items]
    # Of one length, so that a batch is as full at its end as at its beginning.
    features = [np.resize(one, (frames, one.shape[1])) for one in features]
    work = DeviceWork(open_device(task.device), Recorder(), LANE)

    def batch(size: int) -> Batch:
        return Batch(config, model, work, size)

    scorer = batch(len(features))
    features = [with_context(one, scorer.context) for one in features]
    blocks = [scorer.score(parts_of(features, scorer, at), at).clone() for at in range(0, frames, BLOCK)]
    work.wait_for(work.mark(COMPUTE), COMPUTE)
    return Prepared(config, graph, work, features, torch.cat(blocks), batch)


def parts_of(features: list[Array], scorer: Batch, at: int) -> list[Array]:
    """Of each utterance the frames of a block, with their context."""
    return [one[at : at + BLOCK + sum(scorer.context)] for one in features]


def unavailable(task: Task) -> str:
    """Why the kernel cannot run here; "" if it can."""
    if task.accelerator:
        return choice.unavailable_reason(open_device(task.device))
    from pipelines.search.device.cuda.intrinsics import SIMULATED

    return "" if SIMULATED else "only CUDA runs the kernel, or numba's simulator (NUMBA_ENABLE_CUDASIM=1)"


def words(task: Task) -> Result:
    """Each utterance of a batch has the words and the cost that the compiled search finds."""
    if reason := unavailable(task):
        return Result(None, reason)
    ready = prepare(task, PRESETS[0])
    search = ready.search(ready.scores.shape[1])
    decoded = pass_over(search, ready.scores)
    compiled = Viterbi(ready.graph, ready.config.search)
    apart, furthest = 0, 0.0
    for b, one in enumerate(search.utterances):
        compiled.start(0)
        compiled.advance(np.ascontiguousarray(ready.scores[:, b].cpu().numpy()), 0)
        apart += [word for word, _, _ in compiled.finish()] != decoded[b]
        furthest = max(furthest, abs(one.best_cost - compiled.best_cost))
    return same_words(len(decoded), apart, furthest)


def search_alone(task: Task) -> Result:
    """Times real time of the search, whose scores are on the device, for 1 to 256 utterances at once."""
    if reason := unavailable(task):
        return Result(None, reason)
    rows = []
    for preset in PRESETS:
        ready = prepare(task, preset)
        for size in AT_ONCE if task.accelerator else AT_ONCE_HERE:
            search, scores = ready.search(size), ready.repeated(size)
            spent = _median_s(lambda s=search, x=scores: pass_over(s, x), task)
            rows.append(_row(preset, size, scores, spent) | _phases(search))
            del search, scores
        host = _median_s(lambda r=ready: _compiled(r), task)
        rows.append(_row(preset, 1, ready.scores[:, :1], host) | {"on": "one core"})
    return fast(rows, SEARCH_GOALS, task.device)


def scoring_too(task: Task) -> Result:
    """Times real time of scoring and search, from features on the host to words, for 1 to 256 utterances at once."""
    if reason := unavailable(task):
        return Result(None, reason)
    rows = []
    for preset in PRESETS:
        ready = prepare(task, preset)
        for size in AT_ONCE if task.accelerator else AT_ONCE_HERE:
            search, scorer = ready.search(size), ready.batch(size)
            features = [ready.features[b % len(ready.features)] for b in range(size)]

            def decode(search: CudaSearch = search, scorer: Batch = scorer, features: list[Array] = features) -> None:
                search.begin()
                for at in range(0, len(features[0]) - sum(scorer.context), BLOCK):
                    scores = scorer.score(parts_of(features, scorer, at), at)
                    search.advance(scores, [len(scores)] * search.batch, at, LANE)
                for one in search.utterances:
                    one.words(True)

            rows.append(_row(preset, size, ready.repeated(size), _median_s(decode, task)))
            del search, scorer
    return fast(rows, DECODING_GOALS, task.device)


def stamps(task: Task) -> Result:
    """What it costs that each phase of each frame notes its time: the search with and without, in turns."""
    if reason := unavailable(task):
        return Result(None, reason)
    ready = prepare(task, PRESETS[0])
    size = AT_ONCE[2] if task.accelerator else AT_ONCE_HERE[-1]
    search, scores = ready.search(size), ready.repeated(size)
    pass_over(search, scores)
    ratios = []
    for _ in range(5 * ROUNDS if task.accelerator else 1):
        spent = {}
        for stamped in (True, False):
            search.stamped = stamped
            search.configure(ready.config.search)
            began = time.perf_counter()
            pass_over(search, scores)
            spent[stamped] = time.perf_counter() - began
        ratios.append(spent[True] / spent[False])
    return cheap(sorted(ratios), task.device)


def same_words(utterances: int, apart: int, furthest: float) -> Result:
    """Whether the CUDA search finds what the compiled search finds; `apart` utterances have other words."""
    why = f"{apart} of {utterances} utterances have other words; costs are up to {furthest:.2g} nat off"
    figures = {"utterances": utterances, "other words": apart, "largest difference of costs, nat": furthest}
    wrong = {why: apart or not furthest <= SAME_COST_NAT}
    return verdict(wrong, f"{utterances} utterances have the words and costs that the processor finds", figures)


def fast(rows: Sequence[Mapping[str, Any]], goals: Mapping[int, float], device: str) -> Result:
    """Whether each preset reaches the goals, times real time by utterances at once."""
    missed = {
        f"{row['preset']}, {row['at once']} at once: {row['× real time']:.0f} times real time, not {wanted:.0f}": device
        == "cuda"
        for row in rows
        if "on" not in row and row["× real time"] < (wanted := goals.get(row["at once"], 0.0))
    }
    figures = {"rows": list(rows), "goals, × real time": dict(goals)}
    return verdict(missed, "every preset is as fast as wanted", figures, unless=NO_SPEED * (device != "cuda"))


def cheap(ratios: Sequence[float], device: str) -> Result:
    """Whether stamps cost little: time with / time without, paired, ascending."""
    figures, cost = {"time with / without": median(ratios), "least": ratios[0], "most": ratios[-1]}, median(ratios) - 1
    why = f"the stamps of the phases take {cost:.1%} of the search"
    return verdict({why: device == "cuda" and cost > MOST_STAMPS}, why, figures, unless=NO_SPEED * (device != "cuda"))


def pass_over(search: CudaSearch, scores: Tensor) -> list[list[str]]:
    """The words of all utterances of `scores` [frames, utterances, senones]."""
    search.begin()
    for at in range(0, len(scores), BLOCK):
        part = scores[at : at + BLOCK]
        search.advance(part, [len(part)] * search.batch, at, LANE)
    return [[word for word, _, _ in one.words(True)[0]] for one in search.utterances]


def _compiled(ready: Prepared) -> None:
    decoder = Viterbi(ready.graph, ready.config.search)
    decoder.start(0)
    decoder.advance(np.ascontiguousarray(ready.scores[:, 0].cpu().numpy()), 0)
    decoder.finish()


def _median_s(work: Callable[[], object], task: Task) -> float:
    """Seconds of `work`, after it has run once, which compiles and makes room; in the simulator of that one time."""
    spent = []
    for _ in range(1 + ROUNDS if task.accelerator else 1):
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
    return median(spent[1:] or spent)


def _row(preset: str, size: int, scores: Tensor, seconds: float) -> dict[str, Any]:
    speech = scores.shape[0] * scores.shape[1] * FRAME_S
    each = seconds / scores.shape[0] * 1e6
    return {"preset": preset, "at once": size, "× real time": speech / seconds, "µs a frame": each}


def _phases(search: CudaSearch) -> dict[str, float]:
    """µs of each phase of a frame of the last block, the mean of its frames and utterances; and the work of a frame."""
    from pipelines.search.device.cuda import kernel

    frames = int(search.books[:, kernel.NEXT].max())
    spent = np.diff(search._arrays.stamps_here.numpy()[:, :frames], axis=2).mean((0, 1)) / 1e3
    made = {f"{phase}, µs": float(us) for phase, us in zip(kernel.PHASES, spent, strict=True)}
    each = search.books[:, kernel.TOKENS :].sum(0) / (search.batch * max(frames, 1))
    names = ("tokens", "arcs", "epsilon arcs", "states touched", "entries", "kept")
    moved = sum(
        cost.bytes_min.total(0.0, 0.0, (first, second, 0.0))
        for cost, first, second in (
            (search.costs()["search.emit"], each[0], each[1]),
            (search.costs()["search.epsilon"], each[2], each[3]),
            (search.costs()["search.history"], each[4], each[3]),
            (search.costs()["search.compact"], each[3], each[5]),
        )
    )
    return made | dict(zip(names, each.tolist(), strict=True)) | {"least KB moved": moved / 1e3}
