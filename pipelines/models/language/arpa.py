"""Reads and writes language models in the ARPA text format (also gzip-compressed, `.gz`).

The format is that of the CMU toolkit and SRILM (ngram-format(5)): a `\\data\\` block of counts, a
`\\k-grams:` block per order with `log10(prob) word… [log10(backoff)]`, and `\\end\\`.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from pipelines.models.language.ngram import LOG_ZERO, LanguageModelError, NGram, make

MAX_ORDER = 3
MAX_LINE = 4096
MAX_GRAMS = 50_000_000
LN10 = float(np.log(10.0))


def read(path: str | os.PathLike[str], max_order: int = MAX_ORDER) -> NGram:
    """The model, cut to n-grams of at most `max_order` words; LanguageModelError in one sentence."""
    file = Path(path)
    try:
        with file.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            return _parse(file, _lines(file, stream), max_order)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LanguageModelError(f"{file} is a damaged gzip file: {error}.") from error
    except OSError as error:
        raise LanguageModelError(f"{file} cannot be read: {error.strerror or error}.") from error


def write(model: NGram, path: str | os.PathLike[str]) -> None:
    """Writes the model as ARPA text with seven digits; OSError where that is impossible."""
    with Path(path).open("w", encoding="utf-8", newline="\n") as out:
        out.write("\\data\\\n")
        out.writelines(f"ngram {k}={n}\n" for k, n in enumerate(model.counts, start=1))
        words = np.array(model.words, dtype=object)
        for k in range(1, model.order + 1):
            out.write(f"\n\\{k}-grams:\n")
            prob = model.log_prob[k - 1] / LN10
            grams = words[model.ids[k - 1]].tolist()
            if k == model.order:
                lines = (f"{p:.7f}\t{' '.join(g)}\n" for p, g in zip(prob, grams, strict=True))
            else:
                backoff = np.maximum(model.log_backoff[k - 1] / LN10, -99.0)
                lines = (
                    f"{p:.7f}\t{' '.join(g)}\t{b:.7f}\n"
                    for p, g, b in zip(prob, grams, backoff, strict=True)
                )
            out.writelines(lines)
        out.write("\n\\end\\\n")


def _lines(file: Path, stream: BinaryIO) -> Iterator[str]:
    while True:
        line = stream.readline(MAX_LINE + 1)
        if not line:
            return
        if len(line) > MAX_LINE:
            raise LanguageModelError(
                f"{file} is not an ARPA file: a line is over {MAX_LINE} bytes."
            )
        try:
            yield line.decode("utf-8").strip()
        except UnicodeDecodeError:
            raise LanguageModelError(f"{file} is not an ARPA file: a line is not UTF-8.") from None


def _parse(file: Path, lines: Iterator[str], max_order: int) -> NGram:
    counts = _counts(file, lines)
    kept = min(len(counts), max_order)
    index: dict[str, int] = {}
    ids, probs, backoffs = [], [], []
    for k, count in enumerate(counts, start=1):
        grams: list[int] = []
        prob: list[float] = []
        backoff: list[float] = []
        # The heading of block k was consumed by whatever ended the block before it.
        ended = False
        for line in lines:
            if not line:
                continue
            if line.startswith("\\"):
                wanted = "\\end\\" if k == len(counts) else f"\\{k + 1}-grams:"
                if line != wanted:
                    raise LanguageModelError(f"{file}: '{line[:40]}' stands where {wanted} should.")
                ended = True
                break
            if len(prob) >= count:
                raise LanguageModelError(f"{file} lists more than the {count} {k}-grams announced.")
            parts = line.split()
            try:
                prob.append(float(parts[0]))
                if k == 1:
                    index[parts[1]] = len(index)
                if k <= kept:
                    grams.extend([index[w] for w in parts[1 : k + 1]])
                backoff.append(float(parts[k + 1]) if len(parts) > k + 1 else 0.0)
            except (ValueError, IndexError, KeyError):
                parts = []
            if not k + 1 <= len(parts) <= k + 2:
                raise LanguageModelError(
                    f"{file}: '{line[:60]}' is not a probability, {k} known word(s) and a back-off "
                    "weight."
                )
        if not ended or len(prob) != count:
            raise LanguageModelError(
                f"{file} is not whole: it announces {count} {k}-grams and lists {len(prob)}."
            )
        if k == 1 and len(index) != count:
            raise LanguageModelError(f"{file} lists a word twice.")
        if k <= kept:
            ids.append(np.array(grams, dtype=np.int32).reshape(-1, k))
            probs.append(np.maximum(np.array(prob) * LN10, LOG_ZERO))
            backoffs.append(np.array(backoff) * LN10)
    return make(list(index), ids, probs, backoffs[: kept - 1])


def _counts(file: Path, lines: Iterator[str]) -> list[int]:
    started = False
    counts: list[int] = []
    for line in lines:
        if not started:
            started = line == "\\data\\"
        elif line.startswith("ngram "):
            order, _, count = line[6:].partition("=")
            if order.strip() != str(len(counts) + 1) or not count.strip().isdigit():
                break
            counts.append(int(count))
        elif line == "\\1-grams:" and counts:
            if len(counts) > MAX_ORDER or max(counts) > MAX_GRAMS:
                raise LanguageModelError(
                    f"{file} announces order {len(counts)} and {max(counts)} n-grams; readable are "
                    f"order {MAX_ORDER} and {MAX_GRAMS}."
                )
            return counts
        elif line:
            break
    raise LanguageModelError(f"{file} is not an ARPA file: no \\data\\ block of n-gram counts.")
