"""Session files of strangers: those spoiled on purpose first, then nodes of JSON and random damage.

The test suite takes all of the first and a share of the second.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from profiler.session.files import side_files
from tests.bench.campaign import _spoil
from tests.bench.campaign._session_base import NAME, bases
from tests.bench.campaign._session_nodes import OTHERS, Node, nodes, replace_node
from tests.bench.campaign._session_purposes import purposes, spoiled
from tests.bench.campaign.attack import Attack

READ: Final = (
    ("show", NAME),
    ("show", NAME, "--json"),
    ("export", NAME, "--csv", "a.csv", "--chrome-trace", "b.json", "--speedscope", "c.json"),
    ("compare", NAME, NAME),
    ("compare", NAME),
    ("whatif", NAME, "--scale", "scoring=0.5"),
)
PICTURE: Final = ("export", NAME, "--png", "d.png", "--size", "1000x700")
RUN_AGAIN: Final = ("whatif", NAME, "--set", "block=64")

WINDOWS: Final = 8
"""Two of this many attacks are also drawn and opened in the real window."""


def attacks(random: random.Random, count: int) -> Iterator[Attack]:
    """`count` attacks: all that are made on purpose, then nodes of JSON and random damage in turns."""
    for number in range(count):
        known = purposes()
        if number < len(known):
            name = known[number]
            commands: tuple[tuple[str, ...], ...] = (*READ, PICTURE)
            if name == "settings that name pipes":
                commands = (RUN_AGAIN, ("confirm", NAME, "score.exp"))
            yield Attack(f"session: {name}", functools.partial(spoiled, name), commands, window=NAME)
            continue
        if number % 2:
            interleaved = random.random() < 0.2
            node = random.choice(nodes(interleaved))
            which, other = random.choice(list(OTHERS.items()))
            name = f"{node[0]}.{node[2]} {'.'.join(map(str, (node[3], *node[4])))} is {which}"
            make = functools.partial(_make_node, node, other, interleaved)
        else:
            seed = random.getrandbits(32)
            name, make = f"damage of seed {seed}", functools.partial(_make_damage, seed)
        drawn = number % WINDOWS == 0 or number % WINDOWS == 3
        yield Attack(
            f"session: {name:.200}",
            make,
            (*READ, PICTURE) if drawn else READ,
            window=NAME if drawn else "",
        )


def _make_node(node: Node, other: str, interleaved: bool, folder: Path) -> None:
    replace_node(node, other, folder / NAME, interleaved)


def _make_damage(seed: int, folder: Path) -> None:
    path, _ = _spoil.spoil(seed, bases(), folder)
    for source, target in zip((path, *side_files(path)), (folder / NAME, *side_files(folder / NAME)), strict=True):
        if source.exists():
            source.rename(target)
