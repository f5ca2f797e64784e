"""What holds for every method and component of Gaussian selection: any block, laws, cache, refusals."""

import itertools

import numpy as np
import pytest
from scoring_reference import (
    KINDS,
    METHODS,
    NAT,
    SOME,
    brute_force,
    configured,
    densities_in_bytes,
    family_of,
    likely_features,
    linear,
    lists_of,
    mixtures,
    nearest,
    on_lists,
    scored,
)

from pipelines import config as settings
from pipelines.config import Config, ConfigError, assign
from pipelines.scoring import build_scorer, cache, selection, senones
from pipelines.scoring.blocks import Meter
from pipelines.scoring.clustering import shortlists
from pipelines.scoring.strategy import quietly
from profiler.errors import Cancelled
from profiler.spans import SPAN, NullLane, Recorder
from tests.each import each

WAYS = [(method, {}) for method in METHODS] + [
    ("none", {}),
    ("top-n", {"gmm__component": "partial-distance"}),
    ("none", {"gmm__component": "max"}),
    ("none", {"gmm__component": "int8"}),
]


LISTED_WAYS = [("vq", {"gmm__component": "max"}), ("vq-tree", {"gmm__component": "int8"})]


def of_kinds(*kinds):
    """(kind, method, changes) of every way that there is."""
    return [(kind, *way) for kind in kinds for way in (WAYS if kind == "tied" else WAYS + LISTED_WAYS)]


@each("kind, method, changes", of_kinds("tied", "three streams", "one stream"))
def test_whatever_the_features_blocks_and_threads(models, families, kind, method, changes):
    family, model = families[kind], models[kind]
    strategy, prepared = configured(family, method, **changes)
    extremes = np.array([0, 1, -1, 1e4, 1e30, -1e30, np.inf, -np.inf, np.nan], np.float32)
    mixed = np.random.default_rng(8).choice(extremes, (20, 39))
    rows = np.concatenate([np.repeat(extremes[:, None], 39, 1), mixed])
    assert np.isfinite(scored(strategy, family, rows)).all()
    features = likely_features(model, 30)
    whole = scored(strategy, family, features)
    for block in (1, 7):
        assert np.abs(scored(strategy, family, features, block) - whole).max() < NAT
    pair = family_of(model, threads=2)
    shared = selection.METHODS[pair.kind][method](pair)
    changes = SOME | {k.replace("__", "."): v for k, v in changes.items()}
    shared.configure(assign(Config(), changes).gmm, prepared)
    for _ in range(3):
        assert np.abs(scored(shared, pair, features) - whole).max() < NAT


def test_what_takes_long_is_kept_and_remade_when_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    calls = []

    def make():
        calls.append(1)
        return {"a": np.arange(3)}

    assert cache.prepared("thing", (1, "x"), make)["a"].tolist() == [0, 1, 2]
    assert cache.prepared("thing", (1, "x"), make)["a"].tolist() == [0, 1, 2]
    assert len(calls) == 1
    cache.prepared("thing", (2, "x"), make)
    assert len(calls) == 2
    for file in (tmp_path / "selection").iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    found = cache.prepared("thing", (1, "x"), make)["a"]
    assert found.tolist() == [0, 1, 2]
    assert found.flags.writeable
    assert len(calls) == 3
    assert len(list((tmp_path / "selection").iterdir())) == 2


