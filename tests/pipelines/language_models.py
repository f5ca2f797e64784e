"""Small random language models, and writers of language models and dictionaries."""

import itertools
from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from pipelines.models.dictionary import Dictionary
from pipelines.models.grammar.expression import Alternatives, Expression, Reference, Repeat, Sequence, Word
from pipelines.models.language import ngram
from pipelines.models.language.arpa import LN10
from pipelines.models.language.ngram import NGram

Level = dict[tuple[str, ...], tuple[float, float]]  # log10 of probabilities and back-off weights of n-grams


def random_model(seed: int, n_words: int, order: int, density: float = 0.4, closed: bool = False) -> NGram:
    """A normalised back-off model over `<s>`, `</s>` and `n_words` words w0, w1 …

    `closed`: each n-gram's last words are listed too, as a reversed trie needs.
    """
    rng = np.random.default_rng(seed)
    words = ["<s>", "</s>", *[f"w{i}" for i in range(n_words)]]
    v = len(words)
    unigram = rng.dirichlet(np.ones(v - 1))
    log_prob = [np.concatenate([[ngram.LOG_ZERO], np.log(unigram)])]
    ids = [np.arange(v, dtype=np.int32)[:, None]]
    for k in range(2, order + 1):
        rows, probs = [], []
        listed = {tuple(gram) for gram in ids[-1].tolist()}
        for history in ids[-1][ids[-1][:, -1] != 1].tolist():
            chosen = [w for w in range(1, v) if rng.random() < density]
            chosen = [w for w in chosen if not closed or (*history[1:], w) in listed]
            if chosen:
                mass = rng.uniform(0.3, 0.9) * rng.dirichlet(np.ones(len(chosen)))
                rows += [[*history, w] for w in chosen]
                probs += mass.tolist()
        ids.append(np.array(rows, dtype=np.int32).reshape(-1, k))
        log_prob.append(np.log(np.array(probs)))
    backoffs = [np.zeros(len(i)) for i in ids[:-1]]
    return ngram.renormalise(ngram.make(words, ids, log_prob, backoffs))


def distribution(model: NGram, history: list[int]) -> np.ndarray:
    """P(w | history) for every word, 0 for `<s>`."""
    v = len(model.words)
    grams = np.array([[*history, w] for w in range(v)], dtype=np.int32)
    prob = np.exp(model.score(grams[:, -model.order :]))
    prob[model.index()["<s>"]] = 0.0
    return prob


def arpa_text(levels: list[Level]) -> str:
    lines = ["\\data\\", *(f"ngram {k}={len(level)}" for k, level in enumerate(levels, 1))]
    for k, level in enumerate(levels, 1):
        lines += ["", f"\\{k}-grams:"]
        lines += [f"{p:.7f}\t{' '.join(gram)}\t{b:.7f}" for gram, (p, b) in level.items()]
    return "\n".join([*lines, "", "\\end\\", ""])


def write_arpa(model: NGram, path: Path) -> None:
    words = np.array(model.words, dtype=object)
    levels: list[Level] = []
    for ids, probs, weights in itertools.zip_longest(model.ids, model.log_prob, model.log_backoff):
        backoffs = np.zeros(len(probs)) if weights is None else np.maximum(weights / LN10, -99.0)
        levels.append(dict(zip(map(tuple, words[ids].tolist()), zip(probs / LN10, backoffs, strict=True), strict=True)))
    path.write_text(arpa_text(levels), encoding="utf-8", newline="\n")


def restricted(dictionary: Dictionary, words: Iterable[str]) -> Dictionary:
    return Dictionary({word: dictionary[word] for word in words})


def write_dictionary(dictionary: Dictionary, path: Path) -> None:
    """cmudict's format, alternates as `word(2)`."""
    lines = (
        f"{word if number == 1 else f'{word}({number})'} {' '.join(pron)}\n"
        for word, prons in dictionary.pronunciations.items()
        for number, pron in enumerate(prons, start=1)
    )
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


Sentences = dict[tuple[str, ...], float]


def sentences(expression: Expression, rules: dict[str, Expression], longest: int, depth: int = 0) -> Sentences:
    """Probability of the most probable way to say each sentence of at most `longest` words."""
    if depth > 3 * longest + 12:
        return {}

    def of(item: Expression) -> Sentences:
        return sentences(item, rules, longest, depth + 1)

    match expression:
        case Word(text):
            return {(text,): 1.0}
        case Reference(rule):
            return of(rules[rule])
        case Sequence(items):
            return reduce(lambda sentences, item: joined(sentences, of(item), longest), items, {(): 1.0})
        case Alternatives(choices):
            total = sum(weight for weight, _ in choices)
            return likeliest((s, p * weight / total) for weight, item in choices for s, p in of(item).items())
        case Repeat(item):
            turns = [of(item)]
            # Turns that say nothing leave less and less.
            while turns[-1] and len(turns) < 60:
                turns.append(joined(turns[-1], turns[0], longest))
            return likeliest((s, p * 0.5**n) for n, turn in enumerate(turns, start=1) for s, p in turn.items())


def likeliest(variants: Iterable[tuple[tuple[str, ...], float]]) -> Sentences:
    found: Sentences = defaultdict(float)
    for sentence, p in variants:
        found[sentence] = max(found[sentence], p)
    return dict(found)


def joined(first: Sentences, second: Sentences, longest: int) -> Sentences:
    pairs = itertools.product(first.items(), second.items())
    return likeliest((a + b, p * q) for (a, p), (b, q) in pairs if len(a) + len(b) <= longest)


def jsgf_text(expression: Expression) -> str:
    """The expression as it would be written in a rule."""
    match expression:
        case Word(text):
            return text
        case Reference(rule):
            return f"<{rule}>"
        case Sequence(items):
            return "(" + " ".join(map(jsgf_text, items)) + ")" if items else "<NULL>"
        case Alternatives(choices):
            parts = (f"/{weight}/ {jsgf_text(item)}" for weight, item in choices)
            return "(" + " | ".join(parts) + ")" if choices else "<VOID>"
        case Repeat(item):
            return f"({jsgf_text(item)})+"


WORDS = ("a", "two", "to", "four")


def _larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    weights = st.sampled_from([1.0, 0.5, 3.0])
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda items: Sequence(tuple(items))),
        st.lists(st.tuples(weights, inner), min_size=1, max_size=3).map(lambda choices: Alternatives(tuple(choices))),
        inner.map(Repeat),
        inner.map(lambda item: Alternatives(((1.0, item), (1.0, Sequence(()))))),
    )


EXPRESSIONS = st.recursive(st.sampled_from(WORDS).map(lambda text: Word(text, 1)), _larger, max_leaves=5)
