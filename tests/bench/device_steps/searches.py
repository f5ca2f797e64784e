"""Steps of the search on a device, in torch and as a CUDA kernel, alone and with scoring: words, costs and speed.

With the processor in a device's place the kernel runs in numba's simulator (NUMBA_ENABLE_CUDASIM=1), on a few frames.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import torch

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.availability import SEARCH_OBSTACLES
from pipelines.config import presets
from pipelines.device import COMPUTE, DeviceWork, open_device
from pipelines.frontend.mfcc import Mfcc
from pipelines.models.opening import open_model
from pipelines.scoring import build_scorer
from pipelines.scoring.layered import with_context
from pipelines.search.device import choice
from pipelines.search.device.search import DeviceSearch
from pipelines.search.graph import compile as graphs_of
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.clock import FRAME_S
from profiler.spans import Recorder
from tests.bench._rounds import LANE, found_words, scored, timed
from tests.bench.device_steps.batch import BLOCK, Batch
from tests.bench.device_steps.result import SAME_NAT, Result, Task, verdict
from tests.bench.device_steps.runs import SMALL

ROUNDS = 3
THREADS_HERE = 2
PRESETS = ("gmm", "dnn")
SEARCH_GOALS = {1: 250.0, 256: 20_000.0}
"""Times real time by utterances at once, of the search alone: Kaldi's CUDA decoder does 16 500 to 24 900 on a V100."""
DECODING_GOALS = {1: 200.0, 256: 10_000.0}  # the same of scoring and search
SAME_COST_NAT = 1e-3  # Of paths over some hundred frames: the last bits of costs that are summed in the same order
MOST_STAMPS = 0.02  # of the search's time, that its stamps may take
NO_SPEED = "a simulator says nothing of speed"


class Prepared:
    """What a preset needs on the device, and some utterances of one length: so a batch is as full at its end as at its
    beginning. `scores`: on the device, [frames, utterances, senones]; `host_scores`: by the processor."""

    def __init__(self, task: Task, preset: str, kernel: bool) -> None:
        self.kernel, self.task = kernel, task
        small = {} if kernel and task.accelerator else SMALL
        chosen = {"device": task.device, "dnn.senones": "all", "gmm.selection.enabled": False, **small}
        self.config = settings.assign(presets.load(preset).config, chosen)
        self.model = open_model(self.config)
        self.graph = graphs_of.load_or_build(self.config.graph, self.model)
        self.work = DeviceWork(open_device(task.device), Recorder(), LANE)
        frames, utterances = (300, 10) if task.accelerator else (4, 2) if kernel else (60, 4)
        frontend = Mfcc(self.model.feat_params)
        features = [frontend.features(audio.load(item.path).samples) for item in task.speech(utterances)]
        features = [np.resize(one, (frames, one.shape[1])) for one in features]
        scorer = build_scorer(settings.replace(self.config, "device", "cpu"), self.model)
        batch = self.batch(len(features))
        self.features = [with_context(one, batch.context) for one in features]
        self.host_scores = [scored(scorer, one, BLOCK) for one in self.features]
        blocks: list[torch.Tensor] = []
        for at in range(0, frames, BLOCK):
            there = batch.score(self.features, at)
            self.work.wait_for(self.work.mark(COMPUTE), COMPUTE)  # they are filled only then
            blocks.append(there.clone())
        self.scores: torch.Tensor = torch.cat(blocks)

    def batch(self, size: int) -> Batch:
        return Batch(self.config, self.model, self.work, size)

    def search(self, size: int) -> Any:
        if not self.kernel:
            return DeviceSearch(self.graph, self.config.search, self.work, size)
        from pipelines.search.device.cuda.search import CudaSearch

        threads = None if self.task.device == "cuda" else THREADS_HERE
        return CudaSearch(self.graph, self.config.search, self.work, size, threads)

    def repeated(self, size: int) -> torch.Tensor:
        """The scores of as many utterances, one after another and then from the first one on again."""
        which = torch.arange(size, device=self.scores.device) % self.scores.shape[1]
        return self.scores[:, which].contiguous()

    def sizes(self) -> tuple[int, ...]:
        if self.kernel:
            return (1, 16, 64, 256) if self.task.accelerator else (1, 2)
        return 1, 4, 16, 64

    def median_s(self, work: Callable[[], object]) -> float:
        """Seconds of `work`, after it has run once, which compiles and makes room; in the simulator of that time."""
        spent = [timed(work)[1] for _ in range(1 if self.kernel and not self.task.accelerator else 1 + ROUNDS)]
        return median(spent[1:] or spent)

    def row(self, preset: str, size: int, seconds: float) -> dict[str, Any]:
        frames = len(self.scores)
        speed, each = frames * size * FRAME_S / seconds, seconds / frames * 1e6
        return {"preset": preset, "at once": size, "× real time": speed, "µs a frame": each}


