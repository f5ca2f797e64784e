"""Every method of Gaussian selection against the same thing in double precision."""

import numpy as np
from scoring_reference import (
    KINDS,
    NAT,
    SOME,
    brute_force,
    configured,
    likely_features,
    linear,
    lists_of,
    mixtures,
    nearest,
    on_lists,
    scored,
)

from pipelines import config as settings
from pipelines.config import Config, assign
from pipelines.scoring import build_scorer, senones
from profiler.spans import NullLane
from tests.each import each


@each("kind", KINDS)
def test_shortlists_are_those_of_the_definition(families, kind):
    family = families[kind]
    _, prepared = configured(family, "vq")
    lists = lists_of(prepared)
    panels = family.parameters.gaussians.astype(float)
    groups, streams, slots, depth, _ = panels.shape
    dim = depth // 2
    precision = -2 * panels[:, :, :, :dim]
    real = precision[:, :, :, 0] > 0
    safe = np.where(precision > 0, precision, 1)
    means, own = panels[:, :, :, dim : 2 * dim] / safe, 1 / np.sqrt(safe)
    for s in range(streams):
        average = np.sqrt(1 / (lists.codebook.scale[s] * dim))[:, None]
        for k in range(0, lists.codebook.size, 5):
            c = lists.codebook.words[s, k].astype(float)
            gap = (c[:, None] - means[:, s]) ** 2 / (own[:, s] * average)
            distance = np.where(real[:, s], gap.mean(axis=2), np.inf)
            x = np.concatenate([c**2, c, [1.0]])
            likely = np.einsum("d,gmdl->gml", x, panels[:, s])
            for g in range(groups):
                span = slice(lists.start[s, k, g], lists.start[s, k, g + 1])
                items = lists.items[span].tolist()
                assert items == sorted(set(items))
                assert items, "nothing is left without a Gaussian"
                bits = (lists.lanes[span, None] >> np.arange(16)) & 1 > 0
                listed = np.zeros((slots, 16), bool)
                listed[items] = bits
                sure = np.abs(distance[g] - 0.8) > 1e-4
                within = (distance[g] <= 0.8) & sure
                assert (listed | ~within).all()
                extra = np.argwhere(listed & ~within & sure)
                assert len(extra) <= 1
                score = likely[g].max(axis=1) if family.kind == "Tied" else likely[g].sum(axis=1)
                assert score[items].max() > score.max() - 1e-2


@each("kind", KINDS)
@each("threshold", [0.1, 0.8, 50.0])
def test_vq_scores_what_is_on_the_list(models, families, kind, threshold):
    family = families[kind]
    p = family.parameters
    features = likely_features(models[kind], 11)
    strategy, prepared = configured(family, "vq", gmm__selection__threshold=threshold)
    lists = lists_of(prepared)
    words = nearest(lists.codebook, p.centre, features)
    g = linear(p.gaussians, p.centre, features)
    expected = mixtures(family, on_lists(family, lists, words, g))
    assert np.abs(scored(strategy, family, features) - expected).max() < NAT
    if threshold == 50.0:
        assert np.abs(expected - brute_force(models[kind], features)).max() < NAT


@each("component", ["full", "int8"])
@each("rule", ["active", "ci", "active-ci"])
def test_shortlists_below_a_senone_rule(models, rule, component):
    """What the search asks for, or what has good parents, is scored by its shortlist; the rest by parents."""
    model = models["untied"]
    features, rng = likely_features(model, 12, seed=3), np.random.default_rng(6)
    changes = SOME | {"gmm.selection.method": "vq", "gmm.component": component}
    config = settings.check(assign(Config(), changes | {"model": "continuous", "block": 5}))
    scorer = build_scorer(config, model)
    whole = scorer.score(features, 0, NullLane()).copy()
    config = settings.check(assign(config, {"gmm.senones": rule, "gmm.ci_beam": 40.0}))
    scorer.configure(config)
    scorer.reset()
    parents = senones.parents_of(model)
    exact = 0
    for at in range(0, len(features), 5):
        state = scorer.prepare(features[at : at + 5], at, NullLane())
        for t in range(len(features[at : at + 5])):
            active = np.flatnonzero(rng.random(model.n_senones) < 0.2)
            row, right = scorer.frame(state, t, active), whole[at + t]
            expected = right.copy()
            if rule != "active":
                of = right[parents.ci][parents.of]
                below = of < right[parents.ci].max() - 40.0
                expected[below] = of[below]
                exact += int((~below).sum())
            assert np.abs(row - expected)[active].max() < NAT
    assert rule == "active" or 0 < exact < 12 * model.n_senones


@each("kind", KINDS)
def test_the_tree_finds_a_codeword_by_halving(models, families, kind):
    family = families[kind]
    features = likely_features(models[kind], 40)
    strategy, prepared = configured(family, "vq-tree")
    book = lists_of(prepared).codebook
    x = family.expand(features).copy()
    found = np.empty((40, book.words.shape[0]), np.int32)
    compared = book.descend(x, found)
    steps = 0
    for t in range(40):
        for s in range(found.shape[1]):
            node = 0
            while node >= 0:
                side = book.planes[s, node].astype(float) @ x[t, s, x.shape[2] // 2 :]
                node = book.children[s, node, int(side > 0)]
                steps += 1
            assert found[t, s] == ~node
    assert compared == 2 * steps
    # A codeword itself is found by its own tree, and most frames find their nearest.
    dim = book.words.shape[2]
    own = np.ones((book.size, book.words.shape[0], 2 * dim + 1), np.float32)
    own[:, :, dim : 2 * dim] = book.words.swapaxes(0, 1)
    found = np.empty((book.size, book.words.shape[0]), np.int32)
    book.descend(own, found)
    assert (found == np.arange(book.size)[:, None]).mean() > 0.5
    assert np.isfinite(scored(strategy, family, features)).all()


@each("kind", KINDS)
def test_the_table_holds_the_scores_of_the_codewords(models, families, kind):
    family = families[kind]
    features = likely_features(models[kind], 7)
    strategy, table = configured(family, "vq-table")
    centre = family.parameters.centre
    words = nearest(table.codebook, centre, features)
    streams = np.arange(words.shape[1])
    frames = table.codebook.words[streams, words].reshape(len(features), -1) + centre
    expected = brute_force(models[kind], frames)
    assert np.abs(scored(strategy, family, features) - expected).max() < 5 * NAT


@each("kind", KINDS)
@each("expand", [1, 5, 4096])
def test_clusters_that_are_not_expanded_stand_for_their_gaussians(models, families, kind, expand):
    family = families[kind]
    p = family.parameters
    features = likely_features(models[kind], 9)
    strategy, found = configured(family, "clusters", gmm__selection__expand=expand)
    exact = linear(p.gaussians, p.centre, features)
    coarse = linear(found.gaussians[None], p.centre, features)[:, 0].reshape(9, exact.shape[2], -1)[:, :, : found.count]
    g = exact.copy()
    for t in range(9):
        for s in range(exact.shape[2]):
            best = np.argsort(-coarse[t, s])[:expand]
            of_panel = found.of_panel[:, s]
            backed = found.log_weights[:, s] + coarse[t, s][of_panel][:, :, None]
            g[t, :, s] = np.where(np.isin(of_panel, best)[:, :, None], exact[t, :, s], backed)
    expected = mixtures(family, g)
    assert np.abs(scored(strategy, family, features) - expected).max() < 3 * NAT
    if expand == 4096:
        assert np.abs(expected - brute_force(models[kind], features)).max() < NAT
