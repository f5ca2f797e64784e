"""The search over the graph of a CTC net with frames of blank left out."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctc_nets import UNITS, log_probabilities, recipe
from hypothesis import given
from hypothesis import strategies as st
from search_graphs import settings, spoken

from app.model import report_lines
from app.model.report import report
from pipelines.config import Config, presets, replace
from pipelines.experiments import explain, perturb
from pipelines.experiments.rerun import Stretch
from pipelines.frontend.parameters import FeatureParameterError
from pipelines.run.playlist import Item
from pipelines.run.session_run import Outcome
from pipelines.search.graph.ctc import compile
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import Viterbi
from profiler.analysis.breakdown import breakdown
from profiler.analysis.track import CostTrack
from profiler.errors import BadInput
from profiler.session.reader import Session
from profiler.spans import SPAN, Recorder
from tests.each import each
from tests.pipelines import whole_runs
from tests.pipelines.ctc_nets import EACH, needs_hama, write
from tests.pipelines.onnx_files import needs_onnx, needs_onnxruntime

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


# -- runs with a CTC net ---------------------------------------------------------------------------


NUMBERS = "04-kal16-numbers.flac"


def config(**changes: Any) -> Config:
    chosen = presets.load("ctc").config
    for key, value in {"graph__grammar": "digits", **changes}.items():
        chosen = replace(chosen, key.replace("__", "."), value)
    return chosen


@pytest.fixture(scope="module")
def decoded(bundled_speech: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Path]:
    out = tmp_path_factory.mktemp("run") / "ctc.asrs"
    transcripts = bundled_speech / "transcripts.tsv"
    return whole_runs.run(config(), [bundled_speech / NUMBERS], out, transcripts=transcripts), out


@needs_hama
def test_numbers_are_recognised(decoded):
    found = decoded[0].result.utterances[0]
    assert found.reference_words == 13
    assert found.errors is not None
    assert found.errors <= 4, found.hypothesis


@needs_hama
def test_a_session_counts_frames_of_ten_milliseconds(decoded):
    with closing(Session.open(decoded[1])) as session:
        utterance = session.utterances[0]
        assert abs(utterance.n_frames - 100 * utterance.audio_s) <= 1
        assert session.meta["scoring"] == {"senones": 191, "frames_per_output": 2}
        assert session.meta["operators"][0]["block"] == "features"
        parts = breakdown(session)
        assert parts.last_frame == utterance.n_frames
        words = utterance.words
        assert all(start >= 0 and start + frames <= utterance.n_frames for _, start, frames in words)
        assert words[-1][1] > utterance.n_frames / 2


@needs_hama
def test_net_features_and_search_stand_apart(decoded):
    with closing(Session.open(decoded[1])) as session:
        parts = breakdown(session)
        rows = {row.name: row for row in parts.stages}
        groups = {row.group for row in parts.stages}
        assert {"frontend", "scoring", "search"} <= groups
        assert rows["frontend.features"].group == "frontend"
        assert rows["score.backbone 3"].group == rows["score.output"].group == "scoring"
        assert rows["score.backbone 3"].flops > 0
        covered = sum(row.time_ns for row in parts.stages)
        assert 0 < covered <= parts.wall_ns


@needs_hama
def test_a_report_has_the_operators_and_counts_units_by_output(decoded):
    with closing(Session.open(decoded[1])) as session:
        tree, track = report(session), CostTrack()
        track.update(session)
        kinds = [kind for kind, *_ in report_lines.operators(tree)]
        assert len(kinds) == len(set(kinds)) < len(tree["operators"])
        assert {"Conv", "MatMul"} <= set(kinds)
        looked_up = track.work_rows["search senones"].total(0, track.n_frames)
        outputs = -(-track.n_frames // 2)
        assert tree["shares"]["senones_asked"] == pytest.approx(looked_up / (191 * outputs), rel=0.01)
        assert tree["latency"]["context_frames"] is None


@needs_hama
def test_a_stream_is_refused(bundled_speech):
    with pytest.raises(FeatureParameterError, match="needs the whole utterance"):
        whole_runs.run(config(stream__chunk_ms=200), [bundled_speech / NUMBERS])


@pytest.mark.slow
@needs_hama
def test_its_stages_are_confirmed_and_those_of_the_search_explained(decoded, bundled_speech):
    stretch = Stretch((Item(NUMBERS, bundled_speech / NUMBERS, None),), 5.0, "numbers")
    with pytest.raises(BadInput, match="computed before the blocks are searched"):
        explain.explain(config(), "score.backbone 3", stretch, lambda *_: None, lambda: False)
    found = explain.explain(config(), "search.emit", stretch, lambda *_: None, lambda: False)
    assert found.row.name == "search.emit"
    changes = {change.name: change for change in perturb.changes(config(), "score.stem", "scoring")}
    assert "whole utterances" in changes["block ×2"].unavailable
    assert changes["dtype halved"].config == config(ctc__dtype="int8")


@pytest.mark.slow
def test_a_net_with_states_decodes_a_stream(bundled_speech, tmp_path):
    folder = write(tmp_path / "net", "streaming")
    (tmp_path / "phrases.txt").write_text("ab\ndc\n")
    plain = config(model_directory=str(folder), graph__grammar=str(tmp_path / "phrases.txt"))
    speech = [bundled_speech / "08-kal16-short.flac"]
    whole = whole_runs.run(plain, speech)
    assert any(u.hypothesis for u in whole.result.utterances)
    outcome = whole_runs.run(replace(plain, "stream.chunk_ms", 100), speech, tmp_path / "stream.asrs")
    assert [u.hypothesis for u in outcome.result.utterances] == [u.hypothesis for u in whole.result.utterances]
    with closing(Session.open(tmp_path / "stream.asrs")) as session:
        about = session.meta["stream/0"] if "stream/0" in session.meta else session.meta["stream/1"]
        assert about["lookahead_frames"] == 13
        assert session.meta["scoring"] == {"senones": 5, "frames_per_output": EACH, "context": [0, 13]}
