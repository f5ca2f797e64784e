"""A whole net as one function that torch.compile (TorchInductor) has written, in C++, for this net.

Weights are frozen into it, so that they lie as oneDNN wants them; centring, scaling and ReLU are fused into the
adjacent operations. One graph serves every number of frames from two on, another a single frame: both are made when
the net is, and nothing is compiled while frames are scored. There are no layers to be seen from outside: one stage
has the operations and bytes of all of them.

Needs a C++ compiler and Python's headers (`pipelines.availability.compiler_unavailable_reason`).
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from pipelines.availability import compiler_unavailable_reason
from pipelines.models.nets import Net
from pipelines.scoring.costs import nets as laws
from pipelines.scoring.dnn.dense import NET_STAGE, SPLICE_STAGE, TorchSplicer
from pipelines.scoring.meter import Meter
from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.files.paths import COMPILED, cache_path, own_dir
from profiler.process import limits
from profiler.spans import Cost

MADE_FOR = 16
"""Frames that the general graph is made with; what oneDNN chooses for it suits 2 to 64 alike."""
INDUCTOR = {
    "freezing": True,
    # Of every tensor between two products: as much time again as a product of 16 frames takes.
    "size_asserts": False,
    "alignment_asserts": False,
    # A net has a few small kernels; a pool of compiling processes would outlive the need for it.
    "compile_threads": 1,
    # They would be kept in torch's own place, a name in a folder that all users share, and serve many kernels.
    "cpp_cache_precompile_headers": False,
}


class CompileError(BadInput):
    """The net cannot be compiled here, in one sentence."""


class CompiledNet(TorchSplicer):
    """One compiled function of a net in float32, for at most `max_frames` at a time."""

    def __init__(self, net: Net, threads: int, max_frames: int) -> None:
        """Takes two seconds on an idle core, the first time on a machine ten. Raises CompileError.

        The function is made for `threads` threads, and compiled again for another number.
        """
        if reason := compiler_unavailable_reason():
            raise CompileError(f"dnn.product = compiled cannot be used: {reason}; choose simd.")
        import torch

        torch.set_num_threads(threads)
        super().__init__(net.card, threads, max_frames)
        self.stages = {SPLICE_STAGE: ("frames",), NET_STAGE: ("frames",)}
        matrices = [*net.matrices(), (*net.head(0), False)]
        self._matrices = [(weight.shape, relu) for weight, _, relu in matrices]
        self._forward = _compiled(net, max_frames, self._input)

    def score(self, spliced: Array, scores: Array, meter: Meter) -> None:
        """Log posteriors, up to a constant per frame, f32 [n, senones], of frames as `splice` gives them."""
        with self._torch.no_grad():
            scored = self._forward(self._torch.from_numpy(spliced))
        self._torch.from_numpy(scores).copy_(scored)
        meter.close(NET_STAGE, len(spliced))

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `splice` and `score`: those of all layers together."""
        net = laws.compiled(self.card, self._matrices, self._threads)
        return {SPLICE_STAGE: laws.splice(self.card, frames), NET_STAGE: net}


def _compiled(net: Net, max_frames: int, example: Array) -> Any:
    """f32 [n, inputs + 1] → f32 [n, senones], compiled for any n up to `max_frames`. CompileError."""
    import torch

    # Kernels are kept from run to run, with what else the program keeps; never in torch's own place, a name
    # in a folder that all users share. Torch loads what it finds there as code.
    try:
        if "TORCHINDUCTOR_CACHE_DIR" not in os.environ:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(own_dir(cache_path(COMPILED)))
    except OSError as problem:
        reason = limits.sentence(problem).rstrip(".")
        raise CompileError(f"dnn.product = compiled cannot be used: {reason}; choose simd.") from problem
    from torch._inductor import config

    with warnings.catch_warnings():
        # Where torch itself uses what it calls deprecated; freezing imports it.
        warnings.simplefilter("ignore", DeprecationWarning)
        importlib.import_module("torch.utils.mkldnn")
    patches = {name: value for name, value in INDUCTOR.items() if hasattr(config, name)}
    # Traced, each net has code of its own: what dynamo keeps and counts goes by code, not by object.
    forward = torch.compile(torch.fx.symbolic_trace(_module(net)))
    frames = torch.from_numpy(example)
    try:
        with torch.no_grad(), config.patch(patches):
            for n in sorted({min(MADE_FOR, max_frames), 1}, reverse=True):
                part = frames[:n]
                if n > 1:
                    torch._dynamo.mark_dynamic(part, 0, min=2, max=max_frames)
                forward(part)
    except RuntimeError as problem:
        reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        raise CompileError(
            f"dnn.product = compiled cannot be used: torch.compile fails ({reason}); choose simd."
        ) from problem
    return forward


def frozen(weight: Array, bias: Array) -> Callable[[Any], Any]:
    """The layer that a compiled net calls oneDNN for: f32 [n, inputs] → f32 [n, outputs]."""
    import torch

    given, more = torch.from_numpy(weight), torch.from_numpy(bias)
    if not torch.backends.mkldnn.is_available():
        return lambda x: torch.nn.functional.linear(x, given, more)
    packed = torch.ops.mkldnn._reorder_linear_weight(given, MADE_FOR)
    return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, more, "none", [], "")


def _module(net: Net) -> Any:
    """The forward pass as a module of torch."""
    import torch

    card, tensors = net.card, net.tensors
    names = [*(f"layers.{i}" for i in range(len(card.layers))), "heads.0"]
    relus = [*(layer.relu for layer in card.layers), False]

    class Forward(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            frames = card.left + 1 + card.right
            self.mean = self._kept(np.tile(np.asarray(card.mean, np.float32), frames))
            self.scale = self._kept(np.tile(np.asarray(card.scale, np.float32), frames))
            for i, name in enumerate(names):
                setattr(self, f"weight{i}", self._kept(tensors[f"{name}.weight"]))
                setattr(self, f"bias{i}", self._kept(tensors[f"{name}.bias"]))

        @staticmethod
        def _kept(values: Array) -> Any:
            # Parameters, not buffers: what is frozen into the function.
            copied = torch.from_numpy(np.array(values, np.float32))
            return torch.nn.Parameter(copied, requires_grad=False)

        def forward(self, spliced: Any) -> Any:
            # The last column, of ones, is for products that take the bias along.
            x = (spliced[:, :-1] - self.mean) * self.scale
            for i, relu in enumerate(relus):
                weight, bias = getattr(self, f"weight{i}"), getattr(self, f"bias{i}")
                x = torch.nn.functional.linear(x, weight, bias)
                x = torch.relu(x) if relu else x
            return x

    return Forward().train(False)
