"""Reads pocketsphinx' binary language model (`.lm.bin`, "Trie Language Model").

The file is a reversed trie after KenLM (Heafield 2011): the children of a word are the words *before* it. Fields lie in
bit arrays, least significant bit first; probabilities and back-off weights are 16-bit indexes into tables of floats in
logarithms of base 1.0001. Of how many bigrams there are the last `next` pointer of the level above decides.
"""

import os
from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.language.ngram import MAX_GRAMS, MAX_LISTED_ORDER, MAX_ORDER, LanguageModelError, NGram, make
from pipelines.models.sphinx.binary import Cursor
from profiler.arrays import F64, I64, U8, Array
from profiler.files import inputs
from profiler.plain import one_line

MAX_FILE_BYTES = 512 << 20
"""The US-English model has 27 MB; an n-gram takes 3 to 8 bytes in the file and some 50 while it is unpacked."""
MAGIC = b"Trie Language Model"
LOG_BASE = 1.0001
TABLE_BITS = 16
_UNIGRAM = np.dtype([("prob", "<f4"), ("backoff", "<f4"), ("next", "<u4")])


def read(path: str | os.PathLike[str], max_order: int = MAX_ORDER) -> NGram:
    """The model, cut to n-grams of at most `max_order` words (longer ones are not even unpacked).

    LanguageModelError (one sentence) for anything but a whole, consistent file.
    """
    try:
        content = inputs.read_bytes(path, "a language model", MAX_FILE_BYTES)
        return _model(Cursor(content, Path(one_line(os.fspath(path)))), max_order)
    except inputs.InputError as error:
        raise LanguageModelError(f"The language model cannot be read: {error}") from None
    except ModelError as error:
        raise LanguageModelError(f"{error}.") from None


def _model(cursor: Cursor, max_order: int) -> NGram:
    file = cursor.path
    if cursor.take(len(MAGIC), "its first line") != MAGIC:
        raise ModelError(f"{file} does not begin with '{MAGIC.decode()}' as a .lm.bin does")
    order = cursor.take(1, "order")[0]
    if not 1 <= order <= MAX_LISTED_ORDER:
        raise ModelError(f"{file}: its order is {order}, readable are 1 to {MAX_LISTED_ORDER}")
    counts: list[int] = cursor.array("u4", order, "counts").tolist()
    if max(counts) > MAX_GRAMS:
        raise ModelError(f"{file}: it announces {max(counts):,} n-grams, readable are {MAX_GRAMS:,}")
    cursor.take(4 if order > 1 else 0, "quantiser's header")
    # By order from 2 on: probabilities and, but for the highest, back-off weights by index.
    tables = [
        [
            _natural(file, cursor.array("f4", 1 << TABLE_BITS, f"table of {k}-grams"))
            for _ in range(2 if k < order else 1)
        ]
        for k in range(2, order + 1)
    ]
    unigram = np.frombuffer(cursor.take((counts[0] + 1) * _UNIGRAM.itemsize, "unigrams"), _UNIGRAM)
    bits = [count.bit_length() for count in counts]

    ids = [np.arange(counts[0], dtype=np.int32)[:, None]]
    probs, backoffs = [_natural(file, unigram["prob"][:-1])], [_natural(file, unigram["backoff"][:-1])]
    pointers = unigram["next"].astype(np.int64)
    for k in range(2, order + 1):
        width = bits[0] + TABLE_BITS + (TABLE_BITS + bits[k] if k < order else 0)
        array = cursor.array("u1", ((1 + counts[k - 1]) * width + 7) // 8 + 8, f"{k}-grams")
        if k > max_order:
            continue
        if pointers[0] != 0 or (np.diff(pointers) < 0).any() or pointers[-1] > counts[k - 1]:
            raise ModelError(f"{file}: the pointers to its {k}-grams do not ascend from 0 to at most {counts[k - 1]}")
        n = int(pointers[-1])
        parent = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
        offset = np.arange(n + 1, dtype=np.int64) * width
        before = _field(array, offset[:n], bits[0])
        if n and int(before.max()) >= counts[0]:
            raise ModelError(f"{file}: a {k}-gram names word {before.max()} of {counts[0]}")
        ids.append(np.concatenate([before[:, None], ids[-1][parent]], axis=1, dtype=np.int32))
        at = offset[:n] + bits[0]
        if k < order:
            backoffs.append(tables[k - 2][1][_field(array, at, TABLE_BITS)])
            at = at + TABLE_BITS
            # One more than n: the node after the last carries the end of its children.
            pointers = _field(array, offset + bits[0] + 2 * TABLE_BITS, bits[k])
        probs.append(tables[k - 2][0][_field(array, at, TABLE_BITS)])
    return make(_words(cursor, counts[0]), ids, probs, backoffs[: min(order, max_order) - 1], str(file), order)


def _natural(file: Path, values: Array) -> F64:
    # Before anything is computed: a signalling NaN warns even where it is only converted.
    if not np.isfinite(values).all():
        raise ModelError(f"{file}: a probability is not a finite number")
    return values.astype(np.float64) * float(np.log(LOG_BASE))


def _words(cursor: Cursor, n: int) -> list[str]:
    text = cursor.take(cursor.i32("length of the words"), "words")
    cursor.finished("the words")
    if text.count(b"\0") != n or (n and text[-1]):
        raise ModelError(f"{cursor.path} should hold {n} words and holds {text.count(0)}")
    try:
        return [word.decode("utf-8") for word in text.split(b"\0")[:-1]]
    except UnicodeDecodeError:
        raise ModelError(f"{cursor.path}: a word is not UTF-8") from None


def _field(array: U8, offset: I64, width: int) -> I64:
    """Bits [offset, offset + width) of a bit array as integers; width <= 57, 8 spare bytes behind."""
    eight = np.ndarray((len(array) - 7,), dtype="<u8", buffer=array, strides=(1,))
    value = eight[offset >> 3] >> (offset & 7).astype(np.uint64)
    found: I64 = (value & np.uint64((1 << width) - 1)).astype(np.int64)
    return found
