"""`run --partials`: lines in a pipe, in the order and with the texts that the session has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bench import stream_clock


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are those of Unix")
def test_partial_results_arrive_in_a_pipe_when_the_session_says(bundled_speech: Path, tmp_path: Path) -> None:
    """How close the times are is for the bench; here no line is from another run or utterance."""
    found = stream_clock.run(tmp_path, [bundled_speech / "08-kal16-short.flac"])
    assert len(found.later_ms) >= 2
    assert all(-5e3 < ms < 60e3 for ms in found.later_ms)
    assert found.sentence.startswith("Largest part: ")
