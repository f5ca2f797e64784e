"""Scoring on a device: what `placement.*` decides of parameters, features and scores, block by block.

An arithmetic (`gmm`, `dnn`) does the computing. A block goes up, is scored and comes down, each as a span of the
device's lanes; the host records what giving the work took (`score.launch`) and is charged for its waits. With
`placement.overlapped` a block is begun while the search works on the one before (`ahead`), in a second set of buffers.
Where the search is on the same device, the scores stay there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pipelines import config as settings
from pipelines.config import Config
from pipelines.config.tree import Placement
from pipelines.device import COMPUTE, COPY, DeviceWork
from pipelines.device.base import first_line, is_out_of_memory
from pipelines.device.work import Launches, launched
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.device import dnn, gmm
from pipelines.scoring.device.arithmetic import Arithmetic, Give, Held, Placed, of_piece
from pipelines.scoring.device.buffers import MAX_BLOCK_FRAMES, Begun, Parameters, Repeated, Slot, slot, windows
from pipelines.scoring.dnn import origin
from pipelines.scoring.strategy import Cancelling, Made, Scorer
from profiler.arrays import Array
from profiler.spans import Cost, Lane, Linear, NullLane, Recorder

if TYPE_CHECKING:
    from torch import Tensor

LAUNCH = "score.launch"
COPY_STAGE = "score.copy"
WARMING = 2
"""Times that a block is scored beforehand: libraries choose on the first call, and take memory on the second."""
LANE = NullLane()
LAUNCHES = "the host gives work to the device here, and fills and empties its buffers"


class DeviceScorer(Scorer):
    """All senones of every scored frame, on the device of `work`.

    `spare` makes the scorer that takes over when the device's memory is full. `keep`: scores are given out
    as tensors that stay on the device.
    """

    looks_ahead = True

    def __init__(
        self, config: Config, model: AcousticModel, work: DeviceWork, spare: Callable[[], Scorer], keep: bool = False
    ) -> None:
        """Raises ModelError where the net that the settings name cannot be used."""
        self.n_senones = model.n_senones
        self._model, self._keep = model, keep
        self._notices: list[str] = []
        self._work, self._make_spare = work, spare
        self._spare: Scorer | None = None
        self._made = self._make(config)
        _, self._arithmetic = self._made
        self._repeated = Repeated(work, self.n_senones)
        self.context, self._dim = self._arithmetic.context, self._arithmetic.dim
        self._ids: dict[str, int] = {}
        self._launches = Launches()
        self._settings = 0
        self._sizes: tuple[int, int, Arithmetic] | None = None
        self._slots: list[Slot] = []
        self._parameters: Parameters | None = None
        self._held = Held()
        self._is_warm = False
        self._begun: Begun | None = None
        self._turn = self._frame = 0
        self.stages(Recorder())
        self.configure(config)

    def stages(self, recorder: Recorder) -> None:
        self._recorder, before = recorder, dict(self._ids)
        own: dict[str, tuple[str, ...]] = {LAUNCH: (), COPY_STAGE: ("copied",)}
        for name, counts in {**self._arithmetic.stages, **own}.items():
            self._ids[name] = recorder.stage(name, "scoring", counts)
        self._launches.renumber(before, self._ids)
        if self._spare is not None:
            self._spare.stages(recorder)

    def warm_up(self) -> None:
        """Score what blocks will be like, unrecorded: kernels are loaded and chosen by size, and memory is taken."""
        self._held, self._is_warm = Held(), True
        with self._work.warming(self._launches):
            for frames in (1, self._block):
                self._launches.forget(self._ids.values())
                for _ in range(WARMING):
                    self.reset()
                    self.score(np.zeros((frames + self._beyond, self._dim), np.float32), 0, LANE)
                    self._work.wait_for(self._work.mark(COMPUTE), COMPUTE)
            if self._spare is None:
                self._hold()
        self.reset()

    def reset(self) -> None:
        self._drop()
        self._frame = 0
        if self._spare is not None:
            self._spare.reset()

    def needs(self, config: Config) -> Hashable:
        """Another net, or one made smaller by another method, where the settings name one."""
        if self._spare is not None:
            return self._spare.needs(_on_the_processor(config))
        key = _key(config)
        return None if key == self._made[0] else key

    def make_ready(self, config: Config, progress: Callable[..., None], cancelled: Cancelling) -> Made:
        if self._spare is not None:
            return self._spare.make_ready(_on_the_processor(config), progress, cancelled)
        return self._made if self.needs(config) is None else self._make(config)

    def configure(self, config: Config, prepared: Made = None) -> None:
        """Take over the settings from the next block on; a block begun under others is done again."""
        self._config = config
        if self._spare is not None:
            # What was made for the device before its memory was full is of no use here.
            ours = prepared if isinstance(prepared, dict) else None
            self._spare.configure(_on_the_processor(config), ours)
            self.context = self._spare.context
            return
        self._settings += 1
        self._skip, self._block = config.frames.skip, min(config.block, MAX_FRAMES)
        before: Placement | None = getattr(self, "_placement", None)
        self._placement: Placement = config.placement
        self._on = Placed(self._work, config.placement.dtype, config.threads)
        if self.needs(config) is not None:
            self._made = prepared if isinstance(prepared, tuple) else self._make(config)
        (_, arithmetic), pinned, dtype = self._made, config.placement.pinned, config.placement.dtype
        try:
            if before is None or (arithmetic.context, pinned) != (self.context, before.pinned):
                self._drop()
                self._slots = [slot(self._work.device, arithmetic, pinned, self._keep) for _ in range(2)]
            if before is None or (arithmetic, dtype, pinned) != (self._arithmetic, before.dtype, before.pinned):
                self._drop()
                self._arithmetic, self.context = arithmetic, arithmetic.context
                self._parameters = None  # there may not be room for both
                self._parameters = Parameters(arithmetic, self._on, pinned)
                self.stages(self._recorder)
            self._warm_again(before)
        except RuntimeError as problem:
            self._fall_back(problem)

    def ahead(self, block: Array, first_frame: int, lane: Lane | NullLane) -> None:
        if self._spare is None and self._placement.overlapped and self._begun is None:
            n = max(0, len(block) - self._beyond)
            try:
                with self._work.launching(self._ids[LAUNCH], first_frame, n):
                    self._begun = self._begin(block, first_frame, n)
            except RuntimeError as problem:
                self._fall_back(problem)

    def score(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Array | Tensor:
        """Scores f32 [frames, senones] of `block` f32 [frames and context, dim]; valid until the next call.

        An array, or where scores are kept a tensor on the device, filled by the time its stream gets there.
        """
        most = MAX_BLOCK_FRAMES + self._beyond
        if block.ndim != 2 or block.shape[1] != self._dim or len(block) > most:
            raise ValueError(f"features of shape {block.shape}, expected [at most {most}, {self._dim}]")
        if self._spare is None:
            try:
                return self._score(block, first_frame)
            except RuntimeError as problem:
                self._fall_back(problem)
        assert self._spare is not None
        return self._spare.score(block, first_frame, lane)  # type: ignore[no-any-return]

    def take_notices(self) -> list[str]:
        notices, self._notices = self._notices, []
        return notices + self._work.take_notices()

    def launches(self, stage: str) -> float:
        """Kernels that a piece of a block gives to the device for `stage`, or graphs of them; 0 before it is warm."""
        return 1.0 if self._held else self._launches.each(self._ids[stage]).kernels

    def costs(self) -> dict[str, Cost]:
        if self._spare is not None:
            return self._spare.costs()
        frames = 1 if self._placement.transfer == "frame" else max(1, self._block // self._skip)
        row = Linear(per_work=(8.0 * self.n_senones, 0.0, 0.0))
        copied = self._on.cost({}, row, 8.0 * self.n_senones * self._block)
        found = {**self._arithmetic.costs(frames, self._on), COPY_STAGE: copied}
        for name, cost in found.items():
            held = bool(self._held) and name != COPY_STAGE
            found[name] = launched(cost, self._launches.each(self._ids[name]), held, lambda each: Linear(fixed=each))
        return found | {LAUNCH: Cost(unmodelled=LAUNCHES)} | self._work.costs()

    def _make(self, config: Config) -> tuple[Hashable, Arithmetic]:
        """An arithmetic, and what of the settings it follows from."""
        if config.model == "dnn":
            return _key(config), dnn.layers_of(config, self.n_senones, self._model.n_features)
        return _key(config), gmm.mixtures_of(self._model)

    def _score(self, block: Array, first_frame: int) -> Array | Tensor:
        """One block, with all that the host does for it in `score.launch` but for its waits."""
        n = max(0, len(block) - self._beyond)
        with self._work.launching(self._ids[LAUNCH], first_frame, n):
            begun = self._begun_ahead(first_frame, n) or self._begin(block, first_frame, n)
            if self._keep:
                stage = self._ids[COPY_STAGE]
                scores: Array | Tensor = self._repeated.there(begun, stage, self._frame, self._skip)
            else:
                self._work.wait_for(begun.ready, begun.stream)
                scores = self._repeated.here(begun)
        self._work.end_block(first_frame, n)
        self._frame += n
        return scores

    def _begun_ahead(self, first_frame: int, n: int) -> Begun | None:
        """The block that was begun ahead, if it is this one and under these settings; any other is discarded."""
        begun = self._begun
        if begun is not None and (begun.first_frame, begun.n, begun.settings) == (first_frame, n, self._settings):
            self._begun = None
            return begun
        self._drop()
        return None

    def _begin(self, block: Array, first_frame: int, n: int) -> Begun:
        """Give a block of `n` frames to the device, and wait for it only where the placement says so."""
        work, placement = self._work, self._placement
        assert self._parameters is not None
        last = COMPUTE if self._keep else COPY
        chosen = (self._frame + np.arange(n)) % self._skip == 0
        turn, self._turn = self._turn, 1 - self._turn
        buffers = self._slots[turn]
        rows, apart = self._rows(block, chosen)
        here = buffers.features.numpy()
        sent = 0
        if placement.weights == "each-block":
            self._parameters.upload(first_frame, n)
        for begin, end in self._pieces(int(chosen.sum())):
            # The first piece brings its context; of the others only what is new.
            new = slice(sent, (end - 1) * apart + 1 + self._beyond)
            here[new] = rows[new]
            work.upload(buffers.features_there[new], buffers.features[new], first_frame, n)
            sent = new.stop
            work.then(COPY, COMPUTE)
            give = of_piece(work, self._ids, first_frame)
            if not self._held.give((turn, begin, end, apart), give):
                self._compute(buffers, begin, end, apart, give)
            if not self._keep:
                work.then(COMPUTE, COPY)
                part = slice(begin, end)
                work.download(buffers.scores[part], buffers.scores_there[part], first_frame, n)
            if placement.transfer == "frame" and not placement.overlapped:
                work.wait_for(work.mark(last), last)
        return Begun(first_frame, n, chosen, buffers, work.mark(last), last, self._settings)

    def _pieces(self, scored: int) -> Iterator[tuple[int, int]]:
        """The pieces in which `scored` frames are given to the device."""
        step = 1 if self._placement.transfer == "frame" else MAX_FRAMES
        for begin in range(0, scored, step):
            yield begin, min(begin + step, scored)

    def _compute(self, buffers: Slot, begin: int, end: int, apart: int, give: Give) -> None:
        """Give the stages of a piece, kernel by kernel."""
        assert self._parameters is not None
        x = windows(buffers.features_there, begin, end - begin, apart, 1 + self._beyond)
        self._arithmetic.score(self._parameters.there, x, buffers.scores_there[begin:end], self._on, give)

    def _hold(self) -> None:
        """Hold the pieces of a whole block as graphs, for either pair of buffers."""
        self._held = Held()
        if not (self._placement.graphs and self._work.device.can_capture):
            return
        apart = self._skip if self._beyond else 1
        for turn, buffers in enumerate(self._slots):
            for begin, end in self._pieces(len(range(0, self._block, self._skip))):
                score = partial(self._compute, buffers, begin, end, apart)
                self._held.hold((turn, begin, end, apart), self._on, score)

    def _rows(self, block: Array, chosen: Array) -> tuple[Array, int]:
        """The rows to upload for the chosen frames (without context these alone), and how far they are apart."""
        if not self._beyond:
            return block[chosen], 1
        first = int(np.argmax(chosen)) if chosen.any() else 0
        return block[first:], self._skip

    @property
    def _beyond(self) -> int:
        return sum(self.context)

    def _warm_again(self, before: Placement | None) -> None:
        """Warm up after a change, which may need other kernels: none is loaded in a block that counts."""
        known, self._sizes = self._sizes, (self._block, self._skip, self._arithmetic)
        if self._is_warm and (before, known) != (self._placement, self._sizes):
            frame = self._frame
            with self._repeated.untouched():
                self.warm_up()
            self._frame = frame

    def _drop(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None and self._spare is None:
            self._work.wait_for(begun.ready, begun.stream)

    def _fall_back(self, problem: RuntimeError) -> None:
        """Go on with the processor's scorer; anything but full memory is raised again."""
        if not is_out_of_memory(problem):
            raise problem
        self._begun = None
        self._slots, self._parameters, self._held = [], None, Held()
        spare = self._spare = self._make_spare()
        spare.configure(_on_the_processor(self._config))
        self.context = spare.context
        spare.stages(self._recorder)
        spare.warm_up()
        spare.reset()
        name = self._work.device.name
        self._notices.append(f"Scoring goes on on the processor: {name} has too little memory ({first_line(problem)}).")


def _key(config: Config) -> Hashable:
    return origin(config.dnn) if config.model == "dnn" else None


def _on_the_processor(config: Config) -> Config:
    return settings.replace(config, "device", "cpu")
