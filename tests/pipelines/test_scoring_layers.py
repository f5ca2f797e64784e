"""Frame and GMM layers of the scorer: conditional skipping, active senones, back-off to CI senones."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring_reference import brute_force, likely_features

from pipelines import config as settings
from pipelines.config import Config, assign
from pipelines.scoring import MAX_FRAMES, build_scorer, frames, selection, senones
from pipelines.scoring.blocks import Meter
from pipelines.scoring.clustering import quantiser
from pipelines.scoring.senones import AHEAD, due
from profiler.spans import SPAN, NullLane, Recorder
from tests.each import each

LANE = NullLane()
EXACT = Config()
NAT = 1e-3  # Float32 kernels against each other and against double precision


@pytest.fixture(scope="module")
def features(model):
    return likely_features(model, 90, seed=5)


@pytest.fixture(scope="module")
def exact_scores(model, features):
    return build_scorer(EXACT, model).score(features, 0, LANE).copy()


@pytest.fixture(scope="module")
def scorer(model):
    made = build_scorer(EXACT, model)
    made.warm_up()
    return made


def configured(scorer, **changes):
    scorer.configure(assign(EXACT, {k.replace("__", "."): v for k, v in changes.items()}))
    scorer.reset()
    return scorer


def asking(n_frames, n_senones, seed=0, share=0.3):
    """What a search might want: for each frame a third of the senones, ascending."""
    rng = np.random.default_rng(seed)
    return [np.flatnonzero(rng.random(n_senones) < share) for _ in range(n_frames)]


def taking_turns(scorer, features, active, block):
    """Rows of a lazy scorer, frame by frame in blocks."""
    rows = []
    for at in range(0, len(features), block):
        part = features[at : at + block]
        state = scorer.prepare(part, at, LANE)
        rows += [scorer.frame(state, t, active[at + t]).copy() for t in range(len(part))]
    return np.array(rows)


class Numbers:
    """A codebook for frames that say their codeword themselves."""

    def nearest(self, features, meter):
        return features[:, 0].astype(np.int32)

    def cost(self):
        raise NotImplementedError


def conditional_rule():
    rule = frames.Conditional(SimpleNamespace())
    rule.configure(EXACT, Numbers())
    return rule


def by_the_book(words, skip):
    """Sphinx-3's rule, one frame after the other."""
    scored, skipped = [], 0
    for t, word in enumerate(words):
        again = t > 0 and word == words[t - 1] and skipped < skip - 1
        skipped = skipped + 1 if again else 0
        scored.append(not again)
    return scored


@pytest.mark.parametrize("skip", [2, 3, 4])
@pytest.mark.parametrize("block", [1, 2, 7, 60])
def test_a_frame_is_skipped_while_the_codeword_stays_and_at_most_k_minus_1_in_a_row(skip, block):
    rng = np.random.default_rng(skip * block)
    rule = conditional_rule()
    for _ in range(3):  # each utterance begins anew, whatever the last codeword of the one before
        words = np.repeat(rng.integers(0, 3, 40), rng.integers(1, 6, 40))[:60]
        rule.reset()
        chosen = []
        for at in range(0, len(words), block):
            some = words[at : at + block, None].astype(np.float32)
            chosen += rule.choose(some, at, skip, Meter()).tolist()
        assert chosen == by_the_book(words.tolist(), skip)
        assert not all(chosen)


def test_another_codebook_says_nothing_about_the_last_frame():
    rule = conditional_rule()
    same = np.ones((4, 1), np.float32)
    assert rule.choose(same[:2], 0, 4, Meter()).tolist() == [True, False]
    rule.configure(EXACT, Numbers())
    assert rule.choose(same, 2, 4, Meter()).tolist() == [True, False, False, False]


def test_the_nearest_codeword_is_the_nearest(model, features):
    book = quantiser.codewords_of(model, 64, lambda *_: None, lambda: False)
    assert book.book.size == 64
    found = book.nearest(features, Meter())
    words = book.book.words[0].astype(float) + book.centre
    variance = model.variances.astype(float).mean(axis=(0, 2)).ravel()
    distance = ((features[:, None] - words) ** 2 / variance).sum(2)
    mine = distance[np.arange(len(features)), found]
    np.testing.assert_allclose(mine, distance.min(1), rtol=1e-4)
    assert len(set(found.tolist())) > 5


