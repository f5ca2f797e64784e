"""Search graphs in the cache that are damaged, or forged by somebody who knows the format.

Each attack puts a file where the program looks for the graph of a small grammar, and runs that grammar. Damaged files
are sound ones after a damage of `_damage`; forged ones go through `wfst.save`, so that their checksums are right.
"""

from __future__ import annotations

import os
import random as randoms
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import soundfile

from pipelines.config import Graph as GraphConfig
from pipelines.models import sphinx
from pipelines.search.graph import cache as store
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.openfst import from_arcs
from pipelines.search.graph.recipe import recipe_of
from pipelines.search.graph.topology import Topology
from pipelines.search.graph.wfst import ARRAYS as KEPT_ARRAYS
from pipelines.search.graph.wfst import Graph, Senones, from_topology, save
from profiler.files.paths import CACHE_VARIABLE
from tests.bench.campaign._damage import DAMAGES
from tests.bench.campaign._damage import Damage as Spoil
from tests.bench.campaign.attack import Attack

CACHE = "cache"
"""Folder of the attack that is the program's cache."""
GRAMMAR = "digits"
RATE = 16_000
COMMAND = (
    *("run", "--no-profile", "--preset", "gmm", "--set", f"graph.grammar={GRAMMAR}"),
    *("--audio", "a.wav"),
)
LATTICE = (*COMMAND, "--set", "search.lattice=true")
LARGE = (-1, 0, 1, 2**31 - 1, -(2**31), 2**30, 0x7F800000, 0x7FC00000, 0x7F7FFFFF, -8388609)
"""Indices of nothing, and floats that are infinite, no number, or the largest."""
ARRAYS = tuple(name for name, _ in KEPT_ARRAYS)


def attacks(random: randoms.Random, count: int) -> Iterator[Attack]:
    """Each damage and each forged graph once, then as many random ones as make `count`."""
    every = {"sound": _unchanged} | {damage.__name__: damage for damage in DAMAGES} | _FORGED
    for number in range(count):
        names = list(every)
        name = names[number] if number < len(names) else random.choice((*names, "forged"))
        title = name if number < len(names) else f"{name}-{number}"
        yield _attack(title, every[name], random.randrange(1 << 30))


def _attack(name: str, spoil: Spoil, seed: int) -> Attack:
    return Attack(
        f"graph-{name}",
        partial(_make, spoil, seed),
        (LATTICE if seed % 2 else COMMAND,),
        environment={CACHE_VARIABLE: CACHE},
    )


def _make(spoil: Spoil, seed: int, folder: Path) -> None:
    with mock.patch.dict(os.environ, {CACHE_VARIABLE: str(folder / CACHE)}):
        path = store.path_of(recipe_of(GraphConfig(grammar=GRAMMAR), _model()))
    path.parent.mkdir(parents=True, exist_ok=True)
    save(_sound(), path)
    spoil(path, randoms.Random(seed))
    noise = np.random.default_rng(seed).normal(scale=0.05, size=RATE // 2).astype(np.float32)
    soundfile.write(folder / "a.wav", noise, RATE)


@cache
def _model() -> Any:
    return sphinx.load(sphinx.default_directory())


@cache
def _sound() -> Graph:
    return graphs.load_or_build(GraphConfig(grammar=GRAMMAR), _model())


def _unchanged(path: Path, random: randoms.Random) -> None:
    """A sound graph is read."""


# -- graphs that are forged ------------------------------------------------------------------------


def _save(path: Path, graph: Graph, **fields: Any) -> None:
    """The graph with other fields, unchecked, as a stranger who knows the format would save it."""
    forged = object.__new__(Graph)
    forged.__dict__.update(vars(graph) | fields)
    save(forged, path)


def _forge(path: Path, random: randoms.Random) -> None:
    """Some numbers of one array."""
    name = random.choice(ARRAYS)
    array = getattr(_sound(), name).copy()
    words = array.view(np.int32 if array.itemsize % 4 == 0 else np.uint8).reshape(-1)
    for _ in range(random.choice((1, 1, 4, 100))):
        at = random.randrange(len(words))
        near = int(words[at]) + random.choice((-1, 1))
        value = random.choice((*LARGE, near, random.randrange(-(2**31), 2**31)))
        words[at] = np.array(value, np.int64).astype(words.dtype)
    _save(path, _sound(), **{name: array})


def _shorter(name: str) -> Spoil:
    return lambda path, random: _save(path, _sound(), **{name: getattr(_sound(), name)[:-1].copy()})


def _figures(**fields: Any) -> Spoil:
    return lambda path, random: _save(path, _sound(), **fields)


def _small(*arcs: tuple[int, int, int, float, int], states: int = 2, senones: int = 0) -> Spoil:
    """A sound graph of (source, senone + 1, word + 1, weight, target), every state final."""

    def made(path: Path, random: randoms.Random) -> None:
        sound = _sound()
        columns = [np.array(column) for column in zip(*arcs, strict=True)] or [np.empty(0, int)] * 5
        nothing = np.zeros(states, np.int32), np.zeros(states, np.float32)
        n = senones or sound.n_senones
        phones = np.resize(sound.senone_phone, n), np.resize(sound.senone_state, n)
        fst = from_arcs(states, 0, np.zeros(states, np.float32), *columns)
        save(
            from_topology(Topology(fst, *nothing), Senones(*phones, sound.filler), ("one",), [[]]),
            path,
        )

    return made


def _ladder(path: Path, random: randoms.Random) -> None:
    """Epsilon arcs two by two up 200 states: more paths than there are atoms."""
    arcs = [(i, 0, 0, 0.01 * j, i + 1) for i in range(199) for j in range(2)]
    _small(*arcs, (199, 1, 1, 0.0, 0), states=200)(path, random)


_FORGED: dict[str, Spoil] = {
    "forged": _forge,
    **{f"{name} shorter": _shorter(name) for name in ARRAYS},
    "states without end": _figures(n_epsilon_states=2**62),
    "negative states": _figures(n_epsilon_states=-1),
    "start outside": _figures(start=2**31),
    "senones without end": _figures(n_senones=2**62),
    "no words": _figures(words=()),
    "nothing to do": _small(states=1),
    "cheaper each time": _small((0, 0, 0, -1.0, 1), (1, 0, 0, 0.5, 0), (1, 1, 1, 0.0, 0)),
    "a word each time": _small((0, 0, 1, -9.0, 1), (1, 0, 0, 0.5, 0), (1, 1, 1, 0.0, 0)),
    "circles that cost nothing": _small((0, 0, 0, 0.0, 1), (1, 0, 0, 0.0, 0), (1, 1, 1, 0.0, 0)),
    "as cheap as can be": _small((0, 1, 1, -1e30, 0), (0, 0, 0, -1e30, 1)),
    "of another model": _small((0, 1, 1, 0.0, 0), senones=3),
    "a ladder of epsilons": _ladder,
}
