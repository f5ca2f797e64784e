"""Every compiled kernel outside of scoring run on arrays between walls, at sizes 0, 1, odd and full.

An exercise names the kernels that it runs; `test_kernel_walls` wants every kernel named by one. As a program it does
what cannot be done in the process of the tests: each planted fault in a process of its own, and prints how it ended;
with the word `indices` and NUMBA_BOUNDSCHECK=1 all exercises, whose kernels then check each index.
"""

import contextlib
import json
import multiprocessing
import sys

import numpy as np

from pipelines.frontend import _kernels as frontend
from pipelines.frontend import dynamic
from pipelines.frontend import ivector as ivectors
from pipelines.labs import _kernels as timed
from pipelines.models import estimation
from pipelines.training import align
from profiler.machine.roofs import _kernels as machine
from profiler.recording import kernel_spans
from profiler.recording.layout import AT, DROPPED, LEFT, N_LENT, OPEN, SLOT
from tests.kernel_exercises import EXERCISES, SIZES, Walls, runs
from tests.search_walls import PLANTED, loud, search


@runs(frontend, "remove_noise", "cepstra", "normalise")
def features(walls: Walls) -> None:
    """No frame, one and some; filters of one bin and of the whole spectrum."""
    for frames in SIZES:
        for bins, filters, n in ((1, 1, 1), (9, 4, 3), (257, 25, 13)):
            rng = np.random.default_rng(bins)
            starts = walls(np.linspace(0, bins - 1, filters), np.int64)
            offsets = walls([0, *np.cumsum(bins - starts)], np.int64)
            spectrum = walls(rng.normal(size=(frames, bins)), np.complex128)
            out, sums = walls.empty((frames, n), np.float32), walls(np.zeros(n + 1))
            transform = walls(rng.normal(size=(n, filters)))
            weights, state = walls(np.ones(offsets[-1])), walls(np.zeros((4, filters)))
            for denoise in (False, True):
                filters = starts, offsets, weights
                frontend.cepstra(spectrum, filters, transform, denoise, state, False, out, sums)
            mean, scale = walls(np.zeros(n), np.float32), walls(np.ones(n), np.float32)
            kinds = dynamic.VALUE, dynamic.DIFFERENCE, dynamic.SECOND, dynamic.NOTHING
            columns = walls([(kind, 4, i) for kind in kinds for i in range(n)], np.int64)
            for rows in (0, 2):
                matrix = walls(rng.normal(size=(rows, 4 * n)), np.float32)
                made = walls.empty((frames, rows or 4 * n), np.float32)
                frontend.normalise(out, mean, scale, columns, matrix, 0, frames, made)


@runs(ivectors, "select", "solve", "accumulate")
def speakers(walls: Walls) -> None:
    """One Gaussian and some, all chosen and none (likelihoods that are no numbers); frames of all weights."""
    for gaussians, m, d, most in ((1, 1, 1, 1), (7, 3, 5, 2), (9, 4, 8, 9)):
        rng = np.random.default_rng(gaussians)
        triangle = d * (d + 1) // 2
        tables = tuple(walls(rng.normal(size=s), np.float32) for s in ((gaussians, m, d), (gaussians, triangle)))
        packed = walls(np.eye(d)[np.tril_indices(d)])
        linear, solution, state = (walls(np.zeros(n)) for n in (d, d, 2))
        for frames in SIZES:
            likelihoods = rng.normal(size=(frames, gaussians))
            likelihoods[:, ::2] *= rng.choice([1, np.nan, -np.inf], (frames, 1))
            features = walls(rng.normal(size=(frames, m)), np.float32)
            weights = walls(rng.choice([0.0, 1e-3, -0.999, 1.0], frames))
            for least, largest in ((0.0, 0.0), (0.3, 1.0)):
                limits = most, least, 0.1, largest, 2.0
                scores = walls(likelihoods, np.float32)
                ivectors.accumulate(scores, features, weights, tables, limits, (packed, linear, state))
        ivectors.solve(packed, linear, solution, walls.empty((d, d), np.float64), walls.empty((3, d), np.float64))


@runs(estimation, "_draw", "_scatter", "_total_variance", "_maximise", "_fit")
def mixtures(walls: Walls) -> None:
    """One Gaussian and some, with no real frame and with some; the last senones of a model."""
    for books, streams, densities, dim, senones, components in ((1, 1, 1, 1, 1, 1), (3, 2, 5, 3, 7, 4)):
        rng = np.random.default_rng(books)
        shape = books, streams, densities, dim
        means = walls(rng.normal(size=shape), np.float32)
        weights = np.cumsum(rng.random((streams, densities, senones)), axis=1)
        width = streams * dim
        for frames in (0, 1, 5):
            first = walls(np.linspace(0, frames, senones + 1), np.int64)
            new = [walls.empty(s, np.float32) for s in ((senones, 1, components, width),) * 2]
            new.append(walls.empty((1, components, senones), np.float32))
            old = estimation.Densities(
                means, walls(np.ones(shape), np.float32), walls(weights, np.float32),
                walls(rng.integers(0, books, senones), np.int32),
            )  # fmt: skip
            real = estimation.Frames(
                walls(rng.normal(size=(frames, width)), np.float32),
                walls(np.arange(frames), np.int32), walls(np.ones(frames), np.float32), first,
            )  # fmt: skip
            estimation.fit(
                old, real, estimation.Mixtures(*new), 0, senones, samples=11, prior=1.0, steps=2,
                rng=np.random.default_rng(1),
            )  # fmt: skip
            assert np.isfinite(new[0]).all()


