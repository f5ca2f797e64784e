"""Constants of `tests.bench.constants` about matrix products and the threads that share them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from threadpoolctl import threadpool_limits

from pipelines.frontend.parameters import STREAMS
from pipelines.scoring.dnn import integers
from pipelines.scoring.dnn.products import FETCHED, Product, blocks, csr, scalar, simd
from pipelines.scoring.gaussians import product
from pipelines.scoring.simd.tiles import make_layer_tile, make_tile
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, aligned
from pipelines.scoring.thread_pool import SHARE_SECONDS, ThreadPool
from pipelines.scoring.tied import kernels
from profiler.arrays import Array
from profiler.machine.roofs.timing import Counted, Effort, clock, rounds

INPUTS, OUTPUTS, FRAMES = 512, 512, 16
LARGE = 2048
"""Inputs and outputs of weights that no cache near a core keeps, 16 MB."""
NEAR = 128
"""Outputs of INPUTS each whose weights take 256 KiB."""
KEPT = 8
"""One weight in KEPT is kept in a sparse layer."""
SHARED = (128, 256, 384, 512, 768, 1024)
"""Outputs of layers of LARGE inputs, that one thread takes or two share."""
DEPTH, PANELS = 27, 16384
"""Numbers of a Gaussian, and panels of 16 of them: 28 MB."""
COMPONENTS = 42
"""Panels of a senones' tile of a continuous model."""
BOOKS, PAIRS, DENSITIES = 42, 4, 128
"""Codebooks, pairs of panels of 16 senones of each, and densities of a stream: 8 MB of weights."""
OTHERS = 3 << 20
"""Floats that are read in between, 12 MB: about as much as a search and the rest of scoring read."""

_four = make_tile(1, 4)


def seconds(call: Callable[[], object]) -> float:
    """Median time of `call` in rounds that nothing disturbed, s."""

    def task(repeats: int) -> None:
        for _ in range(repeats):
            call()

    return _median_s(task)


