"""The cache of acoustic models that were derived from another one: plain arrays, mapped into memory.

A folder per model, named by the hash of what it was made from: `means.npy`, `variances.npy`, `weights.npy`
(shapes as in `AcousticModel`) and `about.json`. It is written under another name and renamed when complete,
so that nobody ever finds half a model, whenever the derivation was stopped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.models.sphinx import AcousticModel
from profiler.paths import cache_dir

ARRAYS = ("means", "variances", "weights")
STALE_S = 24 * 3600.0
"""An unfinished folder this old was left by a process that was killed."""
_UNFINISHED = ".unfinished-"

Array = np.ndarray[Any, Any]
Progress = Callable[[str, float | None], None]


def key(model: AcousticModel, recipe: dict[str, Any]) -> str:
    """Hash of a model's files and of how another one is made from it."""
    text = json.dumps([model.checksum, recipe], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def folder() -> Path:
    """Where derived models are kept."""
    return cache_dir("models")


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `target` if the block ends without an exception."""
    _sweep(target.parent)
    work = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=target.parent))
    try:
        yield work
        shutil.rmtree(target, ignore_errors=True)  # an older one, or a damaged one
        try:
            work.rename(target)
        except OSError:
            if not target.exists():  # else another process was faster
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def create(work: Path, shape: tuple[int, int, int, int]) -> dict[str, Array]:
    """Means, variances [senones, streams, components, dim] and weights to be filled, on disk."""
    senones, streams, components, _ = shape
    shapes = (shape, shape, (streams, components, senones))
    return {
        name: np.lib.format.open_memmap(work / f"{name}.npy", "w+", np.dtype("f4"), size)
        for name, size in zip(ARRAYS, shapes, strict=True)
    }


def finish(work: Path, arrays: dict[str, Array], origin: str) -> None:
    """Write out what was filled, and where it came from."""
    for array in arrays.values():
        if isinstance(array, np.memmap):
            array.flush()
    (work / "about.json").write_text(json.dumps({"origin": origin}), encoding="utf-8")


def find(
    path: Path, base: AcousticModel, components: int, dims: tuple[int, int]
) -> AcousticModel | None:
    """The model at `path` of `dims` (streams, dimensions of each); None unless it is there and sound."""
    shape = (base.n_senones, dims[0], components, dims[1])
    try:
        arrays = {
            name: np.load(path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in ARRAYS
        }
        about = json.loads((path / "about.json").read_text(encoding="utf-8"))
        origin = str(about["origin"])
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        return None
    shapes = (shape, shape, (dims[0], components, base.n_senones))
    if any(
        a.shape != s or a.dtype != np.float32 for a, s in zip(arrays.values(), shapes, strict=True)
    ):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return replace(
        base,
        kind="continuous",
        **arrays,
        senone_codebook=np.arange(base.n_senones, dtype=np.int32),
        checksum=hashlib.sha256(f"{base.checksum} {path.name}".encode()).hexdigest(),
        origin=origin,
    )


def _sweep(parent: Path) -> None:
    """Remove what a killed derivation left behind."""
    for left in parent.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > STALE_S:
                shutil.rmtree(left, ignore_errors=True)
