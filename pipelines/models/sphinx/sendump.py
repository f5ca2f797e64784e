"""Quantised mixture weights (`sendump`): 8 bits per weight, or 4-bit numbers of 16 clusters.

{int32 length, text with NUL} repeated up to length 0; then, without clusters, int32 rows and
columns; with clusters, the 16 cluster values (15 in the header count as 16). The weights follow
as [stream][density] rows of one byte per senone, or of one byte per two senones, the even one in
the low four bits. A value v stands for the probability base^(−1024 v).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.sphinx.binary import Cursor, read_file
from profiler.arrays import F32, Array

# pocketsphinx' log base and the shift of its 8-bit scores.
LOG_BASE = 1.0001
SHIFT = 10
NAT_PER_STEP = (1 << SHIFT) * math.log(LOG_BASE)
MAX_LINE = 999  # pocketsphinx reads the header lines into 1 000 bytes
CLUSTERS = 16
LARGEST = 64 << 20  # bytes: 65 536 senones of 256 densities in 3 streams are 50 MB; read they are four times as much
KEYS = ("feature_count", "mixture_count", "model_count", "cluster_count", "cluster_bits")


def read(path: Path, streams: int, densities: int, senones: int) -> Array:
    """Mixture weights f32 [streams, densities, senones] as probabilities.

    The three dimensions come from `means` and `mdef`; the file must agree with them.
    """
    data = read_file(path, LARGEST)
    # No magic: the first length tells the byte order, as in pocketsphinx.
    cursor = Cursor(data, path)
    if len(data) < 4 or not 1 <= int.from_bytes(data[:4], "little") <= MAX_LINE:
        cursor = Cursor(data, path, big_endian=True)
        if not 1 <= int.from_bytes(data[:4], "big") <= MAX_LINE or len(data) < 4:
            raise ModelError(f"{path} is not a sendump file: its first line has no plausible length")
    header = _header(cursor)
    for key, value in {"feature_count": streams, "mixture_count": densities, "model_count": senones}.items():
        if header.get(key, value) != value:
            raise ModelError(f"{path}: {key} is {header[key]}, the other files say {value}")
    clusters, bits = header.get("cluster_count", 0), header.get("cluster_bits", 8)
    if clusters not in (0, CLUSTERS - 1, CLUSTERS):
        raise ModelError(f"{path}: cluster_count is {clusters}, expected 0, 15 or 16")
    if bits not in (4, 8) or (bits == 4 and not clusters):
        raise ModelError(f"{path}: cluster_bits is {bits}, expected 8, or 4 with clusters")
    columns, codebook = senones, np.arange(256)
    if clusters:
        codebook = cursor.array("u1", CLUSTERS, "cluster values").astype(np.int64)
    else:
        rows, columns = cursor.i32("rows"), cursor.i32("columns")
        if rows != densities:
            raise ModelError(f"{path}: {rows} rows, the means have {densities} densities")
        # Old files pad their rows.
        if columns < senones:
            raise ModelError(f"{path}: {columns} columns, the model has {senones} senones")
    step = (columns + 1) // 2 if bits == 4 else columns
    table = cursor.array("u1", streams * densities * step, "mixture weights")
    cursor.finished("the mixture weights")
    table = table.reshape(streams, densities, step)
    if bits == 4:
        table = np.stack([table & 15, table >> 4], axis=3).reshape(streams, densities, 2 * step)
    table = table[:, :, :senones]
    if clusters and int(table.max()) >= CLUSTERS:
        raise ModelError(f"{path}: a weight names cluster {int(table.max())} of {CLUSTERS}")
    probability = np.exp(-NAT_PER_STEP * codebook).astype(np.float32)
    weights: F32 = probability[table]
    return weights


def _header(cursor: Cursor) -> dict[str, int]:
    header: dict[str, int] = {}
    while length := cursor.i32("length of a header line", 0, MAX_LINE):
        line = cursor.take(length, "header line")
        key, _, value = line.partition(b"\0")[0].decode("latin-1").partition(" ")
        if key in KEYS:
            if not (value.strip().isdigit() and len(value) < 10):
                raise ModelError(f"{cursor.path}: {key} is {value[:20]!r}, expected a count")
            header[key] = int(value)
    return header