@runs(align, "_viterbi")
def alignment(walls: Walls) -> None:
    """One unit and a chain of some; no frame, too few, and enough."""
    for units in (1, 2, 7):
        states = 3 * units
        before = np.arange(units - 1)
        first = [0, *np.minimum(np.arange(units), units - 1)]
        begins, ends = np.arange(units) == 0, np.arange(units) == units - 1
        for frames in SIZES:
            path = walls.empty(frames, np.int32)
            states_of = align.States(
                walls(np.arange(states), np.int32),
                *(walls(np.full(states, -0.7), np.float32) for _ in range(2)),
                walls(before, np.int32), walls(first, np.int32), walls(begins), walls(ends),
            )  # fmt: skip
            align._viterbi(walls(loud(frames, frames, states)), states_of, path)
            assert frames < states or (np.diff(path) >= 0).all()


@runs(timed, "strided")
def accesses(walls: Walls) -> None:
    """Strides that divide the data: of one value, of all, and between; less than a round and several."""
    for n, stride in ((1, 1), (2, 1), (33, 33), (32, 4), (7, 7)):
        state = walls(np.zeros(2), np.int64)
        for count in (0, 1, n - 1, 2 * n + 1):
            timed.strided(walls(np.ones(n), np.uint32), stride, state, count)
            assert 0 <= state[0] < n
            assert 0 <= state[1] < stride


@runs(timed, "add")
@runs(timed, "chain")
def sums(walls: Walls) -> None:
    """No number, one and some."""
    for n in SIZES:
        a, b, out = (walls(np.ones(n), np.float32) for _ in range(3))
        timed.add(a, b, out)
        assert (out == 2).all()
        timed.chain(np.uint64(n), n)


@runs(timed, "by_element", "by_column", "by_row", "in_blocks")
@runs(timed, "plain", "unrolled")
def products(walls: Walls) -> None:
    """One row and some; blocks that divide the size and blocks that do not."""
    for n in SIZES[1:]:
        a, b = (walls(np.ones((n, n)), np.float32) for _ in range(2))
        for order in (timed.by_element, timed.by_column, timed.by_row):
            order(a, b, walls.empty((n, n), np.float32))
        for block in (1, 4, n, n + 1):
            timed.in_blocks(a, b, walls.empty((n, n), np.float32), block)
        for outputs in SIZES:
            weight = walls(np.ones((outputs, n)), np.float32)
            for loop in (timed.plain, timed.unrolled):
                loop(weight, walls(np.ones(n), np.float32), walls.empty(outputs, np.float32))


OVER_TWO = ("fma_vector", "exp_loop", "log_loop", "exp_vector", "log_vector")


@runs(machine, *OVER_TWO, "fma_scalar", "read", "write", "triad", "nothing", "some", "chase", "gather")
def probes(walls: Walls) -> None:
    """What measures the machine's roofs."""
    for n in SIZES:
        values, out = (walls(np.ones(n), np.float32) for _ in range(2))
        for name in OVER_TWO:
            getattr(machine, name)(values, out, 2)
        machine.read(values, 2)
        machine.triad(out, values, walls(np.ones(n), np.float32), 2)
        machine.write(out, 2)
        whole = machine.SCALAR_CHAINS * n
        order = walls(np.arange(whole)[::-1], np.uint32)
        machine.fma_scalar(walls(np.ones(whole), np.float32), order, 2)
        lines = np.roll(np.arange(n), 1)
        machine.chase(walls(lines, np.uint32), walls(np.zeros(1), np.uint32), 2 * n + 1)
        machine.gather(walls(lines, np.uint32), walls(lines, np.uint32), walls(np.zeros(1), np.int64), 2 * n)
    machine.nothing(1)
    machine.some(*(walls(np.ones((4, 16)), np.float32) for _ in range(3)), 0, 4)


@runs(kernel_spans, "put", "put_open", "now_ns")
def spans(walls: Walls) -> None:
    """Rings of no slot, of one and of some: from each place, with no room, with some and with all."""
    for slots in (0, 1, 2, 7):
        for at in range(max(slots, 1)):
            for left in range(max(slots, 1)):
                ring, state = walls.empty(slots, SLOT), walls(np.zeros(N_LENT), np.int64)
                state[AT], state[LEFT] = at, left
                for _ in range(slots + 1):
                    kernel_spans.put((ring, state), 3, 1, 2, 3, 4, (5, 6, 7))
                assert (state[LEFT], state[DROPPED]) == (0, slots + 1 - left)
                assert state[AT] == ((at + left) % slots if slots else 0)
                state[LEFT] = min(left, 1)
                kernel_spans.put_open((ring, state), 3, 1, 3, 4, (5, 6, 7))
                assert state[OPEN] == ((at + left) % slots if left else -1)


def main(*words: str) -> None:
    """See the file's beginning."""
    if words == ("indices",):
        for exercise in EXERCISES.values():
            exercise(Walls(None))
        for fault in PLANTED:
            with contextlib.suppress(IndexError):
                fault(Walls(None))
                raise AssertionError(f"{fault.__name__} is not found")
        return
    fork = multiprocessing.get_context("fork")
    search(Walls(None))  # compiled before, so that each child has to load nothing
    ends = {}
    for fault in PLANTED:
        child = fork.Process(target=fault, args=(Walls("behind"),))
        child.start()
        child.join()
        ends[fault.__name__] = child.exitcode
    sys.stdout.write(json.dumps(ends) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
