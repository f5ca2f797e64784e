"""What the benches of attribution and prediction, and the tables of the page, make of the JSON of commands."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from pipelines.config import presets
from profiler.analysis.breakdown import breakdown
from profiler.errors import BadInput
from tests.bench import _load, attribution, whatif_check
from tests.bench._ablation import WITHOUT, without
from tests.bench._entries_instrument import listed, roofs
from tests.bench._load import programs
from tests.profiler.made_laws import law, session_of
from tests.profiler.profiler_sessions import spans_of
from tests.waiting import wait_until

KEPT = Path(__file__).parents[1] / "data" / "sessions" / "v1.asrs"


def stage(name: str, share: float, verdict: str, **parts: float) -> dict[str, Any]:
    """A row of 2 s; `parts`: least and most of what is not attributed, and the least time that its law allows."""
    return {
        "name": name,
        "group": name.partition(".")[0],
        "share": share,
        "time_s": 2.0,
        "verdict": verdict,
        "parts": {},
        "defect": "It ran in less." if parts.get("least", 1.0) > 2.0 else None,
        "parts_low": {"arithmetic_s": 1.0, "not_attributed_s": parts["low"]},
        "parts_high": {"arithmetic_s": 2.0, "not_attributed_s": parts["high"]},
    }


def run(rest: float, *stages: dict[str, Any]) -> dict[str, Any]:
    parts = {"arithmetic_s": 10.0 - rest, "not_attributed_s": rest}
    return {
        "parts": {"scoring": parts, "search": dict(parts)},
        "stages": list(stages),
        "wall_s": 10.0,
        "categories": {"overhead_s": rest / 10},
        "added": rest / 1000,
        "replays": round(10 * rest),
    }


def test_figures_of_several_runs() -> None:
    trees = [
        run(1.0, stage("scoring.a", 0.5, "compute-bound", low=0.0, high=0.5)),
        run(3.0, stage("scoring.a", 0.5, "undecided", low=0.0, high=1.0, least=2.1)),
        run(2.0, stage("scoring.a", 0.5, "compute-bound", low=0.0, high=0.5)),
    ]
    trees[0]["stages"] += [
        stage("search.b", 0.01, "undecided", low=0.0, high=2.0, least=9.0),
        stage("frontend.c", 0.5, "undecided", low=0.0, high=2.0, least=9.0),
    ]
    # Of its overhead of 4 s the run's own work has 2 s, and it is of 10 s.
    trees[2]["categories"]["overhead_s"] = 4.0
    trees[2]["stages"].append(stage("overhead.d", 0.2, "–", low=0.0, high=0.0))
    row = attribution.figures(trees)
    assert (row["scoring"], row["search"]) == (0.2, 0.2)
    assert row["widest"] == 0.5
    assert (row["over_explained"], row["runs"], row["large_stages"]) == (1, 3, 1)
    assert row["undecided"] == pytest.approx(1 / 3)
    assert row["defects"] == {"scoring.a": ["It ran in less."]}
    assert row["changing"] == ["scoring.a"]
    assert row["verdicts"] == {"scoring.a": {"compute-bound": 2, "undecided": 1}}
    assert row["without_stage"] == pytest.approx(0.03)
    assert attribution.without_stage(trees[2]) == pytest.approx(0.2)
    assert (row["added"], row["replays"]) == (pytest.approx(0.002), 10)
    steady = attribution.figures([trees[0]] * 9 + [trees[1]])
    assert steady["changing"] == []
    assert steady["widest_stage"] == "scoring.a"
    whole = {"rows": [{"configuration": "gmm", "block": 1, **row}]}
    loaded = attribution.table({**whole, "load": 4}).markdown()
    text = attribution.table({**whole, "load": 0}).markdown()
    assert "| – | 10 | 0.20% |" in loaded
    assert "| gmm | 1 | 20% | 20% | 50% (`scoring.a`) | 1 of 3 (`scoring.a`) |" in text
    assert "| 3.0% | 10 | 0.20% |" in text


def test_a_session_that_was_kept_is_looked_at_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def printed(command: str, names: dict[str, str], more: Sequence[str] = ()) -> list[Any]:
        asked.append(command.split()[1])
        shutil.copy(KEPT, names["SESSION"])
        return [{}]

    monkeypatch.setattr(attribution, "printed", printed)
    path = tmp_path / "kept.asrs"
    first = attribution.recorded("gmm", 16, path, ["a.wav"])
    assert [file.name for file in tmp_path.iterdir()] == ["kept.asrs"]
    assert attribution.recorded("gmm", 16, path, ["a.wav"]) == first
    assert asked == ["run"]
    assert {"wall_s", "parts", "added", "replays"} <= set(first)
    # A folder of an older version: nothing was replayed in it.
    assert first["replays"] == 0


@pytest.mark.parametrize(
    ("given", "wanted"), [([], attribution.CONFIGURATIONS), (["--ladder"], attribution.LADDER)]
)
def test_rungs_take_the_place_of_the_usual_configurations(
    given: list[str], wanted: dict[str, attribution.Runs], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[str]] = []

    def measure(
        repeat: int, load: int, sessions: Path | None, configurations: Sequence[str], *_: object
    ) -> dict[str, Any]:
        asked.append(configurations)
        return {"load": load, "rows": []}

    monkeypatch.setattr(attribution, "measure", measure)
    assert attribution.main(given) == 0
    assert asked == [tuple(wanted)]
    known = presets.names()
    for runs in wanted.values():
        assert runs.settings.split()[1] in known
        assert len(runs.passes) == len(attribution.BLOCKS)


def test_a_folder_for_sessions_must_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert attribution.main(["--sessions", str(tmp_path / "none")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_what_a_run_takes_aside_is_of_its_wall_time() -> None:
    names = ("score.a", "setup.replay", "replay.score.a", "setup.x")
    stages = {i: SimpleNamespace(name=name) for i, name in enumerate(names)}
    spans = spans_of([(0, 900, 0, 0, 1), *((1000 * i, 10 * i, i, 0, 1) for i in (1, 1, 2, 3))])
    utterances = [SimpleNamespace(wall_ns=ns) for ns in (600, None, 400)]
    session = SimpleNamespace(stages=stages, spans=spans, utterances=utterances)
    assert attribution.added(session) == 0.04  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [None, *WITHOUT])
def test_an_ingredient_is_left_out_and_put_back(name: str | None) -> None:
    calls = 30 if name == "least-calls" else 2
    session = session_of(20_000, law(gemm=5e5, read=4e6, chase=40, calls=calls), 0.5)
    (whole,) = breakdown(session).stages
    with without(name):
        (some,) = breakdown(session).stages
    assert some.parts is not None
    assert some.parts.time_ns == pytest.approx(some.time_ns)
    unreplayed = name in (None, "law", "replays")
    assert (some.parts.likely == whole.parts.likely) == unreplayed  # type: ignore[union-attr]
    (again,) = breakdown(session).stages
    assert again == whole


def test_other_programs_run_as_long_as_they_are_wanted() -> None:
    with programs(2):
        assert len(multiprocessing.active_children()) == 2
    assert not multiprocessing.active_children()


STARTS = """
import multiprocessing, time
from tests.bench._load import programs
if __name__ == "__main__":
    with programs(1):
        print(multiprocessing.active_children()[0].pid, flush=True)
        time.sleep(600)
