"""Confirms a verdict by changing what it depends on (block, threads, sizes) and observing the stage.

This module says which changes exist for which stage, and why others do not. `profiler.analysis.comparison.perturbation`
judges, `pipelines.experiments.rerun` runs.
"""

from __future__ import annotations

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
from profiler.analysis.comparison.statistics import Ratio, alternated
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

CACHE_SHARE: Final = 0.75
"""Of the second-level cache that a shrunk model may fill: features and results lie there too."""
TYPICAL_L2: Final = 1 << 20
ALONE_S: Final = 3.0
"""Audio that the scorer alone goes through per round."""

COMPONENTS: Final = "gmm.components"
NET_TYPE: Final = "dnn.dtype"
SHRINKING: Final = "dnn.shrink"
LEFT: Final = "dnn.share"
VOCABULARY: Final = "graph.vocabulary"
ON_WHOLE_UTTERANCES: Final = "the front end works on whole utterances, whatever the block"
SERIAL: Final = "it runs on one thread, whatever `threads` says"


@dataclass(frozen=True)
class Change:
    """A change to try (`config`), or the reason why there is none. Times are compared per `per`."""

    name: str
    text: str = ""
    config: Config | None = None
    per: str = "frame"
    unavailable: str | None = None
    alone: bool = False  # by the scorer without the search, which needs every senone


@dataclass(frozen=True)
class Confirmation:
    """Results of the changes; `unchanged`: the stage as the rerun measured it without any."""

    unchanged: StageRow | None
    perturbations: list[Perturbation]
    rounds: int


