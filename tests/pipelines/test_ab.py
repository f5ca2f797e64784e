"""Two configurations in turn: order, epochs, warm-up, stopping, and what the session says of it."""

from contextlib import closing
from pathlib import Path

import pytest

from pipelines.audio.word_errors import word_errors
from pipelines.config import Config, ConfigError, assign
from pipelines.experiments.ab import Arm, Interleaved, differences
from pipelines.run.control import Control
from pipelines.run.measurements import RunMeasurements
from pipelines.run.session_run import Outcome
from profiler.analysis.comparison.arms import arms_of
from profiler.analysis.comparison.compare import compare
from profiler.machine.run_queue import Lost
from profiler.session.reader import Session
from tests.pipelines import whole_runs
from tests.pipelines.whole_runs import Person

FILES = ("08-kal16-short.flac", "04-kal16-numbers.flac")


def arm(config: Config, **assignments: bool | float | str) -> Arm:
    dotted = {key.replace("__", "."): value for key, value in assignments.items()}
    return Arm(assign(config, dotted), dotted)


def run(
    a: Arm, b: Arm, folder: Path, out: Path, repeat: int = 2, control: Control | None = None, n_files: int = 2
) -> tuple[Outcome, Interleaved]:
    order = Interleaved(a, b, repeat)
    paths, said = [folder / name for name in FILES[:n_files]], folder / "transcripts.tsv"
    outcome = whole_runs.run(a.config, paths, out, control, transcripts=said, repeat=repeat, order=order)
    return outcome, order


@pytest.fixture(scope="module")
def recorded(quick: Config, bundled_speech: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Path]:
    path = tmp_path_factory.mktemp("ab") / "ab.asrs"
    b = arm(quick, search__beam=6.0, gmm__selection__method="top-n")
    outcome, order = run(arm(quick), b, bundled_speech, path)
    assert order.recognisers[0] is order.recognisers[1]
    return outcome, path


def test_arms_are_distinguished_by_epoch_and_in_words_and_times(recorded):
    outcome, path = recorded
    assert outcome.state == "closed"
    with closing(Session.open(path)) as session:
        about, utterances = session.meta["ab"], session.utterances
        assert [one["epoch"] for one in about["arms"]] == [0, 1]
        assert about["arms"][1]["set"] == {"search.beam": 6.0, "gmm.selection.method": "top-n"}
        assert {u.epochs for u in utterances} == {(0,), (1,)}
        assert {(c.epoch, c.tree["search"]["beam"]) for c in session.configs} == {(0, 13.0), (1, 6.0)}
        for utterance in utterances:
            # The configuration in force at its first frame is that of its arm.
            last = [c for c in session.configs if c.first_frame <= utterance.first_frame][-1]
            assert utterance.epochs == (last.epoch,)
            spans = session.spans[session.spans["frames"] > 0]
            mine = (spans["first_frame"] - utterance.first_frame) // utterance.n_frames == 0
            assert set(spans[mine]["epoch"].tolist()) == set(utterance.epochs)
        assert {epoch for _, epoch in session.costs} == {0, 1}
        assert about["measured_from"] == utterances[2 * len(FILES)].first_frame
        assert [m.asked_frame for m in session.markers if m.kind == "note"] == [about["measured_from"]]
        arms = arms_of(session)
        assert [len(arm.utterances) for arm in arms] == [2 * len(FILES)] * 2
        assert [arm.config["search"]["beam"] for arm in arms] == [13.0, 6.0]
        found = compare(session)
        heard = {(u.name, u.epochs, u.hypothesis) for u in session.utterances}
    assert (found.interleaved, found.repeats) == (True, 2)
    assert "score.select" in found.only_b
    # The same arm hears the same every time, and with a beam of 6 much is lost.
    assert len(heard) == 2 * len(FILES)
    errors_a, errors_b = word_errors(found.decoded_a), word_errors(found.decoded_b)
    assert errors_a.words == errors_b.words > 0
    assert errors_b.errors >= errors_a.errors


