"""Reads language models in the ARPA text format (also packed with gzip or bzip2).

The format is that of the CMU toolkit and SRILM (ngram-format(5)): a `\\data\\` block of counts, a
`\\k-grams:` block per order with `log10(prob) word… [log10(backoff)]`, and `\\end\\`. Lines are read within bounds of
size; files of other formats are known by what they begin with, so that the sentence can say what they are.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import os
import zlib
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import numpy as np

from pipelines.models.language import ngram
from pipelines.models.language.ngram import LOG_ZERO, MAX_GRAMS, MAX_LISTED_ORDER, LanguageModelError, NGram, make
from profiler.arrays import F64, I32
from profiler.files import inputs
from profiler.plain import one_line

SHOWN = 60  # characters of a line that a sentence repeats
LN10 = float(np.log(10.0))
MAX_LINE = 4096
MAX_BYTES = 4 << 30  # of the text: 50 million trigrams of 40 characters are 2 GB
EXPANSION, SMALL_BYTES = 16, 8 << 20
"""Limits of unpacked text: a multiple of the size of its file, or this size in any case; n-grams pack to a tenth."""
MAX_IDLE_LINES = 10_000  # lines that say nothing: blank ones, and those before the counts
_HEAD_BYTES = 64
_OTHERS = (
    (4, b"Darpa Trigram LM", "a Sphinx DMP file: convert it with sphinx_lm_convert to ARPA"),
    (0, b"Trie Language Model", "a packed .lm.bin: unpack it first"),
    (0, b"mmap lm http", "a binary file of KenLM: name the ARPA file that it was made of"),
    (0, b"blmt", "a binary file of IRSTLM: convert it with compile-lm --text=yes to ARPA"),
    (0, b"\xd6\xfd\xb2\x7e", "an OpenFst file: name the ARPA file that it was made of"),
    (0, b"\xfd7zXZ", "packed with xz: unpack it first"),
    (0, b"PK\x03\x04", "a ZIP archive: unpack it first"),
    (0, b"\xff\xfe", "a text in UTF-16: save it as UTF-8"),
    (0, b"\xfe\xff", "a text in UTF-16: save it as UTF-8"),
)
"""Where a file of another format has which bytes, and what it is."""


class Lines(Iterator[str]):
    """The lines that are not blank, without the space around them; `number` is that of the latest, from 1."""

    def __init__(self, file: str, stream: BinaryIO, limit: int) -> None:
        self.file = file
        self.number = 0
        self._stream = stream
        self._left = limit
        self._blank = 0

    def __next__(self) -> str:
        while line := self._stream.readline(MAX_LINE + 1):
            self.number += 1
            if self.number == 1:
                head = line[:_HEAD_BYTES]
                for at, mark, what in _OTHERS:
                    if head.startswith(mark, at):
                        raise LanguageModelError(f"{self.file} is {what}.")
                if b"\0" in head:
                    raise LanguageModelError(
                        f"{self.file} is not an ARPA file, which is a text, but holds binary data."
                    )
                line = line.removeprefix(codecs.BOM_UTF8)
            self._left -= len(line)
            if len(line) > MAX_LINE:
                raise self.problem(f"this is no ARPA file: the line is over {MAX_LINE} bytes")
            if self._left < 0:
                raise LanguageModelError(
                    f"{self.file} unpacks to more than {EXPANSION} times its size, which no n-grams do; "
                    "unpack it first."
                )
            try:
                text = line.strip().decode("utf-8")
            except UnicodeDecodeError:
                raise self.problem("the text is not UTF-8; save the file as UTF-8") from None
            if text:
                return text
            self._blank += 1
            if self._blank > MAX_IDLE_LINES:
                raise LanguageModelError(
                    f"{self.file} is not an ARPA file: more than {MAX_IDLE_LINES:,} lines of it are blank."
                )
        raise StopIteration

    def problem(self, what: str) -> LanguageModelError:
        """Return an error of one sentence on the latest line."""
        return LanguageModelError(f"{self.file}, line {self.number}: {what}.")


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Lines]:
    """The lines of the file, unpacked where it is packed; LanguageModelError in one sentence."""
    name = one_line(os.fspath(path))
    packing = ""
    try:
        with inputs.open_input(path, "an ARPA file", MAX_BYTES) as raw:
            stream, limit = cast(BinaryIO, raw), MAX_BYTES
            begin = raw.read(3)
            raw.seek(0)
            if begin[:2] == b"\x1f\x8b":
                packing, stream = "gzip", cast(BinaryIO, gzip.GzipFile(fileobj=raw))
            elif begin == b"BZh":
                packing, stream = "bzip2", cast(BinaryIO, bz2.BZ2File(raw))
            if packing:
                limit = min(MAX_BYTES, max(SMALL_BYTES, EXPANSION * os.fstat(raw.fileno()).st_size))
            yield Lines(name, stream, limit)
    except inputs.InputError as error:
        raise LanguageModelError(f"The language model cannot be read: {error}") from None
    except (EOFError, zlib.error, OSError) as error:
        # What bz2 and gzip say of damage is an OSError without a number.
        if packing and not getattr(error, "errno", None):
            raise LanguageModelError(f"{name} is a damaged {packing} file: {error}.") from error
        reason = getattr(error, "strerror", None) or error
        raise LanguageModelError(f"{name} cannot be read: {reason}.") from error


_WIDE = str.maketrans(dict.fromkeys("\t\r\n\f\v", " "))


def fields(line: str) -> list[str]:
    """`line` cut at ASCII blanks alone, as pocketsphinx and KenLM do; any other is part of a word."""
    if line.isascii():
        return line.split()
    return [field for field in line.translate(_WIDE).split(" ") if field]


def read(path: str | os.PathLike[str], max_order: int = ngram.MAX_ORDER) -> NGram:
    """The model, cut to n-grams of at most `max_order` words; LanguageModelError in one sentence."""
    with opened(path) as lines:
        return _parse(lines, max_order)


def _parse(lines: Lines, max_order: int) -> NGram:
    counts = _counts(lines)
    kept = min(len(counts), max_order)
    index: dict[str, int] = {}
    ids, probs, backoffs = [], [], []
    for k, count in enumerate(counts, start=1):
        wanted = "\\end\\" if k == len(counts) else f"\\{k + 1}-grams:"
        grams, prob, backoff = _block(lines, k, count, wanted, index, keep=k <= kept)
        if k <= kept:
            ids.append(grams)
            probs.append(prob)
            backoffs.append(backoff)
    return make(list(index), ids, probs, backoffs[: kept - 1], lines.file, len(counts))


def _block(lines: Lines, k: int, count: int, wanted: str, index: dict[str, int], *, keep: bool) -> tuple[I32, F64, F64]:
    """The k-grams up to the line `wanted`: words [n, k], natural logarithms of probabilities and back-off weights.

    The heading was consumed before. Unigrams add their words to `index`. Without `keep` only the form is looked at.
    """
    grams, prob, backoff = array("i"), array("d"), array("d")
    n = 0
    for line in lines:
        if line.startswith("\\"):
            if line != wanted:
                raise lines.problem(f"'{one_line(line, SHOWN)}' stands where {wanted} should")
            break
        if n >= count:
            raise lines.problem(f"this is one more than the {count} {k}-grams announced")
        n += 1
        parts = fields(line)
        try:
            value = float(parts[0])
            weight = float(parts[k + 1]) if len(parts) > k + 1 else 0.0
        except ValueError:
            parts = []
        if not k + 1 <= len(parts) <= k + 2:
            raise lines.problem(
                f"'{one_line(line, SHOWN)}' is no {k}-gram, which is a probability, {k} word(s) and perhaps a "
                "back-off weight"
            )
        if not keep:
            continue
        # Minus infinity is "never"; what compares with nothing is no number.
        if not (value < np.inf and weight < np.inf):
            raise lines.problem(
                f"the {k}-gram '{one_line(' '.join(parts[1 : k + 1]), SHOWN)}' has a value that is not a finite number"
            )
        prob.append(value)
        backoff.append(weight)
        if k == 1:
            grams.append(index.setdefault(parts[1], len(index)))
            continue
        try:
            grams.extend([index[word] for word in parts[1 : k + 1]])
        except KeyError as unknown:
            raise lines.problem(
                f"the {k}-gram '{one_line(' '.join(parts[1 : k + 1]), SHOWN)}' has the word "
                f"'{one_line(unknown.args[0], SHOWN)}', which is none of the 1-grams"
            ) from None
    else:
        cut = f"ends after {n} of its {count} {k}-grams"
        if n == count:
            cut = f"lacks {wanted} after its {count} {k}-grams"
        raise LanguageModelError(f"{lines.file} is not whole: it {cut}.")
    if n < count:
        raise lines.problem(f"{wanted} follows {n} {k}-grams where {count} are announced")
    return np.array(grams, np.int32).reshape(-1, k), _natural(prob), _natural(backoff)


def _natural(values: array[float]) -> F64:
    return np.maximum(np.array(values) * LN10, LOG_ZERO)


def _counts(lines: Lines) -> list[int]:
    """The numbers of n-grams that the file announces, by order; the heading of the unigrams is consumed too."""
    for line in lines:
        if line == "\\data\\":
            break
        if lines.number > MAX_IDLE_LINES:
            raise _no_arpa(lines)
    else:
        raise _no_arpa(lines)
    counts: list[int] = []
    for line in lines:
        if line == "\\1-grams:" and counts:
            return counts
        order, _, count = line.removeprefix("ngram ").partition("=")
        k, digits = len(counts) + 1, count.strip()
        if not (line.startswith("ngram ") and order.strip() == str(k) and digits.isascii() and digits.isdigit()):
            wanted = f"\\1-grams: or ngram {k}=…" if counts else "ngram 1=…"
            raise lines.problem(f"'{one_line(line, SHOWN)}' stands where {wanted} should")
        if k > MAX_LISTED_ORDER:
            raise lines.problem(f"n-grams of more than {MAX_LISTED_ORDER} words are not read")
        counts.append(int(digits) if len(digits) <= len(str(MAX_GRAMS)) else MAX_GRAMS + 1)
        if counts[-1] > MAX_GRAMS:
            raise lines.problem(f"{one_line(digits, SHOWN)} {k}-grams are announced; at most {MAX_GRAMS:,} are read")
    raise _no_arpa(lines)


def _no_arpa(lines: Lines) -> LanguageModelError:
    return LanguageModelError(f"{lines.file} is not an ARPA file: no \\data\\ block of n-gram counts.")
