"""Tables of a page that commands print: an entry for each place between two markers.

    <!-- measured: NAME -->
    - `the command`

    machine · load · date

    | … |
    <!-- end -->

An entry's command is run as it stands on the page, in a child, with SPEECH, CORPUS, SESSION and EMPTY put in; its
output is JSON, one object or several. Text outside of the markers is written by hand and stays as it is.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from profiler.errors import BadInput
from profiler.process import children

QUICK_S = 120.0
"""Entries that may take longer are measured only by name."""

BEGIN = re.compile(r"^<!-- measured: ([a-z0-9-]+) -->\n", re.MULTILINE)
END = "<!-- end -->\n"
MARKER = re.compile(r"^<!-- (measured\b.*|end\b.*)-->$", re.MULTILINE)
"""Everything like a marker; each must be one of a pair."""

MODULES = {"asrscope": ("-m", "app.cli.main"), "python": ()}
"""The options of a child's Python for the first word of a command."""

Row = Sequence[object]


@dataclass(frozen=True)
class Table:
    """Heads and rows of a table of the page; cells are written with `str`."""

    head: Row
    rows: Sequence[Row]

    def markdown(self) -> str:
        """The table, a line for each row."""
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        if any(len(line) != len(self.head) for line in lines):
            raise ValueError("a row has other columns than the table")
        return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)

    @classmethod
    def of(cls, rows: Iterable[Any], *columns: tuple[Any, ...]) -> Table:
        """A table of `rows` of JSON: each column is (head, key or function of a row), and a format if there is one."""
        return cls(
            [head for head, *_ in columns], [tuple(_figure(row, *column) for _, *column in columns) for row in rows]
        )


@dataclass(frozen=True)
class Entry:
    """One place of the page: its name in the markers, and the commands that print its figures.

    `tables` makes them of all that the commands printed, in their order. `upto_s`: processor seconds that the commands
    were seen to take together, rounded up, which is their time where nothing else runs; of those that mostly wait, the
    time itself.
    `needs` raises BadInput with a sentence where data is missing.
    """

    name: str
    commands: tuple[str, ...]
    tables: Callable[[Sequence[Any]], Sequence[Table]]
    upto_s: float
    needs: Callable[[], object] = lambda: None

    @property
    def quick(self) -> bool:
        return self.upto_s <= QUICK_S


def shown(*specs: Sequence[str], labels: Sequence[object] = ()) -> Callable[[Sequence[Any]], list[Table]]:
    """Makes of the JSON of an entry's commands a table for each of `specs`: where its rows lie, then its columns.

    Both are keys, with dots between those of objects in objects; "" is the object itself. Rows without the first column
    are left out. Objects by name have the name as first column. Without columns every value has a row. `labels`: what
    the rows of each command begin with.
    """
    named = [str(label) for label in labels]

    def tables(trees: Sequence[Any]) -> list[Table]:
        return [_shown(path, columns, trees, named) for path, *columns in specs]

    return tables


def _shown(path: str, columns: Sequence[str], trees: Sequence[Any], labels: Sequence[str]) -> Table:
    found = [_at(tree, path) for tree in trees]
    if not columns:
        there = [tree for tree in found if tree is not None]
        keys = dict.fromkeys(key for tree in there for key in tree)
        return Table(
            ("figure", *(labels or ["value"] * len(there))), [(k, *(figure(t.get(k)) for t in there)) for k in keys]
        )
    rows = []
    for label, tree in zip(labels or [""] * len(found), found, strict=True):
        each = [(name, row) for name, row in tree.items()] if _by_name(tree) else [("", row) for row in _listed(tree)]
        for name, row in each:
            if columns[0] in row or _at(row, columns[0]) is not None:
                rows.append([*filter(None, (label, name)), *(figure(_at(row, column)) for column in columns)])
    before = [""] * (len(rows[0]) - len(columns)) if rows else []
    return Table((*before, *(column.replace("_", " ").replace(".", " ") for column in columns)), rows)


def _by_name(tree: Any) -> bool:
    return isinstance(tree, dict) and bool(tree) and all(isinstance(row, dict) for row in tree.values())


def _listed(tree: Any) -> Sequence[Any]:
    return tree if isinstance(tree, list) else [] if tree is None else [tree]


def _at(tree: Any, path: str) -> Any:
    """The value at a path of keys, None where there is none; a key may have dots itself."""
    if not path or tree is None:
        return tree
    if path in tree:
        return tree[path]
    key, _, rest = path.partition(".")
    return _at(tree[key], rest) if rest and key in tree else None


