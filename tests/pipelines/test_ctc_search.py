"""The search over the graph of a CTC net with frames of blank left out."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctc_nets import UNITS, log_probabilities, recipe
from hypothesis import given
from hypothesis import strategies as st
from search_graphs import recorded, settings, spoken

from app.model import report_lines
from app.model.report import report
from pipelines.config import Config, assign, presets
from pipelines.experiments import explain, perturb
from pipelines.experiments.rerun import Stretch
from pipelines.run.playlist import Item
from pipelines.run.session_run import Outcome
from pipelines.search.graph.ctc import compile
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import Viterbi
from profiler.analysis.breakdown import breakdown
from profiler.analysis.track import CostTrack
from profiler.errors import BadInput
from profiler.session.reader import Session
from tests.each import each
from tests.pipelines import whole_runs
from tests.pipelines.ctc_nets import EACH, needs_hama, write
from tests.pipelines.onnx_files import needs_onnx, needs_onnxruntime
from tests.pipelines.whole_runs import never, quiet

pytestmark = [needs_onnx, needs_onnxruntime]

GAMMA = 0.7


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return compile.compile_graph(recipe(tmp_path_factory.mktemp("toy")), lambda what, share: None)


def decoder(graph: Graph, skipping: float = 1.0, **changes) -> Viterbi:
    return Viterbi(graph, settings(8.0, 50, 1.0, blank_skipping=skipping, **changes), subsampling=2)


def decode(made: Viterbi, scores: np.ndarray, block: int = 16) -> list[tuple[str, int, int]]:
    made.start(0)
    for at in range(0, len(scores), block):
        made.advance(np.ascontiguousarray(scores[at : at + block]), 2 * at)
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
    words, fewer = decode(whole, scores, block), decode(short, scores[kept])
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
    every, some = (recorded(decoder(graph, share), scores)["search.emit"] for share in (1.0, GAMMA))
    assert some["work0"].sum() < every["work0"].sum() / 3
    assert every["frames"].sum() == some["frames"].sum() == 80


def test_skipping_is_switched_while_an_utterance_runs(graph):
    scores = log_probabilities(5, 60, blank=5.0)
    # The first frame after the change is searched whatever came before.
    rows = np.concatenate([np.arange(20), 20 + searched(scores[20:40]), np.arange(40, 60)])
    made = decoder(graph)
    made.start(0)
    for at, share in ((0, 1.0), (20, GAMMA), (40, 1.0)):
        made.configure(settings(8.0, 50, 1.0, blank_skipping=share))
        made.advance(scores[at : at + 20], 2 * at)
    plain = decoder(graph)
    assert spoken(made.finish()) == spoken(decode(plain, scores[rows]))
    assert made.best_cost == pytest.approx(plain.best_cost, abs=1e-3)


def test_with_a_lattice_the_best_hypotheses_are_those_of_the_frames_searched(graph):
    scores = log_probabilities(11, 50, blank=5.0)
    whole, short = decoder(graph, GAMMA, lattice=True, nbest=5), decoder(graph, lattice=True, nbest=5)
    decode(whole, scores)
    decode(short, scores[searched(scores)])
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


NUMBERS = "04-kal16-numbers.flac"


def config(**changes: Any) -> Config:
    return assign(presets.load("ctc").config, {"graph.grammar": "digits", **changes})


@pytest.fixture(scope="module")
def decoded(bundled_speech: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Outcome, Session]]:
    out = tmp_path_factory.mktemp("run") / "ctc.asrs"
    outcome = whole_runs.run(config(), [bundled_speech / NUMBERS], out, transcripts=bundled_speech / "transcripts.tsv")
    with closing(Session.open(out)) as session:
        yield outcome, session


@needs_hama
def test_numbers_are_recognised_in_frames_of_ten_milliseconds(decoded):
    outcome, session = decoded
    found = outcome.result.utterances[0]
    assert found.reference_words == 13
    assert found.errors <= 4, found.hypothesis
    utterance = session.utterances[0]
    assert abs(utterance.n_frames - 100 * utterance.audio_s) <= 1
    assert session.meta["scoring"] == {"senones": 191, "frames_per_output": 2}
    assert session.meta["operators"][0]["block"] == "features"
    assert breakdown(session).last_frame == utterance.n_frames
    words = utterance.words
    assert all(start >= 0 and start + frames <= utterance.n_frames for _, start, frames in words)
    assert words[-1][1] > utterance.n_frames / 2


@needs_hama
def test_net_features_and_search_stand_apart(decoded):
    parts = breakdown(decoded[1])
    rows = {row.name: row for row in parts.stages}
    groups = {"frontend.features": "frontend", "score.backbone 3": "scoring", "score.output": "scoring"}
    assert {name: rows[name].group for name in groups} == groups
    assert rows["search.emit"].group == "search"
    assert rows["score.backbone 3"].flops > 0
    assert 0 < sum(row.time_ns for row in parts.stages) <= parts.wall_ns


@needs_hama
def test_a_report_has_the_operators_and_counts_units_by_output(decoded):
    session = decoded[1]
    tree, track = report(session), CostTrack()
    track.update(session)
    kinds = [kind for kind, *_ in report_lines.operators(tree)]
    assert len(kinds) == len(set(kinds)) < len(tree["operators"])
    assert {"Conv", "MatMul"} <= set(kinds)
    looked_up = track.work_rows["search senones"].total(0, track.n_frames)
    outputs = -(-track.n_frames // 2)
    assert tree["shares"]["senones_asked"] == pytest.approx(looked_up / (191 * outputs), rel=0.01)
    assert tree["latency"]["context_frames"] is None


@pytest.mark.slow
@needs_hama
def test_its_stages_are_confirmed_and_those_of_the_search_explained(bundled_speech):
    stretch = Stretch((Item(NUMBERS, bundled_speech / NUMBERS, None),), 5.0, "numbers")
    with pytest.raises(BadInput, match="computed before the blocks are searched"):
        explain.explain(config(), "score.backbone 3", stretch, quiet, never)
    assert explain.explain(config(), "search.emit", stretch, quiet, never).row.name == "search.emit"
    changes = {change.name: change for change in perturb.changes(config(), "score.stem", "scoring")}
    assert "whole utterances" in changes["block ×2"].unavailable
    assert changes["dtype halved"].config == config(**{"ctc.dtype": "int8"})


@pytest.mark.slow
def test_a_net_with_states_decodes_a_stream(short, tmp_path):
    (tmp_path / "phrases.txt").write_text("ab\ndc\n")
    folder, grammar = write(tmp_path / "net", "streaming"), tmp_path / "phrases.txt"
    plain = config(**{"model_directory": str(folder), "graph.grammar": str(grammar)})
    streaming = assign(plain, {"stream.chunk_ms": 100})
    whole = whole_runs.run(plain, [short]).result.utterances
    stream = whole_runs.run(streaming, [short], tmp_path / "a.asrs").result.utterances
    assert any(u.hypothesis for u in whole)
    assert [u.hypothesis for u in stream] == [u.hypothesis for u in whole]
    with closing(Session.open(tmp_path / "a.asrs")) as session:
        about = session.meta.get("stream/0") or session.meta["stream/1"]
        assert about["lookahead_frames"] == 13
        assert session.meta["scoring"] == {"senones": 5, "frames_per_output": EACH, "context": [0, 13]}
