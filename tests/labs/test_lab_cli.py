"""`asrscope lab`: the list, one lab, its parameters, what it refuses; its session shown and exported."""

import json

import pytest

from app.cli.main import main
from pipelines import labs
from pipelines.labs import record
from pipelines.labs.gradient_noise import Result
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder

NAME = "gradient-noise"
SMALL = ["--set", "frames=64", "--set", "largest=8", "--set", "draws=8"]


@pytest.fixture(autouse=True)
def own_sessions(monkeypatch, tmp_path):
    monkeypatch.setenv("ASRSCOPE_SESSIONS", str(tmp_path / "sessions"))


def run_cli(capsys, *words):
    """Status, what stands on standard output, and on standard error."""
    status = main(list(words))
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def session(tmp_path):
    """A run with planted figures."""
    path = tmp_path / f"{NAME}.asrs"
    lab = labs.load(NAME)
    found = Result(frames=64, sizes=[1, 4, 16], drawn=[[1.0, 1.1], [0.5, 0.55], [0.25, 0.28]], running=[[1.0, 1.1]] * 3)
    fact = record.stored(NAME, lab.parameters, found, lab.judge(found))
    SessionWriter(path, Recorder(), {record.KEY: fact}).close()
    return path


def test_the_list_has_every_lab_and_one_lab_its_parameters(capsys):
    status, out, _ = run_cli(capsys, "lab", "--json")
    assert status == 0
    assert {row["name"] for row in json.loads(out)["labs"]} == set(labs.names())
    assert all(row["source"].startswith(("note ", "CTC nets")) for row in json.loads(out)["labs"])
    _, text, _ = run_cli(capsys, "lab")
    assert "Caches and frameworks" in text
    assert "(Bocchieri 1993)" in text
    assert "note" not in text, "nobody has the notes"
    status, out, _ = run_cli(capsys, "lab", NAME, "--parameters", "--json")
    assert status == 0
    keys = {row["key"]: row["default"] for row in json.loads(out)["parameters"]}
    assert keys["draws"] == labs.load(NAME).parameters.draws


def test_one_lab_is_run_and_said(capsys, tmp_path):
    out_file = tmp_path / "a.asrs"
    status, out, err = run_cli(capsys, "lab", NAME, *SMALL, "--json", "--out", str(out_file))
    assert status == 0, err
    (row,) = json.loads(out)["labs"]
    assert (row["name"], row["session"], row["state"]) == (NAME, str(out_file), "closed")
    assert row["verdict"]
    assert row["why"]
    assert row["said"][0]["value"] == -0.5
    _, out, _ = run_cli(capsys, "show", str(out_file))
    assert f"{NAME}: {labs.load(NAME).claim} (Dive into Deep Learning, § 12.5)" in out
    assert f"claimed -0.5, here {row['figures']['slope']:.3g}" in out
    assert "note" not in out
    _, out, _ = run_cli(capsys, "show", str(out_file), "--json")
    assert json.loads(out)["lab"]["figures"] == row["figures"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gradient-nois"], "did you mean gradient-noise?"),
        ([NAME, "--set", "frames=3"], "frames must be a whole number from 64 to 8192"),
        ([NAME, "--set", "frame=64"], "one of frames, largest, draws"),
        ([NAME, "--all"], "not allowed with"),
        (["--set", "n=3"], "for one lab"),
        (["--docs", "docs"], "--sessions FOLDER"),
        ([NAME, "--docs", "docs"], "for all labs"),
        (["matrix-orders", "--set", "largest=16384", "--out", "no/such/folder/a.asrs"], "no/such"),
    ],
)
def test_what_does_not_fit_is_one_sentence(words, message, capsys):
    status, out, err = run_cli(capsys, "lab", *words)
    assert (status, out) == (2, "")
    assert message in err.replace("\n", " ")


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_its_session_is_drawn_as_its_card(kind, session, capsys, tmp_path):
    out = tmp_path / f"a.{kind}"
    status, _, err = run_cli(capsys, "export", str(session), f"--{kind}", str(out), "--size", "900x500")
    assert status == 0, err
    again = tmp_path / f"b.{kind}"
    run_cli(capsys, "export", str(session), f"--{kind}", str(again), "--size", "900x500")
    # A PDF has the time at which it was written; what it shows is compared in the tests of pictures.
    assert kind == "pdf" or out.read_bytes() == again.read_bytes()
    if kind == "svg":
        text = out.read_text(encoding="utf-8")
        assert labs.load(NAME).claim in text
        assert "frames=2048" in text


@pytest.mark.slow
def test_a_page_is_made_of_sessions(session, capsys, tmp_path):
    folder = tmp_path / "docs"
    status, out, err = run_cli(capsys, "lab", "--sessions", str(session.parent), "--docs", str(folder))
    assert status == 0, err
    assert out.strip() == str(folder / "lab.md")
    text = (folder / "lab.md").read_text(encoding="utf-8")
    lab = labs.load(NAME)
    assert lab.claim in text
    assert "| slope over log b | -0.5 | " in text
    assert " From Dive into Deep Learning, § 12.5; `asrscope lab gradient-noise`." in text
    assert "note" not in text
    for theme in ("light", "dark"):
        assert f"lab/{NAME}-{theme}.png" in text
        assert (folder / "lab" / f"{NAME}-{theme}.png").read_bytes()[:4] == b"\x89PNG"
    status, _, err = run_cli(capsys, "lab", "--sessions", str(folder), "--docs", str(folder))
    assert status == 2
    assert "holds no session of a lab" in err
