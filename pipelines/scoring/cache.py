"""Prepared arrays of strategies, kept on disk by the content of the model and the settings they follow from."""

import hashlib
from collections.abc import Callable

import numpy as np

from pipelines.scoring.simd.vector import aligned_copy
from profiler.arrays import Array
from profiler.files import cache

VERSION = 4  # To be raised whenever what is prepared changes for the same model and settings


def digest(*arrays: Array) -> str:
    """Identity of a model's parameters."""
    made = hashlib.blake2b(digest_size=16)
    for array in arrays:
        made.update(f"{array.dtype} {array.shape}".encode())
        made.update(np.ascontiguousarray(array).data)
    return made.hexdigest()


def prepared(name: str, facts: object, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """The arrays that `make` makes, from the cache if they are there; `facts` (by repr) decide which.

    A damaged file is made again; where nothing can be written, nothing is kept.
    """
    key = hashlib.sha256(repr((VERSION, name, facts)).encode()).hexdigest()[:24]
    found = cache.find(cache.SELECTION, f"{name}-{key}")
    if found is not None:
        made = dict(found.arrays)
    else:
        made = make()
        cache.keep(cache.SELECTION, f"{name}-{key}", made, {})
    # Copied: kernels are compiled for arrays that can be written, and read vectors that begin with a cache line.
    return {name: aligned_copy(array) for name, array in made.items()}
