"""What a run does with the search's extras: alternatives, adaptive beam, and utterances that end in nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.model import report
from pipelines.config import assign, presets
from pipelines.run.session_run import Outcome
from pipelines.search import workspace
from pipelines.search.adaptive_beam import MIN_BEAM
from pipelines.search.viterbi import Viterbi
from profiler.session.reader import Session
from tests.pipelines import whole_runs

FILES = ("01-slt-morning.flac", "08-kal16-short.flac")


def run(folder: Path, out: Path | None, settings: dict[str, Any]) -> Outcome:
    config = assign(presets.load("gmm-quick").config, settings)
    return whole_runs.run(config, [folder / name for name in FILES], out)


def test_alternatives_are_kept_with_the_session(bundled_speech: Path, tmp_path: Path) -> None:
    outcome = run(bundled_speech, tmp_path / "run.asrs", {"search.nbest": 3})
    with closing(Session.open(tmp_path / "run.asrs")) as session:
        rows = report.report(session)["utterances"]
        stages = {stage.name for stage in session.stages.values()}
    assert "search.lattice" in stages
    assert any(len(row["nbest"]) == 3 for row in rows)
    for row, decoded in zip(rows, outcome.result.utterances, strict=True):
        assert row["nbest"][0]["hypothesis"] == row["hypothesis"] == decoded.hypothesis
        costs = [h["cost"] for h in row["nbest"]]
        assert costs == sorted(costs)
        assert len(row["confidences"]) == len(row["hypothesis"].split())
        assert all(0.0 < c <= 1.0 for c in row["confidences"])
        assert decoded.alternatives == {key: row[key] for key in ("nbest", "confidences")}


@pytest.mark.slow
def test_a_lattice_without_room_is_reported(
    bundled_speech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FIRST_HISTORY", 1 << 12), ("FEW_ENTRIES", 1 << 12), ("MAX_HISTORY", 1 << 16)):
        monkeypatch.setattr(workspace, name, value)
    wide = {"search.nbest": 3, "search.lattice_beam": 20.0}
    outcome = run(bundled_speech, tmp_path / "run.asrs", wide)
    with closing(Session.open(tmp_path / "run.asrs")) as session:
        said = [marker.text for marker in session.markers]
    for decoded in outcome.result.utterances:
        assert any("nat of the best path, not 20: there was no room" in n for n in decoded.notes)
        assert any(text.startswith(f"{decoded.name}: the lattice holds") for text in said)


def test_without_a_request_there_are_none(bundled_speech: Path) -> None:
    outcome = run(bundled_speech, None, {})
    assert all(u.alternatives is None for u in outcome.result.utterances)
    assert "nbest" not in report.utterance(outcome.result.utterances[0], None)


@pytest.mark.parametrize(("target", "lowest"), [(0.001, True), (10.0, False)])
def test_the_adaptive_beam_is_recorded(bundled_speech: Path, tmp_path: Path, target: float, lowest: bool) -> None:
    # Of few tokens min_active keeps those beyond the beam: how many there are depends on how fast the machine is now.
    settings = {"search.target_rtf": target, "search.min_active": 0}
    run(bundled_speech, tmp_path / "run.asrs", settings)
    with closing(Session.open(tmp_path / "run.asrs")) as session:
        times, beams = session.samples("search.beam")
        _, cutoffs = session.samples("search.cutoff")
        widest = session.configs[-1].tree["search"]["beam"]
        frames = sum(u.n_frames for u in session.utterances)
        block = session.configs[-1].tree["block"]
    assert (np.diff(times) > 0).all()
    assert len(beams) >= frames // block
    assert beams[0] == widest
    assert beams.min() == (MIN_BEAM if lowest else widest)
    assert (cutoffs <= widest + 1e-3).all()


def test_an_utterance_in_which_no_token_survives_is_marked(
    bundled_speech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Viterbi.advance

    def deadly(self: Viterbi, scores: Any, first_frame: int, *rest: Any) -> None:
        scores = np.array(scores)
        if first_frame - self._first_frame >= 64:
            scores[:] = -np.inf
        whole(self, scores, first_frame, *rest)

    monkeypatch.setattr(Viterbi, "advance", deadly)
    outcome = run(bundled_speech, tmp_path / "run.asrs", {})
    with closing(Session.open(tmp_path / "run.asrs")) as session:
        texts = [m.text for m in session.markers if m.kind == "error"]
    assert len(texts) == len(FILES)
    name = outcome.result.utterances[0].name
    assert texts[0] == f"{name}: no token survived; the hypothesis ends there."
    # What was heard before is the result.
    assert any(u.hypothesis for u in outcome.result.utterances)
