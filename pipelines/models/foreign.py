"""Nets that somebody names, opened by a process of their own that may take so much memory and time and no more.

A short file can ask for any amount of either. The child (`python -m pipelines.models.foreign`) reads and checks the
file, computes a graph for the numbers of frames that a run may ask for, and returns a file of the cache's form.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipelines.models.errors import ModelError
from profiler.errors import BadInput
from profiler.process import children, limits
from profiler.process.children import read_arguments

if TYPE_CHECKING:
    from profiler.files.cache import Kept

MEMORY_BYTES: Final = 1_200 << 20  # What the child may take; a graph of `nets.MAX_PARAMETERS` takes five sixths
CPU_SECONDS: Final = 8  # Of processor time, which other programs do not lengthen; a net of 48 million weights takes two
WALL_SECONDS: Final = 120.0
FACTS: Final = ("card", "input", "output", "nodes", "constants")  # of an `OnnxModel`, that go with its bytes
SINGLE: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
"""One thread: time is then the work, and memory what is used of it."""


def load(
    path: Path, senones: int, dimension: int, max_frames: int, cancelled: Callable[[], bool] = lambda: False
) -> Any:
    """Load and check the `nets.Net` of a .safetensors file or the `onnx.OnnxModel` of an .onnx file.

    `senones`: of the acoustic model; `dimension`: of a frame's features; `max_frames`: most frames at once.
    Raises ModelError (one sentence) if it cannot be used or takes too much, or Cancelled.
    """
    with opened(__name__, path, [str(senones), str(dimension), str(max_frames)], cancelled) as kept:
        return _net(path, kept) if path.suffix != ".onnx" else _graph(path, kept)


def _net(path: Path, kept: Kept) -> Any:
    import msgspec
    import numpy as np

    from pipelines.models.nets import Card, Net

    card = msgspec.convert(kept.about["card"], Card)
    found = {name: array.shape for name, array in kept.arrays.items()}
    if found != card.shapes or any(a.dtype != np.float32 for a in kept.arrays.values()):
        raise ModelError(f"{path} could not be opened: its tensors are not those of its card.")
    # Copied: the file goes, and kernels are compiled for arrays that can be written.
    return Net(path.stem, card, {name: array.copy() for name, array in kept.arrays.items()})


def _graph(path: Path, kept: Kept) -> Any:
    import msgspec

    from pipelines.models.onnx.graph import OnnxModel

    return msgspec.convert({**kept.about, "path": path, "content": kept.arrays["content"].tobytes()}, OnnxModel)


@contextlib.contextmanager
def opened(module: str, path: Path, arguments: list[str], cancelled: Callable[[], bool]) -> Iterator[Kept]:
    """What a child makes of `path`: `module` with FILE, `arguments` and TARGET, which calls `answer`.

    ModelError if the file cannot be read or takes too much; Cancelled.
    """
    from profiler.files import cache

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        target = Path(folder) / "net"
        run_child(module, path, [str(path.absolute()), *arguments, str(target)], cancelled)
        try:
            kept = cache.read(target)
        except cache.CacheError as error:
            raise ModelError(f"{path} could not be opened: {error}") from error
        yield kept


def run_child(module: str, path: Path, arguments: list[str], cancelled: Callable[[], bool]) -> None:
    said: deque[bytes] = deque(maxlen=16)
    command = children.python("-m", module, *arguments)
    try:
        status, _ = children.listen(
            command, said.append, cancelled, extra=SINGLE, silence_s=WALL_SECONDS, complains=False
        )
    except TimeoutError:
        raise ModelError(f"{path} cannot be opened: it takes over {WALL_SECONDS:.0f} s.") from None
    if not status:
        return
    sentence = f"{path} cannot be opened: "
    if status == -getattr(signal, "SIGXCPU", 0):
        sentence += f"it takes over {CPU_SECONDS} s to read and try out."
    else:
        sentence += f"the process that reads it ended with status {status}, as happens when more than "
        sentence += f"{MEMORY_BYTES >> 20:,} MB are asked for."
    for line in said:  # its own sentence, if it came to one
        with contextlib.suppress(ValueError, TypeError, KeyError):
            sentence = str(json.loads(line)["error"])
    raise ModelError(sentence)


def main(arguments: Sequence[str] | None = None) -> int:
    """The child: `foreign FILE SENONES DIMENSION FRAMES TARGET`; not meant to be called by people."""
    path, senones, dimension, max_frames, target = read_arguments(
        "pipelines.models.foreign", __doc__, *("FILE", "SENONES", "DIMENSION", "FRAMES", "TARGET"), arguments=arguments
    )
    return answer(Path(path), lambda: _open(Path(path), int(senones), int(dimension), int(max_frames), Path(target)))


def answer(path: Path, read: Callable[[], None]) -> int:
    """In the child: `read` within the bounds, and say what is wrong with `path`; returns the exit status."""
    limits.lower(RLIMIT_AS=MEMORY_BYTES, RLIMIT_DATA=MEMORY_BYTES, RLIMIT_CPU=CPU_SECONDS, RLIMIT_CORE=0)
    children.end_with_parent()
    try:
        read()
    except BadInput as error:
        problem = str(error)
    except MemoryError:
        problem = f"{path} cannot be opened: it takes over {MEMORY_BYTES >> 20:,} MB of memory."
    else:
        return 0
    sys.stdout.write(json.dumps({"error": problem}) + "\n")
    return 2


def _open(path: Path, senones: int, dimension: int, max_frames: int, target: Path) -> None:
    import msgspec
    import numpy as np

    from profiler.files import cache

    if path.suffix != ".onnx":
        from pipelines.models import nets

        net = nets.load(path, senones, dimension)
        cache.write(target, net.tensors, {"card": msgspec.to_builtins(net.card)})
        return
    from pipelines.models.onnx import graph as onnx
    from pipelines.models.onnx import runtime as onnx_runtime

    model = onnx.load(path, senones, dimension)
    # Sizes grow with the frames, unless they are computed from their number.
    computed = any(node.operator in onnx.SIZES for node in model.nodes)
    counts = range(1, max_frames + 1) if computed else (1, max_frames)
    onnx_runtime.probe(onnx_runtime.session(path, model.content, 1), model, counts)
    facts = {name: msgspec.to_builtins(getattr(model, name)) for name in FACTS}
    cache.write(target, {"content": np.frombuffer(model.content, np.uint8)}, facts)


if __name__ == "__main__":
    sys.exit(main())
