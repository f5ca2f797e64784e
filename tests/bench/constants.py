"""Constants that stand in the code from a measurement, and their values on this machine.

    python -m tests.bench.constants                   all of them, as JSON
    python -m tests.bench.constants --only threads    of one kind: threads, products, calls, system, speech

A constant decides what the program does (how much work is worth a second thread). It need not be the value of this
machine, but a large difference is a reason to look. Those of speech are of librivox-0870 and cards-001, the preset
`gmm`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from math import log
from typing import Any, NamedTuple

import numba
import numpy as np
from msgspec import structs
from threadpoolctl import threadpool_limits

from pipelines.audio import loading
from pipelines.config import presets
from pipelines.models import opening
from pipelines.run.hot_replay import GAIN
from pipelines.run.recogniser import build
from pipelines.scoring.dnn.products import simd
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.strategy import never, quietly
from pipelines.search import adaptive_beam
from pipelines.search.kernels.intrinsics import arrays_in
from pipelines.search.viterbi import Viterbi
from profiler.arrays import I64, Array
from profiler.errors import BadInput
from profiler.machine import run_queue
from profiler.machine.roofs.cpu import GEMM_SIZE
from profiler.spans import Recorder
from tests.bench import _data
from tests.bench._constants_products import products, row, seconds, threads
from tests.bench._rounds import LANE, command_line, scored, timed

SEVERAL = 10
OTHER_BYTES = 32 << 20
"""These push everything else out of the caches near a core."""
WORK_BYTES = 10 << 20
"""Of the work whose passes are compared."""
PASSES, TIMES = 8, 9
FILES = ("librivox-0870", "cards-001")
WIDE, NARROW = 13.0, 10.0
BEAM_TIMES = 5


class Named(NamedTuple):
    """As many arrays as a kernel may take."""

    a: Array
    b: Array
    c: Array
    d: Array
    e: Array
    f: Array
    g: Array
    h: Array
    i: Array
    j: Array


def _first(arrays: tuple[Array, ...]) -> int:
    return len(arrays[0])


def _tabled() -> Callable[[I64], int]:
    """`_first` of arrays in a table."""
    arrays_at = arrays_in([[np.dtype(np.float32)] * SEVERAL])

    @numba.njit(_nrt=False)
    def first(table: I64) -> int:  # pragma: no cover - compiled
        return len(arrays_at(table)[0][0])

    return first


def calls() -> Iterator[dict[str, Any]]:
    """A compiled call with arrays in a tuple, in a table, with names, and with counted references."""
    arrays = tuple(np.zeros(1, np.float32) for _ in range(SEVERAL))
    table = np.array([(array.ctypes.data, len(array)) for array in arrays], np.int64)
    free, counting = numba.njit(_nrt=False)(_first), numba.njit(_first)
    in_tuple, in_table = partial(free, arrays), partial(_tabled(), table)
    product = simd.Weights(aligned((LANES, 2)), 1, 1)
    x, out = aligned((2, 1)), aligned((LANES, 1))
    plain, named, tabled, counted, bound, unbound = (
        seconds(call) * 1e6
        for call in (
            in_tuple,
            partial(free, Named(*arrays)),
            in_table,
            partial(counting, arrays),
            product.bind(x, out),
            partial(product.multiply, x, out),
        )
    )
    later = ", after other data had the caches"
    for where, what, now in (
        (
            "scoring/tied/kernels.py and others",
            "a name of a NamedTuple, each call",
            (named - plain) / SEVERAL,
        ),
        ("search/kernels/calls.py", "a call with ten arrays in a tuple", plain),
        ("search/kernels/calls.py", "the same in a NamedTuple", named),
        ("search/kernels/table.py", "a call with ten arrays in a table", tabled),
        *(
            ("search/kernels/table.py", f"a call with ten arrays in a {kind}{later}", _after(OTHER_BYTES, call))
            for kind, call in (("tuple", in_tuple), ("table", in_table))
        ),
        (
            "scoring/dnn/products/__init__.py bind",
            "a small product of one frame, bound to its arrays before",
            bound,
        ),
        ("scoring/dnn/products/__init__.py bind", "the same, bound in every call", unbound),
        (
            "profiler/process/numba_flags.py",
            "references of ten arrays counted, each call",
            counted - plain,
        ),
    ):  # fmt: skip
        yield row(where, what, "", now, "µs")


def system() -> Iterator[dict[str, Any]]:
    """A reading of the run queue, data out of the caches, and the size of a product."""
    with run_queue.RunQueue() as queue:
        if queue.readable:
            where = "profiler/machine/run_queue.py LEAST_AWAY_NS"
            least = run_queue.LEAST_AWAY_NS / 1e3
            hot, cold = _after(0, queue._ready_ns), _after(OTHER_BYTES, queue._ready_ns)
            yield row(where, "a reading, again at once", least, hot, "µs")
            yield row(where, "a reading, after other data had the caches", least, cold, "µs")
    first, *later = _passes()
    where = "pipelines/run/hot_replay.py GAIN"
    yield row(where, "the second pass takes less than the first by", GAIN, 1 - later[0] / first, "")
    gains = [1 - after / before for before, after in pairwise(later)]
    yield row(where, "each later pass than the one before", GAIN, float(np.median(gains)), "")
    small, large = (_gemm(n) for n in (GEMM_SIZE, 2 * GEMM_SIZE))
    where = "profiler/machine/roofs/cpu.py"
    yield row(where, "rate of a product of 512³ / of 1024³", "", small / large, "")


def _after(other_bytes: int, call: Callable[[], object]) -> float:
    """µs of `call`, each time after other data were read; the median."""
    between = np.ones(other_bytes // 8)
    times = []
    for _ in range(51):
        between.sum()
        times.append(timed(call)[1])
    return float(np.median(times)) * 1e6


def _passes() -> list[float]:
    """Median time of each of PASSES sums over WORK_BYTES, the first of which finds them out of the caches."""
    data, other = np.ones(WORK_BYTES // 8), np.ones(OTHER_BYTES // 8)
    times = []
    for _ in range(TIMES):
        other.sum()
        times.append([timed(data.sum)[1] for _ in range(PASSES)])
    return np.median(times, axis=0).tolist()


def _gemm(size: int) -> float:
    """Operations a second."""
    a, b = (np.random.default_rng(0).random((size, size), np.float32) for _ in range(2))
    out = np.empty_like(a)
    with threadpool_limits(1):
        return 2 * size**3 / seconds(lambda: np.matmul(a, b, out=out))


def speech() -> Iterator[dict[str, Any]]:
    """Codebooks that a frame's search needs, and how the time of the search grows with the beam."""
    paths = [_data.HUMAN / f"{name}.flac" for name in FILES]
    for path in paths:
        if not path.is_file():
            raise BadInput(f"The bench needs human speech, and there is no {path}.")
    config = presets.load("gmm").config
    recorder = Recorder()
    recogniser = build(config, recorder, LANE, quietly, never)
    recogniser.register(recorder)
    search = recogniser.search
    assert isinstance(search, Viterbi)
    search.warm_up()
    features = [recogniser.frontend.features(loading.load(path).samples, 0, LANE) for path in paths]
    scores = [scored(recogniser.scorer, each, config.block) for each in features]
    model = opening.open_model(config)
    needed = []
    for utterance in scores:
        search.start(0)
        for frame in range(len(utterance)):
            if frame:
                needed.append(len(np.unique(model.senone_codebook[search.active_senones()])))
            search.advance(utterance[frame : frame + 1], frame)
    what = f"codebooks with a senone that is wanted, of {len(model.means)}"
    yield row("scoring/tied/gmm.py", what, "", float(np.mean(needed)), "")

    def searched() -> None:
        for utterance in scores:
            search.start(0)
            for first in range(0, len(utterance), config.block):
                search.advance(utterance[first : first + config.block], first)

    least = dict.fromkeys((WIDE, NARROW), np.inf)
    for _ in range(BEAM_TIMES):
        for beam in least:
            search.configure(structs.replace(config.search, beam=beam))
            least[beam] = min(least[beam], timed(searched)[1])
    growth = log(least[WIDE] / least[NARROW]) / (WIDE - NARROW)
    where, what = "search/adaptive_beam.py GROWTH", "d ln(time of the search) / d beam, 10 to 13"
    yield row(where, what, adaptive_beam.GROWTH, growth, "")


KINDS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "threads": threads,
    "products": products,
    "calls": calls,
    "system": system,
    "speech": speech,
}


def main(arguments: list[str] | None = None) -> int:
    """Print the rows; 2 where speech is missing."""
    parser = command_line("constants", __doc__)
    parser.add_argument("--only", choices=tuple(KINDS), action="append")
    given = parser.parse_args(arguments)
    try:
        rows = [row for kind in given.only or KINDS for row in KINDS[kind]()]
    except BadInput as error:
        sys.stderr.write(f"{error}\n")
        return 2
    print(json.dumps({"schema": 1, "bench": "constants", "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
