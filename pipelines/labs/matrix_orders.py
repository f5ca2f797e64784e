"""Lab `matrix-orders`: a matrix product by element, by column, whole and in blocks, in numpy, numba and torch.

After "Dive into Deep Learning" § 12.5: A = BC four ways, 256 × 256. One thread, float32, every matrix in C order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config.options import setting
from pipelines.labs.chart import Axis, Bars, Chart, Line, Mark, Values
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.figures import between, columns, ratio, ratio_apart, seconds
from pipelines.labs.texts import told
from pipelines.labs.verdicts import Finding, all_of, at_least
from profiler.arrays import F32

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk, Times

ORDERS: Final = ("element", "column", "whole", "blocks")
LIBRARIES: Final = ("numpy", "numba", "torch")

KEPT_IN_BLOCKS: Final = 0.5
"""Blocks count as practical if they keep half of the rate of the whole product: the note gives no number, and its
source measured 0.5 to 1."""

FLOAT: Final = 4
"""Bytes."""

LARGEST_BY_ELEMENT: Final = 512
"""Beyond, one product by element takes seconds in Python."""


class Sizes(Parameters, frozen=True, kw_only=True):
    """What may be changed."""

    n: Annotated[
        int,
        setting("Size", "Rows and columns of the square matrices.", ge=8, le=LARGEST_BY_ELEMENT),
    ] = 256
    block: Annotated[int, setting("Block", "Columns that are taken at a time.", ge=1, le=4096)] = 64
    largest: Annotated[
        int,
        setting(
            "Largest size",
            "The sweep over the levels of cache goes in powers of two up to this size.",
            ge=8,
            le=16384,
        ),
    ] = 2048
    seconds: Annotated[
        float, setting("Time", "What the measurement may take.", unit="s", ge=0.0, le=600.0)
    ] = 26.0
    threads: Annotated[int, setting("Threads", "Of BLAS and torch.", ge=1, le=256)] = 1


class Orders(Measured, frozen=True, kw_only=True):
    """Seconds per product by round: `at_n` by "library order", `by_size` by order and by size, `by_block` by block."""

    n: int
    block: int
    at_n: dict[str, list[float]]
    sizes: list[int]
    by_size: dict[str, list[list[float]]]
    blocks: list[int]
    by_block: list[list[float]]
    cache_bytes: dict[int, int]


def products(n: int, block: int) -> dict[str, Callable[[], object]]:
    """The products of two drawn matrices [n, n], by "library order"; each writes into an array of its own.

    What they return is that array, or torch's tensor.
    """
    import torch

    from pipelines.labs import _matrix_kernels as kernels

    b, c = drawn(n)
    out = {
        f"{library} {order}": np.zeros((n, n), np.float32)
        for library in LIBRARIES
        for order in ORDERS
    }
    made: dict[str, Callable[[], object]] = {**numpy_products(b, c, block)}
    loops: dict[str, Callable[[F32], None]] = {
        "element": lambda a: kernels.by_element(b, c, a),
        "column": lambda a: kernels.by_column(b, c, a),
        "whole": lambda a: kernels.by_row(b, c, a),
        "blocks": lambda a: kernels.in_blocks(b, c, a, block),
    }
    for order, loop in loops.items():
        made[f"numba {order}"] = _returning(loop, out[f"numba {order}"])
    tb, tc, ta = torch.from_numpy(b), torch.from_numpy(c), torch.zeros(n, n)

    def torch_element() -> object:
        for i in range(n):
            for j in range(n):
                ta[i, j] = torch.dot(tb[i], tc[:, j])
        return ta

    def torch_columns(width: int) -> object:
        for j in range(0, n, width):
            ta[:, j : j + width] = tb @ tc[:, j : j + width]
        return ta

    made["torch element"] = torch_element
    made["torch column"] = lambda: torch_columns(1)
    made["torch whole"] = lambda: torch.mm(tb, tc, out=ta)
    made["torch blocks"] = lambda: torch_columns(block)
    return made


def numpy_products(b: F32, c: F32, block: int) -> dict[str, Callable[[], F32]]:
    """The products b c in numpy, as the note's source writes them."""
    n = len(b)
    a = np.zeros((n, n), np.float32)

    def element() -> F32:
        for i in range(n):
            for j in range(n):
                a[i, j] = np.dot(b[i], c[:, j])
        return a

    def columns(width: int) -> F32:
        for j in range(0, n, width):
            a[:, j : j + width] = np.dot(b, c[:, j : j + width])
        return a

    def column() -> F32:
        for j in range(n):
            a[:, j] = np.dot(b, c[:, j])
        return a

    def whole() -> F32:
        np.dot(b, c, out=a)
        return a

    return {
        "numpy element": element,
        "numpy column": column,
        "numpy whole": whole,
        "numpy blocks": lambda: columns(block),
    }


