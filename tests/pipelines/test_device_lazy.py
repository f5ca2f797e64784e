"""Scoring and search on a device that works as late, and in as odd an order, as streams and events allow.

Whatever the schedule, the result is that of doing everything at once; and where a wait is left out or a buffer is used
again too early, some schedule shows it.
"""

import itertools
from typing import Any

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.config import Config
from pipelines.device import COMPUTE, DeviceWork, HostDevice
from pipelines.models import derived, sphinx
from pipelines.scoring.device import gmm as device_gmm
from pipelines.scoring.device import scorer as device_scorer
from pipelines.scoring.device.scorer import DeviceScorer
from pipelines.scoring.layered import with_context
from pipelines.search.device import search as device_search
from pipelines.search.device.frontier import Room
from pipelines.search.device.search import DeviceSearch
from pipelines.search.device.viterbi import DeviceViterbi
from profiler.arrays import Array
from profiler.recording.layout import SPAN
from profiler.spans import Cost, Linear, NullLane, Recorder
from tests.each import each
from tests.pipelines import net_files, search_graphs
from tests.pipelines.device_scoring import placed
from tests.pipelines.lazy_device import EAGER, LATE, SCHEDULES, LazyDevice
from tests.pipelines.net_files import card, net, write
from tests.pipelines.scoring_reference import brute_force, likely_features

LANE = NullLane()
BLOCK = 5
PLACEMENTS = [
    {"weights": weights, "transfer": transfer, "overlapped": overlapped, "graphs": graphs}
    for weights, transfer, overlapped, graphs in itertools.product(
        ("resident", "each-block"), ("block", "frame"), (False, True), (False, True)
    )
]


@pytest.fixture(scope="module")
def features(tied: Any) -> Array:
    return likely_features(tied, 23)


def config_of(**chosen: Any) -> Config:
    return settings.assign(Config(), {"device": "torch-cpu", "block": BLOCK, **chosen})


def scored(device: LazyDevice, config: Config, model: Any, features: Array, keep: bool) -> Array:
    """Scores of all blocks, each read when the scorer gives it out, as the search would."""
    work = DeviceWork(device, Recorder(), LANE)  # type: ignore[arg-type]
    scorer = DeviceScorer(config, model, work, lambda: pytest.fail("no spare"), keep)
    scorer.warm_up()
    padded, beyond = with_context(features, scorer.context), sum(scorer.context)
    blocks = [padded[at : at + BLOCK + beyond] for at in range(0, len(features), BLOCK)]
    found: list[Array] = []
    for i, block in enumerate(blocks):
        scores = scorer.score(block, i * BLOCK, LANE)
        if keep:
            # Read on the device, in the order of its stream.
            device.run(COMPUTE, lambda there=scores: found.append(there.numpy().copy()))
        if i + 1 < len(blocks):
            scorer.ahead(blocks[i + 1], (i + 1) * BLOCK, LANE)
        if keep:
            device.wait(device.mark(COMPUTE))
        else:
            # The search reads them while the next block is under way.
            found.append(scores.copy())
    return np.concatenate(found)


