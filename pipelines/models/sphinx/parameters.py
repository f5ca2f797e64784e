"""Gaussian means and variances, transition matrices and mixture weights (`s3` files, and `sendump`).

Layouts as SphinxTrain writes them; floors as pocketsphinx applies them by default. An `s3` file is `s3\\n`, lines
`key value` up to `endhdr`, the word 0x11223344 in the writer's byte order, the payload in 32-bit words, and, when the
header has `chksum0`, the checksum of the payload.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.sphinx.binary import Cursor, read_file
from profiler.arrays import F32, Array

# pocketsphinx' defaults -varfloor, -tmatfloor and -mixwfloor.
VARIANCE_FLOOR = 1e-4
TRANSITION_FLOOR = 1e-4
WEIGHT_FLOOR = 1e-7
MAX_STREAMS = 16
LARGEST = 1e10  # of a mean or variance: log densities then stay finite in single precision


@dataclass(frozen=True, eq=False)
class GaussianTable:
    """One value per dimension of each Gaussian: `streams[s]` is f32 [codebooks, densities, dim]."""

    streams: list[Array]

    @property
    def shape(self) -> tuple[int, int, tuple[int, ...]]:
        first = self.streams[0].shape
        return first[0], first[1], tuple(stream.shape[2] for stream in self.streams)


def _floats(cursor: Cursor, *shape: int) -> Array:
    """The rest of the file: finite values f32 of this shape."""
    count, formula = cursor.i32("number of values"), " × ".join(map(str, shape))
    if count != math.prod(shape):
        raise ModelError(f"{cursor.path}: number of values is {count}, expected {formula}")
    values = cursor.array("f4", count, "values")
    cursor.finished("the values")
    if not np.isfinite(values).all():
        raise ModelError(f"{cursor.path}: a value is not a finite number")
    return values.reshape(shape)


def _parameters(cursor: Cursor, what: str, *shape: int) -> Array:
    values = _floats(cursor, *shape)
    if float(np.abs(values).max()) > LARGEST:
        raise ModelError(f"{cursor.path}: a value is beyond ±{LARGEST:.0e}, that is no {what} file")
    return values


def _counts(cursor: Cursor, what: str, *shape: int) -> Array:
    values = _floats(cursor, *shape)
    if (values < 0).any():
        raise ModelError(f"{cursor.path}: a {what} is negative")
    return values


def read_gaussians(path: Path, what: str) -> GaussianTable:
    """Read a `means` or `variances` file (`what` names it) as it is, without a floor."""
    cursor = open_payload(path, what)
    codebooks = cursor.i32("number of codebooks", 1)
    streams = cursor.i32("number of streams", 1, MAX_STREAMS)
    densities = cursor.i32("number of densities", 1)
    lengths = [cursor.i32(f"dimensions of stream {s}", 1, 1024) for s in range(streams)]
    table = _parameters(cursor, what, codebooks, densities, sum(lengths)).reshape(codebooks, -1)
    parts = np.split(table, np.cumsum([densities * n for n in lengths])[:-1], axis=1)
    return GaussianTable(
        [part.reshape(codebooks, densities, length) for part, length in zip(parts, lengths, strict=True)]
    )


def read_variances(path: Path) -> GaussianTable:
    table = read_gaussians(path, "variances")
    return GaussianTable([np.maximum(part, np.float32(VARIANCE_FLOOR)) for part in table.streams])


def read_transform(path: Path) -> Array:
    """The matrix f32 [m, n] of `feature_transform`: a row for each feature that comes out (pocketsphinx' lda.c)."""
    cursor = open_payload(path, "feature transform")
    shape = cursor.i32("number of matrices", 1), cursor.i32("rows", 1, 1024), cursor.i32("columns", 1, 1024)
    # Of several classes pocketsphinx uses the first.
    first: Array = _parameters(cursor, "feature transform", *shape)[0]
    return first


def read_transitions(path: Path) -> Array:
    """Transition probabilities f32 [matrices, states, states + 1], rows adding up to one.

    The file holds counts; non-zero entries are raised to the floor, zeros stay forbidden.
    """
    cursor = open_payload(path, "transition matrix")
    matrices, rows = cursor.i32("number of matrices", 1), cursor.i32("source states", 1, 64)
    columns = cursor.i32("destination states", 2, 65)
    if columns != rows + 1:
        raise ModelError(f"{path}: {columns} destination states, expected {rows} + 1")
    table = _counts(cursor, "transition count", matrices, rows, columns).astype(np.float64)
    sums = table.sum(2, keepdims=True)
    if (sums <= 0).any():
        raise ModelError(f"{path}: a state has no way out, all its counts are zero")
    table /= sums
    table = np.where(table > 0, np.maximum(table, TRANSITION_FLOOR), 0.0)
    floored: F32 = (table / table.sum(2, keepdims=True)).astype(np.float32)
    return floored


def read_mixture_weights(path: Path) -> Array:
    """Mixture weights f32 [streams, densities, senones] from the unquantised `mixture_weights`."""
    cursor = open_payload(path, "mixture weight")
    senones, streams = cursor.i32("number of senones", 1), cursor.i32("number of streams", 1, MAX_STREAMS)
    weights = _counts(cursor, "mixture weight", senones, streams, cursor.i32("number of densities", 1))
    # A senone without training data has no weights at all: every density counts alike.
    sums = weights.sum(2, keepdims=True)
    weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
    weights = np.maximum(weights, np.float32(WEIGHT_FLOOR))
    weights /= weights.sum(2, keepdims=True)
    return np.ascontiguousarray(weights.transpose(1, 2, 0))


MAGIC = b"s3\n"
BYTE_ORDER = 0x11223344
MAX_HEADER_BYTES = 65_536
AT_ONCE = 1 << 16  # words that are Python's integers at a time, of 32 bytes each
CHECKSUM_ROTATION = 20  # bits, SphinxBase's bio format


def checksum(words: Array) -> int:
    """Rolling 32-bit sum of uint32 `words`: rotate left by 20 bits, add the word."""
    total, back = 0, 32 - CHECKSUM_ROTATION
    for first in range(0, len(words), AT_ONCE):
        for word in words[first : first + AT_ONCE].tolist():
            total = ((total << CHECKSUM_ROTATION | total >> back) + word) & 0xFFFFFFFF
    return total


def open_payload(path: Path, what: str) -> Cursor:
    """A cursor over the payload of `path` with the checksum verified and cut off.

    `what` is the name of the contents for the message about a foreign file.
    """
    data = read_file(path)
    if not data.startswith(MAGIC):
        raise ModelError(f"{path} is not a {what} file: it does not begin with the line s3")
    header = re.match(rb"(?:.*\n)*?[ \t\r]*endhdr[ \t\r]*\n", data[:MAX_HEADER_BYTES])
    if header is None:
        raise ModelError(f"{path} is cut short or corrupt: its header has no line endhdr")
    at, has_checksum = header.end(), re.search(rb"^[ \t]*chksum0\s", header[0], re.MULTILINE) is not None
    word = data[at : at + 4]
    orders = {BYTE_ORDER.to_bytes(4, "little"): False, BYTE_ORDER.to_bytes(4, "big"): True}
    if word not in orders:
        raise ModelError(f"{path}: the byte-order word after the header is {word.hex() or 'gone'}")
    cursor = Cursor(data, path, big_endian=orders[word])
    cursor.at = at + 4
    if cursor.left % 4:
        raise ModelError(f"{path} is cut short: its payload is not a whole number of 32-bit words")
    if has_checksum:
        if not cursor.left:
            raise ModelError(f"{path} is cut short: the checksum is missing")
        words = np.frombuffer(data, cursor.order + "u4", offset=cursor.at)
        found = checksum(words[:-1])
        if found != int(words[-1]):
            raise ModelError(
                f"{path}: the checksum is {int(words[-1]):08x}, the contents give {found:08x}; "
                "the file is cut short or corrupt"
            )
        cursor.end -= 4
    return cursor


# pocketsphinx' log base and the shift of its 8-bit scores.
LOG_BASE = 1.0001
NAT_PER_STEP = (1 << 10) * math.log(LOG_BASE)
MAX_LINE = 999  # pocketsphinx reads the header lines into 1 000 bytes
CLUSTERS = 16
LARGEST_SENDUMP = 64 << 20  # bytes: 65 536 senones of 256 densities in 3 streams are 50 MB; read, four times as much
KEYS = ("feature_count", "mixture_count", "model_count", "cluster_count", "cluster_bits")


def read_sendump(path: Path, streams: int, densities: int, senones: int) -> Array:
    """Mixture weights f32 [streams, densities, senones], quantised to 8 bits, or to 4-bit numbers of 16 clusters.

    {int32 length, text with NUL} repeated up to length 0; then, without clusters, int32 rows and columns; with
    clusters, the 16 cluster values (15 in the header count as 16). The weights follow as [stream][density] rows of one
    byte per senone, or of one byte per two senones, the even one in the low four bits. A value v stands for the
    probability base^(−1024 v). The three dimensions come from `means` and `mdef`; the file must agree with them.
    """
    data = read_file(path, LARGEST_SENDUMP)
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
