"""The file `mdef` of a CMUSphinx model, in its binary form (`BMDF`, version 1) or, by `mdef_text`, as text 0.3."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.sphinx import mdef_text
from pipelines.models.sphinx.binary import LARGEST_DEFINITION, Cursor, read_file
from pipelines.models.sphinx.definition import (
    MAX_PHONES,
    MAX_SENONES,
    STATES,
    ModelDefinition,
    assemble,
)

BINARY_VERSION = 1


def read(path: Path) -> ModelDefinition:
    """Read a model definition, binary or text; ModelError says what is wrong."""
    data = read_file(path, LARGEST_DEFINITION)
    if data[:4] in (b"BMDF", b"FDMB"):
        return _read_binary(data, path)
    if mdef_text.looks_like(data):
        return mdef_text.parse(data, path)
    raise ModelError(f"{path} is not a model definition: it begins neither with BMDF nor with 0.3")


def _read_binary(data: bytes, path: Path) -> ModelDefinition:
    cursor = Cursor(data, path, big_endian=data[:4] == b"FDMB")
    cursor.take(4, "magic")
    version = cursor.i32("version", -(2**31))
    if version != BINARY_VERSION:
        raise ModelError(f"{path}: version is {version}, only version {BINARY_VERSION} is known")
    cursor.take(cursor.i32("description length"), "description")
    n_ci = cursor.i32("number of CI phones", 1, MAX_PHONES)
    n_phone = cursor.i32("number of phones", n_ci)
    states = cursor.i32("number of emitting states", 1, 64)
    if states != STATES:
        raise ModelError(f"{path}: its phones have {states} emitting states; models with {STATES} are read")
    n_ci_senones = cursor.i32("number of CI senones", 1, MAX_SENONES)
    n_senones = cursor.i32("number of senones", n_ci_senones, MAX_SENONES)
    n_tmat = cursor.i32("number of transition matrices", 1)
    n_sseq = cursor.i32("number of senone sequences", 1)
    cursor.i32("phones of context", 1, 3)
    n_tree = cursor.i32("nodes of the triphone tree")
    cursor.i32("silence phone", -1, n_ci - 1)  # looked up by name, as pocketsphinx does
    start = cursor.at
    names = [_name(cursor) for _ in range(n_ci)]
    cursor.take(-(cursor.at - start) % 4, "padding of the phone names")
    cursor.take(8 * n_tree, "triphone tree")  # holds nothing that the phone list does not say
    raw = cursor.take(12 * n_phone, "phone list")
    words = np.frombuffer(raw, cursor.order + "i4").reshape(n_phone, 3).astype(np.int32)
    attributes = np.frombuffer(raw, np.uint8).reshape(n_phone, 12)[:, 8:]
    cells = cursor.i32("size of the senone sequences")
    if cells != n_sseq * STATES:
        raise ModelError(f"{path}: size of the senone sequences is {cells}, expected {n_sseq} × {STATES}")
    sseq = cursor.array("u2", cells, "senone sequences").reshape(n_sseq, STATES)
    cursor.finished("senone sequences")
    return assemble(
        path,
        names=names,
        filler=attributes[:n_ci, 0] != 0,
        ssids=words[:, 0],
        tmats=words[:, 1],
        contexts=attributes[n_ci:].astype(np.int64),
        sseq=sseq,
        n_senones=n_senones,
        n_ci_senones=n_ci_senones,
        n_tmat=n_tmat,
    )


def _name(cursor: Cursor) -> str:
    end = cursor.data.find(b"\0", cursor.at)
    raw = cursor.data[cursor.at : max(end, cursor.at)]
    if end < 0 or not raw or not raw.isascii() or not raw.decode("ascii").isprintable():
        raise ModelError(f"{cursor.path}: the phone names are cut short or not text")
    cursor.at = end + 1
    return raw.decode("ascii")
