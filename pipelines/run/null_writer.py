"""The journal of a run that keeps no session: takes what `SessionWriter` takes and lets it go.

With `NullLane` it makes a run with the recorder off, which shows what the instrument itself costs.
"""

from __future__ import annotations


class NullWriter:
    """Stands where a `profiler.session.writer.SessionWriter` would; every method does nothing."""

    failed = None

    def config(self, *_: object) -> None:
        """Settings that hold from a frame on."""

    def marker(self, *_: object) -> int:
        """Something worth a mark; its number means nothing here."""
        return 0

    def marker_applied(self, *_: object) -> None:
        """A change acts from a frame on."""

    def utterance(self, *_: object) -> int:
        """An utterance begins; its number means nothing here."""
        return 0

    def utterance_partial(self, *_: object) -> None:
        """What was heard so far."""

    def utterance_done(self, *_: object) -> None:
        """An utterance was decoded to its end."""

    def sample(self, *_: object) -> None:
        """Readings of the machine."""

    def calibration(self, *_: object) -> None:
        """Measured roofs."""

    def counters(self, *_: object) -> None:
        """Totals of hardware and kernel counters."""

    def meta(self, *_: object) -> None:
        """One value of the session's description."""

    def close(self, state: str = "closed") -> None:
        """The run ended."""
