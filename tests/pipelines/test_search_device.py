"""The device's decoder, on the processor: against the definition, and against the compiled decoder."""

import numpy as np
import pytest
import torch
from search_graphs import circle, decode, min_cost, random_graph, settings, smooth_scores, spoken, thousand_words

from pipelines.device import DeviceError, DeviceWork, HostDevice, open_device
from pipelines.search.device import frontier as device_frontier
from pipelines.search.device import history as device_history
from pipelines.search.device import search as device_search
from pipelines.search.device.choice import search_on
from pipelines.search.device.frontier import Room
from pipelines.search.device.graph import direct_arcs
from pipelines.search.device.search import DeviceSearch
from pipelines.search.device.viterbi import DeviceViterbi
from pipelines.search.graph.wfst import GraphError
from pipelines.search.viterbi import Viterbi
from profiler.analysis.breakdown import breakdown
from profiler.analysis.device import transfers
from profiler.recording.layout import SPAN
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import NullLane, Recorder
from tests.each import each

INFINITE = 1e9


def work(recorder=None, lane=None) -> DeviceWork:
    return DeviceWork(HostDevice(), recorder or Recorder(), lane or NullLane())


def both(chosen):
    """The compiled decoder and the device's."""
    return Viterbi(thousand_words(), chosen), DeviceViterbi(thousand_words(), chosen, work())


@pytest.fixture(scope="module")
def scores(spoken_scores) -> np.ndarray:
    """Of speech, f32 [frames, senones]."""
    return spoken_scores[-1]


@pytest.mark.parametrize(("beam", "max_active"), [pytest.param(11.0, 7000, marks=pytest.mark.slow), (10.0, 1500)])
def test_same_words_and_cost_as_the_compiled_decoder_on_speech(scores, beam, max_active):
    here, there = both(settings(beam, max_active, insertion_penalty=0.5))
    words = decode(here, scores, 100)
    assert len(words) > 3
    for block in (16, 50):  # the second time with the room that the first has needed
        assert decode(there, scores, 100, block) == words
        assert there.best_cost == pytest.approx(here.best_cost, abs=0.02)
        assert there.complete == here.complete


def test_partial_results_and_wanted_senones_are_the_same(scores):
    here, there = both(settings(9.0, 100_000))
    recorder = Recorder()
    lane = recorder.lane("decode", decode=True)
    for one in (here, there):
        one.stages(recorder)
        one.start(0)
    np.testing.assert_array_equal(there.active_senones(), here.active_senones())
    for at in range(0, 60, 10):
        for one in (here, there):
            one.advance(scores[at : at + 10], at, lane)
        assert there.partial() == here.partial()
        np.testing.assert_array_equal(there.active_senones(), here.active_senones())
    spans = np.frombuffer(lane.take(), SPAN)
    stages = recorder.stage_id("search.epsilon"), recorder.stage_id("search.history")
    ours, theirs = (int(spans["work2"][spans["stage"] == stage].sum()) for stage in stages)
    # The two add up in another order: a token that lies on the beam but for rounding is kept by one alone.
    assert theirs == pytest.approx(ours, rel=1e-3)
    assert ours > 0


def test_too_little_room_is_noticed_and_changes_nothing(scores, monkeypatch):
    monkeypatch.setattr(device_search, "FIRST_ROOM", Room(32, 64))
    monkeypatch.setattr(device_history, "FIRST_HISTORY", 64)
    here, there = both(settings(9.0, 3000))
    rooms: list[Room] = []
    larger = there._search._larger

    def grown(room, reported):
        found = larger(room, reported)
        rooms.extend([found] if found is not None else [])
        return found

    monkeypatch.setattr(there._search, "_larger", grown)
    assert decode(there, scores) == decode(here, scores)
    assert max(room.tokens for room in rooms) >= 16 * 32
    # Sizes that speech has outgrown do not stay.
    assert len(there._search._frontiers) <= device_search.MOST_FRONTIERS


