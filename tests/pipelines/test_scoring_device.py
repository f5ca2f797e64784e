"""The device's scorer, on the processor: against the definition, and what placement does to its spans."""

import numpy as np
import pytest
import sphinx_writer as writer
from device_scoring import LANE, check_laws, make, placed, record
from scoring_reference import brute_force, likely_features

from pipelines import config as settings
from pipelines.config import Config
from pipelines.models import derived, sphinx
from profiler.analysis.breakdown import breakdown
from profiler.analysis.categories import SCORING_CATEGORIES
from profiler.analysis.device import hidden_ns, transfers
from profiler.session.reader import Session
from tests.each import each

ON_DEVICE = settings.assign(Config(), {"device": "torch-cpu"})


@pytest.fixture(scope="module")
def features(model):
    return likely_features(model, 21)


@pytest.fixture(scope="module")
def expected(model, features):
    return brute_force(model, features)


# Eleven bits of a float16's fraction and eight of a bfloat16's, on log densities of some hundred nat.
@each("dtype, nat", [("fp32", 1e-3), ("fp16", 0.5), ("bf16", 5.0)])
def test_scores_of_the_real_model_in_each_number_type(model, features, expected, dtype, nat):
    scores = make(placed(ON_DEVICE, dtype=dtype), model).score(features, 0, LANE)
    assert scores.dtype == np.float32
    error = np.abs(scores - expected).max()
    assert error < nat
    assert dtype == "fp32" or error > 1e-3


@each("codebooks", [4, 1])
@each("densities", [1, 20])
def test_small_models_of_odd_sizes(tmp_path, codebooks, densities):
    small = sphinx.load(writer.write_model(tmp_path, codebooks, densities))
    block = likely_features(small, 13)
    scores = make(ON_DEVICE, small).score(block, 0, LANE)
    assert np.abs(scores - brute_force(small, block)).max() < 1e-3


def test_scores_of_a_continuous_model(model, features):
    owned = derived.untied(model, 8)
    expected = brute_force(owned, features)
    for dtype, nat in (("fp32", 1e-3), ("bf16", 5.0)):
        scores = make(placed(ON_DEVICE, dtype=dtype), owned).score(features, 0, LANE)
        assert np.abs(scores - expected).max() < nat


def test_a_continuous_model_in_pieces_gives_the_same(model, features, monkeypatch):
    from pipelines.scoring.device import gmm as device_gmm

    owned = derived.untied(model, 8)
    whole = make(ON_DEVICE, owned).score(features, 0, LANE).copy()
    monkeypatch.setitem(device_gmm.PIECE_BYTES, "cpu", 700_000)
    pieces = make(ON_DEVICE, owned).score(features, 0, LANE)
    np.testing.assert_allclose(pieces, whole, atol=1e-3)


@each("dtype", ["fp32", "fp16", "bf16"])
def test_scores_are_finite_whatever_the_features(model, dtype):
    rng = np.random.default_rng(8)
    extremes = np.array([0, 1, -1, 1e4, -1e4, 1e30, -1e30, np.inf, -np.inf, np.nan], np.float32)
    rows = np.concatenate([np.repeat(extremes[:, None], 39, 1), rng.choice(extremes, (40, 39))])
    assert np.isfinite(make(placed(ON_DEVICE, dtype=dtype), model).score(rows, 0, LANE)).all()


def test_large_blocks_and_wrong_shapes(model):
    block = likely_features(model, 150)
    scorer = make(ON_DEVICE, model)
    whole = scorer.score(block, 0, LANE).copy()
    for at in (0, 64, 149):
        np.testing.assert_allclose(scorer.score(block[at : at + 1], at, LANE)[0], whole[at], atol=1e-3)
    assert scorer.score(block[:0], 0, LANE).shape == (0, 5126)
    with pytest.raises(ValueError, match=r"expected \[at most 256, 39\]"):
        scorer.score(np.zeros((4, 13), np.float32), 0, LANE)


