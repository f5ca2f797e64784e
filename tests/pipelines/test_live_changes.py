"""Changes that must be made ready first: prepared in a thread while decoding goes on, applied when ready."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipelines import config as settings
from pipelines.config import Config, ConfigError, Value
from pipelines.run.control import Change, Control
from pipelines.run.live_changes import LiveChanges, PendingChange
from pipelines.run.session_run import Outcome
from pipelines.scoring import frames
from profiler.errors import Cancelled
from profiler.session.facts import COMPILING
from profiler.session.reader import Session
from tests.pipelines import whole_runs
from tests.pipelines.whole_runs import Person, ask
from tests.waiting import PATIENCE_S, wait_until


@dataclass
class Slow:
    """A scorer to which `frames.codewords` is slow; each preparation waits until it is let go."""

    started: list[int] = field(default_factory=list)
    cancelled: dict[int, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))
    go: threading.Event = field(default_factory=threading.Event)
    bad: int = 0  # The size that cannot be made

    def needs(self, config: Config) -> Any:
        size = config.frames.codewords
        return None if size == 256 else size

    def make_ready(self, config: Config, progress: Callable[..., None], cancelled: Callable[[], bool]) -> Any:
        size = config.frames.codewords
        self.started.append(size)
        while not self.go.wait(0.001):
            if cancelled():
                self.cancelled[size].set()
                raise Cancelled
        if size == self.bad:
            raise OSError(f"{size} is bad")
        return f"codebook of {size}"


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    yield made
    made.go.set()


def request(size: int) -> PendingChange:
    return PendingChange(Change("frames.codewords", size, 0), size)


def wait(changes: LiveChanges, slow: Slow) -> tuple[int, list[int]]:
    """Block boundaries, one after the other, until something is due: the codewords then, and the markers of changes."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        due = changes.due(Config(), [], slow)
        if due is not None:
            return due.config.frames.codewords, [change.marker for change in due.changes]
        time.sleep(0.001)
    raise AssertionError("nothing became due")


@pytest.fixture
def changes(slow: Slow) -> LiveChanges:
    """One of them being made ready."""
    changes = LiveChanges()
    assert changes.due(Config(), [request(64)], slow) is None
    return changes


def test_a_later_wish_cancels_what_an_earlier_one_was_making(slow, changes):
    assert changes.due(Config(), [request(128)], slow) is None
    assert slow.cancelled[64].wait(PATIENCE_S)
    slow.go.set()
    assert wait(changes, slow) == (128, [64, 128])
    assert slow.started == [64, 128]


def test_a_wish_taken_back_cancels_and_acts_at_once(slow, changes):
    due = changes.due(Config(), [request(256)], slow)
    assert due is not None
    assert due.config == Config()
    assert not changes.waiting
    assert slow.cancelled[64].wait(PATIENCE_S)


def test_what_was_being_made_survives_a_later_wish_that_cannot_be(slow, changes):
    slow.bad = 128
    assert changes.due(Config(), [request(128)], slow) is None
    slow.go.set()
    assert wait(changes, slow) == (64, [64])
    assert changes.take_messages() == [("error", "frames.codewords=128 could not be made ready: 128 is bad")]


def test_kernels_that_are_not_compiled_are_waited_for_and_said(slow):
    compiled = threading.Event()
    changes = LiveChanges(lambda config: lambda cancelled: compiled.wait())
    slow.go.set()
    try:
        assert changes.due(Config(), [request(64)], slow) is None
        assert changes.take_messages() == [("note", f"{COMPILING} Frame codewords: 64")]
        assert changes.due(Config(), [], slow) is None
        assert slow.started == []
    finally:
        compiled.set()
    assert wait(changes, slow) == (64, [64])


def test_live_changes_that_cannot_act_together_are_refused_in_one_sentence():
    """Whatever the tree says cannot be: the form, the command line and a live change say the same."""
    target = next(o for o in settings.options() if o.live and o.choices_when)
    choice, (condition, *_) = next(iter(target.choices_when.items()))
    other, wanted = next(iter(condition.items()))
    wrong = next(c for c in settings.option(other).choices or (True, False) if c not in wanted)
    control = Control()
    control.config = settings.replace(control.config, other, wrong)
    if target.switched_by:
        control.config = settings.replace(control.config, target.switched_by, True)
    with pytest.raises(ConfigError, match=other):
        control.ask(target.key, choice)
    assert not control.has_requests


def join_preparing(person: Person) -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("preparing"):
            thread.join(PATIENCE_S)


CODEBOOK = (32, "frames.rule", "conditional"), (48, "frames.skip", 2)
"""Changes of which the second needs a codebook: the rule alone does nothing while every frame is scored."""


def run(files: list[Path], out: Path, *changes: tuple[int, str, Any], **watched: Callable[[Person], object]) -> Outcome:
    """A run of two files, while which settings change at frames."""
    person = Person(*(ask(*change) for change in changes), **watched)
    return whole_runs.run(whole_runs.QUICK, files, out, person, transcripts=files[0].with_name("transcripts.tsv"))