def unavailable(task: Task, kernel: bool) -> str:
    """Why the search cannot run here; "" if it can."""
    if not kernel:
        return SEARCH_OBSTACLES.get(task.device, "")
    if task.accelerator:
        return choice.unavailable_reason(open_device(task.device))
    from pipelines.search.device.cuda.intrinsics import SIMULATED

    return "" if SIMULATED else "only CUDA runs the kernel, or numba's simulator (NUMBA_ENABLE_CUDASIM=1)"


def search(task: Task, kernel: bool = False, quick: bool = False) -> Result:
    """The search of some utterances at once: the words and costs that the compiled search finds for each, and its
    speed. `quick`: all utterances once, in no company."""
    if reason := unavailable(task, kernel):
        return Result(None, reason)
    rows, apart, furthest = [], 0, 0.0
    for preset in PRESETS if kernel and not quick else PRESETS[:1]:
        ready = Prepared(task, preset, kernel)
        compiled = Viterbi(ready.graph, ready.config.search)
        utterances = [np.ascontiguousarray(one.cpu().numpy()) for one in ready.scores.unbind(1)]
        expected = [(found_words(compiled, one), compiled.best_cost) for one in utterances]
        for size in (len(utterances),) if quick else ready.sizes():
            finder, scores = ready.search(size), ready.repeated(size)
            seconds = ready.median_s(lambda s=finder, x=scores: pass_over(s, x))
            costs = (float(one.best_cost) for one in finder.utterances)
            for b, (words, cost) in enumerate(zip(pass_over(finder, scores), costs, strict=True)):
                right, least = expected[b % len(expected)]
                apart += words != right
                furthest = max(furthest, abs(cost - least))
            rows.append(ready.row(preset, size, seconds) | (_phases(finder) if kernel else {}))
            del finder, scores
        host = ready.median_s(lambda c=compiled, one=utterances[0]: found_words(c, one))
        rows.append(ready.row(preset, 1, host) | {"on": "one core"})
    same = same_words(len(rows), apart, furthest)
    if not kernel or quick or same.proved is False:
        return Result(same.proved, same.why, same.figures | {"rows": rows})
    return fast(rows, SEARCH_GOALS, task.device)


def scoring(task: Task, kernel: bool = False) -> Result:
    """Scoring and search of some utterances at once, from features on the host to words: scores and speed."""
    if reason := unavailable(task, kernel):
        return Result(None, reason)
    rows, worst = [], 0.0
    for preset in PRESETS if kernel else PRESETS[:1]:
        ready = Prepared(task, preset, kernel)
        there = ready.scores.cpu().numpy()
        off = [np.abs(there[:, b] - here).max() for b, here in enumerate(ready.host_scores)]
        worst = float(np.maximum(worst, np.max(off)))  # what is no number stays
        for size in ready.sizes():
            finder, batch = ready.search(size), ready.batch(size)
            features = [ready.features[b % len(ready.features)] for b in range(size)]

            def decode(finder: Any = finder, batch: Batch = batch, features: list[Array] = features) -> None:
                finder.begin()
                for at in range(0, len(features[0]) - sum(batch.context), BLOCK):
                    scores = batch.score(features, at)
                    finder.advance(scores, [len(scores)] * finder.batch, at, LANE)
                for one in finder.utterances:
                    one.words(True)

            rows.append(ready.row(preset, size, ready.median_s(decode)))
            del finder, batch
    if not worst < SAME_NAT or not kernel:
        wrong, why = {f"scores are {worst:.2g} nat off": not worst < SAME_NAT}, "the scores are those of the processor"
        return verdict(wrong, why, {"rows": rows, "largest difference, nat": worst})
    return fast(rows, DECODING_GOALS, task.device)


