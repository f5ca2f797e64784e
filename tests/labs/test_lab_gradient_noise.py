"""Lab `gradient-noise`: its distances against gradients that are formed, its verdict on planted noise."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import gradient_noise
from pipelines.labs.desk import Desk
from pipelines.labs.gradient_noise import LAB, Params, Result
from pipelines.models import nets
from profiler.errors import BadInput
from tests.labs.contract import Contract

SIZES = [1, 4, 16, 64, 256]


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


def test_frames_in_order_follow_each_other_and_go_round():
    kernel = np.diag(np.arange(1.0, 9.0))
    found = gradient_noise.distances(kernel, 8, 5, np.random.default_rng(0), running=True)
    assert found == pytest.approx(np.zeros(5), abs=1e-6)  # all frames: the mean itself


def test_the_net_is_the_one_that_torch_computes():
    torch = pytest.importorskip("torch")
    from pipelines.training.module import FeedForward

    net = nets.load(nets.find("small"))
    features = np.random.default_rng(7).standard_normal((9, 39)).astype(np.float32)
    posteriors, hidden = gradient_noise.through(net, features)
    assert hidden.shape == (9, net.card.layers[-1].outputs)
    card = net.card
    padded = np.pad(features, ((card.left, card.right), (0, 0)), mode="edge")
    windows = np.stack([padded[i : i + card.left + 1 + card.right] for i in range(9)])
    module = FeedForward(card)
    module.take({name: np.array(value) for name, value in net.tensors.items()})
    x = ((torch.from_numpy(windows) - module.mean) * module.scale).flatten(1)
    for layer, shape in zip(module.layers, card.layers, strict=True):
        x = torch.relu(layer(x)) if shape.relu else layer(x)
    right = torch.softmax(module.heads[0](x), 1).detach().numpy()
    assert posteriors == pytest.approx(right, abs=1e-4)


def planted(power=-0.5, spread=0.1, draws=200):
    draw = np.random.default_rng(8)

    def noise(exponent):
        return [
            (3.0 * b**exponent * np.exp(spread * draw.standard_normal(draws))).tolist()
            for b in SIZES
        ]

    return Result(frames=512, sizes=SIZES, drawn=noise(power), running=noise(-0.2))


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"power": -0.3}, {"power": -0.7}],
    noisy=[{"power": -0.45, "spread": 1.5, "draws": 12}],
    figures={"slope": pytest.approx(-0.5, abs=0.02)},
    small=Params(frames=64, largest=8, draws=8),
    memory=(Params(frames=64), Params(frames=8192)),
)


def test_every_size_is_drawn():
    found = CONTRACT.measured
    assert found.frames == 64
    assert found.sizes == [1, 2, 4, 8]
    assert len(LAB.picture(found).layers) == 3


def test_the_minibatch_of_the_claim_is_marked_where_it_is_drawn():
    each = [[1.0, 1.1, 0.9]] * 8
    found = Result(frames=64, sizes=[1 << k for k in range(8)], drawn=each, running=each)
    assert LAB.picture(found).layers[-1].value == 128


def test_too_little_speech_is_refused(tmp_path):
    import soundfile

    path = tmp_path / "short.wav"
    soundfile.write(path, np.zeros(4000, np.float32), 16000)
    with pytest.raises(BadInput, match="64 at least"):
        LAB.measure(Params(frames=64, largest=8, draws=8), Desk(audio=[str(path)]))
