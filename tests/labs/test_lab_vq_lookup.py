"""Lab `vq-lookup`: its ways of scoring against brute force, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.config import Config, assign
from pipelines.labs import vq_lookup
from pipelines.labs.sweep import SweepResult
from pipelines.labs.vq_lookup import BEST, FULL, LAB, Params
from pipelines.models import sphinx
from pipelines.scoring.continuous import ContinuousGmm, pack
from pipelines.scoring.selection import vq_table
from pipelines.scoring.strategy import never, quietly
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, at_size
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


def planted(by_exp=0.1, tree=0.01, noise=NOISE):
    """All Gaussians take 10 ms, the best one less by `by_exp` of that, a look-up `tree` of it."""
    ms = {FULL: 10.0, BEST: 10.0 * (1 - by_exp), "flat 16": 20 * tree, "tree 16": 10.0 * tree}
    facts = ("error", "same_best", "bytes_read", "exps")
    return SweepResult(
        timings=at_size(1, ms, noise),
        by_variant={"codewords": {"flat 16": 16, "tree 16": 16}}
        | {fact: dict.fromkeys(ms, 0.5) for fact in facts},
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"by_exp": 0.8}, {"tree": 1.5}],
    noisy=[{"by_exp": 0.55, "noise": LOUD}],
    figures={
        "exp_share_of_saving": pytest.approx(0.1 / 0.99, abs=0.01),
        "tree_16_time_share": about(0.01),
    },
    memory=(Params(codewords=16), Params(codewords=4096)),
)


def test_the_picture_has_times_and_senones():
    chart = LAB.picture(planted())
    assert chart.layers[0].values == pytest.approx((1e4, 9e3, 200.0, 100.0), rel=0.02)
    assert [line.name for line in chart.beside[0].layers] == [
        "searched in full",
        "by the tree",
        BEST,
    ]
