"""The algebra of back-off models: sums, conditioning, pruning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language_models import distribution, random_model

from pipelines.models.language import ngram
from pipelines.models.language.ngram import LanguageModelError
from tests.each import each

MODELS = st.builds(
    random_model,
    seed=st.integers(0, 10_000),
    n_words=st.integers(2, 7),
    order=st.integers(1, 3),
    density=st.floats(0.1, 1.0),
)


def histories(model):
    """Every history that the model distinguishes, as lists of ids."""
    result = [[]]
    for k in range(1, model.order):
        result += [g.tolist() for g in model.ids[k - 1] if g[-1] != 1]
    return result


@settings(max_examples=60, deadline=None)
@given(MODELS)
def test_every_history_sums_to_one(model):
    for history in histories(model):
        # Words that share less than this mass may come on top of explicit ones that already sum to 1.
        assert distribution(model, history).sum() == pytest.approx(1.0, abs=ngram.MIN_BACKOFF_MASS)


@settings(max_examples=60, deadline=None)
@given(MODELS, st.data())
def test_restriction_conditions_on_the_vocabulary(model, data):
    words = [w for w in model.words if w.startswith("w")]
    kept = data.draw(st.lists(st.sampled_from(words), min_size=1, unique=True))
    small = ngram.restrict(model, kept)
    assert set(small.words) == {"<s>", "</s>", *kept}
    for history in histories(small):
        before = distribution(model, [model.words.index(small.words[h]) for h in history])
        inside = before[[model.words.index(w) for w in small.words]]
        np.testing.assert_allclose(distribution(small, history), inside / inside.sum(), rtol=1e-6, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(MODELS, st.integers(0, 12), st.integers(0, 12))
def test_pruned_models_keep_the_best_and_sum_to_one(model, bigrams, trigrams):
    pruned = ngram.prune(model, (bigrams, trigrams))
    for history in histories(pruned):
        assert distribution(pruned, history).sum() == pytest.approx(1.0, abs=1e-9)
    if model.order == 2:
        assert pruned.counts[1] == min(bigrams, model.counts[1])
    if model.order == 3:
        assert pruned.counts[2] == min(trigrams, model.counts[2])
        # A trigram's history must be listed, for it holds the back-off weight.
        assert (pruned.find(pruned.ids[2][:, :-1]) >= 0).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_worth_is_the_relative_entropy_of_removal(seed):
    model = random_model(seed, 5, 2)
    worth = ngram.removal_entropy(model, 2)
    errors = []
    for row, (history, _) in enumerate(model.ids[1]):
        kept = np.arange(len(worth)) != row
        without = ngram.renormalise(
            ngram.make(
                model.words,
                (model.ids[0], model.ids[1][kept]),
                (model.log_prob[0], model.log_prob[1][kept]),
                model.log_backoff,
            )
        )
        p, q = distribution(model, [history]), distribution(without, [history])
        some = p > 0
        entropy = (p[some] * np.log(p[some] / q[some])).sum()
        weight = np.exp(model.log_prob[0][1 if history == 0 else history])
        errors.append(abs(worth[row] - weight * entropy))
        assert worth[row] == pytest.approx(weight * entropy, rel=1e-4, abs=5e-4)
    # Back-off weights are rounded, and of a history that lists every word nothing is left to back off with:
    # a few are off by that much.
    assert not errors or np.median(errors) < 1e-5


def test_sums_above_one_are_scaled_down():
    # What 16-bit tables do to a nearly full history.
    model = ngram.make(
        ["<s>", "</s>", "a"],
        (np.array([[0], [1], [2]], "i4"), np.array([[2, 1], [2, 2]], "i4")),
        (np.log([1e-40, 0.5, 0.5]), np.log([0.6, 0.402])),
        (np.zeros(3),),
    )
    fixed = ngram.renormalise(model)
    assert distribution(fixed, [2]).sum() == pytest.approx(1.0, abs=1e-5)


def test_score_backs_off_by_hand():
    model = ngram.make(
        ["<s>", "</s>", "a", "b"],
        (np.arange(4, dtype="i4")[:, None], np.array([[2, 3]], "i4")),
        (np.log([1e-40, 0.2, 0.5, 0.3]), np.log([0.9])),
        (np.log([1.0, 1.0, 0.25, 1.0]),),
    )
    grams = np.array([[2, 3], [2, 2], [3, 2]], "i4")
    np.testing.assert_allclose(np.exp(model.score(grams)), [0.9, 0.25 * 0.5, 0.5])


def test_most_probable_is_deterministic_and_ordered():
    model = random_model(3, 6, 1)
    words = ngram.most_probable(model, [*model.words[2:], "unheard"], 4)
    prob = dict(zip(model.words, model.log_prob[0], strict=True))
    assert words == sorted(model.words[2:], key=lambda w: -prob[w])[:4]


@each(
    "words, ids, message",
    [
        (["<s>", "</s>", "a", "a"], [[0], [1], [2], [3]], "a word twice"),
        (["<s>", "a"], [[0], [1]], "sentence mark </s>"),
        (["<s>", "</s>"], [[0], [5]], "outside the vocabulary"),
    ],
)
def test_malformed_models_are_refused(words, ids, message):
    with pytest.raises(LanguageModelError, match=message):
        ngram.make(words, [np.array(ids, "i4")], [np.full(len(ids), -1.0)], [])
