"""Dense GMM scoring in torch: what one block of frames takes on a device, for both families of models.

All Gaussians are products with [x², x, 1], as on the processor (`packing`). `Tied` then sums exponentials by the
senones' weights in a second product; `Owned` folds the weights into the constants and sums each senone's own. Sums are
taken in float32 whatever the number type. Features are centred and scaled to about unit spread: 16-bit products lose
less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.costs import per
from pipelines.scoring.device.arithmetic import SIZES, Arithmetic, Give, Placed
from profiler.arrays import Array
from profiler.spans import Cost

if TYPE_CHECKING:
    from torch import Tensor

LIMITS = {"fp32": 1e4, "fp16": 200.0, "bf16": 1e4}
"""Scaled features are clamped here; their squares stay finite in the number type."""
ALIGNED = 32
"""Rows of the Gaussians are padded to a multiple: tensor cores of 16-bit numbers want multiples of 8 at least."""
FP16_MAX = 6e4  # Within what float16 can hold
WIDER = 1.3  # Codebooks that differ by more than this in senones are multiplied apart: less padding, more products
PIECE_BYTES = {"cpu": 4 << 20}  # Log densities of `Owned` that are there at once: a processor's caches hold so much …
PIECE_BYTES_DEVICE = 256 << 20  # … and a device is to be busy for more than a launch takes
FLOOR = 1e-37  # Least likelihood before the logarithm: the least that float32 holds with full precision


def mixtures_of(model: AcousticModel) -> Arithmetic:
    return Owned(model) if model.is_continuous else Tied(model)


class _Mixtures(Arithmetic):
    """Base of both families: parameters `centre`, `scale` and `gaussians` [streams, 2·D + 1 and padding, densities]."""

    def __init__(self, model: AcousticModel, order: Array | None = None, log_weights: Array | None = None) -> None:
        """`order`: of the codebooks; `log_weights` [codebooks, streams, densities] become part of the constants."""
        self.n_senones, self.dim = model.n_senones, model.n_features
        centre, scale, matrix = _gaussians(model)
        if log_weights is not None:
            matrix[:, :, -1] += log_weights
        self._books, self._streams, expanded, self._densities = matrix.shape
        self._constant = expanded - 1
        ordered = matrix if order is None else matrix[order]
        gaussians = ordered.transpose(1, 2, 0, 3).reshape(self._streams, expanded, -1)
        padding = (0, 0), (0, -expanded % ALIGNED), (0, 0)
        self.arrays = {"centre": centre, "scale": scale, "gaussians": np.pad(gaussians, padding)}

    def fitting(self, name: str, dtype: str) -> Array:
        """Gaussians of floored variance have factors of millions, which float16 cannot hold; they match nothing but
        their own mean, and there are few: in float16 they are left out."""
        array = self.arrays[name]
        if dtype != "fp16" or name != "gaussians":
            return array
        array = array.copy()
        too_large = np.abs(array).max(axis=1) > FP16_MAX
        array.swapaxes(1, 2)[too_large] = 0.0
        array[:, self._constant][too_large] = -FP16_MAX
        return array


def _gaussians(model: AcousticModel) -> tuple[Array, Array, Array]:
    """Centre and scale of the features [dim], and [books, streams, 2·D + 1, densities] float64."""
    means, variances = model.means.astype(np.float64), model.variances.astype(np.float64)
    dim = means.shape[3]
    centre = means.mean(axis=(0, 2))
    means -= centre[:, None, :]
    constant = -0.5 * (dim * math.log(2 * math.pi) + np.log(variances).sum(3))
    constant -= 0.5 * (means**2 / variances).sum(3)
    scale = 1.0 / np.sqrt((variances + means**2).mean(axis=(0, 2)))
    spread = variances * scale[:, None, :] ** 2
    rows = np.concatenate([-0.5 / spread, means * scale[:, None, :] / spread, constant[..., None]], axis=3)
    return centre.ravel(), scale.ravel(), rows.swapaxes(2, 3)


def _expand(p: dict[str, Tensor], x: Tensor, streams: int, on: Placed) -> Tensor:
    """[x², x, 1] per stream in the products' number type, with zeros behind: as many as `gaussians` has rows."""
    import torch

    limit = LIMITS[on.dtype]
    v = ((x - p["centre"]) * p["scale"]).nan_to_num(0.0, limit, -limit).clamp_(-limit, limit)
    v = v.view(len(x), streams, -1)
    square, width = v.shape[2], p["gaussians"].shape[1]
    expanded = torch.zeros((streams, len(x), width), dtype=v.dtype, device=v.device)
    by_stream = v.transpose(0, 1)
    torch.mul(by_stream, by_stream, out=expanded[:, :, :square])
    expanded[:, :, square : 2 * square] = by_stream
    expanded[:, :, 2 * square] = 1.0
    return expanded.to(p["gaussians"].dtype)


