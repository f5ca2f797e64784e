"""Whole runs with scoring, search or both on a device: the same words, categories that add up, refusals."""

from __future__ import annotations

import pytest

from pipelines import config as settings
from pipelines.config import Config
from profiler.analysis.breakdown import breakdown
from profiler.session.reader import Session
from tests.pipelines.whole_runs import run


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen",
    [
        {"device": "torch-cpu", "placement.overlapped": True, "frames.skip": 2},
        {"search.device": "torch-cpu"},
        {"device": "torch-cpu", "search.device": "torch-cpu", "placement.overlapped": True},
    ],
)
def test_a_run_on_a_device_hears_the_same_words(tmp_path, bundled_speech, chosen):
    small = {"graph.vocabulary": 1000, "graph.bigrams": 50_000, "search.beam": 9.0}
    skip = {key: value for key, value in chosen.items() if key == "frames.skip"}
    heard, path = [], tmp_path / "device.asrs"
    for values, out in ((small | skip, None), (small | chosen, path)):
        speech = min(bundled_speech.glob("*.flac"))
        outcome = run(settings.assign(Config(), values), [speech], out)
        assert outcome.state == "closed"
        heard.append(outcome.result.utterances[0].hypothesis)
    assert heard[1] == heard[0] != ""
    with Session.open(path) as session:
        parts = breakdown(session)
        assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns)
        assert {"torch-cpu compute", "torch-cpu copy"} <= {lane.name for lane in session.lanes.values()}


def test_full_memory_in_a_run_is_marked(tmp_path, bundled_speech, monkeypatch):
    from pipelines.scoring.device import gmm as device_gmm

    def full(*_):
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    monkeypatch.setattr(device_gmm.Tied, "score", full)
    values = {"graph.vocabulary": 1000, "graph.bigrams": 50_000, "device": "torch-cpu"}
    path = tmp_path / "full.asrs"
    speech = min(bundled_speech.glob("*.flac"))
    outcome = run(settings.assign(Config(), values), [speech], path)
    assert outcome.result.utterances[0].hypothesis
    with Session.open(path) as session:
        assert any("goes on on the processor" in marker.text for marker in session.markers)


def test_what_a_device_cannot_do_is_refused_in_one_sentence():
    for values, sentence in (
        ({"device": "cuda", "gmm.selection.enabled": True}, "gmm.selection.enabled = false"),
        ({"device": "cuda", "gmm.senones": "ci"}, "gmm.senones = all"),
        # And each says why.
        ({"device": "cuda", "gmm.selection.enabled": True}, "all Gaussians of a block in one"),
        ({"device": "cuda", "gmm.senones": "active"}, "not know which senones"),
        ({"device": "cuda", "model": "dnn", "dnn.dtype": "int8"}, "multiplies integers on few"),
        ({"device": "cuda", "frames.rule": "multi-frame", "model": "dnn"}, "one by one"),
        ({"search.device": "cuda", "search.lattice": True}, "search.lattice = false"),
    ):
        with pytest.raises(settings.ConfigError, match=sentence):
            settings.check(settings.assign(Config(), values))
    on_device = settings.assign(Config(), {"device": "torch-cpu"})
    assert "device = cuda or xpu" in str(settings.unavailable_reason(on_device, "placement.pinned"))
