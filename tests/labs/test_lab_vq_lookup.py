"""Lab `vq-lookup`: its ways of scoring against brute force, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.config import Config, assign
from pipelines.labs import vq_lookup
from pipelines.labs.vq_lookup import BEST, FULL, LAB, Found
from pipelines.models import sphinx
from pipelines.scoring.continuous import ContinuousGmm, pack
from pipelines.scoring.selection import vq_table
from pipelines.scoring.strategy import never, quietly
from tests.labs.planted import LOUD, arms
from tests.pipelines import sphinx_writer


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The ways of scoring by a small model of one stream, and its packed parameters."""
    folder = tmp_path_factory.mktemp("model")
    model = sphinx.load(sphinx_writer.write_continuous(folder, 1, 20))
    family = ContinuousGmm(pack(model), 1)
    gmm = assign(Config(), {"gmm.selection.codewords": 16}).gmm
    table = vq_table.Continuous(family).prepare(gmm, quietly, never)
    return vq_lookup.scorers(family, {16: table}), family, table


def test_each_way_scores_as_brute_force_does(made):
    scorers, family, table = made
    p = family.parameters
    features = (10 * np.random.default_rng(0).standard_normal((7, p.dim))).astype(np.float32)
    x = family.expand(features).astype(float).copy()
    g = np.einsum("tsk,gsmkl->tsglm", x, p.gaussians.astype(float))
    g = g.reshape(len(x), p.n_streams, -1, p.n_components)[:, :, : p.n_senones]
    best = g.max(axis=3)
    full = (np.log(np.exp(g - best[..., None]).sum(axis=3)) + best).sum(axis=1)
    nearest = table.codebook
    found = {name: np.empty((7, p.n_senones), np.float32) for name in scorers}
    for name, score in scorers.items():
        score(features, found[name])
    np.testing.assert_allclose(found[FULL], full, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(found[BEST], best.sum(axis=1), rtol=1e-3, atol=1e-2)
    values = x[:, 0, p.dim : 2 * p.dim]
    distance = ((values[:, None] - nearest.words[0]) ** 2 * nearest.scale[0]).sum(axis=2)
    right = table.scores[0, distance.argmin(axis=1)]
    np.testing.assert_allclose(found["flat 16"], right, rtol=1e-5)
    # Down the tree another codeword may be found, but it is one of them.
    rows = table.scores[0]
    assert all((np.abs(rows - row).max(axis=1) < 1e-3).any() for row in found["tree 16"])


def planted(by_exp=0.1, tree=0.01, noise=0.01):
    """All Gaussians take 10 ms, the best one less by `by_exp` of that, a look-up `tree` of it."""
    ms = {FULL: 10.0, BEST: 10.0 * (1 - by_exp), "flat 16": 20 * tree, "tree 16": 10.0 * tree}
    facts = dict.fromkeys(ms, 0.5)
    return Found(
        frames=1,
        sizes=[16],
        seconds=arms(ms, noise),
        error=facts,
        same_best=facts,
        bytes_read=facts,
        exps=facts,
    )


def test_it_holds_where_exp_is_little_of_what_is_saved():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["exp_share_of_saving"] == pytest.approx(0.1 / 0.99, abs=0.01)
    assert found.figures["tree_16_time_share"] == pytest.approx(0.01, rel=0.02)


@pytest.mark.parametrize("change", [{"by_exp": 0.8}, {"tree": 1.5}])
def test_it_does_not_where_exp_is_most_of_it_or_nothing_is_saved(change):
    assert LAB.judge(planted(**change)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(by_exp=0.45, noise=LOUD)).verdict == "undecided"


def test_the_picture_has_times_and_senones():
    chart = LAB.picture(planted())
    assert chart.layers[0].values == pytest.approx((1e4, 9e3, 200.0, 100.0), rel=0.02)
    assert [line.name for line in chart.beside[0].layers] == [
        "searched in full",
        "by the tree",
        BEST,
    ]
