"""What a comparison shows next to its ratios: words that differ, and how the time of single frames is spread."""

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from sample_session import write_sample

from app.model import compared as model
from app.model.compared import differing_words, frame_times
from app.model.statistics import WHOLE
from profiler.analysis.comparison.compare import compare
from profiler.analysis.track import CostTrack
from profiler.session.reader import Session


def decoded(name: str, hypothesis: str | None, errors: int | None = 0) -> Any:
    return SimpleNamespace(name=name, hypothesis=hypothesis, reference="so it is", errors=errors)


def differing(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return differing_words(SimpleNamespace(decoded_a=[a for a, _ in pairs], decoded_b=[b for _, b in pairs]))  # type: ignore[arg-type]


def test_utterances_with_other_words_come_with_the_worst_first(monkeypatch):
    pairs = (
        (decoded("same", "so it is"), decoded("same", "So it is")),
        (decoded("better", "so is", 1), decoded("better", "so it is", 0)),
        (decoded("unknown", "so", None), decoded("unknown", None, None)),
        (decoded("worst", "so it is", 0), decoded("worst", "is", 2)),
    )
    found = differing(*pairs)
    assert (found["of"], found["differ"]) == (4, 3)
    assert [row["id"] for row in found["utterances"]] == ["worst", "better", "unknown"]
    assert found["utterances"][0] == {
        "id": "worst", "reference": "so it is", "a": "so it is", "b": "is", "errors_a": 0, "errors_b": 2,
    }  # fmt: skip
    monkeypatch.setattr(model, "LISTED", 1)
    cut = differing(*pairs)
    assert (cut["differ"], [row["id"] for row in cut["utterances"]]) == (3, ["worst"])


def test_times_per_frame_are_those_of_the_frames_compared(tmp_path):
    paths = [write_sample(tmp_path / f"{seed}.asrs", frames=1024, utterance_frames=256, seed=seed) for seed in (1, 2)]
    with Session.open(paths[0]) as a, Session.open(paths[1]) as b:
        compared = compare(a, b)
        rows = {row["name"]: row for row in msgspec.to_builtins(frame_times(compared))}
        assert {WHOLE, "score.gaussians", "search.emit"} <= rows.keys()
        for side, session in (("a", a), ("b", b)):
            track = CostTrack()
            track.update(session)
            kept = [u for u in session.utterances if u.done]
            ms = np.concatenate([track.wall_row[:][u.first_frame : u.end_frame] for u in kept]) * 1e-6
            whole = rows[WHOLE][side]
            assert whole["frames"] == sum(whole["counts"]) == len(ms)
            assert whole["mean_ms"] == pytest.approx(ms.mean())
            assert whole["p99_ms"] == pytest.approx(np.percentile(ms, 99))
            inside, _ = np.histogram(ms, rows[WHOLE]["edges_ms"])
            assert whole["counts"][1:-1] == inside[1:-1].tolist(), "both sides have the same edges"
