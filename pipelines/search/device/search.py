"""The decoder on a device: blocks of scores go up, tokens stay there, back-pointers come down.

`frontier` passes the tokens; the host never waits within a block. What comes down becomes a history (`history`), so
that words are the same there and here. Several utterances are decoded at once: a device is not filled by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pipelines.availability import SEARCH_OBSTACLES
from pipelines.config import Search
from pipelines.device import COMPUTE, COPY, Device, DeviceError, DeviceWork
from pipelines.device.base import is_out_of_memory
from pipelines.device.work import Launches, launched
from pipelines.search.device.frontier import BLOCK_FRAMES, COUNTS, MAX_PLACES, Buffers, Frontier, Room
from pipelines.search.device.graph import DirectArcs, direct_arcs
from pipelines.search.device.history import UtteranceHistory
from pipelines.search.graph.wfst import Graph
from profiler.arrays import Array
from profiler.spans import Cost, Lane, Linear, NullLane, Recorder

if TYPE_CHECKING:
    from torch import Tensor

    from pipelines.search.device.cuda.search import CudaUtterance


def check_room(device: Device, need: int, batch: int) -> None:
    """Raise DeviceError where fewer than `need` bytes are free, for a search of `batch` utterances at once."""
    free = device.free_bytes()
    if free is not None and need > free:
        raise DeviceError(
            f"search.device = {device.name} needs {need / 1e6:.0f} MB for this graph and {batch} utterances at once, "
            f"and {free / 1e6:.0f} MB are free; take a smaller graph.vocabulary or search.device = cpu."
        )


@contextmanager
def guarded(device: Device) -> Iterator[None]:
    """Raise DeviceError where memory runs out within."""
    try:
        yield
    except RuntimeError as problem:
        if not is_out_of_memory(problem):
            raise
        raise DeviceError(
            f"The memory of {device.name} does not suffice for the search; lower "
            "search.max_active or graph.vocabulary, or choose search.device = cpu."
        ) from problem


FIRST_ROOM = Room(1024, 4096)
"""The least that there is room for; it grows in steps of two, and is kept for the next utterance."""
SPARE = 1.5  # When the room is reduced, it keeps this factor times the tokens and arcs of the last block
MOST_FRONTIERS = 4  # Sizes of room that stay on the device: what speech goes back and forth between
LAUNCHES = "the host gives work to the device here and computes nothing itself"
KEEPS = "following back-pointers is one scattered load after another, each decided by the one before"
ASKS = "the arcs of the live tokens are looked through in numpy, only where a scorer wants to know"

STAGES: dict[str, tuple[str, ...]] = {
    "search.frames": ("places", "tokens held"),
    "search.launch": (),
    "search.history": ("tokens", "arcs", "senones"),
    "search.active": ("looked at", "active"),
    "search.backtrace": ("backpointers",),
}


class BatchSearch(ABC):
    """Best paths over `graph` of `batch` utterances that are decoded together, on the device of `work`; DeviceError
    where it has too little memory. `utterances`: what has come of each."""

    work_counts: ClassVar[Mapping[str, tuple[str, ...]]]  # By stage
    utterances: Sequence[UtteranceHistory | CudaUtterance]
    beam: float

    def __init__(self, graph: Graph, work: DeviceWork, batch: int) -> None:
        self.graph, self.batch, self._work = graph, batch, work
        self.launches = Launches()
        self._ids: dict[str, int] = {}
        self.stages(Recorder())

    def stages(self, recorder: Recorder) -> None:
        before = dict(self._ids)
        for name, counts in self.work_counts.items():
            self._ids[name] = recorder.stage(name, "search", counts)
        self.launches.renumber(before, self._ids)

    def advance(self, scores: Array | Tensor, lengths: Sequence[int], first_frame: int, lane: Lane | NullLane) -> None:
        """Pass tokens over `scores` f32 [frames, batch, senones] (natural logs, unscaled), `lengths[b]` frames of
        utterance b, none once it is lost; a tensor of torch already lies on the device."""
        for at in range(0, len(scores), BLOCK_FRAMES):
            part = scores[at : at + BLOCK_FRAMES]
            lost = [utterance.lost for utterance in self.utterances]
            left = [0 if gone else min(max(n - at, 0), len(part)) for n, gone in zip(lengths, lost, strict=True)]
            if any(left):
                with guarded(self._work.device):
                    self._block(part, left, first_frame + at, lane)

    @abstractmethod
    def _block(self, scores: Array | Tensor, lengths: list[int], first_frame: int, lane: Lane | NullLane) -> None:
        """Pass tokens over at most BLOCK_FRAMES frames."""

    def host_costs(self) -> dict[str, Cost]:
        return {
            "search.launch": Cost(unmodelled=LAUNCHES),
            "search.active": Cost(unmodelled=ASKS),
            "search.backtrace": Cost(unmodelled=KEEPS),
            **self._work.costs(),
        }


class DeviceSearch(BatchSearch):
    """The search in torch."""

    work_counts = STAGES
    utterances: list[UtteranceHistory]

    def __init__(self, graph: Graph, config: Search, work: DeviceWork, batch: int = 1) -> None:
        if obstacle := SEARCH_OBSTACLES.get(work.device.name):
            raise DeviceError(f"search.device = {work.device.name} cannot be used: {obstacle}; choose cpu.")
        super().__init__(graph, work, batch)
        self._arcs: DirectArcs = direct_arcs(graph)
        self._frontiers: dict[Room, Frontier] = {}
        self._frontier: Frontier | None = None
        self._peak = self._room = Room(0, 0)
        check_room(self._work.device, Buffers.bytes(self._arcs, graph.n_senones, batch), batch)
        self._buffers = Buffers(self._arcs, graph.n_senones, batch, work.device)
        self._penalty: float | None = None
        with guarded(self._work.device):
            work.at_once(self._buffers.place)
        self.configure(config)
        self.begin()

    def configure(self, config: Search) -> None:
        self._scale = float(config.acoustic_scale)
        self._min_active, self._max_active = int(config.min_active), int(config.max_active)
        penalty = float(config.insertion_penalty)
        if penalty != self._penalty:
            self._penalty = penalty
            self._work.device.run(COMPUTE, partial(self._buffers.use_penalty, penalty))
        self.use_beam(float(config.beam))
        self._path_costs = self._arcs.path_weight + np.float32(penalty) * self._arcs.path_words
        self._room = self._fitting(self._room)

    def use_beam(self, beam: float) -> None:
        self.beam = beam
        self._work.device.run(COMPUTE, partial(self._buffers.use_beam, beam))

    def begin(self) -> None:
        """New utterances begin, all at once."""
        arcs, costs = self._arcs, self._path_costs
        self.utterances = [UtteranceHistory(self.graph, arcs, costs) for _ in range(self.batch)]
        for utterance in self.utterances:
            utterance.prune(self.beam, self._min_active)
        tokens = len(self.utterances[0].states)
        # A power of two above what the utterances before had; it grows as need be.
        peak, self._frontier = self._peak, None
        self._room = self._fitting(Room(max(tokens, peak.tokens), peak.arcs))
        self._peak = Room(0, 0)

    def costs(self) -> dict[str, Cost]:
        """Cost laws of the stages.

        `search.frames`, per place (an arc, or room for one): 2 additions, a comparison and, counted roughly in
        `Frontier.step`, 10 integer operations; its indices, costs and keys are written and read by the kernel after, 20
        times 8 bytes, and the arc's record and its target's key lie scattered. Per token held 12 fields are moved; the
        partial sort is not counted.
        """
        room, where = self._room, self._work.device.where
        device = "" if where == "cpu" else where
        touched = self.batch * (self._arcs.n_states * 8.0 + room.arcs * 160.0)
        operations = {f"fma@{device}" if device else "fma": Linear(per_work=(13.0, 8.0, 0.0))}
        least, most = Linear(per_work=(36.0, 32.0, 0.0)), Linear(per_work=(160.0, 100.0, 0.0))
        frames = Cost(operations, least, most, touched, scattered=True, device=device)
        # Between utterances none is in use; all that were made are alike in this.
        frontier = next(reversed(self._frontiers.values()), None)
        held = frontier is not None and frontier.replay is not None
        given = self.launches.each(self._ids["search.frames"], of_a_frame=True)
        if frontier is not None and held:
            given = frontier.dispatched
        return {
            "search.frames": launched(frames, given, held, lambda each: Linear(per_frame=each)),
            "search.history": Cost(unmodelled=KEEPS),
            **self.host_costs(),
        }

    def _block(self, scores: Array | Tensor, lengths: list[int], first_frame: int, lane: Lane | NullLane) -> None:
        """One block: up, over all its frames, down, into the history.

        Again where there was too little room, and where an utterance lost all tokens, now up to the frame before: the
        tokens that it had then are its result.
        """
        frames, work, ids, shared = len(scores), self._work, self._ids, self._buffers
        with work.launching(ids["search.launch"], first_frame, frames):
            frontier = self._ready(first_frame, frames)
            if isinstance(scores, np.ndarray):
                shared.here.numpy()[:frames] = scores
                work.upload(shared.there[:frames], shared.here[:frames], first_frame, frames)
                scores = shared.there[:frames]
            # Together with the first try, so that all that the search computes is in its span.
            first_step: Callable[[], None] = partial(shared.take, scores, self._scale)
            done = frames
            while True:
                if self.batch > 1:
                    shared.lengths_here.numpy()[:, 0] = lengths
                    work.upload(shared.lengths, shared.lengths_here, first_frame, frames)
                work.then(COPY, COMPUTE)
                self._run(frontier, done, first_frame, first_step)
                counts = frontier.counts(done)
                inside = np.arange(done)[:, None] < np.array(lengths)
                dead = inside & (counts[:, :, 0] == 0)
                saved, larger = frontier.saved, self._larger(frontier.room, counts)
                if larger is not None:
                    frontier = self._made(larger)
                elif not dead.any():
                    break
                else:
                    for b in np.flatnonzero(dead.any(0)).tolist():
                        self.utterances[b].lost = True
                        lengths[b] = int(dead[:, b].argmax())
                    done = max(lengths)
                first_step = partial(frontier.take_over, *saved)
            self._frontier, self._room = frontier, frontier.room
        begin = work.now()
        counts = np.where(inside[:, :, None], counts, 0)
        previous, arc, best, states, costs = map(frontier.fetched, ("previous", "arc", "best", "state", "cost"))
        for b, (utterance, n) in enumerate(zip(self.utterances, lengths, strict=True)):
            utterance.take(previous[:n, b], arc[:n, b], best[:n, b], states[b], costs[b])
        alive, arcs, senones = (int(counts[:, :, i].sum()) for i in range(3))
        lane.put(ids["search.history"], begin, work.now(), first_frame, frames, alive, arcs, senones)
        work.end_block(first_frame, frames)
        peak = Room(*(int(counts[:, :, i].max(initial=0)) for i in range(2)))
        self._peak = Room(*map(max, peak, self._peak))
        # Places without an arc cost as much as others: where half of them would do, half there will be.
        enough = self._fitting(Room(*(int(SPARE * amount) for amount in peak)))
        if any(2 * less <= present for less, present in zip(enough, self._room, strict=True)):
            self._room = enough

    def _run(self, frontier: Frontier, frames: int, first_frame: int, first_step: Callable[[], None]) -> None:
        """Give a block's frames to the device and wait for all that comes of them."""
        work, room, held = self._work, frontier.room, frames * self.batch

        def step() -> None:
            first_step()
            frontier.run(frames)

        counts = (room.arcs * held, room.tokens * held, 0)
        work.work(self._ids["search.frames"], step, first_frame, frames, counts)
        work.then(COMPUTE, COPY)
        for i, (target, source) in enumerate(frontier.moves(frames)):
            work.download(target, source, first_frame, frames, directly=i > 0)
        work.wait_for(work.mark(COPY), COPY)

    def _ready(self, first_frame: int, frames: int) -> Frontier:
        """The frontier with the present room, holding the tokens as they are now, for a block of these frames."""
        last = self._frontier
        if last is not None and last.min_active == self._min_active and last.room == self._room:
            return last
        frontier, tokens = self._made(self._room), self._room.tokens
        if last is not None and last.room.tokens <= tokens:
            self._work.device.run(COMPUTE, partial(frontier.take_over, last.state, last.cost))
        else:
            # An utterance begins, or there are to be fewer places: the best tokens, closed up.
            for utterance in self.utterances:
                utterance.close_up(tokens)
            states = np.stack([utterance.states for utterance in self.utterances])
            costs = np.stack([utterance.costs for utterance in self.utterances])
            self._work.then(COMPUTE, COPY)
            for target, source in frontier.held(states, costs):
                self._work.upload(target, source, first_frame, frames)
            self._work.then(COPY, COMPUTE)
        return frontier

    def _made(self, room: Room) -> Frontier:
        frontier = self._frontiers.pop(room, None)
        if frontier is None or frontier.min_active != self._min_active:
            # The one in use is the last of them, and stays.
            for oldest in list(self._frontiers)[: 1 - MOST_FRONTIERS]:
                del self._frontiers[oldest]
            frontier = Frontier(self._buffers, room, self._min_active)
            self._work.at_once(frontier.place)
        self._frontiers[room] = frontier
        return frontier

    def _larger(self, room: Room, counts: Array) -> Room | None:
        """Return the room for a block that did not fit into `room`; None if it did."""
        full = int(np.bitwise_or.reduce(counts[:, :, COUNTS.index("full")], axis=None))
        tokens, arcs = room
        if full & 1:
            tokens *= 2
        if full & 2:
            arcs = max(2 * arcs, int(counts[:, :, 1].max()))
        larger = self._fitting(Room(tokens, arcs))
        if full & 2 and larger.arcs <= room.arcs:
            raise DeviceError(
                f"A frame has more than the {MAX_PLACES} arcs of a device search; lower search.beam or "
                "search.max_active, or choose search.device = cpu."
            )
        return larger if larger != room else None

    def _fitting(self, room: Room) -> Room:
        """Room in powers of two, so that few sizes occur, and never more than can be used."""
        most = min(max(self._max_active, self._min_active + 1), self._arcs.n_states)
        tokens = min(_power(max(room.tokens, self._min_active + 1, FIRST_ROOM.tokens)), most)
        arcs = _power(min(max(room.arcs, FIRST_ROOM.arcs), self._arcs.n_arcs, MAX_PLACES))
        return Room(tokens, max(arcs, tokens))


def _power(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()
