"""Nets that torch computes on the processor, in bfloat16 or compiled whole: against float64, and their cost laws."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import codecache
from torch.utils.flop_counter import FlopCounterMode

from pipelines import availability
from pipelines.config import ConfigError, assign, check, presets
from pipelines.models.nets import Layer
from pipelines.scoring import build_scorer, with_context
from pipelines.scoring.dnn import bf16 as half
from pipelines.scoring.dnn import compiled
from pipelines.scoring.dnn.bf16 import Bf16Net
from pipelines.scoring.dnn.compiled import NET_STAGE, CompiledNet, CompileError
from pipelines.scoring.dnn.dense import ACTIVE_STAGE, OUTPUT_STAGE, SPLICE_STAGE, layer_stage
from pipelines.scoring.meter import Meter
from profiler.arrays import Array
from profiler.files import paths
from profiler.spans import SPAN, NullLane, Recorder
from tests.pipelines.net_files import SHAPES, card, forward, in_blocks, net, utterance, write
from tests.pipelines.shipped import model, speech

HEADS = 3
ROUNDED = 2.4e-2
"""Of the largest score: eight bits of fraction, through up to four products."""

has_compiler = pytest.mark.skipif(
    availability.compiler_unavailable_reason() is not None, reason="no compiler for torch.compile here"
)


@pytest.fixture(autouse=True)
def same_threads() -> Any:
    """Nets set how many threads torch computes on."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def error(scores: Array, expected: Array) -> float:
    """The largest, as a part of the largest score."""
    return float(np.abs(scores - expected).max() / np.abs(expected).max())


# -- bfloat16 --------------------------------------------------------------------------------------


@pytest.fixture(params=["laid out", "plain"])
def kernels(request: Any, monkeypatch: Any) -> str:
    """With weights in oneDNN's order, and as where the processor has no 16-bit instructions."""
    if request.param == "plain":
        monkeypatch.setattr(half, "has_fast_products", lambda: False)
    elif not half.has_fast_products():
        pytest.skip("this processor has no 16-bit products")
    return str(request.param)


@pytest.mark.parametrize("layers", SHAPES)
@pytest.mark.parametrize("block", [1, 5, 23])
def test_a_net_in_16_bits_is_the_formula_rounded(layers: Any, block: int, kernels: str) -> None:
    made, features = net(card(*layers)), utterance()
    halved = Bf16Net(made, 1, 32)
    assert halved._heads[0].laid_out == (kernels == "laid out")
    found = in_blocks(halved, features, block)
    assert ROUNDED / 20 < error(found, forward(made, features)) < ROUNDED


def test_each_head_answers_for_its_frame_also_in_the_next_block(kernels: str) -> None:
    made, features = net(card(*SHAPES[0], heads=HEADS)), utterance(16)
    halved = Bf16Net(made, 1, 32)
    around = with_context(features, halved.context)
    scores = np.empty((8, 50), np.float32)
    for at in (0, 8):
        halved.begin_some(halved.splice(around[at : at + 8 + 5], Meter()), Meter())
        # Frames 0 and 1 of the block lie 1 and 2 behind the last one of the block before.
        source = np.array([-1, -1, 2, 2, 2, 5, 5, 5])
        since = np.array([1, 2, 0, 1, 2, 0, 1, 2])
        halved.score_by_heads(source, since, scores, Meter())
        for t in range(0 if at else 2, 8):
            start = at + source[t]
            expected = forward(made, features, head=since[t])[start]
            assert error(scores[t], expected) < 2 * ROUNDED


def test_16_bits_change_scores_by_less_than_the_search_notices() -> None:
    exact, quick = (of_speech({"dnn.dtype": kind}) for kind in ("fp32", "bf16"))
    exact, quick = (x - x.max(1, keepdims=True) for x in (exact, quick))
    near = exact > -20  # nats below the best: what a beam can keep
    assert np.abs(exact - quick)[near].mean() < 0.05
    assert (exact.argmax(1) == quick.argmax(1)).mean() > 0.9


# -- compiled --------------------------------------------------------------------------------------


@cache
def compiled_net() -> tuple[Any, CompiledNet]:
    """One net for all, which also scores for the shipped model: the compiler takes a second for each kernel of it."""
    made = net(card(Layer(24), Layer(8, relu=False), senones=model().n_senones))
    return made, CompiledNet(made, 1, 32)


