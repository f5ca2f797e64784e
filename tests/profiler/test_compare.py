"""Comparison of arms with known times, from session files to verdicts."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from profiler_sessions import roof

from profiler.analysis.breakdown import breakdown
from profiler.analysis.categories import OVERHEAD
from profiler.analysis.comparison import arms
from profiler.analysis.comparison.arms import FrameSums
from profiler.analysis.comparison.compare import (
    A_FASTER,
    B_FASTER,
    NO_DIFFERENCE,
    UNDECIDED,
    Comparison,
    StageRatio,
    compare,
    verdict,
)
from profiler.analysis.comparison.statistics import Ratio, holm
from profiler.errors import BadInput
from profiler.machine.roofs.table import RATE, RoofTable
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.each import each
from tests.fake_clock import FakeClock

FRAMES = 40
BLOCK = 16
MACHINE = {"host": "here", "cpu": "a cpu", "cores": {"logical": 2}}
STAGES = {"score.one": ("scoring", 50_000), "search.two": ("search", 90_000), "frontend.three": ("frontend", 10_000)}
"""Group and ns a block."""
OVERHEAD_NS = 2_000


class Recording:
    """A session made of blocks whose stage times are those of `STAGES` times given factors, with seeded noise."""

    def __init__(
        self, path: Path, seed: int = 0, noise: float = 0.01, block: int = BLOCK, fma: float = 50e9, **meta: Any
    ) -> None:
        self.path, self.block, self.noise = path, block, noise
        self.draw = np.random.default_rng(seed)
        self.clock = FakeClock(1_000_000_000)
        self.recorder = Recorder(self.clock)
        described = {"preset": "test", "machine": MACHINE, "versions": {"numba": "1"}, **meta}
        self.writer = SessionWriter(path, self.recorder, described)
        roofs = (roof(RATE, "gemm", 100e9, spread=0.0), roof(RATE, "fma", fma, spread=0.0))
        self.writer.calibration(RoofTable(roofs).rows())
        self.decode = self.recorder.stage("decode.block", "decode")
        self.lane = self.recorder.lane("decode", decode=True)
        self.frame = 0

    def config(self, epoch: int, **tree: Any) -> None:
        self.writer.config(epoch, self.frame, {"threads": 1, **tree})

    def utterance(
        self,
        name: str = "one",
        epoch: int = 0,
        frames: int = FRAMES,
        done: bool = True,
        folder: str = "/speech",
        errors: int = 1,
        stages: tuple[str, ...] = tuple(STAGES),
        peak: int = 0,
        reference: str | None = "a b c d",
        slow: float = 1.0,
        **factors: float,
    ) -> None:
        """Decode once; `factors` by the last part of a stage's name, `slow` for all of them."""
        self.lane.epoch = epoch
        peaks = np.full((frames, 2), peak, np.int8)
        path = f"{folder}/{name}.wav"
        number = self.writer.utterance(name, path, self.frame, frames, frames / 100, reference, peaks)
        start = self.clock()
        for at in range(0, frames, self.block):
            count = min(self.block, frames - at)
            nest = self.clock()
            for stage in stages:
                group, ns = STAGES[stage]
                took = ns * count / BLOCK * factors.get(stage.partition(".")[2], 1.0) * slow
                took *= np.exp(self.draw.normal(0.0, self.noise))
                begin, stage_id = self.clock(), self.recorder.stage(stage, group)
                self.lane.put(stage_id, begin, self.clock.advance(round(took)), self.frame, count)
            self.lane.put(self.decode, nest, self.clock.advance(OVERHEAD_NS), self.frame, count)
            self.frame += count
        if done:
            self.writer.utterance_done(number, "a b c", [], self.clock() - start, [epoch], errors, 4)

    def close(self) -> Path:
        self.writer.close()
        return self.path


def plain_session(path: Path, repeats: int = 5, seed: int = 0, **options: Any) -> Path:
    """A plain session of two utterances, `repeats` times over."""
    keys = ("noise", "fma", "machine", "versions", "preset")
    recording = Recording(path, seed, **{k: options.pop(k) for k in keys if k in options})
    recording.config(0, **options.pop("tree", {}))
    for _ in range(repeats):
        recording.utterance("one", **options)
        recording.utterance("two", frames=70, **options)
    return recording.close()


def alternating(path: Path, drift: float = 0.0, **factors: float) -> Path:
    """An A/B session of 6 repeats; in B stages take `factors` times as long, and all becomes slower by `drift` each."""
    recording = Recording(path, 7)
    about = {"arms": [{"name": n, "epoch": e, "set": {}} for e, n in enumerate("AB")], "repeat": 6, "warm_up": 1}
    for turn in range(7):
        if turn < 2:
            recording.writer.meta("ab", {**about, "measured_from": recording.frame if turn else None})
        slow = 1.0 + drift * turn if turn else 5.0
        for place, (name, frames) in enumerate((("one", FRAMES), ("two", 70))):
            for arm in ((turn + place) % 2, (turn + place + 1) % 2):
                recording.config(arm)
                changed = factors if arm else {}
                recording.utterance(name, arm, frames, slow=slow, errors=1 + arm, **changed)
    return recording.close()