def test_a_block_begun_under_other_settings_is_scored_again(model, features, expected):
    scorer = make(placed(ON_DEVICE, overlapped=True), model)
    scorer.score(features[:8], 0, LANE)
    scorer.ahead(features[8:16], 8, LANE)
    scorer.configure(placed(ON_DEVICE, overlapped=True, dtype="bf16"))
    rough = np.abs(scorer.score(features[8:16], 8, LANE) - expected[8:16]).max()
    assert rough > 1e-2
    scorer.configure(placed(ON_DEVICE, overlapped=True))
    scorer.ahead(features[16:], 16, LANE)
    scorer.configure(settings.replace(placed(ON_DEVICE, overlapped=True), "frames.skip", 3))
    scores = scorer.score(features[16:], 16, LANE)
    assert np.array_equal(scores[3], scores[4])
    scorer.configure(placed(ON_DEVICE, overlapped=True))
    # Another block than was announced.
    assert np.abs(scorer.score(features[:8], 30, LANE) - expected[:8]).max() < 1e-3
    scorer.ahead(features[8:], 38, LANE)
    scorer.reset()
    assert np.abs(scorer.score(features[3:9], 51, LANE) - expected[3:9]).max() < 1e-3


# -- what is recorded ------------------------------------------------------------------------------


def test_categories_add_up_and_the_waits_are_charged_to_what_ran(tmp_path, model):
    features = likely_features(model, 64)
    with Session.open(record(tmp_path / "a.asrs", ON_DEVICE, model, features)) as session:
        parts = breakdown(session)
        assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns)
        rows = {(row.lane, row.name): row for row in parts.stages}
        dense = rows["torch-cpu compute", "score.mixture"]
        assert dense.work["components"] == 64 * 5126 * 3 * 128
        assert dense.flops == pytest.approx(2 * dense.work["components"], rel=0.35)
        waits = {name: row for (lane, name), row in rows.items() if lane == "decode"}
        assert "it waits for the device" in waits["transfer.to host.wait"].sentence
        waited = waits["score.mixture.wait"]
        assert waited.time_ns <= dense.time_ns
        # Per span the share of its time; spans that other programs delayed shift the share of the sum.
        assert 0 < waited.flops <= dense.flops * 1.01
        assert "meanwhile" in next(iter(waited.work))
        assert "gives work to the device" in waits["score.launch"].sentence
        scored = sum(row.time_ns for name, row in waits.items() if name.startswith("score."))
        categories = parts.categories
        assert scored == pytest.approx(sum(categories[name] for name in SCORING_CATEGORIES))


def test_overlapped_work_is_hidden_under_the_search(tmp_path, model):
    features = likely_features(model, 64)
    beside = {}
    for overlapped in (False, True):
        path = tmp_path / f"{overlapped}.asrs"
        record(path, placed(ON_DEVICE, overlapped=overlapped), model, features, search_s=0.02)
        with Session.open(path) as session:
            spans = session.spans
            stages = {stage.name: number for number, stage in session.stages.items()}
            lanes = [lane.id for lane in session.lanes.values() if lane.kind == "device"]
            on_device = spans[np.isin(spans["lane"], lanes)]
            searched = spans[spans["stage"] == stages["search.emit"]]
            beside[overlapped] = int(shared_ns(on_device, searched))
            parts = breakdown(session)
            assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns)
            assert hidden_ns(session) >= beside[overlapped]
    assert beside[False] == 0
    assert beside[True] > 0


def shared_ns(some, others) -> int:
    """How long spans of both kinds ran at once."""
    total = 0
    for one in others:
        first = np.maximum(some["start_ns"], one["start_ns"])
        last = np.minimum(some["start_ns"] + some["duration_ns"], one["start_ns"] + one["duration_ns"])
        total += np.clip(last - first, 0, None).sum()
    return total


def test_bytes_of_every_move(tmp_path, model):
    parameters = sum(
        array.size * 4 if array.dtype != np.int64 else array.size * 8
        for array in make(ON_DEVICE, model)._arithmetic.arrays.values()
    )
    features = likely_features(model, 16)
    up, down = 16 * 39 * 4, 16 * 5126 * 4
    for config, copies, more in (
        (ON_DEVICE, (2, 2), 0),
        (placed(ON_DEVICE, transfer="frame"), (16, 16), 0),
        (placed(ON_DEVICE, weights="each-block"), (None, 2), 2 * parameters),
    ):
        path = tmp_path / f"{more}-{copies}.asrs"
        with Session.open(record(path, config, model, features)) as session:
            rows = {row.stage: row for row in transfers(session)}
            # What lies before the first frame is the parameters' way up, once.
            first = rows["transfer.to device"].bytes - parameters
            assert first == up + more
            assert rows["transfer.to host"].bytes == down
            assert rows["transfer.to host"].copies == copies[1]


def test_every_stage_has_a_law_or_a_reason(model):
    for kind in (model, derived.untied(model, 8)):
        check_laws(ON_DEVICE, kind, likely_features(kind, 8))


# -- a device of torch -------------------------------------------------------
