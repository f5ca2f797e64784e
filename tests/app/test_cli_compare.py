"""`asrscope ab` and `asrscope compare` as other people's scripts call them."""

import json
import signal

import pytest
from command_line import answer, decoding, here, printed, refused

from tests.waiting import PATIENCE_S, wait_for_frames

ROW = {"ratio", "ci95", "verdict"}
VERDICTS = {"A faster", "B faster", "no difference", "undecided"}


@pytest.fixture(scope="module")
def ab(bundled_speech, tmp_path_factory, short_runs):
    """Arm B has a quarter of the tokens to pass, so that it is faster on any machine."""
    out = tmp_path_factory.mktemp("ab") / "ab.asrs"
    return answer(
        "ab", "--preset", "gmm-quick", "--a", "search.beam=16", "--b", "search.beam=5",
        "--audio", bundled_speech / "04-kal16-numbers.flac",
        "--transcripts", bundled_speech / "transcripts.tsv",
        "--repeat", "6", "--out", out,
    ), out  # fmt: skip


def test_ab_prints_the_keys_of_the_contract_and_finds_the_faster_search(ab):
    tree, out = ab
    assert tree["schema"] == 1
    assert tree["a"] == tree["b"] == tree["session"] == str(out)
    assert tree["warnings"] == []
    assert set(tree["overall"]) >= ROW
    assert set(tree["wer"]) == {"a", "b"}
    assert tree["wer_words"]["a"] == tree["wer_words"]["b"] > 0
    for row in tree["stages"]:
        assert set(row) >= ROW | {"name", "p_adjusted"}
        assert row["verdict"] in VERDICTS
        assert row["ci95"][0] <= row["ratio"] <= row["ci95"][1]
    assert tree["repeats"] == 6
    assert tree["differences"] == {"search.beam": [16.0, 5.0]}
    assert tree["utterances"] == {"matched": 1, "only_a": [], "only_b": []}
    emit = next(row for row in tree["stages"] if row["name"] == "search.emit")
    assert emit["ratio"] < 0.8
    assert tree["overall"]["ratio"] < 1.0
    assert tree["overall"]["rtf_b"] < tree["overall"]["rtf_a"]


def test_compare_says_of_the_session_what_ab_said(ab):
    tree, out = ab
    assert answer("compare", out) == {k: v for k, v in tree.items() if k not in ("session", "state")}
    page = printed("compare", out)
    assert "search.beam: 16 in A, 5 in B" in page
    assert "search.emit" in page
    assert "6 repeats in turns" in page


def test_a_decided_slow_down_fails_on_request(ab, monkeypatch):
    tree, out = ab
    assert here("compare", out, "--fail-if", "slower").returncode == 0  # B is faster
    for verdict, status in (("A faster", 3), ("undecided", 0), ("no difference", 0)):
        judged = tree | {"overall": tree["overall"] | {"verdict": verdict}}
        monkeypatch.setattr("app.cli.compare.report", lambda *_, judged=judged, **__: judged)
        assert here("compare", out, "--fail-if", "slower").returncode == status
        assert here("compare", out).returncode == 0


@pytest.fixture(scope="module")
def plain(bundled_speech, tmp_path_factory, short_runs):
    """Two sessions of one run each, with different beams."""
    folder = tmp_path_factory.mktemp("plain")
    for name, beam in (("a", "13"), ("b", "5")):
        printed(
            "run", "--preset", "gmm-quick", "--set", f"search.beam={beam}",
            "--audio", bundled_speech / "08-kal16-short.flac", "--out", folder / f"{name}.asrs",
        )  # fmt: skip
    return [folder / "a.asrs", folder / "b.asrs"]


@pytest.mark.slow
def test_two_single_runs_are_undecided_and_it_says_why(plain):
    tree = answer("compare", *plain)
    assert (tree["a"], tree["b"]) == tuple(map(str, plain))
    assert tree["overall"]["verdict"] == "undecided"
    assert tree["overall"]["ci95"] is None
    assert {row["verdict"] for row in tree["stages"]} == {"undecided"}
    assert any("cannot know the noise between runs" in w for w in tree["warnings"])
    assert "(no interval)" in here("compare", *plain).stdout


def test_the_measured_floor_is_shown_for_its_own_machine(ab, tmp_path, monkeypatch):
    from profiler.machine.describe import describe

    _, out = ab
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    machine = {key: describe().get(key) for key in ("host", "cpu")}
    for host, wanted in ((machine["host"], True), ("elsewhere", False)):
        stored = {"floor": 0.0123, "machine": {**machine, "host": host}}
        (tmp_path / "aa-floor.json").write_text(json.dumps(stored))
        assert (answer("compare", out)["floor"] == 0.0123) is wanted


@pytest.mark.slow
def test_sessions_are_run_again_in_turns(ab, plain, tmp_path):
    _, recorded = ab
    options = ("--repeat", "1", "--until-decided", "2", "--out", tmp_path / "again.asrs")
    for sessions, differences in (
        (plain, {"search.beam": [13.0, 5.0]}),
        ([recorded], {"search.beam": [16.0, 5.0]}),
        ([plain[0]], {}),
    ):
        tree = answer("ab", "--session", *sessions, *options)
        assert tree["differences"] == differences
        assert tree["repeats"] == 2, "doubled, for one repeat decides nothing"
        assert tree["warnings"][-1] == "Nothing is decided after 2 repeats of each arm."
    done = here("ab", "--session", plain[0], "--b", "audio.channel=left", *options)
    assert "audio.channel says what is decoded; both arms need the same." in done.stderr


def test_what_cannot_be_compared_is_refused_and_leaves_no_session(plain, tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_SESSIONS", str(tmp_path))
    done = here("ab", "--session", plain[0], "--b", "graph.grammar=/dev/null")
    assert (done.returncode, done.stdout) == (2, "")
    assert "grammar" in done.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []
    assert "give a second session" in refused("compare", plain[0])


@pytest.mark.slow
def test_ctrl_c_reports_the_repeats_done(bundled_speech, tmp_path):
    out = tmp_path / "interrupted.asrs"
    words = ("ab", "--preset", "gmm-quick", "--set", "pace=10", "--audio", bundled_speech / "08-kal16-short.flac")
    with decoding(*words, "--repeat", "1000", "--out", out, "--json", until="in turn") as process:
        wait_for_frames(out, 800)  # of about 130 each
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, stderr
    tree = json.loads(stdout)
    assert tree["state"] == "stopped"
    assert 1 <= tree["repeats"] < 100
    assert answer("compare", out)["overall"] == tree["overall"]
