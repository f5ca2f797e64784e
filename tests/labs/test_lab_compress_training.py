"""Lab `compress-training`: its verdict on planted courses; a small run with the trainer of the shipped nets."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import _training, compress_training
from pipelines.labs.compress_training import LAB, WAYS, Course, Params, Result
from pipelines.labs.desk import Desk
from tests.labs.contract import Contract, about
from tests.labs.planted_training import losses


def course(name, wrong, weights, noise=0.02, seed=1):
    apart = [losses(middle, noise, seed) for middle in (1.0, 0.5)]
    return Course(
        name=name,
        weights=weights,
        frames=[0, 100],
        seconds=[0.0, 1.0],
        apart=apart,
        wrong=losses(wrong, noise, seed),
    )


def planted(low_rank=0.4, sparse=0.41, small=0.6, noise=0.02):
    wrong = {"low-rank": low_rank, "sparse": sparse, "small": small, "small-hard": 0.7}
    courses = [course(name, wrong[name], 30, noise, seed) for seed, name in enumerate(WAYS, 2)]
    return Result(base=course("base", 0.4, 100, noise), courses=courses, below=0.7)


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"low_rank": 0.5}, {"sparse": 0.5}, {"small": 0.8}],
    noisy=[{"sparse": 0.421, "noise": 0.8}],
    figures={
        "size_low_rank_share": 0.3,
        "low_rank_divergence_after_nats": about(0.5),
        "taught_over_hard_errors": about(6 / 7),
    },
)


def test_what_is_cut_is_trained_on_by_the_recipes(tmp_path, monkeypatch):
    """The real trainer and nets on a few frames: points as asked for, and cut weights that stay cut."""
    from pipelines.training.corpus import data, labels
    from pipelines.training.corpus.data import Frames

    draw = np.random.default_rng(1)
    for name, frames in (("shard-0000", 600), ("held-out", 60)):
        values = draw.normal(0, 1, (frames, 39)).astype(np.float16)
        path = tmp_path / f"{name}.safetensors"
        data.write(Frames(values, values, np.array([frames], np.int32)), path)
        labels.write(draw.integers(0, 100, frames).astype(np.uint16), path)
    monkeypatch.setattr(_training, "data", lambda desk: tmp_path)
    monkeypatch.setattr(compress_training, "WAYS", {"sparse": "sparse"})
    monkeypatch.setattr(compress_training, "POINTS", 2)
    found = LAB.measure(Params(frames=1024), Desk())
    [sparse] = found.courses
    assert sparse.frames == [0, 512, 1024]
    assert sparse.weights / found.base.weights == pytest.approx(0.3, abs=0.01)
    assert all(len(points) == 2 for points in sparse.apart)
    # It learns these frames' noise: nearer to the mixtures than before.
    assert sparse.divergences[-1] < sparse.divergences[0]


def test_the_exam_is_a_mean_over_frames_as_written_down(tmp_path):
    """Divergence of the softmaxes and the share of frames whose largest output is not the label, in float64."""
    import torch

    from pipelines.models.nets import Layer
    from pipelines.training.corpus import data, labels
    from pipelines.training.corpus.data import Frames
    from pipelines.training.module import FeedForward
    from tests.pipelines.net_files import card

    draw = np.random.default_rng(2)
    values = draw.normal(0, 1, (70, 39)).astype(np.float16)
    path = tmp_path / "held-out.safetensors"
    data.write(Frames(values, values, np.array([70], np.int32)), path)
    right = draw.integers(0, 5126, 70)
    labels.write(right.astype(np.uint16), path)
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


def test_the_picture_has_a_line_for_each_way():
    chart = LAB.picture(planted())
    assert len(chart.layers) == 5
    assert len(chart.beside) == 2
