"""G: a grammar that a person wrote, or a back-off n-gram model, as a weighted acceptor of words.

Of a grammar every rule is copied to where it is used (Thompson's construction); of several ways to say a sentence the
most probable counts. Only what is regular can be built: a rule may use itself as the last thing it says, as a loop.

Of an n-gram model there is one state per history that has longer n-grams; an n-gram arc goes to the longest suffix of
history + word that is a state, a back-off arc (input `#0`, no output) to the shortened history. As in Kaldi the decoder
takes the better of an n-gram and its back-off path, and an n-gram that can never win is left out.
"""

from collections.abc import Callable
from math import log

import numpy as np

from pipelines.models.grammar import expression as exp
from pipelines.models.grammar.expression import Alternatives, Grammar, GrammarError, Reference, Repeat, Sequence, Word
from pipelines.models.language.ngram import SENTENCE_END, SENTENCE_START, NGram
from pipelines.search.graph.openfst import Fst, from_arcs, from_kaldifst, to_kaldifst
from profiler.arrays import I32, I64, Array
from profiler.plain import one_line

MAX_STATES, MAX_ARCS = 200_000, 500_000
"""Of the acceptor as it is laid down. Words of phrases are states, words of lists are arcs; more than these are
beyond what a graph can be compiled of (`pipelines.search.graph.build`). Rules that are used in rules multiply."""
GROWTH, SLACK = 4, 5000  # Determinisation may make GROWTH states of one, plus SLACK in all; a word list makes fewer
_HALF = -log(0.5)


def acceptor(grammar: Grammar, label: Callable[[Word], int]) -> Fst:
    """G of `grammar`; `label` gives a word its label, equal for equal words, 0 for one that is silent.

    GrammarError when nothing can be said, or the grammar is too large or not regular.
    """
    import kaldifst

    built = _Automaton(grammar, label)
    fst = to_kaldifst(built.fst())
    # Determinisation removes epsilons too, but is wrong about cycles of them.
    kaldifst.rmepsilon(fst)
    if fst.num_states == 0:
        raise GrammarError(f"{one_line(str(grammar.path))}: its public rules can never be said to their end.")
    limit = SLACK + GROWTH * fst.num_states
    try:
        kaldifst.determinize_star(fst, max_states=limit)
    except RuntimeError:
        raise GrammarError(
            f"{one_line(str(grammar.path))} cannot be made deterministic within {limit} states: the same words can "
            "be said in too many ways, or with different weights in repetitions."
        ) from None
    kaldifst.minimize_encoded(fst)
    result = from_kaldifst(fst)
    if not result.n_arcs:
        raise GrammarError(f"{one_line(str(grammar.path))}: its public rules say no word.")
    result.olabel = result.ilabel
    return result


class _Automaton:
    """States and arcs as they are added; state 0 is the start, 1 the end."""

    def __init__(self, grammar: Grammar, label: Callable[[Word], int]) -> None:
        self._grammar = grammar
        self._name = one_line(str(grammar.path))
        self._label = label
        self._arcs: list[tuple[int, int, float, int]] = []
        self._n_states = 2
        self._depth = 0
        # Of the rules that are being copied: the states between which the copy lies.
        self._open: dict[str, tuple[int, int]] = {}
        choices = tuple((1.0, Reference(name, 0)) for name in grammar.public)
        self._add(Alternatives(choices), 0, 1)

    def fst(self) -> Fst:
        """Return the built transducer, without output labels."""
        source, label, weight, target = (np.array(c) for c in zip(*self._arcs, strict=True))
        final = np.full(self._n_states, np.inf, dtype=np.float32)
        final[1] = 0.0
        silent = np.zeros_like(label)
        return from_arcs(self._n_states, 0, final, source, label, silent, weight, target)

    def _state(self) -> int:
        self._n_states += 1
        if self._n_states > MAX_STATES:
            raise self._too_large(f"{MAX_STATES:,} states")
        return self._n_states - 1

    def _arc(self, source: int, target: int, weight: float = 0.0, label: int = 0) -> None:
        if len(self._arcs) >= MAX_ARCS:
            raise self._too_large(f"{MAX_ARCS:,} arcs")
        self._arcs.append((source, label, weight, target))

    def _too_large(self, limit: str) -> GrammarError:
        return GrammarError(
            f"{self._name} needs more than {limit}: it has too many words, or rules that are used in rules multiply "
            "them."
        )

    def _add(self, expression: exp.Expression, source: int, target: int, weight: float = 0.0) -> None:
        """Lay `expression` between two states; it costs `weight` more."""
        match expression:
            case Word():
                self._arc(source, target, weight, self._label(expression))
            case Sequence(items):
                for item in items[:-1]:
                    between = self._state()
                    self._nest(item, source, between, weight)
                    source, weight = between, 0.0
                if items:
                    self._nest(items[-1], source, target, weight)
                else:
                    self._arc(source, target, weight)
            case Alternatives(choices):
                total = sum(share for share, _ in choices)
                for share, item in choices:
                    self._nest(item, source, target, weight - log(share / total))
            case Repeat(item):
                begin, end = self._state(), self._state()
                self._arc(source, begin, weight)
                self._nest(item, begin, end)
                self._arc(end, begin, _HALF)
                self._arc(end, target, _HALF)
            case Reference(rule):
                self._refer(expression, rule, source, target, weight)

    def _nest(self, item: exp.Expression, source: int, target: int, weight: float = 0.0) -> None:
        # Each group and each rule makes up to three levels of the tree.
        if self._depth > 3 * exp.MAX_DEPTH:
            raise GrammarError(f"{self._name}: its rules lie too deep within each other.")
        self._depth += 1
        self._add(item, source, target, weight)
        self._depth -= 1

    def _refer(self, where: Reference, rule: str, source: int, target: int, weight: float) -> None:
        if rule in self._open:
            begin, end = self._open[rule]
            if target != end:
                raise GrammarError(
                    f"{self._name}, line {where.line}: <{one_line(rule, 40)}> uses itself before its "
                    "end; a rule may only say itself as the last thing."
                )
            self._arc(source, begin, weight)
            return
        begin = self._state()
        self._arc(source, begin, weight)
        self._open[rule] = (begin, target)
        self._nest(self._grammar.rules[rule], begin, target)
        del self._open[rule]


