"""What a run does with the search's extras: alternatives, adaptive beam, and utterances that end in nothing."""

import math
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from search_graphs import random_graph, settings, smooth_scores

from app.model import report
from pipelines.config import assign, presets
from pipelines.run.session_run import Outcome
from pipelines.search import workspace
from pipelines.search.adaptive_beam import MIN_BEAM, AdaptiveBeam
from pipelines.search.viterbi import Viterbi
from pipelines.search.words import align
from profiler.session.reader import Session
from tests.each import each
from tests.pipelines import whole_runs


def run(files: list[Path], out: Path | None, settings: dict[str, Any]) -> Outcome:
    return whole_runs.run(assign(presets.load("gmm-quick").config, settings), files, out)


def test_alternatives_are_kept_with_the_session(files, tmp_path):
    outcome = run(files, tmp_path / "run.asrs", {"search.nbest": 3})
    with closing(Session.open(tmp_path / "run.asrs")) as session:
        rows = report.report(session)["utterances"]
        assert "search.lattice" in {stage.name for stage in session.stages.values()}
    assert any(len(row["nbest"]) == 3 for row in rows)
    for row, decoded in zip(rows, outcome.result.utterances, strict=True):
        assert row["nbest"][0]["hypothesis"] == row["hypothesis"] == decoded.hypothesis
        costs = [h["cost"] for h in row["nbest"]]
        assert costs == sorted(costs)
        assert len(row["confidences"]) == len(row["hypothesis"].split())
        assert all(0.0 < c <= 1.0 for c in row["confidences"])
        assert decoded.alternatives == {key: row[key] for key in ("nbest", "confidences")}
    plain = run(files, None, {}).result.utterances
    assert all(u.alternatives is None for u in plain)
    assert "nbest" not in report.utterance(plain[0], None)


@pytest.mark.slow
@mock.patch.multiple(workspace, FIRST_HISTORY=1 << 12, FEW_ENTRIES=1 << 12, MAX_HISTORY=1 << 16)
def test_a_lattice_without_room_is_reported(files, tmp_path):
    wide = {"search.nbest": 3, "search.lattice_beam": 20.0}
    outcome = run(files, tmp_path / "run.asrs", wide)
    with closing(Session.open(tmp_path / "run.asrs")) as session:
        said = [marker.text for marker in session.markers]
    for decoded in outcome.result.utterances:
        assert any("nat of the best path, not 20: there was no room" in n for n in decoded.notes)
        assert any(text.startswith(f"{decoded.name}: the lattice holds") for text in said)


@each("target, lowest", [(0.001, True), (10.0, False)])
def test_the_adaptive_beam_is_recorded(files, tmp_path, target, lowest):
    # Of few tokens min_active keeps those beyond the beam: how many there are depends on how fast the machine is now.
    run(files, tmp_path / "run.asrs", {"search.target_rtf": target, "search.min_active": 0})
    with closing(Session.open(tmp_path / "run.asrs")) as session:
        times, beams = session.samples("search.beam")
        _, cutoffs = session.samples("search.cutoff")
        tree = session.configs[-1].tree
        frames = sum(u.n_frames for u in session.utterances)
    widest = tree["search"]["beam"]
    assert (np.diff(times) > 0).all()
    assert len(beams) >= frames // tree["block"]
    assert beams[0] == widest
    assert beams.min() == (MIN_BEAM if lowest else widest)
    assert (cutoffs <= widest + 1e-3).all()


def test_an_utterance_in_which_no_token_survives_is_marked(files, tmp_path, monkeypatch):
    advance = Viterbi.advance

    def deadly(self: Viterbi, scores: Any, first_frame: int, *rest: Any) -> None:
        dead = first_frame - self._first_frame >= 64
        advance(self, np.full_like(scores, -np.inf) if dead else scores, first_frame, *rest)

    monkeypatch.setattr(Viterbi, "advance", deadly)
    decoded = run(files, tmp_path / "run.asrs", {}).result.utterances
    with closing(Session.open(tmp_path / "run.asrs")) as session:
        texts = [m.text for m in session.markers if m.kind == "error"]
    assert texts == [f"{u.name}: no token survived; the hypothesis ends there." for u in decoded]
    # What was heard before is the result.
    assert any(u.hypothesis for u in decoded)


FRAMES = 16


def drive(target, blocks=400, load=lambda second: 1.0, widest=13.0, growth=0.3):
    """Real-time factor and beam of each block under the adaptive beam; the search's part grows with the beam."""
    adaptive = AdaptiveBeam()
    beam, history = widest, []
    for block in range(blocks):
        rtf = (0.01 + 0.05 * math.exp(growth * (beam - 13.0))) * load(block * FRAMES / 100)
        history.append((rtf, beam))
        beam = adaptive.after(FRAMES, round(rtf * FRAMES * 1e7), target, widest)
    return np.array(history)


