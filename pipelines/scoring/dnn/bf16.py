"""A net in 16 bits (bfloat16): weights and activations rounded to eight bits of fraction, sums in float32.

torch multiplies (oneDNN). Where processor and library have instructions for it (AVX512-BF16, AMX) the weights are
laid out for its kernels once, when the net is made: with that a net takes 0.35 to 0.5 of the time of OpenBLAS in
float32 at blocks of 16 to 64, without it 0.6. Elsewhere the same products come from a fallback that can take several
times as long as float32. Frames are rows here, and features are centred and scaled in float32 before they are
rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.models.nets import Net
from pipelines.scoring.costs import nets as laws
from pipelines.scoring.dnn.dense import (
    ACTIVE_STAGE,
    OUTPUT_STAGE,
    SPLICE_STAGE,
    TorchSplicer,
    layer_stage,
)
from pipelines.scoring.meter import Meter
from profiler.arrays import Array
from profiler.spans import Cost

OPERATION = "gemm:bfloat16"
LAID_OUT_FOR = 16
"""Frames that oneDNN lays weights out for: its choice suits 1 to 64 alike."""


def has_fast_products() -> bool:
    """Whether oneDNN has 16-bit kernels for this processor."""
    import torch

    if not torch.backends.mkldnn.is_available():
        return False
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class Rounded:
    """One layer: weights [outputs, inputs] and bias in bfloat16, times frames as rows."""

    def __init__(self, weight: Array, bias: Array, relu: bool) -> None:
        import torch

        self.shape: tuple[int, int] = weight.shape
        self.relu, self.laid_out = relu, has_fast_products()
        self.weight = torch.from_numpy(np.ascontiguousarray(weight)).bfloat16()
        self.bias = torch.from_numpy(np.ascontiguousarray(bias)).bfloat16()
        self.nbytes = laws.BF16 * (weight.size + bias.size)
        self._torch = torch
        if self.laid_out:
            self._packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, LAID_OUT_FOR)

    def multiply(self, x: Any) -> Any:
        """Bfloat16 [n, outputs] of frames bfloat16 [n, inputs]."""
        if self.laid_out:
            after = "relu" if self.relu else "none"
            return self._torch.ops.mkldnn._linear_pointwise(x, self._packed, self.bias, after, [], "")
        y = self._torch.nn.functional.linear(x, self.weight, self.bias)
        return y.relu_() if self.relu else y

    def rows(self, x: Any, chosen: Any) -> Any:
        """The outputs `chosen` alone: bfloat16 [n, chosen]."""
        return self._torch.nn.functional.linear(x, self.weight[chosen], self.bias[chosen])


def rounded(spliced: Array, mean: Any, scale: Any) -> Any:
    """Features f32 [n, inputs + 1] without the last, centred and scaled: bfloat16 [n, inputs]."""
    import torch

    x = torch.from_numpy(spliced)[:, :-1]
    return (x - mean).mul_(scale).bfloat16()


class Bf16Net(TorchSplicer):
    """Weights and workspace of one net in bfloat16, for at most `max_frames` at a time."""

    def __init__(self, net: Net, threads: int, max_frames: int) -> None:
        import torch

        super().__init__(net.card, threads, max_frames)
        card, tensors = net.card, net.tensors
        frames = card.left + 1 + card.right
        self._mean = torch.tensor(card.mean, dtype=torch.float32).repeat(frames)
        self._scale = torch.tensor(card.scale, dtype=torch.float32).repeat(frames)

        def made(name: str, relu: bool) -> Rounded:
            return Rounded(tensors[f"{name}.weight"], tensors[f"{name}.bias"], relu)

        self._layers = [made(f"layers.{i}", layer.relu) for i, layer in enumerate(card.layers)]
        self._heads = [made(f"heads.{i}", relu=False) for i in range(card.heads)]
        # Row 0 is the last frame of the block before the one begun.
        width = self._heads[0].shape[1]
        self._last = torch.zeros((1 + max_frames, width), dtype=torch.bfloat16)

    def score(self, spliced: Array, scores: Array, meter: Meter) -> None:
        """Log posteriors, up to a constant per frame, f32 [n, senones], of frames as `splice` gives them."""
        y = self._heads[0].multiply(self._through(spliced, meter))
        self._torch.from_numpy(scores).copy_(y)
        meter.close(OUTPUT_STAGE, len(spliced) * self.n_senones)

    def begin_some(self, spliced: Array, meter: Meter) -> None:
        """The hidden layers of a block, for `score_some` and `score_by_heads`."""
        last = self._last
        last[0] = last[self.begun]
        self.begun = len(spliced)
        last[1 : 1 + len(spliced)] = self._through(spliced, meter)

    def score_some(self, first: int, last: int, senones: Array, scores: Array, meter: Meter) -> None:
        """As `SomeSenones.score_some`."""
        chosen = self._torch.from_numpy(senones)
        y = self._heads[0].rows(self._last[1 + first : 1 + last], chosen)
        scores[first:last, senones] = y.float().numpy()
        meter.close(ACTIVE_STAGE, (last - first) * len(senones))

    def score_by_heads(self, source: Array, since: Array, scores: Array, meter: Meter) -> None:
        """As `Choosing.score_by_heads`."""
        for head in np.unique(since):
            mine = np.flatnonzero(since == head)
            y = self._heads[head].multiply(self._last[1 + source[mine]])
            scores[mine] = y.float().numpy()
        meter.close(OUTPUT_STAGE, len(scores) * self.n_senones)

    def _through(self, spliced: Array, meter: Meter) -> Any:
        """Activations of the last hidden layer, bfloat16 [n, width]."""
        x = rounded(spliced, self._mean, self._scale)
        for i, layer in enumerate(self._layers):
            x = layer.multiply(x)
            meter.close(layer_stage(i + 1), len(spliced))
        return x

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `splice` and `score` for calls of about `frames` frames."""
        output = self._law(self._heads[0], first=not self._layers, heads=self.heads_used)
        return self._hidden_costs(frames) | {OUTPUT_STAGE: output}

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `splice`, `begin_some` and `score_some`."""
        active = laws.bf16_rows(self._heads[0], OPERATION, frames, self._threads)
        return self._hidden_costs(frames) | {ACTIVE_STAGE: active}

    def _hidden_costs(self, frames: int) -> dict[str, Cost]:
        costs = {SPLICE_STAGE: laws.splice(self.card, frames)}
        for i, layer in enumerate(self._layers):
            costs[layer_stage(i + 1)] = self._law(layer, first=i == 0)
        return costs

    def _law(self, layer: Rounded, *, first: bool, heads: int = 0) -> Cost:
        net_bytes = float(sum(p.nbytes for p in (*self._layers, *self._heads)))
        return laws.bf16_layer(layer, OPERATION, net_bytes, self._threads, first=first, heads=heads)