class Tied(_Mixtures):
    """PTM and semi-continuous models: log densities, exponentials, mixtures, one logarithm per senone.

    Codebooks are sorted by their number of senones and padded to the widest of a group.
    """

    def __init__(self, model: AcousticModel) -> None:
        counts = np.bincount(model.senone_codebook, minlength=model.n_codebooks)
        order = np.argsort(counts, kind="stable")
        super().__init__(model, order)
        self.stages = {
            "score.gaussians": ("gaussians",),
            "score.exp": ("exponentials",),
            "score.mixture": ("components",),
            "score.log": ("senones",),
        }
        self._groups: list[tuple[int, int]] = []
        column = np.empty(model.n_senones, np.int64)
        self._columns = 0
        for first, last in _groups(counts[order]):
            width = max(int(counts[order[last - 1]]), 1)
            weights = np.zeros((self._streams, last - first, self._densities, width))
            for book in range(first, last):
                mine = np.flatnonzero(model.senone_codebook == order[book])
                weights[:, book - first, :, : len(mine)] = model.weights[:, :, mine]
                column[mine] = self._columns + (book - first) * width + np.arange(len(mine))
            self.arrays[f"weights {len(self._groups)}"] = weights
            self._groups.append((first, last))
            self._columns += width * (last - first)
        self.arrays["column"] = column

    def score(self, p: dict[str, Tensor], x: Tensor, out: Tensor, on: Placed, give: Give) -> None:
        import torch

        n = len(x)
        made: dict[str, Tensor] = {}
        products: list[Tensor] = []

        def gaussians() -> None:
            made["g"] = torch.bmm(_expand(p, x, self._streams, on), p["gaussians"])

        def exponentials() -> None:
            g = made["g"].view(self._streams, n, self._books, self._densities)
            # Half precision overflows to −inf, whose difference from itself is no number.
            best = g.amax(dim=3, keepdim=True).clamp_min_(-FP16_MAX)
            made["shift"] = best.float().sum(dim=0)
            made["e"] = g.sub_(best).exp_()

        def mixtures() -> None:
            products.extend(
                _product(made["e"][:, :, first:last], p[f"weights {i}"]) for i, (first, last) in enumerate(self._groups)
            )

        def logarithms() -> None:
            found = []
            for (first, last), product in zip(self._groups, products, strict=True):
                log = product.clamp_min_(FLOOR).log_()
                log += made["shift"][:, first:last].transpose(0, 1)
                found.append(log.transpose(0, 1).reshape(n, -1))
            torch.index_select(torch.cat(found, dim=1), 1, p["column"], out=out)
            made.clear()
            products.clear()

        steps = (gaussians, exponentials, mixtures, logarithms)
        for (name, count), step in zip(self._counts(n).items(), steps, strict=True):
            give(name, step, n, (count, 0, 0))

    def _counts(self, n: int) -> dict[str, int]:
        gaussians = self._books * self._streams * self._densities
        components = self.n_senones * self._streams * self._densities
        amounts = (gaussians, gaussians, components, self.n_senones)
        return {name: n * a for name, a in zip(self.stages, amounts, strict=True)}

    def costs(self, frames: int, on: Placed) -> dict[str, Cost]:
        """Each array read or written once per pass over it; products as padded as they are."""
        size = float(SIZES[on.dtype])
        per_frame = self._counts(1)
        rows = self.arrays["gaussians"].shape[1]
        weights = sum(a.size for name, a in self.arrays.items() if name.startswith("weights"))
        densities, components = per_frame["score.exp"], per_frame["score.mixture"]
        padding = self._columns / self.n_senones
        g_bytes = frames * densities * size
        results = 4.0 * self._streams * self._columns / components
        parameters = size * self.arrays["gaussians"].size
        return {
            "score.gaussians": on.cost({on.gemm: per(2.0 * rows)}, per(size, fixed=parameters), parameters + g_bytes),
            # Read for the maximum; read and written for the difference, and for the exponential.
            "score.exp": on.cost({"exp": per(1.0), "fma": per(2.0)}, per(5 * size), g_bytes),
            "score.mixture": on.cost(
                {on.gemm: per(2.0 * padding)},
                per(size * densities / components + results, fixed=size * weights),
                size * weights + g_bytes,
            ),
            # Floor, logarithm, shift, two copies into order: each reads and writes once.
            "score.log": on.cost(
                {"log": per(padding), "fma": per(2.0 * padding)}, per(40.0 * padding), 8.0 * frames * self._columns
            ),
        }