def backoff_label(n_words: int) -> int:
    """Label of `#0`: one above the last word's, whose labels are their ids plus 1."""
    return n_words + 1


def ngram_acceptor(model: NGram) -> Fst:
    """G, start state at the history `<s>`; P(`</s>` | history) are final weights.

    Labels: id in the model plus 1 for words, 0 for epsilon.
    """
    index = model.index()
    end, start = index[SENTENCE_END], index[SENTENCE_START]
    has_children = [
        np.bincount(model.find(model.ids[k][:, :-1]), minlength=model.counts[k - 1]) > 0 for k in range(1, model.order)
    ]
    # State of each history: 0 is the empty one.
    states: list[I64] = []
    n_states = 1
    for children in has_children:
        numbers = np.full(len(children), -1, dtype=np.int64)
        numbers[children] = n_states + np.arange(int(children.sum()))
        n_states += int(children.sum())
        states.append(numbers)

    def suffix_state(grams: I32) -> I64:
        """State of the longest suffix (at most order - 1 words) that has longer n-grams."""
        result = np.zeros(len(grams), dtype=np.int64)
        for k in range(1, min(grams.shape[1], model.order - 1) + 1):
            row = model.find(grams[:, -k:])
            # The -1 at the end is what a gram that is not listed (row -1) gets.
            state = np.append(states[k - 1], -1)[row]
            result = np.where(state >= 0, state, result)
        return result

    final = np.full(n_states, np.inf, dtype=np.float32)
    arcs: list[tuple[Array, Array, Array, Array, Array]] = []
    for k in range(1, model.order + 1):
        grams = model.ids[k - 1]
        weight = -model.log_prob[k - 1]
        source = np.zeros(len(grams), dtype=np.int64) if k == 1 else states[k - 2][model.find(grams[:, :-1])]
        ends = grams[:, -1] == end
        final[source[ends]] = weight[ends]
        target = suffix_state(grams)
        words = ~ends & (grams[:, -1] != start)
        if k > 1:
            history = model.find(grams[:, :-1])
            backed_off = model.log_backoff[k - 2][history] + model.score(grams[:, 1:])
            same_target = target == suffix_state(grams[:, 1:])
            words &= (model.log_prob[k - 1] > backed_off) | ~same_target
        label = grams[words, -1] + 1
        arcs.append((source[words], label, label, weight[words], target[words]))
        if k < model.order:
            histories = has_children[k - 1]
            shorter = suffix_state(grams[histories][:, 1:]) if k > 1 else np.zeros(int(histories.sum()), dtype=np.int64)
            source = states[k - 1][histories]
            label = np.full(len(source), backoff_label(len(model.words)))
            weight = -model.log_backoff[k - 1][histories]
            arcs.append((source, label, np.zeros_like(label), weight, shorter))
    columns = [np.concatenate(column) for column in zip(*arcs, strict=True)]
    first_state = int(suffix_state(np.array([[start]], dtype=np.int32))[0])
    return from_arcs(n_states, first_state, final, *columns)
