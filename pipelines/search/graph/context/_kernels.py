"""Compiled loops that give every phone of a transducer its neighbours; see `expansion.expand`.

A place is a pair of a state of the given transducer and a number `held` that says which phone is
pending there and in which left context; `key` = state * span + held. Places are numbered in the
order in which they are found, so that the arcs of one follow those of the one before.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from profiler.arrays import I32, I64, Bool

_EMPTY = -1
_FIRST_TABLE = 1 << 12


class Transducer(NamedTuple):
    """The given transducer: `first` [states + 1] offsets into the arcs' columns, and which states are final."""

    first: I64
    ilabel: I32
    target: I32
    is_final: Bool


class Contexts(NamedTuple):
    """What labels and held phones make of each other.

    `base` [labels]: base phone of an input label, -1 for a disambiguation symbol; `onward` [labels, span]: what is
    held after a phone's label where something else was held before; `said` [span, phones]: label of what is held
    when that phone follows; `symbol` [labels]: label of a disambiguation symbol.
    """

    base: I32
    onward: I32
    said: I32
    symbol: I32


class ExpandedArcs(NamedTuple):
    """Room for the arcs of all places, `first` [places + 2], the last of them the common end; `origin`: the given arc
    of each, -1 - state for the arc from a final state to the end."""

    first: I64
    ilabel: I32
    target: I32
    origin: I64


@numba.njit(cache=True, nogil=True)
def _slot(table: I64, keys: I64, key: int) -> int:
    """Where the place with `key` is, or should be put, in a table of a power of 2 entries."""
    mask = len(table) - 1
    # Fibonacci hashing (Knuth 6.4): 2^64 / golden ratio.
    at = (np.int64(np.uint64(key) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20))) & mask
    while table[at] != _EMPTY and keys[table[at]] != key:
        at = (at + 1) & mask
    return int(at)


@numba.njit(cache=True, nogil=True)
def find_places(given: Transducer, start: int, contexts: Contexts) -> tuple[I64, I64]:  # pragma: no cover - compiled
    """Keys of all places that are reached from the start, and the table that finds them."""
    first, ilabel, target, _ = given
    base, onward, said, _ = contexts
    span = len(said)
    keys = np.empty(_FIRST_TABLE, dtype=np.int64)
    table = np.full(_FIRST_TABLE * 4, _EMPTY, dtype=np.int64)
    keys[0] = start * span + span - 1
    table[_slot(table, keys, keys[0])] = 0
    n, place = 1, 0
    while place < n:
        state, held = keys[place] // span, keys[place] % span
        for arc in range(first[state], first[state + 1]):
            label = ilabel[arc]
            after = held if base[label] < 0 else onward[label, held]
            key = target[arc] * span + after
            at = _slot(table, keys, key)
            if table[at] == _EMPTY:
                if n == len(keys):
                    larger = np.empty(2 * n, dtype=np.int64)
                    for old in range(n):
                        larger[old] = keys[old]
                    keys = larger
                    table = np.full(len(table) * 2, _EMPTY, dtype=np.int64)
                    for old in range(n):
                        table[_slot(table, keys, keys[old])] = old
                    at = _slot(table, keys, key)
                keys[n] = key
                table[at] = n
                n += 1
        place += 1
    return keys[:n].copy(), table


@numba.njit(cache=True, nogil=True)
def fill_arcs(
    keys: I64, table: I64, given: Transducer, contexts: Contexts, silence: int, made: ExpandedArcs
) -> None:  # pragma: no cover - compiled
    """The arcs of all places, in their order."""
    first, ilabel, target, is_final = given
    base, onward, said, symbol = contexts
    new_first, new_label, new_target, origin = made
    span = len(said)
    at = 0
    for place in range(len(keys)):
        new_first[place] = at
        state, held = keys[place] // span, keys[place] % span
        for arc in range(first[state], first[state + 1]):
            label = ilabel[arc]
            if base[label] < 0:
                new_label[at], after = symbol[label], held
            else:
                new_label[at], after = said[held, base[label]], onward[label, held]
            new_target[at] = table[_slot(table, keys, target[arc] * span + after)]
            origin[at] = arc
            at += 1
        if is_final[state]:
            new_label[at] = said[held, silence]
            new_target[at] = len(keys)
            origin[at] = -1 - state
            at += 1
    new_first[len(keys)] = new_first[len(keys) + 1] = at
