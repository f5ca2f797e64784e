"""What cannot be used is refused in one sentence; hostile folders of models take little memory, too."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from profiler.errors import BadInput

MOST_BYTES = 60_000_000  # the models of these tests take some hundred kB


def refused(load: Callable[[Path], object], folder: Path) -> str | None:
    """The one sentence with which loading is refused; None when it is not."""
    sentence = None
    tracemalloc.start()
    try:
        load(folder)
    except BadInput as error:
        sentence = str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MOST_BYTES
    assert sentence is None or "\n" not in sentence
    return sentence


def refusal(match: str, use: Callable[..., object], *arguments: object, **more: object) -> str:
    """The one sentence with which `use` ends; `match`, a pattern, is found in it."""
    with pytest.raises(BadInput, match=match) as caught:
        use(*arguments, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    """One to three bytes of them are others."""
    broken = bytearray(data)
    for at in rng.integers(0, len(data), rng.integers(1, 4)):
        broken[at] ^= rng.integers(1, 256)
    return bytes(broken)


def refused_where_cut(load: Callable[[Path], object], folder: Path, name: str) -> None:
    """A file of `folder` that ends anywhere too early is refused, in a sentence that names it."""
    data = (folder / name).read_bytes()
    for cut in (*np.random.default_rng(5).integers(0, len(data), 60), *range(40), len(data) - 4, len(data) - 1):
        (folder / name).write_bytes(data[:cut])
        assert name in (refused(load, folder) or ""), cut
