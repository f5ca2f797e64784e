"""Lab `matrix-orders`: a matrix product by element, by column, whole and in blocks, in numpy, numba and torch.

After "Dive into Deep Learning" § 12.5: A = BC four ways, 256 × 256. One thread, float32, every matrix in C order.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Final

import numpy as np

from pipelines.labs.chart import Axis, Chart, Mark
from pipelines.labs.declaration import Lab, Parameters, Seconds, setting
from pipelines.labs.desk import Desk, cache_bytes, computing_on, per_call
from pipelines.labs.figures import ci, ratio_apart, value
from pipelines.labs.sweep import Sweep, SweepResult, Work, run_all
from pipelines.labs.verdicts import Finding, all_of, at_least
from profiler.arrays import F32

ORDERS: Final = ("element", "column", "whole", "blocks")
LIBRARIES: Final = ("numpy", "numba", "torch")
FLOAT: Final = 4  # Bytes
LARGEST_BY_ELEMENT: Final = 512  # Beyond, one product by element takes seconds in Python


class Params(Parameters, frozen=True, kw_only=True):
    n: Annotated[int, setting("Size", "Rows and columns of the square matrices.", ge=8, le=LARGEST_BY_ELEMENT)] = 256
    block: Annotated[int, setting("Block", "Columns that are taken at a time.", ge=1, le=4096)] = 64
    largest: Annotated[int, setting("Largest size", "They go in powers of two up to it.", ge=8, le=16384)] = 2048
    seconds: Seconds = 26.0
    threads: Annotated[int, setting("Threads", "Of BLAS and torch.", ge=1, le=256)] = 1


def products(n: int, block: int) -> dict[str, Work]:
    """The products of two drawn matrices [n, n], by "library order"; each writes into its own array, and returns it."""
    import torch

    from pipelines.labs import _kernels as kernels

    b, c = drawn(n)
    made: dict[str, Work] = {**numpy_products(b, c, block)}
    loops: dict[str, Callable[[F32], None]] = {
        "element": lambda a: kernels.by_element(b, c, a),
        "column": lambda a: kernels.by_column(b, c, a),
        "whole": lambda a: kernels.by_row(b, c, a),
        "blocks": lambda a: kernels.in_blocks(b, c, a, block),
    }
    for order, loop in loops.items():
        made[f"numba {order}"] = partial(_filled, np.zeros((n, n), np.float32), loop)
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

    def product() -> F32:
        np.dot(b, c, out=a)
        return a

    return {
        "numpy element": element,
        "numpy column": column,
        "numpy whole": product,
        "numpy blocks": lambda: columns(block),
    }


def _filled(out: F32, loop: Callable[[F32], None]) -> F32:
    loop(out)
    return out


def drawn(n: int) -> tuple[F32, F32]:
    """Two matrices [n, n] of values around 0, so that sums stay small."""
    draw = np.random.default_rng(0)
    b, c = (draw.standard_normal((n, n), np.float32) for _ in range(2))
    return b, c


def sweeps(params: Params) -> list[Sweep]:
    """The four orders at one size, then columns, whole and blocks over the sizes, then blocks of several widths.

    By element one product takes as long as hundreds of the others: in the same turns these would have few rounds.
    """

    n, block = params.n, min(params.block, params.n)
    variants = products(n, block)
    law = per_call({"gemm": 2.0 * n**3}, 3.0 * FLOAT * n * n)

    def at_n(share: float, by_element: bool) -> Sweep:
        some = {name: work for name, work in variants.items() if name.endswith("element") == by_element}
        what = "products of {size} × {size}"
        return Sweep(lambda _: some, [n], what, "{variant}", cost=lambda variant, size: law, share=share)

    b, c = drawn(n)
    sizes = [1 << k for k in range(4, 15) if 1 << k <= params.largest]
    widths = [1 << k for k in range(12) if 1 << k <= n]

    def in_numpy(size: int) -> dict[str, Work]:
        made = numpy_products(*drawn(size), min(block, size))
        return {order: made[f"numpy {order}"] for order in ORDERS[1:]}

    def in_blocks(width: int) -> dict[str, Work]:
        return {"blocks": numpy_products(b, c, width)["numpy blocks"]}

    return [
        at_n(0.3, by_element=False),
        at_n(0.2, by_element=True),
        Sweep(in_numpy, sizes, "products of {size} × {size}", "numpy {variant} {size}", share=0.35),
        Sweep(in_blocks, widths, f"blocks of {n} × {n}", "numpy {variant} of {size}", together=True, share=0.15),
    ]


def measure(params: Params, desk: Desk) -> SweepResult:
    import torch  # noqa: F401  # before threads are limited, so that its own are

    with computing_on(params.threads):
        quick, by_element, sizes, blocks = run_all(desk, params.seconds, sweeps(params))
    return SweepResult(
        timings=quick.joined(by_element),
        more={"sizes": sizes, "blocks": blocks},
        counts={"block": min(params.block, params.n)},
        cache_bytes=cache_bytes(),
    )


def gflops_per_s(n: int, seconds: float) -> float:
    return 2e-9 * n**3 / seconds


def judge(result: SweepResult) -> Finding:
    timings = result.timings
    element, column, whole, blocks = (f"numpy {order}" for order in ORDERS)
    # By element and by column are not of the same turns.
    element_over_column = ratio_apart(timings.rounds(element), timings.rounds(column))
    column_over_whole, kept = timings.ratio(column, whole), timings.ratio(whole, blocks)
    n = timings.size(whole)
    rate = gflops_per_s(n, timings.time(whole))
    why = (
        f"At {n} × {n} in numpy, by column is {ci(element_over_column)} times as fast as by element, "
        f"the whole {ci(column_over_whole)} times as fast as by column, and blocks of {result.counts['block']:.0f} "
        f"columns keep {ci(kept)} of the whole's rate of {rate:.3g} GFLOP/s."
    )
    figures: dict[str, float | None] = {
        "element_over_column": value(element_over_column),
        "column_over_whole": value(column_over_whole),
        "blocks_share_of_whole": value(kept),
    }
    figures |= timings.table("{variant}_flops_per_s", lambda n, s: 1e9 * gflops_per_s(n, s))
    verdict = all_of(at_least(element_over_column, 1.0), at_least(column_over_whole, 1.0), at_least(kept, 0.5))
    return Finding(verdict, why, figures)


def picture(result: SweepResult) -> Chart:
    timings, sizes, blocks = result.timings, result.more["sizes"], result.more["blocks"]
    n, block = timings.size("numpy whole"), round(result.counts["block"])
    bars = (
        timings.bars(library, timings.cells(f"{library} {order}" for order in ORDERS), gflops_per_s)
        for library in LIBRARIES
    )
    fits = (
        Mark(f"3 matrices fill L{level}", (size / 3 / FLOAT) ** 0.5, on="x")
        for level, size in result.cache_bytes.items()
    )
    by_size = (sizes.line(order, figure=gflops_per_s) for order in sizes.variants)
    by_block = blocks.line("blocks", figure=lambda _, s: gflops_per_s(n, s))
    rate = Axis("rate", "GFLOP/s", log=True)
    return Chart(
        Axis("order", categories=("by element", "by column", "whole", f"blocks of {block}")),
        rate,
        tuple(bars),
        title=f"{n} × {n}, float32",
        beside=(
            Chart(Axis("size n", log=True), rate, (*by_size, *fits), title="numpy by size"),
            Chart(Axis("columns in a block", log=True), rate, (by_block,), title=f"numpy by block, {n} × {n}"),
        ),
    )


LAB = Lab(
    claim="A matrix product goes slowest element by element, faster column by column, fastest whole, and in blocks "
    "nearly as fast.",
    source="note 3 (Dive into Deep Learning, § 12.5)",
    group="caches",
    measured="A = BC in float32 on one thread, four ways in numpy, numba and torch; columns, blocks and the whole over "
    "sizes from L1 to memory, and blocks of every width. By element most of the time is calls, not caches; numba shows "
    "the same order without them. The claim's source timed one cold run; here each way has many turns.",
    bound="It holds if each order is faster than the one before and blocks keep half of the rate of the whole "
    "product. The claim gives no number; half is ours, and its source measured 0.5 to 1.",
    steps=(measure, judge, picture),
    follows={
        "holds here": "So: score frames in batches, as one product, and let the library choose the blocks.",
        "does not hold here": "So: on this machine measure the library's product before you write blocks of your own.",
    },
    bytes_needed=lambda params: FLOAT * (3 * max(params.largest, params.n) ** 2 + 12 * params.n**2),
)