@each("block", [1, 5, 32])
def test_conditionally_skipped_frames_repeat_the_last_scored_one(scorer, features, exact_scores, block):
    configured(scorer, frames__skip=3, frames__rule="conditional", frames__codewords=16)
    rule = scorer._rule
    words = rule._codebook.nearest(features, Meter()).tolist()
    scored = by_the_book(words, 3)
    source = np.maximum.accumulate(np.where(scored, np.arange(len(words)), 0))
    assert 0.1 < np.mean(scored) < 1.0
    for at in range(0, len(features), block):
        some = scorer.score(features[at : at + block], at, LANE)
        np.testing.assert_array_equal(some, exact_scores[source[at : at + len(some)]])


def test_requested_scores_are_exact(scorer, features, exact_scores, model):
    active = asking(len(features), model.n_senones)
    rows = taking_turns(configured(scorer, gmm__senones="active"), features, active, 16)
    truth = brute_force(model, features[:5])
    for t, needed in enumerate(active):
        np.testing.assert_allclose(rows[t][needed], exact_scores[t][needed], atol=NAT)
        if t < len(truth):
            np.testing.assert_allclose(rows[t][needed], truth[t][needed], atol=NAT)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("rule", ["active", "active-ci"])
@pytest.mark.parametrize("skip", [{}, {"frames__skip": 3}, {"frames__skip": 4, "cond": True}])
def test_turns_do_not_depend_on_the_block(scorer, features, model, rule, skip):
    changes = dict(skip)
    if changes.pop("cond", False):
        changes |= {"frames__rule": "conditional", "frames__codewords": 32}
    active = asking(len(features), model.n_senones, seed=3)

    def seen(block):
        made = configured(scorer, gmm__senones=rule, gmm__ci_beam=12.0, **changes)
        return taking_turns(made, features, active, block)

    rows = seen(16)
    for block in (1, 7, MAX_FRAMES):
        other = seen(block)
        for t, needed in enumerate(active):
            np.testing.assert_array_equal(other[t][needed], rows[t][needed])


@each("value", [np.nan, np.inf, -np.inf, 1e30])
@each("rule", ["active", "ci", "active-ci"])
def test_no_feature_makes_a_score_that_is_no_number(scorer, features, model, rule, value):
    bad = features[:4].copy()
    bad[1, 3] = bad[2, :] = value
    made = configured(scorer, gmm__senones=rule, frames__skip=2, frames__rule="conditional", frames__codewords=16)
    if made.lazy:
        rows = taking_turns(made, bad, asking(4, model.n_senones), 4)
    else:
        rows = made.score(bad, 0, LANE)
    assert np.isfinite(rows).all()


def test_the_parent_is_the_senone_of_the_same_phone_and_state_without_context(model):
    parents = senones.parents_of(model)
    definition = model.mdef
    assert parents.ci.tolist() == list(range(definition.n_ci_senones))
    of = parents.ci[parents.of]
    for phone in range(definition.n_ci):
        for senone in definition.sseq[definition.ci_ssid(phone)].tolist():
            children = np.flatnonzero(of == senone)
            assert (definition.senone_phone[children] == phone).all()
            assert (definition.senone_state[children] == definition.senone_state[senone]).all()


def test_a_senone_without_a_parent_is_its_own():
    definition = SimpleNamespace(
        senone_phone=np.array([0, 0, 1, 0, 2]), senone_state=np.array([0, 1, 0, 1, 0]), n_ci_senones=3, stand_ins=()
    )
    parents = senones.parents_of(SimpleNamespace(mdef=definition))
    assert parents.ci.tolist() == [0, 1, 2, 4]
    assert parents.ci[parents.of].tolist() == [0, 1, 2, 1, 4]
    definition.n_ci_senones, definition.stand_ins = 0, (3, 0)
    parents = senones.parents_of(SimpleNamespace(mdef=definition))
    assert parents.ci[parents.of].tolist() == [0, 3, 2, 3, 4]


