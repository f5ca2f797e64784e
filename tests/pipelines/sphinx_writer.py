"""Writes small CMUSphinx model directories from the description of the formats, for tests.

Independent of the readers: struct and plain loops only.
"""

import math
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

PHONES = ["+NSN+", "AA", "B", "SIL"]
FILLER = [True, False, False, True]
# (position, base, left, right) of the triphones that the small model knows.
TRIPHONES = [(0, 1, 2, 2), (1, 1, 3, 2), (2, 2, 1, 3), (3, 1, 3, 3), (0, 2, 1, 1)]
N_CI_SENONES = 12
N_SENONES = 15
STREAMS, DIM = 3, 13


def sequences() -> list[tuple[int, int, int]]:
    """CI phone p uses senones 3p…3p+2; the triphones of AA and B share some tied ones."""
    rows = [(3 * p, 3 * p + 1, 3 * p + 2) for p in range(len(PHONES))]
    return [*rows, (12, 4, 5), (3, 12, 5), (6, 13, 14), (3, 4, 12), (13, 7, 14)]


def bmdf(order: str = "<") -> bytes:
    out = b"BMDF" if order == "<" else b"FDMB"
    text = b"made by a test\0\0"
    out += struct.pack(order + "ii", 1, len(text)) + text
    seqs = sequences()
    n_phone = len(PHONES) + len(TRIPHONES)
    counts = [len(PHONES), n_phone, 3, N_CI_SENONES, N_SENONES, len(PHONES), len(seqs), 3, 2, 3]
    out += struct.pack(order + "10i", *counts)
    names = b"".join(name.encode() + b"\0" for name in PHONES)
    out += names + b"\0" * (-len(names) % 4)
    out += struct.pack(order + "hhihhi", 0, 0, 0, 1, 0, 0)
    for p in range(len(PHONES)):
        out += struct.pack(order + "ii4B", p, p, FILLER[p], 0, 0, 0)
    for i, (position, *context) in enumerate(TRIPHONES):
        out += struct.pack(order + "ii4B", len(PHONES) + i, context[0], position, *context)
    out += struct.pack(order + "i", 3 * len(seqs))
    for seq in seqs:
        out += struct.pack(order + "3H", *seq)
    return out


def text_mdef() -> bytes:
    seqs = sequences()
    counts = {
        "n_base": len(PHONES),
        "n_tri": len(TRIPHONES),
        "n_state_map": 4 * (len(PHONES) + len(TRIPHONES)),
        "n_tied_state": N_SENONES,
        "n_tied_ci_state": N_CI_SENONES,
        "n_tied_tmat": len(PHONES),
    }
    lines = ["# a comment", "0.3", *(f"{number} {name}" for name, number in counts.items()), "#"]
    for p, name in enumerate(PHONES):
        kind = "filler" if FILLER[p] else "n/a"
        lines.append(f"{name} - - - {kind} {p} {' '.join(map(str, seqs[p]))} N")
    for i, (position, *context) in enumerate(TRIPHONES):
        names = " ".join(PHONES[c] for c in context)
        senones = " ".join(map(str, seqs[len(PHONES) + i]))
        lines.append(f"{names} {'ibes'[position]} n/a {context[0]} {senones} N")
    return ("\n".join(lines) + "\n").encode()


def s3(shape: Sequence[int], values: np.ndarray, order: str = "<") -> bytes:
    numbers = *shape, values.size
    payload = struct.pack(f"{order}{len(numbers)}i", *numbers) + values.astype(order + "f4").tobytes()
    total = 0
    for (word,) in struct.iter_unpack(order + "I", payload):
        total = (((total << 20) | (total >> 12)) + word) % 2**32
    header = b"s3\nversion 1.0\nchksum0 yes\n  endhdr\n" + struct.pack(order + "I", 0x11223344)
    return header + payload + struct.pack(order + "I", total)


def gaussians(values: np.ndarray, order: str = "<") -> bytes:
    """`values` [codebooks, streams, densities, dim]."""
    *shape, dim = values.shape
    return s3([*shape, *[dim] * shape[1]], values, order)


def lines(texts: list[str], order: str = "<") -> bytes:
    out = b""
    for text in texts:
        raw = text.encode() + b"\0"
        out += struct.pack(order + "i", len(raw)) + raw
    return out + struct.pack(order + "i", 0)