def test_a_repeat_in_which_the_process_stood_still_is_taken_again(quick, bundled_speech, tmp_path, monkeypatch):
    path, asked, told = tmp_path / "ab.asrs", RunMeasurements.lost, list[int]()

    def lost(self: RunMeasurements, now: int, *, surely: bool = False) -> Lost:
        found = asked(self, now, surely=surely)
        # Asked surely at the beginning and the end of each: at the beginning of the first one of the warm-up, where
        # nobody cares, and of the second file's second arm in the first repeat that counts.
        told.extend([now] * surely)
        return found._replace(stopped_ns=1_000_000) if surely and len(told) in (1, 15) else found

    monkeypatch.setattr(RunMeasurements, "lost", lost)
    run(arm(quick), arm(quick, search__beam=6.0), bundled_speech, path)
    with closing(Session.open(path)) as session:
        spoilt = [u for u in session.utterances if any("stood still" in note for note in u.notes)]
        about = session.meta["ab"]
        # What is decoded once: a warm-up and two repeats of two files by two arms, and two of them again.
        assert len(session.utterances) == 14
        assert [u.first_frame for u in spoilt if u.first_frame >= about["measured_from"]] == [about["again"][1]]
        assert len(spoilt) == len(about["again"]) == 2
        a, b = arms_of(session)
        assert len(a.utterances) == len(b.utterances) == 4
        assert not {u.first_frame for u in (*a.utterances, *b.utterances)} & set(about["again"])
        assert compare(session).repeats == 2
        stops = [m for m in session.markers if "stood still for 0.0 s" in m.text]
        assert len(stops) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("most", "decided_at", "repeats"), [(8, 4, 4), (8, 99, 8), (5, 99, 5), (1, 99, 2), (0, 99, 2)])
def test_repeats_are_doubled_until_it_is_decided(quick, bundled_speech, tmp_path, most, decided_at, repeats):
    path = tmp_path / "ab.asrs"
    looks: list[int] = []
    shares: list[float | None] = []

    def decided() -> bool:
        with closing(Session.open(path)) as session:  # it is being recorded
            looks.append(sum(u.done for u in session.utterances))
        return 2 ** len(looks) >= decided_at

    progress = lambda _, share: shares.append(share)  # noqa: E731
    order = Interleaved(arm(quick), arm(quick), 2, progress=progress, most=most, decided=decided)
    whole_runs.run(quick, [bundled_speech / FILES[0]], path, order=order)
    with closing(Session.open(path)) as session:
        a, b = arms_of(session)
        assert session.meta["ab"]["repeat"] == repeats
    assert len(a.utterances) == len(b.utterances) == repeats
    assert all(0 <= share < 1 for share in shares if share is not None)
    assert looks == sorted(set(looks)), "each look has more repeats than the one before"


@pytest.mark.slow
def test_settings_that_cannot_change_live_get_a_second_recogniser(quick, bundled_speech, tmp_path):
    a, b = arm(quick), arm(quick, graph__order=1)
    outcome, order = run(a, b, bundled_speech, tmp_path / "ab.asrs", 1, n_files=1)
    assert outcome.state == "closed"
    first, second = order.recognisers
    assert first is not second
    assert first.search.graph.n_arcs != second.search.graph.n_arcs
    with closing(Session.open(tmp_path / "ab.asrs")) as session:
        assert [u.epochs for u in session.utterances] == [(0,), (1,), (1,), (0,)]


def test_a_stop_leaves_a_valid_session_with_what_was_done(quick, bundled_speech, tmp_path):
    in_second_repeat = round(2.3 * 2 * (131 + 377))
    path = tmp_path / "stopped.asrs"
    impatient = Person((in_second_repeat, Control.stop))
    outcome, _ = run(arm(quick), arm(quick), bundled_speech, path, 5, impatient)
    assert outcome.state == "stopped"
    with closing(Session.open(path)) as session:
        assert session.state == "stopped"
        found = compare(session)
    assert found.repeats == 1
    assert any("cannot know the noise" in warning for warning in found.warnings)


def test_differences_are_named_in_the_order_of_the_data_and_those_of_waiting_and_ending_refused(quick):
    assert differences(quick, assign(quick, {"search.beam": 9.0, "block": 8})) == ["block", "search.beam"]
    with pytest.raises(ConfigError, match="pace only says when a run waits or ends"):
        Interleaved(arm(quick), arm(quick, pace=2.0), 1)
