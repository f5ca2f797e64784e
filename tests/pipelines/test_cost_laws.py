"""Every stage of scoring says what it counts, and counts what its spans record."""

import functools
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from scoring_reference import likely_features
from search_graphs import settings, thousand_words

from pipelines.config import Config, Value, assign, get, option, unavailable_reason
from pipelines.config.dnn import Dnn
from pipelines.frontend.mfcc import Mfcc
from pipelines.frontend.parameters import FeatureParameters
from pipelines.models import nets
from pipelines.models.nets import Net
from pipelines.scoring import build_scorer, dnn, peaks
from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.dnn.products import PRODUCTS
from pipelines.search.viterbi import Viterbi
from profiler.analysis.machine_costs import MachineCosts
from profiler.costs import KERNEL_CALL, NUMPY_CALL, Cost, Linear
from profiler.machine.roofs import calibration
from profiler.machine.roofs.table import RATE, Roof, RoofTable
from profiler.spans import SPAN, Recorder
from tests.each import each

KINDS = {"tied": "ptm", "three streams": "continuous", "one stream": "continuous"}
SMALL: dict[str, Value] = {"gmm.selection.codewords": 16, "gmm.selection.expand": 5}


def choices(key: str) -> tuple[str, ...]:
    """What the setting may be."""
    found = option(key).choices
    assert found, key
    return tuple(map(str, found))


def mixtures() -> Iterator[tuple[str, dict[str, Value]]]:
    """(kind of model, settings) of every choice of selection, component and senones that may be combined."""
    for kind, model in KINDS.items():
        whole: dict[str, Value] = {"model": model}
        for key in ("gmm.component", "gmm.senones"):
            for choice in choices(key):
                yield kind, whole | {key: choice}
        yield kind, whole | {"threads": 2, "gmm.senones": "active"}
        yield kind, whole | {"frames.skip": 2}
        yield kind, whole | {"frames.skip": 2, "gmm.senones": "active"}
        yield kind, whole | {"frames.skip": 2, "frames.rule": "conditional"}
        for method in choices("gmm.selection.method"):
            chosen = whole | {"gmm.selection.enabled": True, "gmm.selection.method": method}
            for key in ("gmm.component", "gmm.senones"):
                for choice in choices(key):
                    yield kind, chosen | {key: choice}


def allowed(changes: Mapping[str, Value]) -> bool:
    """Whether these settings go together."""
    config = assign(Config(), {"model": changes["model"]})
    try:
        config = assign(config, SMALL | dict(changes))
    except ValueError:
        return False
    return all(unavailable_reason(config, key, get(config, key)) is None for key in changes)


def named(changes: Mapping[str, Value]) -> str:
    return " ".join(str(value) for value in changes.values())


ALLOWED = list({(kind, named(c)): (kind, c) for kind, c in mixtures() if allowed(c)}.values())


def check(costs: Mapping[str, Cost]) -> None:
    """Each of `costs` is a law, or says why there is none, and is the same from a file; calls are those measured."""
    for name, cost in costs.items():
        assert cost.unmodelled or not cost.is_empty, f"{name} has neither a law nor a reason"
        assert Cost.from_dict(cost.as_dict()) == cost
        assert set(cost.calls) <= {KERNEL_CALL, NUMPY_CALL}


@each("kind, changes", ALLOWED)
def test_mixtures_have_laws_that_count_what_the_spans_record(models, families, kind, changes):
    """No law counts for less than nothing, none of the stages goes without work, and one follows the other."""
    check(build_scorer(assign(Config(), SMALL | changes | {"block": 1}), models[kind]).costs())
    recorder = Recorder()
    lane = recorder.lane("decode", decode=True)
    scorer = build_scorer(assign(Config(), SMALL | changes), models[kind])
    scorer.stages(recorder)
    block = likely_features(models[kind], 16)
    scorer.reset()
    state = scorer.prepare(block, 0, lane)
    draw = np.random.default_rng(0)
    for t in range(len(block)):
        scorer.frame(state, t, np.flatnonzero(draw.random(scorer.n_senones) < 0.3) if t % 4 else None)
    spans = np.frombuffer(lane.take(), SPAN)
    ends = spans["start_ns"] + spans["duration_ns"]
    assert (spans["start_ns"][1:] >= ends[:-1]).all()
    names = {stage.id: stage.name for stage in recorder.stages}
    costs = scorer.costs()
    check(costs)
    for stage in set(spans["stage"].tolist()):
        mine = spans[spans["stage"] == stage]
        cost = costs[names[stage]]
        laws = [*cost.operations.values(), *cost.calls.values(), cost.bytes_min, cost.bytes_max]
        counts = [law.of(mine) for law in laws]
        assert all((count >= 0).all() for count in counts), names[stage]
        assert sum(float(count.sum()) for count in counts) > 0
        assert (cost.bytes_min.of(mine) <= cost.bytes_max.of(mine) * (1 + 1e-9)).all()
        assert cost.unmodelled or cost.working_set_bytes > 0
        if names[stage] == "score.gaussians":
            panels = families[kind].parameters.gaussians[..., 0, :]
            assert 0 < mine["work0"].sum() <= panels.size * len(block)
    if not {"vq-table", "active", "active-ci"} & set(changes.values()):
        assert "score.gaussians" in {names[stage] for stage in spans["stage"].tolist()}
    if "threads" in changes:
        assert (costs["score.gaussians"].threads, costs["score.lazy"].threads) == (2, 1)


