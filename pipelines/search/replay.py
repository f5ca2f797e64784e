"""A block of the search repeated with its data hot: the time it takes less is waiting for memory.

Before the block, what `advance` changes is copied; before each repeat it is restored, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipelines.search.kernels import layout
from pipelines.search.viterbi import Viterbi
from profiler.arrays import F32, Array
from profiler.recording.lanes import Lane
from profiler.recording.layout import SPAN


class SearchReplay:
    """Runs blocks of `viterbi` again. Of its buffers only what is used is ever touched."""

    def __init__(self, viterbi: Viterbi) -> None:
        self.viterbi = viterbi
        self._space = viterbi._space
        arrays = self._space.arrays
        self._columns = arrays.tokens, arrays.emitting[:5], arrays.epsilons[:4]
        self._buffers = [[np.empty_like(column) for column in group] for group in self._columns]
        self._decoder_state = np.zeros(layout.N_DECODER_STATE, np.int64)
        self._floats = np.zeros(layout.N_FLOATS, np.float64)
        self._collected = -1
        self._lost = False

    def keep(self) -> None:
        """Copy what the next `advance` changes. What is only appended to, such as the history, needs no copy."""
        books = self._space.books
        self._decoder_state[:], self._floats[:] = books.decoder_state, books.floats
        self._collected, self._lost = self._space.collected, self.viterbi.lost
        for column, buffer in self._used():
            buffer[:] = column

    @property
    def repeatable(self) -> bool:
        """Whether the block kept can be done again: some token lived, and the history was not collected since."""
        return not self._lost and self._collected == self._space.collected

    def take_over(self, kept: SearchReplay) -> None:
        """Keep what `kept` (`repeatable`) keeps of another search over the same graph, whose arrays lie elsewhere."""
        self._decoder_state[:], self._floats[:] = kept._decoder_state, kept._floats
        self._lost, self._collected = kept._lost, self._space.collected
        for (_, buffer), (_, given) in zip(self._used(), kept._used(), strict=True):
            buffer[:] = given
        books, lattice = kept._space.books, kept._space.arrays.lattice
        self._space.reserve(len(books.history), len(lattice.delta))
        used, others = self._decoder_state[[layout.HISTORY, layout.ALTERNATIVES]].tolist()
        self._space.books.history[:used] = books.history[:used]
        self._space.arrays.lattice.alternative[:others] = lattice.alternative[:others]
        self._space.arrays.lattice.delta[:others] = lattice.delta[:others]

    def again(self, scores: F32 | Sequence[F32], first_frame: int, lane: Lane) -> dict[str, int]:
        """Repeat the block kept before, or several from it on; the ns of each stage by its name, {} if not
        `repeatable`.

        `scores`, `first_frame`: as passed to `advance`: of the block, or of the blocks one by one; if the active
        senones were read before each frame, of the frames f32 [n_senones] one by one. `lane`: used for this alone.
        """
        if not self.repeatable:
            return {}
        lane.take()
        books, arrays = self._space.books, self._space.arrays
        books.decoder_state[:], books.floats[:] = self._decoder_state, self._floats
        self.viterbi.lost = self._lost
        for column, buffer in self._used():
            column[:] = buffer
        # Of states without a token it does not matter what the slots hold (`sparse_set`).
        living = int(self._decoder_state[layout.M])
        arrays.places.slot[arrays.tokens.state[:living]] = np.arange(living, dtype=np.uint32)
        latest = self.viterbi._latest
        if isinstance(scores, np.ndarray):
            self.viterbi.advance(scores, first_frame, lane)
        else:
            frame = first_frame
            for part in scores:
                if part.ndim == 1:
                    self.viterbi.active_senones(lane)
                block = part[None] if part.ndim == 1 else part
                self.viterbi.advance(block, frame, lane)
                frame += len(block) * self.viterbi.subsampling
        self.viterbi._latest = latest
        spans = np.frombuffer(lane.take(), SPAN)
        names = {number: name for name, number in self.viterbi._stage.items()}
        return {
            names[number]: int(spans["duration_ns"][spans["stage"] == number].sum())
            for number in np.unique(spans["stage"]).tolist()
        }

    def _used(self) -> Iterator[tuple[Array, Array]]:
        """The parts of the search's columns that are in use at the state kept, each with its buffer."""
        state = self._decoder_state
        lengths = state[layout.M], state[layout.EMITTING], state[layout.EPSILONS]
        for columns, buffers, length in zip(self._columns, self._buffers, lengths, strict=True):
            for column, buffer in zip(columns, buffers, strict=True):
                yield column[:length], buffer[:length]
