"""The text form of the model definition, version 0.3, as SphinxTrain writes it.

A line `0.3`, six lines `count name`, then one line per phone:
`base left right position attribute tmat senone senone senone N`, CI phones first.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.sphinx import definition

VERSION = "0.3"
COUNTS = ("n_base", "n_tri", "n_state_map", "n_tied_state", "n_tied_ci_state", "n_tied_tmat")
POSITION_LETTERS = {
    "i": definition.INTERNAL,
    "b": definition.BEGIN,
    "e": definition.END,
    "s": definition.SINGLE,
}
LONGEST_LINE = 4096
COLUMNS = 6 + definition.STATES + 1


def looks_like(data: bytes) -> bool:
    """Whether the first line that is no comment is the version."""
    for line in data[:4096].splitlines():
        if line.strip() and not line.startswith(b"#"):
            return line.strip() == VERSION.encode()
    return False


def parse(data: bytes, path: Path) -> definition.ModelDefinition:
    """Read the text form from the bytes of `path`."""
    if not data.isascii():
        raise ModelError(f"{path}: a text model definition must be plain ASCII")
    lines = _lines(data, path)
    next(lines, None)  # the version
    counts: dict[str, int] = {}
    for number, fields in islice(lines, len(COUNTS)):
        if len(fields) != 2 or fields[1] not in COUNTS:
            raise ModelError(f"{path}, line {number}: expected a count and one of {COUNTS}")
        counts[fields[1]] = _integer(fields[0], path, number)
    if len(counts) != len(COUNTS):
        raise ModelError(f"{path}: the counts at the head are incomplete")
    if not 1 <= counts["n_base"] <= definition.MAX_PHONES:
        raise ModelError(f"{path}: n_base is {counts['n_base']}, expected 1 to {definition.MAX_PHONES}")
    if not 1 <= counts["n_tied_state"] <= definition.MAX_SENONES:
        raise ModelError(f"{path}: n_tied_state is out of range ({counts['n_tied_state']})")
    return _phones(lines, counts, path)


def _lines(data: bytes, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of each line that is neither empty nor a comment, one at a time."""
    for number, line in enumerate(io.TextIOWrapper(io.BytesIO(data), "ascii"), 1):
        if len(line) > LONGEST_LINE:
            raise ModelError(f"{path}, line {number}: more than {LONGEST_LINE} characters")
        if line.strip() and not line.startswith("#"):
            yield number, line.split()


def _phones(rows: Iterator[tuple[int, list[str]]], counts: dict[str, int], path: Path) -> definition.ModelDefinition:
    n_ci, promised = counts["n_base"], counts["n_base"] + counts["n_tri"]
    index: dict[str, int] = {}
    names: list[str] = []
    filler: list[bool] = []
    sequences: dict[tuple[int, ...], int] = {}
    # Flat, and of as many rows as there are, whatever the head promises.
    contexts, ssids, tmats = array("i"), array("i"), array("i")
    for number, fields in rows:
        if len(ssids) == promised:
            raise ModelError(f"{path}: more phones than n_base + n_tri promises, {promised}")
        if len(fields) != COLUMNS:
            raise ModelError(
                f"{path}, line {number}: {len(fields)} columns, expected {COLUMNS}: models whose phones have "
                f"{definition.STATES} emitting states are read"
            )
        if len(names) < n_ci:
            index[fields[0]] = len(names)
            names.append(fields[0])
            filler.append(fields[4] == "filler")
        else:
            try:
                contexts.append(POSITION_LETTERS[fields[3]])
                contexts.extend(index[name] for name in fields[:3])
            except KeyError as error:
                raise ModelError(f"{path}, line {number}: {error} is no phone or position") from None
        senones = tuple(_integer(field, path, number) for field in fields[6 : 6 + definition.STATES])
        if max(senones) >= counts["n_tied_state"]:
            raise ModelError(f"{path}, line {number}: senone {max(senones)} is not below n_tied_state")
        ssids.append(sequences.setdefault(senones, len(sequences)))
        tmats.append(_integer(fields[5], path, number))
    if len(ssids) != promised:
        raise ModelError(f"{path}: {len(ssids)} phones, n_base + n_tri promises {promised}")
    return definition.assemble(
        path,
        names=names,
        filler=np.array(filler),
        ssids=np.array(ssids, np.int32),
        tmats=np.array(tmats, np.int32),
        contexts=np.array(contexts, np.int64).reshape(-1, 4),
        sseq=np.array(list(sequences), np.uint16).reshape(-1, definition.STATES),
        n_senones=counts["n_tied_state"],
        n_ci_senones=counts["n_tied_ci_state"],
        n_tmat=counts["n_tied_tmat"],
    )


def _integer(field: str, path: Path, number: int) -> int:
    # Nine digits fit 32 bits; int() alone would also take "1_0", signs and thousands of digits.
    if not (field.isdigit() and len(field) <= 9):
        raise ModelError(f"{path}, line {number}: {field[:20]!r} is not a count")
    return int(field)