def _median_s(task: Callable[[int], Any]) -> float:
    repeats, times, _ = rounds(task, Effort(), threads=1)
    return times[len(times) // 2] / repeats


def row(where: str, what: str, stands: object, now: float, unit: str) -> dict[str, Any]:
    """One constant: file and name, what it is, the value in the code, the value measured."""
    return {"where": where, "what": what, "stands": stands, "now": float(f"{now:.3g}"), "unit": unit}


def threads() -> Iterator[dict[str, Any]]:
    """The cost of sharing work with another thread, and from what size on it gains."""
    pool = ThreadPool(2)

    def nothing(i: int, first: int, last: int) -> None:
        return None

    handed = seconds(lambda: pool.share(nothing, [(0, 1), (1, 2)])) * 1e6
    where, limit = "scoring/thread_pool.py SHARE_SECONDS", SHARE_SECONDS * 1e6
    yield row(where, "waking another thread and waiting for it", limit, handed, "µs")
    for outputs in SHARED:
        one, two = (_layer(outputs, n) for n in (1, 2))
        what = f"time on one thread / on two, a layer that takes one {one * 1e6:.0f} µs"
        yield row(where, what, 2 * limit, one / two, "µs, and a ratio")


def _layer(outputs: int, n: int) -> float:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((outputs, LARGE), np.float32)
    made = simd.Weights(weight, n, FRAMES)
    made.threads = lambda frames: n
    x, out = _frames(LARGE, FRAMES), np.empty((outputs, FRAMES), np.float32)
    return seconds(lambda: made.multiply(x, out))


def _frames(inputs: int, frames: int) -> Array:
    x = np.random.default_rng(1).standard_normal((inputs, frames), np.float32)
    x[-1] = 1.0
    return x


def products() -> Iterator[dict[str, Any]]:
    """Multiply-adds a second of each product, the cost of fetching weights, and variants of some kernels."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((OUTPUTS, INPUTS), np.float32)
    some = np.where(rng.random((OUTPUTS // LANES, INPUTS)) < 1 / KEPT, 1.0, 0.0)
    by_block = weight * np.repeat(some, LANES, axis=0).astype(np.float32)
    with threadpool_limits(1):
        for kind, values in ((simd, weight), (scalar, weight), (blocks, by_block), (csr, by_block)):
            made: Product = kind.Weights(values, 1, FRAMES)
            rate = made.held * FRAMES / _taken(made, INPUTS, FRAMES)
            name = kind.__name__.rpartition(".")[2]
            where = f"scoring/dnn/products/{name}.py rate"
            yield row(where, "multiply-adds a second", made.rate / 1e9, rate / 1e9, "G/s")
        large = simd.Weights(rng.standard_normal((LARGE, LARGE), np.float32), 1, FRAMES)
        few, many = (_taken(large, LARGE, n) for n in (2, FRAMES))
        each = (many - few) / (FRAMES - 2)
        fetched = few / each - 2
        where = "scoring/dnn/products/__init__.py FETCHED"
        yield row(where, "frames that take as long as the weights", FETCHED, fetched, "frames")
        yield from _integers()
    yield from _panels()
    yield from _prefetched()
    yield from _sums()


def _taken(made: Product, inputs: int, frames: int) -> float:
    x, out = _frames(inputs, frames), np.empty((made.shape[0], frames), np.float32)
    return seconds(lambda: made.multiply(x, out))


def _integers() -> Iterator[dict[str, Any]]:
    if not integers.TILES:
        return
    rng = np.random.default_rng(0)
    weight = rng.integers(-127, 128, (OUTPUTS, INPUTS), np.int8)
    for frames in (16, 32, 64):
        x = rng.integers(-127, 128, (frames, INPUTS), np.int8)
        products = [kind(weight, 1, frames) for kind in (integers.Panels, integers.Library)]
        ours, library = (seconds(partial(product.sums, x)) for product in products)
        what = f"torch's time / ours, {frames} frames"
        yield row("scoring/dnn/integers.py", what, "", library / ours, "")
        if frames == FRAMES:
            rate = weight.size * frames / ours / 1e9
            where = "scoring/dnn/integers.py RATE"
            yield row(where, "multiply-adds a second", integers.RATE / 1e9, rate, "G/s")


@njit(nogil=True)
def _four_at_once(a: int, b: int, panels: int, k: int, c: int) -> None:  # pragma: no cover
    for p in range(0, panels, 4):
        at = b + p * k * VECTOR_BYTES
        _four((a, 0), (at, k * VECTOR_BYTES), k, (c + p * VECTOR_BYTES, 0), False, 0)


def _panels() -> Iterator[dict[str, Any]]:
    """Bytes a second of Gaussians in memory, scored for one frame, one panel or four at a time."""
    x, panels = aligned((DEPTH,)), aligned((PANELS, DEPTH, LANES))
    out = aligned((PANELS, LANES))
    x[:], panels[:] = 1.0, 1.0
    a, b, c = (_address(array) for array in (x, panels, out))
    one = panels.nbytes / seconds(lambda: product.multiply(a, 0, 1, b, PANELS, DEPTH, c, 0)) / 1e9
    four = panels.nbytes / seconds(lambda: _four_at_once(a, b, PANELS, DEPTH, c)) / 1e9
    where = "scoring/gaussians/product.py"
    yield row(where, "read at one frame, a panel at a time", "", one, "GB/s")
    yield row(where, "read at one frame, four panels at a time", "", four, "GB/s")


@njit(nogil=True)
def _mixed(g: int, weights: int, out: int, prefetch: bool) -> None:  # pragma: no cover
    """Products of FRAMES frames and pairs of panels of weights, in the order of `kernels.mix`."""
    stream = DENSITIES * VECTOR_BYTES
    for i in range(BOOKS * PAIRS):
        for s in range(STREAMS):
            here = weights + 2 * i * STREAMS * stream + s * stream
            later = here + stream * (STREAMS + 1 if s + 1 == STREAMS else 1)
            kernels._multiply(
                (g + (i // PAIRS * STREAMS + s) * DENSITIES * 4, BOOKS * STREAMS * DENSITIES * 4),
                FRAMES,
                (here, STREAMS * stream),
                2,
                DENSITIES,
                (out, 2 * VECTOR_BYTES),
                s > 0,
                later if prefetch else 0,
            )


@njit(nogil=True)
def _in_order(x: int, panels: int, out: int, prefetch: bool) -> None:  # pragma: no cover
    """Products of FRAMES frames and groups of panels of Gaussians, as `kernels.dense` of continuous models."""
    group = COMPONENTS * DEPTH * VECTOR_BYTES
    for i in range(PANELS // COMPONENTS):
        here = panels + i * group
        later = here + group if prefetch else product.NOTHING
        product.multiply(x, DEPTH * 4, FRAMES, here, COMPONENTS, DEPTH, out, later)


def _prefetched() -> Iterator[dict[str, Any]]:
    """Kernels of a block with parameters that no near cache keeps, with and without prefetch of the next ones."""
    g, mixed = aligned((FRAMES, BOOKS, STREAMS, DENSITIES)), aligned((FRAMES, 2 * LANES))
    weights = aligned((BOOKS, PAIRS, 2, STREAMS, DENSITIES, LANES))
    x, gaussians = aligned((FRAMES, DEPTH)), aligned((PANELS, DEPTH, LANES))
    densities, others = aligned((FRAMES, COMPONENTS, LANES)), aligned((OTHERS,))
    for array in (g, weights, x, gaussians):
        array[:] = 0.01

    def kernel_s(kernel: Callable[..., None], places: list[int], prefetch: bool) -> float:
        """After other data, as in a run."""

        def task(repeats: int) -> Counted:
            spent = 0.0
            for _ in range(repeats):
                others.sum()
                began = clock()
                kernel(*places, prefetch)
                spent += clock() - began
            return Counted(spent)

        return _median_s(task)

    for where, what, kernel, arrays in (
        ("scoring/tied/kernels.py mix", "mixtures", _mixed, (g, weights, mixed)),
        ("scoring/gaussians/product.py", "continuous Gaussians", _in_order, (x, gaussians, densities)),
    ):  # fmt: skip
        places = [_address(array) for array in arrays]
        plain, prefetching = (kernel_s(kernel, places, prefetch) for prefetch in (False, True))
        title = f"{what} of {FRAMES} frames: time without asking for the next parameters / with"
        yield row(where, title, "", plain / prefetching, "")


def _of_tiles(tile: Callable[..., None]) -> Callable[[int, int, int, int], None]:
    """A kernel of one frame by `count` panels with a tile of a layer."""

    @njit(nogil=True)
    def kernel(x: int, panels: int, count: int, out: int) -> None:  # pragma: no cover
        for p in range(count):
            tile(x, 0, 4, panels + p * INPUTS * simd.PANEL * 4, INPUTS, 0, out)

    return kernel


def _sums() -> Iterator[dict[str, Any]]:
    """One frame by weights that the second cache keeps: one sum of each output, or several in turn."""
    count = NEAR // simd.PANEL
    x, panels = aligned((INPUTS,)), aligned((count, INPUTS, simd.PANEL))
    x[:], panels[:] = 1.0, 1.0
    out = aligned((simd.PANEL,))
    places = _address(x), _address(panels), count, _address(out)
    kernels = [_of_tiles(tile) for tile in (make_layer_tile(1, simd.VECTORS), simd._tile_1)]
    one, several = (seconds(partial(kernel, *places)) for kernel in kernels)
    what = "one frame by 256 KiB of weights: time with one sum of an output / with several"
    where = "scoring/dnn/products/simd.py CHAINS"
    yield row(where, what, simd.CHAINS**2, one / several, "sums, and a ratio")


@njit
def _address(array: Array) -> int:  # pragma: no cover
    return address(array, np.float32)
