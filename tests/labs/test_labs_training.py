"""Labs of training at scale: what is planted for them, and what they find against plain computations."""

import numpy as np
import pytest
import torch

from pipelines.labs import _training, asynchronous_sgd, compress_training, consensus_admm, minibatch, pipelined_backprop
from pipelines.labs.consensus_admm import RHOS
from pipelines.labs.desk import Desk
from pipelines.labs.pipelined_backprop import LAYERS
from pipelines.models.nets import Layer
from pipelines.training.module import FeedForward
from tests.labs.contract import PIECES, Contract, about, curve, falling, losses, near, rounds
from tests.pipelines import workers_in_threads
from tests.pipelines.net_files import card


def planted_asynchronous(several=0.6, loss=2.0, waiting=0.1, noise=0.01, synchronous=0.8):
    curves = [
        curve("one worker", 1.0, 2.0, workers=1, noise=noise),
        curve("synchronous", synchronous, 2.0, noise=noise),
        curve("each", 0.9, 2.0, waiting=0.4, ranks=3, delays={0: 10, 1: 30}, noise=noise),
        curve("several", several, loss, waiting=waiting, ranks=3, noise=noise),
        curve("slowed", 0.9, 2.0, ranks=3, noise=noise),
    ]
    return asynchronous_sgd.AsynchronousSgdResult(workers=2, batch=8, accumulate=4, parameters=10, curves=curves)


def course(name, wrong, weights, noise=0.02, seed=1):
    return compress_training.Course(
        name=name,
        weights=weights,
        frames=[0, 100],
        seconds=[0.0, 1.0],
        apart=[losses(middle, noise, seed) for middle in (1.0, 0.5)],
        wrong=losses(wrong, noise, seed),
    )


def planted_courses(low_rank=0.4, sparse=0.41, small=0.6, noise=0.02):
    wrong = {"low-rank": low_rank, "sparse": sparse, "small": small, "small-hard": 0.7}
    courses = [course(name, each, 30, noise, seed) for seed, (name, each) in enumerate(wrong.items(), 2)]
    return compress_training.CompressTrainingResult(base=course("base", 0.4, 100, noise), courses=courses, below=0.7)


def planted_consensus(losses=(2.6, 2.0, 2.3), sent=10, noise=0.01, workers=5):
    more = {"sent": sent, "noise": noise, "residuals": [(0.1, 0.2), (0.01, 0.02)]}
    ours = [curve(f"ADMM {rho}", loss=loss, **more) for rho, loss in zip(RHOS, losses, strict=True)]
    others = [
        curve("synchronous", loss=2.0, noise=noise),
        curve("asynchronous", loss=2.01, noise=noise, delays={1: 5, 3: 5}, ranks=3),
    ]
    return consensus_admm.ConsensusAdmmResult(
        workers=workers, rhos=list(RHOS), exchanges=1, parameters=10, curves=[*others, *ours]
    )


def planted_minibatches(ends=None, noise=0.01, quick=()):
    """`ends`: the last loss by size; a second rate is worse for each. `quick`: sizes whose frames take no time."""
    usual = {16: 3.0, 256: 2.0, 1024: 2.1, 8192: 4.0}
    runs = [
        minibatch.Run(
            size=size,
            rate=rate,
            seconds=rounds(0.0025 if size in quick else 0.25),
            examples=[size * 10] * PIECES,
            segments=falling(worse * end, noise, size),
        )
        for size, end in (ends or usual).items()
        for rate, worse in ((0.1, 1.0), (0.4, 1.5))
    ]
    return minibatch.MinibatchResult(runs=runs)


def planted_pipelines(pair=0.5, loss=2.0, noise=0.001, four=0.28, devices=2):
    return pipelined_backprop.PipelinedBackpropResult(
        batch=16,
        forward=[[0.01] * 5] * LAYERS,
        backward=[[0.02] * 5] * LAYERS,
        splits={1: [0], 2: [0, 4], 3: [0, 2, 4], 4: [0, 2, 4, 5]},
        curves=[
            curve("one worker", 1.0, 2.0, workers=1, noise=noise),
            curve("2 workers", pair, 2.0, noise=noise, delays={2: 9, 0: 1}),
            curve("4 workers", four, loss, workers=4, noise=noise, delays={6: 9, 1: 1}),
        ],
        spans=[],
        devices=devices,
    )