@pytest.mark.slow
def test_utterances_of_a_batch_are_decoded_as_if_alone(scores):
    graph, chosen = thousand_words(), settings(9.0, 3000)
    several = [scores[:140], scores[:90], scores[40:150], scores[:0]]
    alone = DeviceViterbi(graph, chosen, work())
    expected = [(decode(alone, one), alone.best_cost, alone.complete) for one in several]
    together = DeviceSearch(graph, chosen, work(), batch=4)
    longest = max(len(one) for one in several)
    for _ in range(2):
        together.begin()
        for at in range(0, longest, 50):
            block = np.zeros((min(50, longest - at), 4, graph.n_senones), np.float32)
            lengths = [min(max(len(one) - at, 0), len(block)) for one in several]
            for b, one in enumerate(several):
                block[: lengths[b], b] = one[at : at + lengths[b]]
            together.advance(block, lengths, at, NullLane())
        for b, (words, cost, complete) in enumerate(expected):
            one = together.utterances[b]
            assert one.words(True)[0] == words
            assert one.complete == complete
            assert one.best_cost == pytest.approx(cost, abs=1e-2)


def test_scores_that_kill_every_token_end_one_utterance_alone():
    graph = random_graph(5, all_final=True)
    quiet = smooth_scores(1, 12, graph.n_senones)
    several = [quiet, quiet.copy(), quiet.copy(), quiet[:6]]
    several[1][6] = several[2][4] = -np.inf
    chosen = settings(6.0)
    compiled, alone = Viterbi(graph, chosen), DeviceViterbi(graph, chosen, work())
    together = DeviceSearch(graph, chosen, work(), batch=4)
    for block in (4, 12):
        together.begin()
        for at in range(0, 12, block):
            lengths = [min(max(len(one) - at, 0), block) for one in several]
            padded = [np.pad(one, ((0, 12 - len(one)), (0, 0))) for one in several]
            together.advance(np.stack(padded, axis=1)[at : at + block], lengths, at, NullLane())
        for scores, one, lost in zip(several, together.utterances, (False, True, True, False), strict=True):
            words = decode(alone, scores, block=block)
            assert one.words(True)[0] == words
            assert spoken(words) == spoken(decode(compiled, scores, block=block))
            assert one.best_cost == pytest.approx(compiled.best_cost, abs=1e-4)
            assert one.lost == alone.lost == compiled.lost == lost
            assert one.complete == alone.complete == compiled.complete == (not lost)


@pytest.mark.slow
def test_many_frames_outlast_the_keys(monkeypatch):
    """Keys of a frame lie below all before; when none is left, the table is cleared."""
    graph = random_graph(3, all_final=True)
    scores = smooth_scores(3, 400, graph.n_senones)
    words = decode(DeviceViterbi(graph, settings(INFINITE), work()), scores)
    monkeypatch.setattr(device_frontier, "TAGS", 70)
    again = DeviceViterbi(graph, settings(INFINITE), work())
    assert decode(again, scores, block=64) == words
    cost = min_cost(graph, scores)
    assert again.best_cost == pytest.approx(cost, abs=0.05)
    assert min_cost(graph, scores, spoken(words)) == pytest.approx(cost, abs=0.05)


def test_settings_change_between_blocks(scores):
    active = {}
    # Where numbers of tokens decide, the two do not drop quite the same ones: in silence even the least of 20 does.
    first = settings(6.0, min_active=1)
    later = {"wide": settings(13.0, min_active=1), "same": first, "few": settings(13.0, 200)}
    later["many"] = settings(6.0, min_active=900)
    for name, changed in later.items():
        here, there = both(first)
        for decoder in (here, there):
            decoder.start(0)
            decoder.advance(scores[:40], 0)
            decoder.configure(changed)
            decoder.advance(scores[40:60], 40)
        active[name] = np.array([len(decoder.active_senones()) for decoder in (here, there)])
        words = here.finish(), there.finish()
        if name in ("wide", "same"):
            assert words[0] == words[1]
            assert there.best_cost == pytest.approx(here.best_cost, abs=0.02)
    assert (active["wide"] > 2 * active["same"]).all()
    assert (active["wide"] > active["few"]).all()
    assert (active["many"] > 2 * active["same"]).all()


