"""Reads and writes language models in the ARPA text format (also gzip-compressed, `.gz`).

The format is that of the CMU toolkit and SRILM (ngram-format(5)): a `\\data\\` block of counts, a
`\\k-grams:` block per order with `log10(prob) word… [log10(backoff)]`, and `\\end\\`.
"""

from __future__ import annotations

import gzip
import os
import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from pipelines.models.language.ngram import LOG_ZERO, MAX_GRAMS, LanguageModelError, NGram, make
from profiler.files import inputs
from profiler.plain import one_line

MAX_ORDER = 3
MAX_LINE = 4096
MAX_BYTES = 4 << 30
"""Of the text: 50 million trigrams of 40 characters are 2 GB."""
EXPANSION, SMALL_BYTES = 16, 8 << 20
"""Packed text may be so many times as large as its file, and this large in any case: n-grams pack to a third or a
fifth, repeated lines to a thousandth."""
MAX_IDLE_LINES = 10_000
"""Lines that say nothing: blank ones, and those before the counts."""
SHOWN = 60
"""Characters of a line that a sentence repeats."""
LN10 = float(np.log(10.0))


def read(path: str | os.PathLike[str], max_order: int = MAX_ORDER) -> NGram:
    """The model, cut to n-grams of at most `max_order` words; LanguageModelError in one sentence."""
    name = one_line(os.fspath(path))
    try:
        with inputs.open_input(path, "an ARPA file", MAX_BYTES) as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            size = os.fstat(raw.fileno()).st_size
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            limit = min(MAX_BYTES, max(SMALL_BYTES, EXPANSION * size)) if packed else MAX_BYTES
            return _parse(name, _lines(name, stream, limit), max_order)
    except inputs.InputError as error:
        raise LanguageModelError(f"The language model cannot be read: {error}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LanguageModelError(f"{name} is a damaged gzip file: {error}.") from error
    except OSError as error:
        raise LanguageModelError(f"{name} cannot be read: {error.strerror or error}.") from error


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


def _lines(file: str, stream: BinaryIO, limit: int) -> Iterator[str]:
    """The lines that are not blank, of at most `limit` bytes in all."""
    blank = 0
    while line := stream.readline(MAX_LINE + 1):
        limit -= len(line)
        if len(line) > MAX_LINE:
            raise LanguageModelError(
                f"{file} is not an ARPA file: a line is over {MAX_LINE} bytes."
            )
        if limit < 0:
            raise LanguageModelError(
                f"{file} unpacks to more than {EXPANSION} times its size, which no n-grams do; unpack it first."
            )
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError:
            raise LanguageModelError(f"{file} is not an ARPA file: a line is not UTF-8.") from None
        if text:
            yield text
            continue
        blank += 1
        if blank > MAX_IDLE_LINES:
            raise LanguageModelError(
                f"{file} is not an ARPA file: more than {MAX_IDLE_LINES:,} lines of it are blank."
            )


def _parse(file: str, lines: Iterator[str], max_order: int) -> NGram:
    counts = _counts(file, lines)
    kept = min(len(counts), max_order)
    index: dict[str, int] = {}
    ids, probs, backoffs = [], [], []
    for k, count in enumerate(counts, start=1):
        grams, prob, backoff = array("i"), array("d"), array("d")
        # The heading of block k was consumed by whatever ended the block before it.
        ended = False
        for line in lines:
            if line.startswith("\\"):
                wanted = "\\end\\" if k == len(counts) else f"\\{k + 1}-grams:"
                if line != wanted:
                    raise LanguageModelError(
                        f"{file}: '{one_line(line, SHOWN)}' stands where {wanted} should."
                    )
                ended = True
                break
            if len(prob) >= count:
                raise LanguageModelError(f"{file} lists more than the {count} {k}-grams announced.")
            parts = line.split()
            try:
                prob.append(float(parts[0]))
                if k == 1:
                    place = index.setdefault(parts[1], len(index))
                if k <= kept:
                    grams.extend([index[w] for w in parts[1 : k + 1]])
                backoff.append(float(parts[k + 1]) if len(parts) > k + 1 else 0.0)
            except (ValueError, IndexError, KeyError):
                parts = []
            if not k + 1 <= len(parts) <= k + 2:
                raise LanguageModelError(
                    f"{file}: '{one_line(line, SHOWN)}' is not a probability, {k} known word(s) and a back-off "
                    "weight."
                )
            if k == 1 and place < len(prob) - 1:
                raise LanguageModelError(
                    f"{file} lists the word '{one_line(parts[1], SHOWN)}' twice."
                )
        if not ended or len(prob) != count:
            raise LanguageModelError(
                f"{file} is not whole: it announces {count} {k}-grams and lists {len(prob)}."
            )
        if k <= kept:
            ids.append(np.array(grams, dtype=np.int32).reshape(-1, k))
            probs.append(np.maximum(np.array(prob) * LN10, LOG_ZERO))
            backoffs.append(np.array(backoff) * LN10)
    return make(list(index), ids, probs, backoffs[: kept - 1])


def _counts(file: str, lines: Iterator[str]) -> list[int]:
    started = False
    counts: list[int] = []
    for before, line in enumerate(lines):
        if not started:
            started = line == "\\data\\"
            if before > MAX_IDLE_LINES:
                break
        elif line.startswith("ngram "):
            order, _, count = line[6:].partition("=")
            digits = count.strip()
            if order.strip() != str(len(counts) + 1) or not (digits.isascii() and digits.isdigit()):
                break
            counts.append(int(digits) if len(digits) <= len(str(MAX_GRAMS)) else MAX_GRAMS + 1)
            if len(counts) > MAX_ORDER or counts[-1] > MAX_GRAMS:
                raise LanguageModelError(
                    f"{file} announces order {len(counts)} and {one_line(digits, SHOWN)} n-grams; "
                    f"readable are order {MAX_ORDER} and {MAX_GRAMS:,}."
                )
        elif line == "\\1-grams:" and counts:
            return counts
        else:
            break
    raise LanguageModelError(f"{file} is not an ARPA file: no \\data\\ block of n-gram counts.")
