"""Scoring and search on a device that works as late, and in as odd an order, as streams and events allow.

Whatever the schedule, the result is that of doing everything at once; and where a wait is left out or a buffer is used
again too early, some schedule shows it.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.config import Config
from pipelines.device import COMPUTE, DeviceWork, HostDevice
from pipelines.scoring.device import scorer as device_scorer
from pipelines.scoring.device.batch import BLOCK_FRAMES, Batch
from pipelines.scoring.device.scorer import DeviceScorer
from pipelines.scoring.layered import with_context
from pipelines.search.device import search as device_search
from pipelines.search.device.frontier import Room
from pipelines.search.device.search import DeviceSearch
from profiler.arrays import Array
from profiler.recording.layout import SPAN
from profiler.spans import NullLane, Recorder
from tests.each import each
from tests.pipelines import net_files, search_graphs
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


def placed(config: Config, placement: dict[str, Any]) -> Config:
    return settings.assign(config, {f"placement.{k}": v for k, v in placement.items()})


def scored(device: LazyDevice, config: Config, model: Any, features: Array, keep: bool) -> Array:
    """Scores of all blocks, each read when the scorer gives it out, as the search would."""
    from pipelines.scoring.layered import with_context

    work = DeviceWork(device, Recorder(), LANE)  # type: ignore[arg-type]
    scorer = DeviceScorer(config, model, work, lambda: pytest.fail("no spare"), keep)
    scorer.warm_up()
    padded, beyond = with_context(features, scorer.context), sum(scorer.context)
    blocks = [padded[at : at + BLOCK + beyond] for at in range(0, len(features), BLOCK)]
    found = []
    for i, block in enumerate(blocks):
        scores = scorer.score(block, i * BLOCK, LANE)
        if keep:
            copied: list[Array] = []
            # Read on the device, in the order of its stream.
            device.run(COMPUTE, lambda there=scores, to=copied: to.append(there.numpy().copy()))
        else:
            copied = [scores]
        if i + 1 < len(blocks):
            scorer.ahead(blocks[i + 1], (i + 1) * BLOCK, LANE)
        if not keep:
            # The search reads them while the next block is under way.
            copied = [np.array(copied[0])]
        else:
            device.wait(device.mark(COMPUTE))
        found += copied
    return np.concatenate(found)


@each("placement", PLACEMENTS)
def test_every_placement_scores_the_same_under_every_schedule(
    tied: Any, features: Array, placement: dict[str, Any]
) -> None:
    expected = brute_force(tied, features)
    for skip, keep in ((1, False), (3, True)):
        config = placed(config_of(**{"frames.skip": skip}), placement)
        eager = scored(LazyDevice(EAGER), config, tied, features, keep)
        assert np.abs(eager - expected[np.arange(23) // skip * skip]).max() < 1e-3
        for schedule in SCHEDULES:
            device = LazyDevice(schedule)
            found = scored(device, config, tied, features, keep)
            np.testing.assert_array_equal(found, eager, err_msg=schedule)
            assert (device.captured > 0) == placement["graphs"]


def test_a_net_scores_the_same_under_every_schedule(tied: Any, tmp_path: Any) -> None:
    made = net(card(senones=tied.n_senones))
    path = write(tmp_path, made, np.float32)
    features = np.random.default_rng(3).normal(0, 2, (23, 39)).astype(np.float32)
    expected = net_files.forward(made, features)
    for placement, (skip, keep) in itertools.product(PLACEMENTS, ((1, False), (3, True))):
        chosen = {"model": "dnn", "dnn.net": str(path), "dnn.senones": "all", "frames.skip": skip}
        config = placed(config_of(**chosen), placement)
        eager = scored(LazyDevice(EAGER), config, tied, features, keep)
        assert np.abs(eager - expected[np.arange(23) // skip * skip]).max() < 1e-4
        for schedule in SCHEDULES if placement["overlapped"] else ():
            found = scored(LazyDevice(schedule), config, tied, features, keep)
            np.testing.assert_array_equal(found, eager, err_msg=schedule)


def test_a_wait_between_streams_that_is_left_out_shows(tied: Any, features: Array) -> None:
    config = placed(config_of(), {"overlapped": True})
    eager = LazyDevice(EAGER)
    expected = scored(eager, config, tied, features, False)
    # Of the last three blocks: features before the products, products before the scores.
    for number in range(eager.calls["follow"] - 5, eager.calls["follow"] + 1):
        wrong = False
        for schedule in SCHEDULES:
            device = LazyDevice(schedule, follows_left_out=frozenset({number}))
            found = scored(device, config, tied, features, False)
            wrong |= not np.array_equal(found, expected)
        assert wrong, number


def test_buffers_used_again_too_early_show(tied: Any, features: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    config = placed(config_of(), {"overlapped": True})
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


# -- search ----------------------------------------------------------------------------------------


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
def test_searches_find_the_same_under_every_schedule(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_search, "FIRST_ROOM", Room(4, 8))
    graph = search_graphs.random_graph(1, True)
    batches = [search_graphs.smooth_scores(1 + b, 15 - 4 * b, 7) for b in range(batch)]
    expected = decode_together(LazyDevice(EAGER), graph, batches)
    assert any(words for words, _ in expected)
    for schedule in SCHEDULES:
        device = LazyDevice(schedule)
        assert decode_together(device, graph, batches) == expected
        assert device.captured


def test_whatever_the_search_waits_for_is_no_work_of_the_host() -> None:
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


# -- several utterances scored together on a device ------------------------------------------------


def test_utterances_scored_together_score_as_if_alone(tied: Any) -> None:
    features = likely_features(tied, BLOCK_FRAMES + 9)
    expected = brute_force(tied, features)
    config = settings.assign(Config(), {"device": "torch-cpu"})
    devices = [HostDevice(), *(LazyDevice(schedule) for schedule in SCHEDULES)]
    for device in devices:
        work = DeviceWork(device, Recorder(), LANE)  # type: ignore[arg-type]
        batch = Batch(config, tied, work, 3)
        for at, n in ((0, BLOCK_FRAMES), (BLOCK_FRAMES, 9)):
            parts = [features[at : at + n], features[at : at + n // 2], features[:0]]
            scores = batch.score(parts, at)
            assert tuple(scores.shape) == (n, 3, tied.n_senones)
            work.wait_for(work.mark(COMPUTE), COMPUTE)
            found = scores.numpy()
            assert np.abs(found[:, 0] - expected[at : at + n]).max() < 1e-3
            assert np.abs(found[: n // 2, 1] - expected[at : at + n // 2]).max() < 1e-3
    assert {"score.gather", *batch._arithmetic.stages} <= set(batch.costs())
    with pytest.raises(ValueError, match="expected 3 blocks of at most 64 frames"):
        batch.score([features], 0)


def together(device: LazyDevice, tied: Any) -> list[Array]:
    """Scores of three calls, each read by the compute stream when it comes to it, and by nobody before."""
    features = likely_features(tied, 3 * 8)
    config = settings.assign(Config(), {"device": "torch-cpu"})
    batch = Batch(config, tied, DeviceWork(device, Recorder(), LANE), 2)  # type: ignore[arg-type]
    found: list[Array] = []
    for at in range(0, 24, 8):
        scores = batch.score([features[at : at + 8], features[at : at + 5]], at)
        device.run(COMPUTE, lambda there=scores: found.append(there.numpy().copy()))
    device.wait(device.mark(COMPUTE))
    return found


def test_utterances_together_score_the_same_under_every_schedule(tied: Any) -> None:
    """The host waits before it fills its buffer anew; either stream waits before it takes over from the other."""
    expected = together(LazyDevice(EAGER), tied)
    for schedule in SCHEDULES:
        np.testing.assert_array_equal(together(LazyDevice(schedule), tied), expected)


def test_nets_score_utterances_together_with_their_context(tied: Any, tmp_path: Path) -> None:
    net = net_files.net(net_files.card(senones=tied.n_senones))
    path = net_files.write(tmp_path, net, np.float32)
    chosen = {"device": "torch-cpu", "model": "dnn", "dnn.net": str(path), "dnn.senones": "all"}
    batch = Batch(settings.assign(Config(), chosen), tied, DeviceWork(HostDevice(), Recorder(), LANE), 2)
    utterances = [net_files.utterance(n) for n in (23, 11)]
    padded = [with_context(one, batch.context) for one in utterances]
    scores = batch.score(padded, 0)
    batch._work.wait_for(batch._work.mark(COMPUTE), COMPUTE)
    for b, one in enumerate(utterances):
        expected = net_files.forward(net, one)
        error = np.abs(scores[: len(one), b].numpy() - expected).max()
        assert error < 1e-4 * np.abs(expected).max()
