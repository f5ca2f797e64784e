"""How long a thread waited for its processor, as the system tells it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from profiler.machine import cpu_limit, run_queue
from profiler.machine.run_queue import RunQueue


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that Linux writes for this thread."""
    monkeypatch.setattr(run_queue, "PATH", f"{tmp_path}/{{}}-schedstat")
    monkeypatch.setattr(run_queue, "LEAST_AWAY_NS", -(2**62))
    monkeypatch.setattr(run_queue, "STAT", f"{tmp_path}/stat")
    monkeypatch.setattr(cpu_limit, "ROOT", tmp_path)
    return tmp_path / f"{threading.get_native_id()}-schedstat"


def test_the_run_queue_says_what_was_waited_since_the_last_call(queue: Path) -> None:
    queue.write_text("5000 700 3\n")
    with RunQueue() as waiting:
        assert waiting.readable
        assert waiting.waited_ns() == 0
        queue.write_text("9000 1000 4\n")
        assert waiting.waited_ns() == 300
        assert waiting.waited_ns() == 0
        # Numbers may be long, and a kernel that counts anew takes nothing back.
        queue.write_text(f"{2**63} {2**62} {2**40}\n")
        assert waiting.waited_ns() == 2**62 - 1000
        queue.write_text("1 2 3\n")
        assert waiting.waited_ns() == 0
    assert not waiting.readable
    assert waiting.waited_ns() == 0
    waiting.close()


def test_a_thread_with_its_processor(queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = 0
    monkeypatch.setattr(run_queue, "LEAST_AWAY_NS", 5_000)
    monkeypatch.setattr(run_queue, "_away_ns", lambda: away)
    queue.write_text("5000 700 3\n")
    with RunQueue() as waiting:
        queue.write_text("9000 1000 4\n")
        away = 4_000
        assert waiting.waited_ns() == 0
        away = 8_000
        assert waiting.waited_ns() == 300, "what was left out counts the next time"
        queue.write_text("9000 1500 4\n")
        away = 12_000
        assert waiting.waited_ns() == 0


@pytest.mark.parametrize("text", [None, "", "5000", "a b c"])
def test_without_the_statistics_there_is_no_waiting(queue: Path, text: str | None) -> None:
    if text is not None:
        queue.write_text(text)
    with RunQueue() as waiting:
        assert not waiting.readable
        queue.write_text("9000 1000 4\n")
        assert waiting.waited_ns() == 0


def test_on_this_system_it_is_never_negative() -> None:
    with RunQueue() as waiting:
        assert all(waiting.waited_ns() >= 0 for _ in range(1000))