def figure(value: object) -> str:
    """A value of JSON as a cell."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return ", ".join(map(figure, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {figure(one)}" for key, one in value.items())
    return str(value)


def known(value: Any, form: str = "") -> str:
    """`value` in the format, a dash for None."""
    return "–" if value is None else format(value, form)


def interval(ends: Sequence[float | None] | None, form: str = ".2f") -> str:
    """` (low to high)`; empty where an end is unknown."""
    if ends is None or None in ends:
        return ""
    return f" ({ends[0]:{form}} to {ends[1]:{form}})"


def _figure(row: Any, key: Any, form: str = "") -> str:
    return known(key(row) if callable(key) else row[key], form)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def places(page: str, known: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Where the table of each name begins and ends in `page`; BadInput for a marker that is no pair, or unknown."""
    names = set(known)
    found: dict[str, tuple[int, int]] = {}
    good = 0
    for begin in BEGIN.finditer(page):
        name = begin[1]
        if name not in names:
            raise BadInput(f"The page has a marker of {name!r}, which nothing measures.")
        if name in found:
            raise BadInput(f"The page has two places for {name!r}.")
        after = MARKER.search(page, begin.end())
        if after is None or not page.startswith(END, after.start()):
            raise BadInput(f"The place of {name!r} in the page has no end ({END.strip()}).")
        found[name] = begin.end(), after.start()
        good += 2
    strange = len(MARKER.findall(page)) - good
    if strange:
        raise BadInput(f"{strange} markers of the page belong to no pair, or are misspelt.")
    return found


def replaced(page: str, name: str, table: str, known: Iterable[str]) -> str:
    """`page` with `table` in the place of `name`; BadInput where it has none."""
    found = places(page, known)
    if name not in found:
        raise BadInput(f"The page has no place for {name!r}: <!-- measured: {name} -->.")
    begin, end = found[name]
    return page[:begin] + table + page[end:]


def written(entry: Entry, tables: Sequence[Table], conditions: str) -> str:
    commands = "".join(f"- `{command}`\n" for command in entry.commands)
    return f"{commands}\n{conditions}\n\n" + "\n".join(table.markdown() for table in tables)


def conditions(machine: Mapping[str, Any], load: float, after: float, day: str) -> str:
    """Machine, load averages of the minute before and of the last minute, and day.

    The commands themselves are one or two of the latter.
    """
    cores = machine.get("cores", {}).get("usable")
    kind = " VM" if machine.get("virtualised") else ""
    if vectors := machine.get("vectors"):
        kind += f" ({', '.join(vectors)})"
    return (
        f"{machine.get('cpu', 'unknown processor')}{kind}, {cores} cores · "
        f"load {load:.1f} before, {after:.1f} after · {day}"
    )


def values(text: str) -> Iterator[Any]:
    """The JSON values of `text`, which stand one after the other; ValueError where there is anything else."""
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decoder.raw_decode(text, at)
        yield value


def words_of(command: str, names: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables set before a command and its words for a child's Python.

    Names in capitals are replaced by what they stand for, in both.
    """
    words = shlex.split(command)
    if names:
        capitals = re.compile(rf"\b({'|'.join(names)})\b")
        words = [capitals.sub(lambda match: names[match[0]], word) for word in words]
    variables = [word.partition("=") for word in takewhile(lambda word: "=" in word, words)]
    program, *rest = words[len(variables) :]
    return {name: value for name, _, value in variables}, [*MODULES[program], *rest]


def printed(command: str, names: Mapping[str, str], more: Sequence[str] = ()) -> list[Any]:
    """Run `command`, with the words `more` behind it, in a child and return the JSON values that it prints.

    BadInput in its own words where it fails.
    """
    variables, words = words_of(command, names)
    child = subprocess.run(
        children.python(*words, *more),
        env=children.environment(variables),
        cwd=children.ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if child.returncode:
        why = children.last_words(child.stderr, child.returncode)
        raise BadInput(f"`{command}` failed: {why}")
    try:
        return list(values(child.stdout))
    except ValueError as error:
        raise BadInput(f"`{command}` printed what is not JSON: {error}.") from error


def measured(entry: Entry, names: Mapping[str, str], machine: Mapping[str, Any]) -> str:
    """Run the commands of `entry` and return the text between its markers.

    BadInput where data is missing, a command fails, or prints other figures than the table wants.
    """
    entry.needs()
    load, day = os.getloadavg()[0], time.strftime("%Y-%m-%d")
    found = [value for command in entry.commands for value in printed(command, names)]
    try:
        said = conditions(machine, load, os.getloadavg()[0], day)
        return written(entry, entry.tables(found), said)
    except (KeyError, IndexError, StopIteration, TypeError, ValueError) as error:
        raise BadInput(f"What its commands print has no such figures: {type(error).__name__} {error}") from error


def names_in(folder: Path, speech: Path, corpus: Callable[[], Path], entry: Entry) -> dict[str, str]:
    """What the names in capitals of the commands of `entry` stand for; the corpus is made only where it is meant."""
    text = " ".join(entry.commands)
    names = {"SPEECH": str(speech), "SESSION": str(folder / f"{entry.name}.asrs"), "EMPTY": str(folder / entry.name)}
    return names | ({"CORPUS": str(corpus())} if "CORPUS" in text else {})
