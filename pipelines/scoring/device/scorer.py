"""Scoring on a device: what `placement.*` decides of parameters, features and scores, block by block.

An arithmetic (`gmm`, `dnn`) does the computing. A block goes up, is scored and comes down, each as a
span of the device's lanes; the host records what giving the work took (`score.launch`) and is charged for its waits.
With `placement.overlapped` a block is begun while the search works on the one before (`ahead`), in a second set of
buffers. Where the search is on the same device, the scores stay there. Where the device's memory does not
suffice, the processor's own scorer takes over, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipelines.device import COMPUTE, COPY, DeviceWork, is_out_of_memory
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.device import dnn, gmm
from pipelines.scoring.device.arithmetic import Arithmetic, Placed, Stages
from pipelines.scoring.device.buffers import MAX_BLOCK_FRAMES, Slot, slot
from pipelines.scoring.device.parameters import Parameters
from pipelines.scoring.layered import Prepared
from pipelines.scoring.strategy import Made
from profiler.arrays import Array
from profiler.device.clock import Event
from profiler.spans import Cost, Lane, Linear, NullLane, Recorder

if TYPE_CHECKING:
    from torch import Tensor

    from pipelines.config import Config, Placement
    from pipelines.scoring.scorer import Scorer

LAUNCH = "score.launch"
COPY_STAGE = "score.copy"
LAUNCHES = "the host gives work to the device here, and fills and empties its buffers"


@dataclass
class _Begun:
    """A block given to the device: which frames are scored, the event behind its last piece and its stream."""

    first_frame: int
    n: int
    chosen: Array
    slot: Slot
    ready: Event
    stream: int
    settings: int


@dataclass(frozen=True)
class _Made:
    """An arithmetic, and what of the settings it follows from."""

    key: Hashable
    arithmetic: Arithmetic


class DeviceScorer:
    """All senones of every scored frame, on the device of `work`.

    `spare` makes the scorer that takes over when the device's memory is full. `keep`: scores are given out
    as tensors that stay on the device.
    """

    lazy = False

    def __init__(
        self,
        config: Config,
        model: AcousticModel,
        work: DeviceWork,
        spare: Callable[[], Scorer],
        keep: bool = False,
    ) -> None:
        """Raises ModelError where the net that the settings name cannot be used."""
        self.n_senones = model.n_senones
        self._model, self._keep = model, keep
        self._notices: list[str] = []
        self._work, self._make_spare = work, spare
        self._spare: Scorer | None = None
        self._made = self._make(config)
        self._arithmetic = self._made.arithmetic
        self.context, self._dim = self._arithmetic.context, self._arithmetic.dim
        self._ids: dict[str, int] = {}
        self._settings = 0
        self._slots: list[Slot] = []
        self._parameters: Parameters | None = None
        self._last = np.zeros(self.n_senones, np.float32)
        self._begun: _Begun | None = None
        self._turn = self._frame = 0
        self.stages(Recorder())
        self.configure(config)

    def stages(self, recorder: Recorder) -> None:
        """Register every stage that it records."""
        self._recorder = recorder
        own: dict[str, tuple[str, ...]] = {LAUNCH: (), COPY_STAGE: ("copied",)}
        for name, counts in {**self._arithmetic.stages, **own}.items():
            self._ids[name] = recorder.stage(name, "scoring", counts)
        if self._spare is not None:
            self._spare.stages(recorder)

    def warm_up(self) -> None:
        """Score a few frames unrecorded: libraries are loaded, and memory is taken."""
        with self._work.timer.silent():
            self.score(np.zeros((3 + self._beyond, self._dim), np.float32), 0, NullLane())
        self.reset()

    def reset(self) -> None:
        """An utterance begins."""
        self._drop()
        self._frame = 0
        if self._spare is not None:
            self._spare.reset()

    def needs(self, config: Config) -> Hashable:
        """Another net, or one made smaller in another way, where the settings ask for it."""
        if self._spare is not None:
            needed: Hashable = self._spare.needs(_on_the_processor(config))
            return needed
        key = _key(config)
        return None if key == self._made.key else key

    def make_ready(
        self, config: Config, progress: Callable[..., None], cancelled: Callable[[], bool]
    ) -> Made:
        """Make it, on any thread."""
        if self._spare is not None:
            return self._spare.make_ready(_on_the_processor(config), progress, cancelled)
        return self._made if self.needs(config) is None else self._make(config)

    def configure(self, config: Config, prepared: Made = None) -> None:
        """Take over the settings from the next block on; a block begun under others is done again."""
        self._config = config
        if self._spare is not None:
            # What was made for the device before its memory was full is of no use here.
            ours = prepared if isinstance(prepared, Prepared) else None
            self._spare.configure(_on_the_processor(config), ours)
            self.context = self._spare.context
            return
        self._settings += 1
        self._skip, self._block = config.frames.skip, min(config.block, MAX_FRAMES)
        before: Placement | None = getattr(self, "_placement", None)
        self._placement: Placement = config.placement
        self._on = Placed(self._work, config.placement.dtype, config.threads)
        if self.needs(config) is not None:
            self._made = prepared if isinstance(prepared, _Made) else self._make(config)
        arithmetic, dtype, pinned = self._made.arithmetic, config.placement.dtype, self._pinned
        try:
            if before is None or (arithmetic.context, pinned) != (self.context, before.pinned):
                self._make_slots(arithmetic)
            if before is None or (arithmetic, dtype, pinned) != (
                self._arithmetic,
                before.dtype,
                before.pinned,
            ):
                self._place(arithmetic)
        except RuntimeError as problem:
            self._fall_back(problem)

    def ahead(self, block: Array, first_frame: int, lane: Lane | NullLane) -> None:
        """This block comes next: begin with it, if that is wanted, while the search goes on."""
        if self._spare is None and self._placement.overlapped and self._begun is None:
            try:
                self._begun = self._begin(block, first_frame)
            except RuntimeError as problem:
                self._fall_back(problem)

    def score(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Array | Tensor:
        """Scores f32 [frames, senones] of `block` f32 [frames and context, dim]; valid until the next call.

        An array, or where scores are kept a tensor on the device, filled by the time its stream gets there.
        """
        most = MAX_BLOCK_FRAMES + self._beyond
        if block.ndim != 2 or block.shape[1] != self._dim or len(block) > most:
            raise ValueError(
                f"features of shape {block.shape}, expected [at most {most}, {self._dim}]"
            )
        if self._spare is None:
            try:
                return self._score(block, first_frame)
            except RuntimeError as problem:
                self._fall_back(problem)
        assert self._spare is not None
        scores: Array = self._spare.score(block, first_frame, lane)
        return scores

    def take_notices(self) -> list[str]:
        """What the person who watches should know, each sentence once."""
        notices, self._notices = self._notices, []
        return notices

    def prepare(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Array | Tensor:
        """A dense scorer does everything here: scores f32 [frames, senones]."""
        return self.score(block, first_frame, lane)

    def frame(self, state: Array | Tensor, t: int, active: Array | None) -> Array | Tensor:
        """Scores f32 [senones] of frame t of the prepared block."""
        return state[t]

    def costs(self) -> dict[str, Cost]:
        """Cost laws of the stages under the present configuration."""
        if self._spare is not None:
            spare: dict[str, Cost] = self._spare.costs()
            return spare
        frames = 1 if self._placement.transfer == "frame" else max(1, self._block // self._skip)
        row = Linear(per_work=(8.0 * self.n_senones, 0.0, 0.0))
        own = {
            LAUNCH: Cost(unmodelled=LAUNCHES),
            COPY_STAGE: self._on.cost({}, row, 8.0 * self.n_senones * self._block),
        }
        return self._arithmetic.costs(frames, self._on) | own | self._work.costs()

    def _make(self, config: Config) -> _Made:
        if config.model == "dnn":
            features = self._model.means.shape[1] * self._model.means.shape[3]
            return _Made(_key(config), dnn.layers_of(config, self.n_senones, features))
        return _Made(_key(config), gmm.mixtures_of(self._model))

    def _score(self, block: Array, first_frame: int) -> Array | Tensor:
        begun, self._begun = self._begun, None
        n = max(0, len(block) - self._beyond)
        as_asked = begun is not None and (begun.first_frame, begun.n, begun.settings) == (
            first_frame,
            n,
            self._settings,
        )
        if begun is not None and not as_asked:
            # Asked for under other settings, or another block than was announced.
            self._work.wait_for(begun.ready, begun.stream)
        if begun is None or not as_asked:
            begun = self._begin(block, first_frame)
        if not self._keep:
            self._work.wait_for(begun.ready, begun.stream)
        with self._work.launching(self._ids[LAUNCH], first_frame, n):
            scores = self._kept(begun) if self._keep else self._spread(begun)
        self._work.end_block(first_frame, n)
        self._frame += n
        return scores

    def _begin(self, block: Array, first_frame: int) -> _Begun:
        """Give a block to the device, and wait for it only where the placement says so."""
        work, placement = self._work, self._placement
        assert self._parameters is not None
        n = max(0, len(block) - self._beyond)
        last = COMPUTE if self._keep else COPY
        chosen = (self._frame + np.arange(n)) % self._skip == 0
        buffers = self._slots[self._turn]
        self._turn = 1 - self._turn
        rows, apart = self._rows(block, chosen)
        here = buffers.features.numpy()
        scored, sent = int(chosen.sum()), 0
        step = 1 if placement.transfer == "frame" else MAX_FRAMES
        stages = Stages(self._on, self._ids, first_frame)
        with work.launching(self._ids[LAUNCH], first_frame, n):
            if placement.weights == "each-block":
                self._parameters.upload(first_frame, n)
            for begin in range(0, scored, step):
                end = min(begin + step, scored)
                part = slice(begin, end)
                # The first piece brings its context; of the others only what is new.
                new = slice(sent, (end - 1) * apart + 1 + self._beyond)
                here[new] = rows[new]
                work.upload(buffers.features_there[new], buffers.features[new], first_frame, n)
                sent = new.stop
                work.then(COPY, COMPUTE)
                self._arithmetic.score(
                    self._parameters.there,
                    self._windows(buffers.features_there, part, apart),
                    buffers.scores_there[part],
                    stages,
                )
                if not self._keep:
                    work.then(COMPUTE, COPY)
                    work.download(buffers.scores[part], buffers.scores_there[part], first_frame, n)
                if step == 1 and not placement.overlapped:
                    work.wait_for(work.mark(last), last)
            ready = work.mark(last)
        return _Begun(first_frame, n, chosen, buffers, ready, last, self._settings)

    def _rows(self, block: Array, chosen: Array) -> tuple[Array, int]:
        """What must go up for the chosen frames, and how many rows lie from one of them to the next.

        Without context these frames alone; with it all rows from the first one's context to the last one's.
        """
        if not self._beyond:
            return block[chosen], 1
        first = int(np.argmax(chosen)) if chosen.any() else 0
        return block[first:], self._skip

    def _windows(self, features: Tensor, part: slice, apart: int) -> Tensor:
        """Each frame of `part` with its context side by side, f32 [n, (1 + context) · dim]: rows that overlap."""
        wide = (1 + self._beyond) * self._dim
        begin = features.storage_offset() + part.start * apart * self._dim
        return features.as_strided((part.stop - part.start, wide), (apart * self._dim, 1), begin)

    def _spread(self, begun: _Begun) -> Array:
        """Scores of all frames: those that were left out repeat the last one scored."""
        computed: Array = begun.slot.scores.numpy()
        if begun.chosen.all():
            scores = computed[: begun.n]
        else:
            source = np.cumsum(begun.chosen) - 1
            scores = np.where(source[:, None] >= 0, computed[source], self._last)
        if begun.n:
            self._last[:] = scores[-1]
        return scores

    def _kept(self, begun: _Begun) -> Tensor:
        """The same on the device."""
        import torch

        buffers, n, first, skip = begun.slot, begun.n, self._frame, self._skip
        scored = int(begun.chosen.sum())
        found = buffers.scores_there[:n]
        if scored < n:
            assert buffers.spread is not None, "slots of a scorer that keeps its scores have one"
            found = buffers.spread[:n]

        def spread() -> None:
            if scored < n:
                at = torch.arange(first, first + n, device=self._on.where)
                rows = torch.cat([self._last_there, buffers.scores_there[:scored]])
                torch.index_select(rows, 0, (at % skip == 0).cumsum(0), out=found)
            if n:
                self._last_there.copy_(found[n - 1 :])

        stage = self._ids[COPY_STAGE]
        self._work.work(stage, spread, begun.first_frame, n, (n - scored, 0, 0))
        return found

    @property
    def _pinned(self) -> bool:
        return self._placement.pinned

    @property
    def _beyond(self) -> int:
        return sum(self.context)

    def _place(self, arithmetic: Arithmetic) -> None:
        """Let the device compute `arithmetic`."""
        self._drop()
        self._arithmetic, self.context = arithmetic, arithmetic.context
        self._parameters = None  # there may not be room for both
        self._parameters = Parameters(arithmetic, self._on, self._pinned)
        self.stages(self._recorder)

    def _make_slots(self, arithmetic: Arithmetic) -> None:
        import torch

        self._drop()
        device = self._work.device
        self._slots = [slot(device, arithmetic, self._pinned, self._keep) for _ in range(2)]
        self._last_there = torch.empty((1, self.n_senones), device=device.where)
        device.run(COMPUTE, self._last_there.zero_)

    def _drop(self) -> None:
        """Let go of a block that was begun and is not wanted any more."""
        begun, self._begun = self._begun, None
        if begun is not None and self._spare is None:
            self._work.wait_for(begun.ready, begun.stream)

    def _fall_back(self, problem: RuntimeError) -> None:
        """Go on with the processor's scorer; anything but full memory is raised again."""
        if not is_out_of_memory(problem):
            raise problem
        self._begun = None
        self._slots, self._parameters = [], None
        self._spare = self._make_spare()
        self._spare.configure(_on_the_processor(self._config))
        self.context = self._spare.context
        self._spare.stages(self._recorder)
        self._spare.warm_up()
        self._spare.reset()
        name = self._work.device.name
        self._notices.append(
            f"Scoring goes on on the processor: {name} has too little memory ({_first_line(problem)})."
        )


def _key(config: Config) -> Hashable:
    """What of the settings decides which parameters there are."""
    return dnn.key(config) if config.model == "dnn" else None


def _on_the_processor(config: Config) -> Config:
    # Only here: a machine with a device may have little else installed.
    from pipelines import config as settings

    return settings.replace(config, "device", "cpu")


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0].rstrip(".")
