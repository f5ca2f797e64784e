"""Utterances decoded by the CUDA search, many at a time, with the interface of the search in torch (`device.search`).

Tokens and histories stay on the device. After a block of frames the host reads a few numbers of each utterance, makes
room where a list was too short, and lets the kernel go on where it was. Words are read along the best path only.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.config import Search
from pipelines.device import COMPUTE, COPY, DeviceWork
from pipelines.search.device.cuda import kernel, layout
from pipelines.search.device.cuda.arrays import Arrays
from pipelines.search.device.cuda.costs import phase_costs
from pipelines.search.device.search import BatchSearch, check_room, guarded
from pipelines.search.graph.openfst import ranges
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import BEAM_DELTA
from pipelines.search.words import Word, WordTracer, collect_paths
from profiler.arrays import F32, I32, I64, Array
from profiler.device.time import Part
from profiler.spans import Cost, Lane, NullLane

if TYPE_CHECKING:
    from torch import Tensor

FIRST_PATH = 4096  # Entries of a path that a trace has room for at first
UNSETTLED = 64  # Entries at the end of a path that are traced anew each time; those before are known already

REST = "the launch of the kernel, and thread blocks whose utterance has ended while others go on"

STAGES: dict[str, tuple[str, ...]] = {
    "search.cutoff": ("examined",),
    "search.compact": ("examined", "kept"),
    "search.history": ("entries", "examined", "kept"),
    "search.emit": ("tokens", "arcs"),
    "search.epsilon": ("followed", "examined", "rounds"),
    "search.frames": (),
    "search.launch": (),
    "search.active": ("looked at", "active"),
    "search.backtrace": ("backpointers",),
}


class _Best(NamedTuple):
    """Of each utterance the best token: its state (-1: there is none), its cost, and whether it is in a final state."""

    state: I32
    cost: F32
    complete: Array


class CudaUtterance:
    """One utterance of a batch: what `history.UtteranceHistory` is of the search in torch."""

    def __init__(self, search: CudaSearch, number: int) -> None:
        self.complete = self.lost = False
        self.best_cost = np.inf
        self.path: I32 = np.empty((0, 3), np.int32)
        """Entries of the last path, the first one first: history entry, arc, frame."""
        self._search, self._number = search, number
        self._tracer = WordTracer(search.graph)

    @property
    def settled(self) -> int:
        """History entry up to which the last path needs no other trace; -2: none."""
        return int(self.path[-UNSETTLED, 0]) if len(self.path) > UNSETTLED and self.path[-UNSETTLED, 0] >= 0 else -2

    @property
    def cutoff(self) -> float:
        return float(self._search.floats[self._number, layout.CUTOFF])

    def words(self, final: bool) -> tuple[list[Word], int]:
        """Words of the best token (`final`: to a final state if there is one), and entries followed."""
        best = self._search.trace(final)
        if final:
            self.complete = bool(best.complete[self._number]) and not self.lost
        if best.state[self._number] < 0:
            return [], 0
        books = self._search.books[self._number]
        if final:
            self.best_cost = float(self._search.floats[self._number, layout.OFF]) + float(best.cost[self._number])
        history = np.empty((len(self.path), 3), np.int32)
        history[:, 0] = np.arange(-1, len(history) - 1)
        history[:, 1:] = self.path[:, 1:]
        words = self._tracer.words(history, len(history) - 1, int(books[layout.FRAME]))
        return words, self._tracer.backpointers

    def take(self, newer: I32, met: bool) -> None:
        """Append `newer` entries of a trace, the last one first; `met`: it ended at `settled`, else it is whole."""
        kept = len(self.path) - UNSETTLED + 1 if met else 0
        self.path = np.concatenate([self.path[:kept], newer[::-1]])
        self._tracer.reset(kept)

    def forget_path(self) -> None:
        self.path = self.path[:0]
        self._tracer.reset()

    def active_senones(self) -> tuple[I64, int]:
        """Senones that the next frame will look up, ascending; and how many arcs were looked through."""
        self._search.prune()
        graph, states = self._search.graph, self._search.tokens(self._number)[0]
        first = graph.states["first"][states].astype(np.int64)
        arcs = ranges(first, graph.states["epsilon"][states] - first)
        labels = np.append(graph.arcs["ilabel"][arcs], graph.states["loop_label"][states])
        different = np.unique(labels)
        return different[different > 0].astype(np.int64) - 1, len(labels)


class CudaSearch(BatchSearch):
    """The search as a kernel of CUDA. `threads`: of each block.

    `books` int64 [batch, N_BOOKS] and `floats` f64 [batch, N_FLOATS] are as after the last block.
    """

    work_counts = STAGES
    utterances: list[CudaUtterance]

    def __init__(
        self, graph: Graph, config: Search, work: DeviceWork, batch: int = 1, threads: int | None = None
    ) -> None:
        super().__init__(graph, work, batch)
        self._arrays = Arrays(graph, batch, work.device)
        self._threads = threads or kernel.threads_of(batch, self._arrays.processors)
        check_room(self._work.device, self._arrays.bytes, batch)
        with guarded(self._work.device):
            work.at_once(self._arrays.place)
        self.books: I64 = self._arrays.books_here.numpy()
        self.floats = self._arrays.floats_here.numpy()
        self._path_room = FIRST_PATH
        self._traced: tuple[bool, _Best] | None = None
        self._prune_last = False
        self.stamped = True
        """Whether the kernel notes when its phases begin; from the next change of settings on."""
        self.configure(config)
        self.begin()

    def configure(self, config: Search) -> None:
        self._config = config
        self.use_beam(float(config.beam))

    def use_beam(self, beam: float) -> None:
        self.beam = beam
        self._tell()

    def begin(self) -> None:
        """New utterances begin, all at once."""
        self.utterances = [CudaUtterance(self, number) for number in range(self.batch)]
        # Rounds go on, so that what was queued before is not taken for what is.
        rounds = self.books[:, layout.ROUND].copy()
        self.books[:] = 0
        self.books[:, layout.OPENING], self.books[:, layout.ROUND] = 1, rounds
        self.floats[:] = (0.0, np.inf, np.inf, 0.0, np.inf)
        arrays = self._arrays

        def clear() -> None:
            arrays.keys.fill_(layout.FREE)
            arrays.floats.copy_(arrays.floats_here)

        self._traced = None
        self._work.at_once(clear)

    def costs(self) -> dict[str, Cost]:
        where = self._work.device.where
        return {
            **phase_costs(self.graph, self._config, self.batch, self._threads, "" if where == "cpu" else where),
            "search.frames": Cost(unmodelled=REST),
            **self.host_costs(),
        }

    def prune(self) -> None:
        """End the last frame of each utterance, so that its tokens are those that the next frame expands."""
        if self.books[:, (layout.PENDING, layout.OPENING)].any():
            self._prune_last = True
            self._tell()
            self._without_frames()
            self._prune_last = False
            self._tell()

    def tokens(self, number: int) -> tuple[I32, F32]:
        """State and cost of each token of an utterance that is alive, after a frame or `prune`."""
        here = self._work.at_once(lambda: [column[number].cpu() for column in self._arrays.tokens()])
        states, costs = (column.numpy() for column in here)
        alive = costs < np.inf
        return states[alive].astype(np.int32), costs[alive]

    def trace(self, final: bool) -> _Best:
        """The best token of each utterance (`final`: in a final state, if one is), whose path it then has.

        Those of all utterances are followed in one launch.
        """
        if self.books[:, layout.OPENING].any():
            self._without_frames()  # makes the tokens before the first frame
        if self._traced is not None and self._traced[0] == final:
            return self._traced[1]
        arrays, work = self._arrays, self._work
        settled = np.array([utterance.settled for utterance in self.utterances], np.int32)

        def choose() -> tuple[Tensor, _Best]:
            columns = arrays.best_tokens(final)
            return columns[0], _Best(*(column.cpu().numpy() for column in columns))

        chosen, best = work.at_once(choose)
        while True:
            paths, counts = work.at_once(partial(arrays.paths, chosen, settled, self._path_room))
            most = int(counts[:, 0].max())
            if most <= self._path_room:
                break
            self._path_room = 2 * most
        for b, utterance in enumerate(self.utterances):
            if best.state[b] >= 0:
                utterance.take(paths[b, : counts[b, 0]], bool(counts[b, 1]))
        self._traced = final, best
        return best

    def _without_frames(self) -> None:
        self.books[:, layout.LENGTH] = self.books[:, layout.NEXT] = 0
        with guarded(self._work.device), self._work.timer.silent():
            self._run(self._arrays.scores, 0, 0)

    def _block(self, scores: Array | Tensor, lengths: list[int], first_frame: int, lane: Lane | NullLane) -> None:
        """One block: up, over all its frames, and again from where a list was too short."""
        frames, work, arrays = len(scores), self._work, self._arrays
        self.books[:, layout.NEXT], self.books[:, layout.LENGTH] = 0, lengths
        self.books[:, layout.TOKENS :] = 0
        with work.launching(self._ids["search.launch"], first_frame, frames):
            if isinstance(scores, np.ndarray):
                arrays.scores_here.numpy()[:frames] = scores
                work.upload(arrays.scores[:frames], arrays.scores_here[:frames], first_frame, frames)
                scores = arrays.scores[:frames]
            self._run(scores, first_frame, frames)
        work.end_block(first_frame, frames)

    def _run(self, scores: Tensor, first_frame: int, frames: int) -> None:
        """Launch the kernel and wait for what the host has to know, until no utterance wants more room."""
        work, arrays = self._work, self._arrays
        self._traced = None
        step, wanting = partial(arrays.search, scores, self._threads), True
        while wanting:
            work.upload(arrays.books, arrays.books_here, first_frame, frames)
            work.then(COPY, COMPUTE)
            before, parts = self.books.copy(), list[Part]()
            work.work(self._ids["search.frames"], step, first_frame, frames, parts=parts)
            work.then(COMPUTE, COPY)
            work.download(arrays.books_here, arrays.books, first_frame, frames)
            for name in ("floats", "stamps"):
                here, there = getattr(arrays, f"{name}_here"), getattr(arrays, name)
                work.download(here, there, first_frame, frames, directly=True)
            work.wait_for(work.mark(COPY), COPY)
            if work.timer.recording and self.stamped:
                parts += self._parts(before)
            wanting = self._made_room()

    def _parts(self, before: I64) -> list[Part]:
        """Where the kernel's time went since the books were `before`: of each phase the mean over the utterances."""
        stamps, begin, end = self._arrays.stamps_here.numpy(), before[:, layout.NEXT], self.books[:, layout.NEXT]
        frame = np.arange(stamps.shape[1])
        done = (frame >= begin[:, None]) & (frame < end[:, None])
        spent = np.diff(stamps, axis=2)[done].sum(0) / self.batch
        work = (self.books - before).sum(0)
        tokens, arcs, followed, touched, entries, kept = work[layout.TOKENS :].tolist()
        counts = (touched, 0, 0), (touched, kept, 0), (entries, touched, kept), (tokens, arcs, 0)
        rounds = followed, touched, int(work[layout.ROUND])
        return [
            Part(self._ids[f"search.{phase}"], round(ns), given)
            for phase, ns, given in zip(layout.PHASES, spent.tolist(), (*counts, rounds), strict=True)
        ]

    def _made_room(self) -> bool:
        """Whether utterances stopped for want of room, which there now is. Those that lost all tokens have no frame."""
        status = self.books[:, layout.STATUS]
        for b in np.flatnonzero(status == layout.NO_TOKENS).tolist():
            self.utterances[b].lost = True
            self.books[b, layout.LENGTH] = 0
        short = status == layout.NEED_ROOM
        if short.any():
            self._work.at_once(partial(self._arrays.enlarge_lists, np.flatnonzero(short)))
            self.books[short, layout.M] = 0
        full = np.flatnonzero(status == layout.NEED_HISTORY).tolist()
        for b in full:
            self._collect(b)
        return bool(short.any() or full)

    def _collect(self, b: int) -> None:
        """Drop history that no token leads to; enlarge it where more than half stays in use."""
        import torch

        arrays, book = self._arrays, self.books[b]
        n, used, side = (int(book[which]) for which in (layout.N, layout.USED, layout.SIDE))
        row = layout.ENTRY + side
        here = self._work.at_once(lambda: [arrays.history[b, :used].cpu(), arrays.lists[b, row, :n].cpu()])
        entries, tokens = (column.numpy() for column in here)
        kept = collect_paths(entries, tokens)
        grows = 2 * (kept + int(book[layout.M])) > arrays.history.shape[1]

        def put() -> None:
            arrays.history[b, :kept] = torch.from_numpy(entries[:kept]).to(arrays.device.where)
            arrays.lists[b, row, :n] = torch.from_numpy(tokens).to(arrays.device.where)
            if grows:
                arrays.enlarge_history()

        self._work.at_once(put)
        book[layout.USED] = kept
        self.utterances[b].forget_path()

    def _tell(self) -> None:
        """Let the next launches know the settings."""
        import torch

        config, graph = self._config, self.graph
        # In the order of `layout`, from BEAM to STAMPED.
        numbers = (
            *(self.beam, BEAM_DELTA, config.max_active, config.min_active, config.insertion_penalty),
            *(config.acoustic_scale, graph.n_epsilon_states, graph.start, self._prune_last, self.stamped),
        )
        here = torch.tensor([float(number) for number in numbers], dtype=torch.float64)
        self._work.device.run(COMPUTE, lambda: self._arrays.numbers.copy_(here))