def _returning(loop: Callable[[F32], None], out: F32) -> Callable[[], F32]:
    def run() -> F32:
        loop(out)
        return out

    return run


def drawn(n: int) -> tuple[F32, F32]:
    """Two matrices [n, n] of values around 0, so that sums stay small."""
    draw = np.random.default_rng(0)
    b, c = (draw.standard_normal((n, n), np.float32) for _ in range(2))
    return b, c


def measure(sizes: Sizes, desk: Desk) -> Orders:
    """The four orders at one size, then columns, whole and blocks over the sizes, then blocks of several widths."""
    import torch  # noqa: F401  # before threads are limited, so that its own are

    from pipelines.labs.desk import per_call

    n, block = sizes.n, min(sizes.block, sizes.n)

    with desk.threads(sizes.threads):
        arms = products(n, block)
        law = per_call({"gemm": 2.0 * n**3}, 3.0 * FLOAT * n * n)
        at_n: Times = {}
        # By element one product takes as long as hundreds of the others: in the same turns these would have few rounds.
        for by_element, first, last in ((False, 0.0, 0.3), (True, 0.3, 0.5)):
            some = {k: call for k, call in arms.items() if k.endswith("element") == by_element}
            with desk.part(first, last):
                at_n |= desk.turns(
                    some,
                    seconds=(last - first) * sizes.seconds,
                    costs=dict.fromkeys(some, law),
                    what=f"products of {n} × {n}",
                )
        steps = [1 << k for k in range(4, 15) if 1 << k <= sizes.largest]
        by_size: dict[str, list[list[float]]] = {order: [] for order in ORDERS[1:]}
        with desk.part(0.5, 0.85):
            for place, size in enumerate(steps):
                with desk.part(place / len(steps), (place + 1) / len(steps)):
                    found = _sweep(desk, size, block, sizes.seconds * 0.35 / len(steps))
                for order, times in by_size.items():
                    times.append(found[f"numpy {order} {size}"])
        widths = [1 << k for k in range(12) if 1 << k <= n]
        with desk.part(0.85, 1.0):
            by_block = _widths(desk, n, widths, sizes.seconds * 0.15)
    return Orders(
        n=n,
        block=block,
        at_n=at_n,
        sizes=steps,
        by_size=by_size,
        blocks=widths,
        by_block=by_block,
        cache_bytes=desk.cache_bytes,
    )


def _sweep(desk: Desk, size: int, block: int, seconds: float) -> Times:
    made = numpy_products(*drawn(size), min(block, size))
    arms = {f"numpy {order} {size}": made[f"numpy {order}"] for order in ORDERS[1:]}
    return desk.turns(arms, seconds=seconds, what=f"products of {size} × {size}")


def _widths(desk: Desk, n: int, widths: list[int], seconds: float) -> list[list[float]]:
    b, c = drawn(n)
    arms = {f"numpy blocks of {w}": numpy_products(b, c, w)["numpy blocks"] for w in widths}
    found = desk.turns(arms, seconds=seconds, what=f"blocks of {n} × {n}")
    return list(found.values())


def bytes_needed(sizes: Sizes) -> int:
    """Three matrices of the largest size; at the size of the four orders one result for each as well."""
    most = max(sizes.largest, sizes.n)
    return 3 * FLOAT * most**2 + len(LIBRARIES) * len(ORDERS) * FLOAT * sizes.n**2


