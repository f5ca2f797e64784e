"""Nets are perturbed by their own settings, and a layer of one is confirmed on real speech."""

from __future__ import annotations

import pytest
from run_again import NET, never, quiet, reasons

from pipelines import config as settings
from pipelines.experiments import perturb, rerun
from pipelines.run.playlist import Item
from profiler.analysis.breakdown import breakdown
from tests.profiler.profiler_sessions import ROOF_TABLE


def test_a_net_is_perturbed_by_its_own_settings() -> None:
    made = {c.name: c for c in perturb.changes(NET, "score.output", "scoring", "senones")}
    assert made["block ×2"].config == settings.replace(NET, "block", 8)
    assert made["dtype halved"].text == "dtype fp32 → int8"
    assert made["dtype halved"].config == settings.replace(NET, "dnn.dtype", "int8")
    assert made["model shrunk"].config == settings.replace(NET, "dnn.shrink", "low-rank")
    assert made["model shrunk"].per == "frame"
    small = settings.assign(NET, {"dnn.shrink": "low-rank", "dnn.dtype": "int8"})
    again = reasons(small, "score.output", "scoring", "senones")
    assert "low-rank already" in again["model shrunk"]
    assert "int8 already" in again["dtype halved"]
    graph = settings.replace(NET, "dnn.net", "other.onnx")
    refused = reasons(graph, "score.net", "scoring", "frames")
    assert "onnxruntime" in refused["dtype halved"]
    assert "onnxruntime" in refused["model shrunk"]
    assert refused["block ×2"] is None


@pytest.mark.slow
def test_confirming_a_layer_of_a_net_on_real_speech(small_net, short, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(perturb.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(rerun, "MAX_ROUNDS", rerun.MIN_ROUNDS)
    stretch = rerun.audio_of([Item("x", short, None)], tmp_path, 0.8)
    arm = rerun.Arm("a", small_net)
    rerun.decode([arm], stretch, ROOF_TABLE, quiet, never, budget_s=0.0)
    rows = {r.name: r for r in breakdown(arm.recording).stages}
    layers = [name for name in rows if name.startswith("score.layer")]
    output = rows["score.output"]
    assert all(output.flops > rows[name].flops for name in layers), "the last is the largest"
    found = perturb.confirm(small_net, output, stretch, ROOF_TABLE, quiet, never)
    made = {p.name: p for p in found.perturbations}
    double, shrunk = made["block ×2"], made["model shrunk"]
    # The verdict in question predicts by all of its parts, and which one it is depends on the run.
    laws = {"compute-bound": (0.98, 1.02), "call-bound": (0.4, 0.6)}
    for verdict, (low, high) in laws.items():
        own = output.verdict == verdict
        assert (0.4 if own else low) <= double.by_verdict[verdict] <= (1.02 if own else high)
    # Of 65 × 5 126 weights 30 % are left, and the new layer before them is another stage; calls are as many.
    assert 0.2 < shrunk.by_verdict["compute-bound"] < (0.5 if output.verdict != "compute-bound" else 1.0)
    assert shrunk.measured is not None
    assert made["dtype halved"].measured is not None
