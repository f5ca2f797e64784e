"""What of `asrscope bench dnn` a test can hold: that both sides do the same work, and what is said of the figures."""

from __future__ import annotations

import numpy as np

from pipelines.models.nets import Layer
from pipelines.scoring import MAX_FRAMES
from pipelines.scoring.dnn import DenseNet
from tests.bench import dnn
from tests.pipelines.net_files import card, forward, net
from tests.pipelines.onnx_files import needs_onnx, needs_onnxruntime


@needs_onnx
@needs_onnxruntime
def test_both_sides_are_given_the_same_net_and_the_same_frames() -> None:
    made = net(card(Layer(24), Layer(16, relu=False)))
    rng = np.random.default_rng(2)
    # The second is longer than is spliced at once.
    speech = [rng.normal(0, 3, (n, 39)).astype(np.float32) for n in (7, MAX_FRAMES + 9)]
    peer = dnn.way(dnn.PEER, dnn.peer_of(made), speech)
    ours = dnn.way(dnn.PLAIN, DenseNet(made, 1, MAX_FRAMES), speech)
    for number, features in enumerate(speech):
        expected = forward(made, features)
        for side in (peer, ours):
            assert np.abs(side.scores(number) - expected).max() < 1e-3
            assert side.side(5).take(number) > 0
