"""Labs of the device: what is planted for them, and what they time against plain computations."""

import numpy as np
import pytest

from pipelines.device import open_device
from pipelines.labs import clocks_cores, device_mismatch, matrix_200, mnist_digits, transfer_ledger
from pipelines.labs._kernels import chain
from pipelines.labs.declaration import Parameters
from pipelines.labs.device_mismatch import ALLOWED, OPERATIONS, PLACES
from pipelines.labs.sweep import SweepResult
from tests.each import each
from tests.labs.contract import NOISE, Contract, NoDevice, about, at_size, near, rounds, timings
from tests.pipelines.workers_in_threads import CLASSES, FEATURES


def planted_clocks(per_cycle=32.0, noise=NOISE, device=None):
    """Two cores of 3 GHz with `per_cycle` operations in a cycle; products of 100 × 100."""
    one = 1e3 * 2 * 100**3 / (per_cycle * 3e9)
    ms = {clocks_cores.CLOCK: 1.0, clocks_cores.ONE: one, clocks_cores.EVERY: one / 2}
    return SweepResult(
        timings=at_size(100, ms | ({clocks_cores.DEVICE: 1e3 * device} if device else {}), noise),
        counts={"cores": 2, "cycles": 3_000_000},
        device="cuda" if device else "",
    )


def planted_trials(**changed):
    trials = []
    for operation in OPERATIONS:
        for place in PLACES:
            refused = place == "one on each" and operation != ALLOWED
            what = {"lives": "" if refused else ("cpu" if place == "both on the host" else "cuda")}
            what["error"] = "found at least two devices, cuda:0 and cpu!" if refused else ""
            what |= changed.get(place, {})
            trials.append(device_mismatch.Trial(operation=operation, place=place, **what))
    real, to_numpy = changed.get("real", True), changed.get("to_numpy", "no")
    return device_mismatch.DeviceMismatchResult(device="cuda", real=real, trials=trials, to_numpy=to_numpy)


def planted_product(resident=10.0, copied=62.0, noise=NOISE, device="cuda"):
    """Microseconds at 200; numpy takes 60. Over the sizes the device gains on it."""
    one = {"numpy": 60.0, "resident": resident, "copied": copied}
    factors = {"numpy": (0.01, 1, 100), "resident": (0.9, 1, 4), "copied": (0.9, 1, 6)}
    ms = {
        variant: {n: 1e-3 * us * f for n, f in zip((32, 200, 1024), factors[variant], strict=True)}
        for variant, us in one.items()
    }
    return SweepResult(
        timings=timings(ms, noise),
        more={
            "parts": at_size(200, dict.fromkeys(matrix_200.PARTS, 0.01)),
            "cold": at_size(200, {"numpy": 0.1, "resident": 300.0, "copied": 1.0}, noise=0.0),
        },
        counts={"n": 200},
        texts={"place": device or "torch-cpu"},
        device=device,
    )


def passes(loading, computing, noise=NOISE):
    parts = {part: rounds(1e-6) for part in mnist_digits.PARTS}
    parts |= {"loader": rounds(loading, 0.0), "computing": rounds(computing, 0.0)}
    return mnist_digits.Passes(seconds=rounds(loading + computing, noise), parts=parts, right=0.9)


def planted_digits(small=1.0, large=2.0, noise=NOISE, device=True):
    """Seconds on the device; on the processor 2 s and 20 s, 1 s of each for loading."""
    there = {"small": passes(0.5, small - 0.5, noise), "large": passes(0.5, large - 0.5, noise)}
    return mnist_digits.MnistDigitsResult(
        digits=640,
        device="cuda" if device else "",
        weights={"small": 1, "large": 2},
        here={"small": passes(1.0, 1.0, noise), "large": passes(1.0, 19.0, noise)},
        there=there if device else {},
    )


