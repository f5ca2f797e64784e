"""The command line as other people's scripts call it: exit statuses, JSON keys, one sentence for bad input."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import answer, here, printed, refused

from app.cli import _output
from app.model import report_lines
from pipelines.run import session_run
from profiler.analysis.categories import CATEGORIES, PARTS
from profiler.errors import BadInput
from tests.each import each

QUICK = ["--preset", "gmm-quick"]


@pytest.fixture(scope="module")
def short(bundled_speech):
    return bundled_speech / "08-kal16-short.flac"


@pytest.fixture(scope="module")
def run(short, bundled_speech, tmp_path_factory, short_runs):
    out = tmp_path_factory.mktemp("cli") / "run.asrs"
    return answer(
        "run", *QUICK, "--audio", short, "--transcripts", bundled_speech / "transcripts.tsv",
        "--set", "search.beam=12", "--repeat", "2", "--out", out,
    ), out  # fmt: skip


def test_run_prints_the_keys_of_the_contract(run):
    tree, out = run
    assert tree["schema"] == 1
    assert tree["session"] == str(out)
    assert {"setup_s", "idle_s", "wer_errors", "machine"} <= set(tree)
    assert tree["wer"] == 0.0
    assert tree["wer_words"] == 3  # once, although it was decoded twice
    assert [u["hypothesis"] for u in tree["utterances"]] == ["yes of course"] * 2
    assert {"id", "audio_s", "wall_s", "rtf", "hypothesis", "reference", "wer"} <= set(tree["utterances"][0])
    assert set(tree["categories"]) == {f"{name}_s" for name in (*CATEGORIES, "hidden")}
    summed = sum(v for k, v in tree["categories"].items() if k != "hidden_s")
    assert summed == pytest.approx(tree["wall_s"], rel=1e-6)
    assert tree["rtf"] == pytest.approx(tree["wall_s"] / tree["audio_s"])
    for group in ("search", "frontend", "transfer"):
        own = sum(stage["own_s"] for stage in tree["stages"] if stage["group"] == group)
        assert own == pytest.approx(tree["categories"][f"{group}_s"], rel=1e-6, abs=1e-9)
    for stage in tree["stages"]:
        assert {
            "name", "group", "lane", "time_s", "own_s", "share", "calls", "flops", "bytes_min", "bytes_max",
            "work", "verdict", "evidence",
        } <= set(stage)  # fmt: skip
        assert stage["group"] in {"frontend", "scoring", "search", "transfer", "overhead"}
        assert_parts(stage)
    for group, parts in tree["parts"].items():
        mine = [s for s in tree["stages"] if s["group"] == group and s["share"] is not None]
        if any(stage["parts"] for stage in mine):
            assert sum(parts.values()) == pytest.approx(sum(stage["time_s"] for stage in mine), rel=1e-6)
        else:
            assert parts is None
    assert set(tree["parts"]) == {"scoring", "search"}
    assert tree["parts"]["scoring"] is not None
    assert {"ns_per_span", "spans", "dropped", "perturbation"} <= set(tree["recorder"])
    assert tree["config"]["search"]["beam"] == 12


def assert_parts(stage: dict) -> None:
    """Likely parts add up to the time and lie in their intervals; none at all where the law names none."""
    likely, low, high = (stage[key] for key in ("parts", "parts_low", "parts_high"))
    if likely is None:
        assert (low, high) == (None, None)
        return
    assert set(likely) == set(low) == set(high) == {f"{name}_s" for name in PARTS}
    assert sum(likely.values()) == pytest.approx(stage["time_s"], rel=1e-6)
    for name, value in likely.items():
        assert low[name] - 1e-12 <= value <= high[name] + 1e-12, (stage["name"], name)


def test_show_says_what_run_said(run):
    tree, out = run
    assert answer("show", out) == tree
    lines = printed("show", out).splitlines()
    assert any("yes of course" in line for line in lines)
    for stage in tree["stages"]:
        (at,) = (i for i, line in enumerate(lines) if line.startswith(f"{stage['name']} "))
        # Every stage reads as an answer: what its time consists of, or why that is not known.
        below = lines[at + 1]
        assert below.startswith("  consists of: ") if stage["parts"] else below == f"  why: {stage['sentence']}"
    (grades,) = (line for line in lines if line.startswith("evidence: "))
    assert all(f" {stage['evidence']} " in grades for stage in tree["stages"])


def test_without_the_recorder_the_words_are_the_same(run, short):
    tree = answer("run", *QUICK, "--audio", short, "--no-profile")
    assert [tree[key] for key in ("session", "recorder", "wer")] == [None] * 3  # of what was said nothing is known
    assert tree["utterances"][0]["hypothesis"] == run[0]["utterances"][0]["hypothesis"]
    assert tree["rtf"] > 0


@each("chosen, loops", [("--preset demo", False), ("--preset demo --set loop=true", True), ("--config own.toml", True)])
def test_a_command_ends_unless_the_user_wants_a_loop(chosen, loops, tmp_path, monkeypatch):
    """The preset of the demo begins again and again for the window; a file of the user's own means what it says."""
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text("[config]\nloop = true\n")
    asked: list[session_run.Request] = []

    def execute(request: session_run.Request, *_: object) -> None:
        asked.append(request)
        raise BadInput("Enough.")

    monkeypatch.setattr(session_run, "execute", execute)
    assert refused("run", *chosen.split(), "--out", "a.asrs") == "asrscope: Enough."
    assert [request.config.loop for request in asked] == [loops]


