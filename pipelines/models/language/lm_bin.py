"""Reads pocketsphinx' binary language model (`.lm.bin`, "Trie Language Model").

The file is a reversed trie after KenLM (Heafield 2011): the children of a word are the words
*before* it. Fields lie in bit arrays, least significant bit first; probabilities and back-off
weights are 16-bit indexes into tables of floats in logarithms of base 1.0001. The header's bigram
count can exceed what the trie holds, so the last `next` pointer of the level above decides.
"""

from __future__ import annotations

import os

import numpy as np

from pipelines.models.language.ngram import (
    MAX_GRAMS,
    MAX_LISTED_ORDER,
    MAX_ORDER,
    LanguageModelError,
    NGram,
    longer,
    make,
)
from profiler.arrays import F64, I64, U8, Array
from profiler.files import inputs
from profiler.plain import one_line

MAX_FILE_BYTES = 512 << 20
"""The US-English model has 27 MB; an n-gram takes 3 to 8 bytes in the file and some 50 while it is unpacked."""
MAGIC = b"Trie Language Model"
LOG_BASE = 1.0001
TABLE_BITS = 16
TABLE_SIZE = 1 << TABLE_BITS
_UNIGRAM = np.dtype([("prob", "<f4"), ("backoff", "<f4"), ("next", "<u4")])


def read(path: str | os.PathLike[str], max_order: int = MAX_ORDER) -> NGram:
    """The model, cut to n-grams of at most `max_order` words (longer ones are not even unpacked).

    LanguageModelError (one sentence) for anything but a whole, consistent file.
    """
    try:
        content = inputs.read_bytes(path, "a language model", MAX_FILE_BYTES)
    except inputs.InputError as error:
        raise LanguageModelError(f"The language model cannot be read: {error}") from None
    if len(content) < len(MAGIC) + 1:
        raise LanguageModelError(f"{one_line(os.fspath(path))} is too short to be a language model.")
    return _Reader(one_line(os.fspath(path)), np.frombuffer(content, np.uint8)).model(max_order)


class _Reader:
    """Walks the file once; every size is checked against the file before anything is allocated."""

    def __init__(self, file: str, data: U8) -> None:
        self.file = file
        self.data = data
        self.at = 0

    def fail(self, what: str) -> LanguageModelError:
        return LanguageModelError(f"{self.file} is not a whole pocketsphinx .lm.bin: {what}.")

    def take(self, n_bytes: int, what: str) -> U8:
        if n_bytes < 0 or self.at + n_bytes > len(self.data):
            raise self.fail(f"it ends inside the {what}")
        piece = self.data[self.at : self.at + n_bytes]
        self.at += n_bytes
        return piece

    def model(self, max_order: int) -> NGram:
        if bytes(self.take(len(MAGIC), "magic")) != MAGIC:
            raise LanguageModelError(f"{self.file} does not begin with '{MAGIC.decode()}' as a .lm.bin does.")
        order = int(self.take(1, "order")[0])
        if not 1 <= order <= MAX_LISTED_ORDER:
            raise self.fail(f"its order is {order}, readable are 1 to {MAX_LISTED_ORDER}")
        counts = [int(c) for c in self.take(4 * order, "counts").view("<u4")]
        if max(counts) > MAX_GRAMS:
            raise self.fail(f"it announces {max(counts):,} n-grams, readable are {MAX_GRAMS:,}")
        tables = self._tables(order)
        unigram = self.take((counts[0] + 1) * _UNIGRAM.itemsize, "unigrams").view(_UNIGRAM)
        bits = [int(c).bit_length() for c in counts]

        ids = [np.arange(counts[0], dtype=np.int32)[:, None]]
        probs = [self._natural(unigram["prob"][:-1])]
        backoffs = [self._natural(unigram["backoff"][:-1])]
        pointers = unigram["next"].astype(np.int64)
        for k in range(2, order + 1):
            middle = k < order
            width = bits[0] + TABLE_BITS * (2 if middle else 1) + (bits[k] if middle else 0)
            array = self.take(((1 + counts[k - 1]) * width + 7) // 8 + 8, f"{k}-grams")
            if k > max_order:
                continue
            if pointers[0] != 0 or (np.diff(pointers) < 0).any() or pointers[-1] > counts[k - 1]:
                raise self.fail(f"the pointers to its {k}-grams do not ascend from 0 to at most {counts[k - 1]}")
            n = int(pointers[-1])
            parent = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
            offset = np.arange(n + 1, dtype=np.int64) * width
            before = _field(array, offset[:n], bits[0])
            if n and int(before.max()) >= counts[0]:
                raise self.fail(f"a {k}-gram names word {before.max()} of {counts[0]}")
            ids.append(np.concatenate([before[:, None], ids[-1][parent]], axis=1, dtype=np.int32))
            at = offset[:n] + bits[0]
            if middle:
                backoffs.append(tables[k - 2][1][_field(array, at, TABLE_BITS)])
                at = at + TABLE_BITS
                # One more than n: the node after the last carries the end of its children.
                pointers = _field(array, offset + bits[0] + 2 * TABLE_BITS, bits[k])
            probs.append(tables[k - 2][0][_field(array, at, TABLE_BITS)])
        words = self._words(counts[0])
        kept = min(order, max_order)
        return longer(make(words, ids, probs, backoffs[: kept - 1], self.file), order)

    def _tables(self, order: int) -> list[tuple[F64, F64]]:
        """Per order from 2 on: natural-log probabilities and back-off weights by index."""
        if order > 1:
            self.take(4, "quantiser's header")
        tables = []
        for k in range(2, order + 1):
            prob = self._natural(self.take(4 * TABLE_SIZE, f"{k}-gram probability table"))
            if k < order:
                backoff = self._natural(self.take(4 * TABLE_SIZE, f"{k}-gram back-off table"))
            else:
                backoff = prob[:0]
            tables.append((prob, backoff))
        return tables

    def _natural(self, raw: Array) -> F64:
        values = np.ascontiguousarray(raw).view("<f4")
        # Before anything is computed: a signalling NaN warns even where it is only converted.
        if not np.isfinite(values).all():
            raise self.fail("a probability is not a finite number")
        return values.astype(np.float64) * float(np.log(LOG_BASE))

    def _words(self, n: int) -> list[str]:
        size = int(self.take(4, "length of the words").view("<u4")[0])
        text = self.take(size, "words")
        if self.at != len(self.data):
            raise self.fail(f"{len(self.data) - self.at} bytes follow the words")
        ends = int(np.count_nonzero(text == 0))
        if ends != n or (n and text[-1]):
            raise self.fail(f"it should hold {n} words and holds {ends}")
        try:
            return [word.decode("utf-8") for word in bytes(text).split(b"\0")[:-1]]
        except UnicodeDecodeError:
            raise self.fail("a word is not UTF-8") from None


def _field(array: U8, offset: I64, width: int) -> I64:
    """Bits [offset, offset + width) of a bit array as integers; width <= 57, 8 spare bytes behind."""
    eight = np.ndarray((len(array) - 7,), dtype="<u8", buffer=array, strides=(1,))
    value = eight[offset >> 3] >> (offset & 7).astype(np.uint64)
    found: I64 = (value & np.uint64((1 << width) - 1)).astype(np.int64)
    return found