def changes(config: Config, stage: str, group: str, per_work: str = "") -> list[Change]:
    """Every change there is, available or not, for a stage of `group` under `config`.

    `per_work`: the work count by which the times of a smaller model are compared.
    """
    return [
        _block(config, group, "block ×2", 2 * config.block),
        _block(config, group, "block ×½", config.block // 2),
        _shorter(config, group),
        _threads(config, stage, group, +1),
        _threads(config, stage, group, -1),
        _smaller(config, group, per_work),
    ]


def _block(config: Config, group: str, name: str, block: int) -> Change:
    if group == "frontend" or (group == "scoring" and config.model == "ctc"):
        return Change(name, unavailable=ON_WHOLE_UTTERANCES)
    if block < 1:
        return Change(name, unavailable="a block of one frame is the smallest")
    if group == "scoring" and max(block, config.block) > MAX_FRAMES:
        return Change(name, unavailable=f"scoring takes at most {MAX_FRAMES} frames at once")
    largest = settings.option("block").maximum or block
    if block > largest:
        return Change(name, unavailable=f"blocks have at most {largest:g} frames")
    return Change(name, f"block {config.block} → {block}", settings.replace(config, "block", block))


def _threads(config: Config, stage: str, group: str, step: int) -> Change:
    name = f"threads {step:+d}".replace("-", "−")
    threads = config.threads + step
    if group != "scoring" or stage == "score.copy":
        return Change(name, unavailable=SERIAL)
    if threads < 1:
        return Change(name, unavailable="one thread is the fewest")
    cores = os.cpu_count() or 1
    if threads > cores:
        return Change(name, unavailable=f"there are {cores} processors")
    changed = settings.replace(config, "threads", threads)
    return Change(name, f"threads {config.threads} → {threads}", changed)


def _shorter(config: Config, group: str) -> Change:
    """Parameters of fewer bits: on a device half as many, on the processor a quarter (8-bit integers)."""
    name = "dtype halved"
    if group != "scoring":
        return Change(name, unavailable="only scoring has numbers of another type to choose from")
    if config.device != "cpu":
        changed, text = _other(config, "placement.dtype", "fp32", "bf16")
    elif _acts(config, NET_TYPE):
        changed, text = _other(config, NET_TYPE, "fp32", "int8")
    elif _owns_gaussians(config):
        changed, text = _other(config, "gmm.component", "full", "int8")
    elif config.model == "ctc":
        changed, text = _other(config, "ctc.dtype", "stored", "int8")
    else:
        return Change(name, unavailable="the kernels of tied mixtures compute in float32 only")
    return Change(name, text, changed) if changed else Change(name, unavailable=text)


def _other(config: Config, key: str, usual: str, wanted: str) -> tuple[Config | None, str]:
    """Return `config` with choice `wanted` in place of the usual one, and a text on it; or None and the reason."""
    now = settings.get(config, key)
    if now != usual:
        return None, f"{key} is {now} already"
    if why := settings.unavailable_reason(config, key) or settings.unavailable_reason(config, key, wanted):
        return None, why.rstrip(".")
    try:
        changed = settings.check(settings.replace(config, key, wanted))
        if _acts(changed, NET_TYPE) and str(changed.dnn.net).endswith(".onnx"):
            check_graph(changed)
    except BadInput as error:
        return None, str(error).rstrip(".")
    return changed, f"{key.rpartition('.')[2]} {now} → {wanted}"


def _acts(config: Config, key: str) -> bool:
    return settings.unavailable_reason(config, key) is None


def _owns_gaussians(config: Config) -> bool:
    return _acts(config, COMPONENTS)


def _low_rank(config: Config) -> Change:
    """Each matrix of the net factored; the laws say what is left of the stage, so its frames are compared."""
    name = "model shrunk"
    changed, text = _other(config, SHRINKING, "none", "low-rank")
    if changed is None:
        return Change(name, unavailable=text)
    left = settings.get(changed, LEFT)
    return Change(name, f"net low-rank, weights ×{left:g}", changed)


def _smaller(config: Config, group: str, per_work: str) -> Change:
    name = "model shrunk"
    if group == "frontend":
        return Change(name, unavailable="the front end has no model that could be smaller")
    if group == "scoring":
        if _acts(config, NET_TYPE):
            return _low_rank(config)
        if config.model == "ctc":
            return Change(name, unavailable="the net comes as it is")
        if not per_work:
            return Change(name, unavailable="it counts no work that times could be divided by")
        if not _owns_gaussians(config):
            return Change(name, alone=True, per=per_work)
        components = config.gmm.components
        if components // 2 < (settings.option(COMPONENTS).minimum or 1):
            return Change(name, unavailable=f"a model has no fewer than {components} components")
        changed = settings.replace(config, COMPONENTS, components // 2)
        return Change(name, f"components {components} → {components // 2}", changed, per_work)
    if group != "search" or not per_work:
        return Change(name, unavailable="it has no data of a size that could be changed")
    if why := settings.unavailable_reason(config, VOCABULARY):
        return Change(name, unavailable=why.rstrip("."))
    small = presets.load(SMALL_PRESET).config.graph
    if small.vocabulary >= config.graph.vocabulary:
        return Change(name, unavailable=f"the graph has {config.graph.vocabulary} words already")
    changed = config
    for key in ("vocabulary", "bigrams"):
        changed = settings.replace(changed, f"graph.{key}", getattr(small, key))
    text = f"vocabulary {config.graph.vocabulary} → {small.vocabulary}"
    return Change(name, text, changed, per_work)


def confirm(
    config: Config,
    row: StageRow,
    stretch: Stretch,
    roof_table: RoofTable,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> Confirmation:
    """Rerun the stage of `row` (of a session that ran with `config`) with each change, interleaved.

    Raises Cancelled, BadInput and what `recogniser.build` raises.
    """
    counts = {name: n for name, n in row.work.items() if name != "frames" and n}
    per_work = max(counts, key=lambda name: counts[name], default="")
    wanted = changes(config, row.name, row.group, per_work)
    there = [change for change in wanted if change.config is not None]
    if not there:
        return Confirmation(None, [_unavailable(change) for change in wanted], 0)
    base = Arm("unchanged", config)
    arms = [base, *(Arm(change.name, change.config or config) for change in there)]
    rounds = rerun.decode(arms, stretch, roof_table, progress, cancelled)
    rows = {arm.name: _row(arm, row.name) for arm in arms}
    unchanged = rows["unchanged"]
    done = []
    for change in wanted:
        if change.alone:
            progress("scoring with fewer codebooks", None)
            done.append(_with_fewer_codebooks(change, config, row, stretch, roof_table))
            continue
        after = rows.get(change.name)
        arm = next((arm for arm in arms if arm.name == change.name), None)
        if arm is None:
            done.append(_unavailable(change))
        elif unchanged is None or after is None:
            done.append(Perturbation(change.name, unavailable="the stage did not run"))
        else:
            measured = _ratio(base, arm, row.name)
            if measured is not None:
                measured = per_unit(measured, unchanged, after, change.per)
            # Whatever a thread waits for, it waits for less of it when another shares the work.
            shared = config.threads / arm.config.threads
            by_verdict = expected(
                unchanged, after, roof_table.overhead_ns("numpy"), change.per, otherwise=shared, judged=row
            )
            done.append(weigh(change.name, change.text, row.verdict, by_verdict, measured, change.per))
    return Confirmation(unchanged, done, rounds)


def _unavailable(change: Change) -> Perturbation:
    return Perturbation(change.name, unavailable=change.unavailable)


def _row(arm: Arm, stage: str) -> StageRow | None:
    if arm.recording is None:
        return None
    rows = breakdown(arm.recording).stages
    return next((row for row in rows if row.name == stage), None)


def _ratio(before: Arm, after: Arm, stage: str) -> Ratio | None:
    """Ratio of the stage's times after / before; None where it took none."""
    return alternated(before.times.stages[stage], after.times.stages[stage]).ratio()


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
    before, after = (_row(arm, row.name) for arm in arms)
    measured = _ratio(*arms, row.name)
    if before is None or after is None or measured is None:
        return Perturbation(change.name, unavailable="the stage did not run")
    by_verdict = expected(before, after, roof_table.overhead_ns("numpy"), change.per, judged=row)
    text = f"codebooks {model.n_codebooks} → {count}, scorer alone"
    measured = per_unit(measured, before, after, change.per)
    return weigh(change.name, text, row.verdict, by_verdict, measured, change.per)


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
        """Score f32 [frames, 39] block by block."""
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
