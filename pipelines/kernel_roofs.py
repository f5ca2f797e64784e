"""What a term of a cost law names, as work that can be timed: the kernels of scoring and search at their shapes.

A name is a family and its numbers, "family/number/number". The families lie beside the kernels, in a `roofs` module
each; a family takes the bytes of data to go through (0: what fits the first cache), or those read before a call, and
the numbers. "…+KiBxframes": of these bytes so many are the kernel's own, read for so many frames at once; the others
are read in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pipelines.frontend import roofs as frontend
from pipelines.scoring import roofs_of_layers as layers
from pipelines.scoring.clustering import roofs as clustering
from pipelines.scoring.continuous import roofs as continuous
from pipelines.scoring.continuous import roofs_of_chosen as chosen
from pipelines.scoring.dnn import roofs as nets
from pipelines.scoring.gaussians import roofs as gaussians
from pipelines.scoring.kernel_work import FRAMES, OWN, SCORING, SEARCH_SECONDS, Family
from pipelines.scoring.roofs_tasks import after_others
from pipelines.scoring.tied import roofs as tied
from pipelines.scoring.tied import roofs_of_some as tied_some
from pipelines.search import roofs as search
from profiler.machine.roofs.timing import Work

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        **tied.FAMILIES,
        **tied_some.FAMILIES,
        **layers.FAMILIES,
        **gaussians.FAMILIES,
        **clustering.FAMILIES,
        **continuous.FAMILIES,
        **chosen.FAMILIES,
        **nets.FAMILIES,
        **frontend.FAMILIES,
        **search.FAMILIES,
    }
)


def work_of(name: str, size: int) -> Work:
    """Return the work behind the roof `name` over, or after, `size` bytes; KeyError when no kernel is called so.

    Where the name tells the kernel's own data, what it goes through are all of these, and then others' up to `size`: in
    the time that the search of the block's frames takes, but for a size at which there is no search.
    """
    shape, _, rest = name.partition(OWN)
    family, *numbers = shape.split("/")
    data, _, frames = rest.partition(FRAMES)
    if not data or not size:
        return FAMILIES[family](size, tuple(map(int, numbers)))
    kib, _, scoring = data.partition(SCORING)
    own = min(int(kib) << 10, size)
    work = FAMILIES[family](own, tuple(map(int, numbers)))
    alone = scoring and size <= int(scoring) << 10
    seconds = 0.0 if alone else int(frames) * SEARCH_SECONDS
    between, times = size - own, work.to_pass
    return Work(
        work.operations * times, lambda: after_others(between, seconds, work.make(), times), True
    )