def planted_ledger(weights=1_000_000, batch=1000, heavy=1, step=0.02, real=True):
    counts = {"weights there": heavy, "batch there": 20, "loss back": 10, "weights back": 1}
    sizes = {"batch there": batch, "loss back": 4}
    kinds = {
        name: transfer_ledger.Kind(bytes=[sizes.get(name, weights)] * count, seconds=[0.01] * count)
        for name, count in counts.items()
    }
    return transfer_ledger.TransferLedgerResult(
        device="cuda", real=real, batch=256, kinds=kinds, step_seconds=[step] * 10
    )


def the_rules_of_torch_hold(result):
    assert not result.real
    trials = {(t.operation, t.place): t for t in result.trials}
    assert len(trials) == len(OPERATIONS) * len(PLACES)
    for operation in OPERATIONS:
        assert trials[operation, "both on the host"].lives == "cpu"
        assert not trials[operation, "after .to(device)"].error
        assert bool(trials[operation, "one on each"].error) == (operation != ALLOWED)
    assert "cpu" in trials["add", "one on each"].error
    judged = device_mismatch.LAB.judge(result)
    assert judged.verdict == "holds in part"
    assert judged.figures["operations_refused"] == len(OPERATIONS) - 1
    assert "no accelerator" in judged.why


def the_half_of_the_processor_is_run(result):
    assert result.timings.sizes() == [8, 32]
    judged = matrix_200.LAB.judge(result)
    assert "only the processor's half" in judged.why
    assert judged.figures["numpy_flops_per_s"] > 0
    assert judged.figures["resident_over_numpy"] is None


def parts_add_up_to_passes(result):
    for times in result.here.values():
        assert len(times.seconds) == 3
        for whole, *parts in zip(times.seconds, *times.parts.values(), strict=True):
            assert sum(parts) == pytest.approx(whole, rel=0.2)


def every_byte_is_in_the_ledger(result):
    inputs = 15 * FEATURES
    weights = 4 * ((inputs + 1) * 8 + 9 * 6 + 7 * CLASSES)
    assert {name: kind.bytes for name, kind in result.kinds.items()} == {
        "weights there": [weights],
        "batch there": [16 * inputs * 4, 16 * 8] * 4,
        "loss back": [4] * 4,
        "weights back": [weights],
    }


CONTRACTS = {
    "clocks-cores": Contract(
        clocks_cores.LAB,
        planted_clocks,
        true=[{}, {"device": 1e-6}],
        false=[{"per_cycle": 2.0}],
        noisy=[{"per_cycle": 4.0, "noise": 2.0}],
        figures=near(
            per_cycle_over_gpu_core=16.0,
            clock_hz=3e9,
            k80_over_laptop_by_clock_and_cores=226.0,
            device_flops_per_s=None,
        ),
        more=[({"device": 1e-6}, near(device_flops_per_s=2e12))],
        small=clocks_cores.Params(n=32, seconds=0.0),
    ),
    "device-mismatch": Contract(
        device_mismatch.LAB,
        planted_trials,
        in_part=[{"real": False}],
        false=[
            {"one on each": {"error": "", "lives": "cuda"}},
            {"after .to(device)": {"error": "no"}},
            {"both on the device": {"lives": "cpu"}},
            {"to_numpy": ""},
        ],
        figures=near(operations_refused=len(OPERATIONS) - 1, operations_allowed_across=1),
        small=Parameters(),
        desk=NoDevice,
        stops=False,
        check=the_rules_of_torch_hold,
    ),
    "matrix-200": Contract(
        matrix_200.LAB,
        planted_product,
        false=[{"resident": 60.0}, {"copied": 10.0}],
        noisy=[{"resident": 31.0, "noise": 0.7}],
        impossible=[{"device": ""}],
        figures=near(resident_over_numpy=6.0, break_even_n=1024, cold_first_product_s=0.3),
        small=matrix_200.Params(n=8, largest=32, seconds=0.0),
        desk=NoDevice,
        check=the_half_of_the_processor_is_run,
    ),
    "mnist-digits": Contract(
        mnist_digits.LAB,
        planted_digits,
        false=[{"small": 3.0}, {"small": 1.0, "large": 15.0}],
        noisy=[{"small": 1.9, "large": 19.5, "noise": 1.5}],
        impossible=[{"device": False}],
        figures=near(gain_small=2.0, gain_large=10.0),
        # Without a device Amdahl says what one could gain.
        more=[({"device": False}, near(most_gain_small=about(2, 0.05), most_gain_large=about(20, 0.1)))],
        small=mnist_digits.Params(digits=640, rounds=3),
        desk=NoDevice,
        patches={"MODELS": {"small": 1, "large": 2}, "TEST": 64},
        check=parts_add_up_to_passes,
    ),
    "transfer-ledger": Contract(
        transfer_ledger.LAB,
        planted_ledger,
        in_part=[{"step": 10.0, "real": False}],
        false=[{"batch": 200_000}, {"heavy": 5}, {"step": 10.0}],
        figures={
            "heavy_over_light": 1000,
            "light_bytes_over_heavy_in_sum": about(20_040 / 2e6),
            "transfer_share_of_time": about(0.32 / 0.52),
            # 2 000 hours at 100 frames a second, in minibatches of 256 with three requests each.
            "light_requests_in_2000_h": about(7.2e8 / 256 * 3),
        },
        # The card said "crossing takes 0.2 % of the time" beside "the cost is sending: holds here".
        said=[({"step": 10.0, "real": False}, "could not be tried")],
        small=transfer_ledger.Params(batch=16, steps=4),
        desk=NoDevice,
        trains=True,
        patches={"HIDDEN": (8,), "BOTTLENECK": 6},
        check=every_byte_is_in_the_ledger,
    ),
}


