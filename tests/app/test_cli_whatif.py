"""`asrscope whatif` and `asrscope confirm` as scripts call them."""

import json
import sqlite3

import pytest
from command_line import answer, asrscope, here, printed, refused

from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.short_runs import explain_briefly

STAGE = "score.mixture"


@pytest.fixture(scope="module")
def session(bundled_speech, tmp_path_factory, short_runs):
    out = tmp_path_factory.mktemp("whatif") / "run.asrs"
    printed(
        "run", "--preset", "gmm-quick", "--audio", bundled_speech / "08-kal16-short.flac",
        "--transcripts", bundled_speech / "transcripts.tsv", "--out", out,
    )  # fmt: skip
    return out


@pytest.fixture
def few_rounds(monkeypatch):
    """Of what is measured in this process; nothing here is about how sure a figure is."""
    from pipelines.experiments import rerun

    monkeypatch.setattr(rerun, "MAX_ROUNDS", rerun.MIN_ROUNDS)
    explain_briefly(monkeypatch)


def test_scoring_free_and_search_twice_as_fast(session):
    tree = answer("whatif", session, "--scale", "scoring=0", "--scale", "search=0.5")
    assert tree["schema"] == 1
    assert tree["session"] == str(session)
    assert tree["check"] is None
    assert len(tree["assumptions"]) == 2
    factors = {row["name"]: row["factor"] for row in tree["stages"]}
    assert factors[STAGE] == 0.0
    assert factors["search.emit"] == 0.5
    assert factors["overhead"] == factors["frontend.mfcc"] == 1.0
    for name, rtf, wall_s in (("time_s", "rtf", "wall_s"), ("predicted_s", "predicted_rtf", "predicted_wall_s")):
        assert tree[wall_s] == pytest.approx(sum(row[name] for row in tree["stages"]))
        assert tree[wall_s] == pytest.approx(tree[rtf] * tree["audio_s"])
    assert tree["rtf"] == pytest.approx(answer("show", session)["rtf"])


@pytest.mark.slow
def test_a_setting_is_predicted_and_checked(session):
    tree = answer("whatif", session, "--set", "frames.skip=2", "--check")
    # Not that it is less: how long both settings take is measured, on a machine that tests keep busy.
    assert tree["predicted_rtf"] == pytest.approx(sum(row["predicted_s"] for row in tree["stages"]) / tree["audio_s"])
    assert any("Tried here with both settings in turns" in sentence for sentence in tree["assumptions"])
    check = tree["check"]
    assert check["rounds"] >= 4
    assert check["predicted_ratio"] == pytest.approx(tree["predicted_rtf"] / tree["rtf"])
    assert check["difference"] == pytest.approx(check["ratio"] / check["predicted_ratio"] - 1)
    assert check["ci95"][0] <= check["ratio"] <= check["ci95"][1]
    assert {row["name"] for row in check["stages"]} >= {STAGE, "search.emit"}
    assert "session's audio" in check["audio"]
    shown = answer("show", session)
    assert (check["wer_words"], check["wer_errors"]) == (shown["wer_words"], shown["wer_errors"])
    assert 0 <= check["changed_wer_errors"] <= 2 * shown["wer_words"]


def test_a_setting_without_a_model_gets_no_number(session):
    tree = answer("whatif", session, "--set", "device=torch-cpu")
    assert tree["predicted_rtf"] is None
    assert all(row["predicted_s"] is None for row in tree["stages"])
    assert any("no model of device" in sentence for sentence in tree["assumptions"])
    text = here("whatif", session, "--set", "device=torch-cpu").stdout
    assert "→ – predicted" in text


def test_fewer_tokens_are_counted(session):
    tree = answer("whatif", session, "--set", "search.beam=7", "--set", "search.max_active=100")
    factors = {row["name"]: row["factor"] for row in tree["stages"]}
    assert factors["search.emit"] > 0
    assert factors["search.prune"] > 0
    (counted,) = (one for one in tree["assumptions"] if "tokens lived in a frame" in one)
    before, after = (int(word) for word in counted.split() if word.isdigit())
    assert after <= 100 < before


