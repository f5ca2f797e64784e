"""Only the weights that are not zero: single ones row by row, or blocks of 16 outputs by one input.

To each weight or block belongs a number of 16 bits, its input. Frames lie in the lanes, sixteen by sixteen, so that no
sum has to be folded. From what share of weights on either beats the library's dense product: `asrscope lab sparse`.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numba import njit

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs.nets import product
from pipelines.scoring.dnn.products.base import Product
from pipelines.scoring.simd.tiles import SUMS, make_block_tile, make_sparse_row
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, aligned, begin_of, copy_floats
from pipelines.scoring.thread_pool import Part, shared
from profiler.arrays import Array, ArrayError
from profiler.errors import BadInput
from profiler.process.numba_flags import njit_part
from profiler.spans import Cost

MAX_INPUTS = 1 << 16  # that 16 bits tell apart


@njit_part
def _sparse_fits(starts: Array, columns: Array, values: Array, first: int, last: int) -> bool:
    """Whether rows first … last − 1 begin at `starts` in `columns` and `values`, of which there are as many."""
    count = len(starts) - 1
    if count < 0 or not 0 <= first <= last <= count:
        return False
    return starts[count] == len(columns) and len(columns) == len(values)


@njit_part
def _frames_fit(frames: Array, inputs: int, n: int) -> bool:
    """Whether f32 [n/16, inputs, 16] has room for n frames."""
    return frames.shape[1:] == (inputs, LANES) and len(frames) * LANES >= n


@njit(nogil=True, cache=True)
def _move(x, room):  # type: ignore[no-untyped-def]
    """From [inputs, n]."""
    inputs, n = x.shape
    if not _frames_fit(room, inputs, n):
        raise ArrayError("_move: more frames or inputs than there is room for")
    for begin in range(0, n, LANES):
        to = address(room[begin // LANES], np.float32)
        for i in range(inputs):
            source = address(x, np.float32) + (i * n + begin) * 4
            copy_floats(to + i * VECTOR_BYTES, source, min(LANES, n - begin))


@njit(nogil=True, cache=True)
def _turn(x, room):  # type: ignore[no-untyped-def]
    """From [n, inputs]."""
    n, inputs = x.shape
    if not _frames_fit(room, inputs, n):
        raise ArrayError("_turn: more frames or inputs than there is room for")
    for begin in range(0, n, LANES):
        for i in range(inputs):
            for t in range(begin, min(begin + LANES, n)):
                room[begin // LANES, i, t - begin] = x[t, i]


class _SparseProduct(Product):
    """Base of products that store only some of the weights."""

    into_rows: ClassVar[bool] = False
    at_once: ClassVar[int]  # Frames for which the weights are read once
    few: ClassVar[int]  # Frames up to which they do not lie in the lanes

    def _hold(self, rows: Array, columns: Array, values: Array, count: int, name: str) -> None:
        """Keep what there is, row by row: `rows`, `columns` int64 [n], `values` f32 [n, …], of `count` rows."""
        inputs = self.shape[1]
        if inputs > MAX_INPUTS:
            raise BadInput(f"A layer has {inputs - 1} inputs; dnn.product={name} takes at most {MAX_INPUTS - 1}.")
        self._starts = np.searchsorted(rows, np.arange(count + 1))
        self._columns, self._values = columns.astype(np.uint16), values
        self.nbytes = self._columns.nbytes + values.nbytes + self._starts.nbytes
        self.held, self._count = values.size, count
        self._frames = aligned((-(-self._max_frames // LANES), inputs, LANES))

    @property
    def _sparse(self) -> tuple[Array, Array, Array]:
        """`starts` int64 [rows + 1]: where a row begins in `columns` uint16 and `values`, numbers or vectors."""
        return self._starts, self._columns, self._values

    def _by_sixteen(self, x: Array) -> Array:
        """x f32 [inputs, n], in C or F order, as f32 [n/16, inputs, 16]; what lies beyond n stays as it was."""
        if x.flags.c_contiguous:
            _move(x, self._frames)
        else:
            _turn(np.ascontiguousarray(x.T), self._frames)
        return self._frames

    def _bind(self, x: Array, out: Array) -> Callable[[], None]:
        count, threads = self._count, self.threads(x.shape[1])
        if x.shape[1] <= self.few:
            few = self._few(x, out)
            return lambda: shared(few, count, threads)

        def once() -> None:
            shared(self._many(self._by_sixteen(x), out), count, threads)

        return once

    @abstractmethod
    def _few(self, x: Array, out: Array) -> Part:
        """What computes a thread's rows of `out` from x f32 [inputs, n]."""

    @abstractmethod
    def _many(self, frames: Array, out: Array) -> Part:
        """The same, from frames as `_by_sixteen` gives them."""

    def cost(self, frame: float, times: float) -> Cost:
        """Law of the weights that there are, zeros of blocks among them, and their columns.

        At most the weights once per tile of frames; activations also put side by side, and a value of each frame read
        again for each weight, or block of them.
        """
        outputs, inputs = self.shape
        there = float(len(self._columns))
        most = self.nbytes / self.at_once + FLOAT * (3.0 * inputs + there + 3.0 * outputs)
        return product(self, frame, times, most, multiplied=self._values.size)


