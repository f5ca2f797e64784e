"""Whole runs: the real recogniser on the bundled voices, recorded into sessions."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipelines.config import Config, assign
from pipelines.experiments import rerun
from pipelines.run import playlist
from pipelines.run.control import Control
from pipelines.run.session_run import Outcome
from profiler.analysis.breakdown import BETWEEN, breakdown
from profiler.analysis.categories import OVERHEAD
from profiler.analysis.own_cost import recorder_cost
from profiler.analysis.stage_sums import LEAF_GROUPS
from profiler.analysis.track import CostTrack
from profiler.errors import BadInput
from profiler.session.reader import Session
from profiler.spans import TILING
from tests.each import each
from tests.pipelines.whole_runs import Person, ask, assert_tiled, compiled, run


@pytest.fixture(scope="module")
def recorded(
    quick: Config, files: list[Path], bundled_speech: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Outcome, Path]:
    path = tmp_path_factory.mktemp("run") / "run.asrs"
    return run(quick, files, path, transcripts=bundled_speech / "transcripts.tsv"), path


def test_it_hears_what_was_said(recorded, quick, files):
    outcome, _ = recorded
    assert outcome.state == "closed"
    first, second = outcome.result.utterances
    assert (first.complete, second.complete) == (None, None), "there is no grammar"
    assert (second.hypothesis, second.errors) == ("yes of course", 0)
    assert first.errors <= first.reference_words // 2
    # Words depend neither on the block nor on the recorder.
    for block in (1, 37):
        alone = run(assign(quick, {"block": block}), files)
        assert [u.hypothesis for u in alone.result.utterances] == [first.hypothesis, second.hypothesis]
        assert alone.session is None


@pytest.mark.slow
def test_a_call_with_a_speaker_on_each_channel(quick, recorded, files, tmp_path):
    """Mixed, nobody is understood; channel by channel, both are, and the session says which part is which."""
    (second, rate), (first, _) = map(soundfile.read, files)
    path, out = str(tmp_path / "call.wav"), tmp_path / "call.asrs"
    call = np.zeros((len(second), 2))
    call[: len(first), 0], call[:, 1] = first, second
    soundfile.write(path, call, rate)
    each = assign(quick, {"audio.channel": "each"})
    left, right = run(each, [Path(path)], out).result.utterances
    alone = recorded[0].result.utterances
    assert (left.name, right.name) == ("call-left", "call-right")
    assert (right.hypothesis, left.hypothesis) == tuple(u.hypothesis for u in alone)
    with closing(Session.open(out)) as session:
        assert session.meta["audio"] == [path]
        assert [u.notes for u in session.utterances] == [("channel 1 of 2",), ("channel 2 of 2",)]
        assert rerun.items_of(session.utterances) == playlist.build([path], None, each.audio).items


def test_the_session_says_what_the_run_did(recorded):
    outcome, path = recorded
    with closing(Session.open(path)) as session:
        assert session.state == "closed"
        assert [u.hypothesis for u in session.utterances] == [u.hypothesis for u in outcome.result.utterances]
        for utterance in session.utterances:
            assert utterance.done
            times = np.array([(first, first + n) for _, first, n in utterance.words]) - utterance.first_frame
            assert times.min() >= 0
            assert times.max() <= utterance.n_frames
            assert (np.diff(times[:, 1]) >= 0).all()
        parts = breakdown(session)
    assert parts.wall_ns == outcome.result.wall_ns
    assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns, rel=1e-9)
    assert {"score.gaussians", "search.emit", "frontend.mfcc"} <= {s.name for s in parts.stages}


def test_decode_spans_tile_the_frames_without_gap_or_overlap(recorded):
    with closing(Session.open(recorded[1])) as session:
        assert_tiled(session)
        blocks = session.spans[[session.stages[n].group == "decode" for n in session.spans["stage"]]]
        frames = sum(u.n_frames for u in session.utterances)
    ends = blocks["first_frame"] + blocks["frames"]
    assert blocks["first_frame"].tolist() == [0, *ends[:-1]]
    assert ends[-1] == frames


def test_what_the_run_does_for_itself_counts_once(recorded):
    """It is the overhead, and with the spans of the stages the recorder's cost; no stage of the recogniser has it."""
    with closing(Session.open(recorded[1])) as session:
        assert {stage.group for stage in session.stages.values()} <= {*LEAF_GROUPS, *TILING, "setup", "idle"}
        track = CostTrack()
        track.update(session)
        parts, cost = breakdown(session, track=track), recorder_cost(session, track)
    overhead = parts.categories[OVERHEAD]
    assert parts.overhead() == {BETWEEN: overhead}
    assert cost.bookkeeping == pytest.approx(overhead / parts.wall_ns)
    blocks = sum(lane.recorded for lane in session.lanes.values())
    spans_ns = cost.ns_per_span * blocks
    assert overhead < cost.perturbation * parts.wall_ns < overhead + spans_ns


def test_toggles_change_the_work_and_leave_marks(quick, files, tmp_path):
    # Compiled before, they act at once.
    compiled(quick, {"gmm.selection.enabled": True})
    control = Person(ask(100, "gmm.selection.enabled", True), ask(200, "frames.skip", 2))
    path = tmp_path / "toggled.asrs"
    run(quick, files, path, control)
    with closing(Session.open(path)) as session:
        marks = [(m.key, m.value, m.epoch) for m in session.markers]
        assert marks == [("gmm.selection.enabled", True, 1), ("frames.skip", 2, 2)]
        names = np.array([session.stages[n].name for n in session.spans["stage"]])

        def per_frame(stage: str, epoch: int) -> float:
            chosen = session.spans[(names == stage) & (session.spans["epoch"] == epoch)]
            return float(chosen["work0"].sum() / max(1, chosen["frames"].sum()))

        # Selection sums fewer mixture components; skipping evaluates half the Gaussians.
        assert per_frame("score.select", 1) < 0.1 * per_frame("score.mixture", 0)
        assert per_frame("score.gaussians", 2) == pytest.approx(0.5 * per_frame("score.gaussians", 0), rel=0.05)
        assert session.utterances[0].epochs == (0, 1, 2)


