"""The compiled search graph in memory and as one flat, memory-mapped file of the cache (`profiler.files.cache`).

Everything that the kernels rely on (they do not check bounds) is checked before a graph is handed out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np

from pipelines.search.graph.topology import Topology
from pipelines.search.kernels.layout import ARC, LARGEST, STATE
from profiler import arrays
from profiler.arrays import F32, I32, U8, U16, Array, Bool
from profiler.errors import BadInput
from profiler.files import cache

VERSION = 4  # Of these arrays and facts; part of the cache key, so that an older cache is rebuilt and not misread
Pronunciations = Sequence[Sequence[tuple[int, ...]]]  # Of each word, as phone numbers


class GraphError(BadInput):
    """A search graph that cannot be built, read or used, in one sentence."""


@dataclass(frozen=True, eq=False)
class Graph:
    """HCLG ready for token passing. Labels: senone + 1 and word + 1; 0 is epsilon.

    `states` STATE [n + 1] (the last one only closes the ranges), `arcs` ARC [m] without self-loops, `final` float32
    [n], states below `n_epsilon_states` are those with epsilon arcs. Pronunciations of word w, for its times:
    `pron_first[w]` … `pron_first[w + 1]`, of which p holds `pron_phones[phone_first[p] : phone_first[p + 1]]`.
    `senone_phone`, `senone_state` [n_senones]; `filler` bool [phones]. `blank`: the senone of a CTC net's blank, whose
    number is its phone's too; or -1.

    GraphError for an unsound one: the kernels check no bounds, so indices are checked here, and nobody can write to the
    arrays afterwards.
    """

    start: int
    n_epsilon_states: int
    n_senones: int
    states: Array
    arcs: Array
    final: F32
    words: tuple[str, ...]
    pron_first: I32
    phone_first: I32
    pron_phones: U16
    senone_phone: U16
    senone_state: U8
    filler: Bool
    made: Mapping[str, object] = field(default_factory=dict)
    blank: int = -1

    def __post_init__(self) -> None:
        for name, dtype in ARRAYS:
            given = getattr(self, name)
            arrays.check(name, given, dtype, (None,))
            # One type for mapped and for fresh arrays: kernels are compiled once.
            array = given.view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if wrong := _fault(self):
            raise GraphError(f"The graph is damaged: {wrong}.")

    @property
    def notes(self) -> tuple[str, ...]:
        found = self.made.get("notes", ())
        return tuple(map(str, found)) if isinstance(found, list | tuple) else ()

    @property
    def n_states(self) -> int:
        return len(self.final)

    @property
    def n_arcs(self) -> int:
        return len(self.arcs) + int((self.states["loop_label"] > 0).sum())


def from_records(
    start: int, n_epsilon_states: int, states: Array, arcs: Array, final: F32, words: tuple[str, ...],
    senones: Senones, made: Mapping[str, object], pronunciations: Pronunciations = (),
) -> Graph:  # fmt: skip
    """A graph of its records; without `pronunciations` words have the times of their labels."""
    ways = pronunciations or [[]] * len(words)
    prons = [p for word in ways for p in word]
    phones = np.array([phone for p in prons for phone in p], np.uint16)
    phone, state = np.asarray(senones.phone, np.uint16), np.asarray(senones.state, np.uint8)
    return Graph(
        start, n_epsilon_states, len(phone), states, arcs, final, words, _offsets(map(len, ways)),
        _offsets(map(len, prons)), phones, phone, state, np.asarray(senones.filler, bool), made, senones.blank,
    )  # fmt: skip


def smallest_graph() -> Graph:
    """One senone again and again, without words: a search over it calls every kernel that one over any graph does."""
    states = np.zeros(2, STATE)
    states["loop_label"][0] = 1
    senones = Senones(np.zeros(1), np.zeros(1), np.zeros(1))
    return from_records(0, 0, states, np.zeros(0, ARC), np.zeros(1, np.float32), (), senones, {})


class Senones(NamedTuple):
    """The senones as a graph needs them: `phone` and `state` of each, for each phone whether it is a `filler`, and the
    `blank`."""

    phone: Array
    state: Array
    filler: Array
    blank: int = -1


def from_topology(
    made: Topology,
    senones: Senones,
    words: tuple[str, ...],
    pronunciations: Pronunciations = (),
    about: Mapping[str, object] | None = None,
) -> Graph:
    """Pack a transducer without self-loops whose states with epsilon arcs come first; GraphError when it is unsound.

    `pronunciations`: per word its pronunciations as phone numbers, or none at all; `about`: how it was made.
    """
    fst = made.fst
    # The records want a state's epsilon arcs last.
    epsilon = fst.ilabel == 0
    source = fst.source
    order = np.argsort(2 * source.astype(np.int64) + epsilon, kind="stable")
    arcs = np.empty(fst.n_arcs, dtype=ARC)
    for name in ("target", "ilabel", "olabel", "weight"):
        arcs[name] = getattr(fst, name)[order]
    n_epsilon = np.bincount(source[epsilon], minlength=fst.n_states)
    states = np.zeros(fst.n_states + 1, dtype=STATE)
    states["first"] = fst.first
    states["epsilon"][:-1] = fst.first[1:] - n_epsilon
    states["epsilon"][-1] = fst.first[-1]
    states["loop_label"][:-1] = made.loop_label
    states["loop_weight"][:-1] = made.loop_weight
    with_epsilon = np.nonzero(n_epsilon)[0]
    n_epsilon_states = int(with_epsilon[-1]) + 1 if len(with_epsilon) else 0
    final = np.ascontiguousarray(fst.final, dtype=np.float32)
    return from_records(
        fst.start, n_epsilon_states, states, arcs, final, words, senones, dict(about or {}), pronunciations
    )


ARRAYS = (
    ("states", STATE),
    ("arcs", ARC),
    ("final", np.dtype("<f4")),
    ("pron_first", np.dtype("<i4")),
    ("phone_first", np.dtype("<i4")),
    ("pron_phones", np.dtype("<u2")),
    ("senone_phone", np.dtype("<u2")),
    ("senone_state", np.dtype("u1")),
    ("filler", np.dtype("?")),
)
"""What a kept graph is made of, with types."""


def save(graph: Graph, path: Path) -> None:
    columns = {name: getattr(graph, name) for name, _ in ARRAYS}
    plain = {n: a if a.dtype.names is None else a.view(np.uint8) for n, a in columns.items()}
    scalars = {name: getattr(graph, name) for name in ("start", "n_epsilon_states", "n_senones", "blank")}
    facts = {"version": VERSION, **scalars, "words": list(graph.words), "made": dict(graph.made)}
    cache.write(path, plain, facts)


def load(path: Path) -> Graph:
    """Maps a graph from its file; GraphError (one sentence) for anything but a sound graph."""
    try:
        kept = cache.read(path)
    except cache.CacheError as error:
        raise GraphError(str(error)) from error
    about = kept.about
    if about.get("version") != VERSION:
        raise GraphError(f"{path} has graph version {about.get('version')}, wanted is {VERSION}.")
    try:
        # Records are kept as bytes; what has another type than it was written with does not view.
        columns: dict[str, Array] = {name: kept.arrays[name].view(dtype).reshape(-1) for name, dtype in ARRAYS}
        return Graph(
            start=int(about["start"]),
            n_epsilon_states=int(about["n_epsilon_states"]),
            n_senones=int(about["n_senones"]),
            words=tuple(str(w) for w in about["words"]),
            made=about["made"],
            blank=int(about["blank"]),
            **columns,
        )
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise GraphError(f"{path} is damaged: its arrays are not as announced ({error}).") from None


def _fault(graph: Graph) -> str:
    """Describe what is wrong with a graph; "" if every index that kernels follow stays inside its array."""
    if not (
        0 <= graph.start < graph.n_states
        and 0 <= graph.n_epsilon_states <= graph.n_states
        and len(graph.states) == graph.n_states + 1
    ):
        return "its states and its start state do not fit"
    if len(graph.senone_phone) != graph.n_senones or len(graph.senone_state) != graph.n_senones:
        return "its senones do not fit its other arrays"
    if not -1 <= graph.blank < graph.n_senones:
        return "its blank is none of its senones"
    wrong = fault(
        graph.states.view(np.int32).reshape(-1, 4),
        graph.arcs.view(np.int32).reshape(-1, 4),
        graph.n_senones,
        len(graph.words),
        graph.n_epsilon_states,
    )
    if wrong != SOUND:
        return _FAULTS[wrong]
    if not (graph.final >= -LARGEST).all():
        return "its final weights are none that a path could add up"
    if len(graph.pron_first) != len(graph.words) + 1:
        return "its pronunciations do not fit its words"
    try:
        arrays.check_offsets("the list of pronunciations", graph.pron_first, len(graph.phone_first) - 1)
        arrays.check_offsets("the list of the phones of pronunciations", graph.phone_first, len(graph.pron_phones))
        arrays.check_indices("the phones of pronunciations", graph.pron_phones, len(graph.filler))
        arrays.check_indices("the phones of senones", graph.senone_phone, len(graph.filler))
    except arrays.ArrayError as error:
        return str(error)
    return ""


SOUND, RANGES, LOOPS, TARGETS, WORDS, SENONES, WEIGHTS, EPSILONS, ORDER = range(9)
_MAGNITUDE = np.int32(0x7FFFFFFF)
_LARGEST_BITS = np.int32(LARGEST.view(np.int32))  # bits of positive floats are ordered as they are


@numba.njit(cache=True, nogil=True)
def fault(
    states: I32, arcs: I32, n_senones: int, n_words: int, n_epsilon_states: int
) -> int:  # pragma: no cover - compiled
    """The first thing that is wrong, or SOUND. `states` int32 [n + 1, 4], `arcs` int32 [m, 4]: records of STATE and ARC
    as words.

    A state's arcs with senones come before its epsilons, and states without epsilons after `n_epsilon_states`.
    """
    n, m = len(states) - 1, len(arcs)
    if n < 0 or states[0, 0] != 0 or states[n, 0] != m:
        return RANGES
    for state in range(n):
        first, epsilon, end = states[state, 0], states[state, 1], states[state + 1, 0]
        if not 0 <= first <= epsilon <= end <= m:
            return RANGES
        if states[state, 2] < 0 or states[state, 2] > n_senones:
            return LOOPS
        if states[state, 3] & _MAGNITUDE > _LARGEST_BITS:
            return WEIGHTS
        if epsilon < end and state >= n_epsilon_states:
            return ORDER
        for arc in range(first, end):
            target, senone, word, weight = arcs[arc, 0], arcs[arc, 1], arcs[arc, 2], arcs[arc, 3]
            if target < 0 or target >= n:
                return TARGETS
            if word < 0 or word > n_words:
                return WORDS
            if senone < 0 or senone > n_senones:
                return SENONES
            if (senone == 0) != (arc >= epsilon):
                return EPSILONS
            if weight & _MAGNITUDE > _LARGEST_BITS:
                return WEIGHTS
    return SOUND


_FAULTS = {
    RANGES: "its states' arcs do not follow each other",
    LOOPS: "a self-loop has a senone that there is not",
    TARGETS: "an arc leads to a state that there is not",
    WORDS: "an arc has a word that there is not",
    SENONES: "an arc has a senone that there is not",
    WEIGHTS: "a weight is no number that a path could add up",
    EPSILONS: "an epsilon arc lies where emitting ones should, or the reverse",
    ORDER: "states with epsilon arcs do not come first",
}


def _offsets(counts: Iterable[int]) -> I32:
    return np.cumsum([0, *counts], dtype=np.int64).astype(np.int32)
