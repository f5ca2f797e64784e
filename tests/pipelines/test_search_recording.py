"""What the search's kernels record of themselves."""

import numpy as np
import pytest
from search_graphs import settings, smooth_scores, thousand_words

from pipelines.search import viterbi, workspace
from pipelines.search.viterbi import Viterbi
from profiler.clock import now_ns
from profiler.spans import SPAN, Recorder

STEPS = ("search.emit", "search.epsilon", "search.prune")
RANK = "search.rank"
FRAMES = 60
FIRST = 4000


@pytest.fixture(scope="module")
def scores():
    return smooth_scores(5, FRAMES, thousand_words().n_senones)


def record(scores, block=16, **changes):
    """Spans by name of step, and the times just before and after each call of `advance`."""
    decoder, recorder = Viterbi(thousand_words(), settings(beam=10.0, **changes)), Recorder()
    decoder.warm_up()
    decoder.stages(recorder)
    lane = recorder.lane("decode", decode=True)
    decoder.start(FIRST)
    around = []
    for at in range(0, len(scores), block):
        before = now_ns()
        decoder.advance(scores[at : at + block], FIRST + at, lane)
        around.append((before, now_ns()))
    spans = np.frombuffer(lane.take(), SPAN)
    assert lane.dropped == 0
    steps = {name: spans[spans["stage"] == recorder.stage_id(name)] for name in (*STEPS, RANK)}
    return steps, around


def work(steps):
    return [int(steps[name][f"work{i}"].sum()) for name in (*STEPS, RANK) for i in range(3)]


def test_spans_of_a_block_follow_each_other_within_the_call(scores):
    steps, around = record(scores, min_active=0)
    emit, epsilon, prune = (steps[name] for name in STEPS)
    assert not len(steps[RANK])
    assert emit["first_frame"].tolist() == [FIRST + at for at in range(0, FRAMES, 16)]
    assert emit["frames"].tolist() == [16, 16, 16, FRAMES % 16]
    for earlier, later in ((epsilon, prune), (prune, emit)):
        assert (earlier["start_ns"] + earlier["duration_ns"] == later["start_ns"]).all()
    for (before, after), first, last in zip(around, epsilon, emit, strict=True):
        assert before <= first["start_ns"]
        assert last["start_ns"] + last["duration_ns"] <= after
    assert (epsilon["duration_ns"] > 0).all()
    assert (prune["duration_ns"][1:] > 0).all()


def test_a_cutoff_by_rank_has_a_span_of_its_own_after_pruning(scores):
    steps, _ = record(scores, max_active=50, min_active=0)
    prune, rank, emit = (steps[name] for name in ("search.prune", RANK, "search.emit"))
    assert len(rank) == 4
    for earlier, later in ((prune, rank), (rank, emit)):
        assert (earlier["start_ns"] + earlier["duration_ns"] == later["start_ns"]).all()
    # Whole frames are ranked: more tokens than may live on, no more than were examined.
    assert (rank["work0"] > 50).all()
    assert (rank["work0"] <= prune["work0"]).all()
    assert (rank["duration_ns"] > 0).all()


def test_pruning_on_demand_of_the_scorer_says_what_it_ranked(scores):
    decoder, recorder = Viterbi(thousand_words(), settings(beam=10.0, max_active=50)), Recorder()
    decoder.stages(recorder)
    lane = recorder.lane("decode", decode=True)
    decoder.start(0)
    decoder.advance(scores[:12], 0)
    lane.take()
    decoder.active_senones(lane)
    prune, rank, active = np.frombuffer(lane.take(), SPAN)
    names = [recorder.stages[span["stage"]].name for span in (prune, rank, active)]
    assert names == ["search.prune", RANK, "search.active"]
    assert prune["start_ns"] + prune["duration_ns"] == rank["start_ns"]
    assert rank["start_ns"] + rank["duration_ns"] == active["start_ns"]
    assert 50 < rank["work0"] == prune["work0"]


def test_calls_cut_short_record_every_frame_once_and_the_same_work(scores, monkeypatch):
    whole, _ = record(scores)
    monkeypatch.setattr(workspace, "FIRST_HISTORY", 16)
    monkeypatch.setattr(viterbi, "PATIENCE_NS", 0)
    cut, _ = record(scores)
    assert len(cut["search.emit"]) >= FRAMES
    for name in STEPS:
        frames = [
            frame for span in cut[name] for frame in range(span["first_frame"], span["first_frame"] + span["frames"])
        ]
        assert frames == list(range(FIRST, FIRST + FRAMES))
    # Tokens, arcs and senones of a frame that had to be taken up again count once.
    assert work(cut)[:3] == work(whole)[:3]
    assert work(cut)[5] == work(whole)[5]


def test_without_a_clock_in_kernels_the_same_work_is_recorded(scores, monkeypatch):
    whole, _ = record(scores)

    class Unheard(viterbi.NullLane):
        """What the kernel records itself goes nowhere."""

    monkeypatch.setattr(viterbi, "HAS_CLOCK", False)
    nowhere = Unheard()
    monkeypatch.setattr(viterbi.Lane, "lend", lambda lane: nowhere.lend())
    monkeypatch.setattr(viterbi.Lane, "settle", lambda lane, end_ns: None)
    plain, _ = record(scores)
    assert work(plain) == work(whole)
    assert [len(plain[name]) for name in STEPS] == [4, 4, 4]
    assert len(plain[RANK]) == len(whole[RANK]) > 0
    assert (plain["search.emit"]["duration_ns"] > 0).all()