def _product(e: Tensor, weights: Tensor) -> Tensor:
    """Π over streams of exponentials [streams, n, books, K] · weights: f32 [books, n, width]."""
    import torch

    product: Tensor | None = None
    for stream, mine in zip(e, weights, strict=True):
        mixture = torch.bmm(stream.transpose(0, 1), mine).float()
        product = mixture if product is None else product.mul_(mixture)
    assert product is not None, "a model has a stream at least"
    return product


def _groups(widths: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Ranges of codebooks, sorted by width, whose widest is at most WIDER times the narrowest."""
    wide = [max(int(w), 1) for w in widths]
    first = 0
    for i in range(1, len(wide) + 1):
        if i == len(wide) or wide[i] > max(WIDER * wide[first], 8):
            yield first, i
            first = i


class Owned(_Mixtures):
    """Continuous models: each senone sums its own Gaussians, a piece of the senones at a time."""

    def __init__(self, model: AcousticModel) -> None:
        log_weights = np.log(np.maximum(model.weights.astype(np.float64), FLOOR))
        super().__init__(model, log_weights=log_weights.transpose(2, 0, 1))
        self.stages = {"score.gaussians": ("gaussians",), "score.lse": ("exponentials", "senones")}

    def score(self, p: dict[str, Tensor], x: Tensor, out: Tensor, on: Placed, give: Give) -> None:
        n, k = len(x), self._densities
        made: dict[str, Tensor] = {}

        def gaussians(stream: int, first: int, last: int) -> None:
            if "x" not in made:
                made["x"] = _expand(p, x, self._streams, on)
            made["g"] = made["x"][stream] @ p["gaussians"][stream, :, first * k : last * k]

        def sums(stream: int, first: int, last: int) -> None:
            found = made["g"].view(n, last - first, k).float().logsumexp(dim=2)
            target = out[:, first:last]
            target.copy_(found) if stream == 0 else target.add_(found)

        for first, last in self._pieces(n, on):
            for stream in range(self._streams):
                done, part = n * (last - first), (stream, first, last)
                give("score.gaussians", partial(gaussians, *part), n, (done * k, 0, 0))
                give("score.lse", partial(sums, *part), n, (done * k, done if stream == 0 else 0, 0))

    def _pieces(self, n: int, on: Placed) -> Iterator[tuple[int, int]]:
        room = PIECE_BYTES.get(on.where, PIECE_BYTES_DEVICE)
        step = max(1, min(room // (4 * n * self._densities), self.n_senones))
        for first in range(0, self.n_senones, step):
            yield first, min(first + step, self.n_senones)

    def costs(self, frames: int, on: Placed) -> dict[str, Cost]:
        """Parameters once per call, log densities written and read; the sum's passes over them."""
        size = float(SIZES[on.dtype])
        rows = self.arrays["gaussians"].shape[1]
        room = PIECE_BYTES.get(on.where, PIECE_BYTES_DEVICE)
        piece = min(float(room), 4.0 * frames * self.n_senones * self._densities)
        parameters = size * self.arrays["gaussians"].size
        # Every Gaussian's row of parameters is read once for all frames of the call.
        row = rows * size / frames
        return {
            "score.gaussians": on.cost({on.gemm: per(2.0 * rows)}, per(size + row), parameters),
            # Maximum, difference, exponential and sum of float32; a copy before where it is not.
            "score.lse": on.cost({"exp": per(1.0), "fma": per(3.0)}, per(20.0 + (size + 4 if size < 4 else 0)), piece),
        }
