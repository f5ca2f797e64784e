"""What a run decodes next: the last utterance again after a change, two settings in turn on request."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipelines.config import Config, assign
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from profiler.analysis.comparison.arms import arms_of
from profiler.session.model import Utterance
from profiler.session.reader import Session
from tests.each import each
from tests.pipelines import whole_runs
from tests.pipelines.refusing import refusal
from tests.pipelines.whole_runs import QUICK, Person, ask

SHORT, NUMBERS = "08-kal16-short", "04-kal16-numbers"
SELECTION = "gmm.selection.enabled"
IN_SHORT, IN_NUMBERS, AGAIN = (
    60,
    300,
    567,
)  # within the first utterance of 130 frames, the second of 377, the first again


def with_settings(**changed: bool | float | str) -> Config:
    return assign(QUICK, {key.replace("__", "."): value for key, value in changed.items()})


def run(control: Control, folder: Path, out: Path, repeat: int = 1, **changed: bool | float) -> list[Utterance]:
    config = with_settings(**{"repeat_on_change": True, **changed})
    whole_runs.compiled(config, {SELECTION: True})
    audio = [folder / f"{name}.flac" for name in (SHORT, NUMBERS)]
    outcome = whole_runs.run(config, audio, out, control, transcripts=folder / "transcripts.tsv", repeat=repeat)
    assert outcome.problem is None
    with closing(Session.open(out)) as session:
        return list(session.utterances)


def compare(control: Control) -> None:
    control.compare({SELECTION: True})


@each(
    "asked, expected",
    [
        # 1.3 s tell what became of three words; a ratio with an interval takes 4 s: what was changed within comes too.
        ([ask(IN_NUMBERS, SELECTION, True)], [(SHORT, (0,)), (NUMBERS, (0, 1)), (SHORT, (1,)), (NUMBERS, (1,))]),
        # A change while something comes again overtakes it.
        (
            [ask(IN_NUMBERS, SELECTION, True), ask(AGAIN, SELECTION, False)],
            [(SHORT, (0,)), (NUMBERS, (0, 1)), (SHORT, (1, 2)), (SHORT, (2,))],
        ),
        # There is no utterance before the first one.
        ([ask(IN_SHORT, SELECTION, True)], [(SHORT, (0, 1)), (SHORT, (1,)), (NUMBERS, (1,))]),
    ],
)
def test_what_comes_again_after_a_change(bundled_speech, tmp_path, asked, expected):
    found = run(Person(*asked), bundled_speech, tmp_path / "a.asrs")
    assert [(u.name, u.epochs) for u in found] == expected


def test_nothing_comes_again_unless_wanted_or_when_only_the_pace_changed(bundled_speech, tmp_path):
    for key, value, wanted in ((SELECTION, True, False), ("pace", 100.0, True)):
        person, out = Person(ask(IN_NUMBERS, key, value)), tmp_path / f"{key}.asrs"
        found = run(person, bundled_speech, out, repeat=2, repeat_on_change=wanted)
        assert [u.name for u in found] == [SHORT, NUMBERS] * 2


def test_one_utterance_is_decoded_in_turn_until_a_request_to_go_on(bundled_speech, tmp_path):
    out = tmp_path / "a.asrs"
    person = Person((IN_NUMBERS, compare), (507 + 6 * 377 + 10, lambda control: control.stop_comparing()))
    found = run(person, bundled_speech, out, repeat=2)
    assert [u.name for u in found] == [SHORT, NUMBERS, *[NUMBERS] * 7, SHORT, NUMBERS]
    assert [u.epochs for u in found[2:9]] == [(1,), (2,), (2,), (1,), (1,), (2,), (2,)]
    assert found[-1].epochs == (0,), "afterwards, the settings are those of before"
    with closing(Session.open(out)) as session:
        about = session.meta["ab"]
        assert [arm["set"] for arm in about["arms"]] == [{SELECTION: True}, {SELECTION: False}]
        assert (about["measured_from"], about["ended"]) == (found[2].first_frame, found[9].first_frame)
        notes = [m.text for m in session.markers]
        assert [len(arm.utterances) for arm in arms_of(session)] == [3, 4]
    assert notes == ["A/B begins, against Gaussian selection: on", "A/B ends"]


def test_a_change_ends_a_comparison_and_acts_after_it(bundled_speech, tmp_path):
    person = Person((IN_NUMBERS, compare), ask(600, "search.beam", 9.0))
    found = run(person, bundled_speech, tmp_path / "a.asrs", repeat=2, repeat_on_change=False)
    assert [u.name for u in found] == [SHORT, NUMBERS, NUMBERS, SHORT, NUMBERS]
    assert found[2].epochs == (1,), "no change acts within a turn"
    assert found[4].epochs == (3,), "its number is new"
    assert person.other is None


@pytest.mark.slow
def test_pace_does_not_hold_a_comparison_up(bundled_speech, tmp_path):
    """The arms have no pace, and what is left of the utterance under way is not waited for."""
    person, out = Person((20, compare), (130 + 2 * 130 + 5, lambda control: control.stop())), tmp_path / "a.asrs"
    found = run(person, bundled_speech, out, pace=1.0)
    assert [u.epochs for u in found] == [(0,), (1,), (2,), ()]
    with closing(Session.open(out)) as session:
        assert [row.tree["pace"] for row in session.configs] == [1.0, 0.0, 0.0, 0.0, 1.0]


@each(
    "other, why",
    [
        ({"model": "dnn"}, "model cannot be compared while a run goes on"),
        ({"pace": 2.0}, "pace cannot be compared while a run goes on"),
        ({SELECTION: False}, "Both sides of the comparison have the same settings"),
        ({"nonsense": 1}, "no setting called 'nonsense'"),
    ],
)
def test_what_cannot_be_compared_is_refused(other, why):
    control = Control()
    refusal(why, control.compare, other)
    assert control.other is None


@pytest.mark.slow
def test_selection_prepared_in_advance_acts_at_the_next_block(bundled_speech, tmp_path):
    """Its shortlists are made before the first frame, and the roofs that its laws name are measured there."""
    config = with_settings(gmm__selection__method="vq", gmm__selection__codewords=16, gmm__selection__prepare=True)
    person = Person(ask(IN_SHORT, SELECTION, True))
    audio = (str(bundled_speech / f"{SHORT}.flac"),)
    measured_at: list[int] = []
    out = tmp_path / "a.asrs"

    def note_stage(stage: str, _fraction: float | None) -> None:
        if stage.startswith("measuring"):
            measured_at.append(person.frame)

    execute(Request(config, "test", audio, None, out), person, note_stage)
    assert not any(measured_at)
    with closing(Session.open(out)) as session:
        (marker,) = session.markers
    assert marker.applied_frame is not None
    assert marker.applied_frame - marker.asked_frame <= config.block


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    soundfile.write(tmp_path / "empty.wav", np.zeros(0, np.float32), 16000)
    return tmp_path / "empty.wav"


def test_files_without_a_frame_are_reported_once_and_a_loop_over_them_ends(empty, bundled_speech, tmp_path):
    short = bundled_speech / f"{SHORT}.flac"
    for config, files, repeat in ((with_settings(loop=True), [empty], 1), (with_settings(), [empty, short], 3)):
        out = tmp_path / f"{repeat}.asrs"
        outcome = whole_runs.run(config, files, out, repeat=repeat)
        assert (outcome.state, len(outcome.result.refused)) == ("closed", 1)
        assert [u.name for u in outcome.result.utterances] == [SHORT] * repeat * (len(files) - 1)
        with closing(Session.open(out)) as session:
            assert [marker.kind for marker in session.markers] == ["error"]
