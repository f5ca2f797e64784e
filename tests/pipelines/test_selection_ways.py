"""What holds for every method and component of Gaussian selection: any block, laws, cache, refusals."""

import numpy as np
import pytest
from scoring_reference import likely_features
from selection_reference import KINDS, METHODS, NAT, SOME, configured, family_of, scored

from pipelines import config as settings
from pipelines.config import Config, ConfigError, assign
from pipelines.scoring import cache, selection
from pipelines.scoring.blocks import Meter
from pipelines.scoring.clustering import shortlists
from pipelines.scoring.strategy import quietly
from profiler.errors import Cancelled
from profiler.spans import SPAN, Recorder
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
    shared = selection.create(method, pair.kind, pair)
    changes = SOME | {k.replace("__", "."): v for k, v in changes.items()}
    shared.configure(assign(Config(), changes).gmm, prepared)
    for _ in range(3):
        assert np.abs(scored(shared, pair, features) - whole).max() < NAT


@each("kind, method, changes", of_kinds("tied", "three streams"))
def test_stages_have_laws_and_counts(models, families, kind, method, changes):
    family = families[kind]
    strategy, _ = configured(family, method, **changes)
    recorder, meter = Recorder(), Meter()
    lane = recorder.lane("decode", decode=True)
    meter.register(recorder, dict(family.stages) | dict(strategy.stages))
    features = likely_features(models[kind], 16)
    meter.begin(0, 16, lane)
    strategy.score(features, np.empty((16, family.n_senones), np.float32), meter)
    spans = np.frombuffer(lane.take(), SPAN)
    names = {stage.id: stage.name for stage in recorder.stages}
    costs = strategy.costs(16)
    every = family.parameters.gaussians[..., 0, :].size * 16
    for span in spans:
        name = names[int(span["stage"])]
        cost = costs[name]
        assert cost.unmodelled or cost.operations, name
        work = tuple(float(span[f"work{i}"]) for i in range(3))
        low, high = cost.bytes_min.total(1, 16, work), cost.bytes_max.total(1, 16, work)
        assert 0 <= low <= high * (1 + 1e-9), name
        if name == "score.gaussians":
            assert 0 < work[0] <= every
    if method != "vq-table":
        assert "score.gaussians" in {names[s] for s in spans["stage"].tolist()}


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
        strategy = selection.create(method, families[kind].kind, families[kind])
        with pytest.raises(Cancelled):
            strategy.prepare(config.gmm, quietly, lambda: True)


def test_what_cannot_be_combined_is_refused_in_one_sentence():
    for changes in (
        {"gmm.component": "partial-distance"},
        {"gmm.component": "partial-distance", "gmm.selection.method": "vq"},
        {"gmm.component": "int8", "gmm.selection.method": "vq-table"},
        {"gmm.component": "max", "gmm.selection.method": "top-n"},
        {"gmm.component": "int8", "gmm.selection.method": "vq"},
    ):
        with pytest.raises(ConfigError, match=r"acts only with gmm\.selection"):
            settings.check(assign(Config(), changes))
    untied = assign(Config(), {"model": "continuous", "gmm.senones": "ci"})
    with pytest.raises(ConfigError, match=r"acts only with gmm\.senones = all"):
        settings.check(assign(untied, {"gmm.selection.method": "clusters"}))
    with pytest.raises(ConfigError, match=r"acts only with gmm\.senones = all"):
        settings.check(assign(untied, {"gmm.component": "int8"}))
    tied = assign(Config(), {"gmm.senones": "active", "gmm.selection.method": "vq"})
    with pytest.raises(ConfigError, match="or with model = continuous or single-stream"):
        settings.check(tied)
    for component in ("full", "int8", "max"):
        fits = {"gmm.component": component, "gmm.selection.method": "vq-tree"}
        settings.check(assign(untied, fits))
    fits = {"gmm.component": "partial-distance", "gmm.selection.method": "top-n"}
    settings.check(assign(Config(), fits))


def test_lists_of_another_model_are_other_lists(models, families):
    """The cache goes by the content of the model."""
    identities = {families[kind].parameters.identity for kind in KINDS}
    assert len(identities) == len(KINDS)
    again = family_of(models["tied"])
    assert again.parameters.identity == families["tied"].parameters.identity
    assert shortlists.means_and_variances(again.parameters.gaussians)[0].shape[0] == 4