"""


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_other_programs_end_with_one_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "starts.py"
    script.write_text(STARTS)
    repository = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": repository},
    ) as starter:
        assert starter.stdout is not None
        busy = psutil.Process(int(starter.stdout.readline()))
        assert not has_ended(busy)
        starter.kill()
    wait_until(lambda: has_ended(busy))


def test_runs_without_parts_are_refused() -> None:
    with pytest.raises(BadInput, match="parts"):
        attribution.figures([{"stages": []}])


def outcome(ratio: float, of_b: float) -> dict[str, object]:
    """What `asrscope whatif --check --json` says, of which the bench reads this."""
    return {
        "wall_s": 10.0,
        "stages": [{"name": n, "time_s": s} for n, s in (("a", 5.0), ("b", 4.0), ("c", 0.1))],
        "check": {
            "predicted_ratio": 0.9,
            "ratio": ratio,
            "ci95": [ratio - 0.1, ratio + 0.1],
            "difference": ratio / 0.9 - 1.0,
            "stages": [
                {"name": "a", "predicted": 1.0, "ratio": 0.9},
                {"name": "b", "predicted": 1.0, "ratio": of_b},
                {"name": "c", "predicted": 1.0, "ratio": 9.0},
                {"name": "d", "predicted": None, "ratio": 9.0},
            ],
        },
    }


def test_a_prediction_beside_its_outcome() -> None:
    row = whatif_check.figures("block=64", [outcome(0.8, 1.5)])
    assert row["worst_stage"]["name"] == "b"
    text = whatif_check.table({"rows": [{"preset": "gmm", **row}]}).markdown()
    assert (
        "| gmm | `block=64` | 0.900 | 0.800 (0.700 to 0.900) | -11.1% | `b`: 1.00 · 1.50 |" in text
    )


def test_of_several_rounds_the_middle_counts_and_the_ends_are_told() -> None:
    trees = [outcome(0.99, 1.02), outcome(0.45, 3.0), outcome(0.918, 1.01)]
    row = whatif_check.figures("block=64", trees)
    assert row["worst_stage"] == {"name": "a", "predicted": 1.0, "ratio": 0.9}
    text = whatif_check.table({"rows": [{"preset": "gmm", **row}]}).markdown()
    assert "| 0.918 (0.818 to 1.018) | +2.0% (-50.0% to +10.0%) | `a`" in text


def test_no_round_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert whatif_check.main(["--repeat", "0"]) == 2
    assert "--repeat must be at least 1 round, not 0." in capsys.readouterr().err


def test_roofs_as_tables_of_threads_and_sizes() -> None:
    def roof(kind: str, name: str, size: int, threads: int, median: float, steady: bool) -> Any:
        return {
            "kind": kind,
            "name": name,
            "dtype": None,
            "bytes": size,
            "threads": threads,
            "median": median,
            "steady": steady,
        }

    plain, sized = roofs(
        [
            {
                "roofs": [
                    roof("rate", "fma", 0, 1, 2e9, True),
                    roof("rate", "fma", 0, 2, 4e9, False),
                    roof("overhead", "python", 0, 1, 33.0, True),
                    roof("overhead", "python", 1 << 20, 1, 99.0, True),
                    roof("kernel", "tied", 0, 1, 1e9, True),
                    roof("bandwidth", "read", 1 << 21, 1, 5e9, True),
                    roof("latency", "chase", 1 << 14, 1, 1.5, True),
                ]
            }
        ]
    )
    assert list(plain.rows) == [
        ("fma", "", "2 Gop/s", "4 Gop/s *"),
        ("python", "", "33 ns", "–"),
        ("python after 1 MiB", "", "99 ns", "–"),
    ]
    assert list(sized.rows) == [("16 KiB", "–", "1.5 ns"), ("2 MiB", "5 GB/s", "–")]


def test_parts_of_a_session_by_block_or_alone() -> None:
    (table,) = listed([{"block": 16, "a": 1.0}, {"block": 1, "a": None, "b": [1, 2]}])
    assert table.head == ("figure", "block 16", "block 1")
    assert list(table.rows) == [("a", "1", "–"), ("b", "–", "1, 2")]
    (alone,) = listed([{"said": {"closed": 3}}])
    assert (alone.head, list(alone.rows)) == (("figure", "value"), [("said", "closed: 3")])


def _ends(ready: object) -> None:
    """A program that could not begin."""


def test_other_programs_that_end_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_load, "_busy", _ends)
    with pytest.raises(BadInput, match="has ended"), programs(1):
        pytest.fail("they were taken to be there")
