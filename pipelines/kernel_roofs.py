"""What a term of a cost law names, as work that can be timed: the kernels of scoring and search at their shapes.

A name is a family and its numbers, "family/number/number". The families lie beside the kernels, in a `roofs` module
each; a family takes the bytes of data to go through (0: what fits the first cache) and the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pipelines.scoring.tied import roofs as tied
from pipelines.search import roofs as search
from profiler.machine.roofs.timing import Work

FAMILIES: Mapping[str, tied.Family] = MappingProxyType({**tied.FAMILIES, **search.FAMILIES})


def work_of(name: str, size: int) -> Work:
    """Return the work behind the roof `name` over `size` bytes of data; KeyError when no kernel is called so."""
    family, *numbers = name.split("/")
    return FAMILIES[family](size, tuple(map(int, numbers)))