def backed_off(model, exact, beam, cap, active):
    """The rule by its definition, float64: (scores of the wanted, whether each is computed, bound)."""
    parents = senones.parents_of(model)
    of = parents.ci[parents.of]
    child = of[active] != active
    bound = exact[parents.ci].max() - beam
    if cap:
        # One parent after the other, best first, as long as the children fit.
        scores = sorted({float(exact[p]) for p in parents.ci}, reverse=True)
        for score in scores:
            if score < bound:
                break
            count = (child & (exact[of[active]] >= score)).sum()
            if count > cap:
                bound = np.nextafter(score, np.inf)
                break
    computed = ~child | (exact[of[active]] >= bound)
    return np.where(computed, exact[active], exact[of[active]]), computed, bound


@each("beam", [0.0, 8.0, 23.0, 200.0])
@each("cap", [0, 1, 150, 1000])
def test_senones_of_weak_parents_get_their_parents_score(scorer, features, exact_scores, model, beam, cap):
    made = configured(scorer, gmm__senones="ci", gmm__ci_beam=beam, gmm__ci_cap=cap)
    scores = made.score(features[:20], 0, LANE)
    everything = np.arange(model.n_senones)
    for t in range(20):
        expected, computed, _ = backed_off(model, exact_scores[t], beam, cap, everything)
        np.testing.assert_allclose(scores[t], expected, atol=NAT)
        if cap:
            assert computed.sum() - model.mdef.n_ci_senones <= cap
    if beam == 200.0 and not cap:
        np.testing.assert_allclose(scores, exact_scores[:20], atol=NAT)


def test_the_cap_counts_active_senones(scorer, features, exact_scores, model):
    active = asking(30, model.n_senones, seed=2, share=0.2)
    for cap in (0, 40, 400):
        made = configured(scorer, gmm__senones="active-ci", gmm__ci_beam=15.0, gmm__ci_cap=cap)
        rows = taking_turns(made, features[:30], active, 8)
        for t, needed in enumerate(active):
            expected, _, _ = backed_off(model, exact_scores[t], 15.0, cap, needed)
            np.testing.assert_allclose(rows[t][needed], expected, atol=NAT)


def test_work_counts_say_what_was_done(model, features):
    made = build_scorer(assign(EXACT, {"gmm.senones": "active"}), model)
    recorder = Recorder()
    made.stages(recorder)
    lane = recorder.lane("decode", decode=True)
    active = asking(16, model.n_senones, share=0.1)
    state = made.prepare(features[:16], 0, lane)
    for t in range(16):
        made.frame(state, t, active[t])
    spans = np.frombuffer(lane.take(), SPAN)
    lazy = spans[spans["stage"] == recorder.stage_id("score.lazy")]
    # Each senone for AHEAD frames from the first that asks for it and for which it is not there yet.
    computed = fetched = 0
    for senone in range(model.n_senones):
        frame = 0
        while frame < 16:
            if senone in active[frame]:
                fetched += 1
                computed += min(AHEAD, 16 - frame)
                frame += AHEAD
            else:
                frame += 1
    assert lazy["work1"].sum() == computed > sum(map(len, active))
    assert lazy["work0"].sum() == computed * 3 * 128
    assert lazy["work2"].sum() == fetched * 3 * 128
    assert not (spans["stage"] == recorder.stage_id("score.mixture")).any()


def test_every_choice_of_the_configuration_exists():
    assert set(settings.option("gmm.senones").choices) == {"all", *senones.RULES}
    assert set(settings.option("frames.rule").choices) == set(frames.RULES)
    for methods in selection.METHODS.values():
        assert set(settings.option("gmm.selection.method").choices) == set(methods)


@given(st.lists(st.sets(st.integers(0, 30)), min_size=1, max_size=40), st.integers(1, 9))
def test_a_senone_is_due_where_nothing_that_was_computed_reaches_it(requested, ahead):
    until, found = np.zeros(31, np.int64), np.full(31, -1, np.int64)
    reaches = dict.fromkeys(range(31), 0)
    for t, wanted in enumerate(requested):
        end = min(t + ahead, len(requested))
        n = due(np.array(sorted(wanted), np.int64), until, t, end, found)
        expected = [senone for senone in sorted(wanted) if reaches[senone] <= t]
        assert found[:n].tolist() == expected
        reaches |= dict.fromkeys(expected, end)
        assert until.tolist() == list(reaches.values())