def test_a_device_without_memory_is_refused_in_one_sentence(monkeypatch):
    small = work()
    small.device.free_bytes = lambda: 1_000_000
    with pytest.raises(DeviceError, match=r"search.device = torch-cpu needs \d+ MB .* 1 MB are free"):
        DeviceViterbi(thousand_words(), settings(), small)
    graph = thousand_words()
    decoder = DeviceViterbi(graph, settings(), work())

    def full(self):
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(device_frontier.Frontier, "place", full)
    with pytest.raises(DeviceError, match=r"lower search\.max_active"):
        decoder.advance(np.zeros((2, graph.n_senones), np.float32), 0)


def test_epsilon_arcs_in_a_circle_are_refused():
    with pytest.raises(GraphError, match="cycle of epsilon arcs"):
        direct_arcs(circle())


@each("on_device", [False, True])
def test_kernels_launches_and_copies_are_distinguished(tmp_path, scores, on_device):
    recorder, given = Recorder(), torch.from_numpy(scores) if on_device else scores
    path = tmp_path / "device.asrs"
    with SessionWriter(path, recorder, {}):
        lane = recorder.lane("decode", decode=True)
        decoder = DeviceViterbi(thousand_words(), settings(9.0, 3000), work(recorder, lane))
        decoder.stages(recorder)
        decoder.warm_up()
        for name, cost in decoder.costs().items():
            recorder.cost(recorder.stage_id(name), 0, cost)
        tile = recorder.stage("decode.block", "decode")
        decoder.start(0)
        for at in range(0, 96, 16):
            begin = recorder.clock()
            decoder.advance(given[at : at + 16], at, lane)
            decoder.partial(lane)
            lane.put(tile, begin, recorder.clock(), at, 16)
        words = decoder.finish()
    assert words == decode(Viterbi(thousand_words(), settings(9.0, 3000)), scores[:96])
    with Session.open(path) as session:
        parts = breakdown(session)
        assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns)
        rows = {(row.lane, row.name): row for row in parts.stages}
        frames = rows["torch-cpu compute", "search.frames"]
        assert frames.work["frames"] >= 96
        host = {name: row for (lane, name), row in rows.items() if lane == "decode"}
        assert {"search.frames.wait", "search.launch", "search.history", "search.backtrace"} <= set(host)
        assert host["search.frames.wait"].time_ns <= frames.time_ns
        assert host["search.history"].work["tokens"] > 96
        assert parts.categories["search"] > 0.5 * parts.wall_ns
        for row in host.values():
            # Each has a law, or says why it has none.
            assert "not modelled" not in row.sentence, row.name
        moved = {row.stage: row for row in transfers(session)}
        # Beside scores, states and costs of the tokens that it began with.
        tokens = moved["transfer.to device"].bytes - (0 if on_device else scores[:96].nbytes)
        assert 0 < tokens <= 2 * 12 * 1024
        # Back-pointers, counts and the last tokens.
        assert moved["transfer.to host"].bytes > 96 * 2 * 4 * 1024


@pytest.mark.parametrize("make", [DeviceSearch, search_on])
@pytest.mark.parametrize("batch", [1, 3])
def test_on_a_real_device_the_words_are_the_same(scores, batch, make):
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device here")
    graph, chosen = thousand_words(), settings(11.0, 7000)
    compiled = Viterbi(graph, chosen)
    words = decode(compiled, scores)
    search = make(graph, chosen, DeviceWork(open_device("cuda"), Recorder(), NullLane()), batch)
    for _ in range(2):
        search.begin()
        for at in range(0, len(scores), 16):
            part = scores[at : at + 16]
            block = np.repeat(part[:, None], batch, axis=1)
            search.advance(block, [len(part)] * batch, at, NullLane())
        for one in search.utterances:
            assert one.words(True)[0] == words
            assert one.best_cost == pytest.approx(compiled.best_cost, abs=0.05)
    # A frame of the search in torch is held as a CUDA graph; the other one says nothing if it is the CUDA kernel.
    assert search._work.take_notices() == []
