"""The text of docs/ladder.md: the steps, the table, published results and results here.

Published figures come from the papers or from accounts of them. The stages of Vanhoucke's own table are not
repeated, since its figures were not available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench._measured import Table, known

Row = Mapping[str, Any]

PROPER = "ladder-"
"""How the names of the rungs begin that each start from the one before."""
PLAIN = "dnn"
"""The net that the word errors of the others are compared with."""
SCALAR, SIMD, BLAS, INT8, BATCH, LAZY, LAST = (
    "ladder-1-scalar",
    "ladder-2-simd",
    "ladder-3-blas",
    "ladder-4-int8",
    "ladder-5-batch",
    "ladder-6-lazy",
    "ladder-7-batched-lazy",
)

NONE = "–"

HEAD = """# The ladder

Made by `python -m tests.bench.ladder --picture docs/ladder.png > docs/ladder.md`. Each rung is a preset:
`asrscope run --preset ladder-1-scalar`, or the group "The ladder" in the window. Each of the seven main rungs changes
a single setting of the rung before (column *changes*), which can also be changed during a run. The other rungs start
from the plain net in blocks of 16.

The main rungs follow Vanhoucke, Senior & Mao ("Improving the speed of neural networks on CPUs", 2011), who made a
speech net on one core several times as fast:

1. **Scalar loop.** One multiplication and one addition at a time.
2. **Vectors.** The same loop in SIMD registers, with several sums at a time. They report 26 % more speed from
   unrolling alone, with four sums.
3. **BLAS.** The same product by a tuned library. Frame by frame it is a matrix-vector product: every weight is read
   for a single multiplication.
4. **8-bit integers.** A quarter of the bytes, and integer instructions. They report 3 times the speed of their best
   floating point, without loss of accuracy.
5. **Batches.** Several frames at a time make it a matrix-matrix product: each weight is read once for all of them.
   The first frame of a block waits for the last. They report about 10 times the speed of the plain loop and 4
   times that of their best floating point.
6. **Lazy outputs.** Only the outputs of active senones, those that the search needs, are computed. They assume 30 %.
7. **Lazy outputs in batches.** An active senone is also computed for up to three following frames of the block,
   which mostly need it too.

The other rungs change the net:

- **low rank**: factors by SVD, then retraining (Xue, Li & Gong 2013)
- **sparse**: the smallest weights pruned, then retraining (Yu, Seide, Li & Deng 2012)
- **small**: a small net trained on the outputs of a large one (Li et al. 2014)
- **every second frame**: the scores of the last frame are copied (frame-asynchronous; Vanhoucke, Devin & Heigold 2013)
- **two frames at once**: a net with an output layer for each frame (multi-frame; the same paper)
"""

COLUMNS = """- *scoring*: time of scoring alone on one thread, ms per 10 ms frame; median of {rounds} interleaved rounds
  over the same {frames} frames. Active senones are replayed from each rung's own decode.
- *× before*, *× first*: speed relative to the rung that it changes, and to the first (medians of paired rounds)
- *RTF*: time of a whole run (features, scoring and search, recorder off) / audio time
- *WER*: of {words} words, the first sentences of the synthetic test corpus
- *against the plain net*: in points, with a 95 % interval (paired bootstrap over sentences); `=` and a rung if the
  scores are the same (within {same:g} nat on the timed frames), so that its words count for both
- *human*: errors in {human} words of labelled human speech, too few to rank anything
- *weights*: size as the kernels store them
- *latency*: how long the first frame of a block waits for its scores: block + context of the net + scoring
"""

DIFFERS = """Reasons why the figures differ:

- Their net had 28.8 million weights, 55 % of them in the output layer. This one is a tenth of that size and fits into
  the last-level cache of most current processors.
- Their vectors held 4 floats (SSE); today's hold 8 or 16, and BLAS uses all of them. So floating point is a stronger
  baseline.
- Current processors multiply and accumulate 8-bit integers in one instruction; theirs needed three.
- Lazy evaluation saves multiplications but replaces a matrix product by a list of rows. Whether that pays depends on
  how good the product was.
- Copying every second frame halves the columns of each product but not its time: the weights are read as often as
  before, and the copies take time too.
- Sparse weights must be located before they are multiplied. Zeros save time only in whole vectors.
- The labels of forced alignment come from the voices that are tested here. For people, the column *human* is the
  better evidence.
