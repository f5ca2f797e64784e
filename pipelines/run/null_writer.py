"""The journal of a run that keeps no session: with `NullLane` it shows what the instrument itself costs."""

from __future__ import annotations


class NullWriter:
    """Stands where a `profiler.session.writer.SessionWriter` would; every method does nothing."""

    failed = None

    def marker(self, *_: object) -> int:
        return 0

    utterance = marker

    def meta(self, *_: object) -> None:
        """Nothing is kept."""

    config = marker_applied = utterance_partial = utterance_notes = utterance_done = meta
    sample = calibration = counters = meta

    def close(self, state: str = "closed") -> None:
        """The run ended."""