def test_the_chain_is_xorshift():
    x, mask = 88172645463325252, (1 << 64) - 1
    for _ in range(50):
        x ^= (x << 13) & mask
        x ^= x >> 7
        x ^= (x << 17) & mask
    assert int(chain(np.uint64(88172645463325252), 50)) == x


def test_both_ways_give_the_product():
    there = matrix_200._There(open_device("torch-cpu"), 9)
    right = there.a.astype(np.float64) @ there.b
    for way in (there.numpy, there.copied):
        there.out[:] = 0
        way()
        np.testing.assert_allclose(there.out, right, rtol=1e-5)
    parts = there.apart()
    assert set(parts) == set(matrix_200.PARTS)
    assert min(parts.values()) >= 0


@each("sooner, n", [((0, 0, 0), None), ((1, 0, 1), 3), ((1, 1, 1), 1)])
def test_it_breaks_even_where_it_stays_faster(sooner, n):
    ms = {"numpy": dict.fromkeys((1, 2, 3), 1.0)}
    ms["copied"] = {size: 0.5 if fast else 2.0 for size, fast in enumerate(sooner, start=1)}
    assert matrix_200.break_even(timings(ms)) == n


def test_digits_are_of_mnists_shape_and_distinct(monkeypatch):
    images, classes = mnist_digits.drawn(600, 1)
    assert (images.shape, images.dtype) == ((600, 28, 28), np.float32)
    assert 0 <= images.min() < images.max() <= 1
    assert set(classes.tolist()) == set(range(10))
    # By the nearest mean of the class alone most are known.
    means = np.stack([images[classes == n].mean(0) for n in range(10)])
    new, right = mnist_digits.drawn(300, 3)
    apart = ((new[:, None] - means[None]) ** 2).sum((2, 3))
    assert (apart.argmin(1) == right).mean() > 0.6
    # Without chance each dot is a square of pixels: a one has its stem in the middle, nothing at the edges.
    for name, value in {"TURN": 0.0, "SHEAR": 0.0, "MOVE": 0.0, "SCALE": (3.0, 3.0), "NOISE": 0.0}.items():
        monkeypatch.setattr(mnist_digits, name, value)
    images, classes = mnist_digits.drawn(50, 1)
    one = images[classes == 1][0]
    assert one[10:18, 13:15].min() > 0.7
    assert one[:, :6].max() == one[:, -6:].max() == 0