"""


def markdown(tree: Mapping[str, Any], picture: Path | None) -> str:
    """The whole document about the JSON object of `asrscope bench ladder`; `picture` lies in its folder."""
    rows: list[Row] = tree["rows"]
    timed = [row for row in rows if not row["missing"]]
    parts = [HEAD]
    if picture is not None:
        parts.append(f"![Scoring time of each rung, and its word errors]({picture.name})\n")
    parts += ["## The table\n", _origin(tree)]
    parts.append(
        COLUMNS.format(
            rounds=tree["rounds"],
            frames=timed[0]["frames"] if timed else 0,
            words=tree["agreement"]["words"],
            human=max((row["human_words"] for row in timed), default=0),
            same=tree["agreement"]["same scores, nat"],
        )
    )
    parts.append(_table(rows))
    parts += ["## What the machine says\n", _roofs(tree, {row["preset"]: row for row in timed})]
    parts += ["## Published, and here\n", _published({row["preset"]: row for row in timed})]
    return "\n".join([*parts, DIFFERS])


def _origin(tree: Mapping[str, Any]) -> str:
    machine = tree["machine"]
    versions = machine.get("versions", {})
    libraries = [f"{n} {versions[n]}" for n in ("numpy", "numba", "torch") if n in versions]
    libraries += [
        f"{b.get('internal_api', '')} {b.get('version', '')} ({b.get('architecture', '')})"
        for b in machine.get("blas", [])
    ]
    cores = machine.get("cores", {}).get("usable", "")
    measured = datetime.fromtimestamp(tree["measured_at"], UTC)
    return (
        f"{machine.get('cpu', '')}, {cores} cores, of which one computes; {', '.join(libraries)}; "
        f"{measured:%Y-%m-%d %H:%M} UTC; load of the machine before: {tree['load_before']:.1f}.\n"
    )


def _table(rows: Sequence[Row]) -> str:
    def figure(key: str, form: str) -> Callable[[Row], str | None]:
        return lambda row: None if row["missing"] else known(row[key], form)

    table = Table.of(
        rows,
        ("preset", lambda row: f"`{row['preset']}`"),
        ("changes", _changes),
        ("scoring, ms", lambda row: "not here" if row["missing"] else f"{row['ms']:.3f}"),
        ("× before", figure("times_before", ".2f")),
        ("× first", figure("times_first", ".1f")),
        ("RTF", figure("rtf", ".3f")),
        ("WER", figure("wer", ".1%")),
        ("against the plain net", _change),
        ("human", figure("human_errors", "d")),
        ("weights, MB", figure("weights_mb", ".1f")),
        ("latency, ms", lambda row: None if row["missing"] else _latency(row["latency"])),
    )
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["missing"]:
            reasons.setdefault(row["missing"], []).append(f"`{row['preset']}`")
    missing = [f"Not here: {', '.join(names)}. {reason}\n" for reason, names in reasons.items()]
    return "\n".join([table.markdown(), *missing])


def _changes(row: Row) -> str:
    if not row["change"]:
        return NONE
    changes = " ".join(f"`{part}`" for part in row["change"].split())
    # A rung of the ladder always changes the one above it.
    return changes if row["preset"].startswith(PROPER) else f"{row['after']}: {changes}"


def _change(row: Row) -> str:
    if "same_as" in row:
        return f"= {row['same_as']}"
    if row["missing"] or not row["wer_change_ci95"] or row["preset"] == PLAIN:
        return NONE
    low, high = row["wer_change_ci95"]
    return f"{100 * row['wer_change']:+.1f} ({100 * low:+.1f} … {100 * high:+.1f})"


def _latency(parts: Mapping[str, float]) -> str:
    block, context, scoring = (parts[name] * 1e3 for name in ("block_s", "context_s", "score_s"))
    return f"{block:.0f} + {context:.0f} + {scoring:.1f}"


def _roofs(tree: Mapping[str, Any], rows: Mapping[str, Row]) -> str:
    """How near the dense rungs come to what the machine can do."""
    machine, parameters = tree["machine"], tree["net"]["parameters"]
    outputs = tree["net"]["of_outputs"] / parameters
    sentences = [
        f"The plain net has {parameters / 1e6:.2f} million weights, {outputs:.0%} of them in the output layer: "
        f"{2 * parameters / 1e6:.1f} MFLOP per frame."
    ]
    rate = {name: 2 * parameters / row["ms"] / 1e6 for name, row in rows.items()}
    if SCALAR in rows and machine.get("scalar_gflops"):
        sentences.append(
            f"The scalar loop reaches {rate[SCALAR]:.1f} GFLOP/s, where the machine's scalar roof is "
            f"{machine['scalar_gflops']:.1f}."
        )
    if BLAS in rows and machine.get("read_gbytes_per_s"):
        read = rows[BLAS]["weights_mb"] / rows[BLAS]["ms"]
        sentences.append(
            f"Frame by frame BLAS reads the weights at {read:.0f} GB/s; repeated plain reads of as many bytes "
            f"reach {machine['read_gbytes_per_s']:.0f} GB/s."
        )
    if PLAIN in rows and machine.get("gemm_gflops"):
        sentences.append(
            f"In blocks of 16 it computes at {rate[PLAIN]:.0f} GFLOP/s; large matrix products reach "
            f"{machine['gemm_gflops']:.0f}."
        )
    if LAZY in rows and rows[LAZY]["asked"] is not None:
        sentences.append(f"{rows[LAZY]['asked']:.0%} of the senones are active in a frame.")
    return "\n".join([" ".join(sentences), ""])


def _published(rows: Mapping[str, Row]) -> str:
    """Claims of the literature and the same comparison here."""

    def times(slow: str, fast: str) -> str:
        if slow not in rows or fast not in rows:
            return NONE
        return f"{rows[slow]['ms'] / rows[fast]['ms']:.1f} times"

    def points(name: str, against: str = PLAIN) -> str:
        if name not in rows or against not in rows or rows[name]["wer"] is None:
            return NONE
        return f"{100 * (rows[name]['wer'] - rows[against]['wer']):+.1f} points"

    def more(name: str, against: str) -> str:
        if name not in rows or against not in rows or not rows[against]["errors"]:
            return NONE
        change = 100 * (rows[name]["errors"] / rows[against]["errors"] - 1)
        return f"{abs(change):.0f} % {'fewer' if change < 0 else 'more'} errors"

    def both(slow: str, fast: str) -> str:
        found = [part for part in (times(slow, fast), points(fast, slow)) if part != NONE]
        return ", ".join(found) or NONE

    floats = [name for name in (SCALAR, SIMD, BLAS) if name in rows]
    best = min(floats, key=lambda name: float(rows[name]["ms"]), default="")
    vanhoucke, multi = "Vanhoucke 2011", "Vanhoucke 2013"
    part = "at most 1.6 times (30 % of an output layer with 55 % of the weights)"
    shares = "14 and 23 % of the computation with 12 and 19 % of the weights"
    sparse = f"CSR {times(PLAIN, 'dnn-sparse-csr')}, blocks {both(PLAIN, 'dnn-sparse-blocks')}"
    smaller, skip = more("dnn-small", "dnn-small-hard"), "2 times, +1 point (trained this way)"
    less, heads = "up to 4 times less work, comparable accuracy", "dnn-multi-frame"
    claims = (
        ("unrolled over the plain loop", vanhoucke, "1.26 times", f"{times(SCALAR, SIMD)} (with vectors)"),
        ("8 bit over the best floating point", vanhoucke, "3 times, no loss", both(best, INT8)),
        ("8 bit in batches over the plain loop", vanhoucke, "10 times", times(SCALAR, BATCH)),
        ("8 bit in batches over the best floating point", vanhoucke, "4 times", times(best, BATCH)),
        ("lazy outputs over all", vanhoucke, part, times(BATCH, LAZY)),
        ("the same in batches", vanhoucke, NONE, times(BATCH, LAST)),
        ("low rank", "Xue 2013", "80 % smaller, no loss", both(PLAIN, "dnn-low-rank")),
        ("low rank, not retrained", "", NONE, both(PLAIN, "dnn-low-rank-untuned")),
        ("sparse", "Yu 2012", "a third of the weights, no loss", points("dnn-sparse")),
        ("sparse products", "Yu 2012", shares, sparse),
        ("small, trained by a net instead of labels", "Li 2014", "5 % fewer errors", smaller),
        ("every second frame copied", "Miao 2016", skip, both(PLAIN, "dnn-skip")),
        ("several frames at once", multi, less, both("dnn-small", heads)),
        ("the same against copying", multi, "better", points(heads, "dnn-multi-frame-copy")),
    )  # fmt: skip
    return Table(("claim", "source", "published", "here"), claims).markdown()
