"""Hot replays in a whole run, of blocks at once and frame by frame: without a trace in what it hears and takes."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.config import Config, assign
from pipelines.run import hot_replay
from pipelines.run.blocks import TALLIED_FROM
from pipelines.run.session_run import Outcome
from pipelines.search.viterbi import Viterbi
from profiler.analysis.attribution import REPLAYED, HotReplays
from profiler.analysis.breakdown import breakdown
from profiler.session.reader import Session
from tests.each import each
from tests.pipelines import whole_runs


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
        ({"frames.skip": 2}, "score.gaussians search.emit"),
        # Frame by frame, one by one and added up.
        pytest.param(LAZY, "score.gaussians score.lazy score.due search.active search.prune", marks=pytest.mark.slow),
        (LAZY | {"block": 1}, "score.gaussians score.lazy search.active search.emit"),
        pytest.param(LAZY | {"frames.skip": 2}, "score.lazy search.active", marks=pytest.mark.slow),
    ],
    ids=["dense", "lazy", "lazy at block 1", "lazy with copies"],
)
def test_a_run_hears_and_scores_the_same_with_replays(quick, short, tmp_path, monkeypatch, changes, stages):
    # However busy the machine is: what other programs disturb counts as well.
    monkeypatch.setattr(hot_replay, "LEAST_OWN", 0.0)
    heard = []
    for share in (0.0, 0.1):
        path = tmp_path / f"{share}.asrs"
        outcome, scores = run(assign(quick, {"replay": share, "block": 4, **changes}), short, path, monkeypatch)
        heard.append((words(outcome), scores))
        with closing(Session.open(path)) as session:
            replays = HotReplays()
            replays.update(session)
            numbers = {stage.name: number for number, stage in session.stages.items()}
            for name in stages.split():
                assert bool(len(replays.of(session, numbers[name], 0))) == (share > 0), name
            parts = breakdown(session)
        # Replays are no part of the wall time, and cover no tile.
        assert parts.wall_ns == outcome.result.wall_ns
        assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns, rel=1e-9)
        assert not any(row.name.startswith(REPLAYED) and row.share for row in parts.stages)
    assert heard[0] == heard[1]


def run_lazy(files: list[Path], out: Path | None = None, **changes: Any) -> Outcome:
    return whole_runs.run(assign(whole_runs.QUICK, changes), files, out)


def words(outcome: Outcome) -> list[str]:
    return [u.hypothesis for u in outcome.result.utterances]


@pytest.fixture(scope="module")
def expected(files: list[Path]) -> list[str]:
    return words(run_lazy(files))


@each("block", [1, 16])
def test_the_words_are_those_of_dense_scoring_at_any_block(files, expected, block):
    assert words(run_lazy(files, **{"gmm.senones": "active", "block": block})) == expected


@pytest.mark.slow
def test_words_under_skipping_do_not_depend_on_the_block(files):
    layers = {"gmm.senones": "active-ci", "gmm.ci_beam": 12.0, "frames.skip": 3, "frames.rule": "conditional"}
    found = [words(run_lazy(files, **layers, block=block)) for block in (1, 16, 100)]
    assert found[0] == found[1] == found[2]


def test_a_lazy_block_leaves_one_span_a_stage_with_the_senones_computed_and_looked_up(files, tmp_path):
    run_lazy(files, tmp_path / "lazy.asrs", **{"gmm.senones": "active"})
    with closing(Session.open(tmp_path / "lazy.asrs")) as session:
        whole_runs.assert_tiled(session)
        names = np.array([session.stages[n].name for n in session.spans["stage"].tolist()])
        groups = np.array([session.stages[n].group for n in session.spans["stage"].tolist()])
        tiles = session.spans[names == "decode.block"]
        leaves = session.spans[np.isin(groups, ("scoring", "search")) & (names != "search.backtrace")]
        work = {row.name: row.work for row in breakdown(session).stages}
        frames = sum(u.n_frames for u in session.utterances)
    lasting = {int(tile["first_frame"]): int(tile["frames"]) for tile in tiles}
    seen = set()
    for leaf in leaves:
        stage, first = int(leaf["stage"]), int(leaf["first_frame"])
        if lasting.get(first, 0) < TALLIED_FROM:
            continue  # the short end of an utterance is recorded frame by frame
        assert (stage, first) not in seen
        seen.add((stage, first))
        assert leaf["frames"] == lasting[first]
    assert seen
    active, computed = work["search.active"]["active"], work["score.lazy"]["senones"]
    assert active == work["search.epsilon"]["senones"]
    # Computed some frames ahead: a little more than was asked for, fetched far less often.
    assert active < computed < 2 * active
    assert work["score.lazy"]["weights"] < 0.5 * active * 3 * 128
    assert 0.01 < active / (frames * 5126) < 0.9
    assert work["score.gaussians"]["gaussians"] == frames * 42 * 3 * 128


SMALL = {"graph.vocabulary": 1000, "graph.bigrams": 50_000}


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen",
    [
        {"device": "torch-cpu", "placement.overlapped": True, "frames.skip": 2},
        {"search.device": "torch-cpu"},
        {"device": "torch-cpu", "search.device": "torch-cpu", "placement.overlapped": True},
        {"model": "dnn", "dnn.senones": "all", "device": "torch-cpu", "placement.dtype": "bf16"},
    ],
)
def test_a_run_on_a_device_hears_the_same_words(tmp_path, bundled_speech, chosen):
    small = SMALL | {"search.beam": 9.0}
    scored = {key: value for key, value in chosen.items() if key in ("frames.skip", "model", "dnn.senones")}
    heard, path, speech = [], tmp_path / "device.asrs", min(bundled_speech.glob("*.flac"))
    for values, out in ((small | scored, None), (small | chosen, path)):
        outcome = whole_runs.run(assign(Config(), values), [speech], out)
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
    path, speech = tmp_path / "full.asrs", min(bundled_speech.glob("*.flac"))
    outcome = whole_runs.run(assign(Config(), SMALL | {"device": "torch-cpu"}), [speech], path)
    assert outcome.result.utterances[0].hypothesis
    with Session.open(path) as session:
        assert any("goes on on the processor" in marker.text for marker in session.markers)


NET = {"model": "dnn", "dnn.senones": "all"}
# By settings what is needed, or why.
REFUSED = [
    ({"gmm.selection.enabled": True}, "gmm.selection.enabled = false"),
    ({"gmm.selection.enabled": True}, "all Gaussians of a block in one"),
    ({"gmm.senones": "ci"}, "gmm.senones = all"),
    ({"gmm.senones": "active"}, "not know which senones"),
    ({"model": "dnn", "dnn.dtype": "int8"}, "multiplies integers on few"),
    ({"frames.rule": "multi-frame", "model": "dnn"}, "one by one"),
    ({"model": "dnn", "dnn.senones": "active"}, "dnn.senones = all"),
    (NET | {"dnn.dtype": "int8"}, "dnn.dtype = fp32"),
    (NET | {"dnn.product": "csr"}, "dnn.product = simd or blas"),
    (NET | {"frames.rule": "multi-frame"}, "frames.rule = copy"),
    ({"device": "cpu", "search.device": "cuda", "search.lattice": True}, "search.lattice = false"),
]


@each("values, sentence", REFUSED)
def test_what_a_device_cannot_do_is_refused_in_one_sentence(values, sentence):
    with pytest.raises(settings.ConfigError, match=sentence):
        settings.check(assign(Config(), {"device": "cuda", **values}))


def test_pinned_memory_needs_a_device_of_its_own():
    on_device = assign(Config(), {"device": "torch-cpu"})
    assert "device = cuda or xpu" in str(settings.unavailable_reason(on_device, "placement.pinned"))
