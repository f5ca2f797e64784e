"""Reads language models in the ARPA text format (also packed with gzip or bzip2).

The format is that of the CMU toolkit and SRILM (ngram-format(5)): a `\\data\\` block of counts, a
`\\k-grams:` block per order with `log10(prob) word… [log10(backoff)]`, and `\\end\\`.
"""

from __future__ import annotations

import os
from array import array

import numpy as np

from pipelines.models.language import ngram
from pipelines.models.language.lines import MAX_IDLE_LINES, Lines, fields, opened
from pipelines.models.language.ngram import LOG_ZERO, MAX_GRAMS, MAX_LISTED_ORDER, LanguageModelError, NGram, make
from profiler.arrays import F64, I32
from profiler.plain import one_line

SHOWN = 60  # characters of a line that a sentence repeats
LN10 = float(np.log(10.0))


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

    The heading was consumed by whatever ended the block before. Unigrams add their words to `index`. Without
    `keep` only their form is looked at.
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
