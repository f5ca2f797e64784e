"""Hot replays in a whole run, of blocks at once and frame by frame: without a trace in what it hears and takes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pipelines.config import Config, assign, presets
from pipelines.run import hot_replay
from pipelines.run.session_run import Outcome
from pipelines.search.viterbi import Viterbi
from profiler.analysis.attribution import REPLAYED, HotReplays
from profiler.analysis.breakdown import breakdown
from profiler.session.reader import Session
from tests.pipelines import whole_runs

SPEECH = "08-kal16-short.flac"


def run(config: Config, audio: Path, out: Path, watch: pytest.MonkeyPatch) -> tuple[Outcome, bytes]:
    """A run, and all scores that the search was given."""
    given: list[bytes] = []
    plain = Viterbi.advance

    def advance(self: Viterbi, scores: Any, first_frame: int, *lane: Any) -> None:
        if lane[0].name != "replay":
            given.append(scores.tobytes())
        plain(self, scores, first_frame, *lane)

    with watch.context() as patch:
        patch.setattr(Viterbi, "advance", advance)
        outcome = whole_runs.run(config, [audio], out, repeat=8)
    return outcome, b"".join(given)


LAZY = {"gmm.senones": "active", "frames.skip": 1}


@pytest.mark.parametrize(
    ("changes", "stages"),
    [
        ({"frames.skip": 2}, ("score.gaussians", "search.emit")),
        # Frame by frame, one by one and added up.
        pytest.param(
            LAZY,
            ("score.gaussians", "score.lazy", "score.due", "search.active", "search.prune"),
            marks=pytest.mark.slow,
        ),
        (LAZY | {"block": 1}, ("score.gaussians", "score.lazy", "search.active", "search.emit")),
        pytest.param(LAZY | {"frames.skip": 2}, ("score.lazy", "search.active"), marks=pytest.mark.slow),
    ],
    ids=["dense", "lazy", "lazy at block 1", "lazy with copies"],
)
def test_a_run_hears_and_scores_the_same_with_replays(
    bundled_speech: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    stages: tuple[str, ...],
) -> None:
    # However busy the machine is: what other programs disturb counts as well.
    monkeypatch.setattr(hot_replay, "LEAST_OWN", 0.0)
    quick = presets.load("gmm-quick").config
    found = {
        share: run(
            assign(quick, {"replay": share, "block": 4, **changes}),
            bundled_speech / SPEECH,
            tmp_path / f"{share}.asrs",
            monkeypatch,
        )
        for share in (0.0, 0.1)
    }
    (off, without), (on, scores) = found.values()
    assert scores == without
    heard = [[u.hypothesis for u in each.result.utterances] for each in (off, on)]
    assert heard[0] == heard[1]
    replays = []
    for share, outcome in ((0.0, off), (0.1, on)):
        with closing(Session.open(tmp_path / f"{share}.asrs")) as session:
            found = HotReplays()
            found.update(session)
            numbers = {stage.name: number for number, stage in session.stages.items()}
            for name in stages:
                replays.append(len(found.of(session, numbers[name], 0)))
            parts = breakdown(session)
            # Replays are no part of the wall time, and cover no tile.
            assert parts.wall_ns == outcome.result.wall_ns
            assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns, rel=1e-9)
            assert not any(row.name.startswith(REPLAYED) and row.share for row in parts.stages)
    assert not any(replays[: len(stages)])
    assert all(replays[len(stages) :])
