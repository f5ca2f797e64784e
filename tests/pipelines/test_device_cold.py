"""What a device does for the first time happens before it counts; and what a search gives it, none contends for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.config import Config
from pipelines.device import DeviceWork, HostDevice
from pipelines.models import derived, sphinx
from pipelines.scoring.device import gmm as device_gmm
from pipelines.scoring.device.scorer import DeviceScorer
from pipelines.search.device.search import DeviceSearch
from pipelines.search.device.viterbi import DeviceViterbi
from profiler.spans import Cost, Linear, NullLane, Recorder
from tests.pipelines import search_graphs
from tests.pipelines.lazy_device import EAGER, LazyDevice
from tests.pipelines.net_files import card, net
from tests.pipelines.scoring_reference import likely_features

LANE = NullLane()
BLOCK = 8


def scorer_of(tied: Any, device: Any, work: DeviceWork | None = None, **chosen: Any) -> DeviceScorer:
    config = settings.assign(Config(), {"device": "torch-cpu", "block": BLOCK, **chosen})
    work = work or DeviceWork(device, Recorder(), LANE)
    return DeviceScorer(config, tied, work, lambda: pytest.fail("no spare"))


def kernel_counts(cost: Cost, name: str = "launch") -> list[Linear]:
    """Return the number of kernels in a law; or of views; or of kernels of graphs."""
    return [count for kind, count in cost.calls.items() if kind == f"{name}@cuda"]


def test_kernels_are_counted_by_stage_and_a_graph_is_one(tied: Any) -> None:
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


def test_scoring_and_search_on_one_device_count_their_own_kernels(tied: Any) -> None:
    """Before a session has stages for them both number theirs from nought."""
    device = LazyDevice(EAGER)
    device.can_capture = False
    work = DeviceWork(device, Recorder(), LANE)  # type: ignore[arg-type]
    scorer = scorer_of(tied, device, work)
    search = DeviceViterbi(search_graphs.random_graph(1, True), search_graphs.settings(), work)
    laws = []
    for warmed in ((scorer,), (search,)):
        for each in warmed:
            each.warm_up()
        device.where = "cuda"
        laws.append({**scorer.costs(), **search.costs()})
        device.where = "cpu"
    assert [kernel_counts(each["search.frames"]) != [] for each in laws] == [False, True]
    assert laws[0]["score.exp"] == laws[1]["score.exp"]


def test_memory_of_a_device_is_taken_by_the_stream_that_first_touches_it(
    tied: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def watching(note: Callable[[str, Any], None]) -> Any:
    """Make a context that calls `note` for every operation that torch dispatches, with name and arguments."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            note(str(func), args)
            return func(*args, **(kwargs or {}))

    return Watching()  # type: ignore[no-untyped-call]


def test_unused_places_of_a_search_lead_to_different_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """They all led to the target of arc 0: one address, which every thread of a device would have fought for."""
    import torch

    most: list[int] = []

    def note(name: str, args: Any) -> None:
        if "scatter_reduce" in name:
            most.append(int(torch.bincount(args[2]).max()))

    graph = search_graphs.random_graph(1, True)
    scores = search_graphs.smooth_scores(1, 6, 7)
    work = DeviceWork(LazyDevice(EAGER), Recorder(), LANE)  # type: ignore[arg-type]
    search = DeviceSearch(graph, search_graphs.settings(9.0, 60), work)
    with watching(note):
        search.advance(scores[:, None], [len(scores)], 0, LANE)
    places, states = search._room.arcs, search._arcs.n_states + 1
    arcs_into = int(np.bincount(search._arcs.target).max())
    assert max(most) <= -(-places // states) + arcs_into


def test_every_class_that_device_code_names_has_a_roof_that_is_measured() -> None:
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
    assert table.overhead_ns("launch@cuda") is not None
