"""A child compiles the kernels of scoring: once, and never longer than its parent lives."""

import json
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from pipelines import config as settings
from pipelines.config import Config
from pipelines.run import compiling
from pipelines.run.control import Change, Control, Mark
from pipelines.scoring import scorer, selection
from pipelines.scoring.selection import none, vq_table
from profiler.errors import Cancelled
from profiler.machine.roofs import calibration
from tests.waiting import PATIENCE_S


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels in which nothing was marked."""
    monkeypatch.setattr(compiling.numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def child(code: str) -> tuple[str, ...]:
    """A command that runs `code` in place of the compiler; its last argument is the configuration."""
    return sys.executable, "-c", code


def never() -> bool:
    return False


def test_the_child_gets_the_configuration_and_is_waited_for(kernels, quick):
    slow = f"import sys, time; time.sleep(0.2); open({str(kernels / 'given')!r}, 'w').write(sys.argv[1])"
    with compiling.in_child(quick, child(slow)) as wait:
        wait(never)
        assert settings.from_dict(json.loads((kernels / "given").read_text())) == quick


PREPARED = {"gmm.selection.method": "vq-table", "gmm.selection.prepare": True, "gmm.selection.enabled": False}


def test_what_is_marked_is_not_compiled_again_and_what_else_is_chosen_is(kernels, quick):
    for mark in compiling.marks(quick):
        mark.touch()
    begun = kernels / "begun"
    for change, compiles in (
        ({}, False),
        ({"search.beam": 9.0}, False),
        ({"gmm.selection.top_n": 9, "gmm.selection.enabled": False}, False),
        ({"gmm.selection.enabled": True}, True),
        (PREPARED, True),
        ({"frames.skip": 2}, False),
        ({"frames.skip": 2, "frames.rule": "conditional"}, True),
        ({"gmm.senones": "ci"}, True),
        ({"model": "continuous"}, True),
        ({"device": "torch-cpu"}, False),
    ):
        config = settings.assign(quick, change)
        with compiling.in_child(config, child(f"open({str(begun)!r}, 'w')")) as wait:
            wait(never)
        assert begun.exists() == compiles == (compiling.beside(config) is not None), change
        begun.unlink(missing_ok=True)


def test_a_child_that_fails_is_no_error(kernels, quick):
    with compiling.in_child(quick, child("raise SystemExit(1)")) as wait:
        wait(never)


def begin(config: Config, alive: Path, cancel: bool) -> None:
    """Wait until a child that writes `alive` again and again has begun, then end with it still running."""
    code = f"import time\nfor n in range(3000): open({str(alive)!r}, 'w').write(str(n)); time.sleep(0.01)"
    with compiling.in_child(config, child(code)) as wait:
        while not alive.exists():
            time.sleep(0.01)
        if cancel:
            wait(lambda: True)
        raise ZeroDivisionError


@pytest.mark.parametrize("cancel", [True, False], ids=["cancelled", "an error of the parent"])
def test_the_child_ends_with_what_it_was_begun_for(kernels, quick, cancel):
    alive = kernels / "alive"
    with pytest.raises(Cancelled if cancel else ZeroDivisionError):
        begin(quick, alive, cancel)
    before = alive.read_text()
    time.sleep(0.1)
    assert alive.read_text() == before
    assert before != "2999", "it was ended, and did not come to its end"


def test_only_what_is_chosen_is_compiled(quick, monkeypatch):
    called = set()
    for made in {getattr(make, "func", make) for methods in selection.METHODS.values() for make in methods.values()}:
        score = made.score
        noting = lambda *arguments, score=score, made=made: called.add(made) or score(*arguments)  # noqa: E731
        monkeypatch.setattr(made, "score", noting)
    monkeypatch.setattr(scorer, "COMPILED", set())
    monkeypatch.setattr(calibration, "warm_up", lambda *_: None)
    for change, methods in (({}, {none.Tied}), (PREPARED, {none.Tied, vq_table.Tied})):
        config = settings.assign(quick, change)
        for mark in compiling.marks(config):
            mark.unlink(missing_ok=True)
        called.clear()
        compiling.compile_for(config)
        assert called == methods
        assert compiling.is_compiled(config)
        scorer.COMPILED.clear()


def test_requests_keep_their_order_and_the_frame_they_were_made_at():
    control = Control()
    control.frame = 7
    control.ask("frames.skip", 2)
    control.frame = 9
    control.mark("here")
    control.ask("gmm.selection.enabled", "on")
    assert control.take() == [Change("frames.skip", 2, 7), Mark("here", 9), Change("gmm.selection.enabled", True, 9)]
    assert control.take() == []


@pytest.mark.parametrize("wake", ["stop", "ask"])
def test_waiting_for_the_pace_ends_with_a_request(wake):
    control = Control()
    an_hour_from_now = time.perf_counter_ns() + 3_600_000_000_000
    waiting = threading.Thread(target=control.sleep_until, args=(an_hour_from_now,))
    waiting.start()
    control.stop() if wake == "stop" else control.ask("frames.skip", 2)
    waiting.join(timeout=PATIENCE_S)
    assert not waiting.is_alive()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers of signals here")
def test_a_signal_that_interrupts_the_wait_can_stop_it():
    """Ctrl+C hung now and then: the handler waited for a lock that the interrupted wait held."""
    control, deep = Control(), 0

    def handle(number: int, frame: object) -> None:
        nonlocal deep
        deep += 1
        assert deep < 50, "stop waits for the thread that it interrupted"
        control.stop()
        deep -= 1

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for _ in range(1000):
            control = Control()
            while not control.stopping:
                control.sleep_until(time.perf_counter_ns() + 20_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_change_says_values_as_the_form_does():
    """The flag said "Frame skipping: 1" where the form said "off"."""
    said = [Change(*what, 0).text for what in (("frames.skip", 1), ("frames.skip", 2))]
    assert said == ["Frame skipping: off", "Frame skipping: every 2nd"]
    assert Change("gmm.selection.enabled", True, 0).text == "Gaussian selection: on"
    assert Change("pace", 0.0, 0).text == "Pace: full speed"
    assert Change("pace", 1.5, 0).text == "Pace: 1.5"
