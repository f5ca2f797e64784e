"""What the CUDA search works on, as tensors of torch: the graph, one utterance's state times the batch, and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.device import Device
from pipelines.search.alternatives import epsilon_ranks
from pipelines.search.device.cuda import history, kernel, layout
from pipelines.search.device.cuda.intrinsics import SIMULATED
from pipelines.search.device.frontier import BLOCK_FRAMES
from pipelines.search.graph.wfst import Graph, GraphError
from profiler.arrays import I32, I64, Array

if TYPE_CHECKING:
    from torch import Tensor

FIRST_ROOM = 1 << 15  # Tokens of an utterance that its lists have room for at first; a frame with more doubles them
LEAST_HISTORY, MOST_HISTORY = 1 << 16, 1 << 22
"""Entries of an utterance's history at first: what a quarter of the free memory holds, between these."""
ENTRY_BYTES = 12
ARC_BYTES = 16
STATE = ("keys", "by_state", "lists", "history")
"""Tensors with all that is known of utterances, in the order in which kernels take them."""


def record_arcs(graph: Graph) -> tuple[I32, I32]:
    """Arcs as the kernel reads them, int32 [m, 4], and the state that each leaves, int32 [m].

    GraphError where epsilon arcs have a cycle.
    """
    states, arcs = graph.states, graph.arcs
    source = np.repeat(np.arange(graph.n_states, dtype=np.int32), np.diff(states["first"]))
    inside = (arcs["ilabel"] == 0) & (arcs["target"] < graph.n_epsilon_states)
    rank = epsilon_ranks(graph)
    if (rank[arcs["target"][inside]] <= rank[source[inside]]).any():
        raise GraphError("The graph has a cycle of epsilon arcs, which no device search can follow.")
    entering = np.append(False, graph.senone_state == 0)[arcs["ilabel"]]
    word = arcs["olabel"] != 0
    made = arcs.view(np.int32).reshape(-1, 4).copy()
    made[:, 2] = layout.WORD * word + layout.RECORDED * (word | entering)
    return made, source


