"""Confirms a verdict by changing what it depends on (block, threads, sizes) and observing the stage.

Here is which changes exist for which stage; `profiler.analysis.comparison.perturbation` judges, `rerun` runs.
"""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.config import Config, presets
from pipelines.experiments import rerun
from pipelines.experiments.rerun import Arm, Stretch
from pipelines.models import opening
from pipelines.models.sphinx import AcousticModel
from pipelines.run.interleave import turns
from pipelines.run.recogniser import Progress
from pipelines.scoring import build_scorer, with_context
from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.costs.tied import block_bytes
from pipelines.scoring.dnn.onnx import check as check_graph
from pipelines.scoring.tied.packing import pack
from profiler.analysis.breakdown import StageRow, breakdown
from profiler.analysis.comparison.perturbation import Perturbation, expected, per_unit, weigh
from profiler.analysis.comparison.statistics import alternated
from profiler.analysis.stage_sums import OTHER_COUNT
from profiler.arrays import Array
from profiler.clock import FRAME_S
from profiler.errors import BadInput
from profiler.machine.describe import describe
from profiler.machine.roofs.table import RoofTable
from profiler.recording.drained_lane import DrainedLane
from profiler.spans import Recorder

SMALL_PRESET: Final = "gmm-quick"
"""Its graph of 1 000 words is what the search shrinks to: a fifth, and built in seconds."""

CACHE_SHARE: Final = 0.75  # Of the second-level cache that a shrunk model may fill: features and results lie there too
TYPICAL_L2: Final = 1 << 20
ALONE_S: Final = 3.0  # Audio that the scorer alone goes through per round
COMPONENTS: Final = "gmm.components"
NET_TYPE: Final = "dnn.dtype"
VOCABULARY: Final = "graph.vocabulary"


@dataclass(frozen=True)
class Change:
    """A change to try (`config`), or the reason why there is none. Times are compared per `per`."""

    name: str
    text: str = ""
    config: Config | None = None
    per: str = "frame"
    unavailable: str | None = None
    alone: bool = False  # by the scorer without the search, which needs every senone


class _Unavailable(Exception):
    """A change that there is not, and why."""


@dataclass(frozen=True)
class Confirmation:
    """Results of the changes; `unchanged`: the stage as the rerun measured it without any."""

    unchanged: StageRow | None
    perturbations: list[Perturbation]
    rounds: int


