"""Whole runs: the real recogniser on the bundled voices, recorded into sessions."""

import os
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
from tests.pipelines.whole_runs import Person, ask, compiled, run

UTTERANCES = ("01-slt-morning.flac", "08-kal16-short.flac")


@pytest.fixture(scope="module")
def files(bundled_speech: Path) -> list[Path]:
    return [bundled_speech / name for name in UTTERANCES]


@pytest.fixture(scope="module")
def recorded(
    quick: Config, files: list[Path], bundled_speech: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Outcome, Path]:
    path = tmp_path_factory.mktemp("run") / "run.asrs"
    return run(quick, files, path, transcripts=bundled_speech / "transcripts.tsv"), path


def test_it_hears_what_was_said(recorded):
    outcome, _ = recorded
    assert outcome.state == "closed"
    first, second = outcome.result.utterances
    assert (first.complete, second.complete) == (None, None), "there is no grammar"
    assert second.hypothesis == "yes of course"
    assert second.errors == 0
    assert first.errors is not None
    assert first.errors <= first.reference_words // 2


@pytest.mark.slow
def test_a_call_with_a_speaker_on_each_channel(quick, bundled_speech, tmp_path):
    """Mixed, nobody is understood; channel by channel, both are, and the session says which part is which."""
    first, rate = soundfile.read(bundled_speech / UTTERANCES[1])
    second, _ = soundfile.read(bundled_speech / UTTERANCES[0])
    call = np.zeros((len(second), 2))
    call[: len(first), 0], call[:, 1] = first, second
    soundfile.write(tmp_path / "call.wav", call, rate)
    each = assign(quick, {"audio.channel": "each"})
    outcome = run(each, [tmp_path / "call.wav"], tmp_path / "call.asrs")
    alone = run(quick, [bundled_speech / UTTERANCES[0]], None).result.utterances[0]
    left, right = outcome.result.utterances
    assert (left.name, right.name) == ("call-left", "call-right")
    assert left.hypothesis == "yes of course"
    assert right.hypothesis == alone.hypothesis
    with closing(Session.open(tmp_path / "call.asrs")) as session:
        items = rerun.items_of(session.utterances)
        assert session.meta["audio"] == [str(tmp_path / "call.wav")]
        assert [u.notes for u in session.utterances] == [("channel 1 of 2",), ("channel 2 of 2",)]
    assert items == playlist.build([str(tmp_path / "call.wav")], None, each.audio).items


def test_the_session_says_what_the_run_did(recorded):
    outcome, path = recorded
    with closing(Session.open(path)) as session:
        assert session.state == "closed"
        assert [u.hypothesis for u in session.utterances] == [u.hypothesis for u in outcome.result.utterances]
        for utterance in session.utterances:
            assert utterance.done
            ends = [first + n for _, first, n in utterance.words]
            assert all(
                utterance.first_frame <= first and first + n <= utterance.first_frame + utterance.n_frames
                for _, first, n in utterance.words
            )
            assert ends == sorted(ends)
        parts = breakdown(session)
    assert parts.wall_ns == outcome.result.wall_ns
    assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns, rel=1e-9)
    assert {"score.gaussians", "search.emit", "frontend.mfcc"} <= {s.name for s in parts.stages}


def test_decode_spans_tile_the_frames_without_gap_or_overlap(recorded):
    _, path = recorded
    with closing(Session.open(path)) as session:
        group = {number: stage.group for number, stage in session.stages.items()}
        groups = np.array([group[n] for n in session.spans["stage"]])
        blocks = session.spans[groups == "decode"]
        tiles = session.spans[np.isin(groups, TILING)]
        leaves = session.spans[np.isin(groups, ("frontend", "scoring", "search"))]
        frames = sum(u.n_frames for u in session.utterances)
    covered = np.concatenate([np.arange(b["first_frame"], b["first_frame"] + b["frames"]) for b in blocks])
    np.testing.assert_array_equal(covered, np.arange(frames))
    starts, ends = tiles["start_ns"], tiles["start_ns"] + tiles["duration_ns"]
    assert (starts[1:] >= ends[:-1]).all()
    # Every leaf lies within one tile.
    at = np.searchsorted(starts, leaves["start_ns"], side="right") - 1
    assert (leaves["start_ns"] + leaves["duration_ns"] <= ends[at]).all()


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