WAYS = [*(Dnn(product=name) for name in PRODUCTS), Dnn(dtype="int8")]


@functools.cache
def read(name: str) -> Net:
    return nets.load(nets.find(name))


@functools.cache
def created(variant: int, name: str) -> dnn.Arithmetic:
    return dnn.create(WAYS[variant], read(name), 1, MAX_FRAMES)


def costs_of(dnn_settings: Dnn, name: str, frames: int) -> dict[str, Cost]:
    made, net = created(WAYS.index(dnn_settings), name), read(name)
    made.heads_used = 1
    found = {f"all/{name}": cost for name, cost in made.costs(frames).items()}
    if made.can_choose:
        found |= {f"some/{name}": cost for name, cost in made.costs_of_some(frames).items()}
        made.heads_used = net.card.heads
        found |= {f"heads/{name}": cost for name, cost in made.costs(frames).items()}
    return found


@each("variant", WAYS)
@each("net", nets.shipped())
def test_every_stage_of_every_net_has_a_law(net, variant):
    for frames in (1, 16, MAX_FRAMES):
        for name, cost in costs_of(variant, net, frames).items():
            assert not cost.is_empty, name
            assert cost.working_set_bytes > 0
            for work in (1.0, 16.0, 1616.0):
                least, most = (b.total(1, 1, (work, work, 0)) for b in (cost.bytes_min, cost.bytes_max))
                assert 0 < least <= most, name
            assert set(cost.calls) <= {KERNEL_CALL, NUMPY_CALL}
            assert Cost.from_dict(cost.as_dict()) == cost


@each("variant", WAYS)
def test_all_arithmetic_of_a_net_has_a_peak_on_a_machine_never_calibrated(variant):
    """Integers too: nothing waits for `asrscope calibrate`."""
    costs = costs_of(variant, "base", 16)
    config = assign(Config(), {"model": "dnn", "dnn.dtype": variant.dtype})
    quick = calibration.plan([1], peaks.of(config), whole=False)
    machine = MachineCosts(
        RoofTable(tuple(Roof(*step.key, 1e9, 1e9, 1e9, "op/s") for step in quick if step.key.kind == RATE))
    )
    for cost in costs.values():
        assert all(machine.operation_ns(name) is not None for name in cost.operations)
    assert not machine.missing


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
def test_the_best_rate_of_numbers_is_that_of_a_product_of_them(dtype):
    config = assign(Config(), {"model": "dnn", "dnn.dtype": dtype})
    for name, work in peaks.of(config).items():
        assert name == peaks.INT8
        work.make()(1)
        assert work.operations > 0


def test_more_heads_are_more_calls():
    made = dnn.create(Dnn(), read("multi-frame"), 1, MAX_FRAMES)
    one = made.costs(16)["score.output"].calls[KERNEL_CALL].fixed
    made.heads_used = 3
    assert made.costs(16)["score.output"].calls[KERNEL_CALL].fixed == 3 * one


def test_stages_of_the_front_end_have_laws():
    for p in (FeatureParameters(), FeatureParameters(remove_noise=True, remove_dc=True)):
        assert not any(cost.is_empty for cost in Mfcc(p).costs().values())


@pytest.fixture(scope="module")
def search():
    return Viterbi(thousand_words(), settings())


def test_every_stage_has_a_law_or_a_reason(search):
    for turns in (False, True):
        for name, cost in search.costs(turns).items():
            assert bool(cost.unmodelled) == (name == "search.backtrace")
            assert cost.unmodelled or not cost.is_empty
            assert Cost.from_dict(cost.as_dict()) == cost


def test_a_block_is_a_call_and_in_turns_each_frame_is(search):
    whole, turns = search.costs(), search.costs(True)
    assert whole["search.emit"].calls == {KERNEL_CALL: Linear(fixed=1.0)}
    assert not whole["search.prune"].calls
    for stage in ("search.emit", "search.prune", "search.active"):
        # Spans of many frames may be one.
        assert turns[stage].calls == {KERNEL_CALL: Linear(per_frame=1.0)}
    assert {n for n in whole if whole[n] != turns[n]} == {"search.emit", "search.prune"}


def test_accesses_lie_in_the_graph_its_slots_or_the_lists_of_the_living(search):
    graph, costs = search.graph, search.costs()
    whole, slots = graph.states.nbytes + graph.arcs.nbytes, 4 * graph.n_states
    lists = costs["search.prune"].working_set_bytes
    sizes = {
        name: [each.bytes for each in costs[name].accesses]
        for name in ("search.emit", "search.epsilon", "search.prune", "search.lattice")
    }
    assert sizes["search.emit"] == sizes["search.lattice"] == [slots]
    assert sizes["search.prune"] == [whole, lists, slots]
    assert sizes["search.epsilon"][0] == slots
    assert 0 < sizes["search.epsilon"][1] <= whole


def test_pruning_counts_the_slots_of_tokens_closed_up_but_not_of_their_arcs(search):
    graph = search.graph
    slots = search.costs()["search.prune"].accesses[2].count
    listed = 300.0
    tokens = listed / (1.0 + len(graph.arcs) / graph.n_states)
    assert slots.total(1.0, 1.0, (50.0, 7.0, listed)) == pytest.approx(7.0 + tokens)
