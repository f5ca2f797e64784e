"""Token passing as tensor operations: one frame of several utterances in a fixed number of steps, none waiting.

The tokens of an utterance are a list of fixed capacity, so that the host never has to ask for a size within a block. A
frame spreads the tokens' arcs over `arcs` places, adds scores, finds the best arc into each state by a 64-bit
scatter-minimum over (cost, place), as Chen et al. (2018) with atomicMin, and keeps the best tokens by a partial sort.
Where a list was too small the block is done again with more room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.device import Device
from pipelines.device.work import Dispatched, dispatched_by
from pipelines.search.device.graph import ARC_BYTES, DirectArcs
from profiler.arrays import Array

if TYPE_CHECKING:
    from torch import Tensor

BLOCK_FRAMES = 64  # Frames of one call at most: bounds the back-pointers that lie on the device
NOBODY, STAYED = -1, -2  # Arc of a back-pointer where there is no token, and where its utterance is over
PLACE_BITS = 20  # Of a key: room for a million arcs of an utterance in a frame
MAX_PLACES = 1 << PLACE_BITS
LATEST = (1 << 63) - 1  # Later than any key: no arc has come into this state
TAGS = 1 << (63 - 32 - PLACE_BITS - 1)  # Frames whose keys differ; then the table of keys is cleared
CHOOSING = 2  # Frames before one is held as a graph
COUNTS = ("alive", "arcs", "senones", "full")


class Room(NamedTuple):
    """Capacities: tokens and arcs of each utterance and frame; `arcs` ≥ `tokens`."""

    tokens: int
    arcs: int


class Buffers:
    """What does not depend on the room: the graph, a block of scores, the best way into each state.

    `here`, `there`: a block of scores f32 [frames, batch, senones] on the host and as it arrives.
    """

    def __init__(self, arcs: DirectArcs, n_senones: int, batch: int, device: Device) -> None:
        self.arcs, self.device, self.batch = arcs, device, batch
        self.columns = n_senones + 1
        self.frames_tagged = 0

    @staticmethod
    def bytes(arcs: DirectArcs, n_senones: int, batch: int) -> int:
        """What `place` takes on the device."""
        scores = BLOCK_FRAMES * batch * 8 * (n_senones + 1)
        return arcs.n_arcs * ARC_BYTES + arcs.n_states * (8 + 8 * batch) + scores

    def place(self) -> None:
        """Allocate, and upload the graph."""
        import torch

        b, where = self.batch, self.device.where
        self.tables = tables_of(self.arcs, where)
        shape = (BLOCK_FRAMES, b, self.columns - 1)
        self.here = self.device.host_tensor(shape, torch.float32, pinned=True)
        self.there = torch.zeros(shape, device=where)
        # Column 0 stays infinite: places without an arc lead nowhere.
        self.scores = torch.full((BLOCK_FRAMES, b, self.columns), torch.inf, device=where)
        self.lengths_here = self.device.host_tensor((b, 1), torch.int64, pinned=True)
        self.lengths = torch.zeros((b, 1), dtype=torch.int64, device=where)
        self.beam = torch.zeros(1, device=where)
        self.t = torch.zeros(1, dtype=torch.int64, device=where)
        n = len(self.tables["degree"])
        self.into = torch.full((b * n,), LATEST, dtype=torch.int64, device=where)
        self.tag = torch.full((1,), TAGS, dtype=torch.int64, device=where)

    def use_beam(self, beam: float) -> None:
        self.beam.fill_(beam)

    def use_penalty(self, penalty: float) -> None:
        tables = self.tables
        tables["cost"].copy_(tables["weight"] + penalty * tables["words"])

    def take(self, scores: Tensor, scale: float) -> None:
        """Make costs of log likelihoods [frames, batch, senones] that are on the device."""
        self.scores[: len(scores), :, 1:].copy_(scores).mul_(-scale)

    def restart(self, frames: int) -> None:
        """The frame to do is the first; keys of `frames` more frames are free."""
        self.t.zero_()
        self.frames_tagged += frames
        if self.frames_tagged >= TAGS:
            self.into.fill_(LATEST)
            self.tag.fill_(TAGS)
            self.frames_tagged = frames


class Frontier:
    """The tokens of some utterances in a `room`, and what a frame does to them; used on the device's compute stream."""

    def __init__(self, buffers: Buffers, room: Room, min_active: int) -> None:
        self.room, self.min_active = room, min_active
        self._b = buffers
        self.replay: Callable[[], object] | None = None
        """A frame, where it is held as a graph."""
        self.dispatched = Dispatched()
        """What a frame asks of torch, where it is held as a graph."""

    def place(self) -> None:
        """Allocate; where the device can, hold a frame as a graph: one launch for all its kernels."""
        import torch

        shared = self._b
        b, (k, a), where = shared.batch, self.room, shared.device.where
        self._dead = len(shared.tables["degree"]) - 1
        blocks = {
            "previous": ((BLOCK_FRAMES, b, k), torch.int32),
            "arc": ((BLOCK_FRAMES, b, k), torch.int32),
            "best": ((BLOCK_FRAMES, b), torch.float32),
            "counts": ((BLOCK_FRAMES, b, len(COUNTS)), torch.int32),
            "state": ((b, k), torch.int64),
            "cost": ((b, k), torch.float32),
        }
        self._there = {name: torch.zeros(shape, dtype=dtype, device=where) for name, (shape, dtype) in blocks.items()}
        self._here = {
            name: shared.device.host_tensor(shape, dtype, pinned=True) for name, (shape, dtype) in blocks.items()
        }
        self.state, self.cost = self._there["state"], self._there["cost"]
        self.state.fill_(self._dead)
        self.cost.fill_(torch.inf)
        self.saved = self.state.clone(), self.cost.clone()
        self._nothing = torch.zeros((b, 1), dtype=torch.int64, device=where)
        self._all_places = self._nothing + a

        def counted(size: int, each: int) -> Tensor:
            """0, each, 2·each …: where the rows of the utterances begin, [size, 1]."""
            return (torch.arange(size, device=where) * each).unsqueeze(1)

        self._place = torch.arange(a, device=where).expand(b, a).contiguous()
        self._place_flat = self._place.view(-1)
        self._owners = torch.arange(b * (k + 1), device=where)
        self._self = torch.arange(k, device=where).expand(b, k)
        self._owners_from, self._places_from = counted(b, k + 1), counted(b, a)
        self._states_from = counted(b, self._dead + 1)
        self._columns_from = counted(b, shared.columns)
        # Places without an arc lead to one state after the other, so that none is contended for.
        nowhere = torch.arange(b * a, device=where) % (self._dead + 1)
        self._nowhere = nowhere.view(b, a)
        if shared.device.can_capture:
            shared.restart(CHOOSING + 1)
            for _ in range(CHOOSING):  # libraries choose their kernels on the first calls
                self.dispatched = dispatched_by(self.step)
            self.replay = shared.device.capture(self.step)

    def held(self, states: Array, costs: Array) -> Iterator[tuple[Tensor, Tensor]]:
        """The uploads that make these the tokens [batch, at most room.tokens]; no download may be under way."""
        k = states.shape[1]
        for name, values, none in (("state", states, self._dead), ("cost", costs, np.inf)):
            here = self.fetched(name)
            here[:] = none
            here[:, :k] = values
            yield self._there[name], self._here[name]

    def take_over(self, state: Tensor, cost: Tensor) -> None:
        """Go on from the tokens [batch, at most room.tokens], each in its place."""
        import torch

        state, cost = state.clone(), cost.clone()
        self.state.fill_(self._dead)
        self.cost.fill_(torch.inf)
        self.state[:, : state.shape[1]].copy_(state)
        self.cost[:, : state.shape[1]].copy_(cost)

    def run(self, frames: int) -> None:
        """Pass the tokens over the first `frames` frames of the scores."""
        self.saved[0].copy_(self.state)
        self.saved[1].copy_(self.cost)
        self._b.restart(frames)
        for _ in range(frames):
            self.step() if self.replay is None else self.replay()

    def moves(self, frames: int) -> Iterator[tuple[Tensor, Tensor]]:
        for name, here in self._here.items():
            part = slice(frames if here.ndim and name not in ("state", "cost") else None)
            yield here[part], self._there[name][part]

    def counts(self, frames: int) -> Array:
        """COUNTS of a block that has come down, int32 [frames, batch, 4]."""
        return self.fetched("counts")[:frames]

    def fetched(self, name: str) -> Array:
        """The host copy of `previous`, `arc` [BLOCK_FRAMES, batch, tokens], `best`, or the tokens' `state`, `cost`."""
        array: Array = self._here[name].numpy()
        return array

    def step(self) -> None:
        """One frame: row `t` of the scores; `t` moves on."""
        import torch

        shared, b, (k, a) = self._b, self._b.batch, self.room
        tables, t = shared.tables, shared.t
        row = shared.scores.index_select(0, t)[0]
        at = self.state.view(-1)
        degree = tables["degree"].index_select(0, at).view(b, k)
        ends = degree.cumsum(1)
        total = ends[:, -1:]
        # Whose each place is: tokens in a row, what is left over to one more behind them.
        inner = ends.clamp(max=a)
        shares = torch.diff(inner, dim=1, prepend=self._nothing, append=self._all_places)
        owner = torch.repeat_interleave(self._owners, shares.view(-1), output_size=b * a)
        begin = tables["first"].index_select(0, at).view(b, k) + degree - ends
        begin = torch.nn.functional.pad(begin, (0, 1)).view(-1).index_select(0, owner)
        inside = self._place < total
        arc = (begin.view(b, a) + self._place).masked_fill_(~inside, 0)
        flat = arc.view(-1)
        label = tables["label"].index_select(0, flat).view(b, a).masked_fill_(~inside, 0)
        label = (label + self._columns_from).view(-1)
        into = torch.where(inside, tables["target"].index_select(0, flat).view(b, a), self._nowhere)
        into = (into + self._states_from).view(-1)
        cost = torch.nn.functional.pad(self.cost, (0, 1), value=torch.inf).view(-1)
        cost = cost.index_select(0, owner) + tables["cost"].index_select(0, flat)
        # Column 0 of the scores is infinite: places without an arc lead nowhere.
        cost += row.view(-1).index_select(0, label)

        # Costs as integers of the same order, then the place: the least of both is one arc per state.
        bits = cost.view(torch.int32)
        order = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).long()
        # Each frame's keys lie below those of the frames before, so that nothing has to be cleared.
        shared.tag.sub_(1)
        key = ((order << PLACE_BITS) | self._place_flat) + (shared.tag << (32 + PLACE_BITS))
        shared.into.scatter_reduce_(0, into, key, "amin")
        won = shared.into.index_select(0, into) == key
        cost = cost.masked_fill_(~won, torch.inf).view(b, a)

        top, chosen, lowest, kept = survivors(cost, k, shared.beam, self.min_active)
        chosen = (chosen + self._places_from).view(-1)
        state = (into.index_select(0, chosen).view(b, k) - self._states_from).masked_fill_(~kept, self._dead)
        cost = (top - lowest).masked_fill_(~kept, torch.inf)
        previous = owner.index_select(0, chosen).view(b, k) - self._owners_from
        arc = arc.view(-1).index_select(0, chosen).view(b, k).masked_fill_(~kept, NOBODY)
        alive = kept.sum(1)
        active = torch.zeros_like(row).view(-1).index_fill_(0, label, 1.0).view(b, -1)[:, 1:].sum(1)
        full = kept.all(1).int() + 2 * (total[:, 0] > a)
        if b > 1:
            over = t >= shared.lengths
            state, cost = torch.where(over, self.state, state), torch.where(over, self.cost, cost)
            previous = torch.where(over, self._self, previous)
            here = (self.cost < torch.inf) & over
            arc = torch.where(over, torch.where(here, STAYED, NOBODY), arc)
            lowest = lowest.masked_fill(over, 0.0)
            alive = torch.where(over[:, 0], here.sum(1), alive)
            full = full.masked_fill(over[:, 0], 0)
        self.state.copy_(state)
        self.cost.copy_(cost)
        counts = torch.stack([alive.int(), total[:, 0].int(), active.int(), full.int()], dim=1)
        block = {"previous": previous.int(), "arc": arc.int(), "best": lowest[:, 0], "counts": counts}
        for name, value in block.items():
            self._there[name].index_copy_(0, t, value.unsqueeze(0))
        t.add_(1)


