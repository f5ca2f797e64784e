"""Scoring on a device: what `placement.*` decides of parameters, features and scores, block by block.

`device_gmm` does the arithmetic. A block goes up, is scored and comes down, each as a span of the device's
lanes; the host records what giving the work took (`score.launch`) and is charged for its waits. With
`placement.overlapped` a block is begun while the search works on the one before (`ahead`), in a second set of
buffers. Where the search is on the same device, the scores stay there. Where the device's memory does not
suffice, the processor's own scorer takes over, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.device import COMPUTE, COPY, DeviceWork, is_out_of_memory
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import device_gmm
from pipelines.scoring.device_gmm import MAX_FRAMES, NAMES, Placed
from profiler.spans import Cost, Lane, Linear, NullLane, Recorder

LAUNCH = "score.launch"
COPY_STAGE = "score.copy"
LAUNCHES = "the host gives work to the device here, and fills and empties its buffers"
MOST_FRAMES = 256
"""The most that a block may hold (`block` of the settings); buffers are made for it once."""

Array = np.ndarray[Any, Any]


@dataclass
class _Slot:
    """Buffers of one block: f32 [MOST_FRAMES, dim] and [MOST_FRAMES, senones], here and there.

    `spread`: the scores of all frames, where some were left out and they stay on the device.
    """

    features: Any
    features_there: Any
    scores: Any
    scores_there: Any
    spread: Any


@dataclass
class _Begun:
    """A block given to the device: which frames are scored, the event behind its last piece and its stream."""

    first_frame: int
    n: int
    chosen: Array
    slot: _Slot
    ready: Any
    stream: int
    settings: int


class DeviceScorer:
    """All senones of every scored frame, on the device of `work`.

    `spare` makes the scorer that takes over when the device's memory is full. `keep`: scores are given out
    as tensors that stay on the device.
    """

    lazy = False
    context = (0, 0)

    def __init__(
        self,
        config: Any,
        model: AcousticModel,
        work: DeviceWork,
        spare: Callable[[], Any],
        keep: bool = False,
    ) -> None:
        self.n_senones = model.n_senones
        self._keep = keep
        self._notices: list[str] = []
        self._dim = model.means.shape[1] * model.means.shape[3]
        self._work, self._make_spare = work, spare
        self._spare: Any = None
        self._mixtures = device_gmm.mixtures_of(model)
        self._ids: dict[str, int] = {}
        self._recorder: Recorder | None = None
        self._settings = 0
        self._slots: list[_Slot] = []
        self._placement: Any = None
        self._here: dict[str, Any] = {}
        self._there: dict[str, Any] = {}
        self._last = np.zeros(self.n_senones, np.float32)
        self._begun: _Begun | None = None
        self._turn = self._frame = 0
        self.stages(Recorder())
        self.configure(config)

    def stages(self, recorder: Recorder) -> None:
        """Register every stage that it records."""
        self._recorder = recorder
        own: dict[str, tuple[str, ...]] = {LAUNCH: (), COPY_STAGE: ("copied",)}
        for name, counts in {**self._mixtures.stages, **own}.items():
            self._ids[name] = recorder.stage(name, "scoring", counts)
        if self._spare is not None:
            self._spare.stages(recorder)

    def warm_up(self) -> None:
        """Score a few frames unrecorded: libraries are loaded, and memory is taken."""
        with self._work.timer.silent():
            self.score(np.zeros((3, self._dim), np.float32), 0, NullLane())
        self.reset()

    def reset(self) -> None:
        """An utterance begins."""
        self._drop()
        self._frame = 0
        if self._spare is not None:
            self._spare.reset()

    def needs(self, config: Any) -> Hashable:
        """Nothing that takes long."""
        return None

    def make_ready(
        self, config: Any, progress: Callable[..., None], cancelled: Callable[[], bool]
    ) -> Any:
        """Nothing to make."""
        return None

    def configure(self, config: Any, prepared: Any = None) -> None:
        """Take over the settings from the next block on; a block begun under others is done again."""
        self._config = config
        if self._spare is not None:
            self._spare.configure(_on_the_processor(config))
            return
        self._settings += 1
        self._skip, self._block = config.frames.skip, min(config.block, MAX_FRAMES)
        before, self._placement = self._placement, config.placement
        self._on = Placed(self._work, config.placement.dtype, config.threads)
        try:
            if before is None or before.dtype != config.placement.dtype:
                self._place_parameters(config.placement.dtype)
            if before is None or before.pinned != config.placement.pinned:
                self._make_slots(config.placement.pinned)
        except RuntimeError as problem:
            self._fall_back(problem)

    def ahead(self, block: Array, first_frame: int, lane: Lane | NullLane) -> None:
        """This block comes next: begin with it, if that is wanted, while the search goes on."""
        if self._spare is None and self._placement.overlapped and self._begun is None:
            try:
                self._begun = self._begin(block, first_frame, lane)
            except RuntimeError as problem:
                self._fall_back(problem)

    def score(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Any:
        """Scores f32 [frames, senones] of `block` f32 [frames, dim]; valid until the next call.

        An array, or where scores are kept a tensor on the device, filled by the time its stream gets there.
        """
        if block.ndim != 2 or block.shape[1] != self._dim or len(block) > MOST_FRAMES:
            raise ValueError(
                f"features of shape {block.shape}, expected [at most {MOST_FRAMES}, {self._dim}]"
            )
        if self._spare is None:
            try:
                return self._score(block, first_frame, lane)
            except RuntimeError as problem:
                self._fall_back(problem)
        assert self._spare is not None
        return self._spare.score(block, first_frame, lane)

    def take_notices(self) -> list[str]:
        """What the person who watches should know, each sentence once."""
        notices, self._notices = self._notices, []
        return notices

    def prepare(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Any:
        """A dense scorer does everything here: scores f32 [frames, senones]."""
        return self.score(block, first_frame, lane)

    def frame(self, state: Any, t: int, wanted: Array | None) -> Any:
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
        return self._mixtures.costs(frames, self._on) | own | self._work.costs()

    def _score(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Any:
        begun, self._begun = self._begun, None
        as_asked = begun is not None and (begun.first_frame, begun.n, begun.settings) == (
            first_frame,
            len(block),
            self._settings,
        )
        if begun is not None and not as_asked:
            # Asked for under other settings, or another block than was announced.
            self._work.wait_for(begun.ready, begun.stream)
        if begun is None or not as_asked:
            begun = self._begin(block, first_frame, lane)
        if not self._keep:
            self._work.wait_for(begun.ready, begun.stream)
        with self._work.launching(self._ids[LAUNCH], first_frame, len(block)):
            scores = self._kept(begun) if self._keep else self._spread(begun)
        self._work.end_block(first_frame, len(block))
        self._frame += len(block)
        return scores

    def _begin(self, block: Array, first_frame: int, lane: Lane | NullLane) -> _Begun:
        """Give a block to the device, and wait for it only where the placement says so."""
        n, work, placement = len(block), self._work, self._placement
        last = COMPUTE if self._keep else COPY
        at = self._frame + np.arange(n)
        chosen = at % self._skip == 0
        slot = self._slots[self._turn]
        self._turn = 1 - self._turn
        rows = np.ascontiguousarray(block[chosen], np.float32)
        step = 1 if placement.transfer == "frame" else MAX_FRAMES
        with work.launching(self._ids[LAUNCH], first_frame, n):
            if placement.weights == "each-block":
                # Not before the block in flight has done with the present ones.
                work.then(COMPUTE, COPY)
                self._upload(first_frame, n)
            for begin in range(0, len(rows), step):
                end = min(begin + step, len(rows))
                part = slice(begin, end)
                slot.features.numpy()[part] = rows[part]
                work.upload(slot.features_there[part], slot.features[part], first_frame, n)
                work.then(COPY, COMPUTE)
                self._mixtures.score(
                    self._there,
                    slot.features_there[part],
                    slot.scores_there[part],
                    self._ids,
                    first_frame,
                    self._on,
                )
                if not self._keep:
                    work.then(COMPUTE, COPY)
                    work.download(slot.scores[part], slot.scores_there[part], first_frame, n)
                if step == 1 and not placement.overlapped:
                    work.wait_for(work.mark(last), last)
            ready = work.mark(last)
        return _Begun(first_frame, n, chosen, slot, ready, last, self._settings)

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

    def _kept(self, begun: _Begun) -> Any:
        """The same on the device."""
        import torch

        slot, n, first, skip = begun.slot, begun.n, self._frame, self._skip
        scored = int(begun.chosen.sum())
        found = slot.scores_there[:n] if scored == n else slot.spread[:n]

        def spread() -> None:
            if scored < n:
                at = torch.arange(first, first + n, device=self._on.where)
                rows = torch.cat([self._last_there, slot.scores_there[:scored]])
                torch.index_select(rows, 0, (at % skip == 0).cumsum(0), out=found)
            if n:
                self._last_there.copy_(found[n - 1 :])

        stage = self._ids[COPY_STAGE]
        self._work.work(stage, spread, begun.first_frame, n, (n - scored, 0, 0))
        return found

    def _place_parameters(self, dtype: str) -> None:
        """Make the parameters in the products' number type here, and room for them there."""
        import torch

        self._drop()
        number = getattr(torch, NAMES[dtype])
        self._here, self._there = {}, {}
        for name, array in self._mixtures.arrays.items():
            exact = array.dtype == np.int64
            kept = torch.int64 if exact else torch.float32 if array.ndim == 1 else number
            here = self._work.device.host_tensor(array.shape, kept, pinned=self._pinned)
            fitting = device_gmm.fitting(name, array, dtype)
            here.copy_(torch.from_numpy(np.ascontiguousarray(fitting)))
            self._here[name] = here
            self._there[name] = torch.empty(array.shape, dtype=kept, device=self._on.where)
        self._upload(0, 0)
        self._work.then(COPY, COMPUTE)
        self._work.wait_for(self._work.mark(COPY), COPY)

    @property
    def _pinned(self) -> bool:
        pinned: bool = self._placement.pinned
        return pinned

    def _upload(self, first_frame: int, frames: int) -> None:
        for name, here in self._here.items():
            self._work.upload(self._there[name], here, first_frame, frames)

    def _make_slots(self, pinned: bool) -> None:
        import torch

        self._drop()
        device = self._work.device

        def here(width: int) -> Any:
            return device.host_tensor((MOST_FRAMES, width), torch.float32, pinned=pinned)

        def there(width: int) -> Any:
            return torch.empty((MOST_FRAMES, width), dtype=torch.float32, device=device.where)

        wide = self.n_senones
        spread = there(wide) if self._keep else None
        self._slots = [
            _Slot(here(self._dim), there(self._dim), here(wide), there(wide), spread)
            for _ in range(2)
        ]
        self._last_there = torch.zeros((1, wide), device=device.where)

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
        self._slots, self._here, self._there = [], {}, {}
        self._spare = self._make_spare()
        self._spare.configure(_on_the_processor(self._config))
        if self._recorder is not None:
            self._spare.stages(self._recorder)
        self._spare.warm_up()
        self._spare.reset()
        name = self._work.device.name
        self._notices.append(
            f"Scoring goes on on the processor: {name} has too little memory ({_first_line(problem)})."
        )


def _on_the_processor(config: Any) -> Any:
    # Only here: a machine with a device may have little else installed.
    from pipelines import config as settings

    return settings.replace(config, "device", "cpu")


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0].rstrip(".")