def test_presets_and_options_are_listed():
    page, options = here("options").stdout, answer("options")["options"]
    live = {o["key"] for o in options if o["live"]}
    assert {"gmm.selection.enabled", "frames.skip", "pace", "search.beam"} <= live
    for option in options:
        assert {"key", "title", "help", "type", "unit", "live", "minimum", "maximum", "choices"} <= set(option)
        assert option["key"] in page
    presets = answer("presets")["presets"]
    assert "gmm" in [p["name"] for p in presets]


def test_every_verb_has_help_with_an_example():
    from app.cli.main import verbs

    for verb in verbs():
        done = here(verb, "--help")
        assert done.returncode == 0
        assert f"\n    asrscope {verb}" in done.stdout or verb == "open", verb


def test_the_command_line_loads_no_qt_and_no_torch():
    """`asrscope options` must answer at once, on a machine without any display library."""
    code = (
        "import sys, app.cli.main as m; m.main(['options', '--json']);"
        "print([n for n in ('PySide6', 'torch', 'numba') if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


BARE = {
    "audio_s": 1.0, "wall_s": 1.0, "rtf": 1.0, "setup_s": 0.0, "idle_s": 0.0, "wer": None, "utterances": [],
    "notes": [], "categories": None, "recorder": None, "stages": [],
}  # fmt: skip


def test_a_strangers_words_do_not_steer_the_terminal():
    row = {"id": "a\x1b[2J", "hypothesis": "b\x07\nc", "complete": None, "notes": ["d\x1be"]}
    page = _output.text(report_lines.document(BARE | {"utterances": [row], "notes": ["f\x1bg"]}))
    assert all(escaped in page for escaped in ("a\\x1b[2J", "b\\x07\\nc", "d\\x1be", "f\\x1bg"))


def test_stages_say_why_they_have_no_parts_what_the_law_decided_and_what_is_flagged():
    nothing = dict.fromkeys(("parts", "parts_low", "parts_high", "too_close", "defect"))
    plain = {**nothing, "share": 0.5, "calls": 3, "time_s": 0.5}
    known = {"parts": {"calls_s": 0.3, "latency_s": 0.2}, "too_close": "These are too close."}
    rows = [
        {**plain, "name": "a", "verdict": None, "evidence": "–", "sentence": "A reason."},
        {**plain, "name": "b", "verdict": "call-bound", "evidence": "D", "sentence": "B.", "defect": "Too fast."},
        {**plain, **known, "name": "c", "verdict": "call-bound", "evidence": "C", "sentence": "C."},
    ]
    lines = _output.text(report_lines.document(BARE | {"stages": rows})).splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.startswith("a "))
    assert lines[at].endswith("– · –")
    assert lines[at + 1] == "  why: A reason."
    (at,) = (i for i, line in enumerate(lines) if line.startswith("c "))
    assert lines[at + 1] == "  consists of: call overhead 60%, memory latency 40%"
    assert lines[at + 2] == "  why: C. These are too close."
    assert any(line.startswith("evidence: C time measured, parts by the law alone · D an estimate") for line in lines)
    assert "flagged as a defect of the tool: b. Too fast." in lines
