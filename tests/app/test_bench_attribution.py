"""What the benches of attribution and prediction, and the tables of the page, make of the JSON of commands."""

from __future__ import annotations

from typing import Any

import pytest

from profiler.analysis.breakdown import breakdown
from tests.bench import attribution, whatif_check
from tests.bench._ablation import WITHOUT, without
from tests.profiler.made_laws import law, session_of


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


@pytest.mark.parametrize("name", [None, *WITHOUT])
def test_an_ingredient_is_left_out_and_put_back(name: str | None) -> None:
    calls = 30 if name == "least-calls" else 2
    session = session_of(20_000, law(gemm=5e5, read=4e6, chase=40, calls=calls), 0.5)
    (whole,) = breakdown(session).stages
    with without(name):
        (some,) = breakdown(session).stages
    assert some.parts.time_ns == pytest.approx(some.time_ns)
    unreplayed = name in (None, "law", "replays")
    assert (some.parts.likely == whole.parts.likely) == unreplayed  # type: ignore[union-attr]
    (again,) = breakdown(session).stages
    assert again == whole


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


def test_a_prediction_and_its_outcome() -> None:
    row = whatif_check.figures("block=64", [outcome(0.8, 1.5)])
    assert row["worst_stage"]["name"] == "b"
    text = whatif_check.table({"rows": [{"preset": "gmm", **row}]}).markdown()
    assert "| gmm | `block=64` | 0.900 | 0.800 (0.700 to 0.900) | -11.1% | `b`: 1.00 · 1.50 |" in text


def test_of_several_rounds_the_median_counts_and_the_extremes_are_reported() -> None:
    trees = [outcome(0.99, 1.02), outcome(0.45, 3.0), outcome(0.918, 1.01)]
    row = whatif_check.figures("block=64", trees)
    assert row["worst_stage"] == {"name": "a", "predicted": 1.0, "ratio": 0.9}
    text = whatif_check.table({"rows": [{"preset": "gmm", **row}]}).markdown()
    assert "| 0.918 (0.818 to 1.018) | +2.0% (-50.0% to +10.0%) | `a`" in text