@each("placement", PLACEMENTS)
def test_every_placement_scores_the_same_under_every_schedule(tied, features, placement):
    expected = brute_force(tied, features)
    for skip, keep in ((1, False), (3, True)):
        config = placed(config_of(**{"frames.skip": skip}), **placement)
        eager = scored(LazyDevice(EAGER), config, tied, features, keep)
        assert np.abs(eager - expected[np.arange(23) // skip * skip]).max() < 1e-3
        for schedule in SCHEDULES:
            device = LazyDevice(schedule)
            found = scored(device, config, tied, features, keep)
            np.testing.assert_array_equal(found, eager, err_msg=schedule)
            assert (device.captured > 0) == placement["graphs"]


def test_a_net_scores_the_same_under_every_schedule(tied, tmp_path):
    made = net(card(senones=tied.n_senones))
    path = write(tmp_path, made, np.float32)
    features = np.random.default_rng(3).normal(0, 2, (23, 39)).astype(np.float32)
    expected = net_files.forward(made, features)
    for placement, (skip, keep) in itertools.product(PLACEMENTS, ((1, False), (3, True))):
        chosen = {"model": "dnn", "dnn.net": str(path), "dnn.senones": "all", "frames.skip": skip}
        config = placed(config_of(**chosen), **placement)
        eager = scored(LazyDevice(EAGER), config, tied, features, keep)
        assert np.abs(eager - expected[np.arange(23) // skip * skip]).max() < 1e-4
        for schedule in SCHEDULES if placement["overlapped"] else ():
            found = scored(LazyDevice(schedule), config, tied, features, keep)
            np.testing.assert_array_equal(found, eager, err_msg=schedule)


def test_a_wait_between_streams_that_is_left_out_shows(tied, features):
    config = placed(config_of(), overlapped=True)
    eager = LazyDevice(EAGER)
    expected = scored(eager, config, tied, features, False)
    # Of the last three blocks: features before the products, products before the scores.
    for number in range(eager.follows - 5, eager.follows + 1):
        wrong = False
        for schedule in SCHEDULES:
            device = LazyDevice(schedule, follows_left_out=frozenset({number}))
            found = scored(device, config, tied, features, False)
            wrong |= not np.array_equal(found, expected)
        assert wrong, number


def test_buffers_used_again_too_early_show(tied, features, monkeypatch):
    config = placed(config_of(), overlapped=True)
    expected = scored(LazyDevice(EAGER), config, tied, features, False)

    made = device_scorer.slot
    both: list[Any] = []

    def one(*of: Any) -> Any:
        both.append(made(*of))
        return both[-1 if len(both) % 2 else -2]

    monkeypatch.setattr(device_scorer, "slot", one)
    schedules = EAGER, *SCHEDULES  # what is ahead of its time overwrites what was not read yet
    found = [scored(LazyDevice(s), config, tied, features, False) for s in schedules]
    assert not all(np.array_equal(each, expected) for each in found)


def decode_together(device: LazyDevice, graph: Any, batches: list[Array], lane: Any = LANE) -> list[Any]:
    """Decode utterances of unlike lengths together, in blocks of 4 frames; return words and costs."""
    recorder = Recorder()
    work = DeviceWork(device, recorder, lane)  # type: ignore[arg-type]
    search = DeviceSearch(graph, search_graphs.settings(9.0, 60), work, len(batches))
    found = []
    for _ in range(2):
        search.begin()
        longest = max(len(one) for one in batches)
        for at in range(0, longest, 4):
            lengths = [min(max(len(one) - at, 0), 4) for one in batches]
            block = np.zeros((max(lengths), len(batches), batches[0].shape[1]), np.float32)
            for b, (one, n) in enumerate(zip(batches, lengths, strict=True)):
                block[:n, b] = one[at : at + n]
            search.advance(block, lengths, at, lane)
        found += [(one.words(True)[0], one.best_cost) for one in search.utterances]
    return found


@pytest.mark.parametrize("batch", [1, 3])
def test_searches_find_the_same_under_every_schedule(batch, monkeypatch):
    monkeypatch.setattr(device_search, "FIRST_ROOM", Room(4, 8))
    graph = search_graphs.random_graph(1, True)
    batches = [search_graphs.smooth_scores(1 + b, 15 - 4 * b, 7) for b in range(batch)]
    expected = decode_together(LazyDevice(EAGER), graph, batches)
    assert any(words for words, _ in expected)
    for schedule in SCHEDULES:
        device = LazyDevice(schedule)
        assert decode_together(device, graph, batches) == expected
        assert device.captured


def test_whatever_the_search_waits_for_is_no_work_of_the_host():
    """Inside `search.launch` nothing but the host's own work counts: taking memory and waiting have their own names."""
    device, recorder = LazyDevice(LATE), Recorder()
    lane = recorder.lane("decode", decode=True)
    waited: list[tuple[int, int]] = []
    wait = device.wait

    def timed(event: Any) -> None:
        begin = recorder.clock()
        wait(event)
        waited.append((begin, recorder.clock()))

    device.wait = timed  # type: ignore[method-assign]
    work = DeviceWork(device, recorder, lane)  # type: ignore[arg-type]
    graph = search_graphs.random_graph(1, True)
    scores = search_graphs.smooth_scores(1, 19, 7)
    search = DeviceSearch(graph, search_graphs.settings(9.0, 60), work)
    search.stages(recorder)
    search.begin()
    for at in range(0, 19, 4):
        part = scores[at : at + 4]
        search.advance(part[:, None], [len(part)], at, lane)
    spans = np.frombuffer(lane.take(), SPAN)
    names = [stage.name for stage in recorder.stages]
    assert any(names[n] == "device.prepare" for n in spans["stage"])
    for span in spans[spans["stage"] == recorder.stage_id("search.launch")]:
        begin, end = span["start_ns"], span["start_ns"] + span["duration_ns"]
        assert not any(begin < until and since < end for since, until in waited)


BLOCK_COLD = 8


def scorer_of(tied: Any, device: Any, work: DeviceWork | None = None, **chosen: Any) -> DeviceScorer:
    config = settings.assign(Config(), {"device": "torch-cpu", "block": BLOCK_COLD, **chosen})
    work = work or DeviceWork(device, Recorder(), LANE)
    return DeviceScorer(config, tied, work, lambda: pytest.fail("no spare"))


def kernel_counts(cost: Cost, name: str = "launch") -> list[Linear]:
    """Return the number of kernels in a law; or of views; or of kernels of graphs."""
    return [count for kind, count in cost.calls.items() if kind == f"{name}@cuda"]


def test_kernels_are_counted_by_stage_and_a_graph_is_one(tied):
    for graphs in (False, True):
        device = LazyDevice(EAGER)
        scorer = scorer_of(tied, device, **{"placement.graphs": graphs})
        scorer.warm_up()
        # A recogniser is warm before a session has stages for it.
        recorder = Recorder()
        for name in ("setup.graph", "frontend.mfcc"):
            recorder.stage(name, "setup")
        scorer.stages(recorder)
        launches = {name: scorer.launches(name) for name in scorer._arithmetic.stages}
        if graphs:
            assert set(launches.values()) == {1.0}
        else:
            # exp: a maximum, its floor, a copy to float32, a sum, the difference, the exponential.
            assert 3 <= launches["score.exp"] <= 8
            assert all(count >= 1 for count in launches.values())
        device.where = "cuda"  # of a processor's laws none says how many
        laws = scorer.costs()
        assert all(kernel_counts(laws[name]) == [Linear(fixed=each)] for name, each in launches.items())
        views, held = (
            {name: sum(each.fixed for each in kernel_counts(laws[name], kind)) for name in launches}
            for kind in ("view", "held")
        )
        # A graph has the kernels in it, one after the other, and Python asks for no view of anything.
        assert held["score.exp"] > 3 if graphs else not any(held.values())
        assert not any(views.values()) if graphs else views["score.mixture"] > 3


def test_scoring_and_search_on_one_device_count_their_own_kernels(tied):
    """Before a session has stages for them both number theirs from nought."""
    device = LazyDevice(EAGER)
    device.can_capture = False
    work = DeviceWork(device, Recorder(), LANE)  # type: ignore[arg-type]
    scorer = scorer_of(tied, device, work)
    search = DeviceViterbi(search_graphs.random_graph(1, True), search_graphs.settings(), work)
    laws = []
    for one in (scorer, search):
        one.warm_up()
        device.where = "cuda"
        laws.append({**scorer.costs(), **search.costs()})
        device.where = "cpu"
    assert [kernel_counts(each["search.frames"]) != [] for each in laws] == [False, True]
    assert laws[0]["score.exp"] == laws[1]["score.exp"]


def test_memory_of_a_device_is_taken_by_the_stream_that_first_touches_it(tied, monkeypatch):
    """Memory of torch's own stream may still be in use there, which no other stream waits for."""
    import torch

    device, outside = LazyDevice(EAGER), []
    for name in ("empty", "zeros", "ones", "full"):
        made = getattr(torch, name)

        def noted(*args: Any, made: Any = made, **more: Any) -> Any:
            if more.get("device") is not None and not device.works:
                outside.append(made.__name__)
            return made(*args, **more)

        monkeypatch.setattr(torch, name, noted)
    work = DeviceWork(device, Recorder(), LANE)  # type: ignore[arg-type]
    scorer = scorer_of(tied, device, work)
    scorer.warm_up()
    scorer.score(likely_features(tied, 3), 0, LANE)
    DeviceViterbi(search_graphs.random_graph(1, True), search_graphs.settings(), work).warm_up()
    assert outside == []


def test_every_class_that_device_code_names_has_a_roof_that_is_measured():
    """Exponentials, logarithms and multiply-adds had none: their stages computed nothing, or vanished."""
    import torch

    from pipelines.scoring.device import dnn
    from pipelines.scoring.device.arithmetic import SIZES, Placed
    from profiler.machine.roofs import device as device_roofs
    from profiler.machine.roofs.table import Roof, RoofTable

    keys = [key for key, _ in device_roofs.steps(torch, device_roofs.Device("cuda", "cuda", lambda: None), [])]
    roofs = (Roof(*key, 1e9, 1e9, 1e9, "") for key in keys)
    table = RoofTable(tuple(roofs))
    work = DeviceWork(HostDevice(), Recorder(), NullLane())
    work.device.where = "cuda"  # type: ignore[misc]
    model = sphinx.load(sphinx.default_directory())
    kinds = (device_gmm.Tied(model), device_gmm.Owned(derived.untied(model, 2)), dnn.Layers(net(card())))
    costs = [
        cost for arithmetic in kinds for dtype in SIZES for cost in arithmetic.costs(16, Placed(work, dtype)).values()
    ]
    work.device.where = "cpu"  # type: ignore[misc]
    search = DeviceSearch(search_graphs.random_graph(1, True), search_graphs.settings(), work)
    work.device.where = "cuda"  # type: ignore[misc]
    costs += [cost for cost in search.costs().values() if cost.device]
    named = {name for cost in costs for name in cost.operations}
    assert {"exp@cuda", "log@cuda", "fma@cuda"} <= named
    assert [name for name in sorted(named) if table.rate(name) is None] == []
    assert table.call("launch@cuda") is not None