def compared(a: Path, b: Path | None = None, **more: Any) -> Comparison:
    with closing(Session.open(a)) as first:
        if b is None:
            return compare(first, **more)
        with closing(Session.open(b)) as second:
            return compare(first, second, **more)


def stage(comparison: Comparison, name: str) -> StageRatio:
    return next(row for row in comparison.stages if row.name == name)


@each("drift", [0.0, 0.1])
def test_a_slower_stage_is_found_and_the_others_are_not(drift, tmp_path):
    """Whatever drifts, and however slow the warm-up."""
    found = compared(alternating(tmp_path / "ab.asrs", drift=drift, one=1.2))
    assert (found.interleaved, found.repeats) == (True, 6)
    slow = stage(found, "score.one")
    assert slow.verdict == A_FASTER
    assert slow.ratio.ratio == pytest.approx(1.2, abs=0.02)
    assert slow.ratio.low < 1.2 < slow.ratio.high
    assert slow.p_adjusted < 0.05
    assert {row.verdict for row in found.stages if row is not slow} == {NO_DIFFERENCE}
    adjusted = [row.p_adjusted for row in found.stages]
    assert adjusted == holm([row.ratio.p for row in found.stages])
    assert adjusted != [row.ratio.p for row in found.stages]
    # 0.2 of 50 µs in blocks of 152 µs.
    assert found.overall.ratio.ratio == pytest.approx(1.066, abs=0.01)
    assert found.total_ratio == pytest.approx(1.066, abs=0.02)
    assert found.overall.verdict == A_FASTER


def test_stage_times_add_up_to_the_wall_time_in_pieces_of_any_size(tmp_path, monkeypatch):
    path = alternating(tmp_path / "ab.asrs", one=2.0)
    found = compared(path)
    assert sum(row.a_s for row in found.stages) == pytest.approx(found.overall.a_s)
    assert 0.0 < found.floor < 0.03, "the noise of one arm alone"
    assert compared(path, floor=0.07).floor == 0.07
    with closing(Session.open(path)) as session:
        parts = breakdown(session)
        for piece in (arms.PIECE, 1, 7):
            monkeypatch.setattr(arms, "PIECE", piece)
            sums = FrameSums(session)
            assert sums.wall[-1] == pytest.approx(parts.wall_ns, rel=1e-9)
            for row in parts.stages:
                assert sums.stages[row.name][-1] == pytest.approx(row.time_ns, rel=1e-9)
            assert sums.stages[OVERHEAD][-1] == pytest.approx(parts.categories["overhead"], rel=1e-6)


def test_a_session_stopped_early_compares_its_whole_repeats(tmp_path):
    recording = Recording(tmp_path / "stopped.asrs")
    recording.writer.meta("ab", {"measured_from": 0})
    for turn in range(4):
        for name in ("one", "two"):
            for arm in (0, 1):
                recording.config(arm)
                if (turn, name) != (3, "two"):
                    recording.utterance(name, arm)
    recording.utterance("two", 0, done=False)
    found = compared(recording.close())
    assert found.repeats == 3
    assert len(found.matched) == 2


def test_what_cannot_be_compared_is_one_sentence(tmp_path):
    plain = plain_session(tmp_path / "plain.asrs")
    with pytest.raises(BadInput, match="holds one configuration and no A/B"):
        compared(plain)
    early, other, empty = (Recording(tmp_path / f"{n}.asrs") for n in ("early", "other", "empty"))
    for recording in (early, other, empty):
        recording.config(0)
    early.utterance()
    early.writer.meta("ab", {"measured_from": None})
    other.utterance("something else")
    empty.utterance(done=False)
    with pytest.raises(BadInput, match=r"early.asrs ended before both arms"):
        compared(early.close())
    with pytest.raises(BadInput, match="share no utterance"):
        compared(plain, other.close())
    with pytest.raises(BadInput, match="no utterance that was decoded to its end"):
        compared(plain, empty.close())


def test_two_sessions_with_repeats_are_decided_with_a_warning(tmp_path):
    a = plain_session(tmp_path / "a.asrs", seed=1)
    b = plain_session(tmp_path / "b.asrs", seed=2, stages=("score.one", "frontend.three"), one=1.3)
    found = compared(a, b)
    assert not found.interleaved
    assert {row.name: row.verdict for row in found.stages} == {
        "score.one": A_FASTER, "frontend.three": NO_DIFFERENCE, OVERHEAD: NO_DIFFERENCE,
    }  # fmt: skip
    assert found.only_a == {"search.two": pytest.approx(90e-6 * 110 / 16, rel=0.05)}
    assert not found.only_b
    (warning,) = found.warnings
    assert "one after the other" in warning


def test_one_run_per_arm_decides_nothing_and_says_why(tmp_path):
    found = compared(plain_session(tmp_path / "a.asrs", 1), plain_session(tmp_path / "b.asrs", 1, seed=2, one=3.0))
    assert found.overall.ratio.ratio == pytest.approx(252 / 152, abs=0.05)
    assert found.overall.ratio.low is None
    assert {row.verdict for row in (found.overall, *found.stages)} == {UNDECIDED}
    assert found.floor is None
    (warning,) = found.warnings
    assert "cannot know the noise between runs" in warning


