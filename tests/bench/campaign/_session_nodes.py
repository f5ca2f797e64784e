"""Nodes of the JSON in a session file, one at a time replaced by something else; `nodes` names every case."""

from __future__ import annotations

import functools
import itertools
import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tests.bench.campaign._session_base import NAME, full

OTHERS: Final[dict[str, str]] = {
    "null": "null",
    "true": "true",
    "minus one": "-1",
    "nought": "0",
    "one and a half": "1.5",
    "great": "1e308",
    "small": "-1e-308",
    "63 bits": "9223372036854775807",
    "400 digits": "9" * 400,
    "5000 digits": '"' + "9" * 5000 + '"',
    "a word": '"x"',
    "no word": '""',
    "an escape": '"\\u001b]0;t\\u0007"',
    "a list": "[]",
    "a list of lists": "[[1],[2]]",
    "a table": "{}",
    "a table of nothing": '{"":null}',
    "600 deep": "[" * 600 + "]" * 600,
    "60 tables deep": '{"a":' * 60 + "1" + "}" * 60,
    "no number": "NaN",
    "no end": "Infinity",
    "half a character": '"\\ud800"',
}
"""What a node is replaced by, as JSON text."""

COLUMNS: Final = (
    ("meta", "key", "value"),
    ("stage", "id", "work"),
    ("cost", "id", "law"),
    ("config", "id", "tree"),
    ("marker", "id", "value"),
    ("utterance", "id", "words"),
    ("utterance", "id", "epochs"),
)
"""Table, its key and a column of JSON."""

Node = tuple[str, str, str, Any, tuple[Any, ...]]
"""Table, key's column, column, the row's key, and the path to a node in its JSON."""

_HERE: Final = "@node@"


@functools.cache
def nodes(interleaved: bool = False) -> tuple[Node, ...]:
    """Every node of every JSON value of a full session; of like rows (stages, costs) the first and the last."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / NAME
        path.write_bytes(full(interleaved))
        found: list[Node] = []
        with closing(sqlite3.connect(path)) as connection:
            for table, key, column in COLUMNS:
                rows = connection.execute(
                    f"SELECT {key}, {column} FROM {table} WHERE {column} NOT NULL ORDER BY {key}"
                ).fetchall()
                some = rows if table == "meta" else [rows[0], rows[-1]]
                for at, text in some:
                    paths = _paths(json.loads(text))
                    found += [(table, key, column, at, keys) for keys in paths]
        return tuple(dict.fromkeys(found))


def _paths(tree: Any, most: int = 6) -> Iterator[tuple[Any, ...]]:
    """The path to every node, of long lists to the first ones."""
    yield ()
    items: Any = ()
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = itertools.islice(enumerate(tree), most)
    for key, value in items:
        for path in _paths(value, most):
            yield (key, *path)


def replace_node(node: Node, other: str, path: Path, interleaved: bool = False) -> None:
    """Write the full session to `path`, a node of its JSON replaced by the text `other`."""
    table, key, column, at, keys = node
    path.write_bytes(full(interleaved))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (text,) = connection.execute(f"SELECT {column} FROM {table} WHERE {key}=?", (at,)).fetchone()
        changed = json.dumps(_replaced(json.loads(text), keys)).replace(f'"{_HERE}"', other)
        connection.execute(f"UPDATE {table} SET {column}=? WHERE {key}=?", (changed, at))


def _replaced(tree: Any, path: tuple[Any, ...]) -> Any:
    if not path:
        return _HERE
    copy = tree.copy()
    copy[path[0]] = _replaced(tree[path[0]], path[1:])
    return copy