def sendump_8(levels: np.ndarray, order: str = "<", padding: int = 0) -> bytes:
    """`levels` u8 [streams, densities, senones]."""
    streams, densities, senones = levels.shape
    head = ["title", "header", f"feature_count {streams}", "cluster_count 0"]
    out = lines(head, order) + struct.pack(order + "ii", densities, senones + padding)
    for row in levels.reshape(-1, senones):
        out += row.tobytes() + b"\7" * padding
    return out


def sendump_clustered(levels: np.ndarray, codebook: list[int], bits: int, count: int = 16) -> bytes:
    """`levels` are cluster numbers; with four bits, the even senone sits in the low half."""
    streams, densities, senones = levels.shape
    head = ["title", "header", f"feature_count {streams}", f"mixture_count {densities}", f"model_count {senones}"]
    out = lines([*head, f"cluster_count {count}", f"cluster_bits {bits}"])
    out += bytes(codebook)
    for row in levels.reshape(-1, senones).tolist():
        if bits == 4:
            row = [low | high << 4 for low, high in zip(row[::2], [*row[1::2], 0], strict=False)]
        out += bytes(row)
    return out


def probability(level: int) -> float:
    return math.pow(1.0001, -1024.0 * level)


def write_model(folder: Path, codebooks: int = 4, densities: int = 20, seed: int = 0) -> Path:
    """A complete small model; 20 densities are no multiple of a vector."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "feat.params").write_text("-feat 1s_c_d_dd\n-svspec 0-12/13-25/26-38\n-model ptm\n")
    (folder / "mdef").write_bytes(bmdf())
    put_gaussians(folder, rng, (codebooks, STREAMS, densities, DIM))
    transitions = np.tile(10 * (np.eye(3, 4, 1) + 3 * np.eye(3, 4)), (len(PHONES), 1, 1))
    (folder / "transition_matrices").write_bytes(s3(transitions.shape, transitions))
    levels = rng.integers(0, 160, (STREAMS, densities, N_SENONES), dtype=np.uint8)
    (folder / "sendump").write_bytes(sendump_8(levels))
    return folder


def put_gaussians(folder: Path, rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    (folder / "means").write_bytes(gaussians(rng.normal(0, 3, shape)))
    (folder / "variances").write_bytes(gaussians(rng.uniform(0.5, 4, shape)))


def put_weights(folder: Path, rng: np.random.Generator, streams: int, densities: int) -> None:
    """Random mixture weights instead of those of the small model."""
    (folder / "sendump").unlink()
    counts = rng.uniform(1, 50, (N_SENONES, streams, densities))
    (folder / "mixture_weights").write_bytes(s3(counts.shape, counts))


def write_continuous(folder: Path, streams: int = 1, densities: int = 5) -> Path:
    """The small model with a codebook for each senone: one stream of 39 dimensions, or three of 13."""
    write_model(folder)
    rng = np.random.default_rng(0)
    (folder / "feat.params").write_text("-feat 1s_c_d_dd\n")
    put_gaussians(folder, rng, (N_SENONES, streams, densities, STREAMS * DIM // streams))
    put_weights(folder, rng, streams, densities)
    return folder


def write_streams(
    folder: Path,
    widths: list[int],
    feat_params: str,
    codebooks: int = N_SENONES,
    densities: int = 2,
    transform: np.ndarray | None = None,
) -> Path:
    """The small model with streams of these widths and wide Gaussians, so that every feature counts in every score."""
    write_model(folder)
    rng = np.random.default_rng(0)
    (folder / "feat.params").write_text(feat_params)
    shapes = [(codebooks, densities, width) for width in widths]
    for name, draw, *values in (("means", rng.normal, 0, 1), ("variances", rng.uniform, 2, 6)):
        rows = np.concatenate([draw(*values, shape).reshape(codebooks, -1) for shape in shapes], axis=1)
        (folder / name).write_bytes(s3([codebooks, len(widths), densities, *widths], rows))
    put_weights(folder, rng, len(widths), densities)
    if transform is not None:
        (folder / "feature_transform").write_bytes(s3([1, *transform.shape], transform))
    return folder
