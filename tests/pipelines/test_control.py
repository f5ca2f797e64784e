"""Requests from a person's hands reach the decode loop, or are refused with a reason."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from pipelines.config import ConfigError
from pipelines.run.control import Change, Control, Mark
from tests.waiting import PATIENCE_S


def test_requests_keep_their_order_and_the_frame_they_were_made_at() -> None:
    control = Control()
    control.frame = 7
    control.ask("frames.skip", 2)
    control.frame = 9
    control.mark("here")
    control.ask("gmm.selection.enabled", "on")
    assert control.take() == [Change("frames.skip", 2, 7), Mark("here", 9), Change("gmm.selection.enabled", True, 9)]
    assert control.take() == []


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("model", "ptm", "cannot change while a run goes on"),
        ("frames.skip", 99, "from 1 to 4"),
        ("nonsense", 1, "no setting called"),
    ],
)
def test_what_cannot_be_is_refused(key: str, value: object, says: str) -> None:
    control = Control()
    with pytest.raises(ConfigError, match=says):
        control.ask(key, value)
    assert control.take() == []


@pytest.mark.parametrize("wake", ["stop", "ask"])
def test_waiting_for_the_pace_ends_with_a_request(wake: str) -> None:
    control = Control()
    an_hour_from_now = time.perf_counter_ns() + 3_600_000_000_000
    waiting = threading.Thread(target=control.sleep_until, args=(an_hour_from_now,))
    waiting.start()
    control.stop() if wake == "stop" else control.ask("frames.skip", 2)
    waiting.join(timeout=PATIENCE_S)
    assert not waiting.is_alive()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers of signals here")
def test_a_signal_that_interrupts_the_wait_can_stop_it() -> None:
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


def test_a_change_says_values_as_the_form_does() -> None:
    """The flag said "Frame skipping: 1" where the form said "off"."""
    said = [Change(*what, 0).text for what in (("frames.skip", 1), ("frames.skip", 2))]
    assert said == ["Frame skipping: off", "Frame skipping: every 2nd"]
    assert Change("gmm.selection.enabled", True, 0).text == "Gaussian selection: on"
    assert Change("pace", 0.0, 0).text == "Pace: full speed"
    assert Change("pace", 1.5, 0).text == "Pace: 1.5"