def stamps(task: Task) -> Result:
    """What it costs that each phase of each frame notes its time: the CUDA search with and without, in turns."""
    if reason := unavailable(task, kernel=True):
        return Result(None, reason)
    ready = Prepared(task, PRESETS[0], kernel=True)
    size = ready.sizes()[-2]
    finder, scores = ready.search(size), ready.repeated(size)
    pass_over(finder, scores)
    ratios = []
    for _ in range(5 * ROUNDS if task.accelerator else 1):
        spent = []
        for finder.stamped in (True, False):
            finder.configure(ready.config.search)
            spent.append(timed(lambda: pass_over(finder, scores))[1])
        ratios.append(spent[0] / spent[1])
    return cheap(sorted(ratios), task.device)


def same_words(searches: int, apart: int, furthest: float) -> Result:
    """Whether a search on the device finds what the compiled search finds; `apart` utterances have other words."""
    figures = {"other words": apart, "largest difference of costs, nat": furthest}
    wrong = {
        f"{apart} utterances have other words": apart,
        f"costs are {furthest:.2g} nat off": not furthest <= SAME_COST_NAT,
    }
    return verdict(wrong, f"in {searches} searches the words and costs are those of the processor", figures)


def fast(rows: Sequence[Mapping[str, Any]], goals: Mapping[int, float], device: str) -> Result:
    """Whether each preset reaches the goals, times real time by utterances at once."""
    missed = [
        f"{row['preset']}, {row['at once']} at once: {row['× real time']:.0f} times real time, not {wanted:.0f}"
        for row in rows
        if "on" not in row and row["× real time"] < (wanted := goals.get(row["at once"], 0.0))
    ]
    figures = {"rows": list(rows), "goals, × real time": dict(goals)}
    wrong = dict.fromkeys(missed, device == "cuda")
    return verdict(wrong, "every preset is as fast as wanted", figures, unless=NO_SPEED * (device != "cuda"))


def cheap(ratios: Sequence[float], device: str) -> Result:
    """Whether stamps cost little: time with / time without, paired, ascending."""
    figures, cost = {"time with / without": median(ratios), "least": ratios[0], "most": ratios[-1]}, median(ratios) - 1
    why = f"the stamps of the phases take {cost:.1%} of the search"
    return verdict({why: device == "cuda" and cost > MOST_STAMPS}, why, figures, unless=NO_SPEED * (device != "cuda"))


def pass_over(finder: Any, scores: torch.Tensor) -> list[list[str]]:
    """The words of all utterances of `scores` [frames, utterances, senones]."""
    finder.begin()
    for at in range(0, len(scores), BLOCK):
        part = scores[at : at + BLOCK]
        finder.advance(part, [len(part)] * finder.batch, at, LANE)
    return [[word for word, _, _ in one.words(True)[0]] for one in finder.utterances]


def _phases(finder: Any) -> dict[str, float]:
    """µs of each phase of a frame of the last block, the mean of its frames and utterances; and the work of a frame."""
    from pipelines.search.device.cuda import layout

    frames = int(finder.books[:, layout.NEXT].max())
    spent = np.diff(finder._arrays.stamps_here.numpy()[:, :frames], axis=2).mean((0, 1)) / 1e3
    made = {f"{phase}, µs": float(us) for phase, us in zip(layout.PHASES, spent, strict=True)}
    each = finder.books[:, layout.TOKENS :].sum(0) / (finder.batch * max(frames, 1))
    names = ("tokens", "arcs", "epsilon arcs", "states touched", "entries", "kept")
    counted = {"search.emit": (0, 1), "search.epsilon": (2, 3), "search.history": (4, 3), "search.compact": (3, 5)}
    moved = sum(
        finder.costs()[stage].bytes_min.total(0.0, 0.0, (each[first], each[second], 0.0))
        for stage, (first, second) in counted.items()
    )
    return made | dict(zip(names, each.tolist(), strict=True)) | {"least KB moved": moved / 1e3}
