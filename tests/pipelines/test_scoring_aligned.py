"""What kernels read by vectors begins with a cache line: a vector across two lines takes up to 1.7 times as long."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from selection_reference import family_of

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import cache
from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.continuous.dense import ContinuousGmm
from pipelines.scoring.simd.vector import VECTOR_BYTES, aligned, aligned_copy
from pipelines.scoring.tied.gmm import Gmm
from profiler.arrays import Array
from tests.each import each

TRIES = 8
"""By chance one array of four begins with a line."""

MADE: Mapping[str, Callable[[], Array]] = {
    "zeros": lambda: aligned((3, 5)),
    "a copy": lambda: aligned_copy(np.arange(33, dtype=np.int16)[3:]),
    "prepared": lambda: cache.prepared("a", 1, lambda: {"rows": np.ones((3, 7), np.float32)[:, 1:]})["rows"],
}


def _begins_with_a_line(array: Array) -> bool:
    return array.ctypes.data % VECTOR_BYTES == 0 and array.flags.c_contiguous and array.flags.writeable


@each("make", MADE.values())
def test_what_is_made_for_kernels_begins_with_a_line(make: Callable[[], Array]) -> None:
    kept = [make() for _ in range(TRIES)]
    assert all(map(_begins_with_a_line, kept))


def test_a_copy_has_the_values_and_their_type() -> None:
    values = np.arange(24, dtype=np.int16).reshape(4, 6)[:, ::2]
    copied = aligned_copy(values)
    assert np.array_equal(copied, values)
    assert copied.dtype == np.int16
    copied[0, 0] = 7
    assert values[0, 0] == 0


@each("name", ["tied", "three streams", "one stream"])
def test_parameters_and_workspace_of_a_model_begin_with_a_line(models: dict[str, AcousticModel], name: str) -> None:
    for _ in range(TRIES):
        family = family_of(models[name])
        p = family.parameters
        if isinstance(family, Gmm):
            workspace = family.workspace(MAX_FRAMES), family.products(MAX_FRAMES)[0]
            found = [p.gaussians, p.weights, p.rows, p.dots, *workspace]
        else:
            assert isinstance(family, ContinuousGmm)
            (space,) = family._workspace.values()
            found = [p.gaussians, p.by_senone, *space]
        assert all(map(_begins_with_a_line, found))
