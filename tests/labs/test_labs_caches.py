"""Labs of caches and frameworks: what is planted for them, and what they time against plain computations."""

import numpy as np
import pytest

from pipelines.labs import access_orders, bandwidth_ladder, call_costs, gradient_noise, matrix_orders
from pipelines.labs._kernels import strided
from pipelines.labs.access_orders import CHAIN, IN_ORDER, RANDOM, STRIDED
from pipelines.labs.call_costs import PYTHON
from pipelines.labs.desk import Desk
from pipelines.labs.matrix_orders import LIBRARIES, ORDERS
from pipelines.labs.sweep import SweepResult, Timings
from pipelines.models import nets
from profiler.errors import BadInput
from profiler.machine.roofs.cpu import Step
from profiler.machine.roofs.table import BANDWIDTH, Key, Roof
from tests.each import each
from tests.labs.contract import LOUD, NOISE, ROUNDS, Contract, NoDevice, about, at_size, near, timings
from tests.pipelines.net_files import forward


def planted_accesses(order=1.0, drawn=5.0, chain=60.0, noise=NOISE):
    """Nanoseconds over the largest data; within the first cache all take 1 ns."""
    last = {IN_ORDER: order, STRIDED: 2.0, RANDOM: drawn, CHAIN: chain}
    ms = {variant: {16 << 10: 1e-6, 256 << 20: 1e-6 * ns} for variant, ns in last.items()}
    return SweepResult(
        timings=timings(ms, noise),
        more={"strides": timings({"strided": {4: 1e-6, 64: 5e-6}}, noise)},
        cache_bytes={1: 32768},
    )


def planted_bandwidth(share=0.05, noise=NOISE, threads=2):
    """200 GB/s from the first cache to each core, `share` of it from memory to all of them."""
    near, far = 16 << 10, 128 << 20
    every = 1e3 / (200e9 * threads)
    ms = {
        bandwidth_ladder.ONE: {near: 1e3 / 200e9, far: 1e3 / 30e9},
        bandwidth_ladder.ALL: {near: every, far: every / share},
    }
    return SweepResult(timings=timings(ms, noise), counts={"threads": threads}, cache_bytes={1: 32768})


AT_ONCE = 256  # The largest vector planted that is not more than a thousand numbers


def planted_calls(call_ns=1000.0, number_ns=1.0, noise=NOISE, torch_ns=None, largest=1 << 20):
    """A call of `call_ns` ns and `number_ns` for each number; `torch_ns`: a call of torch, where it differs."""
    draw = np.random.default_rng(4)
    sizes = [1 << k for k in range(0, 21, 2) if 1 << k <= largest]

    def times(n, call_ns=call_ns):
        # Each size has turns of its own, and as many rounds as its time allows.
        rounds = ROUNDS + n.bit_length() % 5
        return (1e-9 * (call_ns + n * number_ns) * (1 + noise * draw.random(rounds))).tolist()

    each = {n: times(n) for n in sizes}
    other = each if torch_ns is None else {n: times(n, torch_ns) for n in sizes}
    return SweepResult(timings=Timings(seconds={"numpy": each, "torch": other}))


def planted_noise(power=-0.5, spread=0.1, draws=200):
    sizes, draw = [1, 4, 16, 64, 256], np.random.default_rng(8)

    def noise(exponent):
        return [(3.0 * b**exponent * np.exp(spread * draw.standard_normal(draws))).tolist() for b in sizes]

    return gradient_noise.GradientNoiseResult(frames=512, sizes=sizes, drawn=noise(power), running=noise(-0.2))


def planted_products(element=1000.0, column=10.0, whole=1.0, blocks=1.1, noise=NOISE):
    middle = dict(zip(ORDERS, (element, column, whole, blocks), strict=True))
    ms = {f"{library} {order}": t for library in LIBRARIES for order, t in middle.items()}
    return SweepResult(
        timings=at_size(256, ms, noise),
        more={
            "sizes": timings({order: {128: 1.0, 256: 1.0} for order in ORDERS[1:]}),
            "blocks": timings({"blocks": {1: 1.0, 64: 1.0}}),
        },
        counts={"block": 64},
        cache_bytes={1: 32768},
    )