@has_compiler
@pytest.mark.parametrize("block", [1, 2, 5, 16, 23, 32])
def test_a_compiled_net_is_the_formula_and_nothing_is_compiled_later(block: int) -> None:
    made, whole = compiled_net()
    features = utterance(64)
    graphs = counters["stats"]["unique_graphs"]
    with torch.compiler.set_stance("fail_on_recompile"):
        found = in_blocks(whole, features, block)
    assert counters["stats"]["unique_graphs"] == graphs
    assert error(found, forward(made, features)) < 3e-6


@has_compiler
def test_no_header_is_compiled_into_a_folder_that_all_users_share() -> None:
    """Torch keeps those in a place of its own, whatever folder it is given."""
    compiled_net()
    precompiled = getattr(codecache, "_precompile_header", None)
    assert precompiled is None or precompiled.cache_info().currsize == 0


@has_compiler
@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_no_net_is_loaded_from_a_folder_that_others_can_write_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path))
    (tmp_path / paths.COMPILED).mkdir()
    (tmp_path / paths.COMPILED).chmod(0o777)
    with pytest.raises(CompileError, match=r"which others can write to.*; choose simd\.$"):
        CompiledNet(net(card(Layer(4))), 1, 8)
    assert not list((tmp_path / paths.COMPILED).iterdir())


@has_compiler
def test_a_compiled_net_without_hidden_layers() -> None:
    made, features = net(card(senones=model().n_senones)), utterance()
    assert error(in_blocks(CompiledNet(made, 1, 32), features, 7), forward(made, features)) < 3e-6


@has_compiler
def test_a_compiled_net_is_not_compiled_again_for_another_count_of_threads() -> None:
    _, whole = compiled_net()
    torch.set_num_threads(3)
    with torch.compiler.set_stance("fail_on_recompile"):
        in_blocks(whole, utterance(6), 3)


@has_compiler
def test_a_compiled_net_in_the_scorer_with_frames_skipped(tmp_path: Path) -> None:
    of_net = {"dnn.net": str(write(tmp_path, compiled_net()[0], np.float32))}
    every = of_speech(of_net)
    found = of_speech(of_net | {"dnn.product": "compiled", "frames.skip": 3})
    rows = np.arange(len(every)) // 3 * 3
    np.testing.assert_allclose(found, every[rows], atol=1e-3)
    assert np.abs(np.diff(every, axis=0)).max() > 1


@has_compiler
def test_without_a_folder_for_its_code_one_sentence_says_so(monkeypatch: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "file"))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    with pytest.raises(CompileError, match=r"cannot be used: /.+: [a-z ]+; choose simd\.$"):
        CompiledNet(net(card(Layer(4))), 1, 8)


