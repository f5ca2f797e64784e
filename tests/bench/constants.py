"""Constants that decide what the program does, and their values on this machine.

    python -m tests.bench.constants                   all of them, as JSON
    python -m tests.bench.constants --only threads    of one kind: threads, products, system, speech

A constant need not be the value of this machine, but a large difference is a reason to look. The one of speech is of
librivox-0870 and cards-001, the preset `gmm`.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import log
from typing import Any

import numpy as np
from msgspec import structs
from threadpoolctl import threadpool_limits

from pipelines.audio import loading
from pipelines.config import presets
from pipelines.run.hot_replay import GAIN
from pipelines.run.recogniser import build
from pipelines.scoring.dnn import integers
from pipelines.scoring.dnn.products import PRODUCTS
from pipelines.scoring.dnn.products.base import FETCHED, Product
from pipelines.scoring.dnn.products.simd import Simd
from pipelines.scoring.simd.vector import LANES
from pipelines.scoring.strategy import never, quietly
from pipelines.scoring.thread_pool import SHARE_SECONDS, ThreadPool
from pipelines.search import adaptive_beam
from pipelines.search.viterbi import Viterbi
from profiler.errors import BadInput
from profiler.machine import run_queue
from profiler.machine.roofs.timing import Effort, rounds
from profiler.spans import Recorder
from tests.bench import corpus
from tests.bench._rounds import LANE, command_line, printing, scored, timed

INPUTS, OUTPUTS, FRAMES = 512, 512, 16
LARGE = 2048  # inputs and outputs of weights that no cache near a core keeps, 16 MB
KEPT = 8  # One weight in KEPT is kept in a sparse layer
SHARED = (128, 256, 384, 512, 768, 1024)  # Outputs of layers of LARGE inputs, that one thread takes or two share
OTHER_BYTES = 32 << 20  # these push everything else out of the caches near a core
WORK_BYTES = 10 << 20  # of the work whose passes are compared
PASSES, TIMES = 8, 9
FILES = ("librivox-0870", "cards-001")
WIDE, NARROW, BEAM_TIMES = 13.0, 10.0, 5


COLUMNS = ("where", "what", "stands", "now", "unit")
Row = tuple[str, str, float, float, str]
"""One constant: file and name, what it is, the value in the code, the value measured, and the unit."""


def seconds(call: Callable[[], object]) -> float:
    """Median time of `call` in rounds that nothing disturbed, s."""

    def task(repeats: int) -> None:
        for _ in range(repeats):
            call()

    repeats, times, _ = rounds(task, Effort(), threads=1)
    return times[len(times) // 2] / repeats


def _taken(made: Product, inputs: int, frames: int) -> float:
    x = np.random.default_rng(1).standard_normal((inputs, frames), np.float32)
    x[-1] = 1.0
    out = np.empty((made.shape[0], frames), np.float32)
    return seconds(lambda: made.multiply(x, out))


def threads() -> Iterator[Row]:
    """The cost of sharing work with another thread, and from what size on it gains."""
    pool, where, limit = ThreadPool(2), "scoring/thread_pool.py SHARE_SECONDS", SHARE_SECONDS * 1e6
    handed = seconds(lambda: pool.share(lambda i, first, last: None, [(0, 1), (1, 2)])) * 1e6
    yield where, "waking another thread and waiting for it", limit, handed, "µs"
    for outputs in SHARED:
        weight, times = np.random.default_rng(0).standard_normal((outputs, LARGE), np.float32), []
        for n in (1, 2):
            made = Simd(weight, n, FRAMES)
            made.threads = lambda frames, n=n: n
            times.append(_taken(made, LARGE, FRAMES))
        what = f"time on one thread / on two, a layer that takes one {times[0] * 1e6:.0f} µs"
        yield where, what, 2 * limit, times[0] / times[1], "µs, and a ratio"


def products() -> Iterator[Row]:
    """Multiply-adds a second of each product, and the cost of fetching weights."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((OUTPUTS, INPUTS), np.float32)
    some = np.where(rng.random((OUTPUTS // LANES, INPUTS)) < 1 / KEPT, 1.0, 0.0)
    by_block = weight * np.repeat(some, LANES, axis=0).astype(np.float32)
    with threadpool_limits(1):
        for name, values in (("simd", weight), ("scalar", weight), ("blocks", by_block), ("csr", by_block)):
            made = PRODUCTS[name](values, 1, FRAMES)
            rate = made.held * FRAMES / _taken(made, INPUTS, FRAMES)
            yield f"rate of scoring/dnn/products {name}", "multiply-adds a second", made.rate / 1e9, rate / 1e9, "G/s"
        large = Simd(rng.standard_normal((LARGE, LARGE), np.float32), 1, FRAMES)
        few, many = (_taken(large, LARGE, n) for n in (2, FRAMES))
        fetched, where = few / ((many - few) / (FRAMES - 2)) - 2, "scoring/dnn/products/base.py FETCHED"
        yield where, "frames that take as long as the weights", FETCHED, fetched, "frames"
        if integers.TILES:
            whole, x = (rng.integers(-127, 128, (n, INPUTS), np.int8) for n in (OUTPUTS, FRAMES))
            ours = integers.Panels(whole, 1, FRAMES)
            rate = whole.size * FRAMES / seconds(lambda: ours.sums(x)) / 1e9
            yield "scoring/dnn/integers.py RATE", "multiply-adds a second", integers.RATE / 1e9, rate, "G/s"


def system() -> Iterator[Row]:
    """A reading of the run queue, and data out of the caches."""
    other = np.ones(OTHER_BYTES // 8)
    with run_queue.RunQueue() as queue:
        cases = ("again at once", other[:0]), ("after other data had the caches", other)
        for when, between in cases if queue.readable else ():
            times = [timed(queue._ready_ns)[1] for _ in range(51) if between.sum() >= 0]
            least, now = run_queue.LEAST_AWAY_NS / 1e3, float(np.median(times)) * 1e6
            yield "profiler/machine/run_queue.py LEAST_AWAY_NS", f"a reading, {when}", least, now, "µs"
    data, passes = np.ones(WORK_BYTES // 8), []
    for _ in range(TIMES):
        other.sum()
        passes.append([timed(data.sum)[1] for _ in range(PASSES)])
    first, *later = np.median(passes, axis=0).tolist()
    where = "pipelines/run/hot_replay.py GAIN"
    yield where, "the second pass takes less than the first by", GAIN, 1 - later[0] / first, ""
    gains = [1 - after / before for before, after in pairwise(later)]
    yield where, "each later pass than the one before", GAIN, float(np.median(gains)), ""


def speech() -> Iterator[Row]:
    """How the time of the search grows with the beam."""
    paths = [corpus.HUMAN / f"{name}.flac" for name in FILES]
    if absent := [path for path in paths if not path.is_file()]:
        raise BadInput(f"The bench needs human speech, and there is no {absent[0]}.")
    config, recorder = presets.load("gmm").config, Recorder()
    recogniser = build(config, recorder, LANE, quietly, never)
    recogniser.register(recorder)
    search = recogniser.search
    assert isinstance(search, Viterbi)
    search.warm_up()
    features = [recogniser.frontend.features(loading.load(path).samples, 0, LANE) for path in paths]
    scores = [scored(recogniser.scorer, each, config.block) for each in features]

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
    what = "d ln(time of the search) / d beam, 10 to 13"
    yield "search/adaptive_beam.py GROWTH", what, adaptive_beam.GROWTH, growth, ""


KINDS: dict[str, Callable[[], Iterator[Row]]] = {one.__name__: one for one in (threads, products, system, speech)}


def main(*words: str) -> int:
    """Print the rows; 2 where speech is missing."""
    parser = command_line("constants", __doc__)
    parser.add_argument("--only", choices=tuple(KINDS), action="append")

    def measure(args: argparse.Namespace) -> dict[str, Any]:
        rows = [dict(zip(COLUMNS, row, strict=True)) for kind in args.only or KINDS for row in KINDS[kind]()]
        return {"schema": 1, "bench": "constants", "rows": rows}

    return printing(parser, measure, *words)


if __name__ == "__main__":
    sys.exit(main())
