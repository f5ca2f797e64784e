"""Cost laws of the phases of the CUDA search: what each takes for a unit of its work counts, read off `kernel`.

An arc is priced twice, each time by 2 additions and a comparison of floats and some 20 integer operations; its record
is read, and its target's key is met by an atomic operation in the second cache. Of what is scattered at most a sector
of 32 bytes moves for each access.

Utterances are decoded at the same time, each by the threads of its block in equal shares. A thread waits for each load
whose value decides what it does next, and at barriers. Not counted, and so not attributed: the exact rank where a limit
on tokens is met, waits for the same key, threads without work.
"""

import math
from typing import Final, NamedTuple

from pipelines.config import Search
from pipelines.search.device.cuda.arrays import ARC_BYTES, ENTRY_BYTES
from pipelines.search.graph.wfst import Graph
from profiler.costs import BARRIER, CHASE, Accesses, Cost, Linear

SECTOR: Final = 32.0  # Bytes that a scattered access moves at least, between a GPU's caches and memory


class _PhaseLaw(NamedTuple):
    """What a phase takes for a unit of each of its work counts (`search.STAGES`).

    `operations`; bytes at `least` and at `most`; `loads` that a thread waits for. `barriers` of a frame, and
    `barriers_each` of the third count; `bisections` of the list of tokens by each thread in a frame.
    """

    operations: tuple[float, float]
    least: tuple[float, float]
    most: tuple[float, float]
    loads: tuple[float, float, float]
    barriers: float
    barriers_each: float = 0.0
    bisections: float = 0.0


PHASE_LAWS: Final = {
    "search.cutoff": _PhaseLaw(
        operations=(10.0, 0.0), least=(12.0, 0.0), most=(SECTOR + 4.0, 0.0), loads=(2.0, 0.0, 0.0), barriers=3.0
    ),
    "search.compact": _PhaseLaw(
        operations=(10.0, 20.0),
        least=(12.0, 24.0),
        most=(SECTOR + 4.0, 2.0 * SECTOR),
        loads=(2.0, 2.0, 0.0),
        barriers=2.0,
    ),
    "search.history": _PhaseLaw(
        operations=(20.0, 10.0),
        least=(float(ENTRY_BYTES), 12.0),
        most=(2.0 * SECTOR, 2.0 * SECTOR),
        loads=(0.0, 3.0, 5.0),
        barriers=1.0,
    ),
    "search.emit": _PhaseLaw(
        operations=(20.0, 46.0),
        least=(28.0, 28.0),
        most=(2.0 * SECTOR, 5.0 * SECTOR),
        loads=(4.0, 4.0, 0.0),
        barriers=5.0,
        bisections=2.0,
    ),
    "search.epsilon": _PhaseLaw(
        operations=(20.0, 5.0),
        least=(24.0, 4.0),
        most=(3.0 * SECTOR, SECTOR),
        loads=(2.0, 1.0, 0.0),
        barriers=3.0,
        barriers_each=2.0,
    ),
}


def phase_costs(graph: Graph, config: Search, batch: int, threads: int, device: str) -> dict[str, Cost]:
    """Cost laws by stage, of `batch` utterances and blocks of `threads`; `device` "": the simulator, without waits."""
    active = min(config.max_active, graph.n_states)
    touched = batch * SECTOR * 4.0 * active
    scattered_over = float(graph.states.nbytes + (ARC_BYTES + 4) * len(graph.arcs)) + touched

    def cost(law: _PhaseLaw) -> Cost:
        operations, least, most = (Linear(per_work=(*each, 0.0)) for each in (law.operations, law.least, law.most))
        if not device:
            return Cost({"fma": operations}, least, most, touched, scattered=True)
        loads = Linear(per_work=law.loads).times(1.0 / (batch * threads))
        bisections = Linear(per_frame=law.bisections * math.log2(max(active, 2)))
        barriers = Linear(per_frame=law.barriers, per_work=(0.0, 0.0, law.barriers_each / batch))
        return Cost(
            {f"fma@{device}": operations},
            least,
            most,
            touched,
            scattered=True,
            device=device,
            calls={f"{BARRIER}@{device}": barriers},
            accesses=(Accesses(loads.plus(bisections), scattered_over, CHASE),),
        )

    return {name: cost(law) for name, law in PHASE_LAWS.items()}
