"""The kernels of continuous-density scoring against bare matrix products and bare reading, on one core.

    asrscope bench continuous
    asrscope bench continuous --audio corpus/ --transcripts corpus/transcripts.tsv

For the untied model and the single-stream one (resampled, as made without speech): the product stage against
numpy's BLAS, log-sum-exp per Gaussian, bytes read per second at block 1 and by the machine's own reading, what
it takes to derive the model, and the memory of a process that scores with it. Features are random, since dense
scoring takes the same time for any. Word errors are counted where audio with transcripts is given, and are null,
said to be not counted, where it is not.

The fairest bare product has the same shapes and the same traffic: one sgemm [n, K] × [K, 16·M] per group of
senones and stream, each with parameters of its own. That on one such tile again and again shows what the cache
is worth, and one product over all columns, whose result goes to memory, what the tiles are worth.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from pipelines.models import continuous, single_stream, sphinx
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.continuous import kernels, pack
from pipelines.scoring.continuous.packing import PackedContinuous
from pipelines.scoring.gaussians.expansion import expand
from pipelines.scoring.simd.vector import LANES
from profiler.machine.roofs import _kernels as machine
from tests.bench._measured import printed
from tests.bench._rounds import MB, Progress, peak_bytes, timed

COMPONENTS = 42
BLOCKS = (1, 4, 16, 64)
WANTED_OF_GEMM = 0.8
PRESETS = ("gmm", "gmm-continuous", "gmm-single-stream")
WANTED_POINTS = 0.03  # word error rate that untying may cost


def run(audio: list[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    """Measure both models in turns; `ratio` is the bare products' time over ours, untied, block 64."""
    base = sphinx.load(sphinx.default_directory())
    rounds = max(repeat, 9)
    rows, derivation = [], {}
    with threadpool_limits(1):
        for name, make in (
            ("continuous", continuous.untied),
            ("single-stream", single_stream.resampled),
        ):
            progress(f"deriving the {name} model", None)
            model, seconds = timed(lambda m=make: m(base, COMPONENTS))
            packed, packing_s = timed(lambda m=model: pack(m))
            derivation[name] = {"found_or_made_s": seconds, "packed_s": packing_s}
            for n in BLOCKS:
                progress(f"{name}, blocks of {n}", None)
                rows.append({"model": name, "block": n, **measure(packed, n, rounds)})
    agreement: dict[str, Any] = {
        f"{row['model']}: {WANTED_OF_GEMM:.0%} of bare products at block 64": row["product_of_bare"] >= WANTED_OF_GEMM
        for row in rows
        if row["block"] == 64
    }
    dense = next(row for row in rows if row["block"] == 64)
    errors: dict[str, Any] | None = None
    untying = f"untying costs at most {WANTED_POINTS:.0%} more word errors"
    if transcripts:
        errors = {}
        for preset in PRESETS:
            progress(f"recognising with {preset}", None)
            errors[preset] = word_errors(preset, audio, transcripts)
        lost = errors["gmm-continuous"]["wer"] - errors["gmm"]["wer"]
        agreement[untying] = lost <= WANTED_POINTS
    else:
        agreement[untying] = "not counted: give --audio and --transcripts"
    progress("measuring memory", None)
    return {
        "peer": "numpy's BLAS, bare products",
        "ratio": dense["product_of_bare"],
        "ratio_min": dense["product_of_bare_least"],
        "ratio_max": dense["product_of_bare_most"],
        "ratio_meaning": "time of bare products of the same tiles / the stage score.gaussians, untied, block 64",
        "agreement": agreement,
        "rows": rows,
        "derivation": derivation,
        "word_errors": errors,
        "peak_memory_mb_over_base": memory_mb(),
    }


