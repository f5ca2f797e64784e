"""A net on a device, on the processor in its place: against float64, and what placement does to its spans."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from device_scoring import LANE, check_laws, make, on_processor, placed, record
from net_files import SHAPES, card, forward, net, write
from torch.utils.flop_counter import FlopCounterMode

from pipelines import config as settings
from pipelines.config import Config, presets
from pipelines.device import COMPUTE
from pipelines.models.errors import ModelError
from pipelines.models.nets import Layer
from pipelines.scoring import build_scorer, with_context
from pipelines.scoring.device.arithmetic import PieceStages, Placed
from pipelines.scoring.device.dnn import Layers
from pipelines.scoring.device.scorer import DeviceScorer
from pipelines.scoring.dnn.dense import OUTPUT_STAGE, SPLICE_STAGE
from profiler.analysis.breakdown import breakdown
from profiler.analysis.device import transfers
from profiler.session.reader import Session
from profiler.spans import Recorder
from tests.each import each

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


def scored(scorer, features, block: int = 8, lane=LANE, ahead: bool = True):
    """A whole utterance, each block announced while the one before is searched."""
    padded, beyond = with_context(features, scorer.context), sum(scorer.context)
    blocks = [padded[at : at + block + beyond] for at in range(0, len(features), block)]
    found = []
    for i, part in enumerate(blocks):
        scores = scorer.score(part, i * block, lane)
        if ahead and i + 1 < len(blocks) and isinstance(scorer, DeviceScorer):
            scorer.ahead(blocks[i + 1], (i + 1) * block, lane)
        if isinstance(scores, torch.Tensor):
            scorer._work.wait_for(scorer._work.mark(COMPUTE), COMPUTE)
        found.append(np.array(scores.numpy() if isinstance(scores, torch.Tensor) else scores))
    return np.concatenate(found)


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


def test_another_net_with_other_context(tmp_path, model, features, on_device):
    made = net(card(Layer(12), senones=model.n_senones, left=6, right=1))
    other = settings.assign(on_device, {"dnn.net": str(write(tmp_path, made, np.float32))})
    scorer = make(on_device, model)
    scored(scorer, features)
    scorer.configure(other, scorer.make_ready(other, lambda *_: None, lambda: False))
    scorer.reset()
    assert scorer.context == (6, 1)
    assert np.abs(scored(scorer, features) - forward(made, features)).max() < 1e-4


def test_operations_are_those_that_torch_counts(made):
    layers = Layers(made)
    at_once = SimpleNamespace(device=SimpleNamespace(where="cpu"), work=lambda stage, step, *_, **__: step())
    on = Placed(at_once, "fp32")
    p = {name: torch.from_numpy(np.array(array)) for name, array in layers.arrays.items()}
    ids = dict.fromkeys(layers.stages, 0)
    with FlopCounterMode(display=False) as counter:
        x, out = torch.zeros(9, made.card.inputs), torch.zeros(9, made.card.senones)
        layers.score(p, x, out, PieceStages(on, ids, 0))
    total = 0.0
    for name, law in layers.costs(9, on).items():
        products = law.operations.get(on.gemm)
        if products is not None:
            work = 9 * made.card.senones if name == OUTPUT_STAGE else 9
            total += products.total(1, 9, (work, 0, 0))
    assert total == counter.get_total_flops()


# -- what is recorded ------------------------------------------------------------------------------


def test_bytes_of_every_move(tmp_path, model, on_device):
    parameters = sum(4 * array.size for array in make(on_device, model)._arithmetic.arrays.values())
    features = np.zeros((16, 39), np.float32)
    # Each block brings its context: two frames before, three after.
    up, down = 2 * (8 + 5) * 39 * 4, 16 * 5126 * 4
    skipping = settings.assign(on_device, {"frames.skip": 3})
    for config, moved, copies in (
        (on_device, (up, down), (2, 2)),
        (placed(on_device, transfer="frame"), (up, down), (16, 16)),
        (placed(on_device, weights="each-block"), (up + 2 * parameters, down), (None, 2)),
        # Frames 0, 3, 6 and 9, 12, 15: what lies before the first one's context stays here.
        (skipping, ((12 + 12) * 39 * 4, 6 * 5126 * 4), (2, 2)),
        (placed(skipping, transfer="frame"), ((12 + 12) * 39 * 4, 6 * 5126 * 4), (6, 6)),
    ):
        path = tmp_path / "moves.asrs"
        path.unlink(missing_ok=True)
        with Session.open(record(path, config, model, features)) as session:
            rows = {row.stage: row for row in transfers(session)}
            # What lies before the first frame is the parameters' way up, once.
            assert rows["transfer.to device"].bytes - parameters == moved[0]
            assert rows["transfer.to host"].bytes == moved[1]
            assert rows["transfer.to host"].copies == copies[1]


def test_spans_carry_their_work_and_tile_the_wall_time(tmp_path, model, on_device, made):
    features = np.zeros((64, 39), np.float32)
    with Session.open(record(tmp_path / "a.asrs", on_device, model, features)) as session:
        parts = breakdown(session)
        assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns)
        rows = {(row.lane, row.name): row for row in parts.stages}
        output = rows["torch-cpu compute", OUTPUT_STAGE]
        assert output.work["senones"] == 64 * 5126
        # As padded as they are: a multiple of eight senones.
        assert output.flops == pytest.approx(2 * 8 * 64 * 5128)
        assert rows["torch-cpu compute", SPLICE_STAGE].work["frames"] == 64
        decode = {name for lane, name in rows if lane == "decode"}
        assert "score.launch" in decode


def test_every_stage_has_a_law_or_a_reason(model, on_device, features):
    seen = check_laws(on_device, model, features)
    assert {SPLICE_STAGE, OUTPUT_STAGE, "score.layer 3"} <= seen


# -- devices that are too small, and what cannot be ------------------------------------------------


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
