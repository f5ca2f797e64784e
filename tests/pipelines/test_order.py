"""What a run decodes next: the last utterance again after a change, two settings in turn on request."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipelines import config as settings
from pipelines.config import presets
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from profiler.analysis.comparison.arms import arms_of
from profiler.session.model import Utterance
from profiler.session.reader import Session
from tests.each import each
from tests.pipelines import whole_runs
from tests.pipelines.refusing import refusal
from tests.pipelines.whole_runs import Person

SHORT, NUMBERS = "08-kal16-short", "04-kal16-numbers"
SELECTION = "gmm.selection.enabled"
IN_SHORT, IN_NUMBERS = 60, 300
"""Frames within the first and the second utterance, which are 130 and 377 frames long."""


def run(control: Control, folder: Path, out: Path, repeat: int = 2, **changed: bool | float) -> list[Utterance]:
    config = presets.load("gmm-quick").config
    for key, value in {"repeat_on_change": True, **changed}.items():
        config = settings.replace(config, key, value)
    whole_runs.compiled(config, {SELECTION: True})
    audio = [folder / f"{name}.flac" for name in (SHORT, NUMBERS)]
    said = folder / "transcripts.tsv"
    outcome = whole_runs.run(config, audio, out, control, transcripts=said, repeat=repeat)
    assert outcome.problem is None
    with closing(Session.open(out)) as session:
        return list(session.utterances)


def flip(control: Control) -> None:
    control.ask(SELECTION, True)


def test_after_a_short_one_the_one_changed_within_comes_again_as_well(bundled_speech, tmp_path):
    """1.3 s tell what became of three words; a ratio with an interval takes 4 s."""
    found = run(Person((IN_NUMBERS, flip)), bundled_speech, tmp_path / "a.asrs", repeat=1)
    assert [(u.name, u.epochs) for u in found] == [(SHORT, (0,)), (NUMBERS, (0, 1)), (SHORT, (1,)), (NUMBERS, (1,))]


def test_a_change_while_something_comes_again_overtakes_it(bundled_speech, tmp_path):
    back = (507 + IN_SHORT, lambda control: control.ask(SELECTION, False))
    person = Person((IN_NUMBERS, flip), back)
    found = run(person, bundled_speech, tmp_path / "a.asrs", repeat=1)
    assert [(u.name, u.epochs) for u in found] == [(SHORT, (0,)), (NUMBERS, (0, 1)), (SHORT, (1, 2)), (SHORT, (2,))]


def test_with_no_utterance_before_it_the_one_changed_within_comes_again(bundled_speech, tmp_path):
    found = run(Person((IN_SHORT, flip)), bundled_speech, tmp_path / "a.asrs", repeat=1)
    assert [(u.name, u.epochs) for u in found] == [(SHORT, (0, 1)), (SHORT, (1,)), (NUMBERS, (1,))]


def test_nothing_comes_again_unless_wanted_or_when_only_the_pace_changed(bundled_speech, tmp_path):
    names = [SHORT, NUMBERS] * 2
    unwanted = Person((IN_NUMBERS, flip))
    found = run(unwanted, bundled_speech, tmp_path / "a.asrs", repeat_on_change=False)
    assert [u.name for u in found] == names
    paced = Person((IN_NUMBERS, lambda control: control.ask("pace", 100.0)))
    assert [u.name for u in run(paced, bundled_speech, tmp_path / "b.asrs")] == names


def test_one_utterance_is_decoded_in_turn_until_a_request_to_go_on(bundled_speech, tmp_path):
    out = tmp_path / "a.asrs"
    person = Person(
        (IN_NUMBERS, lambda control: control.compare({SELECTION: True})),
        (507 + 6 * 377 + 10, lambda control: control.stop_comparing()),
    )
    found = run(person, bundled_speech, out)
    assert [u.name for u in found] == [SHORT, NUMBERS, *[NUMBERS] * 7, SHORT, NUMBERS]
    arms = [u.epochs for u in found[2:9]]
    assert arms == [(1,), (2,), (2,), (1,), (1,), (2,), (2,)]
    assert found[-1].epochs == (0,), "afterwards, the settings are those of before"
    with closing(Session.open(out)) as session:
        about = session.meta["ab"]
        assert [arm["set"] for arm in about["arms"]] == [{SELECTION: True}, {SELECTION: False}]
        begun, after = found[2].first_frame, found[9].first_frame
        assert (about["measured_from"], about["ended"]) == (begun, after)
        notes = [m.text for m in session.markers]
        a, b = arms_of(session)
        assert (len(a.utterances), len(b.utterances)) == (3, 4)
    assert notes == ["A/B begins, against Gaussian selection: on", "A/B ends"]


def test_a_change_ends_a_comparison_and_acts_after_it(bundled_speech, tmp_path):
    person = Person(
        (IN_NUMBERS, lambda control: control.compare({SELECTION: True})),
        (600, lambda control: control.ask("search.beam", 9.0)),
    )
    found = run(person, bundled_speech, tmp_path / "a.asrs", repeat_on_change=False)
    assert [u.name for u in found] == [SHORT, NUMBERS, NUMBERS, SHORT, NUMBERS]
    assert found[2].epochs == (1,), "no change acts within a turn"
    assert found[4].epochs == (3,), "its number is new"
    assert person.other is None


@pytest.mark.slow
def test_pace_does_not_hold_a_comparison_up(bundled_speech, tmp_path):
    """The arms have no pace, and what is left of the utterance under way is not waited for."""
    person = Person(
        (20, lambda control: control.compare({SELECTION: True})), (130 + 2 * 130 + 5, lambda control: control.stop())
    )
    out = tmp_path / "a.asrs"
    found = run(person, bundled_speech, out, repeat=1, pace=1.0)
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
    config = presets.load("gmm-quick").config
    for key, value in {
        "gmm.selection.method": "vq",
        "gmm.selection.codewords": 16,
        "gmm.selection.prepare": True,
    }.items():
        config = settings.replace(config, key, value)
    person = Person((IN_SHORT, flip))
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


def empty(folder: Path) -> Path:
    path = folder / "empty.wav"
    soundfile.write(path, np.zeros(0, np.float32), 16000)
    return path


def test_a_loop_over_files_without_a_frame_ends_and_says_why_once(tmp_path):
    config = settings.replace(presets.load("gmm-quick").config, "loop", True)
    out = tmp_path / "a.asrs"
    outcome = whole_runs.run(config, [empty(tmp_path)], out)
    assert outcome.state == "closed"
    assert len(outcome.result.refused) == 1
    with closing(Session.open(out)) as session:
        assert [marker.kind for marker in session.markers] == ["error"]


def test_a_file_without_a_frame_is_reported_once_in_all_passes(bundled_speech, tmp_path):
    config = presets.load("gmm-quick").config
    files = [empty(tmp_path), bundled_speech / f"{SHORT}.flac"]
    out = tmp_path / "a.asrs"
    outcome = whole_runs.run(config, files, out, repeat=3)
    assert [u.name for u in outcome.result.utterances] == [SHORT] * 3
    with closing(Session.open(out)) as session:
        assert [marker.kind for marker in session.markers] == ["error"]