class Arrays:
    """The tensors, allocated by `place` on the device's compute stream; those with `_here` are the host's copies:
    `books` int64 [batch, N_BOOKS], `floats` f64 [batch, N_FLOATS], `stamps` int64 [batch, frames, 6], `scores` f32
    [frames, batch, senones]."""

    def __init__(self, graph: Graph, batch: int, device: Device) -> None:
        self.graph, self.batch, self.device = graph, batch, device
        self._records = record_arcs(graph)
        self._converted: dict[str, object] = {}

    @property
    def processors(self) -> int:
        """Of the device; 0: it has none of its own."""
        if self.device.where != "cuda":
            return 0
        import torch

        return int(torch.cuda.get_device_properties(self.device.where).multi_processor_count)

    @property
    def bytes(self) -> int:
        """Least memory of the device that `place` takes."""
        graph, batch = self.graph, self.batch
        lists = 4 * layout.N_LISTS * min(FIRST_ROOM, graph.n_states)
        own = 16 * graph.n_states + lists + ENTRY_BYTES * LEAST_HISTORY + 4 * BLOCK_FRAMES * graph.n_senones
        return int(graph.states.nbytes + (ARC_BYTES + 4) * len(graph.arcs) + 4 * graph.n_states + batch * own)

    def place(self) -> None:
        """Allocate, and upload the graph."""
        import torch

        graph, batch, where = self.graph, self.batch, self.device.where
        arcs, source = self._records
        # A graph without arcs has arrays all the same.
        none = np.zeros((1, 4), np.int32)
        self.states = torch.from_numpy(graph.states.view(np.int32).reshape(-1, 4).copy()).to(where)
        self.arcs = torch.from_numpy(arcs if len(arcs) else none).to(where)
        self.source = torch.from_numpy(source if len(source) else none[0]).to(where)
        self.final = torch.from_numpy(graph.final.copy()).to(where)
        self.keys = torch.full((batch, graph.n_states), layout.FREE, dtype=torch.int64, device=where)
        self.by_state = torch.zeros((batch, 2, graph.n_states), dtype=torch.int32, device=where)
        room = min(FIRST_ROOM, graph.n_states)
        self.lists = torch.zeros((batch, layout.N_LISTS, room + 1), dtype=torch.int32, device=where)
        free = self.device.free_bytes()
        entries = MOST_HISTORY if free is None else free // (4 * ENTRY_BYTES * batch)
        entries = min(max(entries, LEAST_HISTORY), MOST_HISTORY)
        self.history = torch.empty((batch, entries, 3), dtype=torch.int32, device=where)
        self.numbers = torch.zeros(layout.N_NUMBERS, dtype=torch.float64, device=where)
        shapes = {
            "books": ((batch, layout.N_BOOKS), torch.int64),
            "floats": ((batch, layout.N_FLOATS), torch.float64),
            "stamps": ((batch, BLOCK_FRAMES, len(layout.PHASES) + 1), torch.int64),
            "scores": ((BLOCK_FRAMES, batch, graph.n_senones), torch.float32),
        }
        for name, (shape, kind) in shapes.items():
            setattr(self, name, torch.zeros(shape, dtype=kind, device=where))
            setattr(self, f"{name}_here", self.device.host_tensor(shape, kind, pinned=True))
        self.books_here.zero_()
        self.floats_here.zero_()

    books: Tensor
    books_here: Tensor
    floats: Tensor
    floats_here: Tensor
    stamps: Tensor
    stamps_here: Tensor
    scores: Tensor
    scores_here: Tensor

    def search(self, scores: Tensor, threads: int) -> None:
        """Launch `kernel.search` on the present stream of torch, a block of `threads` per utterance."""
        held = self._held(("states", "arcs", "source")), self._held(("numbers", *STATE, "books", "floats", "stamps"))
        _launch(kernel.search, self.batch, threads, [*held[0], _as_kernel_array(scores.float().contiguous()), *held[1]])

    def tokens(self) -> tuple[Tensor, Tensor]:
        """States int64 and costs f32 of the tokens of each utterance, [batch, most tokens]; infinite: none to count."""
        import torch

        books, where = self.books_here.numpy(), self.device.where
        pending = books[:, layout.PENDING] != 0
        counts = np.where(pending, books[:, layout.M], books[:, layout.N])
        most = max(int(counts.max()), 1)
        touched = torch.from_numpy(pending).to(where).unsqueeze(1)
        inside = torch.arange(most, device=where) < torch.from_numpy(counts).to(where).unsqueeze(1)
        lists = self.lists[:, :, :most]
        states = torch.where(touched, lists[:, layout.TOUCHED], lists[:, layout.STATE]).long().masked_fill_(~inside, 0)
        order = self.keys.gather(1, states) >> 32
        costs = (order ^ ((order >> 31) & layout.SIGN)).int().view(torch.float32)
        limits = self.floats_here[:, layout.LIMIT].to(where, torch.float32).unsqueeze(1)
        costs = costs.masked_fill(costs > limits, torch.inf)
        costs = torch.where(touched, costs, lists[:, layout.COST].contiguous().view(torch.float32))
        return states, costs.masked_fill_(~inside, torch.inf)

    def best_tokens(self, final: bool) -> tuple[Tensor, Tensor, Tensor]:
        """State int32, cost f32 and completeness of the best tokens [batch]; of those that cost the same, the first
        state's. `final`: in a final state, if one is; state -1: there is no token."""
        import torch

        states, costs = self.tokens()
        total = costs + self.final[states] if final else costs
        complete = torch.isfinite(total).any(1, keepdim=True)
        total = torch.where(complete, total, costs)
        least = total.amin(1, keepdim=True)
        state = states.masked_fill(total > least, self.graph.n_states).amin(1)
        state = torch.where(torch.isfinite(least[:, 0]), state, -1)
        return state.int(), least[:, 0], complete[:, 0] & final

    def paths(self, chosen: Tensor, settled: Array, room: int) -> tuple[Array, Array]:
        """`history.trace` from tokens in states `chosen` to entries `settled`: at most `room` entries of each path,
        int32 [batch, most, 3], and the counts."""
        import torch

        width, where = 32, self.device.where
        path = torch.empty((self.batch, room, 3), dtype=torch.int32, device=where)
        counts = torch.empty((self.batch, 2), dtype=torch.int32, device=where)
        held = self._held(("arcs", "source", *STATE, "books"))
        given = chosen, torch.from_numpy(settled).to(where), path, counts
        _launch(history.trace, -(-self.batch // width), width, [*held, *map(_as_kernel_array, given)])
        most = min(int(counts[:, 0].max()), room)
        return path[:, :most].cpu().numpy(), counts.cpu().numpy()

    def enlarge_lists(self, short: I64) -> None:
        """Make room for twice as many tokens, at most for all states; the frame of utterances `short` begins anew."""
        room = self.lists.shape[2] - 1
        self.lists = _padded(self.lists, (0, min(2 * room, self.graph.n_states) - room))
        self._converted.clear()
        # States that no list had room for hold a key.
        for b in short.tolist():
            self.keys[b].fill_(layout.FREE)

    def enlarge_history(self) -> None:
        """Make room for twice as many entries."""
        self.history = _padded(self.history, (0, 0, 0, self.history.shape[1]))
        self._converted.clear()

    def _held(self, names: Sequence[str]) -> list[object]:
        """These tensors as kernels take them; to convert one takes the host as long as to launch a kernel."""
        for name in names:
            if name not in self._converted:
                self._converted[name] = _as_kernel_array(getattr(self, name))
        return [self._converted[name] for name in names]


def _padded(tensor: Tensor, more: tuple[int, ...]) -> Tensor:
    import torch

    return torch.nn.functional.pad(tensor, more)


def _as_kernel_array(tensor: Tensor) -> object:
    if SIMULATED:
        return tensor.numpy()
    from numba import cuda

    return cuda.as_cuda_array(tensor, sync=False)


def _launch(launched: object, blocks: int, threads: int, arrays: Sequence[object]) -> None:
    if SIMULATED:
        launched[blocks, threads](*arrays)  # type: ignore[index]
        return
    import torch
    from numba import cuda

    stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
    launched[blocks, threads, stream](*arrays)  # type: ignore[index]
