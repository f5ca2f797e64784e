"""Numbers that the search's kernels and their callers agree on: registers, counts, return codes."""

from __future__ import annotations

import numpy as np

# Registers: int64 values that live from call to call. [0, N) are listed tokens, [0, M) all of them;
# EMITTING and EPSILONS count listed arcs, CHOSEN those of the last frame that led to a token.
N, M, PENDING, HISTORY, FRAME, EMITTING, EPSILONS, CHOSEN, ALTERNATIVES, N_REGISTERS = range(10)
# Float registers: what was taken off all costs, the beam that the last cutoff allows, the cost over
# which a token of the last frame does not count, the least cost in it, the last cutoff less the best.
OFFSET, ADAPTIVE, LIMIT, BEST, CUTOFF, N_FLOATS = range(6)
# Work counts of a call.
TOKENS, EMIT_ARCS, SENONES, EPSILON_ARCS, EXAMINED, CONTENDERS, N_WORK = range(7)
# Why a kernel came back; ENDLESS: epsilon arcs make paths cheaper for ever.
DONE, NEED_HISTORY, NO_TOKENS, ENDLESS = range(4)

INFINITY = np.float32(np.inf)
LARGEST = np.float32(1e30)
"""Of a weight or a score's gain: a path over a hundred million of them still adds up to a number."""
MOST_EPSILONS = 1 << 25
"""Epsilon arcs gone over in one frame, beyond which they are taken to have no end: some 0.1 s of work."""
# How a token came about in the last frame, where it is not the number of a listed emitting arc.
BY_LOOP, BY_ENTRY = -1, -2