@each("method", ["vq", "vq-table", "clusters"])
def test_preparing_can_be_cancelled(families, method, tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    config = assign(Config(), SOME)
    for kind in ("tied", "one stream"):
        strategy = selection.METHODS[families[kind].kind][method](families[kind])
        with pytest.raises(Cancelled):
            strategy.needs(config.gmm).make(quietly, lambda: True)


UNTIED = {"model": "continuous", "gmm.senones": "ci"}


@each(
    "refused, sentence",
    [
        ({"gmm.component": "partial-distance", "gmm.selection.method": "vq"}, r"acts only with gmm\.selection"),
        ({"gmm.component": "int8", "gmm.selection.method": "vq"}, r"acts only with gmm\.selection"),
        ({"gmm.component": "max", "gmm.selection.method": "top-n"}, r"acts only with gmm\.selection"),
        (UNTIED | {"gmm.selection.method": "clusters"}, r"acts only with gmm\.senones = all"),
        (UNTIED | {"gmm.component": "int8"}, r"acts only with gmm\.senones = all"),
        ({"gmm.senones": "active", "gmm.selection.method": "vq"}, "or with model = continuous or single-stream"),
    ],
)
def test_what_cannot_be_combined_is_refused_in_one_sentence(refused, sentence):
    with pytest.raises(ConfigError, match=sentence):
        settings.check(assign(Config(), refused))
    for component in ("full", "int8", "max"):
        settings.check(assign(Config(), UNTIED | {"gmm.component": component, "gmm.selection.method": "vq-tree"}))


def test_lists_of_another_model_are_other_lists(models, families):
    """The cache goes by the content of the model."""
    identities = {families[kind].parameters.identity for kind in KINDS}
    assert len(identities) == len(KINDS)
    again = family_of(models["tied"])
    assert again.parameters.identity == families["tied"].parameters.identity
    assert shortlists.means_and_variances(again.parameters.gaussians)[0].shape[0] == 4


BEST = [("top-n", {}), ("top-n", {"gmm__component": "partial-distance"}), ("last-top-n", {})]
"""Methods that keep the best components."""


LISTED = [
    *itertools.product(["three streams", "one stream"], ["full", "int8", "max"], ["vq", "vq-tree"]),
    ("untied", "int8", "vq"),
    ("untied", "full", "vq-tree"),
]


@each("kind, component, method", LISTED)
def test_listed_gaussians_by_component_and_by_senone(models, families, kind, component, method):
    """All senones and chosen ones, whatever the lists are computed with."""
    family, rng = families[kind], np.random.default_rng(4)
    p = family.parameters
    features = likely_features(models[kind], 11)
    strategy, (lists, eight) = configured(family, method, gmm__component=component)
    words = np.zeros((11, p.n_streams), np.int32)
    if method == "vq":
        words[:] = nearest(lists.codebook, p.centre, features)
    else:
        lists.codebook.descend(family.expand(features), words)
    g = linear(p.gaussians, p.centre, features)
    if component == "int8":
        g = densities_in_bytes(eight, family, features)
    g = on_lists(family, lists, words, g)
    expected = mixtures(family, g)
    if component == "max":
        expected = g.max(axis=3).sum(axis=2).reshape(11, -1)[:, : p.n_senones]
    for block in (64, 1, 4):
        assert np.abs(scored(strategy, family, features, block) - expected).max() < NAT
    pair = family_of(models[kind], threads=2)
    shared = selection.METHODS[pair.kind][method](pair)
    changes = SOME | {"gmm.component": component}
    shared.configure(assign(Config(), changes).gmm, (lists, eight))
    recorder, meter = Recorder(), Meter()
    lane = recorder.lane("decode", decode=True)
    meter.register(recorder, dict(family.stages) | dict(strategy.stages))
    meter.begin(0, 11, lane)
    for some in (strategy, shared):
        some.begin_some(features, Meter() if some is shared else meter)
        for first, last in ((0, 1), (3, 9), (10, 11)):
            active = rng.permutation(p.n_senones)[: max(1, p.n_senones // 20)]
            scores = np.full((11, p.n_senones), 7.0, np.float32)
            some.score_some(first, last, active, scores, Meter() if some is shared else meter)
            is_active = np.zeros(scores.shape, bool)
            is_active[first:last, active] = True
            assert (scores[~is_active] == 7).all(), "nothing else is touched"
            assert np.abs(scores - expected)[is_active].max() < NAT
            if some is strategy:
                names = {stage.id: stage.name for stage in recorder.stages}
                done = {names[int(s["stage"])]: s for s in np.frombuffer(lane.take(), SPAN)}
                finite = np.isfinite(g[first:last]).any(axis=4)[:, np.unique(active // 16)]
                assert done["score.gaussians"]["work0"] == 16 * finite.sum()
                assert done["score.lse"]["work1"] == (last - first) * len(active)
    assert strategy.costs_of_some(1).keys() == done.keys() | {"score.quantise", "score.wait"}


@each("kind", ["three streams", "one stream", "untied"])
@each("keep", [1, 3, 64])
@each("method, changes", BEST)
def test_the_best_components_of_each_senone(models, families, kind, keep, method, changes):
    family = families[kind]
    p = family.parameters
    features = likely_features(models[kind], 9)
    strategy, _ = configured(family, method, gmm__selection__top_n=keep, **changes)
    g = linear(p.gaussians, p.centre, features)
    kept_of = min(keep, g.shape[3])
    worst = -np.sort(-g, axis=3)[:, :, :, kept_of - 1 : kept_of]
    expected = mixtures(family, np.where(g >= worst, g, -np.inf))
    assert np.abs(scored(strategy, family, features) - expected).max() < NAT


@each("keep", [1, 4, 7, 40])
def test_partial_distances_change_no_score(models, families, keep):
    """Tied: the same N best as by computing all, which agree with pocketsphinx' log (test_scoring_gmm)."""
    family, model = families["real"], models["real"]
    features = likely_features(model, 21)
    features[5:12] = features[5] + 0.01 * features[5:12]  # frames that resemble the one before
    expected = brute_force(model, features, keep)
    for method, changes in BEST:
        early, _ = configured(family, method, gmm__selection__top_n=keep, **changes)
        assert np.abs(scored(early, family, features) - expected).max() < NAT, (method, changes)


@each("kind", ["tied", "three streams", "one stream", "untied"])
def test_the_max_approximation_in_place_of_the_sum(models, families, kind):
    family, model = families[kind], models[kind]
    features = likely_features(model, 9)
    strategy, _ = configured(family, "none", gmm__component="max")
    scores = scored(strategy, family, features)
    if family.kind == "Continuous":
        p = family.parameters
        g = linear(p.gaussians, p.centre, features).max(axis=3).sum(axis=2)
        expected = g.reshape(9, -1)[:, : p.n_senones]
    else:
        expected = np.zeros((9, model.n_senones))
        means, variances = model.means.astype(float), model.variances.astype(float)
        for t, frame in enumerate(features.astype(float).reshape(9, 3, 13)):
            for s in range(3):
                distance = (frame[s] - means[:, s]) ** 2 / variances[:, s]
                g = -0.5 * (distance + np.log(2 * np.pi * variances[:, s])).sum(2)
                weighted = g[model.senone_codebook] + np.log(model.weights[s].T.astype(float))
                expected[t] += weighted.max(axis=1)
    assert np.abs(scores - expected).max() < NAT


@pytest.mark.parametrize("kind", ["real", "untied"])
def test_int8_comes_near(models, families, kind):
    family, model = families[kind], models[kind]
    features = likely_features(model, 16)
    exact = brute_force(model, features)
    strategy, _ = configured(family, "none", gmm__component="int8")
    error = scored(strategy, family, features) - exact
    near = exact > exact.max(axis=1, keepdims=True) - 25
    assert np.abs(error[near]).mean() < 0.3
    assert np.abs(error[near]).max() < 3.0


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
    assert (found == nearest(book, family.parameters.centre, features)).mean() > 0.5
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
    coarse = linear(found.gaussians[None], p.centre, features)[:, 0].reshape(9, exact.shape[2], -1)[
        :, :, : found.number
    ]
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