CONTRACTS = {
    "access-orders": Contract(
        access_orders.LAB,
        planted_accesses,
        false=[{"chain": 3.0}, {"drawn": 1.1}],
        noisy=[{"chain": 6.0, "noise": 1.0}],
        figures=near(chain_over_order=60.0, random_over_order_in_first_cache=1.0, along_a_chain_s=60e-9),
        drawn=about((1e-9, 1e-9)),
        small=access_orders.Params(largest_mib=1, seconds=0.0),
    ),
    "bandwidth-ladder": Contract(
        bandwidth_ladder.LAB,
        planted_bandwidth,
        false=[{"share": 0.2}],
        noisy=[{"share": 0.1, "noise": 1.0}],
        figures=near(
            memory_share_of_first_cache=0.05,
            first_cache_bytes_per_s=400e9,
            first_cache_bytes_per_s_of_16_cores=3.2e12,
            memory_bytes_per_s=20e9,
        ),
    ),
    "call-costs": Contract(
        call_costs.LAB,
        planted_calls,
        false=[{"call_ns": 1.0, "number_ns": 10.0}, {"torch_ns": 0.5}],
        # One number alone decides nothing.
        noisy=[{"call_ns": 10.0, "noise": 3.0}, {"largest": 1}],
        figures=near(
            numpy_one_by_one_over_at_once=AT_ONCE * 1001 / (1000 + AT_ONCE),
            torch_call_s=1.001e-6,
            torch_call_is_a_tenth_from=16384,
        ),
        # A vector too short for the call to vanish gives no size.
        more=[({"largest": 64}, near(numpy_call_is_a_tenth_from=None))],
        small=call_costs.Params(largest=16, seconds=0.0),
        desk=NoDevice,
    ),
    "gradient-noise": Contract(
        gradient_noise.LAB,
        planted_noise,
        false=[{"power": -0.3}, {"power": -0.7}],
        noisy=[{"power": -0.45, "spread": 1.5, "draws": 12}],
        figures=near(slope=pytest.approx(-0.5, abs=0.02)),
        small=gradient_noise.Params(frames=64, largest=8, draws=8),
    ),
    "matrix-orders": Contract(
        matrix_orders.LAB,
        planted_products,
        false=[{"element": 5.0}, {"whole": 20.0}, {"blocks": 2.5}],
        noisy=[{"column": 1.02, "noise": LOUD}],
        figures=near(column_over_whole=10.0, blocks_share_of_whole=1 / 1.1, numpy_whole_flops_per_s=2 * 256**3 / 1e-3),
        small=matrix_orders.Params(n=8, block=4, largest=32, seconds=0.0),
    ),
}


@each("n, stride", [(12, 1), (12, 4), (64, 16), (8, 8)])
def test_as_many_accesses_as_values_meet_each_once(n, stride):
    values = (np.arange(n) ** 2).astype(np.uint32)
    state = np.zeros(2, np.int64)
    met = [strided(values, stride, state, 1) for _ in range(n)]
    assert met == (np.arange(n).reshape(-1, stride).T.ravel() ** 2).tolist()
    assert state.tolist() == [0, 0]
    assert strided(values, stride, state, 3 * n) == 3 * int((np.arange(n) ** 2).sum())


def test_the_rungs_go_from_the_first_cache_to_beyond_the_last():
    found = [step.key for step in bandwidth_ladder.rungs(1)]
    assert found[0].bytes == 16 << 10
    assert found == sorted(found, key=lambda key: key.bytes)
    assert {(key.kind, key.name, key.threads) for key in found} == {(BANDWIDTH, "read", 1)}


