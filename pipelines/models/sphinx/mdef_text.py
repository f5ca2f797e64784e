"""The text form of the model definition, version 0.3, as SphinxTrain writes it.

A line `0.3`, six lines `count name`, then one line per phone:
`base left right position attribute tmat senone senone senone N`, CI phones first.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.sphinx import mdef

VERSION = "0.3"
COUNTS = (
    "n_base",
    "n_tri",
    "n_state_map",
    "n_tied_state",
    "n_tied_ci_state",
    "n_tied_tmat",
)
POSITION_LETTERS = {"i": mdef.INTERNAL, "b": mdef.BEGIN, "e": mdef.END, "s": mdef.SINGLE}
COLUMNS = 6 + mdef.STATES + 1


def looks_like(data: bytes) -> bool:
    """Whether the first line that is no comment is the version."""
    for line in data[:4096].splitlines():
        if line.strip() and not line.startswith(b"#"):
            return line.strip() == VERSION.encode()
    return False


def parse(data: bytes, path: Path) -> mdef.ModelDefinition:
    """Read the text form from the bytes of `path`."""
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        raise ModelError(f"{path}: a text model definition must be plain ASCII") from None
    lines = [
        (number, line.split())
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
    counts: dict[str, int] = {}
    for number, fields in lines[1 : 1 + len(COUNTS)]:
        if len(fields) != 2 or fields[1] not in COUNTS:
            raise ModelError(f"{path}, line {number}: expected a count and one of {COUNTS}")
        counts[fields[1]] = _integer(fields[0], path, number)
    if len(counts) != len(COUNTS):
        raise ModelError(f"{path}: the counts at the head are incomplete")
    if not 1 <= counts["n_base"] <= mdef.MAX_PHONES:
        raise ModelError(f"{path}: n_base is {counts['n_base']}, expected 1 to {mdef.MAX_PHONES}")
    if not 1 <= counts["n_tied_state"] <= mdef.MAX_SENONES:
        raise ModelError(f"{path}: n_tied_state is out of range ({counts['n_tied_state']})")
    rows = lines[1 + len(COUNTS) :]
    if len(rows) != counts["n_base"] + counts["n_tri"]:
        raise ModelError(
            f"{path}: {len(rows)} phones, n_base + n_tri promises "
            f"{counts['n_base'] + counts['n_tri']}"
        )
    return _phones(rows, counts, path)


def _phones(
    rows: list[tuple[int, list[str]]], counts: dict[str, int], path: Path
) -> mdef.ModelDefinition:
    for number, fields in rows:
        if len(fields) != COLUMNS:
            raise ModelError(
                f"{path}, line {number}: {len(fields)} columns, expected {COLUMNS} "
                f"({mdef.STATES} emitting states)"
            )
    n_ci = counts["n_base"]
    names = [fields[0] for _, fields in rows[:n_ci]]
    index = {name: i for i, name in enumerate(names)}
    contexts = np.zeros((counts["n_tri"], 4), np.int64)
    for row, (number, fields) in enumerate(rows[n_ci:]):
        try:
            contexts[row] = (POSITION_LETTERS[fields[3]], *(index[name] for name in fields[:3]))
        except KeyError as error:
            raise ModelError(f"{path}, line {number}: {error} is no phone or position") from None
    sequences: dict[tuple[int, ...], int] = {}
    ssids = np.zeros(len(rows), np.int32)
    tmats = np.zeros(len(rows), np.int32)
    for row, (number, fields) in enumerate(rows):
        senones = tuple(_integer(field, path, number) for field in fields[6 : 6 + mdef.STATES])
        if max(senones) >= counts["n_tied_state"]:
            raise ModelError(
                f"{path}, line {number}: senone {max(senones)} is not below n_tied_state"
            )
        ssids[row] = sequences.setdefault(senones, len(sequences))
        tmats[row] = _integer(fields[5], path, number)
    return mdef.assemble(
        path,
        names=names,
        filler=np.array([fields[4] == "filler" for _, fields in rows[:n_ci]]),
        ssids=ssids,
        tmats=tmats,
        contexts=contexts,
        sseq=np.array(list(sequences), np.uint16).reshape(-1, mdef.STATES),
        n_senones=counts["n_tied_state"],
        n_ci_senones=counts["n_tied_ci_state"],
        n_tmat=counts["n_tied_tmat"],
    )


def _integer(field: str, path: Path, number: int) -> int:
    # Nine digits fit 32 bits; int() alone would also take "1_0", signs and thousands of digits.
    if not (field.isdigit() and len(field) <= 9):
        raise ModelError(f"{path}, line {number}: {field[:20]!r} is not a count")
    return int(field)