def test_words_do_not_depend_on_the_block_or_the_recorder(recorded, quick, files):
    heard = [u.hypothesis for u in recorded[0].result.utterances]
    for block in (1, 37):
        outcome = run(assign(quick, {"block": block}), files, None)
        assert [u.hypothesis for u in outcome.result.utterances] == heard
        assert outcome.session is None


def test_toggles_change_the_work_and_leave_marks(quick, files, tmp_path):
    # Compiled before, they act at once.
    compiled(quick, {"gmm.selection.enabled": True})
    control = Person(ask(100, "gmm.selection.enabled", True), ask(200, "frames.skip", 2))
    path = tmp_path / "toggled.asrs"
    run(quick, files, path, control)
    with closing(Session.open(path)) as session:
        selection, skip = session.markers
        assert (selection.key, selection.value, selection.epoch) == ("gmm.selection.enabled", True, 1)
        assert (skip.key, skip.value, skip.epoch) == ("frames.skip", 2, 2)
        work = {s.name: (n, s.work) for n, s in session.stages.items()}
        spans = session.spans

        def per_frame(stage: str, epoch: int) -> float:
            chosen = spans[(spans["stage"] == work[stage][0]) & (spans["epoch"] == epoch)]
            return float(chosen["work0"].sum() / max(1, chosen["frames"].sum()))

        # Selection sums fewer mixture components; skipping evaluates half the Gaussians.
        assert per_frame("score.select", 1) < 0.1 * per_frame("score.mixture", 0)
        assert per_frame("score.gaussians", 2) == pytest.approx(0.5 * per_frame("score.gaussians", 0), rel=0.05)
        assert session.utterances[0].epochs == (0, 1, 2)


def test_a_stop_leaves_a_valid_session_with_the_words_so_far(quick, files, tmp_path):
    path = tmp_path / "stopped.asrs"
    outcome = run(quick, files, path, Person((300, Control.stop)))
    assert outcome.state == "stopped"
    with closing(Session.open(path)) as session:
        assert session.state == "stopped"
        (utterance,) = session.utterances
        assert not utterance.done
        assert utterance.hypothesis
        assert (utterance.errors, utterance.complete) == (None, None)
        assert 300 <= breakdown(session).last_frame <= 300 + 2 * quick.block


def test_a_stop_before_the_first_frame_leaves_a_valid_session(quick, files, tmp_path):
    control = Control()
    control.stop()
    path = tmp_path / "never.asrs"
    assert run(quick, files, path, control).state == "stopped"
    with closing(Session.open(path)) as session:
        assert session.state == "stopped"
        assert not session.utterances


def test_pace_and_loop_act_while_it_runs(quick, files, tmp_path):
    """A run paced at real time waits; after a request to hurry and to loop it starts over, and idle stays outside."""
    path = tmp_path / "paced.asrs"
    frames = 120  # of 08-kal16-short
    control = Person(ask(40, "pace", 0), ask(60, "loop", True), (frames + 60, Control.stop))
    outcome = run(assign(quick, {"pace": 1.0}), files[1:], path, control)
    assert outcome.state == "stopped"
    with closing(Session.open(path)) as session:
        parts = breakdown(session)
        assert len(session.utterances) == 2
        assert session.utterances[1].first_frame == session.utterances[0].n_frames
    assert parts.idle_ns == outcome.result.idle_ns
    assert parts.idle_ns > 0.2e9
    assert parts.wall_ns + parts.idle_ns > 0.3e9
    assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns, rel=1e-9)