def each_worker_is_counted(result):
    assert [len(c.seconds) for c in result.curves] == [3] * 5
    assert result.curves[0].examples == [64] * 3
    assert sum(result.curves[2].by_worker[0].delays.values()) == sum(result.curves[2].updates)


def fewer_bytes_are_sent(result):
    synchronous, _, *ours = result.curves
    assert [curve.examples for curve in ours] == [[48, 48]] * 3
    assert synchronous.examples == [48, 48]
    assert [len(curve.residuals) for curve in ours] == [4] * 3
    # A round of ADMM shares z and two numbers twice, a step of synchronous SGD one gradient: 4 against 12 times.
    assert sum(synchronous.bytes) / sum(ours[0].bytes) == pytest.approx(12 / 4, rel=0.01)


def gradients_are_late(result):
    assert [c.workers for c in result.curves] == [1, 2, 3]
    assert len(result.forward) == len(result.backward) == LAYERS
    assert [max(each.delays) for each in result.curves[-1].by_worker] == [4, 2, 0]
    assert {block.worker for block in result.spans} == {0, 1, 2}
    chart = pipelined_backprop.LAB.picture(result)
    assert chart.y.categories == ("worker 1", "worker 2", "worker 3")


def losses_are_those_of_plain_descent(result):
    """Without time a piece is one minibatch: as many steps of torch's own SGD, and the loss of what is examined."""
    assert sorted({run.size for run in result.runs}) == [1, 4, 16, 64]
    run = next(r for r in result.runs if r.size == 16)
    taught = workers_in_threads.lessons(context=7)
    net, spread = workers_in_threads.plain_descent(taught, (8, 6), run.rate, minibatch.PIECES, 16)
    x, y = taught.taught.examples(taught.examined, 7)
    end = float(torch.nn.functional.cross_entropy(net(spread(x)), y).detach())
    assert run.examples == [16] * minibatch.PIECES
    assert run.losses[-1] == pytest.approx(end, rel=1e-3)


CONTRACTS = {
    "asynchronous-sgd": Contract(
        asynchronous_sgd.LAB,
        planted_asynchronous,
        false=[{"several": 1.5}, {"loss": 2.6}, {"waiting": 0.5}, {"synchronous": 0.4}],
        noisy=[{"several": 0.9, "synchronous": 0.9, "noise": 0.8}],
        figures=near(
            speed_up=1 / 0.6, mean_staleness_updates=0.75, communication_share_each=pytest.approx(0.4, abs=0.01)
        ),
        small=asynchronous_sgd.Params(batch=4, batches=16, rounds=3),
        trains=True,
        check=each_worker_is_counted,
    ),
    "compress-training": Contract(
        compress_training.LAB,
        planted_courses,
        false=[{"low_rank": 0.5}, {"sparse": 0.5}, {"small": 0.8}],
        noisy=[{"sparse": 0.421, "noise": 0.8}],
        figures=near(size_low_rank_share=0.3, low_rank_divergence_after_nats=0.5, taught_over_hard_errors=6 / 7),
    ),
    "consensus-admm": Contract(
        consensus_admm.LAB,
        planted_consensus,
        false=[{"losses": (2.6, 2.4, 2.5)}, {"sent": 2000}],
        noisy=[{"losses": (2.12, 2.12, 2.12), "noise": 0.9}],
        # The claim is about more than four workers.
        impossible=[{"workers": 4}],
        figures=near(
            best_rho=RHOS[1],
            bytes_asynchronous_over_admm=100.0,
            staleness_of_asynchronous_updates=2,
            primal_residual=0.01,
            dual_residual=0.02,
        ),
        small=consensus_admm.Params(workers=2, batch=4, local=3, exchanges=2, rounds=2),
        trains=True,
        check=fewer_bytes_are_sent,
    ),
    "minibatch": Contract(
        minibatch.LAB,
        planted_minibatches,
        false=[
            {"ends": {16: 1.8, 256: 2.0, 8192: 4.0}},
            {"ends": {16: 3.0, 256: 2.0, 8192: 1.5}},
            # Small ones that use the machine as well.
            {"ends": {16: 3.0, 256: 2.0}, "quick": (16,)},
        ],
        # Without a minibatch of the usual size nothing is decided.
        noisy=[{"ends": {16: 2.02, 256: 2.0}, "noise": 0.5}, {"ends": {16: 2.0, 64: 3.0}}],
        figures=near(best_minibatch=256, frames_per_s_at_16=160 / 0.25),
        small=minibatch.Params(seconds=0.0, largest=64),
        trains=True,
        patches={"HIDDEN": (8, 6)},
        check=losses_are_those_of_plain_descent,
    ),
    "pipelined-backprop": Contract(
        pipelined_backprop.LAB,
        planted_pipelines,
        # Without a device each, four workers are not judged.
        in_part=[{}, {"devices": 3, "four": 0.5}],
        true=[{"devices": 4}],
        false=[{"pair": 0.8}, {"loss": 2.5}, {"devices": 4, "four": 0.5}],
        noisy=[{"pair": 1 / 1.9, "noise": 0.5}],
        figures={
            "speed_up_2": about(2.0),
            "delay_of_first": 6,
            "output_layer_share": about(1 / LAYERS),
            # Eight even layers: four each on two devices; of the four that are planted here one has three.
            "simulated_speed_up_2": about(2.0, rel=0.03),
            "simulated_speed_up_4": about(8 / 3, rel=0.05),
        },
        small=pipelined_backprop.Params(most=3, batch=8, batches=8, rounds=3, cost_seconds=0.0),
        trains=True,
        patches={"HIDDEN": (8,) * 6, "BOTTLENECK": 6},
        check=gradients_are_late,
    ),
}


