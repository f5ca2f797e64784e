"""The views' models on a synthetic session: exact against its spans, and the same live and replayed."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from frame_rows import rows_of
from sample_session import BLOCK, HEARD, SAID, Sample
from views_desk import FRAMES, SpokenSession, figures_of, numbers, opened

from app.model.desk_snapshot import NO_DEVICE, NO_ROOFS, NOT_RECORDED
from app.model.scope import boundaries, marks
from app.model.time_axis import CHANGE, WHOLE, TimeAxis
from app.views.cost_model import LAYERS, OWN, REALTIME_MS, cost_model
from app.views.words_model import Spoken, words_model
from app.views.work import WorkView, work_model
from pipelines.audio.word_errors import DELETED, INSERTED, SUBSTITUTED, ErrorCount
from profiler.analysis.attribution import Attribution
from profiler.analysis.categories import CATEGORIES, NOT_OWN, SCORING_CATEGORIES
from profiler.analysis.lod.columns import totals
from profiler.analysis.lod.series import series_of
from profiler.analysis.track import CostTrack
from profiler.session.model import Utterance
from profiler.session.reader import Session
from tests.category_times import categories_ns

ALL = (0.0, FRAMES * 0.01)
CUTS = [32, 400, 752, 1280, 1712, 2048]
VISIBLE = (ALL, (3.3, 9.1), (7.2, 7.4))


@pytest.fixture
def replay(sample):
    with opened(sample) as found:
        yield found


def all_models(session: Session, track: CostTrack, cursor: int) -> object:
    models: list[object] = [make(session, track, cursor, v, 700) for v in VISIBLE for make in (cost_model, work_model)]
    for selected in (None, (40, 300)):
        # What recording cost is of the whole session.
        models.append(dataclasses.replace(figures_of(session, track, cursor, selected), costs=None))
    # Partial hypotheses are replaced in the file; where utterances were complete, words are equal.
    if cursor % 256 == 0:
        models.append(words_model(session, track, cursor, ALL, 700))
    return numbers(models)


def test_live_in_pieces_is_replay(tmp_path, monkeypatch):
    # What scoring consists of is judged by all that is known at the time, and so by more in the replay.
    monkeypatch.setattr(Attribution, "of", lambda *_, **__: None)
    sample = Sample(tmp_path / "live.asrs", frames=FRAMES, utterance_frames=256)
    live: dict[int, object] = {}
    track = CostTrack()
    try:
        sample.write(BLOCK)
        session = Session.open(sample.path)
        for cut in CUTS:
            sample.write(cut)
            session.refresh()
            track.update(session)
            assert track.n_frames == cut
            live[cut] = all_models(session, track, cut)
        session.close()
    finally:
        sample.close()
    with opened(sample.path) as (session, track):
        for cut in reversed(CUTS):
            assert all_models(session, track, cut) == live[cut], cut


def test_cost_columns_are_block_means_of_the_track(replay):
    session, track = replay
    model = cost_model(session, track, FRAMES, ALL, FRAMES // 8)
    size = model.block_frames
    assert size == 32, "four columns of eight frames"
    layers = [CATEGORIES.index(name) for name in LAYERS]
    wanted = categories_ns(track)[:, layers].reshape(-1, size, len(CATEGORIES)).mean(axis=1) * 1e-6
    assert np.allclose(model.mean_ms, np.repeat(wanted, 4, axis=0), rtol=1e-9)
    walls = track.wall_row[:].reshape(-1, size) * 1e-6
    assert np.allclose(model.worst_ms, np.repeat(walls.max(axis=1), 4))
    below = (walls <= np.asarray(model.p95_ms).reshape(-1, 4)[:, :1] * (1 + 1e-12)).mean(axis=1)
    assert (below >= 0.95).all()
    assert (below < 1.0).any()
    assert model.column_at(0.081) == 1
    assert model.column_at(99.0) is None


def test_nothing_after_the_playhead(replay):
    session, track = replay
    model = cost_model(session, track, 1000, (0.0, 20.0), 200)
    assert np.isfinite(model.mean_ms[:100]).all()
    assert np.isnan(model.mean_ms[100:]).all()
    (known,) = marks(session, 1000, track.n_frames)
    assert (known.text, known.applied_frame) == ("selection on", 736)
    assert (boundaries(session, 1000) < 1000).all()
    (before,) = marks(session, 720, track.n_frames)
    assert before.applied_frame is None, "asked, not yet applied"


def test_a_spike_is_cut_and_marked_not_hidden(replay):
    session, track = replay
    desk = figures_of(session, track, kind=WHOLE)
    model = cost_model(session, track, FRAMES, ALL, 700, desk=desk)
    totals = model.mean_ms[:, :OWN].sum(axis=1)
    highest = np.nanmax(totals)
    assert highest > 3 * model.scale.top
    assert any(totals[c] == highest for c in model.spikes)
    typical = np.nanquantile(totals, 0.97)
    assert typical < model.scale.top < 3 * typical
    assert not model.realtime_shown
    assert model.realtime_above == pytest.approx(REALTIME_MS / desk.own_ms)


def test_without_a_selection_now_is_next_to_before(replay):
    session, track = replay
    desk = figures_of(session, track, FRAMES)
    assert (desk.scope.kind, desk.scope.text) == (CHANGE, "since skip ×2")
    assert (desk.scope.first, desk.scope.last) == (1280, FRAMES)
    assert desk.pair.kind == "other speech"
    assert not desk.before, "what came before was other speech"
    early = figures_of(session, track, 500)
    assert (early.scope.kind, early.pair) == (WHOLE, None)
    assert figures_of(session, track, FRAMES, (100, 200)).pair is None, "before the change there was none"


def test_zero_is_given_a_reason(replay, finished):
    session, track = replay
    reasons = figures_of(session, track, FRAMES).reasons
    assert {name: why for name, why in reasons.items() if name not in NOT_OWN} == {"transfer": NO_DEVICE}
    with opened(finished) as without_roofs:
        reasons = figures_of(*without_roofs).reasons
    assert [reasons[name] for name in ("compute", "other_programs")] == [NO_ROOFS, NOT_RECORDED]
    empty = figures_of(session, track, 0)
    assert empty.frames == 0
    assert np.isnan([empty.own_ms, *empty.categories.values()]).all()


def test_every_quantity_of_work_has_a_lane_of_its_own_unit_that_follows_the_track(replay, qtbot):
    session, track = replay
    model = work_model(session, track, FRAMES, ALL, FRAMES // 4, counted=(0, FRAMES))
    lanes = [[curve.name for curve in panel.curves] for panel in model.panels]
    shared = ["scoring senones", "search senones"]
    assert lanes == [["search tokens"], shared, ["scoring gaussians"], ["scoring bytes"], ["scoring time"]]
    assert [panel.scale.log for panel in model.panels[1:3]] == [False, True], "selection leaves a tenth of Gaussians"
    *counts, scoring = model.curves
    for curve in counts:
        series = track.work_rows[curve.name][:].reshape(-1, 16)
        assert np.allclose(curve.mean, np.repeat(series.mean(axis=1), 4), rtol=1e-9)
        assert np.array_equal(curve.low, np.repeat(series.min(axis=1), 4))
        assert np.array_equal(curve.high, np.repeat(series.max(axis=1), 4))
    assert next(curve.average for curve in counts if curve.name == "scoring senones") == 5126
    own = [CATEGORIES.index(name) for name in SCORING_CATEGORIES if name not in NOT_OWN]
    means = categories_ns(track)[:, own].sum(axis=1).reshape(-1, 16).mean(axis=1)
    assert np.allclose(scoring.mean, np.repeat(means, 4), rtol=1e-9)
    view = WorkView(TimeAxis())
    qtbot.addWidget(view)
    assert view.figure("scoring time", scoring.average).endswith(" ms")
    figures = [("scoring bytes", 4e7), ("scoring bytes", 0.0), ("search.beam", 13.0), ("search tokens", 8000.0)]
    assert [view.axis_figure(*figure) for figure in figures] == ["40 MB", "0 B", "13 nat", "8k"]


def test_a_beam_that_moves_is_drawn_from_counts_or_samples(replay, monkeypatch):
    session, track = replay
    decode = next(s.id for s in session.stages.values() if s.group == "decode")
    tiles = session.spans[session.spans["stage"] == decode]
    times = tiles["start_ns"] + tiles["duration_ns"]
    half = len(tiles) // 2
    values = np.where(np.arange(half) < half // 2, 13.0, 9.0)
    monkeypatch.setattr(session, "samples", lambda name: (times[:half], values))
    monkeypatch.setattr(type(session), "sample_names", ["search.beam"])
    model = work_model(session, track, FRAMES, ALL, FRAMES, counted=(0, FRAMES))
    (beam,) = (c for c in model.curves if c.name == "search.beam")
    reached = (tiles["first_frame"] + tiles["frames"]).astype(int)
    first, changed, last = reached[0], reached[half // 2], reached[half - 1] + 300
    assert np.isnan(beam.mean[:first]).all()
    assert beam.mean[first:changed].tolist() == [13.0] * (changed - first)
    assert beam.mean[changed:last].tolist() == [9.0] * (last - changed)
    assert np.isnan(beam.mean[last:]).all(), "the adaptive beam was switched off"


def test_words_carry_their_errors_and_times(replay):
    session, track = replay
    model = words_model(session, track, FRAMES, (0.0, 2.56), 512)
    (spoken,) = model.spoken
    assert [t.text for t in spoken.heard] == HEARD.split()
    assert [t.text for t in spoken.said] == SAID.split()
    wrong = {t.text: t.kind for t in (*spoken.heard, *spoken.said) if t.kind != "same"}
    assert sorted(wrong.values()).count(DELETED) == 1
    assert wrong["uh"] == INSERTED
    assert wrong["dashwood"] == SUBSTITUTED
    assert spoken.count == ErrorCount(4, 14)
    assert all(0.0 <= token.first_s < token.last_s <= 2.56 for token in spoken.heard)
    assert model.high.max() == pytest.approx(max(int(u.peaks[:, 1].max()) for u in session.utterances[:1]) / 127)


def test_a_partial_utterance_shows_its_hypothesis_so_far(replay):
    session, track = replay
    assert words_model(session, track, FRAMES, ALL, 512, at_frame=0).current == 0
    model = words_model(session, track, 256 + 128, ALL, 512)
    assert model.current == 1
    spoken = model.spoken[1]
    assert spoken.partial
    assert 0 < len(spoken.heard) < len(HEARD.split())
    assert all(token.first_s < 3.84 for token in spoken.heard)
    assert spoken.count.words < len(SAID.split())
    assert len(model.spoken) == 2, "utterances to come are not shown"
    assert np.isnan(model.high[int(512 * 5.3 / 20.48) :]).all()


def spoken_of(reference: str, *words: tuple[str, int, int], **more: Any) -> Spoken:
    """The one utterance of a session, as the view sees it at its end."""
    about = 1, "one", "one.wav", 0, 100, 1.0, reference, " ".join(word for word, _, _ in words), words, 1, (0,)
    scored = {"errors": None, "reference_words": None, **more}
    utterance = Utterance(*about, **scored, done=True, peaks=np.zeros((100, 2), np.int8))
    (spoken,) = words_model(SpokenSession(utterance), CostTrack(), 100, (0.0, 1.0), 10).spoken
    return spoken


def test_words_are_shown_as_given_and_compared_as_the_run_compares_them():
    heard = [("the(2)", 0, 10), ("<sil>", 10, 10), ("well", 20, 10), ("known", 30, 10)]
    spoken = spoken_of("The well-known (cat)!", *heard, ("cat", 40, 10))
    assert [t.text for t in spoken.heard] == ["the", "well", "known", "cat"]
    assert [t.text for t in spoken.said] == ["The", "well", "known", "(cat)!"]
    assert {t.kind for t in (*spoken.heard, *spoken.said)} == {"same"}
    assert not len(spoken.wrong_s)
    (word,) = (t for t in spoken_of("x", ("well-known", 10, 20)).heard if t.text == "known")
    assert (word.first_s, word.last_s) == (pytest.approx(0.2), pytest.approx(0.3))


def test_what_the_run_did_not_score_has_no_count_and_what_is_too_long_to_align_is_shown_as_its_hypothesis():
    heard = ("a", 0, 10)
    assert spoken_of("a b", heard).count is None
    assert spoken_of("a b", heard, errors=1, reference_words=2).count == ErrorCount(1, 2)
    assert spoken_of("...", heard, errors=1, reference_words=0).count is None
    words = [(f"v{i}", i % 100, 1) for i in range(2000)]
    spoken = spoken_of("w " * 2100, *words, errors=7, reference_words=9)
    assert (spoken.columns, spoken.said, spoken.count) == (None, (), ErrorCount(7, 9))
    assert len(spoken.heard) == 2000


def test_series_start_again_when_the_meaning_of_the_file_changed_and_frames_that_grow_are_taken_again(replay):
    session, track = replay
    first = series_of(session, track)
    assert series_of(session, track) is first
    session.generation += 1
    track.update(session)
    assert series_of(session, track) is not first

    class Growing:
        generation, spans = 0, ()

    session, track = Growing(), Growing()
    costs = np.random.default_rng(0).random((400, len(CATEGORIES)))
    for frames, changed in ((200, None), (300, 180), (400, 290)):
        if changed is not None:
            costs[changed : changed + 5] += 1.0
        track.n_frames, track.category_rows = frames, rows_of(*costs[:frames].T)
        (track.wall_row,) = rows_of(costs[:frames].sum(axis=1))
        track.work_rows = {"search tokens": track.category_rows[0]}
        series = series_of(session, track)
        assert len(series) == frames
        assert np.allclose(totals(series.costs, 0, frames), costs[:frames].sum(axis=0))
        work = series.work(["search tokens", "search arcs"])
        assert work.names == ("search tokens",)
        assert np.allclose(totals(work.rows, 0, frames)[0], costs[:frames, 0].sum())
