"""Tests of the CUDA search in numba's simulator; `test_search_cuda` runs them in a process of their own.

    NUMBA_ENABLE_CUDASIM=1 python -m pytest tests/pipelines/cuda_simulated.py

CUDA_EXAMPLES=500: 500 random graphs instead of a few. The simulator's arrays check their bounds.
"""

import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numba import cuda

from pipelines.config import Search
from pipelines.device import DeviceError, DeviceWork, HostDevice
from pipelines.search.device import choice
from pipelines.search.device.cuda import arrays, kernel, layout, search
from pipelines.search.device.cuda.costs import phase_costs
from pipelines.search.device.cuda.intrinsics import SIMULATED
from pipelines.search.device.cuda.search import CudaSearch
from pipelines.search.device.viterbi import DeviceViterbi
from pipelines.search.graph.openfst import from_arcs
from pipelines.search.graph.topology import Topology, epsilon_first
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import Viterbi
from profiler.analysis.breakdown import breakdown
from profiler.arrays import Array
from profiler.machine.roofs import _cuda
from profiler.machine.roofs import device as device_roofs
from profiler.machine.roofs.accesses import lines_at_random
from profiler.machine.roofs.table import LATENCY, OVERHEAD, Key
from profiler.machine.roofs.timing import Effort
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import NullLane, Recorder
from tests.pipelines.search_graphs import (
    decode,
    equal_orders,
    min_cost,
    packed,
    random_graph,
    settings,
    smooth_scores,
    spoken,
)

pytestmark = pytest.mark.skipif(not SIMULATED, reason="NUMBA_ENABLE_CUDASIM=1 was not set before numba was imported")

EXAMPLES = int(os.environ.get("CUDA_EXAMPLES", "4"))
LANE = NullLane()


@pytest.fixture(autouse=True, scope="module")
def simulator() -> Iterator[None]:
    """Threads that change often, as they wait for each other, and shared arrays that two threads do not make twice."""
    from numba.cuda.simulator import kernelapi

    interval, made, lock = sys.getswitchinterval(), kernelapi.FakeCUDAShared.array, threading.Lock()

    def array(self: object, shape: int, dtype: type) -> Array:
        line = sys._getframe(1).f_lineno
        with lock:
            held = self.__dict__.setdefault("lines", {})
            if line not in held:
                held[line] = np.full(shape, 77, dtype)  # memory that nobody has set to zero
            return held[line]

    sys.setswitchinterval(2e-5)
    kernelapi.FakeCUDAShared.array = array
    yield
    kernelapi.FakeCUDAShared.array = made
    sys.setswitchinterval(interval)