def test_a_stop_leaves_a_valid_session_with_the_words_so_far(quick, files, tmp_path):
    for at in (0, 300):
        path = tmp_path / f"{at}.asrs"
        control = Person((at, Control.stop))
        if at == 0:  # before anything is prepared
            control.stop()
        assert run(quick, files, path, control).state == "stopped"
        with closing(Session.open(path)) as session:
            assert session.state == "stopped"
            if at == 0:
                assert not session.utterances
                continue
            (utterance,) = session.utterances
            assert (utterance.done, utterance.errors, utterance.complete) == (False, None, None)
            assert utterance.hypothesis
            assert at <= breakdown(session).last_frame <= at + 2 * quick.block


def test_pace_and_loop_act_while_it_runs(quick, files, tmp_path):
    """A run paced at real time waits; after a request to hurry and to loop it starts over, and idle stays outside."""
    frames = 120  # of 08-kal16-short
    control = Person(ask(40, "pace", 0), ask(60, "loop", True), (frames + 60, Control.stop))
    outcome = run(assign(quick, {"pace": 1.0}), files[1:], tmp_path / "paced.asrs", control)
    assert outcome.state == "stopped"
    with closing(Session.open(tmp_path / "paced.asrs")) as session:
        parts = breakdown(session)
        first, second = session.utterances
    assert second.first_frame == first.n_frames
    assert parts.idle_ns == outcome.result.idle_ns > 0.2e9
    assert parts.wall_ns + parts.idle_ns > 0.3e9
    assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns, rel=1e-9)


def test_a_bad_file_among_good_ones_is_named_and_the_rest_decoded(quick, files, tmp_path):
    bad, click, path = tmp_path / "bad.wav", tmp_path / "click.wav", tmp_path / "mixed.asrs"
    bad.write_bytes(b"RIFF\x00\x00\x00\x00WAVEnothing")
    soundfile.write(click, np.full(80, 0.1, np.float32), 16000)
    outcome = run(quick, [bad, click, files[1]], path)
    short, second = outcome.result.utterances
    assert short.done
    assert second.hypothesis == "yes of course"
    (sentence,) = outcome.result.refused
    assert str(bad) in sentence
    with closing(Session.open(path)) as session:
        assert [m.text for m in session.markers if m.kind == "error"] == [sentence]


@each("where", ["missing-folder/a.asrs", ""])
def test_an_impossible_session_path_is_refused_before_anything_is_done(quick, files, tmp_path, where):
    with pytest.raises((BadInput, OSError)) as refusal:
        run(quick, files, tmp_path / where)
    assert "\n" not in str(refusal.value)
    assert str(tmp_path) in str(refusal.value)


def test_a_session_that_goes_away_ends_as_failed_with_one_sentence(quick, files, tmp_path):
    path = tmp_path / "gone.asrs"
    saboteur = Person((101, lambda _: path.unlink()))
    outcome = run(assign(quick, {"pace": 4.0}), files, path, saboteur, repeat=100)
    assert outcome.state == "failed"
    assert len(outcome.result.utterances) < 5  # nothing is decoded that cannot be recorded
    assert str(path) in outcome.problem
    assert "\n" not in outcome.problem


@pytest.mark.slow
def test_what_was_done_to_the_sound_and_a_half_sentence_are_reported(quick, files, tmp_path):
    grammar, whole, half = (tmp_path / name for name in ("yes.gram", "whole.wav", "half.wav"))
    grammar.write_text("#JSGF V1.0; grammar yes; public <yes> = yes of course;")
    sound, rate = soundfile.read(files[1], dtype="float32")
    soundfile.write(whole, np.stack([sound, sound], 1), rate)
    soundfile.write(half, sound[: len(sound) // 2], rate)
    outcome = run(assign(quick, {"graph.grammar": str(grammar)}), [whole, half], tmp_path / "run.asrs")
    assert outcome.result.utterances[0].hypothesis == "yes of course"
    expected = [(True, ("mixed down from 2 channels",)), (False, ())]
    with Session.open(tmp_path / "run.asrs") as session:
        for utterances in (outcome.result.utterances, session.utterances):
            assert [(u.complete, u.notes) for u in utterances] == expected


@pytest.mark.slow
def test_a_run_on_the_untied_model(quick, files, tmp_path):
    config = assign(quick, {"model": "continuous", "gmm.components": 24, "threads": 2})
    outcome = run(config, files[1:], tmp_path / "run.asrs")
    assert outcome.state == "closed"
    assert outcome.result.utterances[0].hypothesis == "yes of course"
    with Session.open(tmp_path / "run.asrs") as session:
        (origin,) = session.meta["acoustic_models"]
        assert "24 Gaussians per senone and stream, untied from the ptm model en-us" in origin
        names = [session.stages[n].name for n in session.spans["stage"].tolist()]
    assert {"score.gaussians", "score.lse", "score.wait"} <= set(names)
    # Of thousands of tiles two spans a block, and one at each end for the other thread.
    scored = sum(name.startswith("score.") for name in names)
    assert scored == 4 * names.count("decode.block")
