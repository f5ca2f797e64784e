"""What the benches of attribution and prediction make of the JSON of `run` and `whatif`."""

from __future__ import annotations

from typing import Any

import pytest

from profiler.errors import BadInput
from tests.bench import attribution, whatif_check


def stage(name: str, share: float, verdict: str, **parts: float) -> dict[str, Any]:
    """A row of 2 s; `parts`: least and most of what is not attributed, and the least of arithmetic."""
    return {
        "name": name,
        "group": name.partition(".")[0],
        "share": share,
        "time_s": 2.0,
        "verdict": verdict,
        "parts": {},
        "parts_low": {"arithmetic_s": parts.get("least", 1.0), "not_attributed_s": parts["low"]},
        "parts_high": {"arithmetic_s": 2.0, "not_attributed_s": parts["high"]},
    }


def run(rest: float, *stages: dict[str, Any]) -> dict[str, Any]:
    parts = {"arithmetic_s": 10.0 - rest, "not_attributed_s": rest}
    return {"parts": {"scoring": parts, "search": dict(parts)}, "stages": list(stages)}


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
    row = attribution.figures(trees)
    assert (row["scoring"], row["search"]) == (0.2, 0.2)
    assert row["widest"] == 0.5
    assert (row["over_explained"], row["runs"], row["large_stages"]) == (1, 3, 1)
    assert row["undecided"] == pytest.approx(1 / 3)
    assert row["changing"] == ["scoring.a"]
    whole = {"rows": [{"configuration": "gmm", "block": 1, **row}]}
    assert "| gmm | 1 | 20% | 20% | 50% | 1 of 3 |" in attribution.table(whole).markdown()


def test_runs_without_parts_are_refused() -> None:
    with pytest.raises(BadInput, match="parts"):
        attribution.figures([{"stages": []}])


def test_a_prediction_beside_its_outcome() -> None:
    row = whatif_check.figures(
        "block=64",
        {
            "wall_s": 10.0,
            "stages": [{"name": n, "time_s": s} for n, s in (("a", 5.0), ("b", 4.0), ("c", 0.1))],
            "check": {
                "predicted_ratio": 0.9,
                "ratio": 0.8,
                "ci95": [0.7, 0.9],
                "difference": -0.1111,
                "stages": [
                    {"name": "a", "predicted": 1.0, "ratio": 0.9},
                    {"name": "b", "predicted": 1.0, "ratio": 1.5},
                    {"name": "c", "predicted": 1.0, "ratio": 9.0},
                    {"name": "d", "predicted": None, "ratio": 9.0},
                ],
            },
        },
    )
    assert row["worst_stage"]["name"] == "b"
    text = whatif_check.table({"rows": [{"preset": "gmm", **row}]}).markdown()
    assert (
        "| gmm | `block=64` | 0.900 | 0.800 (0.700 to 0.900) | -11.1% | `b`: 1.00 · 1.50 |" in text
    )