def measure(p: PackedContinuous, n: int, rounds: int) -> dict[str, float]:
    """Ours, bare products and bare reading in turns; least of `rounds` each, ratios as medians of pairs."""
    chance = np.random.default_rng(0)
    features = chance.standard_normal((n, p.dim), np.float32)
    x = np.empty((n, p.n_streams, p.expanded), np.float32)
    expand(features, p.centre, x)
    tile = np.empty((max(n, 3), p.n_components * LANES), np.float32)
    sums = np.empty((2, n, LANES), np.float32)
    scores = np.empty((n, p.n_senones), np.float32)
    left = np.ascontiguousarray(x.transpose(1, 0, 2))
    # The same numbers as one [K, 16·M] matrix per group and stream, row by row, as BLAS wants them.
    right = p.gaussians.reshape(p.n_groups, p.n_streams, p.expanded, p.n_components * LANES)
    bare_tile = np.empty((n, p.n_components * LANES), np.float32)

    def ours() -> tuple[int, int]:
        start = time.perf_counter_ns()
        lse_ns = kernels.dense(x, p.gaussians, tile, sums, scores, 0, p.n_groups, False)
        return time.perf_counter_ns() - start - lse_ns, lse_ns

    def bare(group_step: int) -> int:
        start = time.perf_counter_ns()
        for group in range(p.n_groups):
            for stream in range(p.n_streams):
                np.matmul(left[stream], right[group * group_step, stream], out=bare_tile)
        return time.perf_counter_ns() - start

    flat = p.gaussians.ravel()

    def read() -> int:
        start = time.perf_counter_ns()
        machine.read(flat, 1)
        return time.perf_counter_ns() - start

    ours()
    read()
    taken = [(*ours(), bare(1), bare(0), read()) for _ in range(rounds)]
    product, lse, same, cached, reading = (list(column) for column in zip(*taken, strict=True))
    ratios = np.array(same) / np.array(product)
    gaussians = n * p.n_gaussians
    flops = 2.0 * p.expanded * gaussians
    return {
        "us_per_frame": min(a + b for a, b in zip(product, lse, strict=True)) / n / 1e3,
        "product_gflops": flops / min(product),
        "bare_gflops": flops / min(same),
        "bare_in_cache_gflops": flops / min(cached),
        "product_of_bare": float(np.median(ratios)),
        "product_of_bare_least": float(ratios.min()),
        "product_of_bare_most": float(ratios.max()),
        "product_of_bare_in_cache": float(np.median(cached) / np.median(product)),
        "lse_ns_per_gaussian": min(lse) / gaussians,
        "lse_share": float(np.median(lse) / (np.median(lse) + np.median(product))),
        "read_gbytes_per_s": flat.nbytes / min(product),
        "machine_reads_gbytes_per_s": flat.nbytes / min(reading),
    }


def word_errors(preset: str, audio: list[str], transcripts: str) -> dict[str, Any]:
    """Word error rate of a preset, by the command line, and its counts."""
    command = f"asrscope run --json --preset {preset} --set block=64 --no-profile"
    paths = [str(Path(path).absolute()) for path in (*audio, transcripts)]
    speech = [*(["--audio", *paths[:-1]] if audio else []), "--transcripts", paths[-1]]
    (tree,) = printed(command, {}, speech)
    return {key: tree[key] for key in ("wer", "wer_errors", "wer_words")}


def memory_mb() -> float:
    """Peak resident MB of a process that derives, packs and scores with the untied model, less imports."""
    return float(printed("python -m tests.bench.continuous", {})[0])


def _score_once(model: AcousticModel) -> None:
    packed = pack(model)
    x = np.zeros((64, packed.n_streams, packed.expanded), np.float32)
    tile = np.empty((64, packed.n_components * LANES), np.float32)
    scores = np.empty((64, packed.n_senones), np.float32)
    sums = np.empty((2, 64, LANES), np.float32)
    kernels.dense(x, packed.gaussians, tile, sums, scores, 0, packed.n_groups, False)
    # Also the layout for some senones, so that nothing is left out that scoring may need.
    kernels.some(
        x[:1],
        packed.by_senone,
        np.arange(packed.n_senones),
        np.empty((64, packed.n_streams, packed.by_senone.shape[2] * LANES), np.float32),
        scores[:1],
    )


if __name__ == "__main__":
    tied = sphinx.load(sphinx.default_directory())
    before = peak_bytes()
    _score_once(continuous.untied(tied, COMPONENTS))
    sys.stdout.write(f"{(peak_bytes() - before) / MB:.0f}")
