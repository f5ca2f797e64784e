"""Cost laws of what selects: codewords, clusters, tables, senones that are due or backed off, frames copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs import calls, frame_calls, per
from pipelines.scoring.simd.vector import LANES
from profiler.costs import NUMPY_CALL, Cost

if TYPE_CHECKING:
    from pipelines.scoring.clustering.clusters import Clusters
    from pipelines.scoring.clustering.quantiser import Codebook


def quantise(book: Codebook, by_tree: bool, frames: int) -> Cost:
    """Law of expanding frames and finding their codewords, in calls of `frames` frames, by codewords compared.

    A product over D + 1 numbers and a comparison each. Searched in full, the codebook is read once a call, if not anew
    by every eight frames. In the tree half a plane and a child are read for each of the two that a node compares.
    """
    streams, _, dim = book.words.shape
    depth, panels = dim + 1, float(book.panels.nbytes)
    if by_tree:
        least, most, tree = per(frame=4.0 * streams), per(2.0 * depth + 4.0), book.planes.nbytes + book.children.nbytes
        return Cost({"fma": per(depth + 0.5)}, least, most, float(tree), scattered=True, calls=calls(2))
    least, most = per(fixed=panels), per(8.0, fixed=panels * max(1.0, frames / 8))
    return Cost({"gemm": per(2.0 * depth), "scalar": per(1.0)}, least, most, panels, calls=calls(2))


def frame_codewords(book: Codebook) -> Cost:
    """Law of finding the codeword of whole frames, of one stream: a product of [x, 1] and a comparison each.

    Compulsory: the codebook. The tiling writes the products and reads them for the comparison.
    """
    panels, terms = float(book.panels.nbytes), book.words.shape[2] + 1.0
    padded = -(-book.size // LANES) * LANES / book.size
    least, most = per(fixed=panels), per(3.0 * FLOAT * padded, fixed=panels)
    return Cost({"gemm": per(2.0 * terms * padded), "scalar": per(padded)}, least, most, panels, calls=calls(2))


def clusters(selector: Clusters) -> Cost:
    """Law of evaluating the cluster Gaussians and choosing the best: some three comparisons each."""
    size, operations = float(selector.gaussians.nbytes), {"gemm": per(2.0 * selector.gaussians.shape[2])}
    least, most = per(4.0, fixed=size), per(24.0, fixed=size)
    return Cost(operations | {"scalar": per(3.0)}, least, most, size, calls=calls(2))


def lookup(table_bytes: int) -> Cost:
    """Law of `vq_table.lookup`, by lookups and senones: a number read and added each."""
    least, most = per(float(FLOAT), float(FLOAT)), per(float(FLOAT), 2.0 * FLOAT)
    return Cost({"fma": per(1.0)}, least, most, float(table_bytes), calls=calls(1))


COPY_CALLS = 4.0  # Calls of numpy for a block that say which frames are copied, besides one for each frame
NUMBER = 8.0  # Bytes of a senone's number
BACKOFF = 12.0  # Bytes of a senone's number, of its parent's and of a place in the list


def copied_frames(n_senones: int, block: int) -> Cost:
    """Law of `score.copy`: scores written for the copied frames; in fact every covered frame is read and written."""
    row, called = float(FLOAT * n_senones), {NUMPY_CALL: per(fixed=COPY_CALLS, frame=1.0)}
    return Cost({}, per(row), per(frame=2 * row), 2 * row * block, calls=called)


def due(n_senones: int) -> Cost:
    """Law of `senones.due`: for each requested senone a comparison, its last computed frame, its place on the list."""
    least, most = per(2.0 * NUMBER, 2.0 * NUMBER), per(3.0 * NUMBER, NUMBER)
    return Cost({"scalar": per(1.0)}, least, most, 2.0 * NUMBER * n_senones, calls=frame_calls())


def backed_off(n_senones: int) -> Cost:
    """Law of `senones.passing` and `choose`: a comparison of each senone's parent, its score or its place written.

    At most with a line read for every score written, and another pass that counts for the cap.
    """
    least, most = per(BACKOFF, float(FLOAT)), per(3 * BACKOFF, 2.0 * FLOAT)
    return Cost({"scalar": per(2.0)}, least, most, n_senones * (BACKOFF + 2 * FLOAT), calls=frame_calls(2))