def changes(config: Config, stage: str, group: str, per_work: str = "") -> list[Change]:
    """Every change for a stage of `group`, available or not; of smaller models times are compared per `per_work`."""
    rules: dict[str, Callable[[str], Change]] = {
        "block ×2": lambda name: _block(name, config, group, 2 * config.block),
        "block ×½": lambda name: _block(name, config, group, config.block // 2),
        "dtype halved": lambda name: _shorter(name, config, group),
        "threads +1": lambda name: _threads(name, config, stage, group, config.threads + 1),
        "threads −1": lambda name: _threads(name, config, stage, group, config.threads - 1),
        "model shrunk": lambda name: _smaller(name, config, group, per_work),
    }
    made = []
    for name, rule in rules.items():
        try:
            made.append(rule(name))
        except _Unavailable as why:
            made.append(Change(name, unavailable=str(why)))
    return made


def _block(name: str, config: Config, group: str, block: int) -> Change:
    if group == "frontend" or (group == "scoring" and config.model == "ctc"):
        raise _Unavailable("the front end works on whole utterances, whatever the block")
    if block < 1:
        raise _Unavailable("a block of one frame is the smallest")
    if group == "scoring" and max(block, config.block) > MAX_FRAMES:
        raise _Unavailable(f"scoring takes at most {MAX_FRAMES} frames at once")
    if block > (largest := settings.option("block").maximum or block):
        raise _Unavailable(f"blocks have at most {largest:g} frames")
    return Change(name, f"block {config.block} → {block}", settings.replace(config, "block", block))


def _threads(name: str, config: Config, stage: str, group: str, threads: int) -> Change:
    if group != "scoring" or stage == "score.copy":
        raise _Unavailable("it runs on one thread, whatever `threads` says")
    if threads < 1:
        raise _Unavailable("one thread is the fewest")
    if threads > (cores := os.cpu_count() or 1):
        raise _Unavailable(f"there are {cores} processors")
    return Change(name, f"threads {config.threads} → {threads}", settings.replace(config, "threads", threads))


def _shorter(name: str, config: Config, group: str) -> Change:
    """Parameters of fewer bits: on a device half as many, on the processor a quarter (8-bit integers)."""
    if group != "scoring":
        raise _Unavailable("only scoring has numbers of another type to choose from")
    if config.device != "cpu":
        return _other(name, config, "placement.dtype", "fp32", "bf16")
    if _acts(config, NET_TYPE):
        return _other(name, config, NET_TYPE, "fp32", "int8")
    if _acts(config, COMPONENTS):
        return _other(name, config, "gmm.component", "full", "int8")
    if config.model == "ctc":
        return _other(name, config, "ctc.dtype", "stored", "int8")
    raise _Unavailable("the kernels of tied mixtures compute in float32 only")


def _other(name: str, config: Config, key: str, usual: str, wanted: str) -> Change:
    now = settings.get(config, key)
    if now != usual:
        raise _Unavailable(f"{key} is {now} already")
    if why := settings.unavailable_reason(config, key) or settings.unavailable_reason(config, key, wanted):
        raise _Unavailable(why.rstrip("."))
    try:
        changed = settings.check(settings.replace(config, key, wanted))
        if _acts(changed, NET_TYPE) and str(changed.dnn.net).endswith(".onnx"):
            check_graph(changed)
    except BadInput as error:
        raise _Unavailable(str(error).rstrip(".")) from None
    return Change(name, f"{key.rpartition('.')[2]} {now} → {wanted}", changed)


def _acts(config: Config, key: str) -> bool:
    return settings.unavailable_reason(config, key) is None


def _smaller(name: str, config: Config, group: str, per_work: str) -> Change:
    if group == "frontend":
        raise _Unavailable("the front end has no model that could be smaller")
    if group == "scoring" and _acts(config, NET_TYPE):
        # The laws say what is left of the stage, so its frames are compared.
        low_rank = _other(name, config, "dnn.shrink", "none", "low-rank")
        return dataclasses.replace(low_rank, text=f"net low-rank, weights ×{config.dnn.share:g}")
    if group == "scoring":
        if config.model == "ctc":
            raise _Unavailable("the net comes as it is")
        if not per_work:
            raise _Unavailable("it counts no work that times could be divided by")
        if not _acts(config, COMPONENTS):
            return Change(name, alone=True, per=per_work)
        components = config.gmm.components
        if components // 2 < (settings.option(COMPONENTS).minimum or 1):
            raise _Unavailable(f"a model has no fewer than {components} components")
        changed = settings.replace(config, COMPONENTS, components // 2)
        return Change(name, f"components {components} → {components // 2}", changed, per_work)
    if group != "search" or not per_work:
        raise _Unavailable("it has no data of a size that could be changed")
    if why := settings.unavailable_reason(config, VOCABULARY):
        raise _Unavailable(why.rstrip("."))
    small = presets.load(SMALL_PRESET).config.graph
    if small.vocabulary >= config.graph.vocabulary:
        raise _Unavailable(f"the graph has {config.graph.vocabulary} words already")
    changed = settings.assign(config, {f"graph.{key}": getattr(small, key) for key in ("vocabulary", "bigrams")})
    return Change(name, f"vocabulary {config.graph.vocabulary} → {small.vocabulary}", changed, per_work)


def confirm(
    config: Config,
    row: StageRow,
    stretch: Stretch,
    roof_table: RoofTable,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> Confirmation:
    """Rerun the stage of `row` (of a session that ran with `config`) with each change, interleaved."""
    counts = {name: n for name, n in row.work.items() if name != "frames" and n}
    per_work = max(counts, key=lambda name: counts[name], default="")
    wanted = changes(config, row.name, row.group, per_work)
    arms = {change.name: Arm(change.name, change.config) for change in wanted if change.config is not None}
    if not arms:
        return Confirmation(None, [Perturbation(c.name, unavailable=c.unavailable) for c in wanted], 0)
    base = Arm("unchanged", config)
    rounds = rerun.decode([base, *arms.values()], stretch, roof_table, progress, cancelled)
    done = []
    for change in wanted:
        if change.alone:
            progress("scoring with fewer codebooks", None)
            done.append(_with_fewer_codebooks(change, config, row, stretch, roof_table))
        elif (arm := arms.get(change.name)) is None:
            done.append(Perturbation(change.name, unavailable=change.unavailable))
        else:
            done.append(_weighed(change, base, arm, row, roof_table))
    return Confirmation(_row(base, row.name), done, rounds)


def _weighed(change: Change, before: Arm, after: Arm, row: StageRow, roof_table: RoofTable) -> Perturbation:
    """What the stage of `row` took in both arms, against what each verdict expects."""
    then, now = _row(before, row.name), _row(after, row.name)
    if then is None or now is None:
        return Perturbation(change.name, unavailable="the stage did not run")
    measured = alternated(before.times.stages[row.name], after.times.stages[row.name]).ratio()
    if measured is not None:
        measured = per_unit(measured, then, now, change.per)
    # Whatever a thread waits for, it waits for less of it when another shares the work.
    shared = before.config.threads / after.config.threads
    call = roof_table.call("numpy")
    call_ns = None if call is None else call.median
    by_verdict = expected(then, now, call_ns, change.per, otherwise=shared, judged=row)
    return weigh(change.name, change.text, row.verdict, by_verdict, measured, change.per)


def _row(arm: Arm, stage: str) -> StageRow | None:
    assert arm.recording is not None
    return next((row for row in breakdown(arm.recording).stages if row.name == stage), None)


def fewer_codebooks(model: AcousticModel, count: int) -> AcousticModel:
    """What scoring reads of `model`, with its first `count` codebooks and their senones alone."""
    chosen = model.senone_codebook < count
    definition = dataclasses.replace(
        model.mdef,
        n_senones=int(chosen.sum()),
        n_ci_senones=int(chosen[: model.mdef.n_ci_senones].sum()),
        senone_phone=model.mdef.senone_phone[chosen],
        senone_state=model.mdef.senone_state[chosen],
    )
    return dataclasses.replace(
        model,
        mdef=definition,
        means=model.means[:count],
        variances=model.variances[:count],
        weights=model.weights[:, :, chosen],
        senone_codebook=model.senone_codebook[chosen],
        checksum=f"{model.checksum}, {count} codebooks",
    )


def _with_fewer_codebooks(
    change: Change, config: Config, row: StageRow, stretch: Stretch, roof_table: RoofTable
) -> Perturbation:
    """Score the same features with all codebooks and with so few that they fit the second-level cache.

    Both without the search: nothing but the scorer's own data then drives its data out of the caches.
    """
    model = opening.open_model(config)
    whole = block_bytes(pack(model), config.block)
    count = int(model.n_codebooks * CACHE_SHARE * _second_level() / whole)
    if not 1 <= count < model.n_codebooks:
        return Perturbation(change.name, unavailable="the whole model fits the cache, or nothing does")
    frontend, item = opening.front_end(model), stretch.items[0]
    target = frontend.parameters.target
    sound = audio.load(item.path, item.part, target)
    features = frontend.features(sound.samples[: int(ALONE_S * target.rate)])
    arms = Arm("all", config), Arm("fewer", config)
    models = model, fewer_codebooks(model, count)
    scorers = [ScorerAlone(config, each, roof_table) for each in models]
    for turn in turns(len(arms), 1, range(-rerun.WARM_UP_ROUNDS, rerun.MAX_ROUNDS)):
        scorers[turn.arm].score(features)
    for arm, scorer in zip(arms, scorers, strict=True):
        scorer.taken.hand_over(arm, 1)
    text = f"codebooks {model.n_codebooks} → {count}, scorer alone"
    return _weighed(dataclasses.replace(change, text=text), *arms, row, roof_table)


class ScorerAlone:
    """A scorer without front end and search before and after it, and what it recorded."""

    def __init__(self, config: Config, model: AcousticModel, roof_table: RoofTable) -> None:
        self._recorder, self._block, self._frame = Recorder(), config.block, 0
        self._lane = self._recorder.lane("decode", decode=True, make=DrainedLane)
        self._scorer = build_scorer(config, model)
        self._scorer.stages(self._recorder)
        self._of_blocks = self._recorder.stage("decode.block", "decode", (OTHER_COUNT,))
        laws = self._scorer.costs().items()
        costs = {(self._recorder.stage_id(stage), 0): cost for stage, cost in laws}
        self.taken = rerun.Taken(self._recorder, costs, roof_table)

    def score(self, features: Array) -> None:
        clock, first = self._recorder.clock, self._frame
        scorer, block = self._scorer, self._block
        scorer.reset()
        beyond = sum(scorer.context)
        padded = with_context(features, scorer.context)
        for at in range(0, len(features), block):
            n = min(block, len(features) - at)
            start = clock()
            scorer.score(padded[at : at + n + beyond], first + at, self._lane)
            self._lane.put(self._of_blocks, start, clock(), first + at, n)
        self._frame += len(features)
        self.taken.add(self._lane, rerun.Piece(first, len(features), len(features) * FRAME_S))


def _second_level() -> float:
    caches = describe().get("caches") or []
    sizes = (c["bytes"] for c in caches if c.get("level") == 2 and c.get("bytes"))
    return float(next(sizes, TYPICAL_L2))