def survivors(cost: Tensor, max_active: int, beam: Tensor, min_active: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The best `max_active` of `cost` float32 [batch, n] (+inf: no token), as Kaldi's GetCutoff would prune them.

    The beam [1], in nat, is wider where fewer than `min_active` tokens are in it. Returns, in no order, the costs and
    the columns they come from, [batch, max_active]; the lowest cost [batch, 1]; and which of them are kept.
    """
    import torch

    top, chosen = cost.topk(max_active, dim=1, largest=False, sorted=False)
    lowest = top.amin(1, keepdim=True)
    limit = lowest + beam
    if min_active < max_active:
        enough = top.topk(min_active + 1, dim=1, largest=False).values[:, -1:]
        limit = torch.maximum(limit, enough)
    else:
        limit = torch.full_like(limit, torch.inf)
    return top, chosen, lowest, top < limit


def tables_of(arcs: DirectArcs, where: str) -> dict[str, Tensor]:
    """The graph on the device; a last state without arcs takes the tokens that are none."""
    import torch

    degree = np.append(np.diff(arcs.first), 0).astype(np.int32)
    found: dict[str, Array] = {name: getattr(arcs, name) for name in ("first", "target", "label", "weight", "words")}
    found |= {"degree": degree, "cost": arcs.weight}
    # A graph of a state without arcs has tables all the same, so that place 0 can be read.
    return {
        name: torch.from_numpy(array if len(array) else np.zeros(1, array.dtype)).clone().to(where)
        for name, array in found.items()
    }