@pytest.mark.slow
@pytest.mark.usefixtures("few_rounds")
def test_confirm_prints_the_keys_of_the_contract(session):
    # A process of its own: it scores on several threads, which stay as long as the process does.
    done = asrscope("confirm", str(session), STAGE, "--json")
    assert done.returncode == 0, done.stderr
    tree = json.loads(done.stdout)
    assert (tree["schema"], tree["stage"]) == (1, STAGE)
    assert tree["survives"] in (True, False, None)
    assert tree["why"].endswith(".")
    for change in tree["perturbations"]:
        assert {"predicted", "ci95", "agrees"} <= set(change)
        assert (change["measured_ratio"] is None) == bool(change["unavailable"])
    made = {change["name"] for change in tree["perturbations"] if not change["unavailable"]}
    assert {"block ×2", "block ×½"} <= made
    done = here("confirm", session, "frontend.audio")
    assert done.returncode == 0
    assert "neither confirmed nor refuted" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["whatif", "--scale", "gpu=0"], "no stage or group 'gpu'"),
        (["whatif", "--scale", "search=fast"], "must be STAGE=FACTOR"),
        (["whatif", "--set", "frames.skip=9"], "frames.skip must be a whole number from 1 to 4"),
        (["whatif", "--set", "framse.skip=2"], "did you mean frames.skip?"),
        (["whatif", "--set", "audio.channel=left"], "audio.channel says what is decoded"),
        (["whatif"], "Give --scale"),
        (["whatif", "--scale", "search=0", "--check"], "cannot be run"),
        (["confirm", "score.nothing"], "no stage 'score.nothing'"),
    ],
)
def test_bad_input_is_one_sentence(session, words, expected):
    assert expected in refused(words[0], session, *words[1:])


def test_a_session_that_tells_too_little_is_one_sentence(session, tmp_path):
    missing = tmp_path / "gone.asrs"
    for verb, *more in (("whatif", "--scale", "search=0"), ("confirm", STAGE)):
        assert "gone.asrs" in refused(verb, missing, *more)
    unmeasured, empty = tmp_path / "unmeasured.asrs", tmp_path / "empty.asrs"
    unmeasured.write_bytes(session.read_bytes())
    connection = sqlite3.connect(unmeasured)
    connection.execute("DELETE FROM calibration")
    connection.commit()
    connection.close()
    SessionWriter(empty, Recorder(), {}).close()
    for path, expected in ((unmeasured, "no measured roofs"), (empty, "no decoded frames")):
        assert expected in refused("whatif", path, "--scale", "search=0")
        assert expected in refused("confirm", path, STAGE)


@pytest.mark.slow
@pytest.mark.usefixtures("few_rounds")
def test_a_session_of_a_shipped_grammar_is_run_again_from_any_folder(bundled_speech, tmp_path, short_runs, monkeypatch):
    out = tmp_path / "d.asrs"
    monkeypatch.chdir(bundled_speech)
    printed("run", "--preset", "digits", "--audio", "08-kal16-short.flac", "--out", out)
    monkeypatch.chdir(tmp_path)
    tree = answer("whatif", out, "--set", "frames.skip=2")
    assert tree["predicted_rtf"] is not None
    assert any("of the session's audio" in sentence for sentence in tree["assumptions"])
    assert answer("confirm", out, "search.emit")["stage"] == "search.emit"
    assert "of the session's audio" in answer("explain", out, "search.emit")["audio"]


@pytest.mark.slow
@pytest.mark.usefixtures("few_rounds")
def test_a_file_that_has_moved_can_be_named(bundled_speech, tmp_path, short_runs):
    (tmp_path / "was.txt").write_text("yes\nno\n")
    out = tmp_path / "g.asrs"
    printed(
        "run", "--preset", "gmm-quick", "--set", f"graph.grammar={tmp_path / 'was.txt'}",
        "--audio", bundled_speech / "08-kal16-short.flac", "--out", out,
    )  # fmt: skip
    (tmp_path / "was.txt").rename(tmp_path / "is.txt")
    moved = "--set", f"graph.grammar={tmp_path / 'is.txt'}"
    for verb, notes, *words in (
        ("whatif", "assumptions", "--set", "frames.skip=2"),
        ("confirm", "notes", "search.emit"),
        ("explain", "notes", "search.emit"),
    ):
        said = refused(verb, out, *words)
        assert str(tmp_path / "was.txt") in said
        assert "--set graph.grammar=PATH" in said
        assert any("is.txt" in note for note in answer(verb, out, *words, *moved)[notes])
    assert "where its files are now" in refused("explain", out, "search.emit", "--set", "block=8")
