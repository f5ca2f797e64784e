"""The reader of a study: figures, the fastest trial within a limit, the table as CSV, and damaged reports."""

import csv
import json

import pytest
from made_study import four_trials, point, study, trial, write_study

from app.model.study import REPORT, read, session_of, study_of, write_csv
from profiler.errors import BadInput


def test_a_confirmed_ratio_stands_in_place_of_the_first_one(tmp_path):
    found = read(write_study(tmp_path / "beams", four_trials()))
    ratios = {one.id: found.figure(one, "rtf") for one in found.trials}
    assert ratios == {0: 0.5, 1: 0.75, 2: None, 3: 0.9}
    assert found.ends(found.by_id[1]) == (0.7, 0.82)
    assert found.ends(found.by_id[0]) is None
    assert found.figure(found.by_id[0], "wer") == pytest.approx(40)
    assert found.figure(found.by_id[1], "memory") == pytest.approx(201)
    assert found.figure(found.by_id[1], "latency") == pytest.approx(160)
    assert found.keys == ("search.beam",)
    assert [trial.state for trial in found.trials].count("done") == 3


def test_errors_of_characters_are_titled_so():
    characters = [trial(0, 0.5, 0.4, cer=0.4), trial(1, 0.8, 0.1, cer=0.1), trial(2, None, None)]
    assert study_of(study(characters, [])).title("wer") == "character error rate"
    assert study_of(study([*characters, trial(3, 0.9, 0.2)], [])).title("wer") == "word error rate"
    assert study_of(study([trial(0, None, None)], [])).title("wer") == "word error rate"


@pytest.mark.parametrize(("limit", "number"), [(100, 0), (40, 0), (39.9, 1), (10, 1), (9.9, None)])
def test_the_fastest_trial_within_a_limit(limit, number):
    found = study_of(four_trials()).fastest("wer", limit)
    assert (None if found is None else found.id) == number


def test_a_trial_that_violates_a_constraint_is_never_the_fastest():
    trials = [trial(0, 0.5, 0.4, why="wer is 0.4, over 0.3."), trial(1, 0.8, 0.1)]
    found = study_of(study(trials, [point(1)])).fastest("wer", 50)
    assert found is not None
    assert found.id == 1


def test_sessions_are_found_where_the_study_is_now(tmp_path):
    found = study_of(four_trials())
    assert session_of(found.by_id[1], tmp_path) == tmp_path / "trials" / "1-1" / "trial.asrs"
    hostile = study_of(study([trial(0, 1.0, 0.1, session="/a/../b.asrs"), trial(1, 1.0, 0.1, session=None)], []))
    assert [session_of(one, tmp_path) for one in hostile.trials] == [None, None]


def test_the_table_as_csv(tmp_path):
    tree = four_trials()
    settings = [{"model": "gmm", "on": True}, {"model": "=1+1", "on": False}, {}, {"model": "gmm"}]
    for row, chosen in zip(tree["trials"], settings, strict=True):
        row["settings"] = chosen
    write_csv(study_of(tree), tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == ["gmm", "'=1+1", "", "gmm"]
    assert [row["on"] for row in rows] == ["true", "false", "", ""]
    assert [row["front"] for row in rows] == ["yes", "yes", "no", "no"]
    assert [row["rtf_ratio"] for row in rows] == ["0.5", "0.8", "", "0.9"]
    assert (rows[1]["rtf_ratio_confirmed"], rows[1]["rtf_ratio_low"], rows[1]["rtf_ratio_high"]) == (
        "0.75",
        "0.7",
        "0.82",
    )
    assert rows[0]["why"] == "The repeats were too few for an interval."
    assert rows[2]["why"] == "The run failed on here: it crashed."


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"trials": [trial(0, 1.0, 0.1), trial(0, 1.0, 0.1)]}, "two trials have one number"),
        ({"front": [point(7)]}, "a trial of the front is missing"),
        ({"objectives": ["speed"]}, "an objective is unknown"),
        ({"command": ["--preset", "gmm", "--png=x.png"]}, "its command has other options"),
        ({"command": ["--preset", "gmm", "--csv", "x"]}, "its command has other options"),
        ({"trials": [trial(0, -1.0, 0.1)], "front": []}, "Expected `float` >= 0.0"),
        ({"trials": [trial(0, 1e300, 0.1)], "front": []}, "Expected `float` <= 1000000000000000.0"),
        ({"trials": [trial(0, 1.0, 0.1, settings={"a": 1e300})], "front": []}, "a setting is too large"),
        ({"trials": [trial(0, 1.0, 0.1, settings={"a": [1]})], "front": []}, "got `array`"),
        ({"trials": [trial(0, 1.0, 0.1, settings={"a": "x" * 5000})], "front": []}, "length <= 4096"),
        ({"trials": [trial(0, 1.0, 0.1, settings={str(n): 1 for n in range(300)})], "front": []}, "too many settings"),
    ],
)
def test_a_report_that_does_not_fit_together_is_refused(tmp_path, change, says):
    with pytest.raises(BadInput, match=r"report\.json: the report of a sweep is damaged: ") as caught:
        read(write_study(tmp_path, four_trials(**change)))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "holds no study of a sweep"),
        *((content, "damaged") for content in (b"", b'{"study"', b"\xff", b'{"x":' + b"[" * 100_000)),
    ],
)
def test_a_folder_without_a_readable_report(tmp_path, content, says):
    if content is not None:
        (tmp_path / REPORT).write_bytes(content)
    with pytest.raises(BadInput, match=says):
        read(tmp_path)


def test_what_the_command_prints_is_read(tmp_path):
    tree = four_trials(importance={"wer": {"search.beam": 1.0}})
    assert read(write_study(tmp_path, tree)) == study_of(json.loads(json.dumps(tree)))
