"""A stage explained by doing it again: what is done, that it changes nothing, and what cannot be."""

from types import SimpleNamespace

import pytest
from search_graphs import settings as settings_of
from search_graphs import smooth_scores, thousand_words
from whole_runs import QUICK, quiet

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.experiments import explain, replays
from pipelines.experiments.explain import Explanation, Variant
from pipelines.experiments.replays import COLD, FRAME_LESS, HALVED, HOT, LESS, MORE, PLACED, RUN, OfSearch
from pipelines.experiments.rerun import Stretch
from pipelines.run.playlist import Item
from pipelines.search import workspace
from pipelines.search.viterbi import Viterbi
from profiler.analysis.breakdown import StageRow
from profiler.analysis.categories import PARTS
from profiler.analysis.verdict import Parts
from profiler.errors import BadInput, Cancelled
from profiler.spans import NullLane, Recorder
from tests.each import each
from tests.pipelines.refusing import refusal
from tests.short_runs import explain_briefly


@pytest.fixture(scope="module")
def stretch(short) -> Stretch:
    return Stretch((Item("short", short, None),), audio.load(short).duration_s, "the short voice")


@pytest.fixture(autouse=True)
def few(monkeypatch):
    explain_briefly(monkeypatch)


NET_AHEAD = {"model": "dnn", "dnn.senones": "active-ahead", "dnn.dtype": "int8"}


@pytest.mark.parametrize(
    ("changes", "stage", "variants"),
    [
        ({}, "score.mixture", [PLACED, LESS, MORE]),
        ({}, "search.emit", [PLACED, HALVED, FRAME_LESS]),
        # Where scoring and search take turns, frame by frame.
        ({"gmm.senones": "active"}, "search.active", [PLACED, FRAME_LESS]),
        ({"gmm.senones": "active"}, "score.lazy", [PLACED, LESS]),
        pytest.param(NET_AHEAD, "score.active outputs", [PLACED, LESS], marks=pytest.mark.slow),
    ],
)
def test_a_stage_is_done_again_in_every_way(stretch, changes, stage, variants):
    found = explain.explain(settings.assign(QUICK, changes), stage, stretch, quiet, lambda: False)
    assert [way.name for way in found.ways] == [RUN, HOT, COLD, *variants]
    assert all(0 < way.low <= way.ns <= way.high and way.shown for way in found.ways)
    assert (found.rounds, found.row.name) == (2, stage)
    assert 1 <= found.blocks <= 4
    assert 0 <= found.waiting[0] <= found.waiting[1] <= found.waiting[2] < 1
    assert sum(found.row.parts.likely.values()) == pytest.approx(found.row.time_ns)
    assert found.conclusion.startswith("Replayed hot")


@pytest.mark.slow
def test_decoding_in_turns_and_doing_blocks_again_changes_no_word(stretch, monkeypatch):
    config = settings.assign(QUICK, {"gmm.senones": "active", "block": 1})
    words, finish = [], Viterbi.finish

    def record_words(self, *args):
        words.append([word for word, _, _ in finish(self, *args)])
        return words[-1]

    class Ended(explain._Again):
        def _blocks(self):
            yield from super()._blocks()
            self._recogniser.search.finish()

    monkeypatch.setattr(explain, "_Again", Ended)
    monkeypatch.setattr(Viterbi, "finish", record_words)
    explain.explain(config, "score.lazy", stretch, quiet, lambda: False)
    decoded = words[-4:]
    assert decoded[0]
    assert all(each == decoded[0] for each in decoded)
    explain.explain(settings.replace(config, "gmm.senones", "all"), "score.mixture", stretch, quiet, lambda: False)
    assert words[-1] == decoded[0]


def test_rounds_that_other_programs_took_are_taken_again_but_not_for_ever(stretch, monkeypatch):
    busy = iter([1 << 40] * 24)
    monkeypatch.setattr(explain.RunQueue, "waited_ns", lambda self: next(busy, 0))
    found = explain.explain(QUICK, "search.emit", stretch, quiet, lambda: False)
    assert found.rounds == 2
    assert all(way.low > 0 for way in found.ways)
    monkeypatch.setattr(explain, "MOST_ROUNDS", 2)
    monkeypatch.setattr(explain.RunQueue, "waited_ns", lambda self: 1 << 40)
    with pytest.raises(BadInput, match="Other programs had the processor"):
        explain.explain(QUICK, "search.emit", stretch, quiet, lambda: False)


