"""The graph of an ONNX file in onnxruntime: made, and tried out on silence."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.onnx.graph import OnnxModel
from profiler.arrays import Array
from profiler.plain import one_line

SUM_TOLERANCE = 1e-2  # of probabilities that half precision has rounded
LONGEST = 300  # characters of what onnxruntime says
_IR = re.compile(r"Unsupported model IR version: (\d+), max supported IR version: (\d+)")
_WHERE = re.compile(r"\S+\.(cc|h|cpp):\d+ .*?\) ")
"""The line of its own source that onnxruntime names, and the signature of the function."""


def session(path: Path, content: bytes, threads: int, profile: str = "") -> Any:
    """The graph `content` of `path`, ready to be computed; ModelError with what onnxruntime says against it.

    `profile`: how the name of the file begins that it writes its profile to; empty: none.
    """
    try:
        import onnxruntime
    except ImportError:
        raise ModelError(
            f"{path} needs the package onnxruntime, which is not installed; `pip install onnx onnxruntime` brings it."
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # what goes wrong is said here
    # Nothing else that onnxruntime might read, and no thread that spins while the search computes.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no other base
        raise ModelError(f"{path} cannot be computed: {_sentence(error)}") from None


def run(made: Any, path: Path, outputs: list[str], inputs: dict[str, Array]) -> list[Array]:
    """The `outputs` of a session; ModelError with what onnxruntime says against it."""
    try:
        found: list[Array] = made.run(outputs, inputs)
    except Exception as error:  # onnxruntime's errors share no other base
        raise ModelError(f"{path} cannot be computed: {_sentence(error)}") from None
    return found


def probe(made: Any, model: OnnxModel, counts: Iterable[int]) -> bool:
    """Whether the graph gives probabilities: numbers of 0 to 1 that add up to 1 in every frame.

    ModelError unless silence in each of these numbers of frames gives finite scores of all senones.
    """
    path, senones, probabilities = model.path, model.card.senones, True
    for frames in counts:
        silence = np.zeros((frames, model.card.inputs), np.float32)
        (found,) = run(made, path, [model.output], {model.input: silence})
        if found.shape != (frames, senones):
            raise ModelError(
                f"{path} gives the shape {list(found.shape)} for {frames} "
                f"frame{'s' * (frames != 1)}; its card asks for [{frames}, {senones}]."
            )
        if not np.isfinite(found).all():
            raise ModelError(f"{path} gives scores that are not finite numbers.")
        sums = found.sum(axis=1, dtype=np.float64)
        probabilities &= bool((found >= 0).all() and (np.abs(sums - 1) < SUM_TOLERANCE).all())
    return probabilities


def _sentence(error: Exception) -> str:
    """Return onnxruntime's message, without its own prefix, on one line."""
    text = " ".join(str(error).split()).rsplit("[ONNXRuntimeError] : ", 1)[-1]
    if versions := _IR.search(text):
        asked, known = versions.groups()
        return (
            f"its IR version is {asked}, and this onnxruntime reads {known} at most; update onnxruntime, or save the "
            f"file with ir_version={known}."
        )
    words = text.split(" : ", 2)
    said = words[-1] if len(words) == 3 and words[0].isdigit() else text
    said = _WHERE.sub("", said.removeprefix("This is an invalid model. "))
    return f"onnxruntime says: {one_line(said, LONGEST).rstrip('. ')}."
