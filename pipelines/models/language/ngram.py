"""A back-off n-gram language model as arrays, with restriction to a vocabulary and pruning.

The back-off form is Katz's (1987): P(w|h) is the explicit probability where the n-gram is listed and `backoff(h) *
P(w|h')` with the history shortened by its oldest word where it is not. Pruning follows Stolcke, "Entropy-based Pruning
of Backoff Language Models" (1998): an n-gram is worth the relative entropy that its removal would add, weighted by the
probability of its history. All logarithms are natural.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from profiler.arrays import F64, I32, I64
from profiler.errors import BadInput
from profiler.plain import one_line

MAX_ORDER = 3  # of n-grams that are used
MAX_LISTED_ORDER = 10  # Longest n-grams in a file that are accepted; those beyond `graph.order` are read and dropped
SENTENCE_START = "<s>"
SENTENCE_END = "</s>"
MAX_GRAMS = 50_000_000  # of one length: what published models of a few GB hold
LOG_ZERO = -99.0 * float(np.log(10.0))  # what the ARPA format writes for "never": -99 in base 10
PROBABLE = 0.01  # a log probability above 0 that the rounding of 16-bit tables explains
SHOWN, SHOWN_GRAM = 4, 60  # n-grams that a sentence names, and characters of each
MIN_BACKOFF_MASS = 1e-6  # Least probability a history leaves to unlisted words; 16-bit tables make some sums exceed 1
Ids = I32


class LanguageModelError(BadInput):
    """A language model that cannot be read or used, in one sentence."""


@dataclass(frozen=True)
class NGram:
    """A back-off model of order 1 to 3; k-grams are sorted by their word ids.

    words: word of each id. `ids[k-1]` int32 [n_k, k] (oldest word first; for k = 1 simply 0..V-1), `log_prob[k-1]`
    float64 [n_k], `log_backoff[k-1]` float64 [n_k] for k < order. `notes`: what was left out or read otherwise.
    """

    words: tuple[str, ...]
    ids: tuple[Ids, ...]
    log_prob: tuple[F64, ...]
    log_backoff: tuple[F64, ...]
    notes: tuple[str, ...] = ()

    @property
    def order(self) -> int:
        return len(self.ids)

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(len(i) for i in self.ids)

    def index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    def find(self, grams: Ids) -> I64:
        """Row of each k-gram of int32 [n, k] in `ids[k-1]`, -1 where it is not listed."""
        k = grams.shape[1]
        if k == 1:
            return grams[:, 0].astype(np.int64)
        keys = _keys(self.ids[k - 1], len(self.words))
        wanted = _keys(grams, len(self.words))
        if not len(keys):
            return np.full(len(grams), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, at, -1)

    def score(self, grams: Ids) -> F64:
        """ln P(last word | the words before it) of each row of int32 [n, k]; k = 1 … order."""
        k = grams.shape[1]
        if k == 1:
            return self.log_prob[0][grams[:, 0]]
        row = self.find(grams)
        context = self.find(grams[:, :-1])
        result = self.score(grams[:, 1:])
        known = context >= 0
        result[known] += self.log_backoff[k - 2][context[known]]
        listed = row >= 0
        result[listed] = self.log_prob[k - 1][row[listed]]
        return result


def make(
    words: Sequence[str],
    ids: Sequence[Ids],
    log_prob: Sequence[F64],
    log_backoff: Sequence[F64],
    name: str = "The language model",
    listed: int = 0,
) -> NGram:
    """Sort the levels and see to what every algorithm here relies on; LanguageModelError where that is impossible.

    Of an n-gram that is listed twice the first counts, and a probability above 1 is 1; `notes` say so, and that the
    file lists n-grams of up to `listed` words. A history that is not listed (as after pruning) is added with what
    backing off gives it, so that nothing scores otherwise.
    """
    vocabulary = tuple(words)
    if len(vocabulary) ** len(ids) >= 1 << 63:
        raise LanguageModelError(f"{name} has {len(vocabulary):,} words, too many for its order of {len(ids)}.")
    if len(set(vocabulary)) != len(vocabulary):
        raise LanguageModelError(f"{name} lists a word twice.")
    for mark in (SENTENCE_START, SENTENCE_END):
        if mark not in vocabulary:
            found = f"; it has {mark.upper()}" if mark.upper() in vocabulary else ""
            raise LanguageModelError(f"{name} lacks the sentence mark {mark}{found}.")
    out_ids, out_prob, out_backoff, notes = [], [], [], []
    for k, (level, prob) in enumerate(zip(ids, log_prob, strict=True), start=1):
        keys = _keys(level, len(vocabulary))
        order = np.argsort(keys, kind="stable")
        again = np.append(False, np.diff(keys[order]) == 0)
        if again.any():
            notes.append(
                f"{_counted(int(again.sum()), k)} of the language model listed again, where the first counts: "
                f"{_quoted(vocabulary, level[order[again]])}"
            )
            order = order[~again]
        above = np.nonzero(prob > PROBABLE)[0]
        if len(above):
            notes.append(
                f"{_counted(len(above), k)} of the language model with a probability above 1, taken as 1: "
                f"{_quoted(vocabulary, level[above])}"
            )
        out_ids.append(np.ascontiguousarray(level[order]))
        out_prob.append(np.minimum(np.asarray(prob, dtype=np.float64)[order], 0.0))
        if k < len(ids):
            out_backoff.append(np.asarray(log_backoff[k - 1], dtype=np.float64)[order])
    if listed > MAX_ORDER:
        notes.append(
            f"n-grams of up to {len(ids)} words are used of the language model, which lists them up to {listed} "
            f"(graph.order, at most {MAX_ORDER})"
        )
    model = NGram(vocabulary, tuple(out_ids), tuple(out_prob), tuple(out_backoff), tuple(notes))
    for k in range(len(ids) - 1, 1, -1):
        model = _with_histories(model, k)
    return model


def _with_histories(model: NGram, k: int) -> NGram:
    """`model` with every k-gram listed that longer ones have as their history."""
    histories = model.ids[k][:, :-1]
    absent = np.unique(histories[model.find(histories) < 0], axis=0)
    if not len(absent):
        return model
    ids, prob, backoff = list(model.ids), list(model.log_prob), list(model.log_backoff)
    level = np.concatenate([ids[k - 1], absent])
    order = np.argsort(_keys(level, len(model.words)))
    ids[k - 1] = np.ascontiguousarray(level[order])
    prob[k - 1] = np.concatenate([prob[k - 1], model.score(absent)])[order]
    backoff[k - 1] = np.append(backoff[k - 1], np.zeros(len(absent)))[order]
    return replace(model, ids=tuple(ids), log_prob=tuple(prob), log_backoff=tuple(backoff))


def _counted(n: int, k: int) -> str:
    return f"{n:,} {k}-gram{'' if n == 1 else 's'}"


def _quoted(words: Sequence[str], grams: Ids) -> str:
    shown = [" ".join(words[i] for i in gram) for gram in grams[:SHOWN].tolist()]
    more = " …" if len(grams) > SHOWN else ""
    return ", ".join(f"'{one_line(gram, SHOWN_GRAM)}'" for gram in shown) + more


def restrict(model: NGram, vocabulary: Sequence[str]) -> NGram:
    """The model conditioned on the next word being in `vocabulary` or the end; LanguageModelError if one is unknown.

    Explicit probabilities are divided by the mass that their history gives to the vocabulary and the back-off weights
    are recomputed, so that every history sums to 1 over the smaller set.
    """
    index = model.index()
    keep = [SENTENCE_START, SENTENCE_END, *vocabulary]
    if missing := [w for w in keep if w not in index]:
        raise LanguageModelError(f"The language model lacks the word '{missing[0]}'.")
    chosen = sorted({index[w] for w in keep})
    renumber = np.full(len(model.words), -1, dtype=np.int32)
    renumber[chosen] = np.arange(len(chosen), dtype=np.int32)
    start = index[SENTENCE_START]

    unigram = np.exp(model.log_prob[0])
    unigram[start] = 0.0
    kept_unigrams = unigram[chosen].sum()
    ids = [np.arange(len(chosen), dtype=np.int32)[:, None]]
    probs = [_log(unigram[chosen] / kept_unigrams)]
    backoffs = [model.log_backoff[0][chosen]] if model.order > 1 else []
    lower_mass = np.array([kept_unigrams])
    lower_rows = np.zeros(len(model.words), dtype=np.int64)  # history of length 0: one row
    for k in range(2, model.order + 1):
        level = model.ids[k - 1]
        inside = (renumber[level] >= 0).all(axis=1) & (level[:, -1] != start)
        rows = level[inside]
        prob = np.exp(model.log_prob[k - 1][inside])
        context = model.find(rows[:, :-1])
        n = len(model.ids[k - 2])
        lower = np.exp(model.score(rows[:, 1:]))
        explicit = np.bincount(context, prob, n)
        backed = np.bincount(context, lower, n)
        below = lower_mass[lower_rows]
        mass = explicit + np.exp(model.log_backoff[k - 2]) * np.maximum(below - backed, 0.0)
        probs.append(_log(prob / np.maximum(mass[context], MIN_BACKOFF_MASS)))
        ids.append(renumber[rows])
        if k < model.order:
            backoffs.append(model.log_backoff[k - 1][inside])
            # A history of length k continues, one order lower, from its last k-1 words.
            lower_mass = mass
            shorter = model.find(model.ids[k - 1][:, 1:])
            lower_rows = np.where(shorter >= 0, shorter, 0)
            absent = shorter < 0
            if absent.any():
                lower_mass = np.append(mass, kept_unigrams)
                lower_rows = np.where(absent, len(mass), lower_rows)
    words = [model.words[i] for i in chosen]
    return renormalise(make(words, ids, probs, backoffs))


def prune(model: NGram, limits: Sequence[int | None], method: Literal["entropy", "count"] = "entropy") -> NGram:
    """Keep the `limits[k-2]` k-grams (k = 2, 3; None: all) of highest worth.

    Worth by `entropy`: the relative entropy between the model with and without the n-gram (Stolcke 1998); by `count`:
    how often the model expects to see it. Either is taken on the unpruned model; ties fall to the smaller ids. A bigram
    that is the history of a kept trigram stays. Back-off weights are recomputed.
    """
    worth_of = {"entropy": removal_entropy, "count": expected_count}[method]
    keep = [np.ones(n, dtype=bool) for n in model.counts]
    for k in range(model.order, 1, -1):
        limit = limits[k - 2] if k - 2 < len(limits) else None
        if limit is None or limit >= model.counts[k - 1]:
            continue
        worth = worth_of(model, k)
        if k < model.order:
            worth[model.find(model.ids[k][keep[k]][:, :-1])] = np.inf
            limit = max(limit, int(np.isposinf(worth).sum()))
        order = np.argsort(-worth, kind="stable")
        keep[k - 1][order[limit:]] = False
    return renormalise(
        NGram(
            model.words,
            tuple(ids[k] for ids, k in zip(model.ids, keep, strict=True)),
            tuple(p[k] for p, k in zip(model.log_prob, keep, strict=True)),
            tuple(b[k] for b, k in zip(model.log_backoff, keep[:-1], strict=True)),
        )
    )


def removal_entropy(model: NGram, k: int) -> F64:
    """Relative entropy [n_k] (nats) that removing each k-gram alone would add; Stolcke eq. 6."""
    level = model.ids[k - 1]
    prob = np.exp(model.log_prob[k - 1])
    lower_log = model.score(level[:, 1:])
    context = model.find(level[:, :-1])
    left, lower_left = _left_over(model, k, np.exp(lower_log), prob, context)
    numerator, denominator = left[context], lower_left[context]
    log_alpha = np.log(numerator / denominator)
    new_log_alpha = np.log((numerator + prob) / (denominator + np.exp(lower_log)))
    change = prob * (lower_log + new_log_alpha - model.log_prob[k - 1]) + numerator * (new_log_alpha - log_alpha)
    lost: F64 = -np.exp(_history_log_prob(model, level[:, :-1])) * change
    return lost


def expected_count(model: NGram, k: int) -> F64:
    """Probability [n_k] that k words in a row are just this k-gram, the sentence marks among them."""
    level = model.ids[k - 1]
    return np.exp(_history_log_prob(model, level[:, :-1]) + model.log_prob[k - 1])


def renormalise(model: NGram) -> NGram:
    """Back-off weights such that each history sums to 1.

    Explicit probabilities that leave less than MIN_BACKOFF_MASS, or list every word, are scaled.
    """
    probs = list(model.log_prob)
    backoffs = list(model.log_backoff)
    for k in range(2, model.order + 1):
        level = model.ids[k - 1]
        partial = NGram(model.words, model.ids[:k], tuple(probs[:k]), tuple(backoffs[: k - 1]))
        context = partial.find(level[:, :-1])
        prob = np.exp(probs[k - 1])
        total = np.bincount(context, prob, len(model.ids[k - 2]))
        lower = np.exp(partial.score(level[:, 1:]))
        backed = np.bincount(context, lower, len(model.ids[k - 2]))
        # A history that lists every word has nothing to back off to.
        complete = (backed > 1.0 - MIN_BACKOFF_MASS) & (total > 0.0)
        scale = (1.0 - MIN_BACKOFF_MASS) / np.maximum(total, 1.0 - MIN_BACKOFF_MASS)
        scale = np.where(complete, 1.0 / np.maximum(total, np.finfo(float).tiny), scale)
        prob = prob * scale[context]
        probs[k - 1] = _log(prob)
        left, lower_left = _left_over(partial, k, lower, prob, context)
        backoffs[k - 2] = np.log(left / lower_left)
    return NGram(model.words, model.ids, tuple(probs), tuple(backoffs))


def most_probable(model: NGram, candidates: Sequence[str], limit: int) -> list[str]:
    """The `limit` candidates of highest unigram probability, ties in alphabetical order."""
    index = model.index()
    known = sorted({w for w in candidates if w in index})
    prob = model.log_prob[0][[index[w] for w in known]]
    order = np.argsort(-prob, kind="stable")
    return [known[i] for i in order[:limit]]


def _left_over(model: NGram, k: int, lower: F64, prob: F64, context: I64) -> tuple[F64, F64]:
    """Mass each history of k-1 words leaves to unlisted words: (by itself, one order lower)."""
    n = len(model.ids[k - 2])
    explicit, backed = np.bincount(context, prob, n), np.bincount(context, lower, n)
    return np.maximum(1.0 - explicit, MIN_BACKOFF_MASS), np.maximum(1.0 - backed, MIN_BACKOFF_MASS)


def _history_log_prob(model: NGram, history: Ids) -> F64:
    """ln of the marginal probability of each history [n, k]; `<s>` is as frequent as `</s>`."""
    index = model.index()
    first = np.where(
        history[:, 0] == index[SENTENCE_START], model.log_prob[0][index[SENTENCE_END]], model.log_prob[0][history[:, 0]]
    )
    for k in range(2, history.shape[1] + 1):
        first = first + model.score(history[:, :k])
    return first


def _keys(grams: Ids, n_words: int) -> I64:
    """One sortable integer per k-gram; 3 words of a 2 M vocabulary fit in 63 bits."""
    keys = grams[:, 0].astype(np.int64)
    for column in range(1, grams.shape[1]):
        keys = keys * n_words + grams[:, column]
    return keys


def _log(prob: F64) -> F64:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(prob), LOG_ZERO)
