"""`asrscope sweep` as scripts call it: one real trial, and one sentence for bad input."""

import csv
import json
import re
import sys

import made_study
import pytest
from command_line import answer, here, refused

import assets
from app.cli import _output
from app.cli import sweep as verb
from app.model.study import REPORT
from pipelines.experiments.sweep.study import StudyRun
from profiler.errors import Cancelled

pytest.importorskip("optuna", reason="the extra sweep is not installed")

OVER = ("--over", "block=8..16")


@pytest.mark.slow
def test_a_trial_leaves_sessions_and_a_front_and_the_same_command_only_reads_it(bundled_speech, tmp_path):
    words = (
        "sweep", "--preset", "gmm-quick", *OVER, "--trials", "1", "--repeat", "2", "--objectives", "rtf,wer,memory",
        "--audio", bundled_speech / "08-kal16-short.flac", "--transcripts", bundled_speech / "transcripts.tsv",
        "--out", tmp_path / "study",
    )  # fmt: skip
    done = here(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert "0 of 1 trials done" in done.stderr
    tree = json.loads(done.stdout)
    assert (tree["schema"], tree["study"]) == (1, str(tmp_path / "study"))
    assert tree["objectives"] == ["rtf", "wer", "memory"]
    (trial,) = tree["trials"]
    assert {"id", "state", "settings", "rtf", "rtf_ratio", "wer", "session", "host", "why"} <= set(trial)
    if trial["state"] == "rejected":  # another program has slowed the machine in each of three attempts
        assert "times as long" in trial["why"]
        return
    assert (trial["state"], trial["wer"], trial["why"]) == ("done", 0.0, None)
    assert 8 <= trial["settings"]["block"] <= 16
    assert trial["memory_bytes"] > 50e6
    shown = answer("show", trial["session"])
    assert shown["config"]["block"] == trial["settings"]["block"]
    assert shown["rtf"] == trial["rtf"]
    (point,) = tree["front"]
    low, high = point["rtf_ratio_ci95"]
    assert low <= point["rtf_ratio"] <= high
    assert point["trial"] == trial["id"]

    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "study").glob("*/*/*.asrs")}
    assert tree["complete"]
    again = here("sweep", *tree["command"], "--out", tmp_path / "study", "--csv", tmp_path / "t.csv", "--json")
    assert json.loads(again.stdout) == tree
    assert json.loads((tmp_path / "study" / REPORT).read_bytes()) == tree
    (row,) = csv.DictReader((tmp_path / "t.csv").read_text().splitlines())
    assert (float(row["rtf"]), row["session"], row["front"]) == (trial["rtf"], trial["session"], "yes")
    assert int(row["block"]) == trial["settings"]["block"]
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "study").glob("*/*/*.asrs")} == before
    text = here(*words).stdout
    assert {"block", str(trial["settings"]["block"])} <= set(text.split())
    assert str(tmp_path / "study") in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Give --over KEY=a,b,c"),
        (("--over", "search.beem=8,9"), "did you mean search.beam"),
        (("--over", "search.beam=9..8"), "is an empty range"),
        ((*OVER, *OVER), "names block twice"),
        ((*OVER, "--objectives", "speed"), "not 'speed'"),
        ((*OVER, "--constraint", "wer<0.2"), "NAME<=NUMBER"),
        ((*OVER, "--audio", "-"), "can be read once"),
        ((*OVER, "--set", "pace=1"), "pace must be 0.0"),
        ((*OVER, "--audio", str(assets.path("speech", "08-kal16-short.flac"))), "Word errors need --transcripts"),
        ((*OVER, "--png", "front.jpg"), "ends in .png"),
        ((*OVER, "--server", "nowhere", "--constraint", "rtf<=0.1"), "says nothing about another"),
        ((*OVER, "--server", "nowhere"), "No HyperQueue server can be reached"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence, tmp_path):
    assert sentence in refused("sweep", *words, "--out", tmp_path / "study")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("package", "more", "sentence"),
    [("optuna", (), "asrscope sweep needs the extra sweep"), ("hyperqueue", ("--server", "."), "--server needs the")],
)
def test_without_the_extra(package, more, sentence, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    assert sentence in refused("sweep", *OVER, *more, "--out", tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_a_stopped_sweep_reports_what_there_is(tmp_path, monkeypatch):
    def stopped(*_: object) -> None:
        raise Cancelled

    monkeypatch.setattr(StudyRun, "run", stopped)
    done = here("sweep", *OVER, "--out", tmp_path / "study", "--json")
    assert done.returncode == 130
    assert json.loads(done.stdout)["trials"] == []
    assert not json.loads(done.stdout)["complete"]
    assert "the same command with --out goes on" in done.stderr


def test_the_report_says_what_is_undecided_and_what_failed():
    trials = [
        made_study.trial(0, 0.9, 0.2, settings={"block": 8}),
        made_study.trial(1, 0.8, 0.2, settings={"block": 16}),
        made_study.trial(2, None, None, settings={"block": 12}, state="failed", why="It crashed."),
    ]
    front = [
        made_study.point(1, 0.81, (0.7, 0.9), touches=[0]),
        made_study.point(0, touches=[1], why="The repeats were too few."),
    ]
    text = _output.text(verb.document(made_study.study(trials, front, importance={"rtf": {"block": 1.0}})))
    lines = [re.sub(" {2,}", "|", line) for line in text.splitlines()]
    assert lines[0] == "3 trials: 2 done, 1 failed · 2 on the front"
    assert "0|✓|8|0.900|–|20.0|200|160|0.090|done" in lines
    assert "1|✓|16|0.810|0.700 – 0.900|20.0|201|160|0.080|done" in lines
    at = lines.index("The interval of trial 1 touches that of 0: their order is undecided.")
    assert lines[at + 1 : at + 4] == [
        "The interval of trial 0 touches that of 1: their order is undecided.",
        "Trial 0 is not confirmed: The repeats were too few.",
        "Trial 2: failed. It crashed.",
    ]
    assert "block|100.0 %" in lines
