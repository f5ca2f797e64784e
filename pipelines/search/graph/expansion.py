"""C and H: from position-dependent phones to senones.

Composition with a context transducer gives every phone its left and right neighbour: an arc says the phone before it,
now that the one after it is known. Phones in context are tied to sequences of senones at once, and left contexts that
the tying does not tell apart are one, which makes fewer states than OpenFst's context transducer. Each sequence is then
spelled out as three arcs in series (H of a left-to-right HMM without skips). Self-loops come later, as in Kaldi.

A place is a pair of a state of the given transducer and a number `held` that says which phone is pending there and in
which left context; `key` = state * span + held. Places are numbered in the order in which they are found.
"""

from typing import NamedTuple

import numba
import numpy as np

from pipelines.models.sphinx.definition import POSITIONS, ModelDefinition
from pipelines.search.graph.lexicon import PhoneLabels
from pipelines.search.graph.openfst import Fst, from_arcs
from pipelines.search.graph.wfst import GraphError
from profiler.arrays import I32, I64, Bool, check_indices


def expand(fst: Fst, definition: ModelDefinition, labels: PhoneLabels) -> tuple[Fst, I32]:
    """Put phones into context and tie them; before the first phone and after the last silence is the context.

    Returns the transducer with labels 1 … n for senone sequences, n + 1 for the symbol that begins every path (without
    it determinisation could fail) and n + 2 … for the disambiguation symbols; and the sequences, int32 [n, 3] of
    senones.
    """
    if not fst.n_states:
        raise GraphError("Nothing can be said: no path leads through the words and what may follow.")
    sequences, said, held, left = _tied(definition)
    n, span = len(sequences), len(said)
    n_labels = labels.backoff + labels.n_disambiguation
    base, position = np.divmod(np.arange(n_labels) - 1, POSITIONS)
    onward = held[base[:, None] % definition.n_ci, left[None, :], position[:, None]]
    base[0] = -1
    base[labels.backoff :] = -1
    symbol = np.zeros(n_labels, dtype=np.int32)
    symbol[labels.backoff :] = n + 2 + np.arange(labels.n_disambiguation)
    check_indices("input labels", fst.ilabel, n_labels)
    contexts = Contexts(base.astype(np.int32), onward, said, symbol)
    is_final = np.isfinite(fst.final)
    given = Transducer(fst.first, fst.ilabel, fst.target, is_final)
    keys, table = find_places(given, fst.start, contexts)
    n_arcs = int((np.diff(fst.first) + is_final)[keys // span].sum())
    made = ExpandedArcs(
        np.empty(len(keys) + 2, dtype=np.int64),
        np.empty(n_arcs, dtype=np.int32),
        np.empty(n_arcs, dtype=np.int32),
        np.empty(n_arcs, dtype=np.int64),
    )
    fill_arcs(keys, table, given, contexts, definition.silence, made)
    final = np.full(len(keys) + 1, np.inf, dtype=np.float32)
    final[-1] = 0.0
    # An arc to the end comes from a final state and has its weight and no word.
    weight = np.append(fst.weight, fst.final[::-1])[made.origin]
    olabel = np.append(fst.olabel, np.zeros(fst.n_states, dtype=np.int32))[made.origin]
    return Fst(0, final, made.first, made.ilabel, olabel, weight, made.target), sequences


def _tied(definition: ModelDefinition) -> tuple[I32, I32, I32, I32]:
    """Sequences of senones, and all that can be held: a base phone in a left context.

    `said` [held, phones]: label of what is held when that phone follows; `held` [phones, left, positions]: its number,
    the same for all that no right context tells apart; `left` [held]: its base phone. The last one is held before the
    first phone: it says the symbol that begins every path and is silence to the next phone.
    """
    # Two state sequences with the same senones are one: transitions follow from the senones.
    sequences, number = np.unique(definition.sseq, axis=0, return_inverse=True)
    filler = definition.filler[:, None, None, None]
    own = definition.ci_ssids[:, None, None, None]
    label = 1 + number.reshape(-1)[np.where(filler, own, definition.ssid)]
    phones = definition.n_ci
    rows = label.transpose(0, 1, 3, 2).reshape(-1, phones)
    centre = np.repeat(np.arange(phones), phones * POSITIONS)
    kinds, held = np.unique(np.column_stack([centre, rows]), axis=0, return_inverse=True)
    said = np.vstack([kinds[:, 1:], np.full(phones, len(sequences) + 1)])
    return (
        sequences.astype(np.int32),
        said.astype(np.int32),
        held.reshape(phones, phones, POSITIONS).astype(np.int32),
        np.append(kinds[:, 0], definition.silence).astype(np.int32),
    )


def spell(fst: Fst, sequences: I32, first_symbol: int) -> Fst:
    """Replace each sequence label by its three senones (labels senone + 1) in series, disambiguation labels by
    `first_symbol` …

    Arcs that end alike (same target, same last senones) share their states.
    """
    is_phone = (fst.ilabel > 0) & (fst.ilabel <= len(sequences))
    senones = sequences[fst.ilabel[is_phone] - 1].astype(np.int64) + 1
    source, target = fst.source, fst.target[is_phone].astype(np.int64)
    span = int(senones.max(initial=0)) + 1
    last_keys, last = np.unique(target * span + senones[:, 2], return_inverse=True)
    middle_keys, middle = np.unique(last * span + senones[:, 1], return_inverse=True)
    n = fst.n_states
    last_state = n + np.arange(len(last_keys))
    middle_state = n + len(last_keys) + np.arange(len(middle_keys))
    others = ~is_phone
    other_label = np.where(
        fst.ilabel[others] > len(sequences), fst.ilabel[others] - len(sequences) - 1 + first_symbol, 0
    )
    silent = np.zeros(len(middle_keys) + len(last_keys))
    return from_arcs(
        n + len(last_keys) + len(middle_keys),
        fst.start,
        np.concatenate([fst.final, np.full(len(silent), np.inf, dtype=np.float32)]),
        np.concatenate([source[is_phone], middle_state, last_state, source[others]]),
        np.concatenate([senones[:, 0], middle_keys % span, last_keys % span, other_label]),
        np.concatenate([fst.olabel[is_phone], silent, fst.olabel[others]]),
        np.concatenate([fst.weight[is_phone], silent, fst.weight[others]]),
        np.concatenate([middle_state[middle], last_state[middle_keys // span], last_keys // span, fst.target[others]]),
    )


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