def test_a_bad_file_among_good_ones_is_named_and_the_rest_decoded(quick, files, tmp_path):
    bad = tmp_path / "bad.wav"
    bad.write_bytes(b"RIFF\x00\x00\x00\x00WAVEnothing")
    path = tmp_path / "mixed.asrs"
    outcome = run(quick, [bad, files[1]], path)
    assert [u.hypothesis for u in outcome.result.utterances] == ["yes of course"]
    (sentence,) = outcome.result.refused
    assert str(bad) in sentence
    with closing(Session.open(path)) as session:
        assert [m.text for m in session.markers if m.kind == "error"] == [sentence]


def test_very_short_audio_is_decoded(quick, tmp_path):
    path = tmp_path / "click.wav"
    soundfile.write(path, np.full(80, 0.1, np.float32), 16000)
    outcome = run(quick, [path], tmp_path / "click.asrs")
    assert outcome.state == "closed"
    assert outcome.result.utterances[0].done


@pytest.mark.parametrize("where", ["missing-folder/a.asrs", "a-folder"])
def test_an_impossible_session_path_is_refused_before_anything_is_done(quick, files, tmp_path, where):
    (tmp_path / "a-folder").mkdir()
    with pytest.raises((BadInput, OSError)) as refusal:
        run(quick, files, tmp_path / where)
    assert "\n" not in str(refusal.value)
    assert str(tmp_path) in str(refusal.value)


def test_a_session_that_goes_away_ends_as_failed_with_one_sentence(quick, files, tmp_path):
    path = tmp_path / "gone.asrs"

    saboteur = Person((101, lambda _: os.unlink(path)))
    outcome = run(assign(quick, {"pace": 4.0}), files, path, saboteur, repeat=100)
    assert outcome.state == "failed"
    assert len(outcome.result.utterances) < 5  # nothing is decoded that cannot be recorded
    assert str(path) in (outcome.problem or "")
    assert "\n" not in (outcome.problem or "")


@pytest.mark.slow
def test_what_was_done_to_the_sound_and_a_half_sentence_are_reported(quick, bundled_speech, tmp_path):
    grammar = tmp_path / "yes.gram"
    grammar.write_text("#JSGF V1.0; grammar yes; public <yes> = yes of course;")
    sound, rate = soundfile.read(bundled_speech / "08-kal16-short.flac", dtype="float32")
    whole, half = tmp_path / "whole.wav", tmp_path / "half.wav"
    soundfile.write(whole, np.stack([sound, sound], 1), rate)
    soundfile.write(half, sound[: len(sound) // 2], rate)
    config = assign(quick, {"graph.grammar": str(grammar)})
    outcome = run(config, [whole, half], tmp_path / "run.asrs")
    first, second = outcome.result.utterances
    assert (first.hypothesis, first.complete, first.notes) == ("yes of course", True, ("mixed down from 2 channels",))
    assert (second.complete, second.notes) == (False, ())
    with Session.open(tmp_path / "run.asrs") as session:
        assert [u.complete for u in session.utterances] == [True, False]
        assert [u.notes for u in session.utterances] == [first.notes, ()]


@pytest.mark.slow
def test_what_is_left_out_of_a_language_model_is_in_result_and_session(quick, bundled_speech, tmp_path):
    words = ("yes", "of", "course", "vielleicht", "natürlich")
    unigrams = "".join(f"-0.8 {word}\n" for word in ("<s>", "</s>", *words))
    (tmp_path / "own.arpa").write_text(f"\\data\\\nngram 1=7\n\n\\1-grams:\n{unigrams}\n\\end\\\n", encoding="utf-8")
    config = assign(quick, {"graph.language_model": str(tmp_path / "own.arpa")})
    outcome = run(config, [bundled_speech / "08-kal16-short.flac"], tmp_path / "run.asrs")
    assert outcome.result.utterances[0].hypothesis == "yes of course"
    with Session.open(tmp_path / "run.asrs") as session:
        assert session.meta["notes"] == [
            "2 of 5 words of the language model have no pronunciation and are left out: vielleicht, natürlich"
        ]


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