def judge(found: Orders) -> Finding:
    """In numpy: each order slower than the next, and blocks at half of the whole's rate or more."""
    element, column, whole, blocks = (found.at_n[f"numpy {order}"] for order in ORDERS)
    element_over_column, column_over_whole = ratio_apart(element, column), ratio(column, whole)
    kept = ratio(whole, blocks)
    verdict = all_of(
        at_least(element_over_column, 1.0),
        at_least(column_over_whole, 1.0),
        at_least(kept, KEPT_IN_BLOCKS),
    )
    rate = {key: 2e-9 * found.n**3 / seconds(times) for key, times in found.at_n.items()}
    why = (
        f"At {found.n} × {found.n} in numpy, by column is {told(element_over_column)} times as fast as by element, "
        f"the whole {told(column_over_whole)} times as fast as by column, and blocks of {found.block} columns keep "
        f"{told(kept)} of the whole's rate of {rate['numpy whole']:.3g} GFLOP/s."
    )
    figures: dict[str, float | None] = {
        "element_over_column": element_over_column.ratio if element_over_column else None,
        "column_over_whole": column_over_whole.ratio if column_over_whole else None,
        "blocks_share_of_whole": kept.ratio if kept else None,
    }
    figures |= {f"{key.replace(' ', '_')}_flops_per_s": 1e9 * value for key, value in rate.items()}
    return Finding(verdict, why, figures)


def _rates(times: list[list[float]], operations: list[float]) -> tuple[Values, Values, Values]:
    """GFLOP/s with the interval of each."""
    pairs = zip(times, operations, strict=True)
    return columns([between(each, lambda s, n=n: 1e-9 * n / s) for each, n in pairs])  # type: ignore[misc]


def picture(found: Orders) -> Chart:
    """Rates by order and library; beside it by size, with the sizes that each cache just holds, and by block."""
    operations = 2.0 * found.n**3
    bars = []
    for library in LIBRARIES:
        times = [found.at_n[f"{library} {order}"] for order in ORDERS]
        bars.append(Bars(library, *_rates(times, [operations] * len(ORDERS))))
    lines = []
    for order, times in found.by_size.items():
        rates = _rates(times, [2.0 * n**3 for n in found.sizes])
        lines.append(Line(order, tuple(map(float, found.sizes)), *rates))
    fits = [
        Mark(f"3 matrices fill L{level}", (size / 3 / FLOAT) ** 0.5, on="x")
        for level, size in found.cache_bytes.items()
    ]
    by_block = _rates(found.by_block, [operations] * len(found.blocks))
    rate = Axis("rate", "GFLOP/s", log=True)
    return Chart(
        Axis("order", categories=("by element", "by column", "whole", f"blocks of {found.block}")),
        rate,
        tuple(bars),
        title=f"{found.n} × {found.n}, float32",
        beside=(
            Chart(Axis("size n", log=True), rate, (*lines, *fits), title="numpy by size"),
            Chart(
                Axis("columns in a block", log=True),
                rate,
                (Line("blocks", tuple(map(float, found.blocks)), *by_block),),
                title=f"numpy by block, {found.n} × {found.n}",
            ),
        ),
    )


LAB = Lab(
    claim="A matrix product goes slowest element by element, faster column by column, fastest whole, and in blocks "
    "nearly as fast.",
    source="note 3 (Dive into Deep Learning, § 12.5)",
    group="caches",
    measured="A = BC in float32 on one thread, four ways in numpy, numba and torch; columns, blocks and the "
    "whole over sizes from L1 to memory, and blocks of every width. By element most of the time is calls, not "
    "caches; numba shows the same order without them. The claim's source timed one cold run; here each way has "
    "many turns.",
    bound="It holds if each order is faster than the one before and blocks keep half of the rate of the whole "
    "product. The claim gives no number; half is ours, and its source measured 0.5 to 1.",
    parameters=Sizes(),
    stored=Orders,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        "holds here": "So: score frames in batches, as one product, and let the library choose the blocks.",
        "does not hold here": "So: on this machine measure the library's product before you write blocks of your own.",
        "undecided": "So: give it more time (--set seconds=120), with nothing else running.",
    },
    bytes_needed=bytes_needed,
)
