"""The kernels of nets as roofs, at their tile shapes: within the first cache, or over as many bytes of weights.

Each is called as scoring calls it; its units are those of the cost law that names it. Products that a library computes
are timed as the library's own at that shape, with as much of a matrix as the nearest two caches keep in place of the
first one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pipelines.scoring.dnn.roofs import _integers, _kernels, _layers, _libraries
from pipelines.scoring.kernel_work import Family

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        **_kernels.FAMILIES,
        **_layers.FAMILIES,
        **_integers.FAMILIES,
        **_libraries.FAMILIES,
    }
)
"""Family of roofs → what makes its work from a size and the numbers of its name."""