def test_without_a_compiler_one_sentence_says_so(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    reason = "torch.compile needs a C++ compiler, and there is no no-such-compiler here"
    assert availability.unavailable_choices("dnn.product") == {"compiled": reason}
    with pytest.raises(CompileError, match="cannot be used: " + re.escape(reason)):
        CompiledNet(net(card(Layer(4))), 1, 8)
    monkeypatch.setenv("CXX", sys.executable)  # there, whatever it is
    monkeypatch.setattr(availability.sysconfig, "get_path", lambda _: str(tmp_path))
    assert f"no Python.h in {tmp_path}" in str(availability.compiler_unavailable_reason())


def test_a_compiler_that_fails_is_reported_in_one_sentence(monkeypatch: Any) -> None:
    monkeypatch.setattr(compiled, "compiler_unavailable_reason", lambda: None)

    def failing(_: Any) -> Any:
        def forward(_: Any) -> Any:
            raise RuntimeError("C++ compile error\nwith pages of output")

        return forward

    monkeypatch.setattr(torch, "compile", failing)
    with pytest.raises(CompileError, match=r"fails \(C\+\+ compile error\); choose simd\.$"):
        CompiledNet(net(card(Layer(4))), 1, 8)


def test_what_acts_with_a_compiled_net() -> None:
    base = assign(presets.load("dnn").config, {"dnn.product": "compiled", "dnn.senones": "all"})
    assert check(base) is base
    for refused, sentence in (
        ({"dnn.senones": "active"}, "dnn.senones = all"),
        ({"frames.rule": "multi-frame"}, "frames.rule = copy"),
    ):
        with pytest.raises(ConfigError, match=f"dnn.product=compiled acts only with {sentence}"):
            check(assign(base, refused))


# -- what they say they cost -----------------------------------------------------------------------


def counted(made: Any, frames: int) -> int:
    """Operations of the products, as torch counts them."""
    with FlopCounterMode(display=False) as counter:
        x = torch.zeros(frames, made.card.inputs)
        for weight, _, _ in [*made.matrices(), (*made.head(0), False)]:
            x = x @ torch.from_numpy(np.array(weight)).T
    return int(counter.get_total_flops())


def test_operations_in_16_bits_are_those_that_torch_counts() -> None:
    made = net(card(*SHAPES[0]))
    total = 0.0
    for name, law in Bf16Net(made, 1, 32).costs(9).items():
        work = 9 * 50 if name == OUTPUT_STAGE else 9
        if half.OPERATION in law.operations:
            total += law.operations[half.OPERATION].total(1, 9, (work, 0, 0))
    assert total == pytest.approx(counted(made, 9))


@has_compiler
def test_operations_of_a_compiled_net_are_those_that_torch_counts() -> None:
    made, whole = compiled_net()
    law = whole.costs(9)[NET_STAGE]
    assert law.operations["gemm"].total(1, 9, (9, 0, 0)) == counted(made, 9)


@has_compiler
def test_every_stage_of_a_compiled_net_has_a_law() -> None:
    _, whole = compiled_net()
    laws = whole.costs(16)
    assert set(laws) == set(whole.stages) == {SPLICE_STAGE, NET_STAGE}
    for law in laws.values():
        assert_sensible(law)


def assert_sensible(law: Any) -> None:
    assert not law.is_empty
    assert law.working_set_bytes > 0
    for work in (1.0, 16.0, 800.0):
        least, most = (bound.total(1, 1, (work, 0, 0)) for bound in (law.bytes_min, law.bytes_max))
        assert 0 < least <= most


def recorded(made: Any, score: Any) -> dict[str, int]:
    """The first work count of every stage that `score` records."""
    recorder, meter = Recorder(), Meter()
    lane = recorder.lane("decode", decode=True)
    meter.register(recorder, dict(made.stages))
    meter.begin(0, 7, lane)
    spliced = made.splice(utterance(7 + sum(made.context)), meter)
    score(spliced, np.empty((7, made.n_senones), np.float32), meter)
    names = {stage.id: stage.name for stage in recorder.stages}
    spans = np.frombuffer(lane.take(), SPAN)
    ends = spans["start_ns"] + spans["duration_ns"]
    assert (spans["start_ns"][1:] == ends[:-1]).all()
    return {names[int(span["stage"])]: int(span["work0"]) for span in spans}


def test_stages_carry_their_work() -> None:
    halved = Bf16Net(net(card(*SHAPES[0])), 1, 32)
    hidden = {SPLICE_STAGE: 7, **{layer_stage(i): 7 for i in (1, 2, 3)}}
    assert recorded(halved, halved.score) == hidden | {OUTPUT_STAGE: 350}

    def some(spliced: Array, scores: Array, meter: Meter) -> None:
        halved.begin_some(spliced, meter)
        halved.score_some(0, 2, np.arange(10), scores, meter)

    assert recorded(halved, some) == hidden | {ACTIVE_STAGE: 20}


@has_compiler
def test_a_compiled_net_is_one_stage() -> None:
    _, whole = compiled_net()
    assert recorded(whole, whole.score) == {SPLICE_STAGE: 7, NET_STAGE: 7}


# -- the shipped net on speech ---------------------------------------------------------------------


def of_speech(chosen: dict[str, Any]) -> Array:
    config = check(assign(presets.load("dnn").config, {"dnn.senones": "all", **chosen}))
    scorer = build_scorer(config, model())
    padded, beyond = with_context(speech(), scorer.context), sum(scorer.context)
    parts = []
    for at in range(0, len(speech()), 16):
        part = padded[at : min(at + 16, len(speech())) + beyond]
        parts.append(scorer.score(part, at, NullLane()).copy())
    return np.concatenate(parts)