class Known(OfSearch):
    def refuse(self, block):
        pass

    def prepare(self, recorder, progress, cancelled):
        pass

    def keep(self):
        pass

    def again(self, rows, scores, n, at):
        yield HOT, 100.0 * n, n
        yield COLD, 300.0 * n, n


def test_ways_and_waiting_are_what_was_measured_by_frames(stretch, monkeypatch):
    monkeypatch.setattr(replays, "KINDS", {"search": Known})
    monkeypatch.setattr(replays, "ns_of", lambda stage, spans: 16 * 400)
    found = explain.explain(QUICK, "search.emit", stretch, quiet, lambda: False)
    ns = {way.name: (way.low, way.ns, way.high) for way in found.ways}
    assert ns == {RUN: (400.0,) * 3, HOT: (100.0,) * 3, COLD: (300.0,) * 3}
    assert found.waiting == (0.75, 0.75, 0.75)


def searched(scores, again: bool):
    """Words and cost of a search of which blocks are done again in every way, and the ways of each block."""
    decoder, recorder = Viterbi(thousand_words(), settings_of(beam=10.0)), Recorder()
    decoder.stages(recorder)
    recogniser = SimpleNamespace(config=QUICK, search=decoder)
    replayed = OfSearch(recogniser, recorder.stage_id("search.emit"))
    replayed.prepare(recorder, quiet, lambda: False)
    decoder.start(0)
    ways = []
    for at in range(0, len(scores), 16):
        part = scores[at : at + 16]
        if again:
            replayed.keep()
        decoder.advance(part, at, NullLane())
        if again:
            ways.append(list(replayed.again(lambda n: None, part, len(part), at)))
    return decoder.finish(), decoder.best_cost, ways


def test_a_block_in_which_the_history_was_collected_is_left_out(monkeypatch):
    """It ended in a fault of the program: the others' histories are as long as what is left of that one."""
    monkeypatch.setattr(workspace, "FIRST_HISTORY", 256)
    scores = smooth_scores(6, 80, thousand_words().n_senones)
    words, cost, _ = searched(scores, False)
    same, same_cost, blocks = searched(scores, True)
    assert (same, same_cost) == (words, pytest.approx(cost))
    assert [] in blocks
    assert any(blocks)
    for block in blocks:
        assert all(ns > 0 for _, ns, _ in block)


@each(
    "changes, stage, sentence",
    [
        ({}, "score.nothing", "no stage of scoring or search here.*score.mixture.*search.emit"),
        ({}, "frontend.mfcc", "frontend.mfcc cannot be explained.*whole utterances"),
        ({}, "search.backtrace", "search.backtrace cannot be explained.*no part of a block"),
        ({}, "search.active", "search.active did not run"),
        ({"search.adaptive_beam": True}, "search.emit", "its beam follows the time"),
        ({"gmm.selection.enabled": True, "gmm.selection.method": "last-top-n"}, "score.mixture", "cannot"),
    ],
)
def test_what_cannot_be_done_again_is_one_sentence(stretch, changes, stage, sentence):
    refusal(sentence, explain.explain, settings.assign(QUICK, changes), stage, stretch, quiet, lambda: False)


def test_it_can_be_cancelled(stretch):
    with pytest.raises(Cancelled):
        explain.explain(QUICK, "score.exp", stretch, quiet, lambda: True)


@each(
    "parts, says",
    [
        ({"bandwidth": 25.0, "arithmetic": 75.0}, "it takes 80% of its time (70% to 90%); memory takes 25%"),
        ({"bandwidth": 25.0, "not_attributed": 75.0}, "75% of its time fits neither that nor what its cost law counts"),
    ],
)
def test_it_is_said_how_much_fits_neither_the_replays_nor_the_law(parts, says):
    values = dict.fromkeys(PARTS, 0.0) | parts
    row = StageRow(
        "score.x", "scoring", "decode", 100.0, 1.0, 1, 1.0, 1.0, 1.0, {}, 1.0, None, "B", "",
        parts=Parts(values, values, values),
    )  # fmt: skip
    found = Explanation(row, (Variant(RUN, 1.0, 1.0, 1.0),), (0.1, 0.2, 0.3), 5, 3)
    assert found.conclusion.startswith("Replayed hot, ")
    assert says in found.conclusion