def test_the_model_is_the_number_of_devices_until_the_server_is_busy():
    fast = curve("fast", waiting=0.0, ranks=3)
    assert asynchronous_sgd.modelled(fast, 4) == pytest.approx(4, rel=0.01)
    busy = list(fast.by_worker)
    busy[0] = type(busy[0])(seconds={"update": 1.0}, delays={})
    slow = type(fast)(name="slow", workers=2, by_worker=busy)
    # Two workers compute two seconds while the server is busy for one: no more than 2 are ever fed.
    assert asynchronous_sgd.modelled(slow, 64) == pytest.approx(2.0, rel=0.01)


@pytest.mark.slow
def test_what_is_cut_is_trained_on_by_the_recipes(tmp_path, monkeypatch):
    draw = np.random.default_rng(1)
    for name, frames in (("shard-0000", 600), ("held-out", 60)):
        workers_in_threads.write_shard(tmp_path, draw.integers(0, 100, frames), name)
    monkeypatch.setattr(_training, "data", lambda desk: tmp_path)
    monkeypatch.setattr(compress_training, "WAYS", {"sparse": "sparse"})
    monkeypatch.setattr(compress_training, "POINTS", 2)
    found = compress_training.LAB.measure(compress_training.Params(frames=1024), Desk())
    [sparse] = found.courses
    assert sparse.frames == [0, 512, 1024]
    assert sparse.weights / found.base.weights == pytest.approx(0.3, abs=0.01)
    assert all(len(points) == 2 for points in sparse.apart)
    # It learns these frames' noise: nearer to the mixtures than before.
    assert sparse.divergences[-1] < sparse.divergences[0]


def test_the_exam_is_a_mean_over_frames_as_written_down(tmp_path):
    """Divergence of the softmaxes and the share of frames whose largest output is not the label, in float64."""
    right = np.random.default_rng(2).integers(0, 5126, 70)
    values = workers_in_threads.write_shard(tmp_path, right, "held-out")
    exam = compress_training._Exam(tmp_path)
    module = FeedForward(card(Layer(4), senones=5126), 1)
    apart, wrong = exam.taken(module, 2.0)
    context = module.card.left, module.card.right
    heard = np.pad(values.astype(np.float32), (context, (0, 0)), mode="edge")
    windows = np.stack([heard[i : i + sum(context) + 1] for i in range(70)])
    with torch.no_grad():
        said = module.answers(torch.from_numpy(windows))[0].double()
    expected = exam.teacher.scores(exam._pool, np.arange(70)).double()
    p, q = (torch.softmax(each / 2, 1) for each in (expected, said))
    each = (p * (p.clamp_min(1e-300).log() - q.log())).sum(1).numpy()
    missed = said.argmax(1).numpy() != right
    assert apart == pytest.approx([each[:50].mean(), each[50:].mean()], rel=1e-3)
    assert wrong == pytest.approx([missed[:50].mean(), missed[50:].mean()])