ROW_VECTORS = 2  # Vectors of sixteen frames at once; four find less of their frames in the first cache
_row_1, _row_2 = make_sparse_row(1), make_sparse_row(ROW_VECTORS)


@njit(nogil=True, cache=True)
def _multiply_rows(
    starts: Array, columns: Array, values: Array, inputs: int, frames: Array, out: Array, first: int, last: int
) -> None:
    """Rows first … last − 1 of out f32 [outputs, n], from `frames` f32 [n/16, inputs, 16] as `_by_sixteen` gives them.

    The columns are below `inputs`.
    """
    outputs, n = out.shape
    if (
        len(starts) != outputs + 1
        or not _sparse_fits(starts, columns, values, first, last)
        or not _frames_fit(frames, inputs, n)
    ):
        raise ArrayError("_multiply_rows: rows, frames and outputs do not fit each other")
    rest = np.empty(ROW_VECTORS * LANES, np.float32)
    x_next = frames.shape[1] * VECTOR_BYTES
    for t in range(0, n, ROW_VECTORS * LANES):
        x, left = address(frames[t // LANES], np.float32), n - t
        for o in range(first, last):
            begin = starts[o]
            count = starts[o + 1] - begin
            v = address(values, np.float32) + 4 * begin
            c = address(columns, np.uint16) + 2 * begin
            to = address(out, np.float32) + (o * n + t) * 4
            if left >= ROW_VECTORS * LANES:
                _row_2(v, c, count, x, x_next, to)
            elif left == LANES:
                _row_1(v, c, count, x, x_next, to)
            else:
                if left > LANES:
                    _row_2(v, c, count, x, x_next, address(rest, np.float32))
                else:
                    _row_1(v, c, count, x, x_next, address(rest, np.float32))
                copy_floats(to, address(rest, np.float32), left)


# No leave to reassociate: of four loads LLVM would make one gather, which here takes thrice as long.
@njit(nogil=True, cache=True, fastmath={"contract"})
def _multiply_one(
    starts: Array, columns: Array, values: Array, inputs: int, x: Array, out: Array, first: int, last: int
) -> None:
    """The same at one frame: x f32 [inputs], out f32 [outputs]."""
    if len(x) != inputs or len(starts) != len(out) + 1 or not _sparse_fits(starts, columns, values, first, last):
        raise ArrayError("_multiply_one: rows and outputs do not fit each other")
    for o in range(first, last):
        begin, end = np.uint64(starts[o]), np.uint64(starts[o + 1])
        a = b = c = d = np.float32(0)
        i = begin
        while i + np.uint64(SUMS) <= end:
            a += values[i] * x[columns[i]]
            b += values[i + np.uint64(1)] * x[columns[i + np.uint64(1)]]
            c += values[i + np.uint64(2)] * x[columns[i + np.uint64(2)]]
            d += values[i + np.uint64(3)] * x[columns[i + np.uint64(3)]]
            i += np.uint64(SUMS)
        while i < end:
            a += values[i] * x[columns[i]]
            i += np.uint64(1)
        out[o] = (a + b) + (c + d)


class Csr(_SparseProduct):
    """Those that are not zero, in compressed sparse rows (Yu, Seide, Li & Deng 2012).

    One weight meets sixteen frames in one multiplication; one frame alone is gathered value by value, which no vector
    helps: each weight costs an index, a gathered value and a multiplication where the dense row is read as fast as
    memory gives it. At four frames twelve of sixteen lanes are idle, and the library is weak, too.
    """

    rate: ClassVar[float] = 28e9
    at_once: ClassVar[int] = ROW_VECTORS * LANES
    few: ClassVar[int] = 1

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        """BadInput for more inputs than 16 bits tell apart."""
        super().__init__(weight, threads, max_frames)
        rows, columns = np.nonzero(weight)
        self._hold(rows, columns, weight[rows, columns], len(weight), "csr")

    def _few(self, x: Array, out: Array) -> Part:
        arguments = *self._sparse, self.shape[1], x[:, 0], out[:, 0]
        return lambda _, first, last: _multiply_one(*arguments, first, last)

    def _many(self, frames: Array, out: Array) -> Part:
        arguments = *self._sparse, self.shape[1], frames, out
        return lambda _, first, last: _multiply_rows(*arguments, first, last)


FEW = 8  # Frames up to which the outputs lie in the lanes
_few, _sixteen = make_block_tile((1, 2, 4, 8), True), make_block_tile([LANES], False)


@njit_part
def _panels_fit(starts: Array, columns: Array, blocks: Array, out: Array, first: int, last: int) -> bool:
    """Whether there are panels first … last − 1 of whole blocks, and these make rows of `out`."""
    return (
        _sparse_fits(starts, columns, blocks, first, last)
        and blocks.shape[1] == LANES
        and (last == first or (last - 1) * LANES < len(out))
    )


@njit(nogil=True, cache=True)
def _multiply_few(
    starts: Array, columns: Array, blocks: Array, x: tuple[int, int, int], out: Array, first: int, last: int
) -> None:
    """Rows of out f32 [outputs, n ≤ 8] that the panels first … last − 1 make, from x f32 [inputs, n].

    `x`: its address, and the bytes from a frame to the next and from an input to the next.
    """
    outputs, n = out.shape
    if n > FEW or not _panels_fit(starts, columns, blocks, out, first, last):
        raise ArrayError("_multiply_few: blocks and outputs do not fit each other")
    sums = np.empty((LANES, LANES), np.float32)
    (here, x_frame, x_input), to = x, address(sums, np.float32)
    for p in range(first, last):
        begin = starts[p]
        count = starts[p + 1] - begin
        b = address(blocks, np.float32) + begin * VECTOR_BYTES
        c = address(columns, np.uint16) + begin * 2
        t = 0
        while t < n:
            left = n - t
            frames = 8 if left >= 8 else 4 if left >= 4 else 2 if left >= 2 else 1
            at, row = (here + t * x_frame, x_frame, x_input), (to + t * VECTOR_BYTES, VECTOR_BYTES)
            _few(frames, b, c, count, at, row)
            t += frames
        for i in range(min(LANES, outputs - p * LANES)):
            for f in range(n):
                out[p * LANES + i, f] = sums[f, i]


@njit(nogil=True, cache=True)
def _multiply_many(
    starts: Array, columns: Array, blocks: Array, inputs: int, frames: Array, out: Array, first: int, last: int
) -> None:
    """The same of any number of frames f32 [n/16, inputs, 16], as `_by_sixteen` gives them.

    The columns are below `inputs`.
    """
    outputs, n = out.shape
    if not _frames_fit(frames, inputs, n) or not _panels_fit(starts, columns, blocks, out, first, last):
        raise ArrayError("_multiply_many: blocks, frames and outputs do not fit each other")
    sums = np.empty((LANES, LANES), np.float32)
    for p in range(first, last):
        begin = starts[p]
        count = starts[p + 1] - begin
        b = address(blocks, np.float32) + begin * VECTOR_BYTES
        c = address(columns, np.uint16) + begin * 2
        rows = min(LANES, outputs - p * LANES)
        for t in range(0, n, LANES):
            x = address(frames[t // LANES], np.float32), 4, VECTOR_BYTES
            to = address(out, np.float32) + (p * LANES * n + t) * 4
            if rows == LANES and n - t >= LANES:
                _sixteen(LANES, b, c, count, x, (to, n * 4))
                continue
            _sixteen(LANES, b, c, count, x, (address(sums, np.float32), VECTOR_BYTES))
            for i in range(rows):
                at = address(sums, np.float32) + i * VECTOR_BYTES
                copy_floats(to + i * n * 4, at, min(LANES, n - t))


class Blocks(_SparseProduct):
    """Panels of 16 outputs, of which zeros fill up the last; only the blocks in which a weight is not zero.

    Sixteen weights that are kept or cut together are what one register holds (Narang, Undersander & Diamos 2017 prune
    nets in such blocks). Up to eight frames the outputs lie in the lanes, beyond that the frames do, and no result has
    to be turned. It pays wherever fewer than all blocks are left: the weights need not be put into order in every call,
    as the library does. At one frame a good part of so short a call is Python's.
    """

    rate: ClassVar[float] = 50e9
    at_once: ClassVar[int] = LANES
    few: ClassVar[int] = FEW

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        """BadInput for more inputs than 16 bits tell apart."""
        super().__init__(weight, threads, max_frames)
        outputs, inputs = self.shape
        count = -(-outputs // LANES)
        padded = np.zeros((count * LANES, inputs), np.float32)
        padded[:outputs] = weight
        panels = padded.reshape(count, LANES, inputs).transpose(0, 2, 1)
        owners, columns = np.nonzero(panels.any(2))
        blocks = aligned((len(columns), LANES))
        blocks[:] = panels[owners, columns]
        self._hold(owners, columns, blocks, count, "blocks")

    def _few(self, x: Array, out: Array) -> Part:
        sparse, at, kept = self._sparse, (begin_of(x), x.strides[1], x.strides[0]), x

        def part(thread: int, first: int, last: int) -> None:
            assert kept is not None, "whose address it is"
            _multiply_few(*sparse, at, out, first, last)

        return part

    def _many(self, frames: Array, out: Array) -> Part:
        arguments = *self._sparse, self.shape[1], frames, out
        return lambda _, first, last: _multiply_many(*arguments, first, last)