@pytest.fixture(autouse=True)
def small_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator copies all arrays at each launch."""
    monkeypatch.setattr(arrays, "LEAST_HISTORY", 512)
    monkeypatch.setattr(arrays, "MOST_HISTORY", 512)


def searching(graph: Graph, chosen: Search, batch: int = 1, threads: int = 4) -> CudaSearch:
    return CudaSearch(graph, chosen, DeviceWork(HostDevice(), Recorder(), LANE), batch, threads)


def together(device: CudaSearch, several: list[Array], block: int = 16) -> list[list[tuple[str, int, int]]]:
    """The words of utterances of a batch."""
    device.begin()
    longest = max(map(len, several))
    for at in range(0, longest, block):
        lengths = [min(max(len(one) - at, 0), block) for one in several]
        scores = np.full((max(lengths), len(several), device.graph.n_senones), np.nan, np.float32)
        for b, one in enumerate(several):
            scores[: lengths[b], b] = one[at : at + lengths[b]]
        device.advance(scores, lengths, at, LANE)
    return [one.words(True)[0] for one in device.utterances]


def entering(graph: Graph) -> Graph:
    """The same, whose senones are the first states of phones: the history holds each emitting arc."""
    return replace(graph, senone_state=np.zeros_like(graph.senone_state))


def graph_of(seed: int, *, epsilons: float, n_senones: int = 5) -> Graph:
    """A random graph whose states have each possible epsilon arc to a higher state with a chance of `epsilons`; half of
    all arcs have words, and all senones are the first states of phones: so a frame adds several entries to a path."""
    rng = np.random.default_rng(seed)
    n = 7
    arcs = [(s, int(rng.integers(1, n_senones + 1)), int(rng.integers(0, n))) for s in range(n) for _ in range(2)]
    arcs += [(s, 0, t) for s in range(n) for t in range(s + 1, n) if rng.random() < epsilons]
    source, ilabel, target = (np.array(column) for column in zip(*arcs, strict=True))
    olabel = np.where(rng.random(len(arcs)) < 0.5, rng.integers(1, 4, len(arcs)), 0)
    fst = from_arcs(n, 0, np.zeros(n, np.float32), source, ilabel, olabel, rng.exponential(1.0, len(arcs)), target)
    loops = rng.integers(0, n_senones + 1, n).astype(np.int32)
    weights = np.where(loops > 0, rng.exponential(1.0, n), 0.0).astype(np.float32)
    return packed(epsilon_first(Topology(fst, loops, weights)), n_senones, "abc", state=0)


@hypothesis_settings(max_examples=EXAMPLES, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    beam=st.sampled_from([2.0, 6.0, 1e9]),
    limits=st.sampled_from([(1000, 0), (1000, 3), (1000, 20), (5, 0), (5, 20), (3, 2)]),
    threads=st.sampled_from([1, 2, 5, 16]),
    penalty=st.sampled_from([0.0, 0.5]),
    epsilons=st.sampled_from([0.0, 0.3, 0.7]),
)
def test_random_graphs_as_the_compiled_search(seed, beam, limits, threads, penalty, epsilons):
    graph = graph_of(seed, epsilons=epsilons) if epsilons else random_graph(seed, all_final=seed % 2 == 0)
    chosen = settings(beam, limits[0], min_active=limits[1], insertion_penalty=penalty)
    several = [smooth_scores(seed + b, frames, graph.n_senones, 20.0) for b, frames in enumerate((12, 5))]
    device, compiled = searching(graph, chosen, 2, threads), Viterbi(graph, chosen)
    found = together(device, several)
    for one, scores, words in zip(device.utterances, several, found, strict=True):
        expected = decode(compiled, scores)
        assert one.complete == compiled.complete
        assert one.best_cost == pytest.approx(compiled.best_cost, abs=1e-5)
        if spoken(words) != spoken(expected):  # others cost as little: which of them wins is not laid down
            cost = min_cost(graph, scores, spoken(words), complete=one.complete)
            assert cost - min_cost(graph, scores, spoken(expected), complete=one.complete) == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(
    ("threads", "beam", "max_active", "min_active"),
    [(1, 6.0, 6, 3), (64, 6.0, 6, 3), (3, 2.0, 1000, 5), (3, 1e9, 4, 0), (3, 3.0, 3, 2)],
)
def test_tokens_and_costs_agree_to_the_last_bit_before_and_after_pruning(threads, beam, max_active, min_active):
    graph = graph_of(5, epsilons=0.5)
    scores = smooth_scores(4, 10, graph.n_senones, 40.0)
    chosen = settings(beam, max_active, min_active=min_active)
    device, compiled = searching(graph, chosen, threads=threads), Viterbi(graph, chosen)
    compiled.start(0)
    for t in range(len(scores)):
        device.advance(scores[t : t + 1, None], [1], t, LANE)
        compiled.advance(scores[t : t + 1], t)
        for _ in range(2):
            states, costs = compiled._living()
            alive = costs < np.inf
            expected = dict(zip(states[alive].tolist(), costs[alive].tolist(), strict=True))
            found = device.tokens(0)
            assert dict(zip(found[0].tolist(), found[1].tolist(), strict=True)) == expected
            np.testing.assert_array_equal(device.utterances[0].active_senones()[0], compiled.active_senones())
    assert spoken(device.utterances[0].words(True)[0]) == spoken(compiled.finish())
    assert device.utterances[0].best_cost == compiled.best_cost


def test_a_state_that_gets_cheaper_in_two_rounds_is_followed_in_both():
    """Behind state 1: 2 costs 5 and then, by way of 3, 2 in all; 4 lies behind 2 alone, and emits."""
    column = [
        np.array(values) for values in ((0, 1, 1, 3, 2, 4), (1, 0, 0, 0, 0, 1), (1, 0, 0, 2, 3, 0), (1, 5, 1, 1, 1, 1))
    ]
    target = np.array([1, 2, 3, 2, 4, 1])
    final = np.full(5, np.inf, np.float32)
    final[4] = 0.0
    fst = from_arcs(5, 0, final, *column, target)
    none = np.zeros(5, np.int32), np.zeros(5, np.float32)
    graph = packed(epsilon_first(Topology(fst, *none)), 1, "abc", state=0)
    device = searching(graph, settings(1e9))
    # Each frame an arc into 1 and three epsilon arcs; all the words of a frame, in order.
    assert spoken(together(device, [np.zeros((3, 1), np.float32)])[0]) == ["a", "b", "c", "b", "c", "b", "c"]
    assert device.utterances[0].best_cost == pytest.approx(3 * (1 + 3))


def test_equal_costs_are_decided_by_the_arc_whatever_the_threads():
    graph = equal_orders()
    scores = smooth_scores(2, 12, graph.n_senones)
    found = [together(searching(graph, settings(), threads=threads), [scores])[0] for threads in (1, 3, 8, 8)]
    assert spoken(found[0]) == ["a"] * 12
    assert all(words == found[0] for words in found)


def test_partial_words_and_wanted_senones_are_those_of_the_compiled_search(monkeypatch):
    monkeypatch.setattr(search, "UNSETTLED", 3)
    graph = entering(random_graph(8, all_final=True))
    scores = smooth_scores(8, 40, graph.n_senones, 20.0)
    chosen = settings(6.0, 1000, min_active=2)
    device, compiled = searching(graph, chosen), Viterbi(graph, chosen)
    compiled.start(0)
    one = device.utterances[0]
    shortened = 0
    for t in range(0, len(scores), 4):
        np.testing.assert_array_equal(one.active_senones()[0], compiled.active_senones())
        device.advance(scores[t : t + 4, None], [4], t, LANE)
        compiled.advance(scores[t : t + 4], t)
        before = len(one.path)
        shortened += one.settled >= 0
        assert spoken(one.words(False)[0]) == spoken(compiled.partial())
        assert before - 3 < len(one.path)
    # Only the end of a path was traced anew.
    assert shortened > 5
    assert spoken(one.words(True)[0]) == spoken(compiled.finish())
    assert one.best_cost == pytest.approx(compiled.best_cost, abs=1e-5)


def test_lists_that_are_too_short_grow_and_change_nothing(monkeypatch):
    graph = entering(random_graph(21, all_final=True))
    several = [smooth_scores(b, 12, graph.n_senones) for b in (1, 2)]
    chosen = settings(1e9, 1000)
    expected = searching(graph, chosen, 2)
    words = together(expected, several)
    for name in ("FIRST_ROOM", "LEAST_HISTORY", "MOST_HISTORY"):
        monkeypatch.setattr(arrays, name, 1 if name == "FIRST_ROOM" else 4)
    monkeypatch.setattr(search, "FIRST_PATH", 1)
    short = searching(graph, chosen, 2)
    assert (short._arrays.lists.shape[2], short._arrays.history.shape[1]) == (2, 4)
    for _ in range(2):
        assert together(short, several) == words
    assert [one.best_cost for one in short.utterances] == [one.best_cost for one in expected.utterances]
    assert short._arrays.lists.shape[2] > 4
    assert short._arrays.history.shape[1] > 8


def test_memory_that_runs_out_is_one_sentence(monkeypatch):
    def full(self: object, short: object) -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    graph = random_graph(21, all_final=True)
    monkeypatch.setattr(arrays, "FIRST_ROOM", 1)
    monkeypatch.setattr(arrays.Arrays, "enlarge_lists", full)
    with pytest.raises(DeviceError, match=r"lower search\.max_active"):
        together(searching(graph, settings(1e9)), [smooth_scores(1, 20, graph.n_senones)])


def test_scores_that_kill_every_token_end_one_utterance_alone():
    graph = entering(random_graph(5, all_final=True))
    quiet = smooth_scores(1, 12, graph.n_senones)
    deadly = quiet.copy()
    deadly[6] = -np.inf
    deadly[7:] = np.nan
    chosen = settings(6.0, 1000)
    device, compiled = searching(graph, chosen, 3), Viterbi(graph, chosen)
    expected = decode(compiled, quiet)
    words = together(device, [quiet, deadly, quiet[:0]], block=4)
    assert [one.lost for one in device.utterances] == [False, True, False]
    assert spoken(words[0]) == spoken(expected)
    lost = decode(compiled, deadly)
    assert compiled.lost
    assert not device.utterances[1].complete
    assert spoken(words[1]) == spoken(lost)
    assert words[2] == []
    assert together(device, [quiet] * 3) == [words[0]] * 3


def test_settings_change_between_blocks():
    graph = random_graph(14, all_final=True)
    scores = smooth_scores(3, 20, graph.n_senones, 20.0)
    first, later = settings(3.0, min_active=1), settings(9.0, 6, min_active=2, insertion_penalty=0.7)
    device, compiled = searching(graph, first), Viterbi(graph, first)
    compiled.start(0)
    device.advance(scores[:10, None], [10], 0, LANE)
    compiled.advance(scores[:10], 0)
    device.configure(later)
    compiled.configure(later)
    device.advance(scores[10:, None], [10], 10, LANE)
    compiled.advance(scores[10:], 10)
    assert spoken(device.utterances[0].words(True)[0]) == spoken(compiled.finish())
    assert device.utterances[0].best_cost == pytest.approx(compiled.best_cost, abs=1e-5)


def test_the_laws_count_the_barriers_of_each_phase(monkeypatch):
    """In place of the time the kernel notes how many barriers its first thread has passed."""
    from numba.cuda.simulator.kernel import BlockThread

    passing = BlockThread.syncthreads

    def passed(thread: BlockThread) -> None:
        passing(thread)
        thread.passed = getattr(thread, "passed", 1) + 1

    monkeypatch.setattr(BlockThread, "syncthreads", passed)
    monkeypatch.setattr(kernel, "now_ns", lambda: getattr(threading.current_thread(), "passed", 1))
    graph = graph_of(5, epsilons=0.5)
    chosen = settings(6.0, 1000, min_active=0)
    device = searching(graph, chosen, 2)
    scores = np.stack([smooth_scores(seed, 12, graph.n_senones, 20.0) for seed in (3, 4)], 1)
    # The frame before the first is another than those that are counted.
    device.advance(scores[:4], [4, 4], 0, LANE)
    rounds = int(device.books[:, layout.ROUND].sum())
    device.advance(scores[4:], [8, 8], 4, LANE)
    rounds = int(device.books[:, layout.ROUND].sum()) - rounds
    assert rounds > 0
    counted = np.diff(device._arrays.stamps_here.numpy()[:, :8], axis=2).sum((0, 1)) / 2
    laws = phase_costs(graph, chosen, 2, 4, "cuda")
    for phase, barriers in zip(layout.PHASES, counted.tolist(), strict=True):
        law = laws[f"search.{phase}"].calls["barrier@cuda"]
        assert law.total(1.0, 8.0, (0.0, 0.0, float(rounds))) == barriers, phase


def test_kernels_that_measure_a_device_do_what_is_counted(monkeypatch):
    places, order = lines_at_random(1 << 12)
    places[order] = np.roll(order, -1)
    state = np.zeros(1, np.int32)
    _cuda.chase[1, 1](places.view(np.int32), state, len(order) - 1)
    # After all but one of the lines the next one is the first.
    assert state[0] != 0
    assert places[state[0]] == 0
    passed = np.zeros(8, np.int32)
    _cuda.barrier[1, 8](passed, 5)
    assert passed.tolist() == [5] * 8

    monkeypatch.setattr(device_roofs, "IN_A_KERNEL", 32)
    monkeypatch.setattr(device_roofs, "BARRIER_THREADS", 4)
    here = device_roofs.Device("cpu", "cuda", lambda: None)
    for key, measure in (
        (Key(LATENCY, "chase@cuda", "", bytes=1 << 12), device_roofs._chase),
        (Key(OVERHEAD, "barrier@cuda", ""), device_roofs._barrier),
    ):
        roof = measure(torch, here, key, Effort(1, 0.0))
        assert roof.key == key
        assert 0 < roof.median < 1e9
        assert roof.unit == "ns"


def test_the_settings_choose_it_and_its_phases_are_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "unavailable_reason", lambda device: "")
    monkeypatch.setattr(kernel, "THREADS", 4)
    graph = entering(random_graph(8, all_final=True))
    scores = smooth_scores(8, 24, graph.n_senones, 20.0)
    chosen = settings(6.0, 1000)
    recorder, path = Recorder(), tmp_path / "cuda.asrs"
    with SessionWriter(path, recorder, {}):
        lane = recorder.lane("decode", decode=True)
        device = DeviceViterbi(graph, chosen, DeviceWork(HostDevice(), recorder, lane))
        assert isinstance(device._search, CudaSearch)
        device.stages(recorder)
        device.warm_up()
        for name, cost in device.costs().items():
            recorder.cost(recorder.stage_id(name), 0, cost)
        tile = recorder.stage("decode.block", "decode")
        device.start(0)
        for at in range(0, len(scores), 8):
            begin = recorder.clock()
            device.advance(scores[at : at + 8], at, lane)
            device.partial(lane)
            lane.put(tile, begin, recorder.clock(), at, 8)
        words = device.finish(lane)
    compiled = Viterbi(graph, chosen)
    assert spoken(words) == spoken(decode(compiled, scores, block=8))
    assert device.best_cost == pytest.approx(compiled.best_cost, abs=1e-5)
    # The compiled search keeps the cutoff of the frame before until the next one.
    assert device.cutoff == pytest.approx(compiled.cutoff, abs=1e-5)
    with Session.open(path) as session:
        rows = {(row.lane, row.name): row for row in breakdown(session).stages}
    there = {name: row for (of, name), row in rows.items() if of == "torch-cpu compute"}
    phases = {f"search.{phase}" for phase in layout.PHASES}
    assert phases | {"search.frames"} == set(there)
    assert there["search.emit"].work["tokens"] > len(scores)
    assert there["search.history"].work["entries"] > 0
    assert all(there[name].time_ns > 0 for name in phases)
    waits = rows["decode", "search.frames.wait"]
    # The phases are most of what the host waits for; the rest is the simulator's own, before and after the frames.
    assert sum(row.time_ns for row in there.values()) >= waits.time_ns
    assert all("not modelled" not in row.sentence for row in rows.values())


def test_the_simulator_refuses_what_lies_outside_an_array():
    """What the tests above rely on where a list might overflow."""

    @cuda.jit
    def beyond(values):
        values[len(values)] = 1

    with pytest.raises(IndexError):
        beyond[1, 1](np.zeros(3, np.int32))


@pytest.mark.parametrize("beam", [8.0, 0.5])
def test_a_trial_says_whether_the_kernel_finds_what_the_compiled_search_does(beam, monkeypatch):
    for name, value in (("STATES", 20), ("FRAMES", 5), ("CHOSEN", settings(8.0, 10, min_active=3))):
        monkeypatch.setattr(choice, name, value)
    monkeypatch.setattr(kernel, "threads_of", lambda batch, processors: 2)
    use = CudaSearch.use_beam
    monkeypatch.setattr(CudaSearch, "use_beam", lambda self, _: use(self, beam))
    assert choice.agrees(HostDevice()) == (beam == 8.0)