def test_a_run_takes_every_rung_in_every_round(monkeypatch):
    def rungs(threads):
        def rung(size):
            key, rate = Key(BANDWIDTH, "read", threads=threads, bytes=size), 1e9 * threads
            return Step(key, lambda effort: Roof(*key, rate, rate, rate, "B/s"))

        return [rung(1 << 14), rung(1 << 20)]

    monkeypatch.setattr(bandwidth_ladder, "rungs", rungs)
    lab, rounds = bandwidth_ladder.LAB, bandwidth_ladder.LEAST_ROUNDS
    found = lab.measure(bandwidth_ladder.Params(threads=2, seconds=0.0), Desk())
    assert found.timings.seconds == {
        bandwidth_ladder.ONE: dict.fromkeys((1 << 14, 1 << 20), [1e-9] * rounds),
        bandwidth_ladder.ALL: dict.fromkeys((1 << 14, 1 << 20), [0.5e-9] * rounds),
    }
    assert [layer.name for layer in lab.picture(found).layers[:2]] == ["1 core", "2 cores"]


@each("n", [1, 7, 1000, 1001])
def test_every_library_gives_the_sum(n):
    a, b = (np.random.default_rng(0).random(n, np.float32) for _ in range(2))
    made = call_costs.additions(n, None)
    assert set(made) == {"numpy", "numba", "torch"} | ({PYTHON} if n <= 1000 else set())
    for name, call in made.items():
        assert np.asarray(call()) == pytest.approx(a + b), name


@each("n, block", [(1, 1), (7, 3), (16, 16), (17, 64)])
def test_every_order_gives_the_product(n, block):
    b, c = matrix_orders.drawn(n)
    right = b.astype(np.float64) @ c.astype(np.float64)
    made = matrix_orders.products(n, block)
    assert set(made) == {f"{library} {order}" for library in LIBRARIES for order in ORDERS}
    for name, product in made.items():
        assert np.abs(np.asarray(product()) - right).max() < 1e-4, name


def test_distances_are_those_of_gradients_that_are_formed():
    draw = np.random.default_rng(5)
    errors = draw.standard_normal((20, 7)).astype(np.float32) + 0.5
    hidden = draw.standard_normal((20, 5)).astype(np.float32)
    single = np.einsum("ni,nj->nij", errors, hidden).reshape(20, -1)
    kernel = gradient_noise.alike(errors, hidden)
    assert kernel == pytest.approx(single @ single.T, rel=1e-4)
    found = gradient_noise.distances(kernel, 6, 50, np.random.default_rng(6))
    frames = np.random.default_rng(6).integers(0, 20, (50, 6))
    mean = single.mean(axis=0)
    right = np.linalg.norm(single[frames].mean(axis=1) - mean, axis=1) / np.linalg.norm(mean)
    assert found == pytest.approx(right, rel=1e-4)
    # All frames in order, from any of them on: the mean itself.
    found = gradient_noise.distances(np.diag(np.arange(1.0, 9.0)), 8, 5, draw, running=True)
    assert found == pytest.approx(np.zeros(5), abs=1e-6)


def test_the_posteriors_are_those_of_float64():
    net = nets.load(nets.find("small"))
    features = np.random.default_rng(7).standard_normal((9, 39)).astype(np.float32)
    posteriors, hidden = gradient_noise.through(net, features)
    assert hidden.shape == (9, net.card.layers[-1].outputs)
    right = np.exp(forward(net, features))
    assert posteriors == pytest.approx(right / right.sum(axis=1, keepdims=True), abs=1e-4)


def test_too_little_speech_is_refused(tmp_path):
    import soundfile

    path = tmp_path / "short.wav"
    soundfile.write(path, np.zeros(4000, np.float32), 16000)
    with pytest.raises(BadInput, match="64 at least"):
        gradient_noise.LAB.measure(CONTRACTS["gradient-noise"].small, Desk(audio=[str(path)]))
