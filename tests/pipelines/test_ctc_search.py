"""The search over the graph of a CTC net with frames of blank left out."""

from __future__ import annotations

import numpy as np
import pytest
from ctc_examples import UNITS, log_probabilities, recipe
from hypothesis import given
from hypothesis import strategies as st
from search_graphs import settings, spoken

from pipelines.search.graph.ctc import compile
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import Viterbi
from profiler.spans import SPAN, Recorder
from tests.each import each

GAMMA = 0.7


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return compile.compile_graph(recipe(tmp_path_factory.mktemp("toy")), lambda what, share: None)


def decoder(graph: Graph, skipping: float = 1.0, **changes) -> Viterbi:
    return Viterbi(graph, settings(8.0, 50, 1.0, blank_skipping=skipping, **changes), subsampling=2)


def decode(made: Viterbi, scores: np.ndarray, block: int = 16) -> list[tuple[str, int, int]]:
    made.start(0)
    for at in range(0, len(scores), block):
        made.advance(scores[at : at + block], 2 * at)
        made.partial()
    return made.finish()


def searched(scores: np.ndarray, share: float = GAMMA) -> np.ndarray:
    """Rows that are searched: of a run of blanks the first."""
    blank = scores[:, UNITS.blank] > np.log(share)
    return np.flatnonzero(~(blank & np.append(False, blank[:-1])))


@given(seed=st.integers(0, 100_000), frames=st.integers(1, 60), block=st.sampled_from([1, 5, 16]))
def test_left_out_frames_change_nothing_but_times(graph, seed, frames, block):
    scores = log_probabilities(seed, frames, blank=5.0)
    kept = searched(scores)
    whole, short = decoder(graph, GAMMA), decoder(graph)
    words, fewer = decode(whole, scores, block), decode(short, np.ascontiguousarray(scores[kept]))
    assert spoken(words) == spoken(fewer)
    assert whole.best_cost == short.best_cost
    # A word begins and ends with the rows in which it did.
    place = np.append(kept, frames)
    assert [begin for _, begin, _ in words] == [2 * place[begin // 2] for _, begin, _ in fewer]
    ends = [begin + n for _, begin, n in words if n > 1]  # one that has not begun has a frame of the audio
    assert ends == [2 * place[(begin + n) // 2] for _, begin, n in fewer if n > 1]


def test_a_share_of_one_searches_every_frame(graph):
    scores = log_probabilities(3, 40, blank=9.0)
    scores[7:30] = -np.inf
    scores[7:30, UNITS.blank] = 0.0
    assert len(searched(scores)) < 10
    lanes = [spans(graph, share, scores) for share in (1.0, GAMMA)]
    assert lanes[1]["work0"].sum() < lanes[0]["work0"].sum() / 3
    assert lanes[0]["frames"].sum() == lanes[1]["frames"].sum() == 80


def spans(graph: Graph, share: float, scores: np.ndarray) -> np.ndarray:
    """Those of search.emit."""
    made, recorder = decoder(graph, share), Recorder()
    made.stages(recorder)
    lane = recorder.lane("decode", decode=True)
    made.start(0)
    made.advance(scores, 0, lane)
    found = np.frombuffer(lane.take(), SPAN)
    return found[found["stage"] == recorder.stage_id("search.emit")]


def test_skipping_is_switched_while_an_utterance_runs(graph):
    scores = log_probabilities(5, 60, blank=5.0)
    # The first frame after the change is searched whatever came before.
    rows = np.concatenate([np.arange(20), 20 + searched(scores[20:40]), np.arange(40, 60)])
    made = decoder(graph)
    made.start(0)
    for at, share in ((0, 1.0), (20, GAMMA), (40, 1.0)):
        made.configure(settings(8.0, 50, 1.0, blank_skipping=share))
        made.advance(scores[at : at + 20], 2 * at)
    words, cost = spoken(made.finish()), made.best_cost
    plain = decoder(graph)
    assert words == spoken(decode(plain, np.ascontiguousarray(scores[rows])))
    assert cost == pytest.approx(plain.best_cost, abs=1e-3)


def test_with_a_lattice_the_best_hypotheses_are_those_of_the_frames_searched(graph):
    scores = log_probabilities(11, 50, blank=5.0)
    whole, short = decoder(graph, GAMMA, lattice=True, nbest=5), decoder(graph, lattice=True, nbest=5)
    decode(whole, scores)
    decode(short, np.ascontiguousarray(scores[searched(scores)]))
    assert whole.nbest == short.nbest
    assert len(whole.nbest) > 1


@each("block", [1, 7, 64])
def test_silence_is_what_the_net_takes_for_blank_at_the_end(graph, block):
    scores = log_probabilities(2, 40, blank=0.0)
    scores[31:] = np.log(0.01)
    scores[31:, UNITS.blank] = np.log(0.96)
    scores[30] = np.log([0.1, 0.6, 0.1, 0.1, 0.1])
    made = decoder(graph, GAMMA)
    decode(made, scores, block)
    assert made.silence == 2 * 9
    made.start(0)
    made.advance(scores[31:], 0)
    assert made.silence == 2 * 9