def test_every_layer_changes_while_it_runs(quick, files, tmp_path):
    changes = (
        (40, "gmm.senones", "active"),
        (80, "frames.skip", 2),
        (120, "gmm.senones", "active-ci"),
        (160, "gmm.ci_beam", 15.0),
        (200, "gmm.senones", "ci"),
        (240, "gmm.senones", "all"),
        (260, "gmm.selection.enabled", True),
        (300, "frames.skip", 3),
        (320, "gmm.selection.enabled", False),
    )
    rules: list[dict[str, Value]] = [{"gmm.senones": rule} for rule in ("active", "active-ci", "ci")]
    whole_runs.compiled(quick, *rules, {"gmm.selection.enabled": True})
    path = tmp_path / "layers.asrs"
    assert run(files, path, *changes).state == "closed"
    with closing(Session.open(path)) as session:
        markers = [m for m in session.markers if m.kind == "option"]
        assert len(markers) == 9
        assert [m.epoch for m in markers] == sorted(m.epoch for m in markers)
        first_frames = {config.epoch: config.first_frame for config in session.configs}
        for marker in markers:
            assert 0 <= marker.applied_frame - marker.asked_frame <= quick.block
            assert first_frames[marker.epoch] == marker.applied_frame
        first, second = session.utterances
        assert first.errors is None  # decoded under many configurations: says nothing of any
        assert (second.errors, second.hypothesis) == (0, "yes of course")
        pairs = set(zip(session.spans["stage"].tolist(), session.spans["epoch"].tolist(), strict=True))
        recorded = {(s, e) for s, e in pairs if session.stages[s].group in ("scoring", "search")}
        assert recorded <= set(session.costs)
        used = {session.stages[stage].name for stage, _ in recorded}
        assert {"score.mixture", "score.lazy", "score.backoff", "score.copy", "score.select", "search.active"} <= used


@pytest.mark.slow
def test_a_slow_change_waits_for_its_codebook_and_the_run_does_not(quick, files, tmp_path, monkeypatch):
    whole_runs.compiled(quick, {"frames.rule": "conditional", "frames.skip": 2})
    make, gate = frames.Conditional._make, threading.Event()
    monkeypatch.setattr(frames.Conditional, "_make", lambda *about: gate.wait(PATIENCE_S) and make(*about))

    def later(person: Person) -> None:
        if person.frame >= 200:
            gate.set()
            join_preparing(person)

    path = tmp_path / "slow.asrs"
    run(files, path, *CODEBOOK, (64, "block", 8), then=later)
    with closing(Session.open(path)) as session:
        rule, skip, block = session.markers
        for at_once in (rule, block):
            assert at_once.applied_frame - at_once.asked_frame <= quick.block
        assert 48 <= skip.asked_frame <= 48 + quick.block
        assert 200 <= skip.applied_frame <= 200 + 2 * quick.block
        assert rule.epoch < block.epoch < skip.epoch
        tree = session.configs[-1].tree
        assert (tree["frames"]["skip"], tree["block"]) == (2, 8)
        copies = [session.stages[n].name == "score.frames" for n in session.spans["stage"].tolist()]
        assert session.spans["first_frame"][copies].min() >= skip.applied_frame


def test_a_change_that_cannot_be_made_ready_leaves_an_error_and_the_run_goes_on(files, tmp_path, monkeypatch):
    def prepare(*_: Any) -> Any:
        raise OSError("the cache is gone")

    monkeypatch.setattr(frames.Conditional, "_make", prepare)
    path = tmp_path / "failed.asrs"
    assert run(files, path, *CODEBOOK, (200, "search.beam", 12.0), then=join_preparing).state == "closed"
    with closing(Session.open(path)) as session:
        (error,) = [m.text for m in session.markers if m.kind == "error"]
        assert error == "frames.skip=2 could not be made ready: the cache is gone"
        applied = {m.key: m.applied_frame is not None for m in session.markers if m.kind == "option"}
        assert applied == {"frames.rule": True, "frames.skip": False, "search.beam": True}
        assert session.configs[-1].tree["frames"]["skip"] == 1


def test_a_stop_does_not_wait_for_what_is_being_made(files, tmp_path, monkeypatch):
    seen: list[str] = []

    def prepare(self: Any, config: Any, progress: Any, cancelled: Any) -> Any:
        wait_until(cancelled)
        seen.append("cancelled")
        raise Cancelled

    monkeypatch.setattr(frames.Conditional, "_make", prepare)

    def stop(person: Person) -> None:
        if person.frame >= 100:
            person.stop()

    assert run(files, tmp_path / "stopped.asrs", *CODEBOOK, then=stop).state == "stopped"
    assert seen == ["cancelled"]
    assert not [t for t in threading.enumerate() if t.name.startswith("preparing")]
