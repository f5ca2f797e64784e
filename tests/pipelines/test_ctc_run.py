"""Runs with a CTC net: words, frames and stages of a session, streams, and what works on its stages."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.model import report_lines
from app.model.report import report
from pipelines.config import Config, presets, replace
from pipelines.experiments import explain, perturb
from pipelines.experiments.rerun import Stretch
from pipelines.frontend.parameters import FeatureParameterError
from pipelines.run.playlist import Item
from pipelines.run.session_run import Outcome
from profiler.analysis.breakdown import breakdown
from profiler.analysis.track import CostTrack
from profiler.errors import BadInput
from profiler.session.reader import Session
from tests.pipelines import whole_runs
from tests.pipelines.ctc_nets import EACH, needs_hama, write
from tests.pipelines.onnx_files import needs_onnx, needs_onnxruntime

pytestmark = [needs_onnx, needs_onnxruntime]

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
def test_numbers_are_recognised(decoded: tuple[Outcome, Path]) -> None:
    found = decoded[0].result.utterances[0]
    assert found.reference_words == 13
    assert found.errors is not None
    assert found.errors <= 4, found.hypothesis


@needs_hama
def test_a_session_counts_frames_of_ten_milliseconds(decoded: tuple[Outcome, Path]) -> None:
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
def test_net_features_and_search_stand_apart(decoded: tuple[Outcome, Path]) -> None:
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
def test_a_report_has_the_operators_and_counts_units_by_output(decoded: tuple[Outcome, Path]) -> None:
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
def test_a_stream_is_refused(bundled_speech: Path) -> None:
    with pytest.raises(FeatureParameterError, match="needs the whole utterance"):
        whole_runs.run(config(stream__chunk_ms=200), [bundled_speech / NUMBERS])


@pytest.mark.slow
@needs_hama
def test_its_stages_are_confirmed_and_those_of_the_search_explained(
    decoded: tuple[Outcome, Path], bundled_speech: Path
) -> None:
    stretch = Stretch((Item(NUMBERS, bundled_speech / NUMBERS, None),), 5.0, "numbers")
    with pytest.raises(BadInput, match="computed before the blocks are searched"):
        explain.explain(config(), "score.backbone 3", stretch, lambda *_: None, lambda: False)
    found = explain.explain(config(), "search.emit", stretch, lambda *_: None, lambda: False)
    assert found.row.name == "search.emit"
    changes = {change.name: change for change in perturb.changes(config(), "score.stem", "scoring")}
    assert changes["block ×2"].unavailable == perturb.ON_WHOLE_UTTERANCES
    assert changes["dtype halved"].config == config(ctc__dtype="int8")


@pytest.mark.slow
def test_a_net_with_states_decodes_a_stream(bundled_speech: Path, tmp_path: Path) -> None:
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