def test_more_repeats_on_one_side_do_not_make_it_faster(tmp_path):
    a = plain_session(tmp_path / "a.asrs", 4, seed=1, noise=0.2)
    b = plain_session(tmp_path / "b.asrs", 24, seed=2, noise=0.2)
    found = compared(a, b)
    assert found.repeats == 4
    # The fastest of 24 would be some 8 % faster than the fastest of 4.
    assert found.overall.ratio.ratio == pytest.approx(1.0, abs=0.04)


def test_a_warm_up_of_plain_sessions_is_left_out(tmp_path):
    recording = Recording(tmp_path / "cold.asrs", 3)
    recording.config(0)
    for turn in range(8):
        recording.utterance("one", slow=3.0 if turn == 0 else 1.0)
        recording.utterance("two", frames=70, slow=2.0 if turn == 0 else 1.0)
    found = compared(recording.close(), plain_session(tmp_path / "warm.asrs", 8, seed=4))
    assert found.warm_up == (1, 0)
    assert found.repeats == 7
    assert found.overall.verdict == NO_DIFFERENCE


def test_utterances_match_by_name_and_length(tmp_path):
    a, b = (Recording(tmp_path / f"{name}.asrs", seed) for seed, name in enumerate("ab"))
    for recording, other, length in ((a, "only here", 50), (b, "only there", 60)):
        recording.config(0)
        for _ in range(3):
            recording.utterance("same")
            recording.utterance("same", folder="/elsewhere")  # another file of that name
            recording.utterance(other)
            recording.utterance("cut", frames=length)
    found = compared(a.close(), b.close())
    assert found.matched == (("same", 0), ("same", 1))
    assert found.unmatched_a == ("only here", "cut")
    assert found.audio_s == pytest.approx(2 * FRAMES / 100)
    assert any("2 utterances match" in w and "only in A (only here, cut)" in w for w in found.warnings)


@each(
    "differs, says",
    [
        ({"machine": {**MACHINE, "host": "there"}}, "The host differs: here in A, there in B."),
        ({"machine": {**MACHINE, "cores": {"logical": 4}}}, "number of cores differs: logical 2"),
        ({"versions": {"numba": "2"}}, "The build of numba differs: 1 in A, 2 in B."),
        ({"versions": {}}, "The build of numba differs: 1 in A, unknown in B."),
        ({"preset": "another"}, "The preset differs: test in A, another in B."),
        ({"tree": {"threads": 2}}, "The number of threads differs: 1 in A, 2 in B."),
        ({"peak": 3}, "The audio differs: 2 of 2 utterances of the same name and length have another wave form."),
        ({"reference": None}, "The transcripts differ: 2 of 2 utterances"),
        ({"fma": 40e9}, "in 1 roofs, most in fma (B 0.80 × A)"),
    ],
)
def test_unequal_conditions_are_named(differs, says, tmp_path):
    a = plain_session(tmp_path / "a.asrs")
    found = compared(a, plain_session(tmp_path / "b.asrs", **differs))
    assert any(says in warning for warning in found.warnings), found.warnings
    # Another decoder of the same sound, and a calibration apart by less than five percent.
    alike = compared(a, plain_session(tmp_path / "alike.asrs", peak=2, fma=52e9))
    assert not any("differ" in warning or "calibration" in warning for warning in alike.warnings)


@each(
    "ratio, p, wanted",
    [
        (Ratio(1.01, 0.99, 1.02, 0.5), 0.5, NO_DIFFERENCE),
        (Ratio(1.015, 1.01, 1.02, 0.001), 0.001, NO_DIFFERENCE),  # certain, and too small to matter
        (Ratio(1.05, 1.01, 1.09, 0.01), 0.02, A_FASTER),
        (Ratio(0.95, 0.91, 0.99, 0.01), 0.02, B_FASTER),
        (Ratio(1.05, 1.01, 1.09, 0.01), 0.12, UNDECIDED),  # alone it would be a finding, among many stages it is none
        (Ratio(1.05, 0.95, 1.15, 0.3), 0.3, UNDECIDED),
        (Ratio(1.05), None, UNDECIDED),
    ],
)
def test_verdicts_go_by_interval_and_adjusted_p(ratio, p, wanted):
    assert verdict(ratio, p) == wanted


def test_blocks_of_different_sizes_are_compared_by_whole_repeats(tmp_path):
    def decoded(block: int) -> Path:
        recording = Recording(tmp_path / f"{block}.asrs", block, noise=0.3, block=block)
        recording.config(0, block=block)
        for _ in range(10):
            recording.utterance("long", frames=1600)
        return recording.close()

    found = compared(decoded(BLOCK), decoded(1))
    # By cells of a block the short blocks seem a fifth slower.
    assert stage(found, "search.two").ratio.ratio == pytest.approx(1.0, abs=0.08)
    assert any("Blocks differ (16 frames in A, 1 in B)" in warning for warning in found.warnings)
