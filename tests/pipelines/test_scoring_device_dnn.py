"""A net on a device, on the processor in its place: against float64, and what placement does to its spans."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import sphinx_writer as writer
import torch
from device_scoring import LANE, check_laws, make, on_processor, placed, record, scored
from net_files import SHAPES, card, forward, net, write
from scoring_reference import brute_force, likely_features
from torch.utils.flop_counter import FlopCounterMode

from pipelines import config as settings
from pipelines.config import Config, presets
from pipelines.models import derived, sphinx
from pipelines.models.errors import ModelError
from pipelines.models.nets import Layer
from pipelines.scoring import build_scorer
from pipelines.scoring.device import gmm as device_gmm
from pipelines.scoring.device.arithmetic import Placed, of_piece
from pipelines.scoring.device.dnn import Layers
from pipelines.scoring.dnn.dense import OUTPUT_STAGE, SPLICE_STAGE
from profiler.analysis.breakdown import breakdown
from profiler.analysis.categories import SCORING_CATEGORIES
from profiler.analysis.device import hidden_ns, transfers
from profiler.session.reader import Session
from profiler.spans import Recorder
from tests.each import each

ON_DEVICE = settings.assign(Config(), {"device": "torch-cpu"})
FULL = "CUDA out of memory. Tried to allocate 20.00 MiB."


@pytest.fixture(scope="module")
def made(model):
    return net(card(*SHAPES[0], senones=model.n_senones))


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(5).normal(0, 3, (21, 39)).astype(np.float32)


@pytest.fixture(scope="module")
def expected(made, features):
    return forward(made, features)


@pytest.fixture(scope="module")
def on_device(made, tmp_path_factory) -> Config:
    path = write(tmp_path_factory.mktemp("net"), made, np.float32)
    chosen = {"dnn.net": str(path), "dnn.senones": "all", "device": "torch-cpu", "block": 8}
    return settings.check(settings.assign(presets.load("dnn").config, chosen))


# Of the largest score: 24 bits of fraction, 11 and 8, through up to four products.
@each("dtype, share", [("fp32", 3e-6), ("fp16", 3e-3), ("bf16", 2.4e-2)])
@each("layers", SHAPES)
def test_scores_are_those_of_the_formula_in_each_number_type(
    tmp_path, model, features, on_device, layers, dtype, share
):
    made = net(card(*layers, senones=model.n_senones))
    path = str(write(tmp_path, made, np.float32))
    config = placed(settings.assign(on_device, {"dnn.net": path}), dtype=dtype)
    scores = scored(make(config, model), features)
    assert scores.dtype == np.float32
    expected = forward(made, features)
    error = np.abs(scores - expected).max() / np.abs(expected).max()
    assert error < share
    assert dtype == "fp32" or error > share / 20


@each("block", [1, 5, 8, 200])
def test_any_block_gives_the_same_and_context_at_both_ends(model, on_device, block):
    features = np.random.default_rng(6).normal(0, 3, (150, 39)).astype(np.float32)
    found = scored(make(on_device, model), features, block)
    theirs = scored(build_scorer(on_processor(on_device), model), features, 16)
    np.testing.assert_allclose(found, theirs, atol=1e-4)


def test_a_frame_without_context_is_a_frame(tmp_path, model, features, on_device):
    made = net(card(Layer(8), senones=model.n_senones, left=0, right=0))
    config = settings.assign(on_device, {"dnn.net": str(write(tmp_path, made, np.float32))})
    skipping = settings.assign(config, {"frames.skip": 3})
    expected = forward(made, features)
    assert np.abs(scored(make(config, model), features) - expected).max() < 1e-4
    found = scored(make(skipping, model), features)
    assert np.abs(found - expected[np.arange(21) // 3 * 3]).max() < 1e-4


@pytest.mark.parametrize("kind", ["low-rank", "sparse"])
def test_a_net_made_smaller_while_running(model, features, expected, on_device, kind):
    recorder = Recorder()
    scorer = make(on_device, model, recorder)
    smaller = settings.assign(on_device, {"dnn.shrink": kind, "dnn.share": 0.5})
    assert scorer.needs(on_device) is None
    assert scorer.needs(smaller) is not None
    ready = scorer.make_ready(smaller, lambda *_: None, lambda: False)
    assert np.abs(scored(scorer, features) - expected).max() < 1e-4
    scorer.configure(smaller, ready)
    scorer.reset()
    found = scored(scorer, features)
    assert np.abs(found - expected).max() > 0.1
    theirs = scored(build_scorer(on_processor(smaller), model), features)
    np.testing.assert_allclose(found, theirs, atol=1e-4)
    # Every stage that the smaller net has, more layers perhaps, is known to the recorder.
    assert set(scorer.costs()) <= {stage.name for stage in recorder.stages}
    scorer.configure(on_device)
    scorer.reset()
    assert np.abs(scored(scorer, features) - expected).max() < 1e-4


def test_operations_are_those_that_torch_counts(made):
    layers = Layers(made)
    at_once = SimpleNamespace(device=SimpleNamespace(where="cpu"), work=lambda stage, step, *_, **__: step())
    on = Placed(at_once, "fp32")
    p = {name: torch.from_numpy(np.array(array)) for name, array in layers.arrays.items()}
    ids = dict.fromkeys(layers.stages, 0)
    with FlopCounterMode(display=False) as counter:
        x, out = torch.zeros(9, made.card.inputs), torch.zeros(9, made.card.senones)
        layers.score(p, x, out, on, of_piece(at_once, ids, 0))
    total = 0.0
    for name, law in layers.costs(9, on).items():
        products = law.operations.get(on.gemm)
        if products is not None:
            work = 9 * made.card.senones if name == OUTPUT_STAGE else 9
            total += products.total(1, 9, (work, 0, 0))
    assert total == counter.get_total_flops()


def test_bytes_of_every_move(tmp_path, model, on_device):
    features = np.zeros((16, 39), np.float32)
    # Each block brings its context: two frames before, three after.
    up, down = 2 * (8 + 5) * 39 * 4, 16 * 5126 * 4
    skipping = settings.assign(on_device, {"frames.skip": 3})
    for config, moved, copies in (
        (on_device, (up, down), 2),
        (placed(on_device, transfer="frame"), (up, down), 16),
        (placed(on_device, weights="each-block"), (up, down), 2),
        # Frames 0, 3, 6 and 9, 12, 15: what lies before the first one's context stays here.
        (skipping, ((12 + 12) * 39 * 4, 6 * 5126 * 4), 2),
        (placed(skipping, transfer="frame"), ((12 + 12) * 39 * 4, 6 * 5126 * 4), 6),
        (ON_DEVICE, (16 * 39 * 4, down), 2),
    ):
        path = tmp_path / "moves.asrs"
        path.unlink(missing_ok=True)
        arrays = make(config, model)._arithmetic.arrays.values()
        parameters = sum(array.size * (8 if array.dtype == np.int64 else 4) for array in arrays)
        # What lies before the first frame is the parameters' way up, once.
        times = 3 if config.placement.weights == "each-block" else 1
        with Session.open(record(path, config, model, features)) as session:
            rows = {row.stage: row for row in transfers(session)}
            assert rows["transfer.to device"].bytes - times * parameters == moved[0]
            assert rows["transfer.to host"].bytes == moved[1]
            assert rows["transfer.to host"].copies == copies


def test_every_stage_has_a_law_or_a_reason(model, on_device, features):
    seen = check_laws(on_device, model, features)
    assert {SPLICE_STAGE, OUTPUT_STAGE, "score.layer 3"} <= seen
    for kind in (model, derived.untied(model, 8)):
        check_laws(ON_DEVICE, kind, likely_features(kind, 8))


def test_full_memory_in_the_midst_goes_on_on_the_processor(model, features, expected, on_device, monkeypatch):
    scorer = make(placed(on_device, overlapped=True), model)
    whole, calls = torch.nn.functional.linear, itertools.count()

    def allocating(*parts):
        if next(calls) >= 6:  # in the second block
            raise torch.OutOfMemoryError(FULL + "\nmore")
        return whole(*parts)

    monkeypatch.setattr(torch.nn.functional, "linear", allocating)
    assert np.abs(scored(scorer, features) - expected).max() < 1e-4
    assert scorer.take_notices() == [
        "Scoring goes on on the processor: torch-cpu has too little memory "
        "(CUDA out of memory. Tried to allocate 20.00 MiB)."
    ]
    assert scorer.take_notices() == []
    # From here on the processor's scorer follows every setting.
    smaller = settings.assign(on_device, {"dnn.shrink": "sparse", "dnn.share": 0.5})
    assert scorer.needs(smaller) is not None
    scorer.configure(smaller, scorer.make_ready(smaller, lambda *_: None, lambda: False))
    scorer.reset()
    theirs = scored(build_scorer(on_processor(smaller), model), features)
    np.testing.assert_array_equal(scored(scorer, features), theirs)
    assert {"score.layer 1", OUTPUT_STAGE} <= set(scorer.costs())


def test_parameters_that_do_not_fit_go_to_the_processor(tmp_path, model, features, on_device, monkeypatch):
    scorer = make(on_device, model)
    made = net(card(Layer(12), senones=model.n_senones, left=6, right=1))
    larger = settings.assign(on_device, {"dnn.net": str(write(tmp_path, made, np.float32))})
    ready = scorer.make_ready(larger, lambda *_: None, lambda: False)

    def full(*_, **__):
        raise torch.OutOfMemoryError(FULL)

    with monkeypatch.context() as patched:
        patched.setattr(torch, "empty", full)
        scorer.configure(larger, ready)
    assert scorer.context == (6, 1)
    assert len(scorer.take_notices()) == 1
    assert np.abs(scored(scorer, features) - forward(made, features)).max() < 1e-3


def test_other_failures_are_not_taken_for_full_memory(model, features, on_device, monkeypatch):
    scorer = make(on_device, model)

    def wrong(*_):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(torch.nn.functional, "linear", wrong)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        scored(scorer, features)
    assert scorer.take_notices() == []


def test_a_graph_is_refused_in_one_sentence(on_device, model, monkeypatch):
    from pipelines.scoring import dnn

    monkeypatch.setattr(dnn, "read", lambda *_: object())
    with pytest.raises(ModelError, match=r"computes a net layer by layer.*choose device = cpu"):
        make(on_device, model)


@pytest.fixture(scope="module")
def features_gmm(model):
    return likely_features(model, 21)


@pytest.fixture(scope="module")
def expected_gmm(model, features_gmm):
    return brute_force(model, features_gmm)


# Eleven bits of a float16's fraction and eight of a bfloat16's, on log densities of some hundred nat.
@each("dtype, nat", [("fp32", 1e-3), ("fp16", 0.5), ("bf16", 5.0)])
def test_scores_of_the_real_model_in_each_number_type(model, features_gmm, expected_gmm, dtype, nat):
    scores = make(placed(ON_DEVICE, dtype=dtype), model).score(features_gmm, 0, LANE)
    assert scores.dtype == np.float32
    error = np.abs(scores - expected_gmm).max()
    assert error < nat
    assert dtype == "fp32" or error > 1e-3


@each("codebooks", [4, 1])
@each("densities", [1, 20])
def test_small_models_of_odd_sizes(tmp_path, codebooks, densities):
    small = sphinx.load(writer.write_model(tmp_path, codebooks, densities))
    block = likely_features(small, 13)
    scores = make(ON_DEVICE, small).score(block, 0, LANE)
    assert np.abs(scores - brute_force(small, block)).max() < 1e-3


def test_scores_of_a_continuous_model_whole_and_in_pieces(model, features_gmm, monkeypatch):
    owned = derived.untied(model, 8)
    expected = brute_force(owned, features_gmm)
    for piece in (device_gmm.PIECE_BYTES["cpu"], 700_000):
        monkeypatch.setitem(device_gmm.PIECE_BYTES, "cpu", piece)
        for dtype, nat in (("fp32", 1e-3), ("bf16", 5.0)):
            scores = make(placed(ON_DEVICE, dtype=dtype), owned).score(features_gmm, 0, LANE)
            assert np.abs(scores - expected).max() < nat


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


def test_a_block_begun_under_other_settings_is_scored_again(model, features_gmm, expected_gmm):
    scorer = make(placed(ON_DEVICE, overlapped=True), model)
    scorer.score(features_gmm[:8], 0, LANE)
    scorer.ahead(features_gmm[8:16], 8, LANE)
    scorer.configure(placed(ON_DEVICE, overlapped=True, dtype="bf16"))
    rough = np.abs(scorer.score(features_gmm[8:16], 8, LANE) - expected_gmm[8:16]).max()
    assert rough > 1e-2
    scorer.configure(placed(ON_DEVICE, overlapped=True))
    scorer.ahead(features_gmm[16:], 16, LANE)
    scorer.configure(settings.replace(placed(ON_DEVICE, overlapped=True), "frames.skip", 3))
    scores = scorer.score(features_gmm[16:], 16, LANE)
    assert np.array_equal(scores[3], scores[4])
    scorer.configure(placed(ON_DEVICE, overlapped=True))
    # Another block than was announced.
    assert np.abs(scorer.score(features_gmm[:8], 30, LANE) - expected_gmm[:8]).max() < 1e-3
    scorer.ahead(features_gmm[8:], 38, LANE)
    scorer.reset()
    assert np.abs(scorer.score(features_gmm[3:9], 51, LANE) - expected_gmm[3:9]).max() < 1e-3


def test_categories_add_up_and_the_waits_are_charged_to_what_ran(tmp_path, model):
    features_gmm = likely_features(model, 64)
    with Session.open(record(tmp_path / "a.asrs", ON_DEVICE, model, features_gmm)) as session:
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
    features_gmm = likely_features(model, 64)
    beside = {}
    for overlapped in (False, True):
        path = tmp_path / f"{overlapped}.asrs"
        record(path, placed(ON_DEVICE, overlapped=overlapped), model, features_gmm, search_s=0.02)
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
