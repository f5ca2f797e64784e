"""Random grammars, and their sentences by plain recursion; for the tests in this folder."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import strategies as st

from pipelines.models.grammar.expression import Alternatives, Expression, Reference, Repeat, Sequence, Word

Sentences = dict[tuple[str, ...], float]


def sentences(expression: Expression, rules: dict[str, Expression], longest: int, depth: int = 0) -> Sentences:
    """Probability of the most probable way to say each sentence of at most `longest` words."""
    if depth > 3 * longest + 12:
        return {}
    match expression:
        case Word(text):
            return {(text,): 1.0}
        case Reference(rule):
            return sentences(rules[rule], rules, longest, depth + 1)
        case Sequence(items):
            found: Sentences = {(): 1.0}
            for item in items:
                found = joined(found, sentences(item, rules, longest, depth + 1), longest)
            return found
        case Alternatives(choices):
            total = sum(weight for weight, _ in choices)
            result: Sentences = defaultdict(float)
            for weight, item in choices:
                for said, p in sentences(item, rules, longest, depth + 1).items():
                    add(result, said, p * weight / total)
            return dict(result)
        case Repeat(item):
            once = sentences(item, rules, longest, depth + 1)
            result = defaultdict(float)
            turn, chance = once, 0.5
            # Turns that say nothing leave less and less.
            for _ in range(60):
                for said, p in turn.items():
                    add(result, said, p * chance)
                turn, chance = joined(turn, once, longest), chance / 2
                if not turn:
                    break
            return dict(result)


def add(to: Sentences, sentence: tuple[str, ...], p: float) -> None:
    to[sentence] = max(to[sentence], p)


def joined(first: Sentences, second: Sentences, longest: int) -> Sentences:
    result: Sentences = defaultdict(float)
    for a, p in first.items():
        for b, q in second.items():
            if len(a) + len(b) <= longest:
                add(result, a + b, p * q)
    return dict(result)


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