def test_who_asks_for_less_than_the_least_beam_gets_that():
    assert drive(0.001, widest=2.0)[-1, 1] == 2.0


@each("growth", [0.2, 0.3, 0.45])
@each("target", [0.02, 0.03, 0.045])
def test_the_target_factor_is_held(target, growth):
    rtf, beam = drive(target, growth=growth).T
    settled = rtf[100:]
    assert settled.mean() == pytest.approx(target, rel=0.03)
    assert settled.std() < 0.05 * target
    assert (beam >= MIN_BEAM).all()


def test_a_busy_spell_narrows_the_beam_and_its_end_widens_it_again():
    rtf, beam = drive(0.045, load=lambda second: 2.0 if 20 <= second < 40 else 1.0).T
    seconds = np.arange(len(beam)) * FRAMES / 100
    during, after = (seconds > 30) & (seconds < 40), seconds > 55
    assert beam[during].mean() < beam[after].mean() - 2.0
    for spell in (during, after):
        assert rtf[spell].mean() == pytest.approx(0.045, rel=0.05)


def test_the_search_uses_what_the_adaptive_beam_sets():
    graph = random_graph(3, all_final=True)
    decoder = Viterbi(graph, settings(beam=9.0, adaptive_beam=True, target_rtf=0.1))
    assert decoder.beam == 9.0
    decoder.start(0)
    decoder.advance(smooth_scores(3, 4, graph.n_senones), 0)
    decoder.spent(4, 10**9)
    narrow = decoder.beam
    assert MIN_BEAM <= narrow < 9.0
    # Other live settings leave it alone, a smaller beam does not; without it the settings' holds.
    adaptive = {"adaptive_beam": True, "target_rtf": 0.2}
    for changed, beam in (
        (settings(beam=9.0, max_active=500, **adaptive), narrow),
        (settings(beam=1.5, **adaptive), 1.5),
        (settings(beam=9.0), 9.0),
    ):
        decoder.configure(changed)
        assert decoder.beam == beam
    decoder.spent(4, 10**9)
    assert decoder.beam == 9.0


@pytest.mark.parametrize(
    ("preset", "names"),
    [
        ("digits", ["digits-2934z.flac"]),
        pytest.param("cards", ["cards-001.flac", "cards-002.flac", "cards-003.flac"], marks=pytest.mark.slow),
    ],
)
def test_small_grammars_hear_every_word(shared_audio, preset, names):
    speech, config = [shared_audio / name for name in names], presets.load(preset).config
    outcome = whole_runs.run(config, speech, transcripts=shared_audio / "transcripts.tsv")
    assert [(u.errors, u.complete) for u in outcome.result.utterances] == [(0, True)] * len(names)


SIL, NOISE = 0, 1
# Word 0: "a b"; word 1: "a b c" or "c"; word 2: "b".
PRONUNCIATIONS = [[(2, 3)], [(2, 3, 4), (4,)], [(3,)]]


@each(
    "phones, words, spans",
    [
        ([], [], []),
        ([2, 3], [0], [(0, 2)]),
        ([SIL, 2, 3, SIL, NOISE, 3, SIL], [0, 2], [(1, 3), (5, 6)]),
        # The other pronunciation of word 1 leaves a phone that word 2 needs.
        ([2, 3, 4, 3], [0, 1, 2], [(0, 2), (2, 3), (3, 4)]),
        ([2, 3, 4, 3], [1, 2], [(0, 3), (3, 4)]),
        # Cut inside the last word, before it, and after more phones than words.
        ([2, 3, 2], [0, 0], [(0, 2), (2, 3)]),
        ([2, 3, SIL], [0, 0], [(0, 2), (3, 3)]),
        ([2, 3, 4, 3], [0], [(0, 2)]),
        # Disagreement.
        ([4, 4], [0], None),
        ([SIL, 3, 3], [2, 0], None),
    ],
)
def test_align(phones, words, spans):
    flat = [p for word in PRONUNCIATIONS for p in word]
    graph: Any = SimpleNamespace(
        filler=np.array([True, True, False, False, False]),
        pron_first=np.cumsum([0, *map(len, PRONUNCIATIONS)]),
        phone_first=np.cumsum([0, *map(len, flat)]),
        pron_phones=np.concatenate(flat),
    )
    assert align(graph, phones, words) == spans
