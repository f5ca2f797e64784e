"""Numbers that the search's kernels and their callers agree on: registers, counts, return codes.

The kernels freeze these numbers when they are compiled, and numba's cache looks at the date of the
kernels' own file only: whoever changes a number here touches `_kernels.py` too.
"""

from __future__ import annotations

import numpy as np

# Registers: int64 values that live from call to call.
N, M, PENDING, HISTORY, FRAME, N_REGISTERS = range(6)
# Float registers: what was taken off all costs, the beam that the last cutoff allows, and the cost
# over which a token of the last frame does not count.
OFFSET, ADAPTIVE, LIMIT, N_FLOATS = range(4)
# Work counts of a call.
TOKENS, EMIT_ARCS, SENONES, EPSILON_ARCS, EXAMINED, N_WORK = range(6)
DONE, NEED_HISTORY, NO_TOKENS = range(3)

INFINITY = np.float32(np.inf)
