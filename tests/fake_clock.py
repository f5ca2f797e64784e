"""A clock for tests in the place of the real one: it makes every time in them exact."""


class FakeClock:
    """A clock that stands still until it is advanced: `clock()` reads it, `advance(ns)` moves it."""

    def __init__(self, start_ns: int = 0) -> None:
        self.now = start_ns

    def __call__(self) -> int:
        """Return the time it was set to."""
        return self.now

    def advance(self, duration_ns: int) -> int:
        """Move the clock on and return the new time; a negative duration is refused."""
        if duration_ns < 0:
            raise ValueError(f"a monotonic clock cannot go back by {-duration_ns} ns")
        self.now += duration_ns
        return self.now
