"""The graph of an ONNX file in onnxruntime: made, and tried out on silence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.onnx.graph import OnnxModel
from profiler.plain import one_line


def session(model: OnnxModel, threads: int) -> Any:
    """The graph, ready to be computed; ModelError with what onnxruntime says against it."""
    try:
        import onnxruntime
    except ImportError:
        raise ModelError(
            f"{model.path} needs the package onnxruntime, which is not installed; "
            "`pip install onnx onnxruntime` brings it."
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # what goes wrong is said here
    # Nothing else that onnxruntime might read, and no thread that spins while the search computes.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(
            model.content, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's errors share no other base
        raise ModelError(f"{model.path} cannot be computed: {_sentence(error)}") from None


def probe(made: Any, model: OnnxModel, counts: Iterable[int]) -> None:
    """ModelError unless silence in each of these numbers of frames gives finite scores of all senones."""
    path, senones = model.path, model.card.senones
    for frames in counts:
        silence = np.zeros((frames, model.card.inputs), np.float32)
        try:
            (found,) = made.run([model.output], {model.input: silence})
        except Exception as error:  # onnxruntime's errors share no other base
            raise ModelError(f"{path} cannot be computed: {_sentence(error)}") from None
        if found.shape != (frames, senones):
            raise ModelError(
                f"{path} gives the shape {list(found.shape)} for {frames} "
                f"frame{'s' * (frames != 1)}; its card asks for [{frames}, {senones}]."
            )
        if not np.isfinite(found).all():
            raise ModelError(f"{path} gives scores that are not finite numbers.")


def _sentence(error: Exception) -> str:
    """What onnxruntime says, without its own prefix, on one line."""
    text = " ".join(str(error).split()).rsplit("[ONNXRuntimeError] : ", 1)[-1]
    words = text.split(" : ", 2)
    said = words[-1] if len(words) == 3 and words[0].isdigit() else text
    said = said.removeprefix("This is an invalid model. ")
    return f"onnxruntime says: {one_line(said[:300]).rstrip('. ')}."
